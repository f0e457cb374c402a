"""Histograms drawn from tilted laws, with numpy's generators."""

import numpy as np

from fastshuffle._typing import FloatArray
from fastshuffle.monte_carlo.pair import PairLaws

# Counts held at a time.
_MOST_COUNTS = 2**19
# Histograms of a pilot, and fewer where they have many outputs or their losses take long.
_PILOT = 2048
_LEAST_PILOT = 64
_PILOT_COUNTS = 2**21
_PILOT_TERMS = 2.0**23


def pilot_generator() -> np.random.Generator:
    """Return the generator of the pilots, which is always the same.

    A pilot sets constants of an interval ahead of the data, so that it may not depend on them;
    and all machines have to find the same constants.
    """
    return np.random.Generator(np.random.PCG64(20260101))


def draw(laws: PairLaws, exponents: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
    """Return histograms of the drawn part of P, every message tilted by ``exp(exponents)``.

    Parameters
    ----------
    laws : PairLaws
        The laws.
    exponents : array, shape (n_outputs,)
        The tilt.
    size : int
        How many histograms.
    rng : numpy.random.Generator
        The source of randomness.

    Returns
    -------
    array of float, shape (size, n_outputs)
        Counts, which are exact integers.
    """
    counts = np.zeros((size, len(exponents)))
    for users, row in laws.groups:
        with np.errstate(divide="ignore"):
            logs = np.log(row) + exponents
        tilted = np.exp(logs - logs.max())
        counts += rng.multinomial(users, tilted / tilted.sum(), size=size)
    return counts


def batch_size(laws: PairLaws) -> int:
    """Return how many histograms are held at a time, whatever the number of outputs."""
    return max(1, _MOST_COUNTS // len(laws.own))


def pilot_size(laws: PairLaws) -> int:
    """Return how many histograms a pilot draws."""
    size = min(_PILOT_COUNTS // len(laws.own), int(_PILOT_TERMS / laws.method.cost))
    return max(_LEAST_PILOT, min(_PILOT, size))
