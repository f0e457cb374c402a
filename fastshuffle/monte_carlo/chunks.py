"""A chunk of a simulation, the unit of work, and exact sums of chunks."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from fastshuffle._kernels.weighted_tails import add_to_cells
from fastshuffle._typing import FloatArray, Side
from fastshuffle.monte_carlo.aim import Aim
from fastshuffle.monte_carlo.drawing import batch_size, draw, pilot_generator, pilot_size
from fastshuffle.monte_carlo.pair import SIDES, PairLaws

# Histograms a chunk, half of them for either direction; fewer where their losses take long.
CHUNK = 2**16
_LEAST_CHUNK = 2**8
_CHUNK_TERMS = 2.0**26
_COLUMNS = 5
# Sums are whole numbers of 2**-80 of their unit, so that they add up to the same in any order.
_FRACTION_BITS = 80
# What is more than rounding, in a privacy loss or in a weighted term above its proved bound.
_LARGEST_ROUNDING = 1e-6


class Task(NamedTuple):
    """What one side of a chunk needs."""

    laws: PairLaws
    aim: Aim


@dataclass(frozen=True)
class Sums:
    """Exact sums of the cells of one direction; see `fastshuffle._kernels.weighted_tails`.

    Attributes
    ----------
    size : int
        Number of samples.
    cells : tuple of tuple of int
        A row an epsilon, in units of 2**-80 of the cell's unit.
    """

    size: int
    cells: tuple[tuple[int, ...], ...]

    @classmethod
    def empty(cls, aim: Aim) -> Self:
        """Return the sums of no samples."""
        return cls(0, ((0,) * _COLUMNS,) * len(aim.epsilons))

    @classmethod
    def of(cls, size: int, cells: FloatArray) -> Self:
        """Return the sums of one chunk."""
        return cls(
            size,
            tuple(
                tuple(int(math.ldexp(value, _FRACTION_BITS)) for value in row)
                for row in cells.tolist()
            ),
        )

    def __add__(self, other: Self) -> Self:
        """Return the sums of all samples of both."""
        cells = tuple(
            tuple(map(int.__add__, *rows)) for rows in zip(self.cells, other.cells, strict=True)
        )
        return type(self)(self.size + other.size, cells)

    def array(self) -> FloatArray:
        """Return the cells as numbers."""
        scale = 1 << _FRACTION_BITS
        return np.array([[value / scale for value in row] for row in self.cells])

    def to_dict(self) -> dict[str, Any]:
        """Return the sums in plain Python values, ready for JSON."""
        return {"size": self.size, "cells": [[f"{value:x}" for value in row] for row in self.cells]}

    @classmethod
    def from_dict(cls, content: dict[str, Any], aim: Aim) -> Self:
        """Return the sums that `to_dict` describes; a ValueError if they are none for the aim."""
        size = content["size"]
        cells = tuple(tuple(int(value, 16) for value in row) for row in content["cells"])
        if type(size) is not int or size < 0 or len(cells) != len(aim.epsilons):
            raise ValueError("no sums")
        if any(len(row) != _COLUMNS for row in cells):
            raise ValueError("no sums")
        return cls(size, cells)


class Moments(NamedTuple):
    """Sums of the terms of delta and of their squares at each epsilon, in the units of the aim.

    Those of ``tangent`` are over the samples whose loss is beyond the next epsilon: there the mean
    is the line that touches delta, as a function of exp(epsilon), at the next epsilon.
    """

    terms: FloatArray
    squares: FloatArray
    tangent_terms: FloatArray
    tangent_squares: FloatArray


def moments(aim: Aim, cells: FloatArray) -> Moments:
    """Return the sums over all samples above each epsilon from those of the cells."""
    near = far = near_near = near_far = far_far = 0.0
    epsilons, units = aim.epsilons, aim.log_units
    found = Moments(*np.empty((4, len(epsilons))))
    for e in range(len(epsilons) - 1, -1, -1):
        if e + 1 < len(epsilons):
            # from the next epsilon to this one: w a + q w b, and b shrinks by 1 - q
            fade = math.exp(epsilons[e] - epsilons[e + 1])
            q = -math.expm1(epsilons[e] - epsilons[e + 1])
            unit = math.exp(units[e + 1] - units[e])
            near_near = unit * unit * (near_near + 2.0 * q * near_far + q * q * far_far)
            near_far = unit * unit * fade * (near_far + q * far_far)
            far_far *= (unit * fade) ** 2
            near = unit * (near + q * far)
            far *= unit * fade
        found.tangent_terms[e], found.tangent_squares[e] = near, near_near
        near += cells[e, 0]
        far += cells[e, 1]
        near_near += cells[e, 2]
        near_far += cells[e, 3]
        far_far += cells[e, 4]
        found.terms[e], found.squares[e] = near, near_near
    return found


def chunk_size(tasks: dict[Side, Task]) -> int:
    """Return how many histograms a chunk has, the same on every machine."""
    cost = max(task.laws.method.cost for task in tasks.values())
    return max(_LEAST_CHUNK, min(CHUNK, int(_CHUNK_TERMS / cost)))


def draw_cells(task: Task, size: int, rng: np.random.Generator) -> FloatArray:
    """Return the cells of some samples of one direction."""
    laws, aim = task
    cells = np.zeros((len(aim.epsilons), _COLUMNS))
    if laws.trivial:
        return cells
    parts = rng.multinomial(size, np.full(len(aim.tilts), 1.0 / len(aim.tilts)))
    largest = 0.0
    for tilt, part in zip(aim.tilts, parts.tolist(), strict=True):
        for first in range(0, part, batch_size(laws)):
            batch = min(batch_size(laws), part - first)
            histograms = draw(laws, tilt[:-1], batch, rng)
            scales = laws.scales(histograms)
            # what P has not is only drawn
            losses = np.where(scales > 0.0, laws.losses(histograms), -math.inf)
            possible = losses <= laws.drawn_loss * (1.0 + _LARGEST_ROUNDING)
            if not possible.all():
                raise ArithmeticError(
                    f"the privacy loss of a histogram came out as {losses[~possible][0]}, where "
                    f"{laws.drawn_loss} is the largest"
                )
            term = add_to_cells(
                histograms, losses, scales, aim.tilts, aim.epsilons, aim.log_units, cells
            )
            largest = max(largest, term)
    if np.array_equal(aim.log_limits, aim.log_units) and not largest <= 1.0 + _LARGEST_ROUNDING:
        raise ArithmeticError(f"a weighted term is {largest!r} times its bound")
    return cells


class Pilot(NamedTuple):
    """Roughly the mean and the standard deviation of the terms at each epsilon."""

    means: FloatArray
    deviations: FloatArray


def pilot(task: Task) -> Pilot:
    """Return what a fixed pilot says of the terms."""
    size = pilot_size(task.laws)
    found = moments(task.aim, draw_cells(task, size, pilot_generator()))
    mean = found.terms / size
    return Pilot(mean, np.sqrt(np.maximum(found.squares / size - mean * mean, 1.0 / size**2)))


def run_chunk(tasks: dict[Side, Task], size: int, rng: np.random.Generator) -> dict[Side, Sums]:
    """Return the sums of one chunk; half of the samples, rounded up, are for forward."""
    sizes = {"forward": size - size // 2, "reverse": size // 2}
    return {side: Sums.of(sizes[side], draw_cells(tasks[side], sizes[side], rng)) for side in SIDES}
