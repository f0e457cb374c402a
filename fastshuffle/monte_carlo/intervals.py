"""Confidence intervals that hold for every sample size.

*Means of bounded terms.* Let Y_1, ..., Y_n be independent, of one law on [0, 1] with mean m, and
0 < r < 1 a constant. Since ``log(1 + x) >= x + (log(1 - r) + r) (x / r)**2`` for x >= -r, the
number

    exp(r sum (Y_i - m) - psi sum (Y_i - m)**2),    psi = -log(1 - r) - r,

is at most ``prod (1 + r (Y_i - m))``, the wealth of a bet against m, whose mean is 1. By Markov's
inequality it exceeds 1 / alpha with probability at most alpha, and so it does U / alpha with U
uniform and independent [1]_. Means that are refused so, and all below one of them, since the
wealth decreases in m, leave a confidence bound from below; the terms 1 - Y give the one from above.
The sums of terms and of squares are all that enters. With r near
``sqrt(2 log(1 / alpha) / n) / deviation`` the interval is as wide as that of Bernstein's inequality
with the true variance; any r is valid.

*Probabilities.* The interval of Clopper and Pearson from exact binomial tails.

References
----------
.. [1] A. Ramdas, T. Manole, "Randomized and exchangeable improvements of Markov's, Chebyshev's and
   Chernoff's inequalities", arXiv:2304.02611.
"""

import math

import numpy as np

from fastshuffle._kernels.binomial_groups import log_lower_tail, log_upper_tail
from fastshuffle._typing import FloatArray

_BISECTIONS = 100
_LARGEST_BET = 0.9


def bet_sizes(n: int, deviations: FloatArray, alpha: float) -> FloatArray:
    """Return the constants r for deviations that are roughly known."""
    reach = math.sqrt(2.0 * math.log(1.0 / alpha) / n)
    return np.minimum(reach / (reach + deviations), _LARGEST_BET)


def mean_bounds(
    n: int, terms: FloatArray, squares: FloatArray, bets: FloatArray, log_wealth: float
) -> tuple[FloatArray, FloatArray]:
    """Return bounds on means in [0, 1] from the sums of n terms and of their squares.

    A mean is refused where the log of the wealth against it is above ``log_wealth`` >= 0, which is
    ``log(U / alpha)`` or ``log(1 / alpha)`` for an error of at most alpha at either end.
    """
    # without cancellation where the bet is small
    series = bets * bets * (0.5 + bets * (1.0 / 3.0 + 0.25 * bets))
    psi = np.where(bets < 1e-4, series, -np.log1p(-bets) - bets)
    a = psi * n

    def roots(sign: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        # the log of the wealth of a bet of this sign is log_wealth - (a m**2 - 2 b m + c)
        b = psi * terms - sign * 0.5 * bets * n
        c = psi * squares - sign * bets * terms + log_wealth
        return b, c, b * b - a * c

    b, c, square = roots(1.0)
    root = np.sqrt(np.maximum(square, 0.0))
    larger = np.where(b < 0.0, c / (np.minimum(b, -1e-300) - root), (b + root) / a)
    low = np.where(square > 0.0, larger, 0.0)
    b, c, square = roots(-1.0)
    high = np.where(square > 0.0, c / (b + np.sqrt(np.maximum(square, 0.0))), 1.0)
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


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
