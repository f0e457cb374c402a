"""What files hold of a matrix or a formula, and errors that name the file."""

import csv
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from fastshuffle._typing import FloatArray, IntArray
from fastshuffle._validation import check_count, check_stochastic_matrix


def matrix_from_csv(path: str | os.PathLike[str]) -> FloatArray:
    """Read a row-stochastic matrix; see `Randomizer.from_csv`."""
    rows: list[list[float]] = []
    lines: list[int] = []
    with errors_naming(path), Path(path).open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file)
        for cells in filter(None, reader):
            lines.append(reader.line_num)
            rows.append([_number(cell, reader.line_num) for cell in cells])
        return check_stochastic_matrix(rows, place=lambda i: f"line {lines[i]}")


@contextmanager
def errors_naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn a TypeError or ValueError into a ValueError that begins with the path."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise ValueError(f"{os.fspath(path)}: {error}") from error


def _number(cell: str, line: int) -> float:
    try:
        return float(cell)
    except ValueError:
        raise ValueError(f"line {line} must hold numbers, got {cell!r}") from None


def checked_exponents(rows: Any) -> IntArray:
    """Return the exponents of a formula, as `Randomizer.to_dict` gives them, after checks."""
    if not (isinstance(rows, list) and rows and all(isinstance(row, list) and row for row in rows)):
        raise ValueError(f"exponents must be a list of rows, got {rows!r}")
    exponents = [
        [check_count(f"exponents row {i}", value, minimum=0) for value in row]
        for i, row in enumerate(rows)
    ]
    if any(sorted(row) != sorted(exponents[0]) for row in exponents):
        raise ValueError("exponents must have rows that are permutations of one another")
    return np.array(exponents, dtype=np.int64)
