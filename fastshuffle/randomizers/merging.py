"""Rows of a randomizer with the outputs merged that do not tell the rows apart."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from fastshuffle._typing import FloatArray, IntArray
from fastshuffle.randomizers.entries import log_ratios

__all__ = ["MergedRows"]

# Ratios of probabilities given as doubles are equal if they differ by no more than this.
_SAME_RATIO = 4.0 * float(np.finfo(np.float64).eps)
# Ratios are compared as doubles where none of them underflows.
_LARGEST_LOG_RATIO = 700.0


class MergedRows(NamedTuple):
    """The rows of some inputs over groups of outputs; see `LocalRandomizer.merged`.

    Attributes
    ----------
    rows : numpy.ndarray of float64, shape (n_rows, n_groups)
        The probability of each group, which may underflow to 0. Every row sums to 1; those of an
        explicit matrix do so as closely as the rows that were given.
    log_rows : numpy.ndarray of float64, shape (n_rows, n_groups)
        Its natural logarithm, -inf only where the probability is 0 as a real number.
    log_ratios : numpy.ndarray of float64, shape (n_rows, n_groups)
        ``log(rows[i] / rows[0])``: inf where only row 0 is 0, -inf where only row i is, and 0
        where both are.

    Notes
    -----
    **Accuracy.** The relative error of `log_ratios` and of `log_rows` is a few units of rounding,
    for the ratios also where rows nearly agree, which a difference of logarithms would lose. That
    of a probability p, and of a logarithm near 0 with p the probability of all other groups, is a
    few units of rounding times ``1 + |log p|`` (``tests/test_mechanisms.py``).
    """

    rows: FloatArray
    log_rows: FloatArray
    log_ratios: FloatArray

    def of(self, places: Sequence[int]) -> Self:
        """Return the rows at the places given, of which the first is place 0."""
        return self._replace(
            rows=self.rows[places],
            log_rows=self.log_rows[places],
            log_ratios=self.log_ratios[places],
        )


def one_group(n_rows: int) -> MergedRows:
    """Return the merged rows of inputs that no output tells apart."""
    return MergedRows(*(np.full((n_rows, 1), value) for value in (1.0, 0.0, 0.0)))


def merge_log_columns(
    log_columns: FloatArray, log_ratios: FloatArray, groups: npt.NDArray[np.intp]
) -> MergedRows:
    """Merge columns of rows that sum to 1, given by logarithms and the group of each column.

    Within a group the log ratios are equal; those of its first column are kept.
    """
    possible = (log_columns > -math.inf).any(axis=0)
    columns, groups = log_columns[:, possible], groups[possible]
    first, group_of = first_of_each_group(groups)
    ratios = log_ratios[:, possible][:, first]
    if first.size == groups.size:
        log_rows = columns
    else:
        order = group_of.argsort(kind="stable")
        starts = np.flatnonzero(np.diff(group_of[order], prepend=-1))
        largest = np.maximum.reduceat(columns[:, order], starts, axis=1)
        scale = np.where(largest == -math.inf, 0.0, largest)
        sums = sum_groups(np.exp(columns - scale[:, group_of]), group_of)
        with np.errstate(divide="ignore"):
            log_rows = scale + np.log(sums)
    rows = np.exp(log_rows)
    # a probability above 1/2 by its complement, so that its logarithm keeps full precision
    every = np.arange(rows.shape[0])
    top = rows.argmax(axis=1)
    others = rows.copy()
    others[every, top] = 0.0
    rest = others.sum(axis=1)
    above = rest < 0.5
    rows[every[above], top[above]] = 1.0 - rest[above]
    log_rows[every[above], top[above]] = np.log1p(-rest[above]) + 0.0
    return MergedRows(rows, log_rows, ratios)


def merge_formula(epsilon0: float, exponents: IntArray, log_rows: FloatArray) -> MergedRows:
    """Merge rows proportional to ``exp(epsilon0 * exponents)``, with their logarithms."""
    shifted = exponents - exponents.max(axis=0)
    groups = groups_of_equal_columns(
        np.unique(row, return_inverse=True)[1]
        for row in (shifted if epsilon0 > 0.0 else 0 * shifted)
    )
    return merge_log_columns(log_rows, epsilon0 * (exponents - exponents[0]) + 0.0, groups)


def merge_matrix(matrix: FloatArray, log_matrix: FloatArray, inputs: Sequence[int]) -> MergedRows:
    """Merge the outputs of an explicit matrix for some of its rows."""
    held = np.array(inputs)[:, np.newaxis]
    rows = matrix[held[:, 0]]
    outputs = np.flatnonzero(rows.any(axis=0))
    if matrix.shape[1] == 2:
        # two outputs have equal ratios only if the rows are equal, down to the last bit
        ratios = log_ratios(matrix, held, held[0, 0], outputs)
        equal = not ratios.any()
        return one_group(held.size) if equal else MergedRows(rows, log_matrix[held[:, 0]], ratios)
    first, group_of = first_of_each_group(groups_of_equal_ratios(rows[:, outputs]))
    sums = sum_groups(rows[:, outputs], group_of)
    with np.errstate(divide="ignore"):
        log_sums = np.log(sums)
    return MergedRows(sums, log_sums, log_ratios(matrix, held, held[0, 0], outputs[first]))


def merge_proportional(rows: FloatArray) -> FloatArray:
    """Merge the columns of equal ratios of any measures, and drop columns of zeros."""
    rows = rows[:, rows.any(axis=0)]
    _, group_of = first_of_each_group(groups_of_equal_ratios(rows))
    return sum_groups(rows, group_of)


def first_of_each_group(
    groups: npt.NDArray[np.intp],
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the first member of each group and the group of each member, by first appearance."""
    _, first, group_of = np.unique(groups, return_index=True, return_inverse=True)
    order = first.argsort()
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return first[order], rank[group_of]


