"""One direction of a composition: a bracket of log delta, refined until it is narrow enough."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fastshuffle._positive_part import Bracket
from fastshuffle._typing import Direction, FloatArray
from fastshuffle.composition._pair import Atoms, Nodes, atoms_above, atoms_below
from fastshuffle.composition._sums import (
    Summand,
    Tail,
    TooLongSumError,
    falling,
    indicator,
    largest_sum,
    rising,
    tail_mean,
    tilt_to,
)
from fastshuffle.profile import PrivacyProfile, Validity

# Steps per standard deviation of a loss at first, steps until they widen, and how often halved.
_FIRST_STEPS = 8.0
_EVEN_STEPS = 24
_MOST_HALVINGS = 7
# Doublings of the first step where so many rounds need a coarse one.
_MOST_DOUBLINGS = 20
# Logarithms of the delta at which the nodes end, relative to the answer.
_FIRST_DEPTH = -40.0
_DEEPEST = -690.0
# A positive delta below this is known as one of at most this size.
_SMALLEST = 1e-300
# Halvings after which a lower end of 0 will stay one.
_HOPELESS = 3
# A loss of more steps is too far out to matter.
_LARGEST_ALIGNED = 1e4
# Places of the lower end to a step, since its losses are not on the nodes.
_FINER = 4.0
# exp of a larger loss nears the end of a double: what is beyond has the loss inf.
_LARGEST_LOSS = 690.0
_LARGEST_NODE = 700.0
# A step of so many bits, so that its multiples are exact to 2**23 of them.
_STEP_BITS = 30


class _Grid(NamedTuple):
    """The pairs of all sources on one grid: above, below the given curves, and below the truth."""

    step: float
    above: list[Atoms]
    below: list[Atoms]
    proved: list[Atoms]


class Source(NamedTuple):
    """A profile that is composed: its copies, and whether its lower ends are those of the pair."""

    profile: PrivacyProfile
    copies: float
    has_lower: bool


class ComposedCurve:
    """The divergence of one direction of a product of pairs, each with the curves of a profile.

    ``forward`` and ``reverse`` say which curve of the profiles bounds this direction and which the
    other; both may be "both", which covers pairs of either orientation.
    """

    def __init__(
        self, sources: Sequence[Source], forward: Direction, reverse: Direction, rtol: float
    ) -> None:
        self._sources = sources
        self._sides = (forward, reverse)
        self._rtol = rtol
        # whether the two ends of the given curves are one but for rounding
        self._sharp = all(
            s.profile.validity is Validity.EXACT or not s.has_lower or forward == "both"
            for s in sources
        )
        self._values: dict[tuple[int, Direction, float], tuple[float, float]] = {}
        self._grids: dict[tuple[float, int], _Grid] = {}
        self._ends: dict[tuple[int, Direction, float], float] = {}
        self.infinite = -math.expm1(
            sum(s.copies * _log_rest(self._at_infinity(i)[1]) for i, s in enumerate(sources))
        )
        self._floor = -math.expm1(
            sum(s.copies * _log_rest(self._at_infinity(i)[0]) for i, s in enumerate(sources))
        )
        self._scale = self._first_scale()
        self._first_step = self._aligned(self._scale / _FIRST_STEPS)
        self._halvings = 0  # that were enough the last time
        self._remembered: dict[float, Bracket] = {}

    @property
    def loss(self) -> float:
        """The largest privacy loss: delta is 0 from there on."""
        impossible = np.array([-math.inf])
        losses = [
            source.copies * float(source.profile._epsilon(impossible, self._sides[0])[0])
            for source in self._sources
        ]
        return sum(losses) * (1.0 + 1e-14)

    def at(self, epsilon: float) -> Bracket:
        """Return the bracket of log delta at epsilon."""
        if epsilon not in self._remembered:
            self._remembered[epsilon] = self._at(epsilon)
        return self._remembered[epsilon]

    def _at(self, epsilon: float) -> Bracket:
        if epsilon == math.inf:
            return Bracket(_log(self._floor), _log(self.infinite))
        if sum(source.copies for source in self._sources) == 1.0:
            low, high = self._values_at(0, self._sides[0], np.array([epsilon]))
            return Bracket(float(low[0]), float(high[0]))
        if self._scale == 0.0:  # the two datasets are the same
            return Bracket(-math.inf, -math.inf)
        best, proved = Bracket(-math.inf, 0.0), -math.inf
        depth = _FIRST_DEPTH
        halvings, idle, last_gap = self._halvings, 0, math.inf
        finished: int | None = None
        while True:
            try:
                grid = self._grid(depth, halvings)
                upper, cut = self._upper(grid.above, grid.step, epsilon)
                best = Bracket(best.lower, min(best.upper, upper))
                lower = self._lower(grid.below, grid.step / _FINER, epsilon)
                if grid.proved is not grid.below:
                    proved = max(proved, self._lower(grid.proved, grid.step / _FINER, epsilon))
            except TooLongSumError:
                if finished is None and halvings > -_MOST_DOUBLINGS:
                    halvings -= 1
                elif finished is not None and halvings - finished > 1:
                    halvings = (halvings + finished + 1) // 2
                else:
                    break
                continue
            best = Bracket(max(best.lower, lower), best.upper)
            gap = best.upper - best.lower
            if gap <= self._rtol or best.upper == -math.inf:
                self._halvings = halvings
                break
            if cut > 0.1 * self._rtol and depth > _DEEPEST:
                depth = max(_DEEPEST, min(2.0 * depth, depth + _log(cut) - 2.0))
                continue
            if best.lower == -math.inf and halvings >= _HOPELESS:
                break
            # few multiples of some losses let the gap fall in jumps, as the grid meets them
            idle = idle + 1 if gap > 0.8 * last_gap < math.inf else 0
            if halvings == _MOST_HALVINGS or idle > 2:
                break
            # otherwise both ends are of second order in the step
            finished, last_gap = halvings, gap
            more = 1 if gap == math.inf else math.ceil(0.5 * math.log2(gap / self._rtol))
            halvings = min(halvings + max(1, more), _MOST_HALVINGS)
        return best if self._sharp else Bracket(proved, best.upper)

    # ---- The two ends ------------------------------------------------------------------------

    def _upper(self, atoms: list[Atoms], step: float, epsilon: float) -> tuple[float, float]:
        """Return the upper end, and the share of it that the cut at the last node makes."""
        rest = sum(
            s.copies * _log_rest(a.infinite) for s, a in zip(self._sources, atoms, strict=True)
        )
        infinite = -math.expm1(rest)
        summands = [
            Summand(s.copies, np.rint(a.losses / step), a.p)
            for s, a in zip(self._sources, atoms, strict=True)
        ]
        finite = -math.inf
        if largest_sum(summands) * step > epsilon:
            s = tilt_to(summands, step, epsilon)
            tail = tail_mean(summands, step, s, epsilon, rising)
            finite = _log(tail.value + tail.error) + tail.log_scale
        rounds = sum(s.copies for s in self._sources)
        upper = min(float(np.logaddexp(finite, _log(infinite))) + 1e-15 * (10.0 + rounds), 0.0)
        cut = max(infinite - self.infinite, 0.0)
        return upper, math.exp(_log(cut) - upper) if cut > 0.0 else 0.0

    def _lower(self, atoms: list[Atoms], step: float, epsilon: float) -> float:
        """Return the lower end, ``P(A) - exp(epsilon) Q(A)`` with the event A decided on the grid.

        Every loss goes to one of its neighbours on the grid, by a chance that depends on the loss
        alone. That is post-processing, and so is the event that the sum of the places is large.
        """
        p_terms, q_terms = [], []
        for source, a in zip(self._sources, atoms, strict=True):
            below = np.floor(a.losses / step)
            share = np.clip(a.losses / step - below, 0.0, 1.0)
            places, where = np.unique(np.concatenate((below, below + 1.0)), return_inverse=True)
            p = np.concatenate((a.p * (1.0 - share), a.p * share))
            q = np.concatenate((a.q * (1.0 - share), a.q * share))
            p, q = (np.bincount(where, mass, places.size).astype(np.float64) for mass in (p, q))
            kept = p > 0.0
            places, p, q = places[kept], p[kept], q[kept]
            p_terms.append(Summand(source.copies, places, p))
            q_terms.append(Summand(source.copies, places, q * np.exp(places * step)))
        value, log_scale = 0.0, 0.0
        if largest_sum(p_terms) * step > epsilon:
            s = tilt_to(p_terms, step, epsilon)
            own = tail_mean(p_terms, step, s, epsilon, indicator)
            other = tail_mean(q_terms, step, s, epsilon, falling)
            value, log_scale = _difference(own, other)
        rest = sum(
            s.copies * _log_rest(a.infinite) for s, a in zip(self._sources, atoms, strict=True)
        )
        return (
            float(np.logaddexp(_log(max(value, 0.0)) + log_scale, _log(-math.expm1(rest)))) - 1e-13
        )

    # ---- The grid ----------------------------------------------------------------------------

    def _grid(self, depth: float, halvings: int) -> _Grid:
        key = depth, halvings
        if key not in self._grids:
            step = self._first_step * 0.5**halvings
            pairs = [
                [self._nodes(i, direction, step, depth) for direction in self._sides]
                for i in range(len(self._sources))
            ]
            proved = [atoms_below(*pair) for pair in pairs]
            below = proved
            if not self._sharp:
                # what refines the grid is its own error, not how far the given curves may be off
                below = [atoms_below(*(n._replace(lower=n.upper) for n in pair)) for pair in pairs]
            above = [atoms_above(*pair) for pair in pairs]
            self._grids[key] = _Grid(step, above, below, proved)
        return self._grids[key]

    def _nodes(self, i: int, direction: Direction, step: float, depth: float) -> Nodes:
        """Return the curve at multiples of the step, which grow apart far out in the tail."""
        end = min(max(self._end(i, direction, depth), step), _LARGEST_LOSS)
        count = _EVEN_STEPS * max(1, round(self._first_step / step))
        places = [float(k) for k in range(min(count, math.ceil(end / step)) + 1)]
        width = 1.0
        while places[-1] * step < end:
            width *= 2.0
            top = min(2.0 * places[-1], math.ceil(end / step))
            more = np.arange(places[-1] + width, top + width, width)
            places.extend(more.tolist())
        # the last step may lead beyond where exp of a loss is a double
        places[2:] = [place for place in places[2:] if place * step <= _LARGEST_NODE]
        losses = np.array(places) * step
        values = np.array(self._at_losses(i, direction, losses))
        return Nodes(losses, values[:, 0], values[:, 1], self._at_infinity(i, direction)[0])

    def _end(self, i: int, direction: Direction, depth: float) -> float:
        """Return the epsilon at which the nodes may end, 0 where delta(0) is small enough."""
        key = i, direction, depth
        if key not in self._ends:
            floor = self._at_infinity(i, direction)[1]
            if floor > 0.0:
                depth = max(depth, math.log(floor) + 1e-3 * self._rtol)
            profile = self._sources[i].profile
            clear = float(profile._log_total(direction)) <= depth
            self._ends[key] = (
                0.0 if clear else float(profile._epsilon(np.array([depth]), direction)[0])
            )
        return self._ends[key]

    def _at_losses(
        self, i: int, direction: Direction, losses: FloatArray
    ) -> list[tuple[float, float]]:
        values = self._values
        new = [x for x in losses.tolist() if (i, direction, x) not in values]
        if new:
            low, high = self._values_at(i, direction, np.array(new))
            above = np.where(high > -math.inf, np.maximum(np.exp(high), _SMALLEST), 0.0)
            below = np.where(np.exp(low) < _SMALLEST, 0.0, np.exp(low))
            for x, *ends in zip(new, below.tolist(), np.minimum(above, 1.0).tolist(), strict=True):
                values[i, direction, x] = ends[0], ends[1]
        return [values[i, direction, x] for x in losses.tolist()]

    def _values_at(
        self, i: int, direction: Direction, losses: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return log values between which the curve of one round is, or the given one twice."""
        source = self._sources[i]
        if source.has_lower and direction != "both":
            return source.profile._log_bounds(losses, direction)
        given = source.profile._log_delta(losses, direction)
        return given, given

    def _at_infinity(self, i: int, direction: Direction | None = None) -> tuple[float, float]:
        return self._at_losses(i, direction or self._sides[0], np.array([math.inf]))[0]

    def _aligned(self, step: float) -> float:
        """Return a step about as long, of which the largest loss of a round is nearly a multiple.

        It is rounded up in its last bits; so a law of few losses has its largest on the grid.
        """
        if step == 0.0:
            return step
        loss = float(self._sources[0].profile._epsilon(np.array([-math.inf]), self._sides[0])[0])
        if loss < _LARGEST_ALIGNED * step:
            step = loss / math.ceil(loss / step)
        mantissa, exponent = math.frexp(step)
        return math.ldexp(math.ceil(mantissa * 2**_STEP_BITS), exponent - _STEP_BITS)

    def _first_scale(self) -> float:
        """Return about the standard deviation of a loss, over the rounds."""
        square = rounds = 0.0
        for i, source in enumerate(self._sources):
            spread = 2.5 * self._at_losses(i, self._sides[0], np.zeros(1))[0][1]
            square += source.copies * spread * spread
            rounds += source.copies
        return math.sqrt(square / rounds)


def _difference(own: Tail, other: Tail) -> tuple[float, float]:
    top = max(own.log_scale, other.log_scale)
    value = (own.value - own.error) * math.exp(own.log_scale - top)
    return value - (other.value + other.error) * math.exp(other.log_scale - top), top


def _log(value: float) -> float:
    return math.log(value) if value > 0.0 else -math.inf


def _log_rest(mass: float) -> float:
    return math.log1p(-mass) if mass < 1.0 else -math.inf
