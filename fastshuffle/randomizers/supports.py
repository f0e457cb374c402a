"""Merged rows of mechanisms whose message is a set of inputs that it speaks for.

Such a message *supports* some inputs, and its probability depends on the input held only through
whether that is among them. For a few inputs the pattern of which of them are supported tells all.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fastshuffle._typing import FloatArray
from fastshuffle.randomizers.merging import MergedRows, merge_log_columns

# There are 2**m patterns of m inputs.
_MOST_INPUTS = 16


class BitLaw(NamedTuple):
    """Probabilities p and q that a message supports the input held, and another one.

    ``loss`` is ``log(p (1 - q) / ((1 - p) q))``; ``not_p`` stands for 1 - p.
    """

    log_p: float
    log_not_p: float
    log_q: float
    log_not_q: float
    loss: float


def support_patterns(n_inputs: int) -> npt.NDArray[np.bool_]:
    """Return all patterns of support of some inputs, one a column.

    Raises
    ------
    ValueError
        If the inputs are more than 16.
    """
    if n_inputs > _MOST_INPUTS:
        raise ValueError(
            f"inputs must be <= {_MOST_INPUTS} different ones, since their groups of outputs "
            f"double with each, got {n_inputs}"
        )
    bit = np.arange(n_inputs)[:, np.newaxis]
    return (np.arange(2**n_inputs) >> bit) % 2 == 1


class PatternLaw(NamedTuple):
    """Different patterns of support of some inputs, one a column, and their probabilities.

    ``log_with`` is the log probability of each pattern if the input held is among the supported
    ones, ``log_without`` if it is not; they differ in ratio by ``loss``.
    """

    patterns: npt.NDArray[np.bool_]
    log_with: FloatArray
    log_without: FloatArray
    loss: float

    def log_columns(self) -> FloatArray:
        """Return the log probability of each pattern for each input."""
        return np.where(self.patterns, self.log_with, self.log_without)


def shared_patterns(law: PatternLaw) -> FloatArray:
    """Return the rows of the inputs, and below them the law of one who holds no input at all.

    Any message that some input does not support is as likely under that input.
    """
    floor = np.minimum(law.log_with, law.log_without)
    return np.exp(np.vstack((law.log_columns(), floor)))


def merge_patterns(law: PatternLaw) -> MergedRows:
    """Merge different patterns of support."""
    patterns, _, _, loss = law
    step = patterns.astype(np.int8) - patterns[0]
    log_ratios = np.where(step > 0, loss, np.where(step < 0, -loss, 0.0))
    alike = (patterns == patterns[0]).all(axis=0) | (loss == 0.0)
    groups = np.where(alike, 0, np.arange(1, alike.size + 1))
    return merge_log_columns(law.log_columns(), log_ratios, groups)


def independent_support(n_inputs: int, bits: BitLaw) -> PatternLaw:
    """Return the law of messages that support each input independently of the others."""
    patterns = support_patterns(n_inputs)
    supported = patterns.sum(axis=0)
    others = n_inputs - 1
    with_own = np.maximum(supported - 1, 0)
    log_with = bits.log_p + _times(with_own, bits.log_q) + _times(others - with_own, bits.log_not_q)
    without_own = np.minimum(supported, others)
    log_without = (
        bits.log_not_p
        + _times(without_own, bits.log_q)
        + _times(others - without_own, bits.log_not_q)
    )
    # where no input of these could be held, the law of one held elsewhere, and the converse
    with np.errstate(invalid="ignore"):
        elsewhere = bits.log_not_p - bits.log_not_q + n_inputs * bits.log_q
        inside = bits.log_p - bits.log_q + n_inputs * bits.log_not_q
    log_without[supported == n_inputs] = -np.inf if np.isnan(elsewhere) else elsewhere
    log_with[supported == 0] = -np.inf if np.isnan(inside) else inside
    return PatternLaw(patterns, log_with, log_without, bits.loss)


def _times(count: npt.NDArray[np.int64], log_probability: float) -> FloatArray:
    with np.errstate(invalid="ignore"):
        return np.where(count == 0, 0.0, count * log_probability)
