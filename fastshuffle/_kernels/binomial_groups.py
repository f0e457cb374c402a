"""Sums of independent binomial groups at any size: the exponential tilt and the contour.

``R = sum_g Bin(a_g, p_g)`` is described by an array of rows ``(a, p, q, log p, log q)`` with
0 < p < 1. The tilt by s turns p into ``t = p e**s / (q + p e**s)``; write m, v and phi for the
mean, the variance and the centred characteristic function of the tilted sum. Then for every
integer x, every real s, and M large enough,

    R(x) = exp(-D(x)) (1/M) sum_j phi(theta_j) exp(i (m - x) theta_j),  theta_j = 2 pi j / M,
    D(x) = sum_g a_g KL(t_g || p_g) + s (x - m).

The sum over j is the inversion of a discrete Fourier transform of length M. What it adds by
mistake is the tilted mass M, 2M, ... away from x, below exp(-42) in total by Bernstein's
inequality once M = 14 + sqrt(196 + 84 v); nodes where ``|phi| <= exp(-2 v sin(theta/2)**2)`` is
below exp(-42) are left out. About 15 nodes remain, whatever the group sizes. Only 2 exponents,
D and log phi, hold large terms: D is a sum of deviances, each free of cancellation, and the mean
is carried as a number and its rounding error.
"""

import math

import numpy as np

from fastshuffle._kernels._jit import kernel
from fastshuffle._kernels.deviance import deviance, log_binomial_mass
from fastshuffle._kernels.error_free import two_product, two_sum

# A tail of exp(-42) = 6e-19 is left out of a sum, of a transform and of the aliases alike.
_NEGLIGIBLE_EXPONENT = 42.0
# Below this tilt the closed form of the aliases is at its limit, and a subnormal would spoil it.
_SMALLEST_TILT = 1e-200
# Up to this many trials the tilted mass function is built by direct recursion instead.
_RECURSION_TRIALS = 32.0


@kernel("(float64[:, ::1],)")
def count_trials(groups):
    """Return the number of trials, the sum of the group sizes."""
    total = 0.0
    for g in range(groups.shape[0]):
        total += groups[g, 0]
    return total


@kernel("(float64[::1], float64[::1])")
def copy_row(source, target):
    """Copy a row; an assignment of whole rows takes seconds to compile."""
    for i in range(source.shape[0]):
        target[i] = source[i]


@kernel("(float64[:, ::1], float64[:, ::1])")
def drop_certain_groups(groups, kept):
    """Copy the groups that are neither empty nor certain into ``kept``.

    Returns their number and the count contributed by the groups with p = 1.
    """
    n_kept = 0
    shift = 0.0
    for g in range(groups.shape[0]):
        if groups[g, 0] == 0.0 or groups[g, 3] == -math.inf:
            continue
        if groups[g, 4] == -math.inf:
            shift += groups[g, 0]
            continue
        copy_row(groups[g], kept[n_kept])
        n_kept += 1
    return n_kept, shift


@kernel("(float64[:, ::1], float64[:, ::1])")
def mirror_groups(groups, mirrored):
    """Write the groups of ``trials - R`` into ``mirrored``: p and q exchanged."""
    for g in range(groups.shape[0]):
        mirrored[g, 0] = groups[g, 0]
        mirrored[g, 1] = groups[g, 2]
        mirrored[g, 2] = groups[g, 1]
        mirrored[g, 3] = groups[g, 4]
        mirrored[g, 4] = groups[g, 3]


