"""The exact profile of an experiment with binary output whose users send several messages."""

from typing import final

import numpy as np

from fastshuffle._kernels.trade_off import type_two_error_array
from fastshuffle._kernels.unbundled import (
    message_laws,
    unbundled_epsilon_array,
    unbundled_log_delta_array,
)
from fastshuffle._typing import Direction, FloatArray
from fastshuffle.exact._pair import DIRECTION_CODE, FORWARD, REVERSE, codes_of, log_bounds
from fastshuffle.exact._pair_profile import PairProfile
from fastshuffle.experiment import ShuffleExperiment
from fastshuffle.profile import Validity
from fastshuffle.randomizers import MergedRows


@final
class UnbundledProfile(PairProfile):
    """The exact profile of binary messages, several a user and all shuffled; see `exact_profile`.

    Notes
    -----
    With R the messages of the other users, ``P = R * Bin(m, p1)`` and ``Q = R * Bin(m, p0)``, the
    likelihood ratio increases in the number of ones, and ``P - e**epsilon Q`` is a difference
    ``alpha (M(y - 1) - c M(y))`` as for one message, with a mixture M of m sums of binomial groups
    in place of R (`fastshuffle._kernels.message_contour`). The cost does not grow with n or m.
    """

    def __init__(self, experiment: ShuffleExperiment, merged: MergedRows) -> None:
        super().__init__(experiment, merged)
        # the rows of Q, of P and of the mixture, for each direction
        self._laws = np.empty((2, 3, self._groups.shape[1] + 2, 5))
        for direction in (FORWARD, REVERSE):
            # in either direction the null law first: that of the first dataset, and of the second
            own = self._own[direction][:: 1 if direction == FORWARD else -1].copy()
            own[:, 0] = self._messages
            message_laws(self._groups[direction], own, self._laws[direction])

    @property
    def validity(self) -> Validity:
        """EXACT."""
        return Validity.EXACT

    @property
    def method(self) -> str:
        """How the numbers are computed, in a few words."""
        return (
            "contour sum over the binomial groups of all messages, or the difference of two where "
            "the laws lie far apart; inverse by Newton's method in a bracket"
        )

    @property
    def source(self) -> str:
        """The definition that the numbers rest on."""
        return "definition of the hockey-stick divergence of the two histogram laws"

    def _log_delta(self, epsilons: FloatArray, direction: Direction) -> FloatArray:
        log_deltas = np.empty_like(epsilons)
        code = DIRECTION_CODE[direction]
        unbundled_log_delta_array(epsilons, code, self._laws, self._pairs, log_deltas)
        if np.isnan(log_deltas).any():
            raise ArithmeticError(f"a delta came out as nan for {self!r}")
        return log_deltas

    def _log_bounds(
        self, epsilons: FloatArray, direction: Direction
    ) -> tuple[FloatArray, FloatArray]:
        return log_bounds(lambda e: self._log_delta(e, direction), epsilons)

    def _epsilon(self, log_deltas: FloatArray, direction: Direction) -> FloatArray:
        epsilons = np.empty_like(log_deltas)
        code = DIRECTION_CODE[direction]
        unbundled_epsilon_array(log_deltas, code, self._laws, self._pairs, epsilons)
        return epsilons

    def _trade_off(self, alphas: FloatArray, direction: Direction) -> FloatArray:
        least = np.ones_like(alphas)
        for code in codes_of(direction):
            errors = np.empty_like(alphas)
            type_two_error_array(alphas, self._laws[code, 0], self._laws[code, 1], errors)
            least = np.minimum(least, errors)
        return least
