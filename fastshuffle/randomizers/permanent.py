"""RAPPOR with a permanent and an instantaneous stage."""

import math
from dataclasses import dataclass
from typing import Any, final

from fastshuffle._validation import PROBABILITY, check_count, check_real
from fastshuffle.randomizers.supports import BitLaw
from fastshuffle.randomizers.unary import UnaryEncoding

__all__ = ["rappor"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class Rappor(UnaryEncoding):
    """See `rappor`."""

    _k: int
    _f: float
    _p: float
    _q: float

    @property
    def n_inputs(self) -> int:
        """Number of inputs, which are 0, 1, ..., n_inputs - 1."""
        return self._k

    @property
    def epsilon0(self) -> float:
        """Local privacy parameter of one report."""
        return abs(self._bits().loss)

    @property
    def permanent_epsilon0(self) -> float:
        """Local privacy parameter of the permanent bits: ``2 log((2 - f) / f)``.

        It bounds what any number of reports from the same permanent bits can tell.
        """
        return 2.0 * _log_ratio(1.0 - self._f, 0.5 * self._f)

    def _bits(self) -> BitLaw:
        zero = self._effective(self._q, self._p)
        one = self._effective(self._p, self._q)
        not_zero = self._effective(1.0 - self._q, 1.0 - self._p)
        not_one = self._effective(1.0 - self._p, 1.0 - self._q)
        gap = (1.0 - self._f) * (self._q - self._p)
        least_one, least_not = min(one, zero), min(not_one, not_zero)
        size = _log_ratio(abs(gap), least_one) + _log_ratio(abs(gap), least_not)
        return BitLaw(
            log_p=_log(one),
            log_not_p=_log(not_one),
            log_q=_log(zero),
            log_not_q=_log(not_zero),
            loss=math.copysign(size, gap),
        )

    def _effective(self, if_flipped: float, if_kept: float) -> float:
        """Return the probability after both stages; a permanent bit is flipped with f / 2."""
        half = 0.5 * self._f
        return half * if_flipped + (1.0 - half) * if_kept

    def to_dict(self) -> dict[str, Any]:
        """Return the name of the factory and its arguments."""
        return {"mechanism": "rappor", "k": self._k, "f": self._f, "p": self._p, "q": self._q}


def _log(x: float) -> float:
    return math.log(x) if x > 0.0 else -math.inf


def _log_ratio(gap: float, low: float) -> float:
    """Return ``log((low + gap) / low)``, 0 for a gap of 0 and inf where only low is 0."""
    if gap == 0.0:
        return 0.0
    if low == 0.0:
        return math.inf
    ratio = gap / low
    return math.log1p(ratio) if ratio < math.inf else math.log(gap) - math.log(low)


def rappor(k: int, *, f: float, p: float, q: float) -> Rappor:
    """Return basic RAPPOR: a bit for each input, through two stages of noise.

    Parameters
    ----------
    k : int
        Number of inputs and of bits, from 2 to 2**53: one bit for each input, so no Bloom filter.
    f : float
        Noise of the permanent stage, in [0, 1]: a bit is replaced by a fair coin with
        probability f, once and for all.
    p : float
        Probability in [0, 1] that a permanent bit 0 is reported as 1.
    q : float
        Probability in [0, 1] that a permanent bit 1 is reported as 1.

    Returns
    -------
    FrequencyRandomizer
        The law of one report. A message is k bits; those of n users are a 0/1 matrix of uint8,
        shape (n, k). It also has the property ``permanent_epsilon0``.

    Raises
    ------
    TypeError, ValueError
        If an argument is outside its domain.

    See Also
    --------
    symmetric_unary_encoding : the permanent stage alone, that is p = 0 and q = 1.

    Notes
    -----
    **Probabilities.** The bit of the input held is 1 and all others are 0. The permanent stage
    flips each bit with probability f / 2, the instantaneous stage reports it with p and q. So a
    bit of a report is 1 with probability ``q* = (f / 2) (p + q) + (1 - f) q`` for the input held
    and ``p* = (f / 2) (p + q) + (1 - f) p`` for the others [1]_.

    **Privacy.** The largest log ratio of one report, `epsilon0`, is
    ``|log(q* (1 - p*) / (p* (1 - q*)))|``, exactly and for every pair, since two inputs differ in
    two bits. That of the permanent bits is likewise ``2 log((1 - f / 2) / (f / 2))``. Several
    reports of a user from the same permanent bits are no independent messages: their joint loss
    exceeds that of one, up to the permanent one, and this randomizer does not describe them. Every
    call of ``sample`` draws new permanent bits.

    **Decoder.** With C the messages with the bit of an input at 1, ``(C / n - p*) / (q* - p*)`` is
    unbiased for its frequency; the variance is ``(frequency q* (1 - q*) + (1 - frequency) p* (1 -
    p*)) / (n (q* - p*)**2)``.

    **Cost.** Merged rows of m inputs have at most ``2**m - 1`` groups, whatever k, for m up to 16;
    sampling takes O(n k) time and memory.

    References
    ----------
    .. [1] U. Erlingsson, V. Pihur, A. Korolova, "RAPPOR: Randomized Aggregatable
       Privacy-Preserving Ordinal Response", CCS 2014 (arXiv:1407.6981v2).

    Examples
    --------
    >>> report = rappor(128, f=0.5, p=0.5, q=0.75)
    >>> print(f"{report.epsilon0:.6f} {report.permanent_epsilon0:.6f}")
    0.537143 2.197225
    """
    return Rappor(
        check_count("k", k, minimum=2),
        check_real("f", f, PROBABILITY),
        check_real("p", p, PROBABILITY),
        check_real("q", q, PROBABILITY),
    )
