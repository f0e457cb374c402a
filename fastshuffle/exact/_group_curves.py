"""The curves of two binary laws among a sum of binomial groups, in both directions."""

import numpy as np

from fastshuffle._kernels.hockey_stick import epsilon_array, log_delta_array
from fastshuffle._kernels.trade_off import type_two_error_array
from fastshuffle._typing import Direction, FloatArray
from fastshuffle.exact._pair import DIRECTION_CODE, codes_of, log_bounds
from fastshuffle.profile import PrivacyProfile


class GroupCurves(PrivacyProfile):
    """A profile by the hockey-stick kernels.

    Derived classes set, for each direction, the groups of the others, the pair of
    `fastshuffle._kernels.hockey_stick`, and the rows of the differing user in the first and in the
    second dataset.
    """

    _groups: FloatArray
    _pairs: FloatArray
    _own: FloatArray

    def _log_delta(self, epsilons: FloatArray, direction: Direction) -> FloatArray:
        log_deltas = np.empty_like(epsilons)
        code = DIRECTION_CODE[direction]
        log_delta_array(epsilons, code, self._groups, self._pairs, log_deltas)
        return log_deltas

    def _log_bounds(
        self, epsilons: FloatArray, direction: Direction
    ) -> tuple[FloatArray, FloatArray]:
        return log_bounds(lambda e: self._log_delta(e, direction), epsilons)

    def _epsilon(self, log_deltas: FloatArray, direction: Direction) -> FloatArray:
        epsilons = np.empty_like(log_deltas)
        code = DIRECTION_CODE[direction]
        epsilon_array(log_deltas, code, self._groups, self._pairs, epsilons)
        return epsilons

    def _trade_off(self, alphas: FloatArray, direction: Direction) -> FloatArray:
        least = np.ones_like(alphas)
        for code in codes_of(direction):
            null, alternative = (
                np.vstack((self._groups[code], self._own[code, user])) for user in (code, 1 - code)
            )
            errors = np.empty_like(alphas)
            type_two_error_array(alphas, null, alternative, errors)
            least = np.minimum(least, errors)
        return least
