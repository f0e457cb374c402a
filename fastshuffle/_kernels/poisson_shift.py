"""A law on the integers against itself shifted by one: jumps up and down, and binomial groups.

``R = Poi(up) - Poi(down) + sum_g Bin(a_g, p_g)``, and the pair is ``P = R + 1`` against ``Q = R``.
R is log-concave, so the terms of

    delta(epsilon) = sum_y (R(y - 1) - e**epsilon R(y))_+

are positive from one cut x on. Tilted by ``s = epsilon`` they are multiples of
``exp(-s (y - x)) (r(y - 1) - r(y))`` with r the tilted mass function: the cut lies at its mode, and
delta is the ``excess`` of `contour_sums`, whose terms do not cancel. The reverse direction is the
same problem with up and down exchanged, and p and 1 - p.

A law is an array of rows: row 0 is ``(2**200, up, 0, log up, 0)``, row 1 the same of down, and from
row 2 on stand the groups ``(a, p, q, log p, log q)``, 0 < p < 1. On the contour a Poisson count is
a binomial group of 2**200 trials, from which no double tells it apart.
"""

import math

import numpy as np

from fastshuffle._kernels._jit import kernel
from fastshuffle._kernels.binomial_groups import count_trials
from fastshuffle._kernels.deviance import deviance, stirling_error
from fastshuffle._kernels.error_free import two_sum
from fastshuffle._kernels.group_contour import contour_sums
from fastshuffle._kernels.group_tilt import tilt_groups

_HALF_LOG_TWO_PI = 0.9189385332046727418
POISSON_TRIALS = 2.0**200
# Every integer up to here is a double. Where the cut lies farther out, log delta is below -1e15
# and its leading terms give it to the last digit.
_LARGEST_COUNT = 2.0**53


@kernel("(float64, float64)")
def log_poisson_mass(x, mean):
    """Return the log of Pr[Poi(mean) = x] for an integer x >= 0, by its deviance."""
    if x == 0.0:
        return -mean
    if mean == 0.0:
        return -math.inf
    if x > 4.0 * mean:
        exponent = x * (math.log(x) - math.log(mean)) - (x - mean)
    else:
        exponent = mean * deviance((x - mean) / mean)
    return -exponent - stirling_error(x) - _HALF_LOG_TWO_PI - 0.5 * math.log(x)


@kernel("(float64, float64[::1])")
def tilt_count(s, jump):
    """Return ``(mean, mean - untilted mean, KL)`` of a Poisson count tilted by s."""
    mean, log_mean = jump[1], jump[3]
    if s <= 30.0:
        growth = math.expm1(s)
        return mean * math.exp(s), mean * growth, mean * deviance(growth)
    tilted = math.exp(log_mean + s)
    return tilted, tilted - mean, tilted * (s - 1.0) + mean


@kernel("(float64, float64[:, ::1], float64[:, ::1], float64[::1])")
def tilt_law(s, law, tilted, moments):
    """Tilt the law by s into ``tilted`` and ``moments``, as `tilt_groups` does."""
    tilt_groups(s, law[2:], tilted[2:], moments)
    up, climb, up_divergence = tilt_count(s, law[0])
    down, fall, down_divergence = tilt_count(-s, law[1])
    tilted[0, 0] = up / POISSON_TRIALS
    tilted[0, 1] = 1.0
    tilted[1, 0] = 1.0
    tilted[1, 1] = down / POISSON_TRIALS
    for part in (law[0, 1], -law[1, 1], climb - fall):
        moments[0], error = two_sum(moments[0], part)
        moments[1] += error
    moments[2] += climb - fall
    moments[3] += up + down
    moments[4] += up - down
    moments[5] += up_divergence + down_divergence