@kernel("(float64, float64[::1], float64[::1])")
def tilt_group(s, group, tilted):
    """Write ``(t, 1 - t, t - p, KL(t || p))`` of one group tilted by s into ``tilted``."""
    p, q, log_p, log_q = group[1], group[2], group[3], group[4]
    if abs(s) <= 30.0:
        factor = math.exp(s)
        growth = math.expm1(s)
        # q + p e**s, summed without cancellation in both directions
        normalizer = 1.0 + p * growth if s >= 0.0 else q + p * factor
        tilted[0] = p * factor / normalizer
        tilted[1] = q / normalizer
        tilted[2] = p * q * growth / normalizer
        tilted[3] = p * deviance(q * growth / normalizer) + q * deviance(-p * growth / normalizer)
        return
    log_odds = (log_p - log_q) + s
    if log_odds > 0.0:
        log_t = -math.log1p(math.exp(-log_odds))
        log_u = log_t - log_odds
    else:
        log_u = -math.log1p(math.exp(log_odds))
        log_t = log_u + log_odds
    t = math.exp(log_t)
    u = math.exp(log_u)
    tilted[0] = t
    tilted[1] = u
    tilted[2] = t - p if p <= q else q - u
    tilted[3] = t * (log_t - log_p) + u * (log_u - log_q)


@kernel("(float64, float64[:, ::1], float64[:, ::1], float64[::1])")
def tilt_groups(s, groups, tilted, moments):
    """Tilt every group by s (see `tilt_group`) and write sums over the groups into ``moments``.

    They are the tilted mean and its rounding error, the displacement of the mean by the tilt,
    the variance, the third cumulant and ``sum a KL(t || p)``.
    """
    mean = 0.0
    mean_error = 0.0
    displacement = 0.0
    variance = 0.0
    third = 0.0
    divergence = 0.0
    for g in range(groups.shape[0]):
        count = groups[g, 0]
        tilt_group(s, groups[g], tilted[g])
        t, u = tilted[g, 0], tilted[g, 1]
        if groups[g, 1] <= groups[g, 2]:
            part, part_error = two_product(count, groups[g, 1])
        else:
            part, part_error = two_product(-count, groups[g, 2])
            mean, error = two_sum(mean, count)
            mean_error += error
        mean, error = two_sum(mean, part)
        mean_error += error + part_error
        displacement += count * tilted[g, 2]
        variance += count * t * u
        third += count * t * u * (u - t)
        divergence += count * tilted[g, 3]
    mean, error = two_sum(mean, displacement)
    moments[0] = mean
    moments[1] = mean_error + error
    moments[2] = displacement
    moments[3] = variance
    moments[4] = third
    moments[5] = divergence


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
    third = _NEGLIGIBLE_EXPONENT / 3.0
    length = third + math.sqrt(third * third + 2.0 * _NEGLIGIBLE_EXPONENT * variance)
    if variance <= 0.5 * _NEGLIGIBLE_EXPONENT:
        return length, int(length)
    widest = 2.0 * math.asin(math.sqrt(0.5 * _NEGLIGIBLE_EXPONENT / variance))
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


@kernel("(float64, float64, float64[:, ::1], float64[:, ::1])")
def saddle_point(target, trials, groups, tilted):
    """Return a tilt whose mean is within a tenth of a standard deviation of the target.

    The target lies strictly between 0 and the number of trials. Newton's method on the log-odds
    of the mean, which for a single group is linear in the tilt, inside a bracket: at
    ``s = logit(target / trials) - logit(p_g)`` the group g has its share of the target, so the
    smallest and the largest of these enclose the solution. A tilt this near is as good as the
    exact one, since every formula here holds at any tilt.
    """
    target_log_odds = math.log(target) - math.log(trials - target)
    low = math.inf
    high = -math.inf
    for g in range(groups.shape[0]):
        s = target_log_odds - (groups[g, 3] - groups[g, 4])
        low = min(low, s)
        high = max(high, s)
    s = min(max(0.0, low), high)
    while low < high:
        mean = 0.0
        rest = 0.0
        variance = 0.0
        for g in range(groups.shape[0]):
            tilt_group(s, groups[g], tilted[g])
            t, u = tilted[g, 0], tilted[g, 1]
            mean += groups[g, 0] * t
            rest += groups[g, 0] * u
            variance += groups[g, 0] * t * u
        gap = mean - target if mean < rest else (trials - target) - rest
        if gap * gap <= 0.01 * variance:
            break
        if gap < 0.0:
            low = s
        else:
            high = s
        step = (math.log(mean) - math.log(rest) - target_log_odds) * mean * (rest / variance)
        s_next = s - step / trials
        if not low < s_next < high:
            s_next = 0.5 * (low + high)
            if s_next in (low, high):
                break
        s = s_next
    return s


