"""The trade-off function of a pair of binomial sums: the least type II error at a given level.

Both laws are sums of binomial groups with an increasing likelihood ratio, so the most powerful
tests reject for large x. The curve is linear between the vertices
``(Q[X >= x], P[X < x])``.
"""

import math

import numpy as np

from fastshuffle._kernels._jit import kernel
from fastshuffle._kernels.binomial_groups import (
    count_trials,
    log_lower_tail,
    log_mass,
    log_upper_tail,
)


@kernel("(float64, float64[:, ::1], float64[:, ::1])")
def type_two_error(alpha, null_groups, alternative_groups):
    """Return the least type II error of level alpha, by bisection on the vertices."""
    if alpha >= 1.0:
        return 0.0
    log_alpha = math.log(alpha) if alpha > 0.0 else -math.inf
    # throughout, the level of the test from low on exceeds alpha and that from high on does not
    low = 0.0
    high = count_trials(null_groups) + 1.0
    while high - low > 1.0:
        middle = np.floor(0.5 * (low + high))
        if log_upper_tail(middle, null_groups) <= log_alpha:
            high = middle
        else:
            low = middle
    log_ratio = log_mass(low, alternative_groups) - log_mass(low, null_groups)
    log_level = log_upper_tail(low, null_groups)
    # (level - alpha) ratio, in logarithms since the ratio may exceed the range of a double
    rise = math.exp(log_level + log_ratio) * -math.expm1(log_alpha - log_level)
    return math.exp(log_lower_tail(low - 1.0, alternative_groups)) + rise


@kernel("(float64[::1], float64[:, ::1], float64[:, ::1], float64[::1])")
def type_two_error_array(alphas, null_groups, alternative_groups, errors):
    """Fill ``errors`` with `type_two_error` at each level."""
    for i in range(alphas.shape[0]):
        errors[i] = type_two_error(alphas[i], null_groups, alternative_groups)
