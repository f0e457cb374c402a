"""The hockey-stick divergence of a binary pair at any n: one contour sum, and its exact inverse.

The pair is ``P = R * Bernoulli(p1)`` against ``Q = R * Bernoulli(p0)`` with p1 > p0 and R a sum
of binomial groups. The reverse direction is the same problem after relabelling the outputs.
Put ``alpha = p1 - e**epsilon p0`` and ``c = (e**epsilon q0 - q1) / alpha``; then

    P(y) - e**epsilon Q(y) = alpha (R(y - 1) - c R(y)),

which by log-concavity of R changes sign once, at the cut x, and in the tilt ``s = log c`` becomes
``alpha c exp(-D(x)) exp(-s (y - x)) (r(y - 1) - r(y))`` with r the tilted mass function. So no
saddle point is searched for: epsilon itself names the tilt, the cut lies at the mode of r, and
delta is the ``excess`` of `contour_sums`, whose terms do not cancel.

The pair is an array ``(p1, log p1, log q0, largest loss, largest loss of the reverse)``; the
losses are log(p1 / p0) and log(q0 / q1), so that ``alpha = -p1 expm1(epsilon - loss)`` vanishes
exactly at the largest loss, whatever the rounding of p.
"""

import math

import numpy as np

from fastshuffle._kernels._jit import kernel
from fastshuffle._kernels.binomial_groups import count_trials
from fastshuffle._kernels.group_contour import edge_sums
from fastshuffle._kernels.group_tilt import tilt_groups

_MACHINE_EPSILON = 2.220446049250313e-16
# Newton's method needs about 6 steps; the bisection that guards it at most about 1,100.
_MOST_STEPS = 1200


@kernel("(float64[:, ::1],)")
def _log_all_ones(groups):
    total = 0.0
    for g in range(groups.shape[0]):
        total += groups[g, 0] * groups[g, 3]
    return total


@kernel("(float64, float64[::1])")
def crossing_tilt(epsilon, pair):
    """Return ``(alpha / p1, log alpha, log(alpha c), log c)`` for epsilon below the largest loss.

    The last is the tilt at which the two pair laws cross; it keeps its relative accuracy as
    epsilon -> 0 and stays finite where e**epsilon overflows.
    """
    p1, log_p1, log_q0, loss, reverse_loss = pair[0], pair[1], pair[2], pair[3], pair[4]
    gain = -math.expm1(epsilon - loss) if loss < math.inf else 1.0
    log_alpha = log_p1 + math.log(gain)
    log_scaled_alpha = epsilon + log_q0 + math.log(-math.expm1(-(epsilon + reverse_loss)))
    if epsilon <= 1.0 and p1 * gain > 1e-290:
        s = math.log1p(math.expm1(epsilon) / (p1 * gain))
    else:
        s = log_scaled_alpha - log_alpha
    return gain, log_alpha, log_scaled_alpha, s


@kernel(
    "(float64, float64, float64[:, ::1], float64[::1], float64[:, ::1], float64[::1],"
    " float64[::1], float64[::1])"
)
def hockey_stick(epsilon, trials, groups, pair, tilted, moments, sums, result):
    """Write ``(log delta, cut x, A / delta)`` into ``result``, epsilon >= 0.

    Within the piece of the curve that belongs to the cut x,
    ``delta(epsilon) = A - expm1(epsilon) B`` with ``A = (p1 - p0) R(x - 1)``. An infinite ratio
    stands beside a delta of 0.
    """
    result[1] = trials + 1.0
    if epsilon >= pair[3] and not (pair[3] == math.inf and epsilon == math.inf):
        result[0] = -math.inf
        result[2] = math.inf
        return
    gain, log_alpha, log_scaled_alpha, s = crossing_tilt(epsilon, pair)
    vertex = -math.expm1(-pair[3]) / gain
    x = trials + 1.0
    if trials > 0.0 and s < math.inf:
        tilt_groups(s, groups, tilted, moments)
        # the mode of the tilted sum, exact for one group, to order 1 / variance for several
        start = math.floor(moments[0])
        rest = (moments[0] - start) + moments[1] + 0.5
        if moments[3] > 0.0:
            rest -= 0.5 * moments[4] / moments[3]
        x = min(max(start + math.floor(rest) + 1.0, 1.0), trials)
    moved = 0.0
    while x <= trials:
        log_scale = edge_sums(x, s, trials, moments, groups, tilted, sums)
        if sums[1] < 0.0 and moved >= 0.0:
            moved = 1.0
        elif sums[2] > 0.0 and moved <= 0.0 and x > 1.0:
            moved = -1.0
        else:
            result[0] = log_scaled_alpha + log_scale + math.log(sums[3])
            result[1] = x
            result[2] = vertex * sums[0] / sums[3]
            return
        x += moved
    result[0] = log_alpha + _log_all_ones(groups)
    result[2] = vertex


