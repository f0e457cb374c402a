"""The largest of many curves, of which only those are evaluated that can be it."""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np

from fastshuffle._background import BackgroundPair, without_least
from fastshuffle._continuous import ContinuousLaw, ContinuousPair
from fastshuffle._positive_part import Bracket
from fastshuffle._typing import FloatArray
from fastshuffle.bracket import Curve

# Beyond this epsilon exp(epsilon) nears the end of a double; a bound at this one holds there too.
_LARGEST_EPSILON = 700.0
# Newton's method ends where the logarithm of the bound is this close to its minimum.
_CLOSE = 1e-4
_MOST_STEPS = 60
_EPS = float(np.finfo(np.float64).eps)


class HomogeneousLaw(NamedTuple):
    """The laws of a message: of the others, of the differing user under P and under Q.

    See `fastshuffle._background.BackgroundPair` for its parts.
    """

    background: FloatArray
    alternative: FloatArray
    null: FloatArray
    revealed: float
    loss: float
    losses: FloatArray

    def among(self, n: int) -> BackgroundPair:
        """Return the divergence of P from Q among n users."""
        return BackgroundPair(
            self.background,
            self.alternative,
            self.null,
            n=n,
            losses=self.losses,
            revealed=self.revealed,
            loss=self.loss,
        )


Law: TypeAlias = HomogeneousLaw | ContinuousLaw
Pair: TypeAlias = BackgroundPair | ContinuousPair


class ChernoffBounds:
    """Chernoff bounds of the divergences of many homogeneous laws, all at once.

    With S the sum of n independent ratios r, as in `fastshuffle._background.BackgroundPair`,

        delta(epsilon) <= E exp(s S - 1) / (s n) + the mass outside the background

    for every s > 0, since ``(x)_+ <= exp(s x - 1) / s``. Its logarithm is convex in s: bracketed
    Newton steps, from where the best s would be for a normal S, find the minimum, and the bound
    holds wherever they end.
    """

    def __init__(self, laws: Sequence[HomogeneousLaw], n: int) -> None:
        self._n = float(n)
        sizes = [law.background.size for law in laws]
        self._first = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.intp)
        self._sizes = np.array(sizes)
        self._background = without_least(np.concatenate([law.background for law in laws]))
        self._alternative = np.concatenate([law.alternative for law in laws])
        self._null = without_least(np.concatenate([law.null for law in laws]))
        self._loss = np.array([law.loss for law in laws])
        # the rows of a matrix sum to 1 but for rounding: the law of a message never to less
        revealed = np.array([law.revealed for law in laws])
        self._revealed = np.maximum(revealed, 1.0 - self._sum(self._background))

    def _sum(self, values: FloatArray) -> FloatArray:
        return np.add.reduceat(values, self._first)

    def _largest(self, values: FloatArray) -> FloatArray:
        return np.maximum.reduceat(values, self._first)

    def at(self, epsilon: float) -> FloatArray:
        """Return an upper bound of log delta for each law, inf where numbers overflow."""
        growth = math.exp(min(epsilon, _LARGEST_EPSILON))
        # no lower than the difference of the rounded numbers may be
        size = self._alternative + growth * self._null
        excess = (self._alternative - growth * self._null) + 4.0 * _EPS * size
        inside = self._background > 0.0
        clear = self._sum(np.where(inside, 0.0, np.maximum(excess, 0.0)))
        excess[~inside] = 0.0
        # an overflow or a division by 0 ends as nan or inf, where nothing is claimed
        with np.errstate(all="ignore"):
            values = np.where(inside, excess / self._background, 0.0)
            tilts = self._tilts(values, excess)
            steps = np.repeat(tilts, self._sizes) * values
            log_mean = self._log_mean(steps)
            log_bound = self._n * log_mean - 1.0 - np.log(tilts) - math.log(self._n)
            # the rounding of the sums and of their logarithm
            share = tilts * self._sum(np.where(inside, size, 0.0))
            share += np.where(self._largest(np.abs(steps)) < 0.5, 0.0, 1.0)
            log_bound += _EPS * (self._n * (8.0 + self._sizes) * share + 4.0 * np.abs(log_bound))
            log_bound[self._largest(excess) <= 0.0] = -math.inf
            log_bound = np.logaddexp(log_bound, np.log(clear)) + 1e-9
        log_bound[np.isnan(log_bound)] = math.inf
        log_bound[(epsilon >= self._loss) & (self._loss < math.inf)] = -math.inf
        return log_bound

    def _tilts(self, values: FloatArray, excess: FloatArray) -> FloatArray:
        n = self._n
        slope, square = self._sum(excess), self._sum(excess * values)
        # the larger root of n slope s + n square s**2 = 1, in the form that does not cancel
        root = np.sqrt(slope * slope + 4.0 * square / n)
        tilts = np.where(slope > 0.0, 2.0 / (n * (slope + root)), (root - slope) / (2.0 * square))
        low, high = np.zeros_like(tilts), np.full_like(tilts, math.inf)
        for _ in range(_MOST_STEPS):
            steps = np.repeat(tilts, self._sizes) * values
            top = np.maximum(self._largest(steps), 0.0)
            weights = self._background * np.exp(steps - np.repeat(top, self._sizes))
            revealed = self._revealed * np.exp(-top)
            total = self._sum(weights) + revealed
            mean = self._sum(weights * values) / total
            deviations = values - np.repeat(mean, self._sizes)
            variance = (self._sum(weights * deviations**2) + revealed * mean**2) / total
            # the logarithm of the bound is convex in the tilt
            slope = n * mean - 1.0 / tilts
            low, high = np.where(slope < 0.0, tilts, low), np.where(slope > 0.0, tilts, high)
            step = -slope / (n * variance + 1.0 / (tilts * tilts))
            decrement = -slope * step
            newton = tilts + step
            middle = np.where(high == math.inf, 5.0 * tilts, np.sqrt(low * high))
            middle = np.where(low == 0.0, 0.2 * tilts, middle)
            near = (decrement < 1.0) & (low < newton) & (newton < high)
            open_still = decrement > _CLOSE
            if not open_still.any():
                break
            tilts = np.where(open_still, np.where(near, newton, middle), tilts)
        return tilts

    def _log_mean(self, steps: FloatArray) -> FloatArray:
        """Return log E exp(step): by its excess over 1 where all steps are small."""
        small = np.log1p(self._sum(self._background * np.expm1(steps)))
        top = np.maximum(self._largest(steps), 0.0)
        scaled = self._background * np.exp(steps - np.repeat(top, self._sizes))
        large = top + np.log(self._sum(scaled) + self._revealed * np.exp(-top))
        return np.where(self._largest(np.abs(steps)) < 0.5, small, large)


