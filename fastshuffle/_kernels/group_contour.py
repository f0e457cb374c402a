"""Masses of a tilted sum of binomial groups, as sums over the unit circle.

With the rows and the tilt of `fastshuffle._kernels.group_tilt`, write m, v and phi for the mean,
the variance and the centred characteristic function of the tilted sum. Then for every integer x,
every real s, and M large enough,

    R(x) = exp(-D(x)) (1/M) sum_j phi(theta_j) exp(i (m - x) theta_j),  theta_j = 2 pi j / M,
    D(x) = sum_g a_g KL(t_g || p_g) + s (x - m).

The sum over j is the inversion of a discrete Fourier transform of length M. What it adds by
mistake is the tilted mass M, 2M, ... away from x, below exp(-42) in total by Bernstein's
inequality once M = 14 + sqrt(196 + 84 v); nodes where ``|phi| <= exp(-2 v sin(theta/2)**2)`` is
below exp(-42) are left out. About 15 nodes remain, whatever the group sizes. Only two exponents,
D and log phi, hold large terms.
"""

import math

import numpy as np

from fastshuffle._kernels._jit import kernel

# A tail of exp(-42) = 6e-19 is left out of a sum, of a transform and of the aliases alike.
NEGLIGIBLE_EXPONENT = 42.0
# Below this tilt the closed form of the aliases is at its limit, and a subnormal would spoil it.
_SMALLEST_TILT = 1e-200
# Up to this many trials the tilted mass function is built by direct recursion instead.
_RECURSION_TRIALS = 32.0


@kernel("(float64, float64, float64, int64)")
def odd_exponent(t, u, tangent, n_terms):
    """Return the imaginary part of log E exp(i theta (B - t)), B Bernoulli(t), u = 1 - t.

    With ``b = t - u`` and ``tangent = tan(theta / 2)`` it is ``atan(b T) - b atan(T)``, which
    cancels to the order T**3. For small T its series in T is summed; for larger T the difference
    of the two arcs is taken exactly by the subtraction formula of the tangent.
    """
    b = t - u
    if n_terms > 0:
        square = tangent * tangent
        geometric = 1.0
        power = tangent * square
        total = power / 3.0
        for j in range(2, n_terms + 1):
            geometric = 1.0 + b * b * geometric
            power = -power * square
            total += power * geometric / (2.0 * j + 1.0)
        return 4.0 * t * u * b * total
    smaller = min(t, u)
    size = 1.0 - 2.0 * smaller
    arc = 2.0 * smaller * math.atan(tangent)
    arc -= math.atan(2.0 * smaller * tangent / (1.0 + size * tangent * tangent))
    return -arc if t <= u else arc


@kernel("(float64,)")
def series_terms(widest_tangent):
    """Return how many terms `odd_exponent` needs up to a tangent, 0 where the series is no use."""
    square = widest_tangent * widest_tangent
    if not square < 0.04:
        return 0
    n_terms = 2
    size = square
    while size > 1e-17:
        size *= square
        n_terms += 1
    return n_terms


@kernel("(float64,)")
def contour_nodes(variance):
    """Return the transform length M and the number of nodes up to where phi is negligible."""
    third = NEGLIGIBLE_EXPONENT / 3.0
    length = third + math.sqrt(third * third + 2.0 * NEGLIGIBLE_EXPONENT * variance)
    if variance <= 0.5 * NEGLIGIBLE_EXPONENT:
        return length, int(length)
    widest = 2.0 * math.asin(math.sqrt(0.5 * NEGLIGIBLE_EXPONENT / variance))
    return length, int(widest * length / (2.0 * math.pi)) + 1


@kernel("(float64, int64, float64, float64[:, ::1], float64[:, ::1], float64[::1])")
def recursion_sums(s, x, trials, groups, tilted, sums):
    """Fill ``sums`` as `contour_sums` does, from the tilted mass function built trial by trial."""
    size = int(trials) + 1
    mass = np.zeros(size + 3)  # mass[y + 2] = tilted mass of y, with zeros around
    mass[2] = 1.0
    filled = 2
    for g in range(groups.shape[0]):
        t, u = tilted[g, 0], tilted[g, 1]
        for _ in range(int(groups[g, 0])):
            filled += 1
            for y in range(filled, 2, -1):
                mass[y] = mass[y] * u + mass[y - 1] * t
            mass[2] *= u
    decay = math.exp(-s) if s >= 0.0 else 0.0
    excess = 0.0
    for y in range(size, x - 1, -1):
        excess = (mass[y + 1] - mass[y + 2]) + decay * excess
    sums[0] = mass[x + 1]
    sums[1] = mass[x + 1] - mass[x + 2]
    sums[2] = mass[x] - mass[x + 1]
    sums[3] = excess


