"""The hockey-stick divergence where the differing user sends m messages, and its inverse.

The pair is ``P = R * Bin(m, p1)`` against ``Q = R * Bin(m, p0)``, p1 > p0, with R the messages of
the other users. Where the two laws overlap well the divergence is the ``excess`` of
`fastshuffle._kernels.message_contour`, a sum without cancellation. Where they lie further apart
than about one standard deviation at the crossing, so much of the tail of P is left after that of Q
has been taken off that the difference of the two, each a contour sum at its own saddle point, is
as good.

Arrays: ``groups`` has the rows of R, none of them certain; ``own`` those of the differing user,
under Q and under P, with m trials each; ``pair`` is that of `fastshuffle._kernels.hockey_stick`
for one message, so that losses are m times those it holds.
"""

import math

import numpy as np

from fastshuffle._kernels._jit import kernel
from fastshuffle._kernels.binomial_groups import (
    copy_row,
    count_trials,
    log_mass,
    log_upper_tail,
)
from fastshuffle._kernels.group_tilt import tilt_groups
from fastshuffle._kernels.hockey_stick import crossing_tilt
from fastshuffle._kernels.message_contour import (
    RECURSION_TRIALS,
    log_part_mass,
    message_recursion,
    message_sums,
)

_MACHINE_EPSILON = 2.220446049250313e-16
# Newton's method needs about 6 steps; the bisection that guards it at most about 1,100.
_MOST_STEPS = 1200
# Distance of the outermost parts, in standard deviations, up to which the contour is used.
_OVERLAP = 1.5


@kernel("(float64[:, ::1], float64[:, ::1], float64[:, :, ::1])")
def message_laws(groups, own, laws):
    """Write the rows of Q, of P and of the mean part of the mixture into ``laws``."""
    n_own = groups.shape[0]
    for law in range(3):
        for g in range(n_own):
            copy_row(groups[g], laws[law, g])
    for law in range(2):
        copy_row(own[law], laws[law, n_own])
        copy_row(own[law], laws[law, n_own + 1])
        laws[law, n_own + 1, 0] = 0.0
        copy_row(own[1 - law], laws[2, n_own + law])
        laws[2, n_own + law, 0] = 0.5 * (own[law, 0] - 1.0)


@kernel("(float64, float64, float64, float64[:, :, ::1])")
def ratio_crossing(epsilon, start, trials, laws):
    """Return the least x with log P(x) / Q(x) > epsilon, known to be so at ``trials``."""
    low = 0.0
    high = trials
    x = start
    stride = 1.0
    while high - low > 1.0:
        if not low < x < high:
            x = math.floor(0.5 * (low + high))
        log_p = log_mass(x, laws[1])
        log_q = log_mass(x, laws[0])
        # below the support of P or above that of Q one of them is 0
        if log_p > -math.inf and (log_q == -math.inf or log_p - log_q > epsilon):
            high = x
            x -= stride
        else:
            low = x
            x += stride
        stride *= 2.0
    return high


@kernel(
    "(float64, float64[::1], float64[:, :, ::1], float64[:, ::1], float64[::1], float64[::1],"
    " float64[::1])"
)
def unbundled_hockey_stick(epsilon, pair, laws, tilted, moments, sums, result):
    """Write log delta and the cut x, from which on P > e**epsilon Q, into ``result``."""
    mixture = laws[2]
    n_others = mixture.shape[0] - 2
    messages = laws[0, n_others, 0]
    trials = count_trials(laws[0])
    loss = messages * pair[3]
    result[0] = -math.inf
    result[1] = trials
    if epsilon == math.inf:
        if loss == math.inf:  # Q counts no message of its own user: what R alone cannot reach
            result[0] = log_upper_tail(trials - messages + 1.0, laws[1])
        return
    if epsilon >= loss:
        return
    step = epsilon / messages
    _, _, log_scaled_alpha, s = crossing_tilt(step, pair)
    tilt_groups(s, mixture, tilted, moments)
    t1, u1 = tilted[n_others, 0], tilted[n_others, 1]
    t0, u0 = tilted[n_others + 1, 0], tilted[n_others + 1, 1]
    gap = t1 - t0
    # the mode of the mixture, to order 1 / variance
    spread = (messages * messages - 1.0) / 12.0
    variance = moments[3] + spread * gap * gap
    start = math.floor(moments[0])
    rest = (moments[0] - start) + moments[1] + 0.5
    if variance > 0.0:
        third = moments[4] + 3.0 * spread * gap * (t1 * u1 - t0 * u0)
        rest -= 0.5 * third / variance
    x = min(max(start + math.floor(rest) + 1.0, 1.0), trials)
    width = (messages - 1.0) * gap
    if width * width > _OVERLAP * _OVERLAP * moments[3]:
        x = ratio_crossing(epsilon, x, trials, laws)
        if x < trials:
            log_p = log_upper_tail(x, laws[1])
            log_q = log_upper_tail(x, laws[0])
            result[0] = log_p + math.log(-math.expm1(epsilon + (log_q - log_p)))
            result[1] = x
            return
    moved = 0.0
    while x < trials:
        offset = (x - moments[0]) - moments[1]
        exponent = moments[5] + s * offset - 0.5 * (epsilon - step)
        if trials - 1.0 <= RECURSION_TRIALS:
            message_recursion(messages, s, int(x), trials - 1.0, mixture, tilted, sums)
        else:
            sums[3] = exponent + log_part_mass(step, messages)
            message_sums(messages, s, offset, trials - 1.0, moments, mixture, tilted, sums)
        if sums[0] < 0.0 and moved >= 0.0:
            moved = 1.0
        elif sums[1] > 0.0 and moved <= 0.0 and x > 1.0:
            moved = -1.0
        else:
            result[0] = log_scaled_alpha + math.log(messages) - exponent + math.log(sums[2])
            result[1] = x
            return
        x += moved
    # all messages are ones
    log_top = 0.0
    for g in range(n_others + 1):
        log_top += laws[1, g, 0] * laws[1, g, 3]
    result[0] = log_top + math.log(-math.expm1(epsilon - loss))


