"""Renyi, Kullback-Leibler and Jensen-Shannon divergences of a binary pair, as window sums.

Each divergence is written as a sum of non-negative terms ``Q(x) F(u(x))`` with
``u = P/Q - 1`` and F vanishing to second order at 0, so that nothing cancels although the
divergence is of order 1/n. With b = order - 1 and L = log(1 + u) the Renyi divergence is

    log1p(b K) / b,   K = sum_x Q(x) [ deviance(u) + (1 + u) (exp(b L) - 1 - b L) / b ],

and K at b = 0 is the Kullback-Leibler divergence. The sum runs outwards from the mean until a
proved bound on all that is left falls below 1e-17 of what is there. Where the standard deviation
is 32 or more only every stride-th x is visited: the terms are samples of an analytic function
whose transform at the first alias, 2 pi / stride with stride <= sigma / 16, is below
exp(-2 sigma**2 sin(pi / stride)**2) < exp(-4000), far under rounding. Where the user who differs
sends m messages, the terms are analytic up to where the privacy loss turns by pi, about
pi sigma / mu steps off the real line for laws mu deviations apart; with stride <= sigma / (5 mu)
what is left is below exp(-2 pi**2 5) < exp(-98).
"""

import math

import numpy as np

from fastshuffle._kernels._jit import kernel
from fastshuffle._kernels.binomial_groups import count_trials, mirror_groups
from fastshuffle._kernels.deviance import deviance, exponential_excess
from fastshuffle._kernels.group_contour import edge_sums
from fastshuffle._kernels.group_tilt import saddle_point, tilt_groups
from fastshuffle._kernels.message_point import message_point, message_rows

_RELATIVE_TRUNCATION = 1e-17
_POINTS_PER_DEVIATION = 16.0
# Above this ratio P/Q the terms are formed from the logarithms of P and Q.
_LARGE_RATIO = 1e8


@kernel("(float64, float64[::1])")
def renyi_term(order_excess, point):
    """Return one term of K for a point ``(log P, log Q, u)``."""
    log_p, log_q, u = point[0], point[1], point[2]
    if log_p == -math.inf:
        # the limit of Q [deviance(-1) + (1 + u) phi(b L) / b] as P -> 0
        return math.exp(log_q)
    b = order_excess
    p = math.exp(log_p)
    if log_q == -math.inf:
        return math.inf if b >= 0.0 else -(1.0 + b) * p / b
    log_ratio = math.log1p(u) if abs(u) < 0.5 else log_p - log_q
    if u > _LARGE_RATIO:
        term = p * (log_ratio - 1.0) + math.exp(log_q)
    else:
        term = math.exp(log_q) * deviance(u)
    if b != 0.0:
        growth = b * log_ratio
        if growth > 30.0:
            term += math.exp(log_p + growth) / b - p * (1.0 / b + log_ratio)
        else:
            term += p * exponential_excess(growth) / b
    return term


@kernel("(float64[::1],)")
def jensen_shannon_term(point):
    """Return ``(P log(P/M) + Q log(Q/M)) / 2``, M = (P + Q) / 2, for ``(log P, log Q, u)``."""
    log_p, log_q, u = point[0], point[1], point[2]
    p = math.exp(log_p)
    q = math.exp(log_q)
    if p + q == 0.0:
        return 0.0
    v = u / (2.0 + u) if u < _LARGE_RATIO else (p - q) / (p + q)
    return 0.25 * (p + q) * (deviance(v) + deviance(-v))


@kernel("(float64, float64, float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[::1])")
def pair_point(x, trials, groups, pair, tilted, point):
    """Write ``(log P, log Q, u, log tail)`` at x into ``point``, 0 <= x <= trials + 1.

    ``pair`` has the rows of Q and of P, ``(p, q, log p, log q, p of this row minus the other)``.
    The tail bounds Pr[X >= x] under both from above; it is 1 unless x lies above the mean.
    """
    difference = pair[1, 4]
    point[3] = 0.0
    if x == 0.0 or x > trials:
        column = 3 if x == 0.0 else 2
        log_mass = 0.0
        for g in range(groups.shape[0]):
            log_mass += groups[g, 0] * groups[g, 4 if x == 0.0 else 3]
        point[0] = pair[1, column] + log_mass
        point[1] = pair[0, column] + log_mass
        null = pair[0, 1] if x == 0.0 else pair[0, 0]
        change = -difference if x == 0.0 else difference
        point[2] = change / null if null > 0.0 else math.inf
        if x > trials:
            point[3] = log_mass
        return
    moments = np.empty(6)
    sums = np.empty(4)
    s = saddle_point(x - 0.5, trials, groups, tilted)
    tilt_groups(s, groups, tilted, moments)
    log_scale = edge_sums(x, s, trials, moments, groups, tilted, sums)
    below, above = sums[0], sums[0] - sums[1]
    log_below = log_scale + s + math.log(below)
    log_above = log_scale + math.log(above)
    for row in range(2):
        ones = pair[row, 2] + log_below
        zeros = pair[row, 3] + log_above
        larger = max(ones, zeros)
        # point[0] is P, the second row of the pair
        point[1 - row] = larger + math.log(math.exp(ones - larger) + math.exp(zeros - larger))
    # (P - Q) / Q, with numerator and denominator divided by the larger of 1 and e**s
    fade = math.exp(-abs(s))
    if s >= 0.0:
        null = pair[0, 0] * below + pair[0, 1] * fade * above
        change = -math.expm1(-s) * below + fade * sums[1]
    else:
        null = pair[0, 0] * fade * below + pair[0, 1] * above
        change = math.expm1(s) * below + sums[1]
    point[2] = difference * change / null if null > 0.0 else math.inf
    if s * math.sqrt(moments[3]) > 0.5:
        # Pr[R >= x - 1], the tail with a user who counts for certain
        tail = below + fade * (below - sums[3]) / -math.expm1(-s)
        point[3] = log_scale + s + math.log(tail)