@kernel(
    "(float64, float64, float64, float64, float64[::1], float64[:, ::1], float64[:, ::1],"
    " float64[::1])"
)
def contour_sums(s, trials, offset, exponent, moments, groups, tilted, sums):
    """Fill ``sums`` with four sums of the tilted mass around the edge between x - 1 and x.

    Writing r for the tilted mass function, ``sums`` becomes

    - below: r(x - 1)
    - drop: r(x - 1) - r(x)
    - drop_before: r(x - 2) - r(x - 1)
    - excess: sum over y >= x of exp(-s (y - x)) (r(y - 1) - r(y)); without meaning for s < 0.

    ``offset`` is x - m and ``exponent`` is D(x). The terms of the excess are
    added over the contour with the factor ``(exp(i theta) - 1) / (1 - exp(-s - i theta))``, whose
    real part does not change sign when the edge lies at the crossing of the two pair laws: a
    privacy loss far in the tail is a sum of like signs. The pole at ``theta = i s`` puts the
    aliases below x, whole copies of the total mass, at exp(-s M) each; they are taken off in
    closed form.
    """
    length, n_nodes = contour_nodes(moments[3])
    if 2 * n_nodes + 1 >= length:
        # the whole period, an odd number of nodes, no more than the support needs
        n_nodes = int(0.5 * min(length, trials + 2.0)) + 1
        length = 2.0 * n_nodes + 1.0
    step = 2.0 * math.pi / length

    n_terms = series_terms(math.tan(0.5 * n_nodes * step))
    fall = -math.expm1(-s) if s >= 0.0 else 0.0
    decay = 1.0 - fall
    below = 0.5
    drop = 0.0
    drop_before = 0.0
    excess = 0.0
    for j in range(1, n_nodes + 1):
        half = 0.5 * j * step
        sine = math.sin(half)
        cosine = math.cos(half)
        tangent = sine / cosine
        square = sine * sine
        real = 0.0
        imaginary = 0.0
        for g in range(groups.shape[0]):
            t, u = tilted[g, 0], tilted[g, 1]
            real += 0.5 * groups[g, 0] * math.log1p(-4.0 * t * u * square)
            imaginary += groups[g, 0] * odd_exponent(t, u, tangent, n_terms)
        phase = imaginary - (offset - 0.5) * 2.0 * half
        size = math.exp(real)
        wave_cos = size * math.cos(phase)
        wave_sin = size * math.sin(phase)
        # the phases of x - 1 and x - 2 lie half a step and one and a half steps further
        below += wave_cos * cosine - wave_sin * sine
        drop -= 2.0 * sine * wave_sin
        sine_full = 2.0 * sine * cosine
        cosine_full = 1.0 - 2.0 * square
        drop_before -= 2.0 * sine * (wave_sin * cosine_full + wave_cos * sine_full)
        near = fall + 2.0 * decay * square
        far = decay * sine_full
        excess += (
            2.0 * sine * (wave_cos * far - wave_sin * near) / (fall * fall + 4.0 * decay * square)
        )
    weight = 2.0 / length
    sums[0] = weight * below
    sums[1] = weight * drop
    sums[2] = weight * drop_before
    sums[3] = weight * excess
    if s >= 0.0 and offset + moments[2] < length:  # x - M lies below the untilted mean
        if s < _SMALLEST_TILT:
            sums[3] += math.exp(exponent) / length
        else:
            sums[3] += math.exp(exponent - s * length) * fall / -math.expm1(-s * length)


@kernel("(float64, float64, float64, float64[::1], float64[:, ::1], float64[:, ::1], float64[::1])")
def edge_sums(x, s, trials, moments, groups, tilted, sums):
    """Fill ``sums`` (see `contour_sums`) for the edge below x, 1 <= x <= trials, tilted by s.

    Returns ``log_scale = -D(x)``: then ``R(x - 1) = exp(log_scale + s) below`` and, for s > 0,
    ``Pr[R >= x] = exp(log_scale) (below - excess) / (1 - exp(-s))``.
    """
    offset = (x - moments[0]) - moments[1]
    exponent = moments[5] + s * offset
    if trials <= _RECURSION_TRIALS:
        recursion_sums(s, int(x), trials, groups, tilted, sums)
    else:
        contour_sums(s, trials, offset, exponent, moments, groups, tilted, sums)
    return -exponent