@kernel("(float64, float64, float64[:, ::1], float64[:, ::1], float64[::1], float64[::1])")
def shift_edge(x, s, law, tilted, moments, sums):
    """Fill ``sums`` (see `contour_sums`) for the edge below x; return log(R(x - 1) / r(x - 1)).

    It is ``s - D(x)``; and for s > 0, ``Pr[R >= x]`` is ``exp(-D(x))`` times
    ``(below - excess) / (1 - exp(-s))``.
    """
    trials = count_trials(law[2:]) if law[0, 1] + law[1, 1] == 0.0 else math.inf
    offset = (x - moments[0]) - moments[1]
    contour_sums(s, trials, offset, moments[5] + s * offset, moments, law, tilted, sums)
    return -moments[5] - s * (offset - 1.0)


@kernel("(float64, float64[:, ::1])")
def shift_log_delta(epsilon, law):
    """Return the log of the hockey-stick divergence of R + 1 from R, epsilon >= 0."""
    s = epsilon
    bounded = law[0, 1] == 0.0
    if s == math.inf:
        if not bounded:
            return -math.inf
        log_top = -law[1, 1]
        for g in range(2, law.shape[0]):
            log_top += law[g, 0] * law[g, 3]
        return log_top
    if law[0, 3] + s > 709.0:
        return -math.inf  # log delta itself overflows
    tilted = np.empty((law.shape[0], 4))
    moments = np.empty(6)
    sums = np.empty(4)
    tilt_law(s, law, tilted, moments)
    if moments[0] > _LARGEST_COUNT:
        fade = math.log(-math.expm1(-s))
        return -moments[5] - 1.5 * math.log(moments[3]) - _HALF_LOG_TWO_PI - 2.0 * fade
    lowest = -math.inf if law[1, 1] > 0.0 else 1.0
    highest = count_trials(law[2:]) + 1.0 if bounded else math.inf
    # the mode, exact for one Poisson count and for one group
    start = math.floor(moments[0])
    rest = (moments[0] - start) + moments[1] + 0.5
    if moments[3] > 0.0:
        rest -= 0.5 * moments[4] / moments[3]
    x = min(max(start + math.floor(rest) + 1.0, lowest), highest)
    moved = 0.0
    while True:
        log_scale = shift_edge(x, s, law, tilted, moments, sums)
        if sums[1] < 0.0 and moved >= 0.0 and x < highest:
            moved = 1.0
        elif sums[2] > 0.0 and moved <= 0.0 and x > lowest:
            moved = -1.0
        else:
            return min(0.0, log_scale + math.log(sums[3]))
        x += moved


@kernel("(float64[::1], float64[:, ::1], float64[::1])")
def shift_log_delta_array(epsilons, law, log_deltas):
    """Fill ``log_deltas`` with `shift_log_delta`."""
    for i in range(epsilons.shape[0]):
        log_deltas[i] = shift_log_delta(epsilons[i], law)


@kernel("(float64[::1], float64[::1], float64[:, ::1], float64[:, ::1], float64[::1])")
def mixed_shift_log_delta_array(epsilons, log_weights, counts, law, log_deltas):
    """Fill ``log_deltas`` with the mean of the divergence over known numbers of trials.

    Row i of ``counts`` has the trials of each group, and probability ``exp(log_weights[i])``; the
    trials in ``law`` are overwritten.
    """
    logs = np.empty(counts.shape[0])
    for i in range(epsilons.shape[0]):
        largest = -math.inf
        for j in range(counts.shape[0]):
            for g in range(counts.shape[1]):
                law[2 + g, 0] = counts[j, g]
            logs[j] = log_weights[j] + shift_log_delta(epsilons[i], law)
            largest = max(largest, logs[j])
        total = 0.0
        for j in range(counts.shape[0]):
            if logs[j] > -math.inf:
                total += math.exp(logs[j] - largest)
        log_deltas[i] = largest + math.log(total) if total > 0.0 else -math.inf


