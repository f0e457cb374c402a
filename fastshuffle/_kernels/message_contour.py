"""The excess of a pair whose differing user sends several messages, as one contour sum.

Let ``P = R * Bin(m, p1)`` and ``Q = R * Bin(m, p0)``. With ``A = q1 + p1 z`` and
``B = e**step (q0 + p0 z)``, ``step = epsilon / m``, the generating function of
``P - e**epsilon Q`` is that of R times

    A**m - B**m = (A - B) sum_{j < m} A**(m - 1 - j) B**j,    A - B = alpha (z - c),

where alpha and c are those of one message at ``step``. So with the measure
``M = sum_j e**(j step) R * Bin(m - 1 - j, p1) * Bin(j, p0)``,

    P(y) - e**epsilon Q(y) = alpha (M(y - 1) - c M(y)),

and one message is the case M = R. At ``z = c`` A and B agree: tilted by ``s = log c`` the m parts
of M have equal mass, so that M becomes a number times the plain mean r of the m tilted laws, whose
centres are ``t1 - t0`` apart. The characteristic function of their mean is a geometric sum, which
costs the same for every m.

The rows (see `fastshuffle._kernels.group_tilt`) are those of R, and below them those of the
differing user under P and Q, each for (m - 1) / 2 trials: the mean of the centres.
"""

import math

import numpy as np

from fastshuffle._kernels._jit import kernel
from fastshuffle._kernels.group_contour import contour_nodes, odd_exponent, series_terms

# Below this tilt the closed form of the aliases is at its limit, and a subnormal would spoil it.
_SMALLEST_TILT = 1e-200
# Up to this many trials the tilted mass function is built by direct recursion instead.
RECURSION_TRIALS = 32.0


@kernel("(float64, float64)")
def log_part_mass(step, messages):
    """Return the logarithm of the mean of ``exp(j step)`` over 0 <= j < m, step >= 0."""
    if step < _SMALLEST_TILT:
        return 0.0
    ratio = math.expm1(-messages * step) / (messages * math.expm1(-step))
    return (messages - 1.0) * step + math.log(ratio)


@kernel("(float64, float64, float64)")
def geometric_mean(messages, less, lag):
    """Return real and imaginary part of the mean of z**j, 0 <= j < m, ``log z = less + i lag``.

    The modulus of z is at most 1.
    """
    if abs(less) + abs(lag) < 1e-150:
        return 1.0, 0.0
    half = math.sin(0.5 * lag)
    real = messages * (math.expm1(less) * math.cos(lag) - 2.0 * half * half)
    imaginary = messages * math.exp(less) * math.sin(lag)
    half = math.sin(0.5 * messages * lag)
    power = messages * less
    top_real = math.expm1(power) * math.cos(messages * lag) - 2.0 * half * half
    top_imaginary = math.exp(power) * math.sin(messages * lag)
    square = real * real + imaginary * imaginary
    return (
        (top_real * real + top_imaginary * imaginary) / square,
        (top_imaginary * real - top_real * imaginary) / square,
    )


@kernel("(float64, float64, int64, float64, float64[:, ::1], float64[:, ::1], float64[::1])")
def message_recursion(messages, s, x, trials, groups, tilted, sums):
    """Fill ``sums`` as `message_sums` does, from the mass function built trial by trial."""
    size = int(trials) + 1
    n_own = groups.shape[0] - 2
    tail = np.zeros(size + 3)  # R and some messages of law t0; [y + 2] is the mass at y
    mean = np.zeros(size + 3)  # the sum of the parts of the mixture
    tail[2] = 1.0
    top = 2
    for g in range(n_own):
        for _ in range(int(groups[g, 0])):
            top += 1
            for y in range(top, 2, -1):
                tail[y] = tail[y] * tilted[g, 1] + tail[y - 1] * tilted[g, 0]
            tail[2] *= tilted[g, 1]
    for y in range(size + 3):
        mean[y] = tail[y]
    for _ in range(int(messages) - 1):
        top += 1
        for y in range(top, 1, -1):
            tail[y] = tail[y] * tilted[n_own + 1, 1] + tail[y - 1] * tilted[n_own + 1, 0]
            mean[y] = mean[y] * tilted[n_own, 1] + mean[y - 1] * tilted[n_own, 0] + tail[y]
    decay = math.exp(-s) if s >= 0.0 else 0.0
    excess = 0.0
    for y in range(size, x - 1, -1):
        excess = (mean[y + 1] - mean[y + 2]) + decay * excess
    sums[0] = (mean[x + 1] - mean[x + 2]) / messages
    sums[1] = (mean[x] - mean[x + 1]) / messages
    sums[2] = excess / messages


