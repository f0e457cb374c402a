"""Hadamard response."""

import math
from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from fastshuffle._typing import FloatArray, IntArray
from fastshuffle.randomizers.base import Messages, check_messages
from fastshuffle.randomizers.frequency import EpsilonAndSize, check_epsilon_and_size
from fastshuffle.randomizers.merging import MergedRows
from fastshuffle.randomizers.supports import PatternLaw, merge_patterns, shared_patterns

__all__ = ["hadamard_response"]

_MOST_GROUPS = 2**16


@final
@dataclass(frozen=True, eq=False, repr=False)
class HadamardResponse(EpsilonAndSize):
    """See `hadamard_response`."""

    _name = "hadamard_response"

    @property
    def n_blocks(self) -> int:
        """Number B of blocks of outputs, a power of two."""
        reach = min(self._epsilon0 / math.log(2.0), math.log2(2 * self._k))
        return 2 ** max(0, math.ceil(reach) - 1)

    @property
    def block_size(self) -> int:
        """Number b of outputs of a block, a power of two."""
        return 1 << (-(-self._k // self.n_blocks)).bit_length()

    def _places(self, inputs: IntArray) -> tuple[IntArray, IntArray]:
        """Return the block of each input and its row of the Hadamard matrix, from 1 on."""
        blocks, rows = np.divmod(inputs, self.block_size - 1)
        return blocks, rows + 1

    def representative_inputs(self) -> tuple[int, ...]:
        """Return inputs of one block and one of another: pairs differ only in sharing a block."""
        beyond = self.block_size - 1
        return tuple(x for x in dict.fromkeys((0, 1, 2, beyond)) if x < self._k)

    def representative_pairs(self) -> tuple[tuple[int, int], ...]:
        """Return one pair of inputs that share a block and one that does not.

        Within a block the supports of two inputs are half-spaces of two different directions, any
        two of which a linear map takes to any others; across blocks they are disjoint. What all
        inputs are taken to share is uniform.
        """
        pairs = ((0, 1), (0, self.block_size - 1))
        return tuple(dict.fromkeys(pair for pair in pairs if pair[1] < self._k))

    def _log_own_half(self) -> float:
        """Return the log probability of the b / 2 outputs of an input, for one who holds it."""
        return -math.log1p((2 * self.n_blocks - 1) * math.exp(-self._epsilon0))

    def _merged(self, inputs: tuple[int, ...]) -> MergedRows:
        return merge_patterns(self._pattern_law(inputs))

    def _shared(self, inputs: tuple[int, ...]) -> FloatArray:
        return shared_patterns(self._pattern_law(inputs))

    def _pattern_law(self, inputs: tuple[int, ...]) -> PatternLaw:
        blocks, rows = self._places(np.array(inputs))
        touched = np.unique(blocks)
        patterns = [0]
        shares = [2.0 * (self.n_blocks - touched.size)]  # the blocks of no input, in halves
        for block in touched:
            place_of_row = {i: int(rows[i]) for i in np.flatnonzero(blocks == block).tolist()}
            found = self._patterns_of_block(place_of_row)
            patterns.extend(found)
            shares.extend([2.0 / len(found)] * len(found))
            if len(patterns) > _MOST_GROUPS:
                raise ValueError(
                    f"inputs must have at most {_MOST_GROUPS} groups of outputs, got more for "
                    f"{len(inputs)} different inputs"
                )
        bits = np.array([[pattern >> i & 1 for pattern in patterns] for i in range(len(inputs))])
        with np.errstate(divide="ignore"):
            log_with = np.log(shares) + self._log_own_half()
        return PatternLaw(bits == 1, log_with, log_with - self._epsilon0, self._epsilon0)

    def _patterns_of_block(self, row_of: dict[int, int]) -> list[int]:
        """Return the patterns of support in a block, as numbers with bit i for input number i.

        All are equally likely under a uniform output of the block: signs of a Hadamard matrix
        form a linear code, spanned by what the bits of the output's number change.
        """
        found = [0]
        for bit in range(self.block_size.bit_length() - 1):
            change = sum(1 << i for i, row in row_of.items() if row >> bit & 1)
            if change not in found:
                found += [pattern ^ change for pattern in found]
        everywhere = sum(1 << i for i in row_of)
        return [pattern ^ everywhere for pattern in found]  # an input is supported by sign +1

    def _sample(self, inputs: IntArray, rng: np.random.Generator) -> Messages:
        n, size = inputs.size, self.block_size
        blocks, rows = self._places(inputs)
        own_half = rng.random(n) < math.exp(self._log_own_half())
        # of the others, one in 2 B - 1 is the other half of the own block
        same_block = own_half | (rng.integers(2 * self.n_blocks - 1, size=n) == 0)
        columns = rng.integers(size, size=n)
        wrong_half = (np.bitwise_count(columns & rows) % 2 == 1) == own_half
        columns ^= np.where(same_block & wrong_half, rows & -rows, 0)
        shift = rng.integers(1, max(self.n_blocks, 2), size=n)
        blocks = np.where(same_block, blocks, (blocks + shift) % self.n_blocks)
        return blocks * size + columns

    def _scale(self) -> float:
        shrunk = math.exp(-self._epsilon0)
        return (1.0 + (2 * self.n_blocks - 1) * shrunk) / -math.expm1(-self._epsilon0)

    def _estimate(self, messages: npt.ArrayLike) -> FloatArray:
        outputs = check_messages(messages, (), self.n_blocks * self.block_size).astype(np.int64)
        counts = np.bincount(outputs, minlength=self.n_blocks * self.block_size)
        signed = _walsh_hadamard(counts.reshape(self.n_blocks, self.block_size))
        differences = signed[:, 1:].ravel()[: self._k]
        return differences.astype(np.float64) * (self._scale() / outputs.size)

    def _variance_of_one(self, frequency: FloatArray) -> FloatArray:
        if self._epsilon0 == 0.0:
            return np.full_like(frequency, math.inf)
        # all others in the block of the input; E[score**2] is then the probability of the block
        block = math.exp(self._log_own_half()) * (1.0 + math.exp(-self._epsilon0))
        scale = self._scale()
        return np.maximum(block * scale * scale - frequency, 0.0)


def _walsh_hadamard(rows: IntArray) -> IntArray:
    """Return the Walsh-Hadamard transform of each row, whose length is a power of two."""
    n_rows, size = rows.shape
    half = 1
    while half < size:
        pairs = rows.reshape(n_rows, -1, 2, half)
        first, second = pairs[:, :, 0], pairs[:, :, 1]
        rows = np.stack((first + second, first - second), axis=2).reshape(n_rows, size)
        half *= 2
    return rows


def hadamard_response(epsilon0: float, k: int) -> HadamardResponse:
    """Return Hadamard response: send an output that a row of a Hadamard matrix marks with +1.

    Parameters
    ----------
    epsilon0 : float
        Local privacy parameter, >= 0 and finite.
    k : int
        Number of inputs, from 2 to 2**53.

    Returns
    -------
    FrequencyRandomizer
        The mechanism, with the properties ``n_blocks`` and ``block_size``. Messages are integers
        from 0 to ``n_blocks * block_size - 1``; those of n users have shape (n,).

    Raises
    ------
    TypeError, ValueError
        If an argument is outside its domain.

    Notes
    -----
    **Probabilities.** The outputs are B blocks of b, with ``B = 2**(ceil(log2(min(exp(epsilon0),
    2 k))) - 1)``, but at least 1, and b the least power of two with ``b >= k / B + 1`` [1]_. Input
    x belongs to block ``x // (b - 1)`` and to row ``r = 1 + x % (b - 1)`` of the Hadamard matrix of
    order b. Its b / 2 outputs are those of its block whose number c there has an even number of
    ones in ``r & c``. Each has probability ``exp(epsilon0) / Z``, every other output ``1 / Z``,
    ``Z = (b / 2) (exp(epsilon0) + 2 B - 1)``. For ``epsilon0 <= log 2`` there is one block.

    **Privacy.** The largest log ratio is `epsilon0` exactly, for every pair and every
    ``epsilon0 >= 0``.

    **Decoder.** Score a message 1 if it is one of an input's outputs, -1 if it is another of its
    block and 0 elsewhere; then ``(exp(epsilon0) + 2 B - 1) / (exp(epsilon0) - 1)`` times the mean
    score is unbiased for the input's frequency f. With c this factor and s the share of users
    whose input is in the block, the variance is ``(c**2 (s P + (1 - s) P') - f) / n``, where a
    message falls into the block with probability ``P = (exp(epsilon0) + 1) / (exp(epsilon0) + 2 B -
    1)`` for an input of the block and ``P' = 2 / (exp(epsilon0) + 2 B - 1)`` for another. As
    ``frequency_variance`` does not know s, it takes s = 1, the largest; for B = 1 that is exact.

    **Cost.** Merged rows of m inputs have at most ``2**m`` groups, and at most 2**16; the decoder
    takes O(n + k log k).

    References
    ----------
    .. [1] J. Acharya, Z. Sun, H. Zhang, "Hadamard Response: Estimating Distributions Privately,
       Efficiently, and with Little Communication", AISTATS 2019 (arXiv:1802.04705v2), the scheme
       for general epsilon.

    Examples
    --------
    >>> hr = hadamard_response(0.5, 2**20)
    >>> hr.n_blocks, hr.block_size
    (1, 2097152)
    >>> hr.merged((0, 1)).log_ratios
    array([[ 0. ,  0. ,  0. ],
           [ 0. ,  0.5, -0.5]])
    """
    return HadamardResponse(*check_epsilon_and_size(epsilon0, k))