class ChernoffCurves:
    """Chernoff bounds of laws that have no finite list of values, one by one."""

    def __init__(self, curves: Sequence[Curve]) -> None:
        self._curves = curves

    def at(self, epsilon: float) -> FloatArray:
        """Return an upper bound of log delta for each law."""
        return np.array([curve.at(epsilon).upper for curve in self._curves])


class LargestCurve:
    """The pointwise largest upper end of the curves of some homogeneous laws.

    The value of a law is the smaller of the upper end of its curve and of its Chernoff bound. So a
    law whose Chernoff bound is no larger than the value of another cannot be the largest, and what
    is left out changes no result.
    """

    def __init__(self, laws: Sequence[Law], n: int, curve_of: Callable[[Pair], Curve]) -> None:
        pairs = [law.among(n) for law in laws]
        self._curves = [curve_of(pair) for pair in pairs]
        finite = [law for law in laws if isinstance(law, HomogeneousLaw)]
        self._chernoff: ChernoffBounds | ChernoffCurves = (
            ChernoffBounds(finite, n)
            if len(finite) == len(laws)
            else ChernoffCurves([pair.chernoff_curve() for pair in pairs])
        )

    def at(self, epsilon: float) -> tuple[float, int]:
        """Return the largest upper end of log delta, and the place of its law."""
        chernoff = self._chernoff.at(epsilon)
        best, place = -math.inf, 0
        for i in np.argsort(-chernoff, kind="stable").tolist():
            if chernoff[i] <= best:
                break
            value = min(self._curves[i].at(epsilon).upper, float(chernoff[i]))
            if value > best:
                best, place = value, i
        return best, place

    def curve(self) -> Curve:
        """Return the curve of the largest upper end; the true delta may be anything up to it.

        It remembers its last values: both directions of a profile may be the same curve.
        """
        at = lru_cache(maxsize=256)(self.at)
        return Curve(
            lambda epsilon: Bracket(-math.inf, at(epsilon)[0]),
            max(curve.loss for curve in self._curves),
            max(curve.rtol for curve in self._curves),
        )