@kernel(
    "(float64, float64, float64, float64, float64[::1], float64[:, ::1], float64[:, ::1],"
    " float64[::1])"
)
def message_sums(messages, s, offset, trials, moments, groups, tilted, sums):
    """Fill ``sums`` with three sums of r around the edge between x - 1 and x.

    - drop: r(x - 1) - r(x)
    - drop_before: r(x - 2) - r(x - 1)
    - excess: sum over y >= x of exp(-s (y - x)) (r(y - 1) - r(y)), s >= 0.

    As `fastshuffle._kernels.group_contour.contour_sums`, with one more factor. ``offset`` is x
    less the mean of r, ``trials`` those of M, and the fourth of ``sums`` is read: the logarithm of
    ``sum_y exp(-s (y - x)) r(y)``.
    """
    n_own = groups.shape[0] - 2
    t1, u1 = tilted[n_own, 0], tilted[n_own, 1]
    t0, u0 = tilted[n_own + 1, 0], tilted[n_own + 1, 1]
    gap = t1 - t0
    width = (messages - 1.0) * abs(gap)
    # the part of least variance decides how far the contour goes; how fine it is, the part of
    # most variance and the distance of the outermost centres
    excursion = 0.5 * (messages - 1.0) * abs(t1 * u1 - t0 * u0)
    short, n_short = contour_nodes(moments[3] - excursion)
    length, _ = contour_nodes(moments[3] + excursion)
    length += width
    n_nodes = int(n_short * (length / short)) + 1
    if 2 * n_nodes + 1 >= length:
        # the whole period, an odd number of nodes, no more than the support needs
        n_nodes = int(0.5 * min(length, trials + 2.0)) + 1
        length = 2.0 * n_nodes + 1.0
    step = 2.0 * math.pi / length
    n_terms = series_terms(math.tan(0.5 * n_nodes * step))
    fall = -math.expm1(-s)
    decay = 1.0 - fall
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
        for g in range(n_own):
            t, u = tilted[g, 0], tilted[g, 1]
            real += 0.5 * groups[g, 0] * math.log1p(-4.0 * t * u * square)
            imaginary += groups[g, 0] * odd_exponent(t, u, tangent, n_terms)
        # the mean of the m products, the larger of the two factors taken out
        real1 = 0.5 * math.log1p(-4.0 * t1 * u1 * square)
        real0 = 0.5 * math.log1p(-4.0 * t0 * u0 * square)
        odd1 = odd_exponent(t1, u1, tangent, n_terms)
        odd0 = odd_exponent(t0, u0, tangent, n_terms)
        turn = gap * 2.0 * half
        if real1 >= real0:
            real += (messages - 1.0) * real1
            imaginary += (messages - 1.0) * (odd1 + 0.5 * turn)
            less, lag = real0 - real1, odd0 - odd1 - turn
        else:
            real += (messages - 1.0) * real0
            imaginary += (messages - 1.0) * (odd0 - 0.5 * turn)
            less, lag = real1 - real0, odd1 - odd0 + turn
        ratio_cos, ratio_sin = geometric_mean(messages, less, lag)
        phase = imaginary - (offset - 0.5) * 2.0 * half
        size = math.exp(real)
        turn_cos = size * math.cos(phase)
        turn_sin = size * math.sin(phase)
        wave_cos = turn_cos * ratio_cos - turn_sin * ratio_sin
        wave_sin = turn_cos * ratio_sin + turn_sin * ratio_cos
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
    sums[0] = weight * drop
    sums[1] = weight * drop_before
    sums[2] = weight * excess
    if offset + moments[2] < length:  # x - M lies below the untilted mean
        if s < _SMALLEST_TILT:
            sums[2] += math.exp(sums[3]) / length
        else:
            sums[2] += math.exp(sums[3] - s * length) * fall / -math.expm1(-s * length)
