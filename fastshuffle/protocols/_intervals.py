"""Confidence intervals of estimates from shuffled messages of users whose values are fixed.

*Counts.* How many of n users send a message of some kind is a sum of independent bits with
different chances, of mean p. On either side of n p and at least one away from it such a sum is no
more likely than a binomial number of n trials with chance p [1]_, so the bounds of Clopper and
Pearson hold for p as they stand, but for a single message of the kind, or all but one: there a
binomial number may be the less likely, by up to a square of the error, and the union bound
``P(S >= 1) <= n p`` takes its place (``tests/test_protocols_mean.py``, all chances on a grid).

*Otherwise* the normal quantile and an estimated variance, which holds in the limit of many users.

References
----------
.. [1] W. Hoeffding, "On the Distribution of the Number of Successes in Independent Trials", Annals
   of Mathematical Statistics 27, 1956.
"""

from statistics import NormalDist
from typing import Any

import numpy as np

from fastshuffle._typing import FloatArray, IntArray
from fastshuffle._validation import Interval, check_real
from fastshuffle.monte_carlo.intervals import probability_bounds

EXACT = "Clopper-Pearson: holds at every number of users, whatever they hold"
NORMAL = "normal: holds in the limit of many users"

_CONFIDENCE = Interval(0.5, 1.0 - 1e-9, "in [0.5, 1 - 1e-9]")


def check_confidence(confidence: Any) -> float:
    """Return the probability with which an interval has to hold."""
    return check_real("confidence", confidence, _CONFIDENCE)


def share_bounds(count: int, n: int, error: float) -> tuple[float, float]:
    """Return bounds on the mean chance of n users to be counted, each wrong with chance error."""
    lower, upper = probability_bounds(count, n, error)
    if count == 1:
        lower = min(lower, error / n)
    if count == n - 1:
        upper = max(upper, 1.0 - error / n)
    return lower, upper


def shares_bounds(counts: IntArray, n: int, error: float) -> tuple[FloatArray, FloatArray]:
    """Return `share_bounds` of each count."""
    different, place = np.unique(counts, return_inverse=True)
    bounds = np.array([share_bounds(count, n, error) for count in different.tolist()])
    return bounds[place, 0], bounds[place, 1]


def normal_quantile(error: float) -> float:
    """Return how many standard deviations a normal number exceeds with chance ``error``."""
    return -NormalDist().inv_cdf(error)
