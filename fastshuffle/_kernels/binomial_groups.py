"""Mass and tails of a sum of binomial groups at any size.

``R = sum_g Bin(a_g, p_g)`` is described by an array of rows ``(a, p, q, log p, log q)``. Groups
that are empty or certain are taken out first. A mass is a contour sum at the tilt whose mean is x;
a tail is one on the side where it is small, and on the other one less that.
"""

import math

import numpy as np

from fastshuffle._kernels._jit import kernel
from fastshuffle._kernels.deviance import log_binomial_mass
from fastshuffle._kernels.group_contour import edge_sums
from fastshuffle._kernels.group_tilt import saddle_point, tilt_groups


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
