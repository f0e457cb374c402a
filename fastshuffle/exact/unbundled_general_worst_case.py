"""The worst case of several messages of any randomizer: the blanket of single messages above."""

import math
from functools import lru_cache
from typing import Any, final

import numpy as np

from fastshuffle._positive_part import Bracket
from fastshuffle._supporting_lines import trade_off_below
from fastshuffle._typing import Direction, FloatArray
from fastshuffle._validation import UnsupportedSettingError
from fastshuffle.bounds.blanket import BLANKET_SOURCE, blanket_laws
from fastshuffle.bounds.common import all_pairs
from fastshuffle.bounds.largest import HomogeneousLaw, LargestCurve, Law
from fastshuffle.bracket import Curve
from fastshuffle.exact._below import Below
from fastshuffle.exact._replacing import (
    TAIL_ROUNDING,
    log_infinite_mass,
    log_upper,
    smaller_step,
    split_clear,
)
from fastshuffle.exact.revealing import users_of
from fastshuffle.exact.worst_case import WorstCaseProfile, WorstDataset
from fastshuffle.experiment import ShuffleExperiment
from fastshuffle.randomizers import LocalRandomizer
from fastshuffle.randomizers.continuous import ContinuousNoise

# With more ordered pairs of inputs than this, the lower end is that of one of them.
_MOST_PAIRS = 12


@final
class UnbundledGeneralWorstCase(WorstCaseProfile):
    """The privacy blanket of single messages, and below it others who all hold one input.

    Two datasets in which one message of a user is replaced are neighbours of nm users who send one
    message each, so that the blanket among nm bounds each step of `fastshuffle.exact._replacing`,
    whatever the others hold.
    """

    def __init__(self, randomizer: LocalRandomizer, n: int, rtol: float, messages: int) -> None:
        super().__init__(randomizer, n, rtol)
        self._messages = messages
        self._pairs = all_pairs(randomizer)
        self._laws = blanket_laws(randomizer, self._pairs)
        # pairs with the same mass of clear signs have the same factor
        groups: dict[float, list[tuple[int, Law]]] = {}
        for place, law in enumerate(self._laws):
            clear, rest = split_clear(law)
            groups.setdefault(clear, []).append((place, rest))
        self._groups = [
            (
                clear,
                [place for place, _ in found],
                LargestCurve(
                    [law for _, law in found], n * messages, lambda pair: pair.curve(rtol)
                ),
            )
            for clear, found in groups.items()
        ]
        self._above = lru_cache(maxsize=256)(self._largest)
        loss = max(
            math.inf if clear > 0.0 else messages * largest.curve().loss
            for clear, _, largest in self._groups
        )
        self._curve_above = Curve(
            lambda epsilon: Bracket(-math.inf, self._above(epsilon)[0]), loss, rtol
        )

    @property
    def messages(self) -> int:
        """How many messages every user sends."""
        return self._messages

    @property
    def method(self) -> str:
        """How the numbers are computed, in a few words."""
        return (
            "privacy blanket of single messages, one of a user's replaced at a time; the lower end "
            "is the worst dataset found whose other users all hold one input, by a sum of scores"
        )

    @property
    def source(self) -> str:
        """The facts that the numbers rest on."""
        return BLANKET_SOURCE

    def _setting(self) -> dict[str, Any]:
        return {**super()._setting(), "messages": self._messages}

    def _largest(self, epsilon: float) -> tuple[float, int]:
        """Return the largest upper bound of log delta, and the place of its pair."""
        if epsilon == math.inf:
            return max(
                (min(self._infinite(law), 0.0), place) for place, law in enumerate(self._laws)
            )
        step = smaller_step(epsilon, self._messages)
        found = []
        for clear, places, largest in self._groups:
            value, at = largest.at(step)
            found.append((log_upper(value, step, self._messages, clear), places[at]))
        return max(found)

    def _infinite(self, law: Law) -> float:
        if not isinstance(law, HomogeneousLaw):
            return 0.0
        n_others = (self._n - 1) * self._messages
        return log_infinite_mass(law, n_others, self._messages) + TAIL_ROUNDING

    def _below(self, epsilon: float) -> tuple[float, WorstDataset]:
        """Return the largest lower bound found, and its dataset.

        Where there are many pairs, that of the largest upper bound is tried alone.
        """
        places = range(len(self._pairs))
        if len(places) > _MOST_PAIRS:
            places = range(self._above(epsilon)[1], self._above(epsilon)[1] + 1)
        a, b = self._pairs[places[0]]
        best, worst = -math.inf, self._dataset(a, b, a)
        if isinstance(self._randomizer, ContinuousNoise):
            return best, worst
        for a, b in self._pairs[places.start : places.stop]:
            for z in sorted({a, b, *self._randomizer.representative_inputs()}):
                dataset = self._dataset(a, b, z)
                try:
                    value = Below(users_of(dataset.experiment, (a, b))).log_delta(epsilon)
                except UnsupportedSettingError:  # what cannot be computed is no lower bound
                    continue
                if value > best:
                    best, worst = value, dataset
        return best, worst

    def _dataset(self, a: int, b: int, others: int) -> WorstDataset:
        experiment = ShuffleExperiment(
            self._randomizer,
            self._n,
            others={others: self._n - 1},
            pair=(a, b),
            messages=self._messages,
        )
        return WorstDataset(experiment, "forward")

    def _log_bounds(
        self, epsilons: FloatArray, direction: Direction
    ) -> tuple[FloatArray, FloatArray]:
        upper = self._log_delta(epsilons, direction)
        lower = np.array(
            [
                self._below(epsilon)[0] if value > -math.inf else value
                for epsilon, value in zip(epsilons.tolist(), upper.tolist(), strict=True)
            ]
        )
        if not (lower <= upper + 1e-9).all():
            raise ArithmeticError(f"a bracket came out as {(lower, upper)!r} for {self!r}")
        return np.minimum(lower, upper), upper

    def _log_delta(self, epsilons: FloatArray, direction: Direction) -> FloatArray:
        del direction  # the set of ordered neighbouring pairs is symmetric
        return np.array([self._curve_above.at(epsilon).upper for epsilon in epsilons.tolist()])

    def _epsilon(self, log_deltas: FloatArray, direction: Direction) -> FloatArray:
        del direction
        return np.array([self._curve_above.epsilon(value) for value in log_deltas.tolist()])

    def _trade_off(self, alphas: FloatArray, direction: Direction) -> FloatArray:
        del direction  # all are one curve
        return trade_off_below(self, alphas, "forward", self._curve_above.loss)

    def _worst(self, epsilon: float) -> WorstDataset:
        return self._below(epsilon)[1]
