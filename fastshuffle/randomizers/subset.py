"""Subset selection."""

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from fastshuffle._typing import FloatArray, IntArray
from fastshuffle._validation import check_count
from fastshuffle.randomizers.base import Messages, check_messages
from fastshuffle.randomizers.frequency import (
    EpsilonAndSize,
    PureProtocol,
    Support,
    check_epsilon_and_size,
)
from fastshuffle.randomizers.merging import MergedRows
from fastshuffle.randomizers.supports import (
    PatternLaw,
    merge_patterns,
    shared_patterns,
    support_patterns,
)

__all__ = ["subset_selection"]

# Random keys drawn at a time by the sampler: 32 MB.
_KEYS = 2**22


@final
@dataclass(frozen=True, eq=False, repr=False)
class SubsetSelection(EpsilonAndSize, PureProtocol):
    """See `subset_selection`."""

    _name = "subset_selection"
    omega: int

    def _log_p(self) -> float:
        odds_against = (self._k - self.omega) / self.omega
        return -math.log1p(odds_against * math.exp(-self._epsilon0))

    def _merged(self, inputs: tuple[int, ...]) -> MergedRows:
        return merge_patterns(self._pattern_law(len(inputs)))

    def _shared(self, inputs: tuple[int, ...]) -> FloatArray:
        return shared_patterns(self._pattern_law(len(inputs)))

    def _pattern_law(self, m: int) -> PatternLaw:
        patterns = support_patterns(m)
        log_uniform = np.array([self._log_uniform(m, s) for s in range(m + 1)])
        log_share = log_uniform[patterns.sum(axis=0)] + math.log(self._k / self.omega)
        log_with = log_share + self._log_p()
        return PatternLaw(patterns, log_with, log_with - self._epsilon0, self._epsilon0)

    def _log_uniform(self, m: int, s: int) -> float:
        """Return the log probability that a uniform subset holds s given inputs of m, not others.

        That is ``binomial(k - m, omega - s) / binomial(k, omega)``, by drawing one by one.
        """
        if s > self.omega or m - s > self._k - self.omega:
            return -math.inf
        log_held = sum(math.log((self.omega - i) / (self._k - i)) for i in range(s))
        return log_held + sum(
            math.log1p(-(self.omega - s) / (self._k - s - i)) for i in range(m - s)
        )

    def _sample(self, inputs: IntArray, rng: np.random.Generator) -> Messages:
        subsets = np.empty((inputs.size, self.omega), dtype=np.int64)
        users = max(1, _KEYS // self._k)
        for start in range(0, inputs.size, users):
            held = inputs[start : start + users]
            keys = rng.random((held.size, self._k))
            inside = rng.random(held.size) < self._support().p
            keys[np.arange(held.size), held] = np.where(inside, -1.0, 2.0)
            smallest = keys.argpartition(self.omega - 1, axis=1)[:, : self.omega]
            subsets[start : start + users] = np.sort(smallest, axis=1)
        return subsets

    def _support(self) -> Support:
        k, omega = self._k, self.omega
        shrunk = math.exp(-self._epsilon0)
        p = math.exp(self._log_p())
        not_p = p * shrunk * ((k - omega) / omega)
        # another input is one of omega - 1, or of omega, among the k - 1 others
        q = (p * (omega - 1) + not_p * omega) / (k - 1)
        not_q = (p * (k - omega) + not_p * (k - omega - 1)) / (k - 1)
        difference = -p * ((k - omega) / (k - 1)) * math.expm1(-self._epsilon0)
        return Support(p, not_p, q, not_q, difference)

    def _support_counts(self, messages: npt.ArrayLike) -> tuple[IntArray, int]:
        subsets = check_messages(messages, (self.omega,), self._k).astype(np.int64)
        ordered = np.sort(subsets, axis=1)
        repeated = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
        if repeated.any():
            subset = ordered[repeated.argmax()].tolist()
            raise ValueError(f"messages must be sets of {self.omega} inputs, got {subset}")
        return np.bincount(subsets.ravel(), minlength=self._k), subsets.shape[0]

    def to_dict(self) -> dict[str, Any]:
        """Return the name of the factory and its arguments."""
        return {
            "mechanism": self._name,
            "epsilon0": self._epsilon0,
            "k": self._k,
            "omega": self.omega,
        }


def subset_selection(epsilon0: float, k: int, omega: int | None = None) -> SubsetSelection:
    """Return subset selection: send a set of omega inputs, more often one with the input held.

    Parameters
    ----------
    epsilon0 : float
        Local privacy parameter, >= 0 and finite.
    k : int
        Number of inputs, from 2 to 2**53.
    omega : int, optional
        Size of the sets, from 1 to k - 1. By default the integer next to ``k / (exp(epsilon0) +
        1)``, at least 1, which nearly minimises the variance.

    Returns
    -------
    FrequencyRandomizer
        The mechanism, with the property ``omega``. A message is the sorted list of the omega
        inputs in the set; those of n users are int64 of shape (n, omega).

    Raises
    ------
    TypeError, ValueError
        If an argument is outside its domain.

    See Also
    --------
    k_randomized_response : the case omega = 1.

    Notes
    -----
    **Probabilities.** A set that holds the input held is sent with probability ``exp(epsilon0) /
    Z``, any other set of omega inputs with ``1 / Z``, where ``Z = exp(epsilon0) binomial(k - 1,
    omega - 1) + binomial(k - 1, omega)`` [1]_ [2]_. So the input held is in the set with ``p =
    omega exp(epsilon0) / (omega exp(epsilon0) + k - omega)``, any other with
    ``q = (p (omega - 1) + (1 - p) omega) / (k - 1)``.

    **Privacy.** The largest log ratio is `epsilon0` exactly, for every pair.

    **Decoder.** With C the sets that hold an input, ``(C / n - q) / (p - q)`` is unbiased for its
    frequency f; the variance is ``(f p (1 - p) + (1 - f) q (1 - q)) / (n (p - q)**2)``.

    **Cost.** Merged rows of m inputs have at most ``2**m - 1`` groups, whatever k and omega, for m
    up to 16; sampling takes O(n k) time and 32 MB or one user's keys.

    References
    ----------
    .. [1] M. Ye, A. Barg, "Optimal Schemes for Discrete Distribution Estimation under Locally
       Differential Privacy", IEEE Trans. Inf. Theory 64 (2018) (arXiv:1702.00610), the scheme
       and the best size of the sets.
    .. [2] S. Wang et al., "Mutual Information Optimally Local Private Discrete Distribution
       Estimation", arXiv:1607.08025, the k-subset mechanism.

    Examples
    --------
    >>> subset_selection(2.0, 256)
    <subset_selection: epsilon0 = 2, k = 256, omega = 31>
    >>> subset_selection(1.0, 256, omega=64).merged_rows((0, 255))
    array([[0.51040407, 0.3579233 , 0.13167262],
           [0.51040407, 0.13167262, 0.3579233 ]])
    """
    checked_epsilon0, size = check_epsilon_and_size(epsilon0, k)
    if omega is None:
        omega = max(
            1, round(size * math.exp(-checked_epsilon0) / (1.0 + math.exp(-checked_epsilon0)))
        )
    return SubsetSelection(
        checked_epsilon0, size, check_count("omega", omega, minimum=1, maximum=size - 1)
    )
