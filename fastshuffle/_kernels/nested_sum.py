"""The positive part of a sum of independent variables, by enumerating their counts.

A group of n copies of a variable with atoms v_1, ..., v_d is a multinomial vector of counts, hence
a chain of binomials: how many copies take v_1, how many of those left take v_2, and so on. All
counts but the last one are enumerated over windows that hold the tilted law up to exp(-42); for
the last, with a and b the constants that the others leave,

    E[(a + b N)_+] = |b| sum_j (sign(b) (j - y))_+ Pr[N = j],   y = -a / b, N ~ Bin(m, p),

is summed from y outwards, or its complement is, on the side away from the mean: all terms are
positive.
Nothing is rounded to a grid: this is the method where the sum takes few values, be it that n is
small, that all atoms but two are rare, or that the tilt makes them so.
"""

import math

import numpy as np

from fastshuffle._kernels._jit import kernel
from fastshuffle._kernels.deviance import deviance, log_binomial_mass

_WINDOW_EXPONENT = 42.0
# Columns of a level: copies where a group begins, else -1; value above that of the last atom;
# probability among the atoms left, its complement, logs of both; the same probability when tilted.
_COPIES, _VALUE, _P, _Q, _LOG_P, _LOG_Q, _TILTED = 0, 1, 2, 3, 4, 5, 6


@kernel("(float64, float64, float64)")
def binomial_divergence(x, n, p):
    """Return ``n KL(x / n || p)``, 0 < p < 1, which bounds -log of the tail of Bin(n, p) at x."""
    mean = n * p
    rest = n - mean
    excess = x - mean
    return mean * deviance(excess / mean) + rest * deviance(-excess / rest)


@kernel("(float64, float64, float64)")
def window_width(n, p, side):
    """Return how far from its mean Bin(n, p) goes before a tail is below exp(-42).

    ``side`` is 1 for the upper and -1 for the lower tail; the width may be up to one too large.
    """
    variance = n * p * (1.0 - p)
    third = _WINDOW_EXPONENT / 3.0
    width = third + math.sqrt(third * third + 2.0 * _WINDOW_EXPONENT * variance)  # Bernstein
    farthest = n * (1.0 - p) if side > 0.0 else n * p
    high = min(width, farthest)
    low = 0.0
    while high - low > max(1.0, 0.02 * high):
        middle = 0.5 * (low + high)
        if binomial_divergence(n * p + side * middle, n, p) < _WINDOW_EXPONENT:
            low = middle
        else:
            high = middle
    return high


@kernel("(float64, float64, float64, float64[::1])")
def tail_moment(x, y, sign, group):
    """Return log of ``sum_{j from x away from the mean} |j - y| Pr[Bin = j]``.

    ``group`` is (m, p, q, log p, log q); the sum runs up if ``sign`` is 1 and down if it is -1,
    and x lies on that side of the mean.
    """
    m = group[0]
    odds = group[1] / group[2] if sign > 0.0 else group[2] / group[1]
    done = x if sign > 0.0 else m - x
    distance = sign * (x - y)
    weight = 1.0
    total = distance
    while done < m:
        weight *= (m - done) / (done + 1.0) * odds
        done += 1.0
        distance += 1.0
        term = weight * distance
        total += term
        # the terms fall at least as fast as a geometric series from here on
        if term < 1e-17 * total and weight < 1e-17:
            break
    return log_binomial_mass(x, group) + math.log(total) if total > 0.0 else -math.inf


@kernel("(float64, float64, float64[::1])")
def log_positive_part(a, b, group):
    """Return log E[(a + b N)_+], b != 0 and N binomial of a group (m, p, q, log p, log q)."""
    m = group[0]
    sign = math.copysign(1.0, b)
    mean = m * group[1]
    y = -a / b
    if (y < 0.0 and sign > 0.0) or (y > m and sign < 0.0) or m == 0.0:  # positive throughout
        total = a + b * mean
        return math.log(total) if total > 0.0 else -math.inf
    if (y >= m and sign > 0.0) or (y <= 0.0 and sign < 0.0):
        return -math.inf
    # the first integer beyond y
    x = math.floor(y) + 1.0 if sign > 0.0 else math.ceil(y) - 1.0
    if sign * (x - mean) > 0.0:
        return math.log(abs(b)) + tail_moment(x, y, sign, group)
    # (S)_+ = S + (-S)_+, both with means >= 0
    total = max(a + b * mean, 0.0) + abs(b) * math.exp(tail_moment(x - sign, y, -sign, group))
    return math.log(total) if total > 0.0 else -math.inf


@kernel("(float64[:, ::1], float64[::1], float64, float64, float64, float64, float64, float64)")
def nested_positive_part(levels, last, base, side, slack, margin, log_scale, most_visits):
    """Return E[S_+] exp(-log_scale) over the windows, and whether they leave out any count.

    The first is nan after ``most_visits`` values.

    ``levels`` are the counts to enumerate (see the columns above) and ``last`` the same columns of
    the count that is summed in closed form. S is ``base`` plus the counts times the values. It is
    moved to ``side``, 1 for up and -1 for down, by ``slack`` times the sum of the absolute values
    that it is made of, which covers its rounding. The windows are ``margin`` wider on each side.
    """
    depth = levels.shape[0]
    counts = np.zeros(depth + 1)
    highest = np.zeros(depth + 1)
    left = np.zeros(depth + 2)
    totals = np.zeros(depth + 1)
    sizes = np.zeros(depth + 1)
    log_weights = np.zeros(depth + 1)
    group = np.empty(5)
    totals[0] = base
    sizes[0] = abs(base)
    result = 0.0
    visits = 0.0
    truncated = False
    level = 0
    entering = True
    while level >= 0:
        if level == depth:
            visits += 1.0
            if visits > most_visits:
                return math.nan, truncated
            m = last[_COPIES] if last[_COPIES] >= 0.0 else left[level]
            size = sizes[level] + abs(last[_VALUE]) * m * last[_P]
            a = totals[level] + side * slack * size
            for i in range(4):
                group[1 + i] = last[_P + i]
            group[0] = m
            log_mean = log_positive_part(a, last[_VALUE], group)
            result += math.exp(log_weights[level] + log_mean - log_scale)
            level -= 1
            entering = False
            continue
        if entering:
            if levels[level, _COPIES] >= 0.0:
                left[level] = levels[level, _COPIES]
            n = left[level]
            t = levels[level, _TILTED]
            counts[level] = 0.0
            highest[level] = min(n, margin)
            if n > 0.0 and t > 0.0:
                low = math.floor(n * t - window_width(n, t, -1.0)) - margin
                counts[level] = max(0.0, low)
                highest[level] = min(n, math.ceil(n * t + window_width(n, t, 1.0)) + margin)
            truncated = truncated or counts[level] > 0.0 or highest[level] < n
        else:
            counts[level] += 1.0
            if counts[level] > highest[level]:
                level -= 1
                continue
        count = counts[level]
        log_mass = 0.0
        if left[level] > 0.0:
            for i in range(4):
                group[1 + i] = levels[level, _P + i]
            group[0] = left[level]
            log_mass = log_binomial_mass(count, group)
        log_weights[level + 1] = log_weights[level] + log_mass
        totals[level + 1] = totals[level] + count * levels[level, _VALUE]
        sizes[level + 1] = sizes[level] + count * abs(levels[level, _VALUE])
        left[level + 1] = left[level] - count
        level += 1
        entering = True
    return result, truncated
