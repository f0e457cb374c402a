"""Several messages of a user that stay together, as one message of a larger alphabet."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, final

import numpy as np

from fastshuffle._kernels.message_types import log_type_masses
from fastshuffle._typing import FloatArray, IntArray
from fastshuffle._validation import LARGEST_COUNT, UnsupportedSettingError, check_count
from fastshuffle.randomizers.base import LocalRandomizer, Messages
from fastshuffle.randomizers.continuous import ContinuousNoise
from fastshuffle.randomizers.merging import (
    MergedRows,
    equal_log_ratios,
    merge_log_columns,
    merge_proportional,
)
from fastshuffle.randomizers.mixed_bundle import MOST_TUPLES, mixed_bundle, ratios_of_tuples

__all__ = ["Bundle", "bundle"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class Bundle(LocalRandomizer):
    """See `bundle`."""

    randomizer: LocalRandomizer
    messages: int

    @property
    def n_inputs(self) -> int:
        """Number of inputs, those of a single message."""
        return self.randomizer.n_inputs

    @property
    def epsilon0(self) -> float:
        """Local privacy parameter: that of a message, once for each."""
        return self.messages * self.randomizer.epsilon0

    def representative_inputs(self) -> tuple[int, ...]:
        """Return those of a single message, since a relabelling acts on each message alike."""
        return self.randomizer.representative_inputs()

    def representative_pairs(self) -> tuple[tuple[int, int], ...]:
        """Return those of a single message."""
        return self.randomizer.representative_pairs()

    def _merged(self, inputs: tuple[int, ...]) -> MergedRows:
        single = self.randomizer.merged(inputs)
        types = self._types(single.rows.shape[1])
        log_columns = np.empty((len(inputs), len(types)))
        for conditional, log_masses in zip(_conditional(single), log_columns, strict=True):
            log_type_masses(types, conditional, log_masses)
        possible = (log_columns > -math.inf).any(axis=0)
        types, log_columns = types[possible], np.ascontiguousarray(log_columns[:, possible])
        log_ratios = _log_ratios(types, single.log_ratios, log_columns == -math.inf)
        return merge_log_columns(log_columns, log_ratios, equal_log_ratios(log_columns))

    def _shared(self, inputs: tuple[int, ...]) -> FloatArray:
        every = (*inputs, *(x for x in range(self.n_inputs) if x not in set(inputs)))
        rows = self.merged(every).rows
        return merge_proportional(np.vstack((rows[: len(inputs)], rows.min(axis=0))))

    def _types(self, n_groups: int) -> FloatArray:
        """Return how many messages of a user fall into each group, one row a type."""
        m = self.messages
        n_types = math.comb(m + n_groups - 1, n_groups - 1)
        if n_types > MOST_TUPLES:
            raise UnsupportedSettingError(
                f"the groups of {m} messages must be at most {MOST_TUPLES:,} to be listed, got "
                f"{n_types:,} for {n_groups} groups of a message"
            )
        if n_groups == 2:
            ones = np.arange(m + 1.0)
            return np.column_stack((ones, m - ones))
        bars = np.array(list(combinations(range(m + n_groups - 1), n_groups - 1)), dtype=float)
        ends = np.pad(bars.reshape(n_types, n_groups - 1), ((0, 0), (1, 1)), constant_values=-1.0)
        ends[:, -1] = m + n_groups - 1
        return np.diff(ends, axis=1) - 1.0

    def _sample(self, inputs: IntArray, rng: np.random.Generator) -> Messages:
        single = self.randomizer.sample(np.repeat(inputs, self.messages), rng)
        return single.reshape(inputs.size, self.messages, *single.shape[1:])

    def to_dict(self) -> dict[str, Any]:
        """Return the definition in plain Python values: the randomizer and how many messages."""
        return {
            "mechanism": "bundle",
            "randomizer": self.randomizer.to_dict(),
            "messages": self.messages,
        }

    def _key(self) -> tuple[object, ...]:
        return self.randomizer, self.messages

    def __repr__(self) -> str:
        return f"<bundle: {self.messages} messages of {self.randomizer!r}>"


def _conditional(single: MergedRows) -> FloatArray:
    """Return for each row and group ``(0, p, q, log p, log q)`` among the groups from it on."""
    rows, log_rows, _ = single
    conditional = np.zeros((*rows.shape, 5))
    if rows.shape[1] == 2:
        conditional[:, 0, 1:3], conditional[:, 0, 3:5] = rows, log_rows
        return conditional
    tails = np.cumsum(rows[:, ::-1], axis=1)[:, ::-1]
    after = np.pad(tails[:, 1:], ((0, 0), (0, 1)))
    with np.errstate(divide="ignore", invalid="ignore"):
        conditional[:, :, 1] = np.nan_to_num(rows / tails)
        conditional[:, :, 2] = np.nan_to_num(after / tails)
        conditional[:, :, 3:5] = np.log(conditional[:, :, 1:3])
    return conditional


def _log_ratios(types: FloatArray, single: FloatArray, zero: Any) -> FloatArray:
    """Return the log ratios of types to row 0 from those of a message; ``zero`` marks zeros."""
    return ratios_of_tuples(np.where(np.isfinite(single), single, 0.0) @ types.T, zero)


def bundle(
    randomizer: LocalRandomizer | Sequence[LocalRandomizer], messages: int = 1
) -> LocalRandomizer:
    """Return the randomizer that sends several messages together, each drawn anew.

    Parameters
    ----------
    randomizer : LocalRandomizer or sequence of LocalRandomizer
        What is applied to the input held, once for each message; no continuous noise. Of a
        sequence, with the same inputs, each sends a message.
    messages : int, default 1
        How often, from 1 to 2**53.

    Returns
    -------
    LocalRandomizer
        The law of the tuple of messages; for a single one ``randomizer`` itself. What is drawn has
        an axis for the messages of a user, behind that of the users.

    Raises
    ------
    TypeError, ValueError
        If an argument is outside its domain. From `merged`, where the types of messages are more
        than 100,000.

    See Also
    --------
    ShuffleExperiment : with ``messages`` and ``bundled=True``.

    Notes
    -----
    Tuples are never listed: those with the same number of messages in each group of outputs have
    the same ratios, which leaves ``messages + 1`` types for two groups. Their probabilities are
    products of binomial ones. What all inputs share is the least probability of each type.

    *Different randomizers.* The tuples are those of merged groups, merged again where their ratios
    agree. Messages that are shuffled one by one, or each with its like in a channel of its own, are
    a post-processing of the shuffled tuples, so every upper bound and worst case of the bundle is
    an UPPER_BOUND for either way; `shared_channel_profile` is sharper for messages that are all
    shuffled together. An infinite loss of a message, such as one of a deterministic protocol, is
    one of the tuple.

    **Accuracy**: relative error of a probability below ``1e-15 (1 + |log p|)`` times the number of
    messages; of a log ratio ``1e-16`` times the largest one that the messages could have
    (``tests/test_bundle.py``). **Cost**: about 0.1 microseconds a type, group and input.

    Examples
    --------
    >>> import fastshuffle as fs
    >>> two = fs.bundle(fs.Randomizer([[0.75, 0.25], [0.5, 0.5]]), 2)
    >>> two.merged_rows((0, 1))
    array([[0.0625, 0.375 , 0.5625],
           [0.25  , 0.5   , 0.25  ]])
    >>> rr = fs.binary_randomized_response(1.0)
    >>> fs.bundle([rr, fs.binary_randomized_response(2.0)]).epsilon0
    3.0
    """
    if isinstance(randomizer, Sequence) and not isinstance(randomizer, str):
        return bundle(mixed_bundle(randomizer), messages)
    if not isinstance(randomizer, LocalRandomizer):
        raise TypeError(f"randomizer must be a Randomizer, got {type(randomizer).__name__}")
    count = check_count("messages", messages, minimum=1, maximum=LARGEST_COUNT)
    if count == 1:
        return randomizer
    if isinstance(randomizer, ContinuousNoise):
        raise UnsupportedSettingError(f"messages must be 1 for continuous noise, got {count}")
    if isinstance(randomizer, Bundle):
        return Bundle(randomizer.randomizer, randomizer.messages * count)
    return Bundle(randomizer, count)
