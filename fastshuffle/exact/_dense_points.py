"""Every histogram of a few messages of a few groups, for any composition, by convolution."""

import math

import numpy as np

from fastshuffle._typing import FloatArray
from fastshuffle.exact._lattice_points import LatticePoints
from fastshuffle.experiment import ShuffleExperiment
from fastshuffle.randomizers import MergedRows

# Products added up, about: a second of work.
_MOST_WORK = 4e8
# No mass may underflow: the smallest is a product of so many probabilities.
_LEAST_LOG_MASS = -660.0
# A mass is off by two roundings a message, a loss by those of two masses.
_LOSS_ROUNDING = 4e-15
_LOSS_ROUNDING_PER_MESSAGE = 1e-15


class DensePoints(LatticePoints):
    """The histograms of all messages, one array of masses for each of the two laws.

    The rows of ``merged`` are those of the pair and of the inputs that the others hold. A message
    more is a convolution with its law, a sum of positive terms.
    """

    how = "convolution"

    def __init__(self, merged: MergedRows, experiment: ShuffleExperiment) -> None:
        messages = experiment.messages
        self._start(experiment.n * messages)
        self.loss_rounding = _LOSS_ROUNDING + _LOSS_ROUNDING_PER_MESSAGE * self.n_messages
        others = np.ones((1,) * (merged.rows.shape[1] - 1))
        for row, count in zip(merged.rows[2:], experiment.others.values(), strict=True):
            for _ in range(count * messages):
                others = _with_message(others, row)
        masses = []
        for row in merged.rows[:2]:
            law = others
            for _ in range(messages):
                law = _with_message(law, row)
            masses.append(law.ravel())
        q, p = masses
        possible = (q > 0.0) | (p > 0.0)
        q, p = q[possible], p[possible]
        with np.errstate(divide="ignore"):
            near = np.abs(p - q) < 0.5 * q
            losses = np.log(p) - np.log(q)
            losses[near] = np.log1p((p[near] - q[near]) / q[near])
            self._store(np.column_stack((losses, np.log(np.maximum(p, q)))))


def is_dense(merged: MergedRows, experiment: ShuffleExperiment) -> bool:
    """Whether the messages are few enough to list all histograms, and none underflows."""
    total = experiment.n * experiment.messages
    smallest = float(merged.log_rows[merged.log_rows > -math.inf].min())
    return (
        math.log(total) * merged.rows.shape[1] <= math.log(_MOST_WORK)
        and total * smallest >= _LEAST_LOG_MASS
    )


def _with_message(law: FloatArray, row: FloatArray) -> FloatArray:
    """Return the law of a histogram, its last count left out, with one message more."""
    size = law.shape[0]
    grown = np.zeros(tuple(length + 1 for length in law.shape))
    for y, p in enumerate(row.tolist()):
        place = tuple(slice(int(axis == y), size + int(axis == y)) for axis in range(law.ndim))
        grown[place] += p * law
    return grown