@kernel("(float64, float64[:, ::1])")
def _jumps_tilt(x, law):
    # the tilt at which the mean of jumps alone is x - 1/2
    target = x - 0.5
    root = math.sqrt(target * target + 4.0 * law[0, 1] * law[1, 1])
    if target > 0.0:
        return math.log(0.5 * (target + root)) - law[0, 3]
    return law[1, 3] - math.log(0.5 * (root - target))


@kernel("(float64, float64[:, ::1])")
def jumps_log_ratio(x, law):
    """Return log(R(x - 1) / R(x)) of jumps alone, for x in the support of R."""
    if law[1, 1] == 0.0 and x <= 0.0:
        return -math.inf
    tilted = np.empty((law.shape[0], 4))
    moments = np.empty(6)
    sums = np.empty(4)
    s = _jumps_tilt(x, law)
    tilt_law(s, law, tilted, moments)
    shift_edge(x, s, law, tilted, moments, sums)
    return s + math.log(sums[0]) - math.log(sums[0] - sums[1])


@kernel("(float64, float64[:, ::1])")
def _near_tail(x, law):
    # log Pr[R >= x] of jumps alone, for x above the mean
    tilted = np.empty((law.shape[0], 4))
    moments = np.empty(6)
    sums = np.empty(4)
    s = _jumps_tilt(x, law)
    tilt_law(s, law, tilted, moments)
    # keep half a standard deviation from the pole at s = 0
    s = max(s, 0.5 / math.sqrt(moments[3]))
    tilt_law(s, law, tilted, moments)
    log_scale = shift_edge(x, s, law, tilted, moments, sums)
    return log_scale - s + math.log((sums[0] - sums[3]) / -math.expm1(-s))


@kernel("(float64, float64[:, ::1], float64[:, ::1])")
def jumps_log_tail(x, law, mirrored):
    """Return log Pr[R >= x] of jumps alone; ``mirrored`` is the law of -R."""
    if law[0, 1] == 0.0 and x > 0.0:
        return -math.inf
    if law[1, 1] == 0.0 and x <= 0.0:
        return 0.0
    if x > law[0, 1] - law[1, 1]:
        return _near_tail(x, law)
    return math.log1p(-math.exp(_near_tail(1.0 - x, mirrored)))


@kernel("(float64, float64[:, ::1], float64[:, ::1])")
def shift_type_two_error(alpha, law, mirrored):
    """Return the least type II error of level alpha for the null R against R + 1, jumps alone."""
    if alpha >= 1.0:
        return 0.0
    if alpha == 0.0 and law[0, 1] > 0.0:
        return 1.0
    log_alpha = math.log(alpha) if alpha > 0.0 else -math.inf
    # throughout, the level of the test from low on exceeds alpha and that from high on does not
    low = high = np.floor(law[0, 1] - law[1, 1])
    step = 1.0
    while jumps_log_tail(low, law, mirrored) <= log_alpha:
        low -= step
        step *= 2.0
    step = 1.0
    while jumps_log_tail(high, law, mirrored) > log_alpha:
        high += step
        step *= 2.0
    while high - low > 1.0:
        middle = np.floor(0.5 * (low + high))
        if jumps_log_tail(middle, law, mirrored) <= log_alpha:
            high = middle
        else:
            low = middle
    error = math.exp(jumps_log_tail(2.0 - low, mirrored, law))
    log_level = jumps_log_tail(low, law, mirrored)
    log_ratio = jumps_log_ratio(low, law)
    # (level - alpha) ratio, in logarithms since the ratio may exceed the range of a double
    return error + math.exp(log_level + log_ratio) * -math.expm1(log_alpha - log_level)


@kernel("(float64[::1], float64[:, ::1], float64[:, ::1], float64[::1])")
def shift_type_two_error_array(alphas, law, mirrored, errors):
    """Fill ``errors`` with `shift_type_two_error` at each level."""
    for i in range(alphas.shape[0]):
        errors[i] = shift_type_two_error(alphas[i], law, mirrored)
