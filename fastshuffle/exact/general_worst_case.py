"""The worst case of any finite randomizer: the blanket above, the best dataset found below."""

import math
from typing import final

import numpy as np

from fastshuffle._supporting_lines import trade_off_below
from fastshuffle._typing import Direction, FloatArray
from fastshuffle._validation import UnsupportedSettingError
from fastshuffle.bounds.blanket import BLANKET_SOURCE, blanket_laws
from fastshuffle.bounds.common import all_pairs
from fastshuffle.bounds.largest import LargestCurve
from fastshuffle.exact.homogeneous import homogeneous_law
from fastshuffle.exact.worst_case import WorstCaseProfile, WorstDataset
from fastshuffle.experiment import ShuffleExperiment
from fastshuffle.randomizers import LocalRandomizer


@final
class GeneralWorstCase(WorstCaseProfile):
    """The privacy blanket, and below it the datasets whose other users all hold one input."""

    def __init__(self, randomizer: LocalRandomizer, n: int, rtol: float) -> None:
        super().__init__(randomizer, n, rtol)
        self._pairs = all_pairs(randomizer)
        self._laws = blanket_laws(randomizer, self._pairs)
        self._largest = LargestCurve(self._laws, n, lambda law: law.curve(rtol))
        self._curve_above = self._largest.curve()

    @property
    def method(self) -> str:
        """How the numbers are computed, in a few words."""
        return (
            "privacy blanket, bracketed on a lattice; the lower end is the worst dataset found "
            "whose other users all hold one input"
        )

    @property
    def source(self) -> str:
        """The facts that the numbers rest on."""
        return BLANKET_SOURCE

    def _above(self, epsilon: float) -> tuple[float, int]:
        """Return the largest blanket bound, and the place of its pair."""
        value, place = self._largest.at(epsilon)
        return min(value, 0.0), place

    def _below(self, epsilon: float, place: int) -> tuple[float, int]:
        """Return the largest lower bound for a pair over the inputs of the others, and which."""
        a, b = self._pairs[place]
        best, others = -math.inf, a
        for z in sorted({a, b, *self._randomizer.representative_inputs()}):
            try:
                law = homogeneous_law(self._randomizer, a, b, z)
            except UnsupportedSettingError:  # what cannot be computed is no lower bound
                continue
            value = law.among(self._n).curve(self._rtol).at(epsilon).lower
            if value > best:
                best, others = value, z
        return best, others

    def _log_bounds(
        self, epsilons: FloatArray, direction: Direction
    ) -> tuple[FloatArray, FloatArray]:
        del direction
        above = [self._above(epsilon) for epsilon in epsilons.tolist()]
        below = [
            self._below(epsilon, place)[0]
            for epsilon, (_, place) in zip(epsilons.tolist(), above, strict=True)
        ]
        return np.array(below), np.array([value for value, _ in above])

    def _log_delta(self, epsilons: FloatArray, direction: Direction) -> FloatArray:
        del direction
        return np.array([self._above(epsilon)[0] for epsilon in epsilons.tolist()])

    def _epsilon(self, log_deltas: FloatArray, direction: Direction) -> FloatArray:
        del direction
        return np.array([self._curve_above.epsilon(value) for value in log_deltas.tolist()])

    def _trade_off(self, alphas: FloatArray, direction: Direction) -> FloatArray:
        del direction  # all are one curve
        return trade_off_below(self, alphas, "forward", self._curve_above.loss)

    def _worst(self, epsilon: float) -> WorstDataset:
        _, place = self._above(epsilon)
        _, z = self._below(epsilon, place)
        experiment = ShuffleExperiment(
            self._randomizer, self._n, others={z: self._n - 1}, pair=self._pairs[place]
        )
        return WorstDataset(experiment, "forward")
