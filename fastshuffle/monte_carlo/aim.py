"""Where a simulation draws: a ladder of exponential tilts of P, from epsilon 0 to the target.

The samples come from the mixture of the tilts, each the best one for the losses above its epsilon
(`fastshuffle.monte_carlo.half_spaces`), and are weighted against the whole mixture. Where the
half-spaces are proved, so is a bound of the size of delta on every weighted term. Where they are
only likely, the first tilt is none, so that a term is at most the number of tilts: that is enough
for bounds on large deltas. What lies above small ones is proved without samples: the bounds of
`fastshuffle.exact.revealing`, which hide the messages of some of the others in their common part,
and, where some hold the inputs of the pair, the largest term of the tilt for them alone, a Chernoff
bound of a delta of fewer users.

Any two machines build the same ladder, since nothing here depends on the caller's random numbers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from fastshuffle._typing import FloatArray
from fastshuffle.exact.revealing import hidden_curves
from fastshuffle.monte_carlo.drawing import draw, pilot_generator, pilot_size
from fastshuffle.monte_carlo.half_spaces import half_spaces, tilt_at
from fastshuffle.monte_carlo.pair import PairLaws

# Steps of the ladder, in units of log delta, and how many there are at most.
_LADDER_STEP = 2.3
_MOST_STEPS = 12
# The grid of epsilons reaches this far beyond the target, and has so many points in either part.
_MARGIN = 3.0
_GRID = 64
# The epsilons at which ceilings are found.
_CEILINGS = 32
_CEILING_RTOL = 1e-2
_FARTHEST = 300.0
_NEAREST = 1e-9
# Units are at most this far below the target, so that no term overflows.
_MOST_BELOW = 30.0
# And so far below the largest term: the sums of its square are to be whole multiples of 2**-80.
_MOST_APART = 300.0
_MOST_STEPS_TO_LEVEL = 60
_DEFAULT_LOG_DELTA = math.log(1e-6)
# Stands for a ceiling of 0: below every delta that can be aimed at.
_LEAST_CEILING = -800.0


@dataclass(frozen=True)
class Aim:
    """The mixture that one direction is drawn from, and the epsilons it is summed at.

    Attributes
    ----------
    epsilons : array, shape (n_epsilons,)
        Increasing.
    log_units : array, shape (n_epsilons,)
        The log of the unit of the sums at each epsilon: about the largest weighted term of delta.
    log_limits : array, shape (n_epsilons,)
        The log of a proved bound on every weighted term at each epsilon.
    log_ceilings : array, shape (n_epsilons,)
        The log of a proved bound on delta itself; 0 where there is none but 1.
    tilts : array, shape (n_tilts, n_outputs + 1)
        ``theta s`` and last the log of the weight in the mixture minus K.
    target : float
        The epsilon of the last tilt.
    """

    epsilons: FloatArray
    log_units: FloatArray
    log_limits: FloatArray
    log_ceilings: FloatArray
    tilts: FloatArray
    target: float

    def to_dict(self) -> dict[str, Any]:
        """Return the aim in plain Python values, ready for JSON."""
        return {
            "epsilons": self.epsilons.tolist(),
            "log_units": self.log_units.tolist(),
            "log_limits": self.log_limits.tolist(),
            "log_ceilings": self.log_ceilings.tolist(),
            "tilts": self.tilts.tolist(),
            "target": self.target,
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any], n_outputs: int) -> Self:
        """Return the aim that `to_dict` describes; a ValueError if it is none for n_outputs."""
        names = ("epsilons", "log_units", "log_limits", "log_ceilings", "tilts")
        arrays = [np.array(content[name], dtype=np.float64) for name in names]
        epsilons, units, limits, ceilings, tilts = arrays
        target = float(content["target"])
        fits = (
            epsilons.ndim == 1
            and epsilons.size > 0
            and epsilons.shape == units.shape == limits.shape == ceilings.shape
            and tilts.ndim == 2
            and tilts.shape[0] > 0
            and tilts.shape[1] == n_outputs + 1
        )
        if not fits or not all(np.isfinite(array).all() for array in arrays):
            raise ValueError("no aim")
        if epsilons[0] < 0.0 or (np.diff(epsilons) <= 0.0).any() or not 0.0 <= target < math.inf:
            raise ValueError("no aim")
        return cls(epsilons, units, limits, ceilings, tilts, target)


class _Levels:
    """The log of the bound on delta as a function of epsilon, and its inverse."""

    def __init__(self, laws: PairLaws) -> None:
        self._laws = laws
        self._known: dict[float, float] = {}

    def at(self, epsilon: float) -> float:
        if epsilon not in self._known:
            tilt = tilt_at(self._laws, epsilon)
            self._known[epsilon] = math.log(self._laws.share) + tilt.log_bound
        return self._known[epsilon]

    def epsilon(self, level: float) -> float:
        """Return about where the bound is at this level; a twentieth of a unit will do."""
        low, high = 0.0, _nearest_to(self._laws.drawn_loss)
        if self.at(0.0) <= level:
            return 0.0
        if high < math.inf and self.at(high) >= level:
            return high
        epsilon = min(0.5 * high, 2.0 * math.exp(min(self.at(0.0), 0.0)))
        for _ in range(_MOST_STEPS_TO_LEVEL):
            value = self.at(epsilon)
            if abs(value - level) <= 0.05:
                break
            if value > level:
                low = epsilon
            else:
                high = epsilon
            if high == math.inf and (epsilon > _FARTHEST or self._is_flat(epsilon)):
                break
            epsilon = min(2.0 * epsilon, 0.5 * (low + high))
        return epsilon

    def _is_flat(self, epsilon: float) -> bool:
        # only histograms of infinite loss are left
        return epsilon > 1.0 and self.at(0.5 * epsilon) - self.at(epsilon) < 0.1

    def between(self, levels: FloatArray) -> list[float]:
        """Return roughly where the bound is at these levels, from what is known by now."""
        epsilons = np.array(sorted(self._known))
        values = np.minimum.accumulate([self._known[epsilon] for epsilon in epsilons.tolist()])
        return np.interp(-levels, -values, epsilons).tolist()


class _Ceiling:
    """Proved bounds on delta that need no samples, because some messages are revealed."""

    def __init__(self, laws: PairLaws) -> None:
        a, b = laws.experiment.pair if laws.side == "forward" else laws.experiment.pair[::-1]
        self._curves = hidden_curves(laws.experiment, (a, b), _CEILING_RTOL)
        self._of_pair = laws.of_pair()

    def beyond(self, level: float, end: float) -> FloatArray:
        """Return epsilons beyond the end, up to where some bound is at the level."""
        ends = [curve.epsilon(level - 0.1) for curve in self._curves]
        if self._of_pair is not None and not self._of_pair.trivial:
            ends.append(_Levels(self._of_pair).epsilon(level - 0.1))
        nearest = min((e for e in ends if e > end), default=end)
        if not end < nearest < math.inf:
            return np.empty(0)
        return np.linspace(end, nearest, _CEILINGS // 2 + 1)[1:]

    def over(self, grid: FloatArray) -> FloatArray:
        """Return the log of a bound on delta at each epsilon, found at some of them."""
        ceilings = np.zeros(len(grid))
        some = np.linspace(0, len(grid) - 1, _CEILINGS).astype(int)
        last = np.arange(max(0, len(grid) - _CEILINGS), len(grid))
        for at in np.union1d(some, last).tolist():
            epsilon = float(grid[at])
            bounds = [ceilings[at], *(curve.at(epsilon).upper for curve in self._curves)]
            if self._of_pair is not None:
                bounds.append(self._chernoff(self._of_pair, epsilon))
            ceilings[at:] = max(min(bounds), _LEAST_CEILING)
        return ceilings

    @staticmethod
    def _chernoff(part: PairLaws, epsilon: float) -> float:
        clear = float(part.clear(np.array([epsilon]))[0])
        if not part.trivial and epsilon < part.drawn_loss:
            clear += part.share * math.exp(min(0.0, tilt_at(part, epsilon).log_bound))
        return math.log(clear) if clear > 0.0 else _LEAST_CEILING


def _nearest_to(loss: float) -> float:
    """Return the largest epsilon that is told apart from a loss, whose rounding is far smaller."""
    return loss * (1.0 - _NEAREST)


def take_aim(
    laws: PairLaws,
    *,
    target_epsilon: float | None,
    target_delta: float | None,
    epsilons: FloatArray | None,
) -> Aim:
    """Return where to draw for a target.

    Without one it is the largest epsilon asked for, or a delta of 1e-6, where half-spaces are
    proved; elsewhere P itself is drawn.
    """
    no_tilt = np.zeros((1, len(laws.own) + 1))
    if laws.trivial:
        grid = np.unique(np.linspace(0.0, min(laws.loss, 50.0), _GRID))
        zeros = np.zeros(len(grid))
        return Aim(grid, zeros, zeros, zeros, no_tilt, 0.0)
    proved = bool(half_spaces(laws, 0.0))
    targeted = target_epsilon is not None or target_delta is not None
    if not proved and not targeted:
        grid = _grid(laws, epsilons, _largest_drawn(laws), ())
        plain = _plain_limits(laws, grid)
        return Aim(grid, plain, plain, _Ceiling(laws).over(grid), no_tilt, float(grid[-1]))
    if not targeted and epsilons is not None:
        target_epsilon = float(epsilons.max(initial=0.0))
    levels = _Levels(laws)
    top = levels.at(0.0)
    if target_epsilon is not None and target_epsilon < min(_nearest_to(laws.drawn_loss), _FARTHEST):
        target, bottom = target_epsilon, levels.at(target_epsilon)
    else:
        bottom = _DEFAULT_LOG_DELTA if target_delta is None else math.log(target_delta)
        target = levels.epsilon(bottom)
    end = levels.epsilon(min(bottom, top) - _MARGIN)
    steps = min(_MOST_STEPS, 1 + max(0, math.ceil((top - bottom) / _LADDER_STEP)))
    inner = levels.between(np.linspace(top, bottom, steps)[1:-1])
    ladder = sorted({0.0, *inner, target})
    grid = _grid(laws, epsilons, max(end, target), ladder[-2:])
    ceiling = None if proved else _Ceiling(laws)
    if ceiling is not None and epsilons is None:
        beyond = ceiling.beyond(bottom, float(grid[-1]))
        grid = np.append(grid, beyond[beyond < _nearest_to(laws.drawn_loss)])
    log_size = math.log(len(ladder))
    log_units = np.full(len(grid), math.inf) if proved else _plain_limits(laws, grid) + log_size
    log_limits = log_units.copy()
    rows = []
    for epsilon in ladder:
        tilt = tilt_at(laws, epsilon)
        if proved or epsilon > 0.0:
            rows.append([*tilt.exponents.tolist(), -tilt.log_normalizer - log_size])
        else:
            rows.append([0.0] * len(laws.own) + [-log_size])
        reached = grid >= epsilon
        log_units[reached] = np.minimum(log_units[reached], tilt.log_bound + log_size)
    if proved:
        log_limits = log_units
    else:  # a likely bound may be far too small
        least = np.maximum(min(bottom, top) - _MOST_BELOW, log_limits - _MOST_APART)
        log_units = np.maximum(log_units, least)
    log_ceilings = np.zeros(len(grid)) if ceiling is None else ceiling.over(grid)
    return Aim(grid, log_units, log_limits, log_ceilings, np.array(rows), target)


def _plain_limits(laws: PairLaws, grid: FloatArray) -> FloatArray:
    """Return the log of the largest term without a weight, 1 - exp(epsilon - L)."""
    return np.log(-np.expm1(grid - laws.drawn_loss))


def _largest_drawn(laws: PairLaws) -> float:
    """Return an epsilon that few samples of P exceed, if any."""
    no_tilt = np.zeros(len(laws.own))
    histograms = draw(laws, no_tilt, pilot_size(laws), pilot_generator())
    losses = laws.losses(histograms)
    largest = float(losses[np.isfinite(losses)].max(initial=0.0))
    return min(1.5 * largest, laws.drawn_loss) if largest > 0.0 else min(laws.drawn_loss, 1.0)


def _grid(
    laws: PairLaws, epsilons: FloatArray | None, end: float, ladder: Sequence[float]
) -> FloatArray:
    """Return the epsilons that are summed: those asked for, or a grid dense at the target."""
    if epsilons is not None:
        asked = np.unique(epsilons[epsilons < laws.drawn_loss])
        return asked if len(asked) else np.zeros(1)
    start = ladder[0] if ladder else 0.0
    dense = np.linspace(start, end, _GRID)
    # an infinite loss is still seen where no other is
    far = [_FARTHEST] if laws.drawn_loss == math.inf else []
    grid = np.unique(np.concatenate((np.linspace(0.0, end, _GRID), ladder, dense, far)))
    return grid[grid < laws.drawn_loss]
