"""The privacy loss of single histograms, for any composition of the others over a few inputs.

The others hold input j = 0, ..., m with known numbers c_j, n - 1 in all. Let m_y be the mean of
their rows, ``t_yj`` the share of input j in it, and give every message a label, j with probability
t_yj. With S_N the law of the numbers of labels among the messages N,

    P(N) / Q(N) = sum_y N_y beta_y S_{N - e_y}(c) / sum_y N_y alpha_y S_{N - e_y}(c),

``beta = W_b / m`` and ``alpha = W_a / m``: one of the messages is that of the user who differs, and
the labels of the rest have to be c. With one input there are no labels, and the closed form of a
homogeneous background remains.

S_{N - e_y}(c) is the inversion of a Fourier transform in m variables, after a tilt that brings
the mean numbers of labels to about c: a product over the outputs of
``phi_y**N_y``, ``phi_y = sum_j t_yj exp(i theta_j)``, divided by phi_y. Lengths and cuts of the
sums are those of `fastshuffle._kernels.group_contour`, variable by variable, at a looser cut: what
is left out is below exp(-30). About 12 nodes are visited with two inputs and 300 with three,
whatever the counts. Every tilt gives the same number, so that the saddle point need not be exact;
where the labels are settled it lies at infinity, and the tilt stops at exp(60).
"""

import math

import numpy as np

from fastshuffle._kernels._jit import kernel

_NEGLIGIBLE_EXPONENT = 30.0
_LARGEST_TILT = 60.0
_MOST_STEPS = 100
# Relative to the sum of the sizes of its terms, a sum below this is rounding: it is exactly 0.
_ROUNDING = 1e-13
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
def label_covariance(counts, tilted, covariance):
    """Fill the covariance of the numbers of the labels from 1 on."""
    size = covariance.shape[0]
    for i in range(size):
        for j in range(i + 1):
            total = 0.0
            for y in range(counts.shape[0]):
                own = tilted[y, i + 1]
                if i == j:
                    total += counts[y] * own * (1.0 - own)
                else:
                    total -= counts[y] * own * tilted[y, j + 1]
            covariance[i, j] = total
            covariance[j, i] = total


@kernel(
    "(float64[::1], float64[::1], float64[:, ::1], float64[::1], float64[::1], float64[:, ::1],"
    " float64[:, ::1])"
)
def find_tilt(counts, labels, shares, tilt, factors, tilted, covariance):
    """Find a tilt whose mean numbers of labels are within a tenth of a deviation of the target.

    The target are the labels of the others and a proportional part of one more message. Newton's
    method on a convex function, with short steps; ``covariance`` becomes that at the tilt.
    """
    size = covariance.shape[0]
    users = 1.0
    for j in range(size + 1):
        users += labels[j]
        tilt[j] = 0.0
    gap = np.empty(size)
    step = np.empty(size)
    factor = np.empty((size, size))
    for _ in range(_MOST_STEPS):
        tilt_shares(tilt, factors, shares, tilted)
        label_covariance(counts, tilted, covariance)
        for i in range(size):
            gap[i] = labels[i + 1] * (users / (users - 1.0))
            for y in range(counts.shape[0]):
                gap[i] -= counts[y] * tilted[y, i + 1]
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


@kernel("(float64, float64)")
def label_nodes(variance, free_variance):
    """Return the transform length in one variable and its nodes besides 0 on either side.

    ``variance`` is that of a label's number, ``free_variance`` that given all other numbers.
    """
    third = _NEGLIGIBLE_EXPONENT / 3.0
    length = third + math.sqrt(third * third + 2.0 * _NEGLIGIBLE_EXPONENT * variance)
    n_nodes = int(length)
    if free_variance > 0.5 * _NEGLIGIBLE_EXPONENT:
        widest = 2.0 * math.asin(math.sqrt(0.5 * _NEGLIGIBLE_EXPONENT / free_variance))
        n_nodes = int(widest * length / (2.0 * math.pi)) + 1
    if 2 * n_nodes + 1 >= length:  # the whole period, an odd number of nodes
        n_nodes = int(0.5 * length) + 1
        length = 2.0 * n_nodes + 1.0
    return length, n_nodes


@kernel("(float64[:, ::1], float64[::1], float64[::1])")
def set_up_nodes(covariance, steps, numbers):
    """Fill the angle between nodes and the number of nodes on either side of 0, a variable each."""
    size = covariance.shape[0]
    unit = np.zeros(size)
    column = np.empty(size)
    factor = np.empty((size, size))
    for i in range(size):
        for p in range(size):
            unit[p] = 1.0 if p == i else 0.0
            for q in range(size):
                factor[p, q] = covariance[p, q]
        solve_positive(factor, unit, column)
        length, n_nodes = label_nodes(covariance[i, i], 1.0 / max(column[i], 1e-300))
        steps[i] = 2.0 * math.pi / length
        numbers[i] = n_nodes


