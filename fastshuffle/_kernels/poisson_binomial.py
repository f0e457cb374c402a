"""Sums of independent bits with many different probabilities, and what such a sum of clones hides.

A sum of Bernoulli variables is a sum of binomial groups of one trial each, so the contour of
`fastshuffle._kernels.group_contour` applies: the characteristic function is formed once at its few
nodes, and every mass is a short sum over them.
"""

import math

import numpy as np

from fastshuffle._kernels._jit import kernel
from fastshuffle._kernels.group_contour import contour_nodes, odd_exponent, series_terms
from fastshuffle._kernels.group_tilt import tilt_groups
from fastshuffle._kernels.hockey_stick import hockey_stick


@kernel("(float64, float64, float64, float64[:, ::1], float64[::1], float64[::1])")
def tilted_masses(s, first, trials, groups, moments, masses):
    """Fill ``masses`` with the masses of ``first, first + 1, ...`` after a tilt by s.

    ``moments`` becomes that of `tilt_groups`. The absolute error of a mass is a few roundings of 1.
    """
    tilted = np.empty((groups.shape[0], 4))
    tilt_groups(s, groups, tilted, moments)
    length, n_nodes = contour_nodes(moments[3])
    # the aliases of one end of the masses lie beyond the other
    longer = max(1.0, 2.0 * masses.shape[0] / length)
    length *= longer
    n_nodes = int(n_nodes * longer) + 1
    if 2 * n_nodes + 1 >= length:
        # the whole period, an odd number of nodes, no more than the support needs
        n_nodes = int(0.5 * min(length, trials + 2.0)) + 1
        length = 2.0 * n_nodes + 1.0
    step = 2.0 * math.pi / length
    n_terms = series_terms(math.tan(0.5 * n_nodes * step))
    sizes = np.empty(n_nodes)
    phases = np.empty(n_nodes)
    for j in range(n_nodes):
        half = 0.5 * (j + 1) * step
        sine = math.sin(half)
        real = 0.0
        imaginary = 0.0
        for g in range(groups.shape[0]):
            t, u = tilted[g, 0], tilted[g, 1]
            real += 0.5 * groups[g, 0] * math.log1p(-4.0 * t * u * sine * sine)
            imaginary += groups[g, 0] * odd_exponent(t, u, sine / math.cos(half), n_terms)
        sizes[j] = math.exp(real)
        phases[j] = imaginary
    for i in range(masses.shape[0]):
        offset = (first + i - moments[0]) - moments[1]
        total = 0.5
        for j in range(n_nodes):
            total += sizes[j] * math.cos(phases[j] - offset * (j + 1) * step)
        masses[i] = 2.0 / length * total


@kernel("(float64, float64[::1], float64[::1], float64[::1])")
def log_delta_by_clones(epsilon, clones, pair, log_deltas):
    """Fill ``log_deltas`` with that of a pair hidden among so many uniform bits, for each count."""
    groups = np.array([[0.0, 0.5, 0.5, -math.log(2.0), -math.log(2.0)]])
    tilted = np.empty((1, 4))
    moments = np.empty(6)
    sums = np.empty(4)
    result = np.empty(3)
    for i in range(clones.shape[0]):
        groups[0, 0] = clones[i]
        hockey_stick(epsilon, clones[i], groups, pair, tilted, moments, sums, result)
        log_deltas[i] = result[0]
