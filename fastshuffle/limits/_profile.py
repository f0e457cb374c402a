"""What the approximate profiles share: their word, their region, and the inverse of a curve."""

import abc
import math
from typing import Any

import numpy as np

from fastshuffle._supporting_lines import trade_off_below
from fastshuffle._typing import Direction, FloatArray, Side
from fastshuffle.experiment import ShuffleExperiment
from fastshuffle.profile import PrivacyProfile, Validity

__all__ = ["ApproximateProfile", "LimitProfile"]


# Halvings of a bracket whose ends are positive doubles, with some to spare.
_MOST_HALVINGS = 1200


class ApproximateProfile(PrivacyProfile):
    """The curve of another pair of laws in place of the exact one: an APPROXIMATION, no guarantee.

    A limit proves nothing about delta at a given n, so ``bounds`` is the trivial (0, 1) unless the
    kind of limit says otherwise; ``delta``, ``epsilon`` and ``trade_off`` belong to the curve of
    the limit law itself. ``region`` says where that curve is meant to be near the exact one.
    """

    def __init__(self, *, method: str, source: str, region: str) -> None:
        self._method = method
        self._source = source
        self._region = region

    @abc.abstractmethod
    def _log_curve(self, epsilons: FloatArray, side: Side) -> FloatArray:
        """Return log delta of one direction, non-increasing in epsilon; inf is allowed."""

    def _largest_loss(self, side: Side) -> float:  # noqa: ARG002 - a limit with finite losses says so
        """Return the largest privacy loss of the limit law: the curve is 0 from there on."""
        return math.inf

    @property
    def validity(self) -> Validity:
        """APPROXIMATION."""
        return Validity.APPROXIMATION

    @property
    def method(self) -> str:
        """How the numbers are computed, in a few words."""
        return self._method

    @property
    def source(self) -> str:
        """The definition or theorem, with its version, that the numbers rest on."""
        return self._source

    @property
    def region(self) -> str:
        """Where the curve is meant to be near the exact one."""
        return self._region

    def describe(self) -> str:
        """Return what the profile is and where it is meant, in a few lines for a person."""
        return f"{super().describe()}\n{'region:':<10} {self._region}"

    def to_dict(self, **tables: Any) -> dict[str, Any]:
        """Return the profile in plain Python values, with its region; see `PrivacyProfile`."""
        return {**super().to_dict(**tables), "region": self._region}

    @staticmethod
    def _sides(direction: Direction) -> tuple[Side, ...]:
        return ("forward", "reverse") if direction == "both" else (direction,)

    def _log_delta(self, epsilons: FloatArray, direction: Direction) -> FloatArray:
        return np.max([self._log_curve(epsilons, side) for side in self._sides(direction)], axis=0)

    def _log_bounds(
        self,
        epsilons: FloatArray,
        direction: Direction,  # noqa: ARG002 - nothing is proved, in either direction
    ) -> tuple[FloatArray, FloatArray]:
        return np.full_like(epsilons, -math.inf), np.zeros_like(epsilons)

    def _epsilon(self, log_deltas: FloatArray, direction: Direction) -> FloatArray:
        return np.array(
            [
                max(self._inverse(log_delta, side) for side in self._sides(direction))
                for log_delta in log_deltas.tolist()
            ]
        )

    def _inverse(self, log_delta: float, side: Side) -> float:
        """Return the smallest epsilon, up to its last bits, with a log delta of at most this."""

        def exceeds(epsilon: float) -> bool:
            return not float(self._log_curve(np.array([epsilon]), side)[0]) <= log_delta

        if not exceeds(0.0):
            return 0.0
        high = self._largest_loss(side)
        if log_delta == -math.inf:
            return high
        if exceeds(high):
            return math.inf
        # delta(0) is the scale of the losses
        low, step = 0.0, math.exp(float(self._log_curve(np.zeros(1), side)[0]))
        while step < high and exceeds(step):
            low, step = step, 2.0 * step
        high = min(high, step)
        for _ in range(_MOST_HALVINGS):
            middle = (
                math.sqrt(low) * math.sqrt(high)
                if high > 4.0 * low > 0.0
                else (low + 0.5 * (high - low))
            )
            if not low < middle < high:
                break
            if exceeds(middle):
                low = middle
            else:
                high = middle
        return high

    def _trade_off(self, alphas: FloatArray, direction: Direction) -> FloatArray:
        loss = max(self._largest_loss(side) for side in self._sides("both"))
        return trade_off_below(self, alphas, direction, loss)


class LimitProfile(ApproximateProfile):
    """The curve of a limit law in place of the exact one of an experiment.

    The functions of `fastshuffle.limits` return it. It is an APPROXIMATION, no guarantee.
    """

    def __init__(
        self, experiment: ShuffleExperiment, *, method: str, source: str, region: str
    ) -> None:
        super().__init__(method=method, source=source, region=region)
        self._experiment = experiment

    @property
    def experiment(self) -> ShuffleExperiment:
        """The experiment the profile belongs to."""
        return self._experiment

    @property
    def n(self) -> int:
        """Number of users, including the one who differs."""
        return self._experiment.n

    def _setting(self) -> dict[str, Any]:
        return self._experiment.to_dict()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}, {self.validity}, of {self._experiment!r}>"