@kernel("(float64, float64, float64)")
def _inverse_step(epsilon, gap, ratio):
    """Return the next epsilon, given gap = log delta(epsilon) - target and ratio = A / delta.

    Near the solution the piece is inverted exactly, farther off log delta is linearised.
    """
    rest = ratio - math.exp(-gap)
    if abs(gap) < 1e-4 and rest > 0.0:
        if epsilon > 30.0:
            return epsilon + math.log(rest / (ratio - 1.0))
        return math.log1p(rest * math.expm1(epsilon) / (ratio - 1.0))
    return epsilon - gap * math.expm1(-epsilon) / (ratio - 1.0)


@kernel("(float64, float64[:, ::1], float64[::1])")
def smallest_epsilon(log_delta, groups, pair):
    """Return the smallest epsilon >= 0 with ``log delta(epsilon) <= log_delta``, inf if none.

    Newton's method on log delta inside a bracket finds the piece of the curve, on which the
    inverse is closed. The upper end of the bracket is always a point at which the forward kernel
    was on the safe side, and it is what is returned, once it is within a few roundings.
    """
    trials = count_trials(groups)
    tilted = np.empty((groups.shape[0], 4))
    moments = np.empty(6)
    sums = np.empty(4)
    result = np.empty(3)
    low = 0.0
    high = pair[3]
    hockey_stick(low, trials, groups, pair, tilted, moments, sums, result)
    log_total = result[0]
    if log_total <= log_delta:
        return low
    if high == math.inf:
        hockey_stick(high, trials, groups, pair, tilted, moments, sums, result)
        if not result[0] <= log_delta:
            return high
    elif log_delta == -math.inf:
        return high
    # delta is about total - epsilon / 2 near 0 and a Gaussian tail of scale 2.5 total far off
    spread = log_total - log_delta
    epsilon = 2.5 * math.exp(log_total) * spread / math.sqrt(1.0 + 0.5 * spread)
    tolerance = 4.0 * _MACHINE_EPSILON * (1.0 + abs(log_delta))
    for _ in range(_MOST_STEPS):
        if not low < epsilon < high:
            epsilon = 0.5 * (low + high) if high < math.inf else 2.0 * low + 1.0
            if epsilon in (low, high):
                break
        hockey_stick(epsilon, trials, groups, pair, tilted, moments, sums, result)
        gap = result[0] - log_delta
        if gap <= 0.0:
            high = epsilon
        else:
            low = epsilon
        if -4.0 * tolerance <= gap <= 0.0:
            break
        if gap > -math.inf and result[2] > 1.0:
            epsilon = _inverse_step(epsilon, gap + 2.0 * tolerance, result[2])
        else:
            epsilon = low  # no slope to follow: bisect
    return high


@kernel("(float64[::1], int64, float64[:, :, ::1], float64[:, ::1], float64[::1])")
def log_delta_array(epsilons, direction, groups, pairs, log_deltas):
    """Fill ``log_deltas``; direction 0 and 1 name a row of the arrays, 2 is the larger."""
    tilted = np.empty((groups.shape[1], 4))
    moments = np.empty(6)
    sums = np.empty(4)
    result = np.empty(3)
    trials = count_trials(groups[0])
    first = 1 if direction == 1 else 0
    last = 0 if direction == 0 else 1
    for i in range(epsilons.shape[0]):
        largest = -math.inf
        for j in range(first, last + 1):
            hockey_stick(epsilons[i], trials, groups[j], pairs[j], tilted, moments, sums, result)
            largest = max(largest, result[0])
        log_deltas[i] = largest


@kernel("(float64[::1], int64, float64[:, :, ::1], float64[:, ::1], float64[::1])")
def epsilon_array(log_deltas, direction, groups, pairs, epsilons):
    """Fill ``epsilons``, the inverse of `log_delta_array` on its safe side."""
    first = 1 if direction == 1 else 0
    last = 0 if direction == 0 else 1
    for i in range(log_deltas.shape[0]):
        largest = 0.0
        for j in range(first, last + 1):
            largest = max(largest, smallest_epsilon(log_deltas[i], groups[j], pairs[j]))
        epsilons[i] = largest
