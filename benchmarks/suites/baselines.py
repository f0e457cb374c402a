"""The plain ways to the same numbers: what a user would write without this library.

All are for the other users holding input 0 (``k = 0``) and for p1 > p0. They return the larger of
the two directions, as the library does by default.
"""

import math

import numpy as np
from dp_accounting.pld import privacy_loss_distribution
from scipy.optimize import brentq
from scipy.stats import binom


def binomial_masses(count, p):
    """Return the mass function of Bin(count, p) over its whole support."""
    x = np.arange(1, count + 1)
    steps = np.log((count - x + 1) / x) + math.log(p / (1.0 - p))
    return np.exp(count * math.log1p(-p) + np.concatenate(([0.0], np.cumsum(steps))))


def sum_delta(n, p0, p1, epsilon):
    """Delta by summing over the whole support with numpy."""
    others = binomial_masses(n - 1, p0)
    zeros, ones = np.append(others, 0.0), np.insert(others, 0, 0.0)
    p, q = (1.0 - p1) * zeros + p1 * ones, (1.0 - p0) * zeros + p0 * ones
    ratio = math.exp(epsilon)
    return max(np.maximum(p - ratio * q, 0.0).sum(), np.maximum(q - ratio * p, 0.0).sum())


def _forward_tails_delta(n, p0, p1, epsilon):
    """Forward delta: the likelihood ratio is affine in x, its crossing names two tails."""
    ratio = math.exp(epsilon)
    if ratio * p0 >= p1:
        return 0.0
    slope = (p1 / p0 - (1.0 - p1) / (1.0 - p0)) / n
    x = math.floor((ratio - (1.0 - p1) / (1.0 - p0)) / slope) + 1
    near, tail = binom.pmf(x - 1, n - 1, p0), binom.sf(x - 1, n - 1, p0)
    return (p1 * near + tail) - ratio * (p0 * near + tail)


def _reverse_tails_delta(n, p0, p1, epsilon):
    ratio = math.exp(epsilon)
    if ratio * (1.0 - p1) >= 1.0 - p0:
        return 0.0
    slope = (p1 / p0 - (1.0 - p1) / (1.0 - p0)) / n
    x = math.ceil((1.0 / ratio - (1.0 - p1) / (1.0 - p0)) / slope) - 1
    near, tail = binom.pmf(x, n - 1, p0), binom.cdf(x - 1, n - 1, p0)
    return ((1.0 - p0) * near + tail) - ratio * ((1.0 - p1) * near + tail)


def tails_delta(n, p0, p1, epsilon):
    """Delta from the masses and tails of scipy.stats.binom."""
    return max(_forward_tails_delta(n, p0, p1, epsilon), _reverse_tails_delta(n, p0, p1, epsilon))


def tails_epsilon(n, p0, p1, delta):
    """Epsilon by root finding on `tails_delta`."""
    largest = max(math.log(p1 / p0), math.log((1.0 - p0) / (1.0 - p1)))
    return brentq(lambda e: tails_delta(n, p0, p1, e) - delta, 0.0, largest, xtol=1e-14)


def loss_distribution(n, p0, p1, *, deviations=None, interval=1e-4):
    """Return the privacy loss distribution of dp-accounting, pessimistic, both orders.

    ``deviations`` cuts the support to so many standard deviations on each side of the mean;
    ``interval`` is that of the losses, and the default the library's own.
    """
    low, high = 0, n
    if deviations is not None:
        reach = math.ceil(deviations * math.sqrt(n * p0 * (1.0 - p0)))
        low, high = max(0, math.floor(n * p0) - reach), min(n, math.ceil(n * p0) + reach)
    x = np.arange(low, high + 1)
    below, at = binom.logpmf(x - 1, n - 1, p0), binom.logpmf(x, n - 1, p0)
    p = np.logaddexp(math.log(p1) + below, math.log1p(-p1) + at)
    q = np.logaddexp(math.log(p0) + below, math.log1p(-p0) + at)
    return privacy_loss_distribution.from_two_probability_mass_functions(
        dict(zip(x.tolist(), q.tolist(), strict=True)),
        dict(zip(x.tolist(), p.tolist(), strict=True)),
        pessimistic_estimate=True,
        value_discretization_interval=interval,
        symmetric=False,
    )
