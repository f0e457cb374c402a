"""The smallest Gaussian curve above a privacy profile."""

import math
from typing import Any

import numpy as np

from fastshuffle._typing import FloatArray
from fastshuffle._validation import (
    RELATIVE_TOLERANCE,
    UnsupportedSettingError,
    check_real,
)
from fastshuffle.limits._normal import log_density, log_gaussian_delta, mills_ratio
from fastshuffle.profile import PrivacyProfile

__all__ = ["gdp_mu"]

# Rounding of an exact log delta and of the Gaussian one: absolute, and per unit of both.
_ROUNDING, _ROUNDING_PER_UNIT = 2e-12, 2e-14
_MOST_POINTS = 2_000_000
_EDGES_AT_FIRST = 200


def gdp_mu(profile: PrivacyProfile, *, rtol: float = 1e-4) -> float:
    """Return the smallest mu whose Gaussian curve dominates a profile: a proved mu-GDP parameter.

    Parameters
    ----------
    profile : PrivacyProfile
        A profile whose largest privacy loss is finite, or that has an infinite loss with positive
        probability.
    rtol : float, default 1e-4
        How far the returned number may lie above the smallest one, relatively; from 1e-9 to 0.5.

    Returns
    -------
    float
        A mu such that delta(epsilon) of N(mu, 1) against N(0, 1) is at least that of the profile
        at every epsilon >= 0 in both directions, which is mu-GDP; at most a factor 1 + rtol above
        the smallest such mu. It is 0 for identical laws, and inf if a loss is infinite with
        positive probability. It is a guarantee if the profile is one.

    Raises
    ------
    TypeError
        If ``profile`` is no PrivacyProfile.
    ValueError
        If rtol is outside its domain, or the losses are unbounded though finite: no finite search
        covers them.
    RuntimeError
        If 2,000,000 epsilons do not suffice.

    Notes
    -----
    At each epsilon one mu meets the profile's delta; the answer is the largest of them, up to the
    largest loss, where a delta of 1e-1000 counts as much as any. Between two epsilons a mu
    dominates, and so does every larger one, if its curve at the right end is above the profile at
    the left, since both decrease; or if its tangent at the middle is above the profile's chord at
    both ends, since both are convex in exp(epsilon). The first serves the tail, the second the
    bulk. Intervals that fail both are cut. The logarithms are compared, with the stated rounding
    of the exact curve added to it.

    **Cost**: hundreds to thousands of deltas, for an exact profile 10 to 100 milliseconds. A
    smaller rtol costs in inverse proportion where mu hardly depends on epsilon: for 1e9 users, half
    of them at either input, rtol = 1e-6 takes 200,000 deltas.

    References
    ----------
    .. [1] J. Dong, A. Roth, W. Su, "Gaussian Differential Privacy", arXiv:1905.02383, for the
       equivalence of the trade-off function and both privacy profiles.

    Examples
    --------
    >>> import fastshuffle as fs
    >>> experiment = fs.ShuffleExperiment(fs.binary_randomized_response(4.0), n=10_000, k=0)
    >>> mu = fs.gdp_mu(fs.exact_profile(experiment))
    >>> print(f"{mu:.4f}, the limit has {fs.gaussian_profile(experiment).mu:.4f}")
    0.2105, the limit has 0.0725
    """
    if not isinstance(profile, PrivacyProfile):
        raise TypeError(f"profile must be a PrivacyProfile, got {type(profile).__name__}")
    tolerance = check_real("rtol", rtol, RELATIVE_TOLERANCE)
    total = float(profile.delta(0.0))
    if total == 0.0:
        return 0.0
    if profile.log_delta(math.inf) > -math.inf:
        return math.inf
    loss = float(profile.epsilon(0.0))
    if loss == math.inf:
        raise UnsupportedSettingError(
            "profile must have a finite largest loss, got losses without a bound"
        )

    edges = np.append(0.0, np.geomspace(min(0.01 * total, 0.5 * loss), loss, _EDGES_AT_FIRST))
    edges[-1] = loss
    values = _raised(profile, edges)
    mu = _largest(edges, values, 0.0)
    n_points = len(edges)
    low, high = np.array([edges[:-1], values[:-1]]), np.array([edges[1:], values[1:]])
    while True:
        fails = ~_dominated(low, high, mu * (1.0 + tolerance))
        low, high = low[:, fails], high[:, fails]
        if not fails.any():
            return mu * (1.0 + tolerance)
        middle = 0.5 * (low[0] + high[0])
        n_points += len(middle)
        if n_points > _MOST_POINTS:
            raise RuntimeError(f"{_MOST_POINTS} epsilons do not prove mu to a relative {tolerance}")
        between = np.array([middle, _raised(profile, middle)])
        mu = _largest(middle, between[1], mu)
        low, high = np.hstack((low, between)), np.hstack((between, high))


def _raised(profile: PrivacyProfile, epsilons: FloatArray) -> FloatArray:
    """Return the profile's log delta with its rounding, and that of the Gaussian curve, added."""
    values: Any = profile.log_delta(epsilons)
    units = np.where(np.isfinite(values), np.abs(values), 0.0) + epsilons
    return values + (_ROUNDING + _ROUNDING_PER_UNIT * units)


def _largest(epsilons: FloatArray, log_deltas: FloatArray, low: float) -> float:
    """Return the largest mu, to 1e-13, whose Gaussian curve meets a log delta, at least low."""

    def above(mu: float) -> Any:
        return log_gaussian_delta(epsilons, np.full_like(epsilons, mu)) < log_deltas

    kept = log_deltas > -math.inf if low == 0.0 else above(low)
    epsilons, log_deltas = epsilons[kept], log_deltas[kept]
    if len(epsilons) == 0:
        return low
    # one mu for all: doubled, then halved in, as long as some point lies above its curve
    high = 2.0 * low if low > 0.0 else 1.0
    while above(high).any():
        low, high = high, 2.0 * high
    while high - low > 1e-13 * high:
        middle = 0.5 * (low + high) if low > 0.0 else 0.125 * high
        kept = above(middle)
        if kept.any():
            # a point that this mu meets is met by all larger ones
            low, epsilons, log_deltas = middle, epsilons[kept], log_deltas[kept]
        else:
            high = middle
    return high


def _dominated(low: FloatArray, high: FloatArray, mu: float) -> Any:
    """Return on which intervals N(mu, 1) is proved to dominate the profile.

    ``low`` and ``high`` hold the epsilons and the log deltas of the ends. In units of phi(a) at the
    middle the tangent is ``J - M(b) expm1(epsilon - middle)``, J the curve and M Mills' ratio.
    """
    holds = log_gaussian_delta(high[0], np.full_like(high[0], mu)) >= low[1]
    low, high = low[:, ~holds], high[:, ~holds]
    middle = 0.5 * (low[0] + high[0])
    a = middle / mu - 0.5 * mu
    log_unit = log_density(a)
    curve = np.exp(log_gaussian_delta(middle, np.full_like(middle, mu)) - log_unit)
    slope = mills_ratio(a + mu)
    above = np.ones(len(middle), dtype=bool)
    for epsilon, log_delta in (low, high):
        tangent = curve - slope * np.expm1(epsilon - middle)
        # also where the profile is 0: the tangent is no lower bound of use once it is negative
        above &= tangent >= 0.0
        with np.errstate(divide="ignore"):
            above &= np.log(np.maximum(tangent, 0.0)) + log_unit >= log_delta
    holds[~holds] = above
    return holds
