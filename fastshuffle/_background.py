"""The hockey-stick divergence against a homogeneous background, as a bracketed curve."""

import math

import numpy as np

from fastshuffle._positive_part import (
    Bracket,
    Terms,
    log_mean_positive_part,
    log_smallest_exponential_bound,
)
from fastshuffle._typing import FloatArray
from fastshuffle.bracket import Curve

# Beyond this epsilon exp(epsilon) nears the end of a double; delta is bracketed by monotonicity.
_LARGEST_EPSILON = 700.0
# Rounding of a probability, of exp(epsilon), of a product and of a difference.
_NUMERATOR_ROUNDING = 1e-15
# Rounding of the mass outside the background and of the sum of both parts.
_CLEAR_ROUNDING = 1e-14


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
    loss : float
        The largest privacy loss ``log(alternative / null)``, which may be inf.

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
        loss: float,
    ) -> None:
        inside = background > 0.0
        self._n = n
        self._loss = loss
        self._background = background[inside]
        self._alternative, self._null = alternative[inside], null[inside]
        self._alternative_beyond, self._null_beyond = alternative[~inside], null[~inside]

    def curve(self, rtol: float) -> Curve:
        """Return the bracketed curve of P from Q."""
        return Curve(lambda epsilon: self._log_bracket(epsilon, rtol), self._loss, rtol)

    def chernoff_curve(self) -> Curve:
        """Return the curve of the Chernoff bound, ``(x)_+ <= exp(s x - 1) / s``."""

        def log_bracket(epsilon: float) -> Bracket:
            clear = self._log_beyond(epsilon)
            bound = log_smallest_exponential_bound(self._terms(min(epsilon, _LARGEST_EPSILON)))
            upper = float(np.logaddexp(clear, bound - math.log(self._n)))
            return Bracket(-math.inf, upper + _CLEAR_ROUNDING)

        return Curve(log_bracket, self._loss, 1e-9)

    def _terms(self, epsilon: float) -> list[Terms]:
        values = (self._alternative - math.exp(epsilon) * self._null) / self._background
        if not np.isfinite(values).all():
            smallest = float(self._background.min())
            raise ValueError(
                "probabilities of a homogeneous background must be at least 1e-300 times those "
                f"of the differing user, got {smallest!r}"
            )
        # the numerator is a difference of two rounded numbers
        size = self._alternative + math.exp(epsilon) * self._null
        errors = _NUMERATOR_ROUNDING * size / self._background
        probabilities = self._background
        missing = 1.0 - float(probabilities.sum())
        if missing > 0.0:  # messages of the others that are revealed
            values, errors = np.append(values, 0.0), np.append(errors, 0.0)
            probabilities = np.append(probabilities, missing)
        return [Terms(float(self._n), values, probabilities, errors)]

    def _log_beyond(self, epsilon: float) -> float:
        scaled = math.exp(min(epsilon, _LARGEST_EPSILON)) * self._null_beyond
        clear = float(np.maximum(self._alternative_beyond - scaled, 0.0).sum())
        return math.log(clear) if clear > 0.0 else -math.inf

    def _log_bracket(self, epsilon: float, rtol: float) -> Bracket:
        if epsilon == math.inf:
            return self._log_bracket_at_infinity()
        if epsilon > _LARGEST_EPSILON:
            lower = self._log_bracket_at_infinity().lower
            return Bracket(lower, self._log_bracket(_LARGEST_EPSILON, rtol).upper)
        inside = log_mean_positive_part(self._terms(epsilon), rtol)
        clear = self._log_beyond(epsilon)
        lower, upper = (float(np.logaddexp(clear, side - math.log(self._n))) for side in inside)
        return Bracket(lower - _CLEAR_ROUNDING, upper + _CLEAR_ROUNDING)

    def _log_bracket_at_infinity(self) -> Bracket:
        """Return the mass of the histograms that have all n messages outside the null."""
        unseen = self._null == 0.0
        revealed = max(0.0, 1.0 - float(self._background.sum()))
        share = min(1.0, float(self._background[unseen].sum()) + revealed)
        clear = float(self._alternative_beyond[self._null_beyond == 0.0].sum())
        inside = float(self._alternative[unseen].sum())
        with np.errstate(divide="ignore"):
            log_clear, log_inside = np.log([clear, inside])
            exponent = float(np.log(share)) * (self._n - 1) if self._n > 1 else 0.0
        # rounding of the share counts once for each of the others
        slack = _NUMERATOR_ROUNDING * self._n
        lower = float(np.logaddexp(log_clear, log_inside + exponent - slack))
        upper = float(np.logaddexp(log_clear, log_inside + min(0.0, exponent + slack)))
        return Bracket(lower - _CLEAR_ROUNDING, upper + _CLEAR_ROUNDING)