@kernel(
    "(float64, float64, float64, float64, float64, float64[:, ::1], float64[:, ::1], float64[::1])"
)
def half_window_sum(order_excess, log_limit, x, stride, messages, groups, pair, partial):
    """Add the terms at x, x + stride, ... to ``partial``; a nan order asks for Jensen-Shannon.

    ``partial`` holds the sum of the terms and, for Renyi moments far from 1, the largest
    ``log P + b L`` with the sum of all relative to it. ``log_limit`` bounds the log of
    the sum over y >= x of the terms divided by the tail of `pair_point`.
    """
    trials = count_trials(groups)
    tilted = np.empty((groups.shape[0] + 2, 4))
    rows = np.empty((3, groups.shape[0] + 2, 5))
    message_rows(messages, groups, pair, rows)
    point = np.empty(4)
    while x <= trials + messages:
        if messages == 1.0:
            pair_point(x, trials, groups, pair, tilted, point)
        else:
            message_point(x, messages, pair, rows, tilted, point)
        log_sum = math.log(partial[0]) if partial[0] > 0.0 else -math.inf
        log_moment = partial[1] + math.log(partial[2]) if partial[2] > 0.0 else -math.inf
        if log_sum == math.inf:
            log_sum = log_moment - math.log(order_excess)
        elif order_excess < 0.0:
            log_sum = min(log_sum, log_moment)
        if point[3] < 0.0 and log_limit + point[3] < log_sum + math.log(_RELATIVE_TRUNCATION):
            return
        if math.isnan(order_excess):
            partial[0] += stride * jensen_shannon_term(point)
        else:
            partial[0] += stride * renyi_term(order_excess, point)
            if point[0] > -math.inf and point[1] > -math.inf:
                power = (1.0 + order_excess) * point[0] - order_excess * point[1]
                if power > partial[1]:
                    partial[2] *= math.exp(partial[1] - power)
                    partial[1] = power
                partial[2] += stride * math.exp(power - partial[1])
        x += stride


@kernel("(float64, float64, float64, float64[:, ::1], float64[:, ::1])")
def window_divergence(order_excess, loss, messages, groups, pair):
    """Return the Renyi divergence of order 1 + ``order_excess`` of P from Q, or Jensen-Shannon.

    ``groups`` are those of the others' messages, ``pair`` the rows of one of the ``messages`` of
    the user who differs, and ``loss`` is the largest log(P/Q). Orders are at least 1/2; below, use
    the symmetry ``(1 - order) D_order(P||Q) = order D_{1-order}(Q||P)``. Nan asks for
    Jensen-Shannon.
    """
    b = order_excess
    n_groups = groups.shape[0]
    trials = count_trials(groups)
    mirrored = np.empty((n_groups, 5))
    mirror_groups(groups, mirrored)
    mirrored_pair = np.empty((2, 5))
    for row in range(2):
        mirrored_pair[row, 0] = pair[row, 1]
        mirrored_pair[row, 1] = pair[row, 0]
        mirrored_pair[row, 2] = pair[row, 3]
        mirrored_pair[row, 3] = pair[row, 2]
        mirrored_pair[row, 4] = -pair[row, 4]
    moments = np.zeros(6)
    if trials > 0.0:
        tilt_groups(0.0, groups, np.empty((n_groups, 4)), moments)
    mean, variance, distance = moments[0], moments[3], 0.0
    if messages > 1.0:
        mean += 0.5 * messages * (pair[0, 0] + pair[1, 0])
        variance += messages * min(pair[0, 0] * pair[0, 1], pair[1, 0] * pair[1, 1])
        distance = messages * abs(pair[1, 4])
    stride = 1.0
    if variance >= 1024.0 and not b * messages > 0.05 * variance:
        stride = math.floor(math.sqrt(variance) / _POINTS_PER_DEVIATION)
        if stride * distance > 0.2 * variance:
            stride = max(math.floor(0.2 * variance / distance), 1.0)
    if math.isnan(b):
        log_limit = math.log(math.log(2.0))
        log_limit_below = log_limit
    else:
        # term <= P loss exp(b loss) where P > Q, and <= 1.4 Q where P < Q
        log_limit = math.log(loss) + b * loss if b >= 0.0 else math.log(min(loss, -1.0 / b))
        log_limit_below = math.log(1.4)
    partial = np.zeros(3)
    partial[1] = -math.inf
    center = min(max(math.floor(mean + 0.5), 0.0), trials + messages)
    half_window_sum(b, log_limit, center, stride, messages, groups, pair, partial)
    half_window_sum(
        b, log_limit_below, trials + messages - (center - stride), stride, messages, mirrored,
        mirrored_pair, partial,
    )  # fmt: skip
    if math.isnan(b) or b == 0.0:
        return partial[0]
    # b K is the moment less 1, unless it overflows or the moment is nearly 0
    if -0.5 < b * partial[0] < math.inf:
        return math.log1p(b * partial[0]) / b
    return (partial[1] + math.log(partial[2])) / b if partial[2] > 0.0 else math.inf
