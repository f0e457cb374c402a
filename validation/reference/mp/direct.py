"""Direct sums over the whole support, for `n` up to a few thousand."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import accumulate, starmap

from mpmath import mp, mpf

from validation.reference.mp.probabilities import (
    Bernoulli,
    Direction,
    Groups,
    Law,
    Number,
    Probability,
    bernoulli,
    exact_law,
    exact_number,
    over_directions,
)
from validation.reference.mp.terms import (
    Term,
    chi_square_term,
    jensen_shannon_term,
    kl_term,
    renyi_term,
)


def mass(groups: Groups, x: int, digits: int = 60) -> mpf:
    """Probability that the other users output exactly `x` ones."""
    with _direct(digits):
        masses = _masses(exact_law(groups), mp.prec)
        return masses[x] if 0 <= x < len(masses) else mpf(0)


def upper_tail(groups: Groups, x: int, digits: int = 60) -> mpf:
    """Probability that the other users output `x` ones or more."""
    with _direct(digits):
        return mp.fsum(_masses(exact_law(groups), mp.prec)[max(x, 0) :])


def lower_tail(groups: Groups, x: int, digits: int = 60) -> mpf:
    """Probability that the other users output `x` ones or fewer."""
    with _direct(digits):
        return mp.fsum(_masses(exact_law(groups), mp.prec)[: max(x + 1, 0)])


def delta(
    groups: Groups,
    p_a: Probability,
    p_b: Probability,
    epsilon: Number,
    direction: Direction = "both",
    digits: int = 60,
) -> mpf:
    """Hockey-stick divergence, `sum (P - e^epsilon Q)_+` forward; epsilon may be infinite."""
    with _direct(digits):
        law, ratio = exact_law(groups), mp.exp(exact_number(epsilon))

        def value(a: Bernoulli, b: Bernoulli) -> mpf:
            # An infinite ratio times 0 would be nan: such outcomes count in full.
            return mp.fsum(
                p if q == 0 else max(p - ratio * q, mpf(0)) for p, q in _outcomes(law, a, b)
            )

        return over_directions(value, p_a, p_b, direction)


def log_delta(
    groups: Groups,
    p_a: Probability,
    p_b: Probability,
    epsilon: Number,
    direction: Direction = "both",
    digits: int = 60,
) -> mpf:
    """Natural logarithm of `delta`; an mpf has no smallest exponent, so nothing underflows."""
    with _direct(digits):
        return mp.log(delta(groups, p_a, p_b, epsilon, direction, digits))


def epsilon(
    groups: Groups,
    p_a: Probability,
    p_b: Probability,
    delta: Number,
    direction: Direction = "both",
    digits: int = 60,
) -> mpf:
    """Smallest epsilon >= 0 whose hockey-stick divergence is at most delta; may be infinite.

    delta(epsilon) is the largest of `P(E) - e^epsilon Q(E)` over the sets E of the most likely
    outcomes under P against Q, so the inverse is the largest `log((P(E) - delta) / Q(E))`.
    """
    with _direct(digits):
        law, target = exact_law(groups), exact_number(delta)

        def value(a: Bernoulli, b: Bernoulli) -> mpf:
            exp_epsilon = mpf(1)
            for p_set, q_set in accumulate(_by_likelihood_ratio(law, a, b), _add):
                if p_set > target:
                    candidate = (p_set - target) / q_set if q_set > 0 else mp.inf
                    exp_epsilon = max(exp_epsilon, candidate)
            return mp.log(exp_epsilon)

        return over_directions(value, p_a, p_b, direction)


def trade_off(
    groups: Groups, p_a: Probability, p_b: Probability, alpha: Number, digits: int = 60
) -> mpf:
    """Least type II error at level alpha, null Q (`p_a`) against alternative P (`p_b`)."""
    with _direct(digits):
        level, beta = exact_number(alpha), mpf(1)
        for p, q in _by_likelihood_ratio(exact_law(groups), bernoulli(p_a), bernoulli(p_b)):
            rejected = mpf(1) if q <= level else level / q
            level -= rejected * q
            beta -= rejected * p
        return beta


def total_variation(groups: Groups, p_a: Probability, p_b: Probability, digits: int = 60) -> mpf:
    """Half the sum of absolute differences."""
    with _direct(digits):
        outcomes = _outcomes(exact_law(groups), bernoulli(p_a), bernoulli(p_b))
        return mp.fsum(abs(p - q) for p, q in outcomes) / 2


def kl(
    groups: Groups,
    p_a: Probability,
    p_b: Probability,
    direction: Direction = "forward",
    digits: int = 60,
) -> mpf:
    """Kullback-Leibler divergence, `sum P log(P/Q)` forward."""
    return _sum_of_terms(kl_term, groups, p_a, p_b, direction, digits)


def chi_square(
    groups: Groups,
    p_a: Probability,
    p_b: Probability,
    direction: Direction = "forward",
    digits: int = 60,
) -> mpf:
    """Chi-square divergence, `sum (P - Q)^2 / Q` forward."""
    return _sum_of_terms(chi_square_term, groups, p_a, p_b, direction, digits)


def jensen_shannon(groups: Groups, p_a: Probability, p_b: Probability, digits: int = 60) -> mpf:
    """Jensen-Shannon divergence with weights 1/2, in natural logarithms."""
    return _sum_of_terms(jensen_shannon_term, groups, p_a, p_b, "forward", digits)


def renyi(
    groups: Groups,
    p_a: Probability,
    p_b: Probability,
    order: Number,
    direction: Direction = "forward",
    digits: int = 60,
) -> mpf:
    """Renyi divergence of positive order; order 1 is `kl`, order inf the largest privacy loss."""
    if order == 1:
        return kl(groups, p_a, p_b, direction, digits)
    with _direct(digits):
        law, a = exact_law(groups), exact_number(order)
        if mp.isinf(a):

            def largest_loss(a: Bernoulli, b: Bernoulli) -> mpf:
                p, q = next(_by_likelihood_ratio(law, a, b))
                return mp.log(p / q) if q > 0 else mp.inf

            return over_directions(largest_loss, p_a, p_b, direction)
        if direction == "both":
            return max(
                renyi(groups, p_a, p_b, order, "forward", digits),
                renyi(groups, p_a, p_b, order, "reverse", digits),
            )
        moment = _sum_of_terms(renyi_term(a), groups, p_a, p_b, direction, digits)
        return mp.log(moment) / (a - 1)


@contextmanager
def _direct(digits: int) -> Generator[None, None, None]:
    """Work with guard digits: differences of nearly equal masses lose about `log10(n)`."""
    with mp.workdps(digits + 30):
        yield


@lru_cache(maxsize=16)
def _masses(law: Law, precision: int) -> tuple[mpf, ...]:
    """Mass function of the groups on `0 .. total`, by convolution, at a precision in bits."""
    with mp.workprec(precision):
        masses = [mpf(1)]
        for count, (p, q) in law:
            group, ways = [], 1
            for x in range(count + 1):
                group.append(ways * p**x * q ** (count - x))
                ways = ways * (count - x) // (x + 1)
            masses = _convolve(masses, group)
        return tuple(masses)


def _convolve(left: list[mpf], right: list[mpf]) -> list[mpf]:
    """Law of the sum of two independent counts."""
    total = []
    for z in range(len(left) + len(right) - 1):
        first, last = max(0, z - len(right) + 1), min(z, len(left) - 1)
        total.append(mp.fdot((left[i], right[z - i]) for i in range(first, last + 1)))
    return total


def _outcomes(law: Law, a: Bernoulli, b: Bernoulli) -> list[tuple[mpf, mpf]]:
    """Return `(P(x), Q(x))` for x on `0 .. n`."""
    masses = (mpf(0), *_masses(law, mp.prec), mpf(0))
    return [
        (b.p * masses[x] + b.q * masses[x + 1], a.p * masses[x] + a.q * masses[x + 1])
        for x in range(len(masses) - 1)
    ]


def _by_likelihood_ratio(law: Law, a: Bernoulli, b: Bernoulli) -> Iterator[tuple[mpf, mpf]]:
    """Yield the outcomes P can produce, the largest P/Q first."""
    possible = [(p, q) for p, q in _outcomes(law, a, b) if p > 0]
    # P/(P+Q) orders as P/Q does, and is finite where Q = 0.
    return iter(sorted(possible, key=lambda pair: pair[0] / (pair[0] + pair[1]), reverse=True))


def _add(left: tuple[mpf, mpf], right: tuple[mpf, mpf]) -> tuple[mpf, mpf]:
    """Add two pairs of masses."""
    return left[0] + right[0], left[1] + right[1]


def _sum_of_terms(
    term: Term,
    groups: Groups,
    p_a: Probability,
    p_b: Probability,
    direction: Direction,
    digits: int,
) -> mpf:
    """Sum `term(P(x), Q(x))` over the support."""
    with _direct(digits):
        law = exact_law(groups)
        return over_directions(
            lambda a, b: mp.fsum(starmap(term, _outcomes(law, a, b))), p_a, p_b, direction
        )
