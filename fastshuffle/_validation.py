"""Checks of arguments: each returns the value in the one form that the code below it uses.

A message names the argument, its exact domain and the value: ``epsilon must be >= 0, got -0.5``.
A wrong kind of value is a `TypeError`, a value outside the domain (nan always is) a `ValueError`.
"""

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, get_args

import numpy as np

from fastshuffle._typing import Direction, FloatArray

# Every integer up to here is a float64.
LARGEST_COUNT = 2**53


class UnsupportedSettingError(ValueError):
    """Arguments within their domains for which a method makes no statement.

    A `ValueError`, so that code which catches that needs no other; it tells what a method does not
    cover from what is wrong with an argument.
    """


class Interval(NamedTuple):
    """A closed interval of float64 numbers and the words that name it in messages."""

    low: float
    high: float
    words: str


NONNEGATIVE = Interval(0.0, math.inf, ">= 0")
NONNEGATIVE_FINITE = Interval(0.0, sys.float_info.max, ">= 0 and finite")
POSITIVE = Interval(math.ulp(0.0), math.inf, "> 0")
POSITIVE_FINITE = Interval(math.ulp(0.0), sys.float_info.max, "> 0 and finite")
PROBABILITY = Interval(0.0, 1.0, "in [0, 1]")
UP_TO_HALF = Interval(0.0, 0.5, "in [0, 1/2]")
RELATIVE_TOLERANCE = Interval(1e-9, 0.5, "in [1e-9, 0.5]")


def _shown(value: object) -> str:
    if isinstance(value, np.generic):
        value = value.item()
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def check_count(name: str, value: Any, *, minimum: int, maximum: int = LARGEST_COUNT) -> int:
    """Return an integer of the domain as an ``int``; integral floats such as 1e6 are integers."""
    if isinstance(value, float):
        integral = value.is_integer()
    else:
        integral = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not integral:
        raise TypeError(f"{name} must be an integer, got {_shown(value)}")
    count = int(value)
    if count < minimum:
        raise ValueError(f"{name} must be >= {minimum}, got {count}")
    if count > maximum:
        raise ValueError(f"{name} must be <= {maximum}, got {count}")
    return count


def check_pair(pair: Any, n_inputs: int) -> tuple[int, int]:
    """Return two different inputs of a randomizer, the argument ``pair``."""
    if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
        raise TypeError(f"pair must be two inputs (a, b), got {_shown(pair)}")
    a, b = (
        check_count(f"pair[{i}]", x, minimum=0, maximum=n_inputs - 1) for i, x in enumerate(pair)
    )
    if a == b:
        raise ValueError(f"pair must be two different inputs, got {(a, b)}")
    return a, b


def check_real(name: str, value: Any, interval: Interval, *, index: tuple[int, ...] = ()) -> float:
    """Return a real scalar of the interval as a ``float``; ``index`` is its place in an array."""
    if type(value) is float and interval.low <= value <= interval.high:
        return value + 0.0  # -0.0 becomes 0.0
    place = f" at index {index[0] if len(index) == 1 else index}" if index else ""
    got = f"got {_shown(value)}{place}"
    if isinstance(value, bool) or not isinstance(value, (float, int, np.floating, np.integer)):
        raise TypeError(f"{name} must be a real number {interval.words}, {got}")
    try:
        number = float(value)
    except OverflowError:
        number = math.nan
    if not interval.low <= number <= interval.high:
        raise ValueError(f"{name} must be {interval.words}, {got}")
    return number + 0.0


