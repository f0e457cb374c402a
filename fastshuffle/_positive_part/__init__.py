"""Certified bounds on E[(sum of independent variables)_+], at any number of terms.

The hockey-stick divergence of a homogeneous background, the privacy blanket and the clone
reductions are all such means, of variables with finitely many values. Sums of few values are
enumerated by their counts (`nested`), the others are rounded to a grid from both sides (`lattice`);
both after an exponential tilt, so that a mean of 1e-200 is as right as one of 0.1.
"""

import math
from collections.abc import Callable

from fastshuffle._positive_part.lattice import refined_on_grid
from fastshuffle._positive_part.nested import log_nested
from fastshuffle._positive_part.terms import (
    Bracket,
    Terms,
    largest_sum,
    least_tilt,
    log_smallest_exponential_bound,
    log_sum_of_positive_parts,
    mean_exceeds_deviation,
    mean_of_sum,
    tilt_to_zero,
)

__all__ = ["Bracket", "Terms", "log_mean_positive_part", "log_smallest_exponential_bound"]

# Rounding of a sum of positive numbers.
_SUM_ROUNDING = 1e-12
# Terms added up by nested sums: some milliseconds of work, and some tenths of a second.
_QUICK, _LONG = 1e6, 3e7


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
        bracket = Bracket(
            log_sum_of_positive_parts(low) - _SUM_ROUNDING,
            log_sum_of_positive_parts(high) + _SUM_ROUNDING,
        )
    elif mean_exceeds_deviation(low):
        bracket = _from_the_mean(low, high, rtol)
    else:
        bracket = _centred(low, high, rtol)
    if not bracket.lower <= bracket.upper:
        raise ArithmeticError(f"the bracket of a positive part came out as {bracket!r}")
    return bracket


def _from_the_mean(low: list[Terms], high: list[Terms], rtol: float) -> Bracket:
    """Bracket E[S_+] as ``E[S] + E[(-S)_+]``, two parts >= 0, where S is mostly positive."""
    low_negated, high_negated = ([t.negated() for t in terms] for terms in (low, high))
    lower = _centred(low_negated, low_negated, rtol).lower
    upper = _centred(high_negated, high_negated, rtol).upper
    return Bracket(
        math.log(mean_of_sum(low, -1.0) + math.exp(lower)) - _SUM_ROUNDING,
        math.log(mean_of_sum(high, 1.0) + math.exp(upper)) + _SUM_ROUNDING,
    )


def _centred(low: list[Terms], high: list[Terms], rtol: float) -> Bracket:
    """Bracket E[S_+] after a tilt that centres S near 0."""
    if largest_sum(high) <= 0.0:
        return Bracket(-math.inf, -math.inf)
    s = tilt_to_zero(high)
    # where one rare value far beyond the rest decides, nearly no tilt is better than one that
    # makes it frequent
    methods: tuple[Callable[[], Bracket], ...] = (
        lambda: _nested(low, high, s, _QUICK),
        lambda: refined_on_grid(low, high, s, rtol),
        lambda: _nested(low, high, s, _LONG),
        lambda: _nested(low, high, least_tilt(high), _LONG),
        lambda: Bracket(-math.inf, log_sum_of_positive_parts(high) + _SUM_ROUNDING),
        lambda: Bracket(-math.inf, log_smallest_exponential_bound(high)),
    )
    bracket = Bracket(-math.inf, math.inf)
    for method in methods:
        new = method()
        bracket = Bracket(max(bracket.lower, new.lower), min(bracket.upper, new.upper))
        if bracket.upper - bracket.lower <= rtol or bracket.upper == -math.inf:
            break
        if method is methods[0] and new.upper - log_nested(high, s, -1.0, _QUICK) <= 0.5 * rtol:
            break  # both ends are sharp, and what lies between is that low and high differ
    return bracket


def _nested(low: list[Terms], high: list[Terms], s: float, most_work: float) -> Bracket:
    """Bracket by nested sums, or by nothing where they are too long."""
    lower, upper = log_nested(low, s, -1.0, most_work), log_nested(high, s, 1.0, most_work)
    if math.isnan(lower) or math.isnan(upper):
        return Bracket(-math.inf, math.inf)
    return Bracket(lower, upper)
