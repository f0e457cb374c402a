"""Divergences at any n, from sums over every stride-th outcome."""

from __future__ import annotations

from collections.abc import Callable

from mpmath import mp, mpf

from validation.reference.mp.background import Background, enough_digits, first_step
from validation.reference.mp.probabilities import (
    Bernoulli,
    Direction,
    Groups,
    Number,
    Probability,
    exact_number,
    over_directions,
)
from validation.reference.mp.searches import first
from validation.reference.mp.terms import (
    Term,
    chi_square_term,
    jensen_shannon_term,
    kl_term,
    renyi_term,
)

_NARROW = 40  # standard deviations up to this are summed without a stride


def kl_large(
    groups: Groups,
    p_a: Probability,
    p_b: Probability,
    direction: Direction = "forward",
    digits: int = 60,
) -> mpf:
    """Kullback-Leibler divergence at any n, by a strided sum."""
    return _strided_sum(kl_term, groups, p_a, p_b, direction, digits)


def chi_square_large(
    groups: Groups,
    p_a: Probability,
    p_b: Probability,
    direction: Direction = "forward",
    digits: int = 60,
) -> mpf:
    """Chi-square divergence at any n, by a strided sum."""
    return _strided_sum(chi_square_term, groups, p_a, p_b, direction, digits)


def jensen_shannon_large(
    groups: Groups, p_a: Probability, p_b: Probability, digits: int = 60
) -> mpf:
    """Jensen-Shannon divergence at any n, by a strided sum, in natural logarithms."""
    return _strided_sum(jensen_shannon_term, groups, p_a, p_b, "forward", digits)


def renyi_large(
    groups: Groups,
    p_a: Probability,
    p_b: Probability,
    order: Number,
    direction: Direction = "forward",
    digits: int = 60,
) -> mpf:
    """Renyi divergence of finite positive order at any n, by a strided sum; order 1 is `kl`."""
    if order == 1:
        return kl_large(groups, p_a, p_b, direction, digits)
    if direction == "both":
        return max(
            renyi_large(groups, p_a, p_b, order, "forward", digits),
            renyi_large(groups, p_a, p_b, order, "reverse", digits),
        )
    with enough_digits(groups, digits):
        a = exact_number(order)
        # The logarithm of a moment near 1 is of size 1/n: ask the sum for that many more.
        more = digits + len(str(sum(count for count, _ in groups) + 1))
        term = renyi_term(a)
        moment = _strided_sum(term, groups, p_a, p_b, direction, more, peaked=True)
        return mp.log(moment) / (a - 1)


def _strided_sum(
    term: Term,
    groups: Groups,
    p_a: Probability,
    p_b: Probability,
    direction: Direction,
    digits: int,
    *,
    peaked: bool = False,
) -> mpf:
    """Sum `term(P(x), Q(x))` over the support from every stride-th outcome.

    The terms are smooth on the scale of the standard deviation, so with four outcomes or more to
    a deviation the strided sum is spectrally accurate. It runs outwards from the mean until the
    terms no longer matter; a term of high order peaks elsewhere, hence `peaked`.
    """
    with enough_digits(groups, digits):
        background = Background.of(groups)

        def value(a: Bernoulli, b: Bernoulli) -> mpf:
            def at(x: int) -> mpf:
                below, here = background.mass(x - 1), background.mass(x)
                return term(b.p * below + b.q * here, a.p * below + a.q * here)

            centre = int(background.tilted(mpf(0))[1])
            if peaked:
                past_peak = first(
                    lambda x: at(x) < at(x - 1),
                    background.low,
                    background.high + 2,
                    centre,
                    first_step(background),
                )
                centre = past_peak - 1
            return _outwards(background, at, centre, mpf(10) ** -(digits + 10))

        return over_directions(value, p_a, p_b, direction)


def _outwards(background: Background, at: Callable[[int], mpf], centre: int, tolerance: mpf) -> mpf:
    """Strided sum of `at` over `low .. high + 1`, from the centre until terms are negligible."""
    deviation = mpf(1)
    if background.high - background.low > 1:
        inside = min(max(centre, background.low + 1), background.high - 1)
        deviation = mp.sqrt(background.tilted(background.saddle(inside))[2])
    # In a narrow law the ends of the support may be within reach of the sum.
    stride = 1 if deviation < _NARROW else int(deviation / 4)
    upward = range(centre, background.high + 2, stride)
    downward = range(centre - stride, background.low - 1, -stride)
    total = mpf(0)
    for outcomes in (upward, downward):
        for x in outcomes:
            value = at(x)
            total += value
            if abs(x - centre) > 3 * deviation + 3 and value < tolerance * total:
                break
    return stride * total
