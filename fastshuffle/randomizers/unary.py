"""Unary encodings: one bit for each input, sent with noise on every bit."""

import math
from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from fastshuffle._typing import IntArray
from fastshuffle.randomizers.base import Messages, check_messages
from fastshuffle.randomizers.frequency import (
    EpsilonAndSize,
    IndependentSupport,
    check_epsilon_and_size,
)
from fastshuffle.randomizers.supports import BitLaw

__all__ = ["optimized_unary_encoding", "symmetric_unary_encoding"]


class UnaryEncoding(IndependentSupport):
    """A bit for each input, 1 with probability p for the input held and q for the others."""

    __slots__ = ()

    def _sample(self, inputs: IntArray, rng: np.random.Generator) -> Messages:
        support = self._support()
        bits = rng.random((inputs.size, self.n_inputs)) < support.q
        bits[np.arange(inputs.size), inputs] = rng.random(inputs.size) < support.p
        return bits.astype(np.uint8)

    def _support_counts(self, messages: npt.ArrayLike) -> tuple[IntArray, int]:
        bits = check_messages(messages, (self.n_inputs,), 2)
        return bits.sum(axis=0, dtype=np.int64), bits.shape[0]


@final
@dataclass(frozen=True, eq=False, repr=False)
class SymmetricUnaryEncoding(EpsilonAndSize, UnaryEncoding):
    """See `symmetric_unary_encoding`."""

    _name = "symmetric_unary_encoding"

    def _bits(self) -> BitLaw:
        half = 0.5 * self._epsilon0
        log_keep = -math.log1p(math.exp(-half))
        log_flip = log_keep - half
        return BitLaw(log_keep, log_flip, log_flip, log_keep, self._epsilon0)


@final
@dataclass(frozen=True, eq=False, repr=False)
class OptimizedUnaryEncoding(EpsilonAndSize, UnaryEncoding):
    """See `optimized_unary_encoding`."""

    _name = "optimized_unary_encoding"

    def _bits(self) -> BitLaw:
        log_half = math.log(0.5)
        log_not_q = -math.log1p(math.exp(-self._epsilon0))
        log_q = log_not_q - self._epsilon0
        return BitLaw(log_half, log_half, log_q, log_not_q, self._epsilon0)


def symmetric_unary_encoding(epsilon0: float, k: int) -> SymmetricUnaryEncoding:
    """Return symmetric unary encoding (SUE): a bit for each input, all flipped alike.

    It is basic one-time RAPPOR.

    Parameters
    ----------
    epsilon0 : float
        Local privacy parameter, >= 0 and finite.
    k : int
        Number of inputs, from 2 to 2**53.

    Returns
    -------
    FrequencyRandomizer
        The mechanism. A message is k bits; those of n users are a 0/1 matrix of uint8, shape
        (n, k).

    Raises
    ------
    TypeError, ValueError
        If an argument is outside its domain.

    See Also
    --------
    optimized_unary_encoding : less variance for the same epsilon0.
    rappor : with a permanent and an instantaneous stage.

    Notes
    -----
    **Probabilities.** The bit of the input held is 1 and all others are 0 before the noise; every
    bit is then flipped with probability ``1 / (1 + exp(epsilon0 / 2))``, independently. So a bit
    is sent as 1 with ``p = exp(epsilon0 / 2) / (exp(epsilon0 / 2) + 1)`` for the input held and
    with ``q = 1 - p`` for the others [1]_ [2]_.

    **Privacy.** Two inputs differ in two bits, so the largest log ratio is
    ``log(p (1 - q) / ((1 - p) q))`` = `epsilon0` exactly, for every pair.

    **Decoder.** With C the messages with the bit of an input at 1, ``(C / n - q) / (p - q)`` is
    unbiased for its frequency f; the variance is
    ``(f p (1 - p) + (1 - f) q (1 - q)) / (n (p - q)**2)``.

    **Cost.** Merged rows of m inputs have ``2**m - 1`` groups, whatever k, for m up to 16;
    sampling takes O(n k) time and memory.

    References
    ----------
    .. [1] U. Erlingsson, V. Pihur, A. Korolova, "RAPPOR: Randomized Aggregatable
       Privacy-Preserving Ordinal Response", CCS 2014 (arXiv:1407.6981v2), basic one-time RAPPOR.
    .. [2] T. Wang, J. Blocki, N. Li, S. Jha, "Locally Differentially Private Protocols for
       Frequency Estimation", USENIX Security 2017 (arXiv:1705.04421), unary encoding (SUE).

    Examples
    --------
    >>> sue = symmetric_unary_encoding(1.0, 1000)
    >>> sue.merged((0, 1)).log_ratios
    array([[ 0.,  0.,  0.],
           [ 0., -1.,  1.]])
    >>> print(f"{sue.frequency_variance(10**6, 0.01):.3e}")
    3.918e-06
    """
    return SymmetricUnaryEncoding(*check_epsilon_and_size(epsilon0, k))


def optimized_unary_encoding(epsilon0: float, k: int) -> OptimizedUnaryEncoding:
    """Return optimized unary encoding (OUE): a bit for each input, with little noise on zeros.

    Parameters
    ----------
    epsilon0 : float
        Local privacy parameter, >= 0 and finite.
    k : int
        Number of inputs, from 2 to 2**53.

    Returns
    -------
    FrequencyRandomizer
        The mechanism. A message is k bits; those of n users are a 0/1 matrix of uint8, shape
        (n, k).

    Raises
    ------
    TypeError, ValueError
        If an argument is outside its domain.

    Notes
    -----
    **Probabilities.** The bit of the input held is sent as 1 with probability ``p = 1 / 2``, every
    other bit with ``q = 1 / (exp(epsilon0) + 1)``, independently [1]_.

    **Privacy.** Two inputs differ in two bits, so the largest log ratio is
    ``log(p (1 - q) / ((1 - p) q))`` = `epsilon0` exactly, for every pair.

    **Decoder.** With C the messages with the bit of an input at 1, ``(C / n - q) / (p - q)`` is
    unbiased for its frequency f. The variance is
    ``(f p (1 - p) + (1 - f) q (1 - q)) / (n (p - q)**2)``, which for f = 0 is
    ``4 exp(epsilon0) / (n (exp(epsilon0) - 1)**2)``, the least of all unary encodings.

    **Cost.** Merged rows of m inputs have ``2**m - 1`` groups, whatever k, for m up to 16;
    sampling takes O(n k) time and memory.

    References
    ----------
    .. [1] T. Wang, J. Blocki, N. Li, S. Jha, "Locally Differentially Private Protocols for
       Frequency Estimation", USENIX Security 2017 (arXiv:1705.04421), unary encoding (OUE).

    Examples
    --------
    >>> optimized_unary_encoding(1.0, 1000).merged_rows((0, 1))
    array([[0.5       , 0.36552929, 0.13447071],
           [0.5       , 0.13447071, 0.36552929]])
    """
    return OptimizedUnaryEncoding(*check_epsilon_and_size(epsilon0, k))
