"""k-ary randomized response."""

import math
from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from fastshuffle._typing import FloatArray, IntArray
from fastshuffle.randomizers.base import check_messages
from fastshuffle.randomizers.frequency import (
    EpsilonAndSize,
    PureProtocol,
    Support,
    check_epsilon_and_size,
)
from fastshuffle.randomizers.merging import MergedRows, merge_log_columns

__all__ = ["k_randomized_response"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class KRandomizedResponse(EpsilonAndSize, PureProtocol):
    """See `k_randomized_response`."""

    _name = "k_randomized_response"

    def _log_p(self) -> float:
        return -math.log1p((self._k - 1) * math.exp(-self._epsilon0))

    def _merged(self, inputs: tuple[int, ...]) -> MergedRows:
        m = len(inputs)
        held = np.eye(m, min(m + 1, self._k), dtype=np.int64)
        log_columns = self._log_p() - self._epsilon0 * (1.0 - held.astype(np.float64))
        if m < self._k:  # the last group is all other outputs
            log_columns[:, m] += math.log(self._k - m)
        groups = np.arange(held.shape[1]) if self._epsilon0 > 0.0 else np.zeros(held.shape[1], int)
        return merge_log_columns(log_columns, self._epsilon0 * (held - held[0]), groups)

    def _shared(self, inputs: tuple[int, ...]) -> FloatArray:
        m = len(inputs)
        held = np.eye(m + 1, min(m + 1, self._k))
        held[m] = 0.0
        log_rows = self._log_p() - self._epsilon0 * (1.0 - held)
        if m < self._k:
            log_rows[:, m] += math.log(self._k - m)
        return np.exp(log_rows)

    def _sample(self, inputs: IntArray, rng: np.random.Generator) -> IntArray:
        keep = rng.random(inputs.size) < self._support().p
        return np.where(keep, inputs, other_value(inputs, self._k, rng))

    def _support(self) -> Support:
        p = math.exp(self._log_p())
        q = p * math.exp(-self._epsilon0)
        return Support(p, (self._k - 1) * q, q, 1.0 - q, -p * math.expm1(-self._epsilon0))

    def _support_counts(self, messages: npt.ArrayLike) -> tuple[IntArray, int]:
        values = check_messages(messages, (), self._k).astype(np.int64)
        return np.bincount(values, minlength=self._k), values.size


def other_value(values: IntArray, n_values: int, rng: np.random.Generator) -> IntArray:
    """Draw a uniform one of 0, ..., n_values - 1 that differs from each value."""
    other = rng.integers(n_values - 1, size=values.size)
    return other + (other >= values)


def k_randomized_response(epsilon0: float, k: int) -> KRandomizedResponse:
    """Return k-ary randomized response: send the input held, or a uniform one of the others.

    Parameters
    ----------
    epsilon0 : float
        Local privacy parameter, >= 0 and finite.
    k : int
        Number of inputs and of outputs, from 2 to 2**53.

    Returns
    -------
    FrequencyRandomizer
        The mechanism. Messages are integers from 0 to k - 1; those of n users have shape (n,).

    Raises
    ------
    TypeError, ValueError
        If an argument is outside its domain.

    See Also
    --------
    binary_randomized_response : the same law for k = 2, as a matrix.

    Notes
    -----
    **Probabilities.** The input held is sent with probability ``p = exp(epsilon0) /
    (exp(epsilon0) + k - 1)``, any other one with ``q = 1 / (exp(epsilon0) + k - 1)`` [1]_.

    **Privacy.** The largest log ratio is log(p / q) = `epsilon0` exactly, for every pair.

    **Decoder.** With C the messages that equal an input, ``(C / n - q) / (p - q)`` is unbiased for
    its frequency f; the variance is ``(f p (1 - p) + (1 - f) q (1 - q)) / (n (p - q)**2)``.

    **Cost.** Merged rows of m inputs have m + 1 groups, whatever k.

    References
    ----------
    .. [1] P. Kairouz, K. Bonawitz, D. Ramage, "Discrete Distribution Estimation under Local
       Privacy", ICML 2016 (arXiv:1602.07387), the section on k-ary randomized response.

    Examples
    --------
    >>> import numpy as np
    >>> krr = k_randomized_response(2.0, 10**6)
    >>> krr
    <k_randomized_response: epsilon0 = 2, k = 1000000>
    >>> krr.merged((0, 1)).log_ratios
    array([[ 0.,  0.,  0.],
           [-2.,  2.,  0.]])
    >>> small = k_randomized_response(5.0, 3)
    >>> small.estimate_frequencies(small.sample([0] * 900 + [2] * 100, np.random.default_rng(1)))
    array([ 0.90438976, -0.0016819 ,  0.09729214])
    """
    return KRandomizedResponse(*check_epsilon_and_size(epsilon0, k))
