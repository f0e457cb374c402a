"""What the exact profiles share: a pair of binary-output laws as arrays, and their rounding."""

import numpy as np

from fastshuffle._typing import FloatArray
from fastshuffle.randomizers import Randomizer

FORWARD, REVERSE = 0, 1

# Rounding of log delta, from the survey in validation/: about 1e-13 plus a unit in the last place
# of log delta itself; stated ten times wider.
_LOG_ROUNDING = 1e-12
_LOG_ROUNDING_PER_UNIT = 2e-15


def require_binary_output(randomizer: Randomizer) -> None:
    """Raise a ValueError unless the randomizer has two outputs."""
    if randomizer.n_outputs != 2:
        raise ValueError(f"randomizer must have 2 outputs, got {randomizer.n_outputs}")


def rounding(log_delta: FloatArray) -> FloatArray:
    """Return how far rounding may have moved each log delta."""
    finite = np.where(np.isfinite(log_delta), log_delta, 0.0)
    return _LOG_ROUNDING + _LOG_ROUNDING_PER_UNIT * np.abs(finite)


def _binary_rows(randomizer: Randomizer, output: int) -> FloatArray:
    """Return ``(1, p, q, log p, log q)`` for each input, p the probability of ``output``."""
    rows = np.ones((randomizer.n_inputs, 5))
    for column, y in enumerate((output, 1 - output)):
        rows[:, 1 + column] = randomizer.matrix[:, y]
        rows[:, 3 + column] = randomizer.log_matrix[:, y]
    return rows


def pair_arrays(randomizer: Randomizer, pair: tuple[int, int]) -> tuple[FloatArray, FloatArray]:
    """Return the rows of all inputs and the pair of the hockey-stick kernels, for each direction.

    Forward counts the output that input b of the pair sends more often than input a does; reverse
    counts the other output, with the two inputs exchanged.
    """
    a, b = pair
    output = 1 if randomizer.probability_difference(b, a, 1) >= 0.0 else 0
    rows = np.array([_binary_rows(randomizer, output), _binary_rows(randomizer, 1 - output)])
    loss = randomizer.log_ratio(b, a, output)
    reverse_loss = randomizer.log_ratio(a, b, 1 - output)
    p1, log_p1 = rows[FORWARD, b, 1], rows[FORWARD, b, 3]
    q0, log_q0 = rows[FORWARD, a, 2], rows[FORWARD, a, 4]
    pairs = np.array(
        [
            [p1, log_p1, log_q0, loss, reverse_loss],
            [q0, log_q0, log_p1, reverse_loss, loss],
        ]
    )
    return rows, pairs
