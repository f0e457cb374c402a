"""The normal law to relative accuracy, in its far tails and for differences that nearly cancel.

Everything is ``phi(x)`` times an integral of the form

    int_0^inf weight(s) exp(-x s - s**2 / 2) ds,   weight >= 0:

Mills' ratio for weight 1, ``E (Z - x)_+ / phi(x)`` for weight s, and the Gaussian privacy curve for
weight ``1 - exp(-mu s)``, where a difference of two tails would lose every digit. A Gauss-Legendre
rule adds positive terms only.
"""

import math
from functools import cache

import numpy as np

from fastshuffle._typing import FloatArray

_HALF_LOG_TWO_PI = 0.9189385332046727418
_N_NODES = 64
# The integrands are cut where they are exp(-42) of what they were.
_CUT = 42.0
# From here on the logarithm of a tail is below the smallest double.
_BEYOND_DOUBLES = 1e154
# Numbers are taken in chunks of this size, for the memory of the nodes.
_CHUNK = 4096


@cache
def _legendre() -> tuple[FloatArray, FloatArray]:
    """Return the nodes and weights of the Gauss-Legendre rule on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(_N_NODES)
    return 0.5 * (1.0 + nodes), 0.5 * weights


def log_density(x: FloatArray) -> FloatArray:
    """Return the logarithm of the normal density."""
    return -0.5 * x * x - _HALF_LOG_TWO_PI


def _integral(x: FloatArray, mu: FloatArray | None, power: int) -> FloatArray:
    """Return the integral for ``weight = s**power (1 - exp(-mu s))``, the bracket 1 without mu.

    It is accurate for x >= -2, and for a mu of at most 4 or at most x.
    """
    nodes, weights = _legendre()
    total = np.empty_like(x)
    for start in range(0, x.size, _CHUNK):
        part = slice(start, start + _CHUNK)
        at = x[part, np.newaxis]
        # where x s + s**2 / 2 is the cut
        width = 2.0 * _CUT / (at + np.sqrt(at * at + 2.0 * _CUT))
        s = width * nodes
        terms = np.exp(-s * (at + 0.5 * s)) * s**power
        if mu is not None:
            terms *= -np.expm1(-mu[part, np.newaxis] * s)
        total[part] = width[:, 0] * (terms @ weights)
    return total


def mills_ratio(x: FloatArray) -> FloatArray:
    """Return ``Pr[Z > x] / phi(x)`` for x >= 0."""
    return _integral(x, None, 0)


def log_upper_tail(x: FloatArray) -> FloatArray:
    """Return ``log Pr[Z > x]`` for any x."""
    size = np.abs(x)
    far = log_density(size) + np.log(mills_ratio(size))
    return np.where(x >= 0.0, far, np.log1p(-np.exp(far)))


def log_mean_excess(x: FloatArray) -> FloatArray:
    """Return ``log E (Z - x)_+`` for x >= 0."""
    return log_density(x) + np.log(_integral(x, None, 1))


def log_gaussian_delta(epsilon: FloatArray, mu: FloatArray) -> FloatArray:
    """Return the log delta of N(mu, 1) against N(0, 1), for epsilon >= 0 and mu > 0.

    With ``a = epsilon / mu - mu / 2`` and ``b = a + mu`` it is ``phi(a)`` times the difference of
    Mills' ratios at a and b, since ``exp(epsilon) phi(b) = phi(a)``.
    """
    with np.errstate(over="ignore"):
        a = epsilon / mu - 0.5 * mu
    log_delta = np.full_like(a, -math.inf)
    known = a < _BEYOND_DOUBLES
    apart = known & (mu > 4.0) & (a < mu)
    near = known & ~apart
    with np.errstate(divide="ignore"):  # next to a density of exp(-1e200) nothing else matters
        log_delta[near] = log_density(a[near]) + np.log(_integral(a[near], mu[near], 0))
    if apart.any():
        # nothing cancels: the ratio at b is at most about half of that at a
        a = a[apart]
        other, size = mills_ratio(a + mu[apart]), mills_ratio(np.abs(a))
        right = a >= 0.0
        log_part = np.log1p(-np.exp(log_density(a)) * (size + other) * ~right)
        log_part[right] = log_density(a[right]) + np.log((size - other)[right])
        log_delta[apart] = log_part
    return log_delta
