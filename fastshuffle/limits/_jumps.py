"""Sparse errors: which output every user sends but rarely, and how often another one comes.

Every input has a *home*, the output of probability above 1/2 that its holders send unless an error
occurs. Among many users with rare errors the numbers of errors of each kind are nearly independent
Poisson counts, and the differing user moves from the home of a to the home of b.
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from fastshuffle._kernels.poisson_shift import POISSON_TRIALS
from fastshuffle._typing import FloatArray
from fastshuffle._validation import UnsupportedSettingError
from fastshuffle.exact.homogeneous import require_no_underflow
from fastshuffle.experiment import ShuffleExperiment

# Rounding of a mean number of errors moves a Poisson law by no more than this share of the mean.
_MEAN_ROUNDING = 1e-15


@dataclass(frozen=True)
class Jumps:
    """The errors of the other users as independent Poisson counts, and how far that is off.

    Attributes
    ----------
    home_a, home_b : int
        The homes of the inputs of the pair, two different groups of outputs.
    homes : frozenset of int
        The homes of the inputs that the other users hold.
    rates : numpy.ndarray of float64, shape (n_groups, n_groups)
        Mean number of the other users whose home is the row and whose message is the column.
    error_a, error_b : float
        Bounds on the total variation distance of the law of the histogram under the first and
        under the second dataset from its limit.
    """

    home_a: int
    home_b: int
    homes: frozenset[int]
    rates: FloatArray
    error_a: float
    error_b: float

    @classmethod
    def of(cls, experiment: ShuffleExperiment) -> Self:
        """Return the jumps of an experiment; an input without a home is not supported."""
        held = experiment.others
        inputs = (*experiment.pair, *held)
        merged = experiment.randomizer.merged(inputs)
        require_no_underflow(experiment.randomizer, merged)
        rows = merged.rows
        homes = rows.argmax(axis=1)
        for x, row, home in zip(inputs, rows, homes, strict=True):
            if not row[home] > 0.5:
                raise UnsupportedSettingError(
                    "errors must be sparse: every input that occurs needs an output of "
                    f"probability above 1/2, got {float(row[home])!r} as the largest of input {x}"
                )
        home_a, home_b = int(homes[0]), int(homes[1])
        if home_a == home_b:
            raise UnsupportedSettingError(
                "the inputs of the pair must have different outputs of probability above 1/2, got "
                f"the same for {experiment.pair[0]} and {experiment.pair[1]}"
            )
        errors = rows.copy()
        errors[np.arange(len(inputs)), homes] = 0.0
        totals = errors.sum(axis=1)
        counts = np.array(list(held.values()), dtype=np.float64)
        rates = np.zeros((rows.shape[1], rows.shape[1]))
        for home, count, row in zip(homes[2:], counts, errors[2:], strict=True):
            rates[home] += count * row
        means = counts * totals[2:]
        # the error of each group of users with one input, by Barbour and Hall, and subadditivity
        distance = float((-np.expm1(-means) * totals[2:] + _MEAN_ROUNDING * means).sum())
        return cls(
            home_a,
            home_b,
            frozenset(homes[2:].tolist()),
            rates,
            min(1.0, distance + float(totals[0])),
            min(1.0, distance + float(totals[1])),
        )


def shift_law(up: float, down: float, coins: FloatArray | None = None) -> FloatArray:
    """Return the rows that the kernels of `poisson_shift` take; the numbers of trials are open.

    ``coins`` has the p and the 1 - p of each group, both inside (0, 1).
    """
    rows = np.empty((0, 2)) if coins is None else coins
    law = np.zeros((2 + len(rows), 5))
    for row, mean in zip(law, (up, down), strict=False):
        row[:] = POISSON_TRIALS, mean, 0.0, math.log(mean) if mean > 0.0 else -math.inf, 0.0
    law[2:, 1:3] = rows
    other = rows[:, ::-1]
    law[2:, 3:5] = np.where(rows <= 0.5, np.log(rows), np.log1p(-other))
    return law
