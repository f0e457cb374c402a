"""Deviances, Stirling's remainder and the binomial mass, without cancellation (Loader 2000).

References
----------
.. [1] C. Loader, "Fast and Accurate Computation of Binomial Probabilities", 2000.
"""

import math

import numpy as np

from fastshuffle._kernels._jit import kernel
from fastshuffle._kernels.error_free import two_product

_HALF_LOG_TWO_PI = 0.9189385332046727418

# log(n!) - (log(2 pi n)/2 + n log n - n) for n = 0..15 (n = 0 is the limit used by the mass,
# where the term drops out); printed by mpmath.loggamma at 40 digits.
_STIRLING_ERRORS = np.array(
    [
        0.0,
        0.08106146679532725822,
        0.04134069595540929409,
        0.02767792568499833915,
        0.02079067210376509312,
        0.01664469118982119216,
        0.01387612882307074800,
        0.01189670994589177009,
        0.01041126526197209650,
        0.009255462182712732918,
        0.008330563433362871256,
        0.007573675487951840795,
        0.006942840107209529866,
        0.006408994188004207068,
        0.005951370112758847736,
        0.005554733551962801371,
    ]
)


@kernel("(float64,)")
def deviance(u):
    """Return ``(1 + u) log(1 + u) - u``, the unit deviance, for u >= -1.

    Non-negative and about u**2 / 2. With v = u / (2 + u) it equals
    ``u v + 2 (1 + u) (v**3/3 + v**5/5 + ...)``, which does not cancel.
    """
    if u <= -1.0:
        return 1.0
    v = u / (2.0 + u)
    if abs(v) > 0.3:
        return (1.0 + u) * math.log1p(u) - u
    square = v * v
    power = v * square
    total = power / 3.0
    for order in range(5, 60, 2):
        power *= square
        grown = total + power / order
        if grown == total:
            break
        total = grown
    return u * v + 2.0 * (1.0 + u) * total


@kernel("(float64,)")
def exponential_excess(y):
    """Return ``exp(y) - 1 - y``, non-negative and about y**2 / 2."""
    if abs(y) > 0.5:
        return math.expm1(y) - y
    term = 0.5 * y * y
    total = term
    for order in range(3, 20):
        term *= y / order
        total += term
    return total


@kernel("(float64,)")
def stirling_error(n):
    """Return ``log(n!) - (log(2 pi n)/2 + n log n - n)`` for an integer n >= 0."""
    if n <= 15.0:
        return _STIRLING_ERRORS[int(n)]
    inverse_square = 1.0 / (n * n)
    series = 1.0 / 1188.0 - inverse_square * (691.0 / 360360.0 - inverse_square / 156.0)
    series = 1.0 / 1260.0 - inverse_square * (1.0 / 1680.0 - inverse_square * series)
    return (1.0 / 12.0 - inverse_square * (1.0 / 360.0 - inverse_square * series)) / n


@kernel("(float64, float64[::1])")
def log_binomial_mass(x, group):
    """Return the log of Pr[Bin(n, p) = x] for a group ``(n, p, q, log p, log q)``, 0 <= x <= n.

    The larger of p and q is the complement of the smaller, so the deviance of the count whose
    probability is smaller carries the information; the other is taken from the same error-free
    product.
    """
    n, p, q, log_p, log_q = group[0], group[1], group[2], group[3], group[4]
    if x == 0.0:
        return n * log_q
    if x == n:
        return n * log_p
    if p > q:
        x, p, q, log_p = n - x, q, p, log_q
    mean, mean_error = two_product(n, p)
    excess = (x - mean) - mean_error
    if x > 4.0 * mean:  # also where p underflows and only its logarithm is known
        ones = x * (math.log(x / n) - log_p) - excess
    else:
        ones = mean * deviance(excess / mean)
    zeros_mean = n - mean
    zeros = zeros_mean * deviance(-excess / zeros_mean)
    correction = stirling_error(n) - stirling_error(x) - stirling_error(n - x)
    return correction - ones - zeros - _HALF_LOG_TWO_PI - 0.5 * (math.log(x) + math.log1p(-x / n))
