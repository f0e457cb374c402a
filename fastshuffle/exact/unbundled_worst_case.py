"""The worst case over all datasets of binary messages, several a user and all shuffled."""

import heapq
import math
from typing import Any, final

import numpy as np

from fastshuffle._kernels.unbundled import (
    message_laws,
    smallest_unbundled_epsilon,
    unbundled_hockey_stick,
)
from fastshuffle._supporting_lines import trade_off_below
from fastshuffle._typing import Direction, FloatArray
from fastshuffle.exact._pair import FORWARD, REVERSE, pair_arrays, rounding
from fastshuffle.exact.worst_case import WorstCaseProfile, WorstDataset
from fastshuffle.experiment import ShuffleExperiment
from fastshuffle.randomizers import LocalRandomizer

# Some seconds of work.
_MOST_EVALUATIONS = 400_000
# How far the epsilon returned may lie above one that is certified not to do, relatively.
_EPSILON_RTOL = 1e-4


@final
class UnbundledWorstCase(WorstCaseProfile):
    """The worst case for two inputs and two outputs, by branch and bound with exact profiles.

    Let k of the other users hold input 1. For all k in a block, those who hold 0 and those who
    hold 1 for certain are at least some numbers; revealing the messages of the rest is the reverse
    of a post-processing, so that delta of the certain ones alone bounds the block.
    """

    def __init__(self, randomizer: LocalRandomizer, n: int, rtol: float, messages: int) -> None:
        super().__init__(randomizer, n, rtol)
        self._messages = messages
        self._tolerance = math.log1p(rtol)
        rows, self._pairs = pair_arrays(randomizer.merged((0, 1)))
        self._loss = messages * float(self._pairs[:, 3].max())
        # which inputs send messages that are not certain, and so count
        self._random = np.flatnonzero(np.isfinite(rows[FORWARD, :, 3:]).all(axis=1))
        self._laws = np.empty((2, 3, self._random.size + 2, 5))
        for direction in (FORWARD, REVERSE):
            own = rows[direction][:: 1 if direction == FORWARD else -1].copy()
            own[:, 0] = messages
            groups = np.ascontiguousarray(rows[direction][self._random])
            message_laws(groups, own, self._laws[direction])
        self._tilted = np.empty((self._random.size + 2, 4))

    @property
    def messages(self) -> int:
        """How many messages every user sends."""
        return self._messages

    @property
    def method(self) -> str:
        """How the numbers are computed, in a few words."""
        return (
            "branch and bound over the compositions of the other users with exact profiles; "
            f"certified within a relative {self._rtol:g} of the worst delta"
        )

    @property
    def source(self) -> str:
        """The facts that the numbers rest on."""
        return (
            "definition of the hockey-stick divergence; the post-processing inequality (B. Balle, "
            "G. Barthe, M. Gaboardi, arXiv:1807.01647v2)"
        )

    def _setting(self) -> dict[str, Any]:
        return {**super()._setting(), "messages": self._messages}

    def _among(self, zeros: int, ones: int) -> None:
        """Let so many of the other users hold the two inputs."""
        counts = self._messages * np.array([zeros, ones], dtype=np.float64)[self._random]
        self._laws[:, :, : self._random.size, 0] = counts

    def _log_delta_among(self, epsilon: float, zeros: int, ones: int) -> tuple[float, int]:
        """Return the larger log delta of the two directions, and which it is."""
        self._among(zeros, ones)
        moments, sums, result = np.empty(6), np.empty(4), np.empty(2)
        found = []
        for direction in (FORWARD, REVERSE):
            unbundled_hockey_stick(
                epsilon, self._pairs[direction], self._laws[direction], self._tilted, moments,
                sums, result,
            )  # fmt: skip
            if math.isnan(result[0]):
                raise ArithmeticError(f"a delta came out as nan for {self!r}")
            found.append((float(result[0]), direction))
        return max(found)

    def _search(self, epsilon: float, floor: float = -math.inf) -> tuple[float, float, int, int]:
        """Return an upper bound, the best log delta found, its direction and its composition.

        The bound need be no better than ``floor``, nor than the best found and half the tolerance.
        """
        last = self._n - 1
        best, direction, k_best = -math.inf, FORWARD, 0
        for k in {0, last, last // 2}:
            value, side = self._log_delta_among(epsilon, last - k, k)
            if value > best:
                best, direction, k_best = value, side, k
        blocks = [(-math.inf, 0, last)]  # minus the bound, and the composition from .. to
        for _ in range(_MOST_EVALUATIONS):
            if not blocks or -blocks[0][0] <= max(best + 0.5 * self._tolerance, floor):
                upper = max(best, -blocks[0][0] if blocks else -math.inf)
                return upper, best, direction, k_best
            _, low, high = heapq.heappop(blocks)
            middle = (low + high) // 2
            for start, stop in {(low, middle), (min(middle + 1, high), high)}:
                bound, side = self._log_delta_among(epsilon, last - stop, start)
                if start == stop and bound > best:
                    best, direction, k_best = bound, side, start
                if start < stop:
                    heapq.heappush(blocks, (-bound, start, stop))
                    value, side = self._log_delta_among(epsilon, last - start, start)
                    if value > best:
                        best, direction, k_best = value, side, start
        raise RuntimeError(
            f"the search at epsilon = {epsilon!r} stopped with log delta between {best!r} and "
            f"{-blocks[0][0]!r}, wider than rtol = {self._rtol!r}; a larger rtol will do"
        )

    def _log_bounds(
        self, epsilons: FloatArray, direction: Direction
    ) -> tuple[FloatArray, FloatArray]:
        del direction  # the set of ordered neighbouring pairs is symmetric
        found = [self._search(epsilon)[:2] for epsilon in epsilons.tolist()]
        upper, lower = (np.array(values) for values in zip(*found, strict=True))
        return (
            lower - rounding(lower, epsilons),
            np.minimum(upper + rounding(upper, epsilons), 0.0),
        )

    def _log_delta(self, epsilons: FloatArray, direction: Direction) -> FloatArray:
        return self._log_bounds(epsilons, direction)[1]

    def _epsilon(self, log_deltas: FloatArray, direction: Direction) -> FloatArray:
        del direction
        return np.array([self._certified_epsilon(value) for value in log_deltas.tolist()])

    def _is_certified(self, epsilon: float, log_delta: float) -> bool:
        """Whether the upper end of the bracket at epsilon is at most delta."""
        margin = float(rounding(np.array(log_delta), np.array(min(epsilon, 1000.0))))
        target = log_delta - 2.0 * margin
        return self._search(epsilon, target)[0] <= target

    def _certified_epsilon(self, log_delta: float) -> float:
        if log_delta == -math.inf:
            return self._loss
        if self._loss == math.inf and not self._is_certified(math.inf, log_delta):
            return math.inf
        low = 0.0
        for k in (0, self._n - 1):
            self._among(self._n - 1 - k, k)
            for laws, pair in zip(self._laws, self._pairs, strict=True):
                low = max(low, smallest_unbundled_epsilon(log_delta, laws, pair))
        gap = _EPSILON_RTOL * low if low > 0.0 else 1e-9 * min(self._loss, 1.0)
        high = low + gap
        while high < self._loss and not self._is_certified(high, log_delta):
            low, gap = high, 2.0 * gap
            high += gap
        high = min(high, self._loss)
        while high - low > _EPSILON_RTOL * high:
            middle = 0.5 * (low + high)
            if self._is_certified(middle, log_delta):
                high = middle
            else:
                low = middle
        return high

    def _trade_off(self, alphas: FloatArray, direction: Direction) -> FloatArray:
        del direction  # all are one curve
        return trade_off_below(self, alphas, "forward", self._loss)

    def _worst(self, epsilon: float) -> WorstDataset:
        _, _, direction, k = self._search(epsilon)
        experiment = ShuffleExperiment(self._randomizer, self._n, k=k, messages=self._messages)
        return WorstDataset(experiment, "forward" if direction == FORWARD else "reverse")
