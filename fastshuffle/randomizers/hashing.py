"""Local hashing."""

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from fastshuffle._typing import IntArray
from fastshuffle._validation import check_count
from fastshuffle.randomizers.base import check_messages
from fastshuffle.randomizers.frequency import (
    EpsilonAndSize,
    IndependentSupport,
    check_epsilon_and_size,
)
from fastshuffle.randomizers.k_ary import other_value
from fastshuffle.randomizers.supports import BitLaw

__all__ = ["binary_local_hashing", "optimized_local_hashing"]

# A 64-bit remainder is uniform on up to 2**32 values within a relative 2**-32.
_MOST_VALUES = 2**32
# Hash values computed at a time by the decoder: 8 MB an array.
_HASHES = 2**20


@final
@dataclass(frozen=True, eq=False, repr=False)
class LocalHashing(EpsilonAndSize, IndependentSupport):
    """See `optimized_local_hashing`."""

    _name = "optimized_local_hashing"
    g: int

    def _bits(self) -> BitLaw:
        log_p = -math.log1p((self.g - 1) * math.exp(-self._epsilon0))
        log_not_p = math.log(self.g - 1) - self._epsilon0 + log_p
        return BitLaw(
            log_p, log_not_p, -math.log(self.g), math.log1p(-1.0 / self.g), self._epsilon0
        )

    def _sample(self, inputs: IntArray, rng: np.random.Generator) -> IntArray:
        seeds = rng.integers(2**63, size=inputs.size)
        hashed = self._hash(seeds, inputs)
        keep = rng.random(inputs.size) < self._support().p
        values = np.where(keep, hashed, other_value(hashed, self.g, rng))
        return np.column_stack((seeds, values))

    def _hash(self, seeds: IntArray, inputs: IntArray) -> IntArray:
        """Return output number ``input`` of the SplitMix64 stream of each seed, modulo g."""
        steps = (inputs + 1).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        mixed = seeds.astype(np.uint64) + steps
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        hashes = (mixed ^ (mixed >> np.uint64(31))) % np.uint64(self.g)
        return hashes.astype(np.int64)

    def _support_counts(self, messages: npt.ArrayLike) -> tuple[IntArray, int]:
        pairs = check_messages(messages, (2,), 2**63).astype(np.int64)
        seeds, values = pairs[:, :1], pairs[:, 1:]
        if values.max() >= self.g:
            raise ValueError(f"values of messages must be <= {self.g - 1}, got {values.max()}")
        counts = np.zeros(self._k, dtype=np.int64)
        width = min(self._k, _HASHES)
        for first in range(0, self._k, width):
            candidates = np.arange(first, min(first + width, self._k))
            height = max(1, _HASHES // width)
            for user in range(0, len(pairs), height):
                hashed = self._hash(seeds[user : user + height], candidates)
                supported = hashed == values[user : user + height]
                counts[candidates] += supported.sum(axis=0)
        return counts, len(pairs)

    def to_dict(self) -> dict[str, Any]:
        """Return the name of the factory and its arguments."""
        return {
            "mechanism": self._name,
            "epsilon0": self._epsilon0,
            "k": self._k,
            "g": self.g,
        }


def binary_local_hashing(epsilon0: float, k: int) -> LocalHashing:
    """Return binary local hashing (BLH): randomized response on one hashed bit.

    Parameters
    ----------
    epsilon0 : float
        Local privacy parameter, >= 0 and finite.
    k : int
        Number of inputs, from 2 to 2**53.

    Returns
    -------
    FrequencyRandomizer
        ``optimized_local_hashing(epsilon0, k, g=2)``, which states all else [1]_.

    Raises
    ------
    TypeError, ValueError
        If an argument is outside its domain.

    References
    ----------
    .. [1] T. Wang, J. Blocki, N. Li, S. Jha, "Locally Differentially Private Protocols for
       Frequency Estimation", USENIX Security 2017 (arXiv:1705.04421), binary local hashing.

    Examples
    --------
    >>> binary_local_hashing(1.0, 1000).merged_rows((0, 1))
    array([[0.5       , 0.36552929, 0.13447071],
           [0.5       , 0.13447071, 0.36552929]])
    """
    return optimized_local_hashing(epsilon0, k, g=2)


def optimized_local_hashing(epsilon0: float, k: int, g: int | None = None) -> LocalHashing:
    """Return local hashing: g-ary randomized response on the hash of the input held.

    Parameters
    ----------
    epsilon0 : float
        Local privacy parameter, >= 0 and finite.
    k : int
        Number of inputs, from 2 to 2**53.
    g : int, optional
        Number of hash values, from 2 to 2**32. By default ``round(exp(epsilon0)) + 1``, but at
        most 2**32, which is optimized local hashing (OLH).

    Returns
    -------
    FrequencyRandomizer
        The mechanism, with the property ``g``. A message is the pair of the seed of the user's
        hash function, a uniform integer below 2**63, and a hash value from 0 to g - 1; those of n
        users are int64 of shape (n, 2).

    Raises
    ------
    TypeError, ValueError
        If an argument is outside its domain.

    Notes
    -----
    **Probabilities.** The user draws a hash function H and sends it with H(input) with
    probability ``p = exp(epsilon0) / (exp(epsilon0) + g - 1)``, with any other value with
    probability ``1 / (exp(epsilon0) + g - 1)`` each [1]_. A message supports the inputs with that
    hash value: any input not held with probability ``q = 1 / g``.

    **Ideal hashing.** Epsilon0 and the merged rows are those of an ideal H, which maps the inputs
    to independent uniform values; then an input is supported independently of the others. The
    sampler takes the outputs of the SplitMix64 generator [2]_ with the user's seed, modulo g. That
    the message is `epsilon0`-locally private does not depend on the hash function.

    **Privacy.** The largest log ratio is `epsilon0` exactly, for every pair.

    **Decoder.** With C the messages that support an input, ``(C / n - q) / (p - q)`` is unbiased
    for its frequency f; the variance is ``(f p (1 - p) + (1 - f) q (1 - q)) / (n (p - q)**2)``.

    **Cost.** Merged rows of m inputs have ``2**m - 1`` groups, whatever k and g, for m up to 16;
    the decoder takes O(n k) time and little memory.

    References
    ----------
    .. [1] T. Wang, J. Blocki, N. Li, S. Jha, "Locally Differentially Private Protocols for
       Frequency Estimation", USENIX Security 2017 (arXiv:1705.04421), local hashing (BLH, OLH).
    .. [2] G. L. Steele, D. Lea, C. H. Flood, "Fast Splittable Pseudorandom Number Generators",
       OOPSLA 2014.

    Examples
    --------
    >>> optimized_local_hashing(2.0, 10**6)
    <optimized_local_hashing: epsilon0 = 2, k = 1000000, g = 8>
    """
    checked_epsilon0, size = check_epsilon_and_size(epsilon0, k)
    if g is None:
        g = round(math.exp(min(checked_epsilon0, math.log(_MOST_VALUES)))) + 1
        g = min(g, _MOST_VALUES)
    return LocalHashing(
        checked_epsilon0, size, check_count("g", g, minimum=2, maximum=_MOST_VALUES)
    )
