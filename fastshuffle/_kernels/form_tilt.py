"""The tilt of a product of powers of linear forms at which a coefficient is found.

In ``prod_i (sum_j t_ij x_j)**c_i`` every factor gives a label j to one of c_i messages, with
probability t_ij after a tilt ``x_j = exp(s_j)``. The coefficient of ``prod_j x_j**target_j`` is
that the labels come out in the numbers wanted, which is likely once the tilt brings their means
there. The numbers of the labels from 1 on tell all: label 0 has the rest.
"""

import math

import numpy as np

from fastshuffle._kernels._jit import kernel

_LARGEST_TILT = 200.0
_MOST_STEPS = 200
# Up to here seven terms of a logarithm and of an arc tangent, squared for this, do.
_SMALL = 0.004


@kernel("(float64,)")
def log_one_plus(x):
    """Return log(1 + x), from its series where x is small."""
    if abs(x) > _SMALL:
        return math.log1p(x)
    tail = x * (0.2 - x * (1.0 / 6.0 - x * (1.0 / 7.0)))
    return x * (1.0 - x * (0.5 - x * (1.0 / 3.0 - x * (0.25 - tail))))


@kernel("(float64, float64)")
def arc(sine, cosine):
    """Return the angle of a vector, from its series where it is small."""
    if cosine <= 0.0 or sine * sine > _SMALL * cosine * cosine:
        return math.atan2(sine, cosine)
    ratio = sine / cosine
    square = ratio * ratio
    tail = square * (1.0 / 9.0 - square * (1.0 / 11.0 - square / 13.0))
    return ratio * (1.0 - square * (1.0 / 3.0 - square * (0.2 - square * (1.0 / 7.0 - tail))))


@kernel("(float64[:, ::1], float64[::1], float64[::1])")
def solve_positive(matrix, right, solution):
    """Solve a positive definite system by Cholesky's method; ``matrix`` becomes its factor."""
    size = right.shape[0]
    ridge = 0.0
    for i in range(size):
        ridge += matrix[i, i]
    ridge = 1e-14 * ridge + 1e-290
    for i in range(size):
        for j in range(i + 1):
            total = matrix[i, j] + (ridge if i == j else 0.0)
            for p in range(j):
                total -= matrix[i, p] * matrix[j, p]
            matrix[i, j] = math.sqrt(max(total, ridge)) if i == j else total / matrix[j, j]
    for i in range(size):
        total = right[i]
        for p in range(i):
            total -= matrix[i, p] * solution[p]
        solution[i] = total / matrix[i, i]
    for i in range(size - 1, -1, -1):
        total = solution[i]
        for p in range(i + 1, size):
            total -= matrix[p, i] * solution[p]
        solution[i] = total / matrix[i, i]


@kernel("(float64[::1], float64[::1], float64[:, ::1], float64[:, ::1])")
def tilt_shares(tilt, factors, shares, tilted):
    """Tilt the shares of the labels in every output by ``exp(tilt)``; factors are the sums."""
    size = tilt.shape[0]
    for j in range(size):
        growth = math.exp(tilt[j])
        for y in range(shares.shape[0]):
            tilted[y, j] = shares[y, j] * growth
    for y in range(shares.shape[0]):
        total = 0.0
        for j in range(size):
            total += tilted[y, j]
        factors[y] = total
        for j in range(size):
            tilted[y, j] /= total


@kernel("(float64[::1], float64[:, ::1], float64[:, ::1])")
def form_covariance(powers, tilted, covariance):
    """Fill the covariance of the numbers of the labels from 1 on."""
    size = covariance.shape[0]
    for i in range(size):
        for j in range(i + 1):
            total = 0.0
            for y in range(powers.shape[0]):
                own = tilted[y, i + 1]
                if i == j:
                    total += powers[y] * own * (1.0 - own)
                else:
                    total -= powers[y] * own * tilted[y, j + 1]
            covariance[i, j] = total
            covariance[j, i] = total


@kernel(
    "(float64[::1], float64[::1], float64[:, ::1], float64[::1], float64[::1], float64[:, ::1],"
    " float64[:, ::1])"
)
def find_tilt(powers, target, shares, tilt, factors, tilted, covariance):
    """Find a tilt whose mean numbers of labels are within a tenth of a deviation of the target.

    The target is scaled to the number of messages, of which it may have one more or one less.
    Newton's method on a convex function, with short steps; ``covariance`` becomes that at the tilt.
    """
    size = covariance.shape[0]
    messages = 0.0
    for y in range(powers.shape[0]):
        messages += powers[y]
    wanted = 0.0
    for j in range(size + 1):
        wanted += target[j]
        tilt[j] = 0.0
    gap = np.empty(size)
    step = np.empty(size)
    factor = np.empty((size, size))
    for _ in range(_MOST_STEPS):
        tilt_shares(tilt, factors, shares, tilted)
        form_covariance(powers, tilted, covariance)
        for i in range(size):
            gap[i] = target[i + 1] * (messages / wanted)
            for y in range(powers.shape[0]):
                gap[i] -= powers[y] * tilted[y, i + 1]
            for j in range(size):
                factor[i, j] = covariance[i, j]
        solve_positive(factor, gap, step)
        distance = 0.0
        widest = 0.0
        for i in range(size):
            distance += gap[i] * step[i]
            widest = max(widest, abs(step[i]))
        if distance <= 0.01 or widest == 0.0:
            return
        shorter = min(1.0, 2.0 / widest)
        moved = 0.0
        for i in range(size):
            to = min(max(tilt[i + 1] + shorter * step[i], -_LARGEST_TILT), _LARGEST_TILT)
            moved = max(moved, abs(to - tilt[i + 1]))
            tilt[i + 1] = to
        if moved == 0.0:
            return