@kernel("(float64, float64[:, :, ::1], float64[::1])")
def smallest_unbundled_epsilon(log_delta, laws, pair):
    """Return the smallest epsilon >= 0 with ``log delta(epsilon) <= log_delta``, inf if none.

    As `fastshuffle._kernels.hockey_stick.smallest_epsilon`: the pieces of the curve are
    ``delta(e) = delta(epsilon) - (exp(e) - exp(epsilon)) B`` with B the tail of Q at the cut.
    """
    tilted = np.empty((laws.shape[1], 4))
    moments = np.empty(6)
    sums = np.empty(4)
    result = np.empty(2)
    low = 0.0
    high = laws[0, laws.shape[1] - 2, 0] * pair[3]
    unbundled_hockey_stick(low, pair, laws, tilted, moments, sums, result)
    log_total = result[0]
    if log_total <= log_delta:
        return low
    if high == math.inf:
        unbundled_hockey_stick(high, pair, laws, tilted, moments, sums, result)
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
        unbundled_hockey_stick(epsilon, pair, laws, tilted, moments, sums, result)
        gap = result[0] - log_delta
        if gap <= 0.0:
            high = epsilon
        else:
            low = epsilon
        if -4.0 * tolerance <= gap <= 0.0:
            break
        # delta over -delta', the step of Newton's method for log delta
        scale = math.exp(result[0] - log_upper_tail(result[1], laws[0]) - epsilon)
        gap += 2.0 * tolerance
        if not 0.0 < scale < math.inf:
            epsilon = low  # no slope to follow: bisect
        elif abs(gap) < 1e-4:
            epsilon += math.log1p(-math.expm1(-gap) * scale)
        else:
            epsilon += gap * scale
    return high


@kernel("(float64[::1], int64, float64[:, :, :, ::1], float64[:, ::1], float64[::1])")
def unbundled_log_delta_array(epsilons, direction, laws, pairs, log_deltas):
    """Fill ``log_deltas``; direction 0 and 1 name a row of the arrays, 2 is the larger."""
    tilted = np.empty((laws.shape[2], 4))
    moments = np.empty(6)
    sums = np.empty(4)
    result = np.empty(2)
    first = 1 if direction == 1 else 0
    last = 0 if direction == 0 else 1
    for i in range(epsilons.shape[0]):
        largest = -math.inf
        for j in range(first, last + 1):
            unbundled_hockey_stick(epsilons[i], pairs[j], laws[j], tilted, moments, sums, result)
            largest = max(largest, result[0])
        log_deltas[i] = largest


@kernel("(float64[::1], int64, float64[:, :, :, ::1], float64[:, ::1], float64[::1])")
def unbundled_epsilon_array(log_deltas, direction, laws, pairs, epsilons):
    """Fill ``epsilons``, the inverse of `unbundled_log_delta_array` on its safe side."""
    first = 1 if direction == 1 else 0
    last = 0 if direction == 0 else 1
    for i in range(log_deltas.shape[0]):
        largest = 0.0
        for j in range(first, last + 1):
            largest = max(largest, smallest_unbundled_epsilon(log_deltas[i], laws[j], pairs[j]))
        epsilons[i] = largest
