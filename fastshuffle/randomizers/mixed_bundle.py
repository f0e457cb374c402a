"""Messages of different randomizers that stay together, as one message of a larger alphabet."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import permutations
from typing import Any, final

import numpy as np

from fastshuffle._typing import FloatArray, IntArray
from fastshuffle._validation import UnsupportedSettingError
from fastshuffle.randomizers.base import LocalRandomizer, Messages
from fastshuffle.randomizers.continuous import ContinuousNoise
from fastshuffle.randomizers.merging import (
    MergedRows,
    equal_log_ratios,
    merge_log_columns,
    merge_proportional,
)

# So many tuples are listed, a matter of a second.
MOST_TUPLES = 100_000
# The largest privacy loss is the largest over all pairs of inputs.
_MOST_INPUTS = 64


@final
@dataclass(frozen=True, eq=False, repr=False)
class MixedBundle(LocalRandomizer):
    """See `bundle`."""

    parts: tuple[LocalRandomizer, ...]

    @property
    def n_inputs(self) -> int:
        """Number of inputs, those of every part."""
        return self.parts[0].n_inputs

    @property
    def epsilon0(self) -> float:
        """Local privacy parameter: the largest sum of the losses of the parts, over all pairs."""
        if self.n_inputs > _MOST_INPUTS:
            raise UnsupportedSettingError(
                f"randomizers must have at most {_MOST_INPUTS} inputs for epsilon0, got "
                f"{self.n_inputs}"
            )
        return max(
            (
                sum(float(part.merged(pair).log_ratios[1].max()) for part in self.parts)
                for pair in permutations(range(self.n_inputs), 2)
            ),
            default=0.0,
        )

    def _merged(self, inputs: tuple[int, ...]) -> MergedRows:
        return reduce(_product, (part.merged(inputs) for part in self.parts))

    def _shared(self, inputs: tuple[int, ...]) -> FloatArray:
        every = (*inputs, *(x for x in range(self.n_inputs) if x not in set(inputs)))
        rows = self.merged(every).rows
        return merge_proportional(np.vstack((rows[: len(inputs)], rows.min(axis=0))))

    def _sample(self, inputs: IntArray, rng: np.random.Generator) -> Messages:
        drawn = [part.sample(inputs, rng) for part in self.parts]
        if len({messages.shape for messages in drawn}) > 1:
            raise UnsupportedSettingError(
                "randomizers must have messages of one shape for a sample, got "
                f"{[messages.shape[1:] for messages in drawn]}"
            )
        return np.stack(drawn, axis=1)

    def to_dict(self) -> dict[str, Any]:
        """Return the definition in plain Python values: the randomizers, one a message."""
        return {"mechanism": "bundle", "randomizers": [part.to_dict() for part in self.parts]}

    def _key(self) -> tuple[object, ...]:
        return self.parts

    def __repr__(self) -> str:
        return f"<bundle: one message of each of {list(self.parts)!r}>"


def _product(left: MergedRows, right: MergedRows) -> MergedRows:
    """Return the merged rows of a message of either, independent of each other."""
    n_rows = len(left.rows)
    n_tuples = left.rows.shape[1] * right.rows.shape[1]
    if n_tuples > MOST_TUPLES:
        raise UnsupportedSettingError(
            f"the groups of messages must be at most {MOST_TUPLES:,} to be listed, got {n_tuples:,}"
        )

    def sums(first: FloatArray, second: FloatArray) -> FloatArray:
        return (first[:, :, np.newaxis] + second[:, np.newaxis]).reshape(n_rows, -1)

    log_columns = sums(left.log_rows, right.log_rows)
    possible = (log_columns > -math.inf).any(axis=0)
    log_columns = log_columns[:, possible]
    finite = (
        np.where(np.isfinite(part.log_ratios), part.log_ratios, 0.0) for part in (left, right)
    )
    log_ratios = ratios_of_tuples(sums(*finite)[:, possible], log_columns == -math.inf)
    return merge_log_columns(log_columns, log_ratios, equal_log_ratios(log_columns))


def ratios_of_tuples(finite: FloatArray, zero: Any) -> FloatArray:
    """Return log ratios to row 0 from sums of the finite ones; ``zero`` marks what a row lacks."""
    finite[:, zero[0]] = math.inf
    ratios: FloatArray = np.where(zero, np.where(zero[0], 0.0, -math.inf), finite)
    return ratios


def mixed_bundle(randomizers: Sequence[Any]) -> LocalRandomizer:
    """Return the product of several randomizers with the same inputs."""
    parts: list[LocalRandomizer] = []
    for i, part in enumerate(randomizers):
        if not isinstance(part, LocalRandomizer):
            raise TypeError(f"randomizers[{i}] must be a Randomizer, got {type(part).__name__}")
        if isinstance(part, ContinuousNoise):
            raise UnsupportedSettingError(f"randomizers[{i}] must be no continuous noise")
        if part.n_inputs != randomizers[0].n_inputs:
            raise ValueError(
                f"randomizers must have the same inputs, got {randomizers[0].n_inputs} and "
                f"{part.n_inputs}"
            )
        parts += part.parts if isinstance(part, MixedBundle) else [part]
    if not parts:
        raise ValueError("randomizers must be one or more, got none")
    return parts[0] if len(parts) == 1 else MixedBundle(tuple(parts))
