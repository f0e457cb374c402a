"""The divergences of two binary laws among a sum of binomial groups."""

import math

import numpy as np

from fastshuffle._kernels.binomial_groups import drop_certain_groups, mirror_groups
from fastshuffle._kernels.divergence import window_divergence
from fastshuffle._typing import Direction, FloatArray
from fastshuffle._validation import (
    POSITIVE,
    UnsupportedSettingError,
    check_direction,
    check_real,
)
from fastshuffle.exact._experiment_profile import ExperimentProfile
from fastshuffle.exact._pair import FORWARD, REVERSE, codes_of, pair_arrays
from fastshuffle.experiment import ShuffleExperiment
from fastshuffle.randomizers import MergedRows

# Window sums that would visit more points than this, some seconds of work, are refused.
_MOST_POINTS = 5_000_000


class PairProfile(ExperimentProfile):
    """A profile of an experiment whose messages fall into two groups, which knows its divergences.

    It holds, for each direction, the groups of the others' messages, none of them certain, the pair
    of `fastshuffle._kernels.hockey_stick` for one message, and the rows of a message of the
    differing user in the first and in the second dataset.
    """

    _groups: FloatArray
    _pairs: FloatArray
    _own: FloatArray

    def __init__(self, experiment: ShuffleExperiment, merged: MergedRows) -> None:
        super().__init__(experiment)
        self._messages = float(experiment.messages)
        rows, self._pairs = pair_arrays(merged)
        groups = np.ascontiguousarray(rows[FORWARD, 2:])
        groups[:, 0] = [self._messages * count for count in experiment.others.values()]
        kept = np.empty_like(groups)
        n_kept, _ = drop_certain_groups(groups, kept)
        self._groups = np.empty((2, n_kept, 5))
        self._groups[FORWARD] = kept[:n_kept]
        mirror_groups(self._groups[FORWARD], self._groups[REVERSE])
        self._own = rows[:, :2]
        # W_b - W_a of the output counted forward
        self._difference = -self._pairs[FORWARD, 0] * math.expm1(-self._pairs[FORWARD, 3])

    def _renyi(self, order: float, code: int) -> float:
        loss = float(self._pairs[code, 3])
        if loss == 0.0:
            return 0.0
        if order < 0.5:
            return order / (1.0 - order) * self._renyi(1.0 - order, 1 - code)
        if order == math.inf or (loss == math.inf and order >= 1.0):
            return self._messages * loss
        self._require_feasible(order, loss)
        return self._window_divergence(order - 1.0, code)

    def _window_divergence(self, order_excess: float, code: int) -> float:
        null, alternative = self._own[code, code], self._own[code, 1 - code]
        pair = np.array([null[[1, 2, 3, 4, 0]], alternative[[1, 2, 3, 4, 0]]])
        pair[:, 4] = -self._difference, self._difference
        loss = float(self._pairs[code, 3])
        value = window_divergence(
            order_excess, self._messages * loss, self._messages, self._groups[code], pair
        )
        if not value >= 0.0:
            raise ArithmeticError(f"a divergence came out as {value!r} for {self!r}")
        return value

    def _require_feasible(self, order: float, loss: float) -> None:
        counts, p, q = self._groups[FORWARD, :, :3].T
        messages = self._messages
        variance = float((counts * p * q).sum())
        if messages > 1.0:
            variance += messages * float(self._own[FORWARD, :, 1:3].prod(axis=1).min())
        tilt = (order - 1.0) * messages * loss if order > 1.0 else 0.0
        reach = math.sqrt(2.0 * variance * (80.0 + tilt))
        n = self.n * messages
        if (order - 1.0) * messages > 0.05 * variance and min(reach, n) > _MOST_POINTS:
            largest = 1.0 + 0.05 * variance / messages
            raise ValueError(f"order must be <= {largest:g} or inf at n = {self.n}, got {order!r}")
        # laws far apart are summed in small steps all the way from one to the other
        distance = messages * abs(self._difference)
        if messages > 1.0 and min(10.0 * distance * distance / variance, n) > _MOST_POINTS:
            raise UnsupportedSettingError(
                f"messages must be fewer for a divergence, or users more, got {self.experiment!r}"
            )

    def renyi(self, order: float, *, direction: Direction = "both") -> float:
        """Return the Renyi divergence of the given order, in nats.

        Parameters
        ----------
        order : float
            Order > 0. Order 1 is the Kullback-Leibler divergence, inf the largest privacy loss.
        direction : {"both", "forward", "reverse"}
            Forward is the divergence of P from Q, both the larger of the two.

        Returns
        -------
        float
            The divergence; inf for orders of 1 and more where P has mass that Q has not.

        Raises
        ------
        TypeError, ValueError
            If the order is no real number > 0, or so large that the sum would visit more than
            5,000,000 points; the message then names the largest order.

        Notes
        -----
        A sum of non-negative terms over a window with a proved relative truncation of 1e-17 a
        side. **Accuracy**: relative error below 1e-13 (``tests/test_exact.py``), and 1e-12 for
        several messages (``tests/test_messages.py``). **Cost**: about 600 contour sums, a
        millisecond, at any n; more for orders near ``n / 20`` and beyond, and the square of their
        distance in deviations as many where the two laws of several messages lie far apart.
        """
        value = check_real("order", order, POSITIVE)
        which = check_direction(direction)
        return max(self._renyi(value, code) for code in codes_of(which))

    def jensen_shannon(self) -> float:
        """Return the Jensen-Shannon divergence in nats, which is symmetric and at most log 2.

        Returns
        -------
        float
            The divergence (not its square root). Accuracy and cost as for `renyi`.
        """
        if self._pairs[FORWARD, 3] == 0.0:
            return 0.0
        return self._window_divergence(math.nan, FORWARD)
