"""Mechanisms that report one number of [0, 1], each message an unbiased estimate of it."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from fastshuffle._typing import FloatArray, IntArray
from fastshuffle.bounds import blanket_profile
from fastshuffle.exact import worst_case_profile
from fastshuffle.profile import PrivacyProfile
from fastshuffle.randomizers import LocalRandomizer, binary_randomized_response, laplace
from fastshuffle.randomizers.merging import MergedRows, merge_formula

# Equidistant numbers that Laplace noise is added to: the worst case is over finitely many pairs.
LEVELS = 9


@dataclass(frozen=True)
class NumericMechanism(ABC):
    """What a user applies to a number of [0, 1].

    Attributes
    ----------
    epsilon0 : float
        Local privacy parameter, > 0 and finite.
    """

    words: ClassVar[str]
    epsilon0: float

    @abstractmethod
    def report(self, values: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draw the message of each user."""

    @abstractmethod
    def decode(self, messages: FloatArray) -> FloatArray:
        """Return for each message an unbiased estimate of the number behind it."""

    @abstractmethod
    def variance(self, values: FloatArray) -> FloatArray:
        """Return the variance of the decoded message of a user, for each number held."""

    @property
    @abstractmethod
    def largest_variance(self) -> float:
        """The largest variance over all numbers that a user may hold."""

    @abstractmethod
    def profile(self, n: int) -> PrivacyProfile:
        """Return a bound over all datasets of n users."""


