"""What the exact profiles share: a pair of binary laws as arrays, and their rounding."""

import math
from collections.abc import Callable

import numpy as np

from fastshuffle._typing import Direction, FloatArray
from fastshuffle.randomizers import MergedRows

FORWARD, REVERSE = 0, 1
DIRECTION_CODE = {"forward": FORWARD, "reverse": REVERSE, "both": 2}

# An epsilon is the double nearest to what the caller means, and so is the largest loss.
_EPSILON_ROUNDING = 4.0 * float(np.finfo(np.float64).eps)

# Rounding of log delta: about 1e-13 plus two units in the last place of log delta itself and of
# epsilon, which enters as an exponent (survey in validation/). Stated some times wider.
_LOG_ROUNDING = 1e-12
_LOG_ROUNDING_PER_UNIT = 5e-15


def codes_of(direction: Direction) -> tuple[int, ...]:
    """Return the codes of the directions that one stands for."""
    return (FORWARD, REVERSE) if direction == "both" else (DIRECTION_CODE[direction],)


def rounding(log_delta: FloatArray, epsilon: FloatArray) -> FloatArray:
    """Return how far rounding may have moved each log delta."""
    units = np.abs(log_delta) + np.abs(epsilon)
    return _LOG_ROUNDING + _LOG_ROUNDING_PER_UNIT * np.where(np.isfinite(units), units, 0.0)


def log_bounds(
    log_curve: Callable[[FloatArray], FloatArray], epsilons: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return logarithms between which delta lies, for a curve exact up to rounding."""
    log_delta = log_curve(epsilons)
    margin = rounding(log_delta, epsilons)
    lower = log_curve(epsilons * (1.0 + _EPSILON_ROUNDING)) - margin
    upper = log_curve(epsilons * (1.0 - _EPSILON_ROUNDING)) + margin
    vanishes = log_delta == -math.inf
    return np.where(vanishes, log_delta, lower), np.where(vanishes, log_delta, upper)


def pair_arrays(merged: MergedRows) -> tuple[FloatArray, FloatArray]:
    """Return the rows and the pair of the hockey-stick kernels, for each direction.

    ``merged`` has at most two groups of outputs and begins with the rows of the differing user in
    the first and in the second dataset. Forward counts the group that the second sends more often;
    reverse counts the other, with the two rows exchanged. The rows are
    ``(1, p, q, log p, log q)`` with p the probability of what is counted.
    """
    probabilities, log_probabilities, log_ratios = merged
    if probabilities.shape[1] == 1:  # the rows agree: add a group that nobody sends
        probabilities = np.pad(probabilities, ((0, 0), (0, 1)))
        log_probabilities = np.pad(log_probabilities, ((0, 0), (0, 1)), constant_values=-math.inf)
        log_ratios = np.pad(log_ratios, ((0, 0), (0, 1)))
    counted = int(log_ratios[1].argmax())
    rows = np.ones((2, len(probabilities), 5))
    for direction, columns in (
        (FORWARD, (counted, 1 - counted)),
        (REVERSE, (1 - counted, counted)),
    ):
        rows[direction, :, 1:3] = probabilities[:, columns]
        rows[direction, :, 3:5] = log_probabilities[:, columns]
    loss, reverse_loss = log_ratios[1, counted], -log_ratios[1, 1 - counted]
    p1, log_p1 = rows[FORWARD, 1, 1], rows[FORWARD, 1, 3]
    q0, log_q0 = rows[FORWARD, 0, 2], rows[FORWARD, 0, 4]
    pairs = np.array(
        [
            [p1, log_p1, log_q0, loss, reverse_loss],
            [q0, log_q0, log_p1, reverse_loss, loss],
        ]
    )
    return rows, pairs