@kernel("(float64, float64[:, ::1])")
def _log_mass(x, groups):
    n_groups = groups.shape[0]
    trials = count_trials(groups)
    if x < 0.0 or x > trials:
        return -math.inf
    if n_groups == 1:
        return log_binomial_mass(x, groups[0])
    if x == 0.0 or x == trials:
        column = 4 if x == 0.0 else 3
        total = 0.0
        for g in range(n_groups):
            total += groups[g, 0] * groups[g, column]
        return total
    tilted = np.empty((n_groups, 4))
    moments = np.empty(6)
    sums = np.empty(4)
    s = saddle_point(x, trials, groups, tilted)
    tilt_groups(s, groups, tilted, moments)
    log_scale = edge_sums(x + 1.0, s, trials, moments, groups, tilted, sums)
    return log_scale + s + math.log(sums[0])


@kernel("(float64, float64[:, ::1])")
def _log_near_tail(x, groups):
    # Pr[R >= x] for x above the mean, 1 <= x <= trials
    n_groups = groups.shape[0]
    trials = count_trials(groups)
    tilted = np.empty((n_groups, 4))
    moments = np.empty(6)
    sums = np.empty(4)
    s = saddle_point(x - 0.5, trials, groups, tilted)
    tilt_groups(s, groups, tilted, moments)
    # keep half a standard deviation from the pole at s = 0
    s = max(s, 0.5 / math.sqrt(moments[3]))
    tilt_groups(s, groups, tilted, moments)
    log_scale = edge_sums(x, s, trials, moments, groups, tilted, sums)
    return log_scale + math.log((sums[0] - sums[3]) / -math.expm1(-s))


@kernel("(float64, float64[:, ::1])")
def _log_upper_tail(x, groups):
    trials = count_trials(groups)
    if x <= 0.0:
        return 0.0
    if x > trials:
        return -math.inf
    mean = 0.0
    for g in range(groups.shape[0]):
        mean += groups[g, 0] * groups[g, 1]
    if x - 0.5 >= mean:
        return _log_near_tail(x, groups)
    mirrored = np.empty_like(groups)
    mirror_groups(groups, mirrored)
    return math.log1p(-math.exp(_log_near_tail(trials - x + 1.0, mirrored)))


@kernel("(float64, float64[:, ::1])")
def log_mass(x, groups):
    """Return log Pr[R = x] for any groups, empty and certain ones included."""
    kept = np.empty_like(groups)
    n_kept, shift = drop_certain_groups(groups, kept)
    if n_kept == 0:
        return 0.0 if x == shift else -math.inf
    return _log_mass(x - shift, kept[:n_kept])


@kernel("(float64, float64[:, ::1])")
def log_upper_tail(x, groups):
    """Return log Pr[R >= x] for any groups, empty and certain ones included."""
    kept = np.empty_like(groups)
    n_kept, shift = drop_certain_groups(groups, kept)
    if n_kept == 0:
        return 0.0 if x <= shift else -math.inf
    return _log_upper_tail(x - shift, kept[:n_kept])


@kernel("(float64, float64[:, ::1])")
def log_lower_tail(x, groups):
    """Return log Pr[R <= x] for any groups, empty and certain ones included."""
    mirrored = np.empty_like(groups)
    mirror_groups(groups, mirrored)
    return log_upper_tail(count_trials(groups) - x, mirrored)
