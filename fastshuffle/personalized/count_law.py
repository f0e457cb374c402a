"""How many of many independent users, each with a chance of its own, do something.

The Poisson-binomial law, and upper bounds on means under it with relative accuracy however small.
"""

import math
from collections.abc import Callable

import numpy as np

from fastshuffle._kernels.group_tilt import tilt_groups
from fastshuffle._kernels.poisson_binomial import tilted_masses
from fastshuffle._typing import FloatArray
from fastshuffle.personalized.grouping import compressed, group_rows

# Beyond a window the tilted law has less than exp(-60) on either side, by Bernstein's inequality.
_TAIL_EXPONENT = 60.0
# How much closer together the points are in the middle of the window than on average.
_CROWDING = 4.0
# Absolute rounding of a tilted mass, and of the logarithm of the whole.
_MASS_ROUNDING = 1e-15
_ROUNDING = 1e-11
_ROUNDING_PER_UNIT = 1e-14


class CountLaw:
    """The law of the number of successes, given the log odds of groups of users.

    Log odds of inf and -inf are users who certainly do, or do not.
    """

    def __init__(self, log_odds: FloatArray, counts: FloatArray) -> None:
        self._certain = float(counts[log_odds == math.inf].sum())
        kept = np.isfinite(log_odds) & (counts > 0.0)
        order = np.argsort(log_odds[kept])
        self._rows = group_rows(*compressed(log_odds[kept][order], counts[kept][order]))
        self._trials = float(np.rint(counts[kept].sum()))

    def log_moment(self, rates: FloatArray) -> FloatArray:
        """Return ``log E exp(-rate C)`` for rates >= 0, to rounding."""
        shares = np.log1p(np.multiply.outer(np.expm1(-rates), self._rows[:, 1]))
        return shares @ self._rows[:, 0] - rates * self._certain

    def log_mean_above(
        self,
        log_values: Callable[[FloatArray], FloatArray],
        *,
        rate: float,
        log_scale: float,
        points: int,
    ) -> float:
        """Return an upper bound on ``log E f(C)`` for a non-increasing function f >= 0.

        Parameters
        ----------
        log_values : callable
            From counts to log f, or to upper bounds on it.
        rate, log_scale : float
            ``f(c) <= exp(log_scale - rate c)`` at all c, rate >= 0. The closer, the better.
        points : int
            At how many counts f is evaluated, at most. Between two of them it is taken for its
            value at the lower one.
        """
        if self._trials == 0.0:
            return float(log_values(np.array([self._certain]))[0])
        moments = np.empty(6)
        tilt_groups(-rate, self._rows, np.empty((len(self._rows), 4)), moments)
        mean, variance, divergence = moments[0] + moments[1], moments[3], moments[5]
        third = _TAIL_EXPONENT / 3.0
        reach = third + math.sqrt(third * third + 2.0 * _TAIL_EXPONENT * variance)
        first = max(0.0, float(np.floor(mean - reach)))
        last = min(self._trials, float(np.ceil(mean + reach)))
        masses = np.empty(int(last - first) + 1)
        tilted_masses(-rate, first, self._trials, self._rows, moments, masses)
        starts = _block_starts(first, last, float(mean), points)
        where = (starts - first).astype(np.int64)
        counts = first + np.arange(masses.size)
        block = np.repeat(np.arange(starts.size), np.diff(np.append(where, masses.size)))
        ends = np.append(starts[1:] - 1.0, last)
        growth = np.exp(rate * (counts - ends[block]))  # at most 1
        sums = np.add.reduceat((np.maximum(masses, 0.0) + _MASS_ROUNDING) * growth, where)
        terms = np.log(sums) + rate * (ends - mean) + log_values(starts + self._certain)
        # E exp(-rate C) times what the tilted law has outside the window
        outside = log_scale - rate * (self._certain + mean) + math.log(2.0) - _TAIL_EXPONENT
        if first == 0.0 and last == self._trials:
            outside = -math.inf
        largest = max(float(terms.max()), outside)
        if largest == -math.inf:
            return largest
        total = float(np.exp(terms - largest).sum()) + math.exp(outside - largest)
        size = abs(divergence) + rate * (self._certain + mean)
        slack = _ROUNDING + _ROUNDING_PER_UNIT * size
        return largest + math.log(total) - float(divergence) + slack


def _block_starts(first: float, last: float, mean: float, points: int) -> FloatArray:
    """Return the first counts of blocks that cover a window, closest around the mean."""
    if last - first < points:
        return np.arange(first, last + 1.0)
    places = np.sinh(_CROWDING * np.linspace(-1.0, 1.0, points + 1)[:-1]) / math.sinh(_CROWDING)
    reach = max(mean - first, last - mean)
    starts = np.unique(np.floor(np.clip(mean + reach * places, first, last)))
    return np.unique(np.append(starts, first))
