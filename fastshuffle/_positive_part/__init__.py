"""Certified bounds on E[(sum of independent variables)_+], at any number of terms.

The hockey-stick divergence of a homogeneous background, the privacy blanket and the clone
reductions are all such means, of variables with finitely many values. Sums of few values are
enumerated by their counts (`nested`), the others are rounded to a grid from both sides (`lattice`);
both after an exponential tilt, so that a mean of 1e-200 is as right as one of 0.1.
"""

import math

from fastshuffle._positive_part.lattice import refined_on_grid
from fastshuffle._positive_part.nested import log_nested
from fastshuffle._positive_part.terms import (
    Bracket,
    Terms,
    largest_sum,
    log_smallest_exponential_bound,
    log_sum_of_positive_parts,
    tilt_to_zero,
)

__all__ = ["Bracket", "Terms", "log_mean_positive_part", "log_smallest_exponential_bound"]

# Rounding of a sum of positive numbers.
_SUM_ROUNDING = 1e-12


def log_mean_positive_part(low: list[Terms], high: list[Terms], rtol: float) -> Bracket:
    """Bracket log E[S_+] of a sum known to lie between two others.

    Parameters
    ----------
    low, high : list of Terms
        Independent terms, all copies of which are summed. E[S_+] is at least that of the sum of
        ``low`` and at most that of ``high``, which differ by the rounding of their values or by a
        discretisation. Values are at most 1e150 in size; the probabilities of a term sum to 1;
        counts are positive integers.
    rtol : float
        The bracket is refined until it is at most this wide, or until the refinement no longer
        helps; it is valid in either case.

    Returns
    -------
    Bracket
        ``(-inf, -inf)`` where the sum of ``high`` is never positive.
    """
    low, high = ([t.merged() for t in terms] for terms in (low, high))
    if largest_sum(high) <= 0.0:
        return Bracket(-math.inf, -math.inf)
    if sum(t.copies for t in high) == 1.0:
        return Bracket(
            log_sum_of_positive_parts(low) - _SUM_ROUNDING,
            log_sum_of_positive_parts(high) + _SUM_ROUNDING,
        )
    s = tilt_to_zero(high)
    bracket = Bracket(log_nested(low, s, -1.0), log_nested(high, s, 1.0))
    if math.isnan(bracket.lower) or math.isnan(bracket.upper):
        bracket = refined_on_grid(low, high, s, rtol)
        if not bracket.upper - bracket.lower <= rtol:
            apart = log_sum_of_positive_parts(high) + _SUM_ROUNDING
            chernoff = log_smallest_exponential_bound(high)
            bracket = Bracket(bracket.lower, min(bracket.upper, apart, chernoff))
    if not bracket.lower <= bracket.upper:
        raise ArithmeticError(f"the bracket of a positive part came out as {bracket!r}")
    return bracket
