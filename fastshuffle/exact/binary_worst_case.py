"""The worst case over all datasets of a randomizer with two outputs, certified by a search."""

import math
from typing import final

import numpy as np

from fastshuffle._kernels.composition_search import certified_epsilon, search_compositions
from fastshuffle._supporting_lines import trade_off_below
from fastshuffle._typing import Direction, FloatArray
from fastshuffle.exact._pair import FORWARD, pair_arrays, rounding
from fastshuffle.exact.worst_case import WorstCaseProfile, WorstDataset
from fastshuffle.experiment import ShuffleExperiment
from fastshuffle.randomizers import LocalRandomizer


@final
class BinaryWorstCase(WorstCaseProfile):
    """The worst case of a randomizer with two outputs, by branch and bound with exact profiles."""

    def __init__(self, randomizer: LocalRandomizer, n: int, rtol: float) -> None:
        super().__init__(randomizer, n, rtol)
        self._tolerance = math.log1p(rtol)
        self._extremes = self._extreme_inputs()
        self._inputs, self._pairs = pair_arrays(randomizer.merged(self._extremes))

    def _extreme_inputs(self) -> tuple[int, int]:
        """Return the inputs with the smallest and the largest probability of one output."""
        rows, _, log_ratios = self._randomizer.merged(self._randomizer.representative_inputs())
        # ratios to row 0 rank the inputs where row 0 is not 0
        losses = log_ratios[:, int(rows[0, 0] == 0.0)]
        lowest, highest = int(losses.argmin()), int(losses.argmax())
        return (0, 1) if lowest == highest else (lowest, highest)

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
            "definition of the hockey-stick divergence; its joint convexity and the "
            "post-processing inequality (B. Balle, G. Barthe, M. Gaboardi, arXiv:1807.01647v2)"
        )

    def _search(self, epsilon: float) -> tuple[float, FloatArray]:
        best = np.empty(3)
        limits = np.array([0.5 * self._tolerance, -math.inf, math.inf])
        upper = search_compositions(
            epsilon, float(self._n - 1), limits, self._inputs, self._pairs, best
        )
        if not upper <= best[0] + limits[0]:
            raise RuntimeError(
                f"the search at epsilon = {epsilon!r} stopped with log delta between {best[0]!r} "
                f"and {upper!r}, wider than rtol = {self._rtol!r}; a larger rtol will do"
            )
        return upper, best

    def _log_bounds(
        self, epsilons: FloatArray, direction: Direction
    ) -> tuple[FloatArray, FloatArray]:
        del direction  # the set of ordered neighbouring pairs is symmetric
        found = [self._search(epsilon) for epsilon in epsilons.tolist()]
        lower = np.array([best[0] for _, best in found])
        upper = np.array([value for value, _ in found])
        return (
            lower - rounding(lower, epsilons),
            np.minimum(upper + rounding(upper, epsilons), 0.0),
        )

    def _log_delta(self, epsilons: FloatArray, direction: Direction) -> FloatArray:
        return self._log_bounds(epsilons, direction)[1]

    def _epsilon(self, log_deltas: FloatArray, direction: Direction) -> FloatArray:
        del direction
        return np.array([self._certified_epsilon(value) for value in log_deltas.tolist()])

    def _certified_epsilon(self, log_delta: float) -> float:
        loss = float(self._pairs[:, 3].max())
        if log_delta == -math.inf:
            return loss
        # epsilon is at most the loss, or a loss in the hundreds where that is infinite
        margin = 2.0 * float(rounding(np.array(log_delta), np.array(min(loss, 1000.0))))
        target = log_delta - margin
        tolerance = self._tolerance
        if loss == math.inf:
            # stay above the mass that is revealed for certain, below which there is no epsilon
            spare = target - self._search(math.inf)[0]
            if spare <= 0.0:
                return math.inf
            tolerance = min(tolerance, 0.5 * spare)
        epsilon = certified_epsilon(
            target, float(self._n - 1), tolerance, self._inputs, self._pairs, np.empty(3)
        )
        if epsilon < 0.0:
            raise RuntimeError(
                f"no epsilon could be certified at log delta = {log_delta!r} with rtol = "
                f"{self._rtol!r}; a larger rtol will do"
            )
        return epsilon

    def _trade_off(self, alphas: FloatArray, direction: Direction) -> FloatArray:
        del direction  # all are one curve
        return trade_off_below(self, alphas, "forward", float(self._pairs[:, 3].max()))

    def _worst(self, epsilon: float) -> WorstDataset:
        _, best = self._search(epsilon)
        low, high = self._extremes
        k = int(best[2])
        experiment = ShuffleExperiment(
            self._randomizer,
            self._n,
            others={low: self._n - 1 - k, high: k},
            pair=self._extremes,
        )
        return WorstDataset(experiment, "forward" if best[1] == FORWARD else "reverse")
