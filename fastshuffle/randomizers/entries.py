"""Entries of an explicit matrix and what is derived from two of them, to relative accuracy.

Inputs b, a and outputs y are indices or arrays of indices that numpy broadcasts.
"""

from typing import Any

import numpy as np

from fastshuffle._typing import FloatArray


def smaller(rows: FloatArray) -> Any:
    """Return the authoritative entry of each binary row, at most 1/2."""
    # two entries may both exceed 1/2 by as much as a sum of 1 may be missed
    return np.minimum(rows.min(axis=-1), 0.5)


def log_of_rows(matrix: FloatArray) -> FloatArray:
    """Return the natural logarithms; in a binary row that of the larger entry by complement."""
    with np.errstate(divide="ignore"):
        if matrix.shape[1] != 2:
            return np.log(matrix)
        p = smaller(matrix)[:, np.newaxis]
        first = matrix.argmin(axis=1)[:, np.newaxis] == np.arange(2)
        return np.where(first, np.log(p), np.log1p(-p) + 0.0)


def probabilities(matrix: FloatArray, x: Any, y: Any) -> Any:
    """Return the probabilities of outputs y for inputs x."""
    if matrix.shape[1] != 2:
        return matrix[x, y]
    row = matrix[x]
    p = smaller(row)
    return np.where(row.argmin(axis=-1) == y, p, 1.0 - p)


def log_ratios(matrix: FloatArray, b: Any, a: Any, y: Any) -> Any:
    """Return the privacy losses ``log(W_b(y) / W_a(y))``, 0 where both are 0."""
    difference = differences(matrix, b, a, y)
    gap = np.abs(difference)
    low = np.minimum(probabilities(matrix, b, y), probabilities(matrix, a, y))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = gap / low
        # a finite ratio beyond the largest float is left to a difference of logarithms
        beyond = np.isinf(ratio) & (low > 0.0)
        size = np.where(beyond, np.log(gap) - np.log(low), np.log1p(ratio))
    return np.where(gap == 0.0, 0.0, np.copysign(size, difference))


def differences(matrix: FloatArray, b: Any, a: Any, y: Any) -> Any:
    """Return ``W_b(y) - W_a(y)``."""
    if matrix.shape[1] != 2:
        return matrix[b, y] - matrix[a, y]
    row_b, row_a = matrix[b], matrix[a]
    p_b, p_a = smaller(row_b), smaller(row_a)
    small_b, small_a = row_b.argmin(axis=-1) == y, row_a.argmin(axis=-1) == y
    # p against p, or 1 - p against 1 - p, or one of each, when nothing cancels
    same = np.where(small_b, p_b - p_a, p_a - p_b)
    apart = (0.5 - p_b) + (0.5 - p_a)
    return np.where(small_b == small_a, same, np.where(small_b, -apart, apart))


def extreme_binary_rows(matrix: FloatArray) -> tuple[Any, Any]:
    """Return the inputs of the smallest and the largest probability, for outputs 0 and 1."""
    # order by W_x(1), told apart down to the last bit of the authoritative entries
    small = matrix.argmin(axis=1) == 1
    p = smaller(matrix)
    order = np.lexsort((np.where(small, p, -p), ~small))
    return order[[-1, 0]], order[[0, -1]]