@final
class RoundedResponse(NumericMechanism):
    """Stochastic rounding to a bit, then binary randomized response.

    The chance of a 1 is linear in the number held, so that every law of a message is a mixture of
    the two of the ends: by joint convexity of the divergence the worst case over bits is that over
    all numbers, for the differing user and for the others. Messages are 0.0 and 1.0.
    """

    words = "stochastic rounding to a bit and binary randomized response"

    @property
    def flip(self) -> float:
        """The probability that a bit is sent wrongly."""
        return math.exp(-self.epsilon0) / (1.0 + math.exp(-self.epsilon0))

    @property
    def difference(self) -> float:
        """The probability of a right bit less that of a wrong one."""
        return math.tanh(0.5 * self.epsilon0)

    def _chance(self, values: FloatArray) -> FloatArray:
        return self.flip + values * self.difference

    def report(self, values: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draw the bit of each user."""
        return (rng.random(values.size) < self._chance(values)).astype(np.float64)

    def decode(self, messages: FloatArray) -> FloatArray:
        """Return ``(message - flip) / difference``."""
        return (messages - self.flip) / self.difference

    def variance(self, values: FloatArray) -> FloatArray:
        """Return ``b (1 - b) / difference**2`` with b the chance of a 1."""
        chance = self._chance(values)
        return chance * (1.0 - chance) / self.difference**2

    @property
    def largest_variance(self) -> float:
        """That of 1/2."""
        return 0.25 / self.difference**2

    def profile(self, n: int) -> PrivacyProfile:
        """Return the certified worst case of binary randomized response."""
        return worst_case_profile(binary_randomized_response(self.epsilon0), n)


@final
class LaplaceReport(NumericMechanism):
    """Stochastic rounding to a few levels, then Laplace noise.

    The rounding adds at most ``1 / (4 (LEVELS - 1)**2)`` to the variance of ``2 / epsilon0**2``,
    and with it the worst case over the levels is that over all numbers, by joint convexity.
    """

    words = f"stochastic rounding to {LEVELS} levels and Laplace noise"

    def report(self, values: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draw the rounded and noisy number of each user."""
        scaled = values * (LEVELS - 1)
        level = np.floor(scaled)
        level += rng.random(values.size) < scaled - level
        return laplace(self.epsilon0, LEVELS).sample(level.astype(np.int64), rng)

    def decode(self, messages: FloatArray) -> FloatArray:
        """Return the messages, which are unbiased."""
        return messages

    def variance(self, values: FloatArray) -> FloatArray:
        """Return the variances of the noise and of the rounding together."""
        part = values * (LEVELS - 1) % 1.0
        return 2.0 / self.epsilon0**2 + part * (1.0 - part) / (LEVELS - 1) ** 2

    @property
    def largest_variance(self) -> float:
        """That half-way between two levels."""
        return 2.0 / self.epsilon0**2 + 0.25 / (LEVELS - 1) ** 2

    def profile(self, n: int) -> PrivacyProfile:
        """Return the worst case over the levels."""
        return worst_case_profile(laplace(self.epsilon0, LEVELS), n)


@final
class Piecewise(NumericMechanism):
    """The piecewise mechanism: a uniform number near the one held, or anywhere else.

    Notes
    -----
    With t = 2 x - 1 in [-1, 1] for a user at x, ``z = exp(epsilon0 / 2)`` and ``C = (z + 1) /
    (z - 1)``, the message is uniform on ``[l, l + C - 1]``, ``l = (C + 1) t / 2 - (C - 1) / 2``,
    with probability ``z / (z + 1)``, and uniform on the rest of [-C, C] otherwise. Its mean is t,
    its variance ``t**2 / (z - 1) + (z + 3) / (3 (z - 1)**2)`` [1]_. Both are tested by integration.

    **Privacy.** The density takes two values of ratio exp(epsilon0). What all inputs share is
    uniform on [-C, C], since every point is off the plateau of t = -1 or of t = 1. So the blanket
    bound of a pair depends only on how its plateaus overlap, and is the larger the less they do:
    where two parts of equal width, one on both plateaus and one on neither, become parts on one
    each, the two values of ``W_b - exp(epsilon) W_a`` there keep their sum and move apart, which
    is larger in the convex order. The plateaus of the two ends do not overlap: their blanket
    bounds all pairs.

    References
    ----------
    .. [1] N. Wang et al., "Collecting and Analyzing Multidimensional Data with Local Differential
       Privacy", ICDE 2019 (arXiv:1907.00782), the piecewise mechanism.
    """

    words = "the piecewise mechanism"

    @property
    def _spread(self) -> float:
        """``1 / (z - 1)``."""
        return math.exp(-0.5 * self.epsilon0) / -math.expm1(-0.5 * self.epsilon0)

    @property
    def reach(self) -> float:
        """C, the largest message."""
        return 1.0 / math.tanh(0.25 * self.epsilon0)

    def report(self, values: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draw a number of [-C, C] for each user."""
        # C - 1 is the width of the plateau and C + 1 that of the rest
        width, rest = 2.0 * self._spread, self.reach + 1.0
        left = 0.5 * rest * (2.0 * values - 1.0) - 0.5 * width
        near = rng.random(values.size) < 1.0 / (1.0 + math.exp(-0.5 * self.epsilon0))
        uniform = rng.random(values.size)
        far = -self.reach + rest * uniform
        far += np.where(far >= left, width, 0.0)
        return np.where(near, left + width * uniform, far)

    def decode(self, messages: FloatArray) -> FloatArray:
        """Return the messages on the scale of [0, 1]."""
        return 0.5 * (messages + 1.0)

    def variance(self, values: FloatArray) -> FloatArray:
        """Return a quarter of the variance for numbers of [-1, 1]."""
        t = 2.0 * values - 1.0
        return 0.25 * self._spread * (t * t + (1.0 + 4.0 * self._spread) / 3.0)

    @property
    def largest_variance(self) -> float:
        """That of the two ends."""
        return float(self.variance(np.ones(1))[0])

    def profile(self, n: int) -> PrivacyProfile:
        """Return the privacy blanket of the two ends."""
        return blanket_profile(PiecewiseEnds(self.epsilon0), n)


@final
@dataclass(frozen=True, eq=False, repr=False)
class PiecewiseEnds(LocalRandomizer):
    """The piecewise mechanism at the two ends of the range, over the three parts of its messages.

    From below: the plateau of input 0, what is on no plateau, and the plateau of input 1.
    """

    _epsilon0: float

    @property
    def n_inputs(self) -> int:
        """Two: the ends."""
        return 2

    @property
    def epsilon0(self) -> float:
        """Local privacy parameter."""
        return self._epsilon0

    def _merged(self, inputs: tuple[int, ...]) -> MergedRows:
        half = 0.5 * self._epsilon0
        log_near = -math.log1p(math.exp(-half))
        log_middle = log_near + math.log(-math.expm1(-half)) - half
        ends = np.array([[log_near, log_middle, log_near - self._epsilon0]])
        log_rows = np.vstack((ends, ends[:, ::-1]))[list(inputs)]
        exponents: IntArray = np.array([[1, 0, 0], [0, 0, 1]])[list(inputs)]
        return merge_formula(self._epsilon0, exponents, log_rows)

    def _shared(self, inputs: tuple[int, ...]) -> FloatArray:
        rows = self._merged((*inputs, 0, 1)).rows
        return np.vstack((rows[:-2], rows[-2:].min(axis=0)))

    def _sample(self, inputs: IntArray, rng: np.random.Generator) -> FloatArray:
        return Piecewise(self._epsilon0).report(inputs.astype(np.float64), rng)

    def to_dict(self) -> dict[str, object]:
        """Return the name of the mechanism and its argument."""
        return {"mechanism": "piecewise", "epsilon0": self._epsilon0}


MECHANISMS: dict[str, type[NumericMechanism]] = {
    "rr": RoundedResponse,
    "laplace": LaplaceReport,
    "piecewise": Piecewise,
}
