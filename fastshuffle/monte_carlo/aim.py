"""Where a simulation draws: exponential tilts of P, and a proof of how large a weight can be.

A half-space ``{N : s . N >= c}`` contains all histograms of privacy loss above epsilon. Tilting the
law of every message by ``exp(theta s)`` makes the likelihood ratio of P against the tilted law a
function of s . N alone, ``exp(K - theta s . N)``, so that a weight is at most ``exp(K - theta c)``
wherever it counts: it has the size of the probability itself. With f = 1 - exp(epsilon - L), the
half-spaces found here satisfy even

    s . N >= c + g f(N)    for all N with L(N) > epsilon,

and so the term ``exp(K - theta s . N) f`` of delta is at most ``exp(K - theta c) / (e theta g)``.
That is within a small factor of delta, and the tilt that makes it smallest is the one to use.

The half-spaces, for the others at a single input z with ratio r = (W_b - exp(epsilon) W_a) / W_z:

- ``s = r, c = 0``, exactly, since ``P - exp(epsilon) Q`` is proportional to ``sum_y N_y r_y``.

For k of the others at b and the rest at a, with w = W_b / W_a and e_k the elementary symmetric
polynomial of the ratios of the messages, exp(L) is ``((k + 1) / (n - k)) e_{k+1} / e_k``:

- ``s = w / (C + w), c = k + 1 / (k + 2)`` with ``C = exp(epsilon) (n - k) / (k + 1)``: the ratio
  is C times that of the masses of k + 1 and k of independent trials with probabilities s, so
  L > epsilon if and only if the mass of k + 1 is the larger, and then the mode, which by Darroch
  [1]_ is near the mean, is above k. Raising epsilon to L lowers each s by f s (1 - s) at least.
- ``s = w, c = n exp(epsilon)``: by Newton's inequalities exp(L) is at most the mean of w.
- ``s = -1 / w, c = -(n - j) exp(-epsilon) - j max(1 / w)``, j = n - 1 - k, from
  ``(j + 1) e_{j+1} >= e_j (sum 1 / w - j max(1 / w))`` in the variables 1 / w.

The second is sharp for small k, the third for large k, the first in between.

A simulation draws from a mixture of such tilts for a ladder of epsilons from 0 to the target, and
weights against the mixture. Any two machines build the same ladder, since nothing here depends on
the caller's random numbers.

References
----------
.. [1] J. N. Darroch, "On the distribution of the number of successes in independent trials",
   Annals of Mathematical Statistics 35 (1964) 1317-1321.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from fastshuffle._typing import FloatArray
from fastshuffle._validation import UnsupportedSettingError
from fastshuffle.monte_carlo.drawing import draw, pilot_generator
from fastshuffle.monte_carlo.pair import PairLaws

# Steps of the ladder, in units of log delta, and how many there are at most.
_LADDER_STEP = 2.3
_MOST_STEPS = 12
# The grid of epsilons reaches this far beyond the target, and has so many points in either part.
_MARGIN = 3.0
_GRID = 64
_LARGEST_EXPONENT = 600.0
_FARTHEST = 300.0
_BISECTIONS = 24
_MOST_STEPS_TO_LEVEL = 60
_DEFAULT_LOG_DELTA = math.log(1e-6)
_PILOT = 2048


class HalfSpace(NamedTuple):
    """Scores, threshold and gain of a half-space; see the head of this module."""

    scores: FloatArray
    threshold: float
    gain: float


class Tilt(NamedTuple):
    """An exponential tilt: ``theta s`` for each output, K, and the log of the largest term."""

    exponents: FloatArray
    log_normalizer: float
    log_bound: float


@dataclass(frozen=True)
class Aim:
    """The mixture that one direction is drawn from, and the epsilons it is summed at.

    Attributes
    ----------
    epsilons : array, shape (n_epsilons,)
        Increasing.
    log_units : array, shape (n_epsilons,)
        The log of a proved bound on every weighted term of delta at each epsilon.
    tilts : array, shape (n_tilts, n_outputs + 1)
        ``theta s`` and last the log of the weight in the mixture minus K.
    target : float
        The epsilon of the last tilt.
    """

    epsilons: FloatArray
    log_units: FloatArray
    tilts: FloatArray
    target: float

    def to_dict(self) -> dict[str, Any]:
        """Return the aim in plain Python values, ready for JSON."""
        return {
            "epsilons": self.epsilons.tolist(),
            "log_units": self.log_units.tolist(),
            "tilts": self.tilts.tolist(),
            "target": self.target,
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Self:
        """Return the aim that `to_dict` describes."""
        return cls(
            epsilons=np.array(content["epsilons"]),
            log_units=np.array(content["log_units"]),
            tilts=np.array(content["tilts"]),
            target=float(content["target"]),
        )


def half_spaces(laws: PairLaws, epsilon: float) -> list[HalfSpace]:
    """Return half-spaces that contain every drawn histogram of loss above epsilon, if any."""
    n = laws.n
    factor = math.exp(epsilon)
    own, opposite = laws.own, laws.opposite
    if len(laws.held) == 1:
        beta, alpha = laws.ratios.T
        gain = n * max(float(beta.min()), factor * float(alpha.min()))
        return [HalfSpace(beta - factor * alpha, 0.0, gain)]
    at = {
        name: [count for count, held in laws.held if (held == row).all()]
        for name, row in (("own", own), ("opposite", opposite))
    }
    if len(laws.held) != 2 or not at["own"] or not at["opposite"]:
        return []
    k, j = at["own"][0], at["opposite"][0]
    found = []
    # w / (C + w) without the ratio itself, which may be infinite
    ones = (k + 1.0) * own
    zeros = factor * (j + 1.0) * opposite
    scores = ones / (ones + zeros)
    spread = float((scores * (zeros / (ones + zeros))).min())
    found.append(HalfSpace(scores, k + 1.0 / (k + 2.0), n * spread))
    if opposite.all():
        found.append(HalfSpace(own / opposite, n * factor, n * factor))
    if own.all():
        inverse = opposite / own
        left = (n - j) / factor
        found.append(HalfSpace(-inverse, -left - j * float(inverse.max()), left))
    return found


def _tilted_sums(
    theta: float, scores: FloatArray, groups: list[tuple[int, FloatArray]]
) -> tuple[float, float]:
    """Return K, the log of the mean of exp(theta s . N), and its derivative."""
    total, slope = 0.0, 0.0
    growth, factors = np.expm1(theta * scores), np.exp(theta * scores)
    for count, row in groups:
        excess = float(row @ growth)
        mean = float(row @ factors)
        total += count * (math.log1p(excess) if excess > -0.5 else math.log(mean))
        slope += count * float(row @ (scores * factors)) / mean
    return total, slope


def best_tilt(laws: PairLaws, half_space: HalfSpace) -> Tilt:
    """Return the tilt along a half-space whose largest term is smallest."""
    scores, threshold, gain = half_space
    mean = float(sum(count * (row @ scores) for count, row in laws.groups)) / laws.n
    scores = scores - mean
    threshold -= laws.n * mean
    spread = float(np.abs(scores).max())
    if spread == 0.0:
        return Tilt(scores, 0.0, 0.0)

    def largest_term(theta: float) -> tuple[float, float]:
        # of exp(-theta g f) f for f in [0, 1]: the log and its derivative
        if theta * gain >= 1.0:
            return -1.0 - math.log(theta * gain), -1.0 / theta
        return -theta * gain, -gain

    low, high = math.log(1e-14 / spread), math.log(_LARGEST_EXPONENT / spread)
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        theta = math.exp(middle)
        slope = _tilted_sums(theta, scores, laws.groups)[1] - threshold
        if slope + largest_term(theta)[1] < 0.0:
            low = middle
        else:
            high = middle
    theta = math.exp(0.5 * (low + high))
    log_normalizer = _tilted_sums(theta, scores, laws.groups)[0]
    log_bound = log_normalizer - theta * threshold + largest_term(theta)[0]
    return Tilt(theta * scores, log_normalizer, log_bound)


def tilt_at(laws: PairLaws, epsilon: float) -> Tilt:
    """Return the tilt for the losses above epsilon with the smallest bound."""
    tilts = [best_tilt(laws, half_space) for half_space in half_spaces(laws, epsilon)]
    return min(tilts, key=lambda tilt: tilt.log_bound)


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
        low, high = 0.0, self._laws.drawn_loss
        if self.at(0.0) <= level:
            return 0.0
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


def take_aim(
    laws: PairLaws,
    *,
    target_epsilon: float | None,
    target_delta: float | None,
    epsilons: FloatArray | None,
) -> Aim:
    """Return where to draw for a target; without one for a delta of 1e-6, or from P itself.

    Raises
    ------
    UnsupportedSettingError
        If there is a target and no half-space is known.
    """
    if laws.trivial:
        grid = np.unique(np.linspace(0.0, min(laws.loss, 50.0), _GRID))
        return Aim(grid, np.zeros(len(grid)), np.zeros((1, len(laws.own) + 1)), 0.0)
    if not half_spaces(laws, 0.0):
        if target_epsilon is not None or target_delta is not None:
            raise UnsupportedSettingError(
                "target_epsilon and target_delta need a proved bound on the weights, which is "
                "known where the others hold a single input or the two inputs of the pair; got "
                f"others at {len(laws.held)} inputs with different rows. Without a target the law "
                "itself is drawn"
            )
        return _plain(laws, epsilons)
    levels = _Levels(laws)
    top = levels.at(0.0)
    if target_epsilon is None and target_delta is None and epsilons is not None:
        target_epsilon = float(epsilons.max(initial=0.0))
    if target_epsilon is not None and target_epsilon < min(laws.drawn_loss, _FARTHEST):
        target, bottom = target_epsilon, levels.at(target_epsilon)
    else:
        bottom = _DEFAULT_LOG_DELTA if target_delta is None else math.log(target_delta)
        target = levels.epsilon(bottom)
    end = levels.epsilon(min(bottom, top) - _MARGIN)
    steps = min(_MOST_STEPS, 1 + max(0, math.ceil((top - bottom) / _LADDER_STEP)))
    inner = levels.between(np.linspace(top, bottom, steps)[1:-1])
    ladder = sorted({0.0, *inner, target})
    grid = _grid(laws, epsilons, max(end, target), ladder[-2:])
    log_units = np.full(len(grid), math.inf)
    tilts = []
    log_size = math.log(len(ladder))
    for epsilon in ladder:
        tilt = tilt_at(laws, epsilon)
        tilts.append([*tilt.exponents.tolist(), -tilt.log_normalizer - log_size])
        reached = grid >= epsilon
        log_units[reached] = np.minimum(log_units[reached], tilt.log_bound + log_size)
    return Aim(grid, log_units, np.array(tilts), target)


def _plain(laws: PairLaws, epsilons: FloatArray | None) -> Aim:
    """Return the aim without tilts: the terms of delta are 1 - exp(epsilon - L) themselves."""
    histograms = draw(laws, np.zeros(len(laws.own)), _PILOT, pilot_generator())
    largest = float(np.maximum(laws.losses(histograms), 0.0).max())
    end = min(1.5 * largest, laws.drawn_loss) if largest > 0.0 else min(laws.drawn_loss, 1.0)
    grid = _grid(laws, epsilons, end, ())
    return Aim(
        grid,
        np.log(-np.expm1(grid - laws.drawn_loss)),
        np.zeros((1, len(laws.own) + 1)),
        float(grid[-1]),
    )


def _grid(
    laws: PairLaws, epsilons: FloatArray | None, end: float, ladder: Sequence[float]
) -> FloatArray:
    """Return the epsilons that are summed: those asked for, or a grid dense at the target."""
    if epsilons is not None:
        asked = np.unique(epsilons[epsilons < laws.drawn_loss])
        return asked if len(asked) else np.zeros(1)
    start = ladder[0] if ladder else 0.0
    dense = np.linspace(start, end, _GRID)
    grid = np.unique(np.concatenate((np.linspace(0.0, end, _GRID), ladder, dense)))
    return grid[grid < laws.drawn_loss]