def check_reals(name: str, value: Any, interval: Interval) -> tuple[FloatArray, tuple[int, ...]]:
    """Return a real scalar or array of the interval as a fresh 1-D float64 array, and its shape.

    The shape of a scalar is ``()``. Numbers in lists are checked one by one, since numpy would
    turn ``[0.5, True]`` into floats.
    """
    if isinstance(value, (float, int)):
        return np.array([check_real(name, value, interval)]), ()
    array = np.asarray(value) if hasattr(value, "__array__") else np.asarray(value, dtype=object)
    if array.dtype.kind == "O":
        numbers = [
            check_real(name, element, interval, index=index)
            for index, element in np.ndenumerate(array)
        ]
        return np.array(numbers, dtype=np.float64), array.shape
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{name} must be real numbers {interval.words}, got dtype {array.dtype}")
    flat = array.astype(np.float64).ravel() + 0.0
    outside = ~((interval.low <= flat) & (flat <= interval.high))
    if outside.any():
        first = outside.argmax()
        index = tuple(int(i) for i in np.unravel_index(first, array.shape))
        check_real(name, float(flat[first]), interval, index=index)
    return flat, array.shape


def check_direction(value: Any) -> Direction:
    """Return ``"both"``, ``"forward"`` or ``"reverse"``."""
    for direction in get_args(Direction):
        if isinstance(value, str) and value == direction:
            return direction
    error = ValueError if isinstance(value, str) else TypeError
    raise error(f"direction must be 'both', 'forward' or 'reverse', got {_shown(value)}")


def check_generator(rng: Any) -> np.random.Generator:
    """Return a ``numpy.random.Generator``; seeds and legacy states are refused."""
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng must be a numpy.random.Generator, got {_shown(rng)}")
    return rng


def _matrix_row(i: int) -> str:
    return f"matrix row {i}"


def check_stochastic_matrix(
    matrix: Any, *, place: Callable[[int], str] = _matrix_row
) -> FloatArray:
    """Return a row-stochastic matrix as a fresh float64 array; ``place(i)`` names row i.

    Rows are never renormalised. Narrower and wider floats are refused, since a row of theirs is
    not the row that was meant.
    """
    if hasattr(matrix, "__array__"):
        rows = _entries_of_array(np.asarray(matrix))
    else:
        rows = _entries_of_lists(matrix, place)
    if rows.size == 0:
        raise ValueError("matrix must have at least one row and one column, got none")
    outside = ~((rows >= 0.0) & (rows < math.inf))
    if outside.any():
        i, j = (int(at[0]) for at in np.nonzero(outside))
        check_real(f"{place(i)}, column {j}", float(rows[i, j]), NONNEGATIVE_FINITE)
    sums = rows.sum(axis=1)
    unequal = ~(np.abs(sums - 1.0) <= 1e-12 * rows.shape[1])
    if unequal.any():
        i = int(unequal.argmax())
        raise ValueError(
            f"{place(i)} must sum to 1 within 1e-12 times its length, got {float(sums[i])}"
        )
    return rows


def _entries_of_array(matrix: Any) -> FloatArray:
    if matrix.ndim != 2:
        raise ValueError(f"matrix must be 2-D, got {matrix.ndim}-D")
    if matrix.dtype.kind not in "iu" and matrix.dtype.newbyteorder("=") != np.float64:
        raise TypeError(f"matrix must be float64 or integer, got dtype {matrix.dtype}")
    return np.array(matrix, dtype=np.float64, order="C") + 0.0


def _entries_of_lists(matrix: Any, place: Callable[[int], str]) -> FloatArray:
    if not isinstance(matrix, Iterable):
        raise TypeError(f"matrix must be 2-D, got {_shown(matrix)}")
    rows: list[list[float]] = []
    for i, row in enumerate(matrix):
        if not isinstance(row, Iterable):
            raise ValueError(f"matrix must be 2-D, got {_shown(row)} for {place(i)}")  # noqa: TRY004 - a list of numbers is a 1-D matrix
        rows.append([_entry(f"{place(i)}, column {j}", value) for j, value in enumerate(row)])
        if len(rows[i]) != len(rows[0]):
            raise ValueError(
                f"{place(i)} must have {len(rows[0])} entries like {place(0)}, got {len(rows[i])}"
            )
    return np.array(rows, dtype=np.float64, ndmin=2)


def _entry(name: str, value: Any) -> float:
    if isinstance(value, np.floating) and not isinstance(value, float):
        raise TypeError(f"{name} must be float64, got {value.dtype}")
    return check_real(name, value, NONNEGATIVE_FINITE)
