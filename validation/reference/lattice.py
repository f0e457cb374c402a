"""Exact laws of histograms in float64, by sums of positive terms only.

Every mass is a sum of products of probabilities, so that its relative error is about the number
of roundings on the way, a few units a user: enough for rates and constants, at moderate n.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_DEVIATIONS = 14.0
_FLANK = 80  # beyond them, for laws close to a Poisson law


class Law(NamedTuple):
    """A law on integers; what is left out on either side is below 1e-40.

    Attributes
    ----------
    low : int
        The first integer.
    masses : array of float
        The masses from there on.
    """

    low: int
    masses: Floats

    @property
    def points(self) -> Floats:
        """The integers."""
        return self.low + np.arange(len(self.masses), dtype=np.float64)


def _from_ratios(low: int, upward: Floats, downward: Floats) -> Law:
    """Return the law with these ratios of consecutive masses on either side of its mode."""
    above, below = np.cumprod(upward), np.cumprod(downward)
    masses = np.concatenate((below[::-1], [1.0], above))
    return Law(low, masses / math.fsum(masses[masses > 0.0].tolist()))


def binomial(n: int, p: float) -> Law:
    """Binomial law, by the ratios of consecutive masses."""
    if n == 0 or p in {0.0, 1.0}:
        return Law(n if p == 1.0 else 0, np.ones(1))
    reach = int(_DEVIATIONS * math.sqrt(n * p * (1.0 - p))) + _FLANK
    mode = min(n, int((n + 1) * p))
    low, high = max(0, mode - reach), min(n, mode + reach)
    up, down = np.arange(mode, high), np.arange(mode, low, -1)
    odds = p / (1.0 - p)
    return _from_ratios(low, (n - up) / (up + 1.0) * odds, down / (n - down + 1.0) / odds)


def poisson(mean: float) -> Law:
    """Poisson law, by the ratios of consecutive masses."""
    if mean == 0.0:
        return Law(0, np.ones(1))
    reach = int(_DEVIATIONS * math.sqrt(mean)) + _FLANK
    mode = int(mean)
    low = max(0, mode - reach)
    up = np.arange(mode, mode + reach, dtype=np.float64)
    down = np.arange(mode, low, -1, dtype=np.float64)
    return _from_ratios(low, mean / (up + 1.0), down / mean)


def convolve(left: Law, right: Law) -> Law:
    """Law of the sum of two independent numbers."""
    return Law(left.low + right.low, np.convolve(left.masses, right.masses))


def negated(law: Law) -> Law:
    """Law of the negative of a number."""
    return Law(1 - law.low - len(law.masses), law.masses[::-1])


def shifted(law: Law, by: int) -> Law:
    """Law of a number plus a constant."""
    return Law(law.low + by, law.masses)


def mixed(left: Law, right: Law, share: float) -> Law:
    """Law of the first number with probability ``1 - share``, of the second with ``share``."""
    low, (first, second) = aligned(left, right)
    return Law(low, (1.0 - share) * first + share * second)


def aligned(*laws: Law) -> tuple[int, list[Floats]]:
    """Return the masses of laws over one common range, and its first integer."""
    low = min(law.low for law in laws)
    high = max(law.low + len(law.masses) for law in laws)
    padded = [np.pad(law.masses, (law.low - low, high - law.low - len(law.masses))) for law in laws]
    return low, padded


def sum_of_binomials(groups: Iterable[tuple[int, float]]) -> Law:
    """Law of a sum of independent ``Bin(count, p)``."""
    law = Law(0, np.ones(1))
    for count, p in groups:
        law = convolve(law, binomial(count, p))
    return law


def binary_pair(
    groups: Iterable[tuple[int, float]], own_q: Law, own_p: Law
) -> tuple[Floats, Floats, Floats]:
    """Return the points and the laws Q and P, where the differing user adds these numbers."""
    others = sum_of_binomials(groups)
    low, (q, p) = aligned(convolve(others, own_q), convolve(others, own_p))
    return low + np.arange(len(q), dtype=np.float64), q, p


def binary_datasets(
    p0: float, p1: float, n: int, k: int, step: int = 1
) -> tuple[Floats, Floats, Floats]:
    """Return the points and the laws ``T_{n,k}`` and ``T_{n,k+step}`` of the number of ones."""
    shared = [(n - k - step, p0), (k, p1)]
    return binary_pair(shared, binomial(step, p0), binomial(step, p1))


def hockey_stick(p: Floats, q: Floats, epsilon: float) -> float:
    """Hockey-stick divergence of P from Q."""
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def total_variation(p: Floats, q: Floats) -> float:
    """Half the sum of the absolute differences."""
    return 0.5 * float(np.abs(p - q).sum())


def with_one_more(law: Floats, row: Sequence[float] | Floats) -> Floats:
    """Return the law of the counts of all outputs but the last, with one more user.

    Parameters
    ----------
    law : array of float
        The masses, one axis for each output but the last, long enough for one more user.
    row : sequence of float
        The law of the message of that user.

    Returns
    -------
    array of float
        In the shape of ``law``.
    """
    entries = [float(p) for p in row]
    longer = entries[-1] * law
    for y, p in enumerate(entries[:-1]):
        here = [slice(None)] * law.ndim
        before = list(here)
        here[y], before[y] = slice(1, None), slice(None, -1)
        longer[tuple(here)] += p * law[tuple(before)]
    return longer


def histogram(rows: Floats, counts: Sequence[int], size: int) -> Floats:
    """Return the law of the histogram of users at each input, over ``size`` values a count.

    Parameters
    ----------
    rows : array of float
        The randomizer.
    counts : sequence of int
        How many users hold each input.
    size : int
        Length of each axis; more than the number of users, for none to be lost.

    Returns
    -------
    array of float
        One axis for each output but the last.
    """
    law = np.zeros((size,) * (rows.shape[1] - 1))
    law[(0,) * law.ndim] = 1.0
    users = 0
    for row, count in zip(rows, counts, strict=True):
        for _ in range(count):
            users += 1
            inner = (slice(0, min(size, users + 1)),) * law.ndim
            law[inner] = with_one_more(law[inner], row)
    return law
