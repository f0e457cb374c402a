"""The hockey-stick divergence against a homogeneous background, as a bracketed curve."""

import math
from typing import NamedTuple

import numpy as np

from fastshuffle._positive_part import (
    Bracket,
    Terms,
    log_mean_positive_part,
    log_smallest_exponential_bound,
)
from fastshuffle._typing import FloatArray, IntArray
from fastshuffle.bracket import Curve

# Beyond this epsilon exp(epsilon / 2) nears the end of a double: there delta is bracketed by
# monotonicity.
_LARGEST_EPSILON = 1200.0
LOG_TWO = math.log(2.0)
# Smaller numbers, and their products, have fewer than 13 digits as doubles.
LEAST_MASS = 1e-310
# Rounding of a few operations: of a probability, an exponential, a product and a difference.
_ROUNDING = 1e-15
# Rounding of the sum over the background and outside of it.
_TOTAL_ROUNDING = 1e-14


class Parts(NamedTuple):
    """delta is ``exp(log_scale) (exp(log_factor) E[(sum of terms)_+] / n + clear)``."""

    low: list[Terms]
    high: list[Terms]
    clear_low: float
    clear_high: float
    log_factor: float
    log_scale: float


class BackgroundPair:
    """Two laws of one message, among n - 1 messages of a third law.

    Parameters
    ----------
    background, alternative, null : array of float, shape (d,)
        The law of each of the other messages, and of the differing user's message under P and
        under Q. The two latter may sum to less than 1: what is missing is a message that is
        revealed and tells nothing.
    n : int
        Number of messages in all.
    losses : array of float, shape (d,)
        ``log(alternative / null)``, to a few units in the last place or, for an upper bound, a
        larger number. What it is where both are 0 has no effect.
    revealed : float, default 0
        The probability that another user's message is revealed: what ``background`` lacks to 1.
    loss : float, optional
        The largest privacy loss, from where on delta is 0; by default the largest of ``losses``.

    Notes
    -----
    Exactly, with Y_i independent of law ``background``,

        delta(epsilon) = (1/n) E[ (sum_{i=1}^n r(Y_i))_+ ] + sum_{y: background(y) = 0} (...)_+,

    ``r = (alternative - exp(epsilon) null) / background`` and (...) the numerator of r: the
    likelihood ratio of the histogram against n background messages is the mean of the ratios of
    its messages.
    """

    def __init__(
        self,
        background: FloatArray,
        alternative: FloatArray,
        null: FloatArray,
        *,
        n: int,
        losses: FloatArray,
        revealed: float = 0.0,
        loss: float | None = None,
    ) -> None:
        null, background = without_least(null), without_least(background)
        possible = (alternative > 0.0) | (null > 0.0) | (background > 0.0)
        self._n = n
        self._revealed = revealed
        self._background, self._alternative, self._null, self._losses = (
            x[possible] for x in (background, alternative, null, losses)
        )
        told = (self._alternative > 0.0) | (self._null > 0.0)
        self._losses = np.where(told, self._losses, 0.0)
        self._loss = float(self._losses[told].max(initial=0.0)) if loss is None else loss
        self._inside = self._background > 0.0

    def curve(self, rtol: float) -> Curve:
        """Return the bracketed curve of P from Q."""
        return Curve(lambda epsilon: self.log_bracket(epsilon, rtol), self._loss, rtol)

    def chernoff_curve(self) -> Curve:
        """Return the curve of the Chernoff bound, ``(x)_+ <= exp(s x - 1) / s``."""

        def log_bracket(epsilon: float) -> Bracket:
            parts = self._parts(min(epsilon, _LARGEST_EPSILON))
            inside = log_smallest_exponential_bound(parts.high)
            return Bracket(-math.inf, self._log_total(inside, parts, parts.clear_high, 1.0))

        return Curve(log_bracket, self._loss, 1e-9)

    def log_bracket(self, epsilon: float, rtol: float) -> Bracket:
        """Return a bracket of log delta(epsilon), about rtol wide."""
        if epsilon == math.inf:
            return self._log_bracket_at_infinity()
        if epsilon > _LARGEST_EPSILON:
            lower = self._log_bracket_at_infinity().lower
            return Bracket(lower, self.log_bracket(_LARGEST_EPSILON, rtol).upper)
        parts = self._parts(epsilon)
        inside = log_mean_positive_part(parts.low, parts.high, rtol)
        return Bracket(
            self._log_total(inside.lower, parts, parts.clear_low, -1.0),
            self._log_total(inside.upper, parts, parts.clear_high, 1.0),
        )

    def _parts(self, epsilon: float) -> Parts:
        low, high = self._numerators(epsilon)
        exponent = self._exponent(high)
        clear_low, clear_high = (
            float(np.maximum(x[~self._inside], 0.0).sum()) for x in (low, high)
        )
        return Parts(
            self._terms(low, exponent),
            self._terms(high, exponent),
            clear_low,
            clear_high,
            exponent * LOG_TWO,
            0.5 * epsilon,
        )

    def _numerators(self, epsilon: float) -> tuple[FloatArray, FloatArray]:
        """Return bounds on ``exp(-epsilon / 2) (alternative - exp(epsilon) null)``."""
        above = self._losses - epsilon
        alternative = self._alternative * math.exp(-0.5 * epsilon)
        null = self._null * math.exp(0.5 * epsilon)
        # relative to the larger of the two laws: the smaller may be 0 as a double
        larger = (self._losses > 0.0) & (above > -1.0)
        values = np.where(
            larger,
            -alternative * np.expm1(np.minimum(-above, 1.0)),
            null * np.expm1(np.minimum(above, 0.0)),
        )
        finite = np.where(np.isfinite(self._losses), self._losses, 0.0)
        errors = _ROUNDING * (np.abs(values) + alternative * (np.abs(finite) + epsilon))
        return values - errors, values + errors

    def _terms(self, numerators: FloatArray, exponent: int) -> list[Terms]:
        """Return the variables r, times ``2**-exponent``.

        A value so low that the sum cannot be positive with it is raised as far as that goes.
        """
        mantissas, exponents = self._quotients(numerators)
        with np.errstate(over="ignore"):
            values = np.ldexp(mantissas, exponents - exponent)
        values = np.maximum(values, -2.0 * self._n)
        background = self._background[self._inside]
        if self._revealed > 0.0:
            values, background = np.append(values, 0.0), np.append(background, self._revealed)
        return [Terms(float(self._n), values, background)]

    def _quotients(self, numerators: FloatArray) -> tuple[FloatArray, IntArray]:
        """Return r as mantissas and exponents: the background may be as small as a double goes."""
        above, shift_above = np.frexp(numerators[self._inside])
        below, shift_below = np.frexp(self._background[self._inside])
        return above / below, shift_above.astype(np.int64) - shift_below

    def _exponent(self, numerators: FloatArray) -> int:
        """Return a power of two at which the largest r is between 1/2 and 2; 0 if none is > 0."""
        mantissas, exponents = self._quotients(numerators)
        positive = mantissas > 0.0
        return int(exponents[positive].max()) if positive.any() else 0

    def _log_total(self, log_inside: float, parts: Parts, clear: float, side: float) -> float:
        """Return the log of delta from its two parts, rounded to a side."""
        log_clear = math.log(clear) if clear > 0.0 else -math.inf
        log_inside += parts.log_factor - math.log(self._n)
        total = parts.log_scale + float(np.logaddexp(log_clear, log_inside))
        return total + side * _TOTAL_ROUNDING

    def _log_bracket_at_infinity(self) -> Bracket:
        """Return the mass of the histograms that have all n messages outside the null."""
        unseen = self._inside & (self._null == 0.0)
        share = min(1.0, float(self._background[unseen].sum()) + self._revealed)
        clear = float(self._alternative[~self._inside & (self._null == 0.0)].sum())
        inside = float(self._alternative[unseen].sum())
        with np.errstate(divide="ignore"):
            log_clear, log_inside = np.log([clear, inside])
            exponent = float(np.log(share)) * (self._n - 1) if self._n > 1 else 0.0
        # rounding of the share counts once for each of the others
        slack = _ROUNDING * self._n
        lower = float(np.logaddexp(log_clear, log_inside + exponent - slack))
        upper = float(np.logaddexp(log_clear, log_inside + min(0.0, exponent + slack)))
        return Bracket(lower - _TOTAL_ROUNDING, upper + _TOTAL_ROUNDING)


def without_least(masses: FloatArray) -> FloatArray:
    """Return masses with 0 for those below `LEAST_MASS`.

    For the null and for the background that is the safe side of an upper bound.
    """
    return np.where(masses < LEAST_MASS, 0.0, masses)
