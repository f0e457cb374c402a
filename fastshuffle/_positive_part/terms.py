"""Sums of independent variables with finitely many values, and their exponential tilt."""

import math
from typing import NamedTuple

import numpy as np

from fastshuffle._typing import FloatArray

UNIT = 2.3e-16


class Terms(NamedTuple):
    """Independent copies of one variable: how many, its values and their probabilities."""

    copies: float
    values: FloatArray
    probabilities: FloatArray

    def merged(self) -> "Terms":
        """Return the terms with each possible value once, in ascending order."""
        kept = self.probabilities > 0.0
        values, place = np.unique(self.values[kept], return_inverse=True)
        masses = np.bincount(place, self.probabilities[kept], len(values))
        return Terms(self.copies, values, masses.astype(np.float64, copy=False))

    def negated(self) -> "Terms":
        """Return the terms with all values of the other sign."""
        return Terms(self.copies, -self.values[::-1], self.probabilities[::-1])


class Bracket(NamedTuple):
    """Natural logarithms between which a number lies."""

    lower: float
    upper: float


class Tilted(NamedTuple):
    """One group under an exponential tilt."""

    log_moment: float
    """log E exp(s X)"""
    probabilities: FloatArray
    mean: float
    variance: float


def exponential_excess(y: FloatArray) -> FloatArray:
    """Return ``exp(y) - 1 - y`` elementwise."""
    series = 0.5 * y * y * (1.0 + y / 3.0 * (1.0 + y / 4.0 * (1.0 + y / 5.0 * (1.0 + y / 6.0))))
    return np.where(np.abs(y) < 5e-3, series, np.expm1(y) - y)


def tilted(term: Terms, s: float) -> Tilted:
    """Return the law of one copy, weighted by exp(s X)."""
    values, p = term.values, term.probabilities
    exponents = s * values
    widest = float(np.abs(exponents).max())
    change = -1.0
    if widest < 500.0:
        # a mean plus a sum of non-negative terms, so that n times the logarithm is right
        change = float(p @ exponential_excess(exponents)) + float(p @ exponents)
    if change > -0.5:
        log_moment = math.log1p(change)
    else:
        largest = float(exponents.max())
        log_moment = largest + math.log(float(p @ np.exp(exponents - largest)))
    weights = p * np.exp(exponents - exponents.max())
    weights /= weights.sum()
    mean = float(weights @ values)
    deviations = np.sqrt(weights) * (values - mean)
    return Tilted(log_moment, weights, mean, float(deviations @ deviations))


def largest_sum(terms: list[Terms]) -> float:
    """Return the largest value of the sum."""
    return sum(t.copies * float(t.values.max()) for t in terms)


def log_sum_of_positive_parts(terms: list[Terms]) -> float:
    """Return the log of the sum of E[(X)_+] over all copies, which is at least E[S_+]."""
    total = sum(t.copies * float(t.probabilities @ np.maximum(t.values, 0.0)) for t in terms)
    return math.log(total) if total > 0.0 else -math.inf


def mean_of_sum(terms: list[Terms], side: float) -> float:
    """Return E[S], moved to a side by more than its rounding."""
    mean = size = 0.0
    for copies, values, probabilities in terms:
        mean += copies * float(probabilities @ values)
        size += copies * len(values) * float(probabilities @ np.abs(values))
    return mean + side * UNIT * size


def mean_exceeds_deviation(terms: list[Terms]) -> bool:
    """Whether the sum has a mean above its standard deviation."""
    _, variance = _mean_and_variance(terms, 0.0)
    return mean_of_sum(terms, -1.0) > math.sqrt(variance)


def least_tilt(terms: list[Terms]) -> float:
    """Return a tilt off the pole at s = 0 by one standard deviation of the sum.

    It is less where that would tilt some value by more than a factor of e.
    """
    widest = max(float(np.abs(t.values).max()) for t in terms)
    _, spread = _mean_and_variance(terms, 0.0)
    return min(1.0 / math.sqrt(spread), 1.0 / widest) if spread > 0.0 else 1.0 / widest


def tilt_to_zero(terms: list[Terms]) -> float:
    """Return a tilt of at least the `least_tilt` that centres the sum near 0, if it is above that.

    The largest sum must be positive.
    """
    s = least = least_tilt(terms)
    low, high = least, math.inf
    for _ in range(200):
        mean, variance = _mean_and_variance(terms, s)
        if mean >= 0.0:
            high = s
        else:
            low = s
        if abs(mean) <= 0.01 * math.sqrt(variance) or high <= least:
            break
        # Newton's step in log s, at most a factor of e
        change = -mean / (variance * s) if variance > 0.0 else math.inf
        s_next = s * math.exp(min(1.0, max(-1.0, change)))
        if not low < s_next < high:
            s_next = math.sqrt(low * high)
        if s_next == s:
            break
        s = s_next
    return s


def _mean_and_variance(terms: list[Terms], s: float) -> tuple[float, float]:
    laws = [(t.copies, tilted(t, s)) for t in terms]
    return sum(n * law.mean for n, law in laws), sum(n * law.variance for n, law in laws)


def log_smallest_exponential_bound(terms: list[Terms]) -> float:
    """Return the log of the least ``E exp(s S - 1) / s`` over s > 0, which is above E[S_+].

    At the minimum the tilted mean of S is 1/s; the value is valid at any s.
    """
    if largest_sum(terms) <= 0.0:
        return -math.inf
    best = math.inf
    for s in (tilt_to_zero(terms) * np.geomspace(0.5, 4.0, 25)).tolist():
        exponent = sum(t.copies * tilted(t, s).log_moment for t in terms)
        best = min(best, exponent - 1.0 - math.log(s) + 1e-13 * abs(exponent))
    return best + 1e-9
