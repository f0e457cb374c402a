"""Mechanisms whose messages estimate the frequencies of the inputs."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from fastshuffle._typing import FloatArray, IntArray
from fastshuffle._validation import (
    NONNEGATIVE_FINITE,
    PROBABILITY,
    check_count,
    check_real,
    check_reals,
)
from fastshuffle.randomizers.base import LocalRandomizer
from fastshuffle.randomizers.merging import MergedRows
from fastshuffle.randomizers.supports import (
    BitLaw,
    independent_support,
    merge_patterns,
    shared_patterns,
)

__all__ = ["FrequencyRandomizer"]


class FrequencyRandomizer(LocalRandomizer):
    """Local randomizer whose messages give unbiased estimates of all input frequencies."""

    __slots__ = ()

    def estimate_frequencies(self, messages: npt.ArrayLike) -> FloatArray:
        """Return an unbiased estimate of the share of users who hold each input.

        Parameters
        ----------
        messages : array_like
            One or more messages, as `sample` gives them, in any order.

        Returns
        -------
        numpy.ndarray of float64, shape (n_inputs,)
            The estimates. They are not clipped: some may be negative or exceed 1, which is what
            keeps them unbiased.

        Raises
        ------
        TypeError, ValueError
            If there is no message, one is unknown, or all rows of the randomizer are equal.
        """
        if self.epsilon0 == 0.0:
            raise ValueError(f"epsilon0 must be > 0 to estimate frequencies, got 0 for {self!r}")
        return self._estimate(messages)

    @abstractmethod
    def _estimate(self, messages: npt.ArrayLike) -> FloatArray:
        """Return the estimates where the rows of the randomizer differ."""

    def frequency_variance(self, n: float, frequency: npt.ArrayLike) -> float | FloatArray:
        """Return the variance of the estimated frequency of an input.

        Parameters
        ----------
        n : int
            Number of users, >= 1.
        frequency : float or array_like of float
            The share of users who hold the input, in [0, 1].

        Returns
        -------
        float or numpy.ndarray
            The variance over the randomness of the users, whose inputs are fixed; inf if all rows
            of the randomizer are equal. Where it depends on what the others hold, the docstring
            of the mechanism says so, and it is the largest.

        Raises
        ------
        TypeError, ValueError
            If an argument is outside its domain.
        """
        users = check_count("n", n, minimum=1)
        shares, shape = check_reals("frequency", frequency, PROBABILITY)
        with np.errstate(over="ignore"):
            variance = self._variance_of_one(shares) / users
        return variance.reshape(shape) if shape else float(variance[0])

    @abstractmethod
    def _variance_of_one(self, frequency: FloatArray) -> FloatArray:
        """Return n times the variance of the estimate."""


@dataclass(frozen=True, eq=False, repr=False)
class EpsilonAndSize(FrequencyRandomizer):
    """Mechanism defined by its name, epsilon0 and the number k of inputs."""

    _name: ClassVar[str]
    _epsilon0: float
    _k: int

    @property
    def n_inputs(self) -> int:
        """Number of inputs, which are 0, 1, ..., n_inputs - 1."""
        return self._k

    @property
    def epsilon0(self) -> float:
        """Local privacy parameter: the largest log ratio over all inputs and outputs."""
        return self._epsilon0

    def to_dict(self) -> dict[str, Any]:
        """Return the name of the factory and its arguments."""
        return {"mechanism": self._name, "epsilon0": self._epsilon0, "k": self._k}


def check_epsilon_and_size(epsilon0: float, k: float) -> tuple[float, int]:
    """Return epsilon0 and the number of inputs, after checks."""
    return check_real("epsilon0", epsilon0, NONNEGATIVE_FINITE), check_count("k", k, minimum=2)


class Support(NamedTuple):
    """Probabilities p and q that a message supports the input held, and another one.

    ``not_p`` is 1 - p, ``not_q`` is 1 - q and ``difference`` is p - q, each to relative accuracy.
    """

    p: float
    not_p: float
    q: float
    not_q: float
    difference: float


class PureProtocol(FrequencyRandomizer):
    """Mechanism whose message supports a set of inputs, with one probability q for all not held.

    With C the number of the n messages that support an input, ``(C / n - q) / (p - q)`` estimates
    its frequency f with variance ``(f p (1 - p) + (1 - f) q (1 - q)) / (n (p - q)**2)``.

    References
    ----------
    .. [1] T. Wang, J. Blocki, N. Li, S. Jha, "Locally Differentially Private Protocols for
       Frequency Estimation", USENIX Security 2017 (arXiv:1705.04421), the framework of pure
       protocols: their definition, the unbiased estimator and its variance.
    """

    __slots__ = ()

    def representative_inputs(self) -> tuple[int, ...]:
        """Return three inputs, or both of two: the mechanism treats all alike."""
        return tuple(range(min(3, self.n_inputs)))

    def representative_pairs(self) -> tuple[tuple[int, int], ...]:
        """Return one pair: any permutation of the inputs only relabels the messages."""
        return ((0, 1),)

    @abstractmethod
    def _support(self) -> Support:
        """Return the probabilities that a message supports an input."""

    @abstractmethod
    def _support_counts(self, messages: npt.ArrayLike) -> tuple[IntArray, int]:
        """Return how many messages support each input, and the number of messages."""

    def _estimate(self, messages: npt.ArrayLike) -> FloatArray:
        counts, n = self._support_counts(messages)
        support = self._support()
        return (counts / n - support.q) / support.difference

    def _variance_of_one(self, frequency: FloatArray) -> FloatArray:
        p, not_p, q, not_q, difference = self._support()
        if difference == 0.0:
            return np.full_like(frequency, math.inf)
        spread = frequency * (p * not_p) + (1.0 - frequency) * (q * not_q)
        return spread / difference / difference


class IndependentSupport(PureProtocol):
    """Pure protocol whose message supports each input independently of the others."""

    __slots__ = ()

    @abstractmethod
    def _bits(self) -> BitLaw:
        """Return the law of the support of one input."""

    def _merged(self, inputs: tuple[int, ...]) -> MergedRows:
        return merge_patterns(independent_support(len(inputs), self._bits()))

    def _shared(self, inputs: tuple[int, ...]) -> FloatArray:
        return shared_patterns(independent_support(len(inputs), self._bits()))

    def _support(self) -> Support:
        bits = self._bits()
        p, not_p, q, not_q = np.exp(bits[:4]).tolist()
        larger = max(p * not_q, not_p * q)
        difference = -math.copysign(larger, bits.loss) * math.expm1(-abs(bits.loss))
        return Support(p, not_p, q, not_q, difference)