@kernel(
    "(float64[::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[::1], float64[::1])"
)
def add_node(counts, tilted, weights, waves, offsets, sums):
    """Add one node to the sums of weighted masses.

    ``weights`` has a row an output: N_y times beta, alpha and their difference, over the factor of
    the output; ``waves`` has rows (1 - cos theta, sin theta, theta), a variable each; ``offsets``
    is the distance of the mean numbers of labels from those wanted, and last the node's weight.
    """
    size = waves.shape[0]
    log_size = 0.0
    phase = 0.0
    for i in range(size):
        phase += offsets[i] * waves[i, 2]
    beta_real = beta_imaginary = 0.0
    alpha_real = alpha_imaginary = 0.0
    gap_real = gap_imaginary = 0.0
    for y in range(counts.shape[0]):
        count = counts[y]
        if count == 0.0:
            continue
        defect = 0.0
        sine = 0.0
        mean = 0.0
        for i in range(size):
            share = tilted[y, i + 1]
            defect += share * waves[i, 0]
            sine += share * waves[i, 1]
            mean += share * waves[i, 2]
        real = 1.0 - defect
        excess = (defect * defect + sine * sine) - 2.0 * defect
        square = max(real * real + sine * sine, 1e-280)
        log_size += 0.5 * count * (log_one_plus(excess) if excess > -0.5 else math.log(square))
        phase += count * (arc(sine, real) - mean)
        cosine = real / square
        sine /= square
        beta_real += weights[y, 0] * cosine
        beta_imaginary -= weights[y, 0] * sine
        alpha_real += weights[y, 1] * cosine
        alpha_imaginary -= weights[y, 1] * sine
        gap_real += weights[y, 2] * cosine
        gap_imaginary -= weights[y, 2] * sine
    if log_size < -_NEGLIGIBLE_EXPONENT - 3.0:
        return
    wave = offsets[size] * math.exp(log_size)
    wave_real = wave * math.cos(phase)
    wave_imaginary = wave * math.sin(phase)
    sums[0] += wave_real * beta_real - wave_imaginary * beta_imaginary
    sums[1] += wave_real * alpha_real - wave_imaginary * alpha_imaginary
    sums[2] += wave_real * gap_real - wave_imaginary * gap_imaginary
    sums[3] += abs(wave)


@kernel("(float64, float64, float64)")
def loss_of_sums(beta, alpha, gap):
    """Return the privacy loss from the weighted sums for P and Q and their difference."""
    if alpha <= 0.0:
        return math.inf
    if beta <= 0.0:
        return -math.inf
    excess = gap / alpha
    return math.log1p(excess) if excess > -0.5 else math.log(beta / alpha)


@kernel("(float64[:, ::1], float64[:, ::1], float64[::1], float64[:, ::1], float64[::1])")
def fill_log_ratios(histograms, shares, labels, ratios, losses):
    """Fill the privacy losses log(P / Q) of histograms, one a row.

    ``shares`` has a row of t_y and ``ratios`` a row (beta_y, alpha_y, beta_y - alpha_y) for each
    output; the histograms have messages at these outputs alone.
    """
    size = labels.shape[0] - 1
    n_outputs = shares.shape[0]
    tilt = np.empty(size + 1)
    factors = np.empty(n_outputs)
    tilted = np.empty((n_outputs, size + 1))
    covariance = np.empty((size, size))
    steps = np.empty(size)
    numbers = np.empty(size)
    place = np.empty(size)
    waves = np.empty((size, 3))
    offsets = np.empty(size + 1)
    weights = np.empty((n_outputs, 3))
    sums = np.empty(4)
    for h in range(histograms.shape[0]):
        counts = histograms[h]
        for w in range(4):
            sums[w] = 0.0
        if size == 0:
            for y in range(n_outputs):
                for w in range(3):
                    sums[w] += counts[y] * ratios[y, w]
            losses[h] = loss_of_sums(sums[0], sums[1], sums[2])
            continue
        find_tilt(counts, labels, shares, tilt, factors, tilted, covariance)
        total_beta = 0.0
        total_alpha = 0.0
        for y in range(n_outputs):
            for w in range(3):
                weights[y, w] = counts[y] * ratios[y, w] / factors[y]
            total_beta += weights[y, 0]
            total_alpha += weights[y, 1]
        set_up_nodes(covariance, steps, numbers)
        for i in range(size):
            offsets[i] = -labels[i + 1]
            for y in range(n_outputs):
                offsets[i] += counts[y] * tilted[y, i + 1]
            place[i] = -numbers[i]
        place[0] = 0.0
        while place[0] <= numbers[0]:
            for i in range(size):
                angle = place[i] * steps[i]
                half_sine = math.sin(0.5 * angle)
                waves[i, 0] = 2.0 * half_sine * half_sine
                waves[i, 1] = math.sin(angle)
                waves[i, 2] = angle
            # nodes come in conjugate pairs, of which one is visited
            offsets[size] = 1.0 if place[0] == 0.0 else 2.0
            add_node(counts, tilted, weights, waves, offsets, sums)
            i = size - 1
            place[i] += 1.0
            while i > 0 and place[i] > numbers[i]:
                place[i] = -numbers[i]
                i -= 1
                place[i] += 1.0
        beta = sums[0] if sums[0] > _ROUNDING * sums[3] * total_beta else 0.0
        alpha = sums[1] if sums[1] > _ROUNDING * sums[3] * total_alpha else 0.0
        losses[h] = loss_of_sums(beta, alpha, sums[2])
