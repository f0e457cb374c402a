"""The worst case of any finite randomizer: the blanket above, the best dataset found below."""

import math
from typing import final

import numpy as np

from fastshuffle._background import BackgroundPair
from fastshuffle._positive_part import Bracket
from fastshuffle._supporting_lines import highest_supporting_line
from fastshuffle._typing import Direction, FloatArray
from fastshuffle.bounds import BLANKET_SOURCE, blanket_pairs
from fastshuffle.bracket import Curve
from fastshuffle.exact.homogeneous import underflows
from fastshuffle.exact.worst_case import WorstCaseProfile, WorstDataset
from fastshuffle.experiment import ShuffleExperiment
from fastshuffle.randomizers import LocalRandomizer


@final
class GeneralWorstCase(WorstCaseProfile):
    """The privacy blanket, and below it the datasets whose other users all hold one input."""

    def __init__(self, randomizer: LocalRandomizer, n: int, rtol: float) -> None:
        super().__init__(randomizer, n, rtol)
        self._laws = [
            (pair, law)
            for (a, b), forward, reverse in blanket_pairs(randomizer, n)
            for pair, law in (((a, b), forward), ((b, a), reverse))
        ]
        curves = [(law.chernoff_curve(), law.curve(rtol)) for _, law in self._laws]
        self._chernoff = [chernoff for chernoff, _ in curves]
        self._blanket = [blanket for _, blanket in curves]
        loss = max(curve.loss for curve in self._blanket)
        self._curve_above = Curve(lambda e: Bracket(-math.inf, self._above(e)[0]), loss, rtol)

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
        """Return the largest blanket bound, and the place of its pair.

        A pair whose Chernoff bound is below the largest so far is not looked at further.
        """
        quick = [curve.at(epsilon).upper for curve in self._chernoff]
        best, place = -math.inf, 0
        for i in np.argsort(quick)[::-1].tolist():
            if quick[i] <= best:
                break
            value = self._blanket[i].at(epsilon).upper
            if value > best:
                best, place = value, i
        return min(best, 0.0), place

    def _below(self, epsilon: float, place: int) -> tuple[float, int]:
        """Return the largest lower bound for a pair over the inputs of the others, and which."""
        a, b = self._laws[place][0]
        loss = self._blanket[place].loss
        best, others = -math.inf, a
        for z in sorted({a, b, *self._randomizer.representative_inputs()}):
            merged = self._randomizer.merged((a, b, z))
            if underflows(merged):  # what cannot be computed is no lower bound
                continue
            null, alternative, background = merged.rows
            law = BackgroundPair(
                background, alternative, null, n=self._n, losses=merged.log_ratios[1], loss=loss
            )
            value = law.curve(self._rtol).at(epsilon).lower
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
        del direction
        loss = self._curve_above.loss
        return np.array(
            [
                highest_supporting_line(alpha, self.delta, self.delta, loss)
                for alpha in alphas.tolist()
            ]
        )

    def _worst(self, epsilon: float) -> WorstDataset:
        _, place = self._above(epsilon)
        _, z = self._below(epsilon, place)
        experiment = ShuffleExperiment(
            self._randomizer, self._n, others={z: self._n - 1}, pair=self._laws[place][0]
        )
        return WorstDataset(experiment, "forward")
