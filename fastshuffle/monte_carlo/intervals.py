"""Confidence intervals that hold for every sample size.

*Means of bounded terms.* Let Y_1, ..., Y_n be independent, of one law with mean m, and r > 0 a
constant. If they are never negative and r m <= 1, the wealth of a bet against m that gains where
the terms are large,

    prod (1 + r (Y_i - m)),

is never negative and has the mean 1. By Markov's inequality it exceeds 1 / alpha with probability
at most alpha, and so it does U / alpha with U uniform and independent [1]_. It decreases in m, so
that the means that are refused lie below the others, and leave a confidence bound from below. For
terms in [0, 1] and r < 1 the bet ``prod (1 + r (m - Y_i))`` leaves one from above.

The sums of the terms and of their squares are all that is kept, and of all samples with these sums
the wealth is least where the terms take two values only. For ``log(1 + r (y - m))`` has a positive
third derivative in y, and so is at least the quadratic polynomial that meets it at 0 and touches it
at t, for every y >= 0; with ``t = sum Y**2 / sum Y`` the sum of the polynomial over the sample is
that over n - k terms at 0 and k at t, ``k = (sum Y)**2 / sum Y**2``. In the same way
``log(1 + r (m - y))``, whose third derivative is negative, is least for terms at 1 and at some
other value. Any r is valid; near ``sqrt(2 log(1 / alpha) / n) / deviation`` the interval is about
as wide as that of Bernstein's inequality with the true variance.

*Probabilities.* The interval of Clopper and Pearson from exact binomial tails.

References
----------
.. [1] A. Ramdas, T. Manole, "Randomized and exchangeable improvements of Markov's, Chebyshev's and
   Chernoff's inequalities", arXiv:2304.02611.
"""

import math
from collections.abc import Callable

import numpy as np

from fastshuffle._kernels.binomial_groups import log_lower_tail, log_upper_tail
from fastshuffle._typing import FloatArray

_BISECTIONS = 100
# Where chance sets the wealth that refuses a mean below this logarithm, this one is used: an
# interval never shrinks to its estimate.
_LEAST_WEALTH = 1.0
# Bets on terms smaller than expected: how soon they stay below 1, and the largest.
_CAUTION = 0.7
_LARGEST_BET = 0.9


def _reach(n: int, shares: FloatArray) -> FloatArray:
    # U takes one from the log of 1 / alpha on average
    return np.sqrt(2.0 * np.maximum(-np.log(shares) - 1.0, 1.0) / n)


def bets_on_more(
    n: int, means: FloatArray, deviations: FloatArray, shares: FloatArray
) -> FloatArray:
    """Return the constants r of lower bounds wrong with probability at most ``shares``.

    The means and deviations are roughly those of a term; no bet on such a mean loses more than
    half of the wealth.
    """
    reach = _reach(n, shares)
    return reach / (2.0 * reach * means + deviations)


def bets_on_less(n: int, deviations: FloatArray, shares: FloatArray) -> FloatArray:
    """Return the constants r of upper bounds, below 1."""
    reach = _reach(n, shares)
    return np.minimum(reach / (_CAUTION * reach + deviations), _LARGEST_BET)


def least_wealth(shares: FloatArray, uniform: float) -> FloatArray:
    """Return the log of the wealth that refuses a mean with probability at most ``shares``."""
    return np.maximum(math.log(uniform) - np.log(shares), _LEAST_WEALTH)


def lower_mean(
    n: int, terms: FloatArray, squares: FloatArray, bets: FloatArray, log_wealth: FloatArray
) -> FloatArray:
    """Return lower bounds on means from the sums of n terms >= 0 and of their squares."""
    some = squares > 0.0
    value = np.where(some, squares, 0.0) / np.where(some, terms, 1.0)
    share = np.minimum(terms / n / np.where(some, value, 1.0), 1.0)

    def least(mean: FloatArray) -> FloatArray:
        # nothing is left of a bet of all that is lost
        with np.errstate(divide="ignore", invalid="ignore"):
            low, high = np.log1p(-bets * mean), np.log1p(bets * (value - mean))
            return n * ((1.0 - share) * low + share * high)

    return _nearest_refused(least, log_wealth, 0.0, np.minimum(terms / n, 1.0 / bets))


def upper_mean(
    n: int, terms: FloatArray, squares: FloatArray, bets: FloatArray, log_wealth: FloatArray
) -> FloatArray:
    """Return upper bounds on means from the sums of n terms in [0, 1] and of their squares."""
    mean = np.minimum(terms / n, 1.0)
    spread = np.maximum(mean - squares / n, 0.0)  # of Y (1 - Y)
    gap = 1.0 - mean  # of 1 - Y, whose square has the mean gap - spread
    some = gap > spread
    value = np.where(some, spread / np.where(some, gap, 1.0), 1.0)
    share = np.where(some, np.minimum(gap * gap / np.where(some, gap - spread, 1.0), 1.0), 0.0)

    def least(mean: FloatArray) -> FloatArray:
        low, high = np.log1p(bets * (mean - value)), np.log1p(bets * (mean - 1.0))
        return n * (share * low + (1.0 - share) * high)

    return _nearest_refused(least, log_wealth, 1.0, mean)


def _nearest_refused(
    least: Callable[[FloatArray], FloatArray], log_wealth: FloatArray, end: float, kept: FloatArray
) -> FloatArray:
    """Return the refused means nearest to those kept, or the trivial bound ``end``, by bisection.

    ``least`` is a bound from below on the log of the wealth against a mean.
    """
    refused = np.full(len(kept), end)
    for _ in range(_BISECTIONS):
        middle = 0.5 * (refused + kept)
        is_refused = least(middle) >= log_wealth
        refused, kept = np.where(is_refused, middle, refused), np.where(is_refused, kept, middle)
    return refused


def probability_bounds(successes: int, trials: int, alpha: float) -> tuple[float, float]:
    """Return Clopper-Pearson bounds on a probability, each wrong with probability at most alpha."""
    log_alpha = math.log(alpha)

    def smallest(count: float, *, upper_tail: bool) -> float:
        # the p whose tail from the count on is alpha, by bisection on its log-odds
        low, high = -745.0, 745.0
        for _ in range(_BISECTIONS):
            odds = 0.5 * (low + high)
            log_p, log_q = (-float(np.logaddexp(0.0, sign * odds)) for sign in (-1.0, 1.0))
            group = np.array([[trials, math.exp(log_p), math.exp(log_q), log_p, log_q]])
            tail = log_upper_tail(count, group) if upper_tail else log_lower_tail(count, group)
            if (tail < log_alpha) == upper_tail:
                low = odds
            else:
                high = odds
        odds = low if upper_tail else high
        return 1.0 / (1.0 + math.exp(-odds))

    lower = 0.0 if successes == 0 else smallest(float(successes), upper_tail=True)
    upper = 1.0 if successes == trials else smallest(float(successes), upper_tail=False)
    return lower, upper