def sum_groups(columns: FloatArray, group_of: npt.NDArray[np.intp]) -> FloatArray:
    """Return the sums of the columns over each group 0, 1, ..., by pairwise summation."""
    order = group_of.argsort(kind="stable")
    sums, group_of = columns[:, order], group_of[order]
    while (group_of[1:] == group_of[:-1]).any():
        starts = np.flatnonzero(np.diff(group_of, prepend=-1))
        place = np.arange(group_of.size) - np.repeat(starts, np.diff(starts, append=group_of.size))
        odd = np.flatnonzero(place % 2)
        sums[:, odd - 1] += sums[:, odd]
        kept = place % 2 == 0
        sums, group_of = sums[:, kept], group_of[kept]
    return sums


def groups_of_equal_ratios(rows: FloatArray) -> npt.NDArray[np.intp]:
    """Return the group of each column: columns proportional up to 4 units of rounding share it.

    Ratios are chained where neighbours differ by no more than that, and a chain is cut so that no
    two of a group differ by more than 8 units. No column is all zeros.
    """
    return groups_of_equal_columns(_labels_of_close_values(row) for row in rows / rows.max(axis=0))


def equal_log_ratios(log_columns: FloatArray) -> npt.NDArray[np.intp]:
    """Return the group of each column of logarithms: as `groups_of_equal_ratios`."""
    scaled = log_columns - log_columns.max(axis=0)
    if scaled[scaled > -math.inf].min(initial=0.0) < -_LARGEST_LOG_RATIO:
        return np.arange(log_columns.shape[1])
    return groups_of_equal_ratios(np.exp(scaled))


def groups_of_equal_columns(labels: Iterable[npt.NDArray[np.intp]]) -> npt.NDArray[np.intp]:
    """Return the group of each column of labels, which are 0, 1, ... up to the columns' number."""
    rows = iter(labels)
    groups = next(rows)
    for row in rows:
        groups = np.unique(groups * (row.max() + 1) + row, return_inverse=True)[1]
    return groups


def _labels_of_close_values(values: FloatArray) -> npt.NDArray[np.intp]:
    order = values.argsort()
    ordered = values[order]
    apart = np.diff(ordered, prepend=-math.inf) > _SAME_RATIO * ordered
    chain_starts = ordered[apart][apart.cumsum() - 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.floor((ordered - chain_starts) / (2.0 * _SAME_RATIO * chain_starts))
    cut = np.diff(np.nan_to_num(steps), prepend=0.0) > 0.0
    labels = np.empty(values.size, dtype=np.intp)
    labels[order] = (apart | cut).cumsum() - 1
    return labels
