"""Background pairs of continuous noise, bracketed from cells of the line.

*Lower.* Which cell a message falls into is a post-processing of the message.

*Upper.* The likelihood ratio r of a message is split onto the two ends of its range in the cell,
with its mean kept: larger in the convex order, so the mean of the positive part of the sum can
only rise. In cells where r is unbounded the messages are revealed: those of the other users count
for nothing, that of the differing user costs its probability.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from fastshuffle._background import LOG_TWO, BackgroundPair, Parts
from fastshuffle._positive_part import Bracket, Terms
from fastshuffle._typing import BoolArray, FloatArray
from fastshuffle.bracket import Curve
from fastshuffle.randomizers.continuous import Cells, ContinuousNoise

# Cells for each unit of length, at most.
_FINEST = 30_000
_FARTHEST_REACH = 36.0
_CHERNOFF_CELLS = (128, 12.0)
# Background masses below this are no background.
_LEAST_MASS = 1e-300
# Ratios that go beyond this times the largest mean ratio of a cell count as unbounded.
_LARGEST_RANGE = 1e12
# Relative rounding of the ends of a range, whose logarithms are up to some hundreds.
_RANGE_ROUNDING = 1e-12
_SHARE_ROUNDING = 1e-15


class CellPair(BackgroundPair):
    """A background pair over cells.

    Parameters
    ----------
    cells : Cells
        The laws of the differing user under Q and under P, and last that of the others, which may
        sum to less than 1: what is missing is revealed.
    n : int
        Number of messages in all.
    revealed : float
        What the last law lacks to 1.
    """

    def __init__(self, cells: Cells, n: int, *, revealed: float) -> None:
        masses = np.exp(cells.log_masses)
        kept = masses.any(axis=0)
        null, alternative, background = masses[:, kept]
        losses = cells.log_ratios[1, kept]
        super().__init__(background, alternative, null, n=n, losses=losses, revealed=revealed)
        self._open = (cells.open[kept]) | (self._background < _LEAST_MASS)
        left, right = cells.left[:, kept], cells.right[:, kept]
        ends = left[1] - left[0], right[1] - right[0]
        self._loss_range = np.minimum(*ends), np.maximum(*ends)
        ends = left[0] - left[2], right[0] - right[2]
        self._weight_range = np.minimum(*ends), np.maximum(*ends)

    def _parts(self, epsilon: float) -> Parts:
        low, high = self._numerators(epsilon)
        exponent = self._exponent(np.where(self._open, 0.0, high))
        ranges = self._range(epsilon, exponent)
        is_open = self._open | ~(ranges[1] < _LARGEST_RANGE)
        low, high = np.where(is_open, np.minimum(low, 0.0), low), np.where(is_open, 0.0, high)
        clear = float(self._alternative[is_open].sum()) * math.exp(-0.5 * epsilon)
        return Parts(
            self._terms(low, exponent),
            self._split_terms(high, exponent, ranges, is_open),
            0.0,
            clear * (1.0 + _RANGE_ROUNDING),
            exponent * LOG_TWO,
            0.5 * epsilon,
        )

    def _split_terms(
        self,
        numerators: FloatArray,
        exponent: int,
        ranges: tuple[FloatArray, FloatArray],
        is_open: BoolArray,
    ) -> list[Terms]:
        """Return the variables r, times ``2**-exponent``, on the ends of their ranges."""
        (term,) = self._terms(numerators, exponent)
        n_cells = int(self._inside.sum())
        closed = ~is_open[self._inside]
        mean, mass = term.values[:n_cells][closed], term.probabilities[:n_cells][closed]
        rest = term.probabilities[:n_cells][~closed].sum() + term.probabilities[n_cells:].sum()
        lowest, highest = (x[self._inside][closed] for x in ranges)
        lowest = np.minimum(lowest - _RANGE_ROUNDING * np.abs(lowest), mean)
        highest = np.maximum(highest + _RANGE_ROUNDING * np.abs(highest), mean)
        spread = highest - lowest
        share = np.divide(mean - lowest, spread, out=np.zeros_like(mean), where=spread > 0.0)
        # no value lower than matters (see _terms), and the rounding of the shares
        least = -2.0 * self._n * max(1.0, float(highest.max(initial=0.0)))
        lowest, highest = np.maximum(lowest, least), np.maximum(highest, least)
        highest += _SHARE_ROUNDING * (highest - lowest)
        values = np.concatenate((lowest, highest, [0.0]))
        probabilities = np.concatenate((mass * (1.0 - share), mass * share, [rest]))
        return [Terms(term.copies, values, probabilities)]

    def _range(self, epsilon: float, exponent: int) -> tuple[FloatArray, FloatArray]:
        """Return the least and the largest r of each cell, times ``2**-exponent``."""
        ends = []
        for side in (0, 1):
            above = self._loss_range[side] - epsilon
            # r increases with the weight where it is positive
            weight = np.where(above > 0.0, self._weight_range[side], self._weight_range[1 - side])
            larger = weight + np.maximum(above, 0.0) + 0.5 * epsilon - exponent * LOG_TWO
            with np.errstate(over="ignore"):
                ends.append(np.exp(larger) * np.copysign(-np.expm1(-np.abs(above)), above))
        return ends[0], ends[1]


class ContinuousPair:
    """A pair of laws over cells, refined until the bracket is narrow enough.

    Parameters
    ----------
    pair_at : callable
        From a fineness and a reach (see `ContinuousNoise.cells`) to the pair over those cells.
    loss : float
        The largest privacy loss.
    """

    def __init__(self, pair_at: Callable[[int, float], CellPair], loss: float) -> None:
        # the cells of neighbouring epsilons are the same few
        self._pair_at = lru_cache(maxsize=8)(pair_at)
        self._loss = loss

    def curve(self, rtol: float) -> Curve:
        """Return the bracketed curve of P from Q."""

        def log_bracket(epsilon: float) -> Bracket:
            bracket = Bracket(-math.inf, math.inf)
            fineness, reach = min(math.ceil(8.0 / math.sqrt(rtol)), _FINEST), 6.0
            while fineness <= _FINEST:
                new = self._pair_at(fineness, reach).log_bracket(epsilon, 0.5 * rtol)
                last = bracket
                bracket = Bracket(max(last.lower, new.lower), min(last.upper, new.upper))
                gap = bracket.upper - bracket.lower
                if bracket.upper == -math.inf or gap <= rtol or bracket == last:
                    break
                # of rtol, half is the sums', a fifth what is revealed, the rest the cells', whose
                # share of the gap is of second order in their width
                known = bracket.lower if bracket.lower > -math.inf else 2.0 * bracket.upper
                needed = _reach_of(known + math.log(0.2 * rtol))
                if needed > reach and self._loss == math.inf:
                    reach = needed
                else:
                    fineness = math.ceil(fineness * min(8.0, max(1.5, math.sqrt(4.0 * gap / rtol))))
            return bracket

        return Curve(log_bracket, self._loss, rtol)

    def chernoff_curve(self) -> Curve:
        """Return the curve of the Chernoff bound over rather fine cells."""
        return replace(self._pair_at(*_CHERNOFF_CELLS).chernoff_curve(), loss=self._loss)


def _reach_of(log_mass: float) -> float:
    """Return how many standard deviations out a Gaussian tail is below a mass, in quarters.

    No farther than needed: the range of the likelihood ratios grows with its exponential.
    """
    # from 3 on a tail is below exp(-z**2 / 2) / (sqrt(2 pi) 3)
    z = math.sqrt(2.0 * max(4.5, -log_mass - math.log(3.0 * math.sqrt(2.0 * math.pi))))
    return min(0.25 * math.ceil(4.0 * z), _FARTHEST_REACH)


class ContinuousLaw(NamedTuple):
    """The differing user holds a under Q and b under P, the others all hold ``others``.

    If that is None they hold anything, and the background is what all inputs share: the blanket.
    """

    noise: ContinuousNoise
    a: int
    b: int
    others: int | None

    @property
    def loss(self) -> float:
        """The largest privacy loss."""
        return self.noise.largest_loss(self.a, self.b)

    def among(self, n: int) -> ContinuousPair:
        """Return the divergence of P from Q among n users."""

        def pair_at(fineness: int, reach: float) -> CellPair:
            pair = self.a, self.b
            if self.others is not None:
                cells = self.noise.cells((*pair, self.others), fineness, reach)
                return CellPair(cells, n, revealed=0.0)
            cells = self.noise.shared_cells(pair, fineness, reach)
            # of terms >= 0: one minus the sum of the blanket would cancel
            revealed = (np.exp(cells.log_masses[0]) - np.exp(cells.log_masses[2])).sum()
            return CellPair(cells, n, revealed=float(revealed))

        return ContinuousPair(pair_at, self.loss)
