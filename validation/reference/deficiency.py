"""Upper bounds on the distance of a lattice experiment from a Gaussian one, by two kernels."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from validation.reference.lattice import Law

_CELLS = 16


def jitter_and_rounding(law: Law, centre: float, deviation: float, mean: float) -> float:
    """Return the larger of two total variation distances between a law and N(mean, 1).

    Parameters
    ----------
    law : Law
        A law on integers.
    centre, deviation : float
        An integer x stands for ``(x - centre) / deviation``.
    mean : float
        Mean of the normal law.

    Returns
    -------
    float
        The integer plus a uniform number on (-1/2, 1/2) against the normal law, from above; and
        the normal number, rounded to an integer, against the law. The largest over the members of
        an experiment bounds its Le Cam distance from the Gaussian one.
    """
    edges = law.points[0] - 0.5 + np.arange(_CELLS * len(law.masses) + 1) / _CELLS
    z = (edges - centre) / deviation - mean
    normal = np.diff(ndtr(z))
    outside = 1.0 - float(normal.sum())
    jittered = np.repeat(law.masses, _CELLS) / _CELLS
    # the density of the jittered law is constant in a cell, the normal one monotone but at its
    # top: where they cross, the integral of their distance is below that of the normal's range
    top = 1.0 / (math.sqrt(2.0 * math.pi) * deviation * _CELLS)
    density = top * np.exp(-0.5 * z * z)
    low, high = np.minimum(density[1:], density[:-1]), np.maximum(density[1:], density[:-1])
    high = np.where(z[1:] * z[:-1] < 0.0, top, high)
    crossing = (low < jittered) & (jittered < high)
    fine = float(np.where(crossing, high - low, np.abs(jittered - normal)).sum())
    coarse = float(np.abs(law.masses - normal.reshape(-1, _CELLS).sum(axis=1)).sum())
    return float(0.5 * (max(fine, coarse) + outside))
