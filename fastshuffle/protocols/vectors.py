"""Mechanisms that report a bounded vector in one message, each an unbiased estimate of it.

Both put two densities on a set of messages that all inputs share, in the ratio exp(epsilon0), on
halves of it: a message in the half of the input has the chance ``keep = exp(epsilon0) / (1 +
exp(epsilon0))``. So both have the privacy blanket of binary randomized response with the same
epsilon0, whatever the dimension: what all inputs share is uniform, of weight ``2 / (exp(epsilon0) +
1)``, since every message is outside the half of some input. For a pair of inputs whose halves are
opposite the loss takes the two values of a bit, each on half of the messages. For another pair the
halves overlap, and as much is in neither: moving a part that is in both, and an equal one that is
in neither, into one half each keeps the sum of the two values of ``W_b - exp(epsilon) W_a`` there
and moves them apart, which is larger in the convex order. So opposite halves bound all pairs.
Inputs inside the range are mixtures of those at its ends, and by joint convexity no worse.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from fastshuffle._typing import FloatArray, IntArray
from fastshuffle.bounds import blanket_profile
from fastshuffle.profile import PrivacyProfile
from fastshuffle.randomizers import binary_randomized_response

__all__ = ["VECTOR_MECHANISMS", "CoordinateResponse", "SphereResponse", "VectorMechanism"]


@dataclass(frozen=True)
class VectorMechanism(ABC):
    """What a user applies to a vector of some dimension.

    Attributes
    ----------
    epsilon0 : float
        Local privacy parameter, > 0 and finite.
    dimension : int
        Length of the vectors, at least 1.
    clip : float
        The bound of a vector, > 0 and finite.
    """

    words: ClassVar[str]
    epsilon0: float
    dimension: int
    clip: float

    @property
    def keep(self) -> float:
        """The probability that the message is on the side of the input."""
        return 1.0 / (1.0 + math.exp(-self.epsilon0))

    @property
    def difference(self) -> float:
        """The same less the probability of the other side."""
        return math.tanh(0.5 * self.epsilon0)

    @abstractmethod
    def clipped(self, vectors: FloatArray) -> tuple[FloatArray, int]:
        """Return the vectors within the bound, and how many were outside."""

    @abstractmethod
    def report(self, vectors: FloatArray, rng: np.random.Generator) -> Any:
        """Draw the message of each user, for vectors within the bound."""

    @abstractmethod
    def total(self, messages: Any) -> FloatArray:
        """Return the sum of messages, each decoded up to the factor ``1 / difference``."""

    @property
    @abstractmethod
    def size(self) -> float:
        """The length of a decoded message."""

    def decode(self, messages: Any) -> FloatArray:
        """Return an unbiased estimate of the sum of the vectors behind the messages."""
        return self.total(messages) / self.difference

    def profile(self, n: int) -> PrivacyProfile:
        """Return a bound over all datasets of n users: the blanket of randomized response."""
        return blanket_profile(binary_randomized_response(self.epsilon0), n)


@final
class CoordinateResponse(VectorMechanism):
    """One coordinate at random, rounded to a bit, and binary randomized response.

    A message is ``2 j + bit``, of 2 d outputs. The range is that of each coordinate: [-clip, clip].
    The chances are linear in the vector, a mixture of those of the corners of the cube.
    """

    words = "a random coordinate, rounded to a bit, and binary randomized response"

    def clipped(self, vectors: FloatArray) -> tuple[FloatArray, int]:
        """Return the vectors with each coordinate within the range, and how many had others."""
        outside = np.zeros(len(vectors), dtype=np.bool_)
        for column in vectors.T:  # few, and each of all users
            outside |= np.abs(column) > self.clip
        return np.clip(vectors, -self.clip, self.clip), int(outside.sum())

    def report(self, vectors: FloatArray, rng: np.random.Generator) -> IntArray:
        """Draw the coordinate and the bit of each user."""
        users = len(vectors)
        places = rng.integers(0, self.dimension, size=users)
        held = vectors[np.arange(users), places] / self.clip
        bits = rng.random(users) < 0.5 * (1.0 + held * self.difference)
        return 2 * places + bits

    def total(self, messages: IntArray) -> FloatArray:
        """Return clip d times what more ones than zeros each coordinate has."""
        counts = np.bincount(messages, minlength=2 * self.dimension)
        return self.clip * self.dimension * (counts[1::2] - counts[::2]).astype(np.float64)

    @property
    def size(self) -> float:
        """``clip d / difference``."""
        return self.clip * self.dimension / self.difference


@final
class SphereResponse(VectorMechanism):
    """A uniform direction of the half of the sphere about the vector, or of the other half.

    The range is the ball of radius clip. A vector inside it is replaced first by one of the two
    ends of its diameter, at random with its mean kept: J. Duchi, M. Jordan, M. Wainwright, "Minimax
    Optimal Procedures for Locally Private Estimation", arXiv:1604.02390, the mechanism for l2.
    """

    words = "a random direction on the side of the gradient, or on the other"

    def clipped(self, vectors: FloatArray) -> tuple[FloatArray, int]:
        """Return the vectors shortened to the radius, and how many were longer."""
        lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
        outside = lengths > self.clip
        shorter = np.where(outside, self.clip / np.maximum(lengths, self.clip), 1.0)
        return vectors * shorter[:, np.newaxis], int(outside.sum())

    @property
    def mean_share(self) -> float:
        """The mean of a coordinate over the half of the unit sphere on which it is positive."""
        half = 0.5 * self.dimension
        return math.exp(math.lgamma(half) - math.lgamma(half + 0.5)) / math.sqrt(math.pi)

    def report(self, vectors: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draw the direction of each user, a row of length 1."""
        directions = rng.standard_normal(vectors.shape)
        directions /= np.sqrt(np.einsum("ij,ij->i", directions, directions))[:, np.newaxis]
        along = np.einsum("ij,ij->i", directions, vectors)
        lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
        # with which chance the end of the diameter on the vector's own side, and its half
        chance = 0.5 * (1.0 + np.minimum(lengths / self.clip, 1.0) * self.difference)
        same = rng.random(len(vectors)) < chance
        directions[(along >= 0.0) != same] *= -1.0
        return directions

    def total(self, messages: FloatArray) -> FloatArray:
        """Return the sum of the directions over ``mean_share / clip``."""
        return messages.sum(axis=0) * (self.clip / self.mean_share)

    @property
    def size(self) -> float:
        """``clip / (mean_share difference)``."""
        return self.clip / (self.mean_share * self.difference)


VECTOR_MECHANISMS: dict[str, type[VectorMechanism]] = {
    "coordinate": CoordinateResponse,
    "sphere": SphereResponse,
}
