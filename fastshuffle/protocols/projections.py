"""Ways to make estimated frequencies a distribution, by their names in the literature."""

from typing import Literal, TypeAlias, get_args

import numpy as np

from fastshuffle._typing import FloatArray

__all__ = ["Projection", "project"]

Projection: TypeAlias = Literal["base-pos", "norm-mul", "norm-sub"]


def project(estimates: FloatArray, projection: Projection) -> FloatArray:
    """Return estimated frequencies that are >= 0, and sum to 1 unless the projection is base-pos.

    Parameters
    ----------
    estimates : array of float, shape (k,)
        Unbiased estimates, any numbers.
    projection : {"base-pos", "norm-mul", "norm-sub"}
        ``"base-pos"`` replaces negative estimates by 0; ``"norm-mul"`` does so and divides by the
        sum; ``"norm-sub"`` subtracts the one number from all with which, negative results replaced
        by 0, the sum is 1: the nearest distribution in Euclidean distance.

    Returns
    -------
    array of float, shape (k,)
        Biased: a projection moves estimates near 0 upwards.

    Raises
    ------
    ValueError
        If the projection is unknown, or no estimate is positive for ``"norm-mul"``.
    """
    if projection not in get_args(Projection):
        names = ", ".join(repr(name) for name in get_args(Projection))
        raise ValueError(f"projection must be one of {names}, got {projection!r}")
    positive = np.maximum(estimates, 0.0)
    if projection == "base-pos":
        return positive
    if projection == "norm-mul":
        total = positive.sum()
        if total == 0.0:
            raise ValueError("estimates must not all be <= 0 for 'norm-mul', got none above 0")
        return positive / total
    largest_first = np.sort(estimates)[::-1]
    excess = (np.cumsum(largest_first) - 1.0) / np.arange(1, estimates.size + 1)
    # the first is always kept; those kept come first
    kept = int((largest_first > excess).sum())
    return np.maximum(estimates - excess[kept - 1], 0.0)
