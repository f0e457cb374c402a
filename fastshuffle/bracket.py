"""Profiles that are known between two proved numbers, and their inverse on the safe side."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np

from fastshuffle._positive_part import Bracket
from fastshuffle._supporting_lines import trade_off_below
from fastshuffle._typing import Direction, FloatArray
from fastshuffle.profile import PrivacyProfile, Validity

__all__ = ["BracketProfile", "Curve"]

_MOST_STEPS = 200


@dataclass(frozen=True)
class Curve:
    """The upper and lower log delta of one direction as a function of epsilon.

    Attributes
    ----------
    log_bracket : callable
        From epsilon, inf included, to a `Bracket` of log delta.
    loss : float
        The largest privacy loss: delta is 0 from there on. It may be inf.
    rtol : float
        Relative width of the bracket that is aimed at.
    log_upper : callable, optional
        The upper end alone, where that is less work.
    """

    log_bracket: Callable[[float], Bracket]
    loss: float
    rtol: float
    log_upper: Callable[[float], float] | None = None

    def at(self, epsilon: float) -> Bracket:
        """Return the bracket of log delta at epsilon."""
        if epsilon >= self.loss and self.loss < math.inf:
            return Bracket(-math.inf, -math.inf)
        return self.log_bracket(epsilon)

    def upper(self, epsilon: float) -> float:
        """Return the upper end of log delta at epsilon."""
        if self.log_upper is None or epsilon >= self.loss:
            return self.at(epsilon).upper
        return self.log_upper(epsilon)

    def epsilon(self, log_delta: float) -> float:
        """Return an epsilon whose upper log delta is at most ``log_delta``, by less than rtol."""
        low, value = 0.0, self.upper(0.0) - log_delta
        if value <= 0.0:
            return 0.0
        if log_delta == -math.inf:
            return self.loss
        high = self.loss
        if high == math.inf and self.upper(math.inf) > log_delta:
            return math.inf
        last, last_value = low, value
        epsilon = min(0.5 * high, math.exp(value + log_delta) * math.sqrt(10.0 * (1.0 + value)))
        for _ in range(_MOST_STEPS):
            value = self.upper(epsilon) - log_delta
            if value > 0.0:
                low = epsilon
            else:
                high = epsilon
            closed = high < math.inf and high - low <= 1e-10 * high
            if closed or -0.1 * self.rtol <= value <= 0.0:
                break
            # a secant aimed at the middle of the accepted range
            slope = (value - last_value) / (epsilon - last)
            last, last_value = epsilon, value
            epsilon = epsilon - (value + 0.05 * self.rtol) / slope if slope < 0.0 else math.nan
            if high == math.inf:  # not so far out that the curve is no longer known
                epsilon = min(epsilon, 2.0 * low) if epsilon > low else 2.0 * low
            elif not low < epsilon < high:
                epsilon = 0.5 * (low + high)
        return high


@final
class BracketProfile(PrivacyProfile):
    """A profile bracketed by two proved curves; ``delta`` is the upper one.

    `worst_case_profile`, `exact_profile` and the bounds return it where no closed form exists.
    ``bounds(epsilon)`` shows the gap.
    """

    def __init__(
        self,
        curves: dict[Literal["forward", "reverse"], Curve],
        *,
        n: int,
        validity: Validity,
        method: str,
        source: str,
        setting: dict[str, Any],
    ) -> None:
        self._curves = curves
        self._n = n
        self._validity = validity
        self._method = method
        self._source = source
        self._described = setting

    @property
    def n(self) -> int:
        """Number of users, including the one who differs."""
        return self._n

    @property
    def validity(self) -> Validity:
        """What the numbers are."""
        return self._validity

    @property
    def method(self) -> str:
        """How the numbers are computed, in a few words."""
        return self._method

    @property
    def source(self) -> str:
        """The definition or theorem, with its version, that the numbers rest on."""
        return self._source

    def _setting(self) -> dict[str, Any]:
        return self._described

    def _chosen(self, direction: Direction) -> list[Curve]:
        if direction == "both":
            return list(self._curves.values())
        return [self._curves[direction]]

    def _log_bounds(
        self, epsilons: FloatArray, direction: Direction
    ) -> tuple[FloatArray, FloatArray]:
        curves = self._chosen(direction)
        brackets = np.array([[curve.at(e) for e in epsilons.tolist()] for curve in curves])
        brackets = brackets.reshape(len(curves), epsilons.size, 2)
        lower, upper = brackets.max(axis=0).T
        return lower, np.minimum(upper, 0.0)

    def _log_delta(self, epsilons: FloatArray, direction: Direction) -> FloatArray:
        curves = self._chosen(direction)
        largest = [max(curve.upper(e) for curve in curves) for e in epsilons.tolist()]
        return np.minimum(np.array(largest), 0.0)

    def _epsilon(self, log_deltas: FloatArray, direction: Direction) -> FloatArray:
        curves = self._chosen(direction)
        return np.array([max(c.epsilon(d) for c in curves) for d in log_deltas.tolist()])

    def _trade_off(self, alphas: FloatArray, direction: Direction) -> FloatArray:
        loss = max(curve.loss for curve in self._curves.values())
        return trade_off_below(self, alphas, direction, loss)

    def __repr__(self) -> str:
        return f"<BracketProfile, {self._validity}, n = {self._n}: {self._method}>"
