"""Rates and limiting constants from a sequence of exact values, with their uncertainty."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

_LEAST_POINTS = 5


class Estimate(NamedTuple):
    """A number and how far it may be off.

    Attributes
    ----------
    value, uncertainty : float
        The uncertainty is the larger of two standard errors of the fit and of the change of the
        value between sub-grids or orders of the fit.
    """

    value: float
    uncertainty: float

    @property
    def text(self) -> str:
        """Both, with the digits that are known and a few for a rate."""
        if not math.isfinite(self.uncertainty):
            return "no fit"
        decimals = max(3, 1 - math.floor(math.log10(max(self.uncertainty, 1e-7))))
        return f"{self.value:.{min(decimals, 6)}f} +- {self.uncertainty:.0e}"


def _least_squares(
    columns: Sequence[npt.NDArray[np.float64]], y: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], float]:
    """Return the coefficients and the standard error of the first."""
    design = np.column_stack(columns)
    solution, *_ = np.linalg.lstsq(design, y, rcond=None)
    freedom = max(1, len(y) - len(columns))
    variance = float(((y - design @ solution) ** 2).sum()) / freedom
    spread = np.linalg.pinv(design.T @ design)[0, 0]
    return np.asarray(solution, dtype=np.float64), math.sqrt(variance * float(spread))


def fit_rate(
    n: Sequence[float], values: Sequence[float], correction: float | None = None
) -> Estimate:
    """Fit the exponent of ``values ~ n^exponent`` by least squares in log-log coordinates.

    Parameters
    ----------
    n : sequence of float
        The grid, increasing.
    values : sequence of float
        Positive numbers.
    correction : float, optional
        Fit ``values ~ n^exponent exp(b n^-correction)``: for smooth sequences on a grid that does
        not reach far.

    Returns
    -------
    Estimate
        The exponent on the upper half of the grid, or with a correction on the upper two thirds;
        the fits on either tell how far it still moves. It is nan, with an infinite uncertainty, if
        a value is not a positive number.
    """
    x, y = np.asarray(n, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if len(x) < _LEAST_POINTS or not (np.isfinite(y).all() and (y > 0.0).all()):
        return Estimate(math.nan, math.inf)
    slopes, errors = [], []
    firsts = len(x) // 2, len(x) // 3
    for first in firsts if correction is None else reversed(firsts):
        part = np.log(x[first:] / x[-1])
        columns = [part, np.ones(len(part))]
        if correction is not None:
            columns.append((x[first] / x[first:]) ** correction)
        slope, error = _least_squares(columns, np.log(y[first:]))
        slopes.append(float(slope[0]))
        errors.append(error)
    return Estimate(slopes[0], max(2.0 * errors[0], abs(slopes[0] - slopes[1])))


def fit_limit(n: Sequence[float], values: Sequence[float], power: float) -> Estimate:
    """Extrapolate ``values = limit + a n^-power + b n^(-2 power) + ...`` to infinite n.

    Parameters
    ----------
    n : sequence of float
        The grid, increasing.
    values : sequence of float
        The numbers whose limit is wanted.
    power : float
        The exponent of the first correction, positive.

    Returns
    -------
    Estimate
        The limit, from the upper two thirds of the grid; the fits of one term fewer and on the
        upper half tell how far it still moves.
    """
    x, y = np.asarray(n, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if len(x) < _LEAST_POINTS or not np.isfinite(y).all():
        return Estimate(math.nan, math.inf)
    fits, errors = [], []
    for first, orders in ((len(x) // 3, 2), (len(x) // 3, 1), (len(x) // 2, 2)):
        part = (x[first] / x[first:]) ** power
        columns = [np.ones(len(part)), *(part**order for order in range(1, orders + 1))]
        limit, error = _least_squares(columns, y[first:])
        fits.append(float(limit[0]))
        errors.append(error)
    return Estimate(
        fits[0], max(2.0 * errors[0], 0.5 * abs(fits[0] - fits[1]), abs(fits[0] - fits[2]))
    )


def geometric_grid(low: int, high: int, points: int, multiple: int = 1) -> list[int]:
    """Return multiples from about low to high in about equal ratios, each once."""
    grid = np.geomspace(low / multiple, high / multiple, points)
    return sorted({multiple * max(1, round(x)) for x in grid.tolist()})
