"""Masses of a sum of binomial groups at many points."""

from fastshuffle._kernels._jit import kernel
from fastshuffle._kernels.binomial_groups import log_mass


@kernel("(float64[::1], float64[:, ::1], float64[::1])")
def fill_log_masses(points, groups, masses):
    """Fill ``masses`` with log Pr[R = x] at each point x."""
    for i in range(points.shape[0]):
        masses[i] = log_mass(points[i], groups)
