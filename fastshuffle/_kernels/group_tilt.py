"""The exponential tilt of a sum of binomial groups, group by group, and the saddle point.

``R = sum_g Bin(a_g, p_g)`` is described by an array of rows ``(a, p, q, log p, log q)`` with
0 < p < 1; only the saddle point needs that. The tilt by s turns p into
``t = p e**s / (q + p e**s)``. Sums of large terms are formed here alone: the divergence from the
tilt is a sum of deviances, each free of cancellation, and the tilted mean is carried as a number
and its rounding error.
"""

import math

from fastshuffle._kernels._jit import kernel
from fastshuffle._kernels.deviance import deviance
from fastshuffle._kernels.error_free import two_product, two_sum


@kernel("(float64, float64[::1], float64[::1])")
def tilt_group(s, group, tilted):
    """Write ``(t, 1 - t, t - p, KL(t || p))`` of one group tilted by s into ``tilted``."""
    p, q, log_p, log_q = group[1], group[2], group[3], group[4]
    if log_p == -math.inf or log_q == -math.inf:  # what is certain, no tilt changes
        tilted[0] = p
        tilted[1] = q
        tilted[2] = 0.0
        tilted[3] = 0.0
        return
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
