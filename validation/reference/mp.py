"""High-precision references for binary output, straight from the definitions.

The number of ones among the other users is `R = sum of Bin(count, p)` over `groups`; the user who
differs outputs 1 with probability `p_a` under Q and `p_b` under P, so `P = R * Bernoulli(p_b)` and
`Q = R * Bernoulli(p_a)`. Two families of functions share one set of names:

- `delta`, `epsilon`, ...: sums over the whole support, for `n` up to a few thousand;
- `delta_large`, `epsilon_large`, ...: any `n`, at a cost that does not grow with it. They use the
  half-line form of the optimal test and an inversion integral, and absorb all cancellation by
  carrying more digits.

Parameters common to all functions
----------------------------------
groups : sequence of (int, probability)
    The other users: `count` of them output 1 with probability `p`.
p_a, p_b : probability
    The user who differs, under Q and under P.
direction : {"forward", "reverse", "both"}
    Divergence of P from Q, of Q from P, or the larger of the two.
digits : int
    Decimal digits wanted in the result. Results carry guard digits beyond them.

A probability is an int, float, Fraction or mpf, taken as that exact number, or `Complement(q)`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, starmap
from typing import Literal, NamedTuple, TypeAlias

from mpmath import mp, mpf

Number: TypeAlias = int | float | Fraction | mpf
Direction: TypeAlias = Literal["forward", "reverse", "both"]


class Complement(NamedTuple):
    """The probability `1 - q`, for a `q` so small that `1 - q` would round.

    Attributes
    ----------
    q : int, float, Fraction or mpf
        Probability of the output 0.
    """

    q: Number


Probability: TypeAlias = Number | Complement
Groups: TypeAlias = Sequence[tuple[int, Probability]]


class _Bernoulli(NamedTuple):
    """A probability and its complement, each to full relative precision."""

    p: mpf
    q: mpf


_Law: TypeAlias = tuple[tuple[int, _Bernoulli], ...]
_Term: TypeAlias = Callable[[mpf, mpf], mpf]

_NARROW = 40  # standard deviations up to this are summed without a stride


# ---- Shared: numbers, directions and the terms of the divergences ---------------------------


def _number(value: Number) -> mpf:
    """Return the number as an mpf at the working precision."""
    if isinstance(value, Fraction):
        return mpf(value.numerator) / value.denominator
    return mpf(value)


def _bernoulli(value: Probability) -> _Bernoulli:
    """Split a probability into itself and its complement."""
    if isinstance(value, Complement):
        q = _number(value.q)
        return _Bernoulli(1 - q, q)
    p = _number(value)
    return _Bernoulli(p, 1 - p)


def _law(groups: Groups) -> _Law:
    """Return the groups as exact numbers, hashable."""
    return tuple((int(count), _bernoulli(p)) for count, p in groups)


def _over_directions(
    value: Callable[[_Bernoulli, _Bernoulli], mpf],
    p_a: Probability,
    p_b: Probability,
    direction: Direction,
) -> mpf:
    """Evaluate `value(a, b)`, a divergence of b from a, in the directions asked for."""
    a, b = _bernoulli(p_a), _bernoulli(p_b)
    if direction == "both":
        return max(value(a, b), value(b, a))
    return value(a, b) if direction == "forward" else value(b, a)


def _kl_term(p: mpf, q: mpf) -> mpf:
    """Term of the Kullback-Leibler divergence, with `q - p` added so that no term is negative."""
    if p == 0:
        return q
    return mp.inf if q == 0 else p * mp.log(p / q) - p + q


def _chi_square_term(p: mpf, q: mpf) -> mpf:
    """Term of the chi-square divergence."""
    if q == 0:
        return mp.inf if p > 0 else mpf(0)
    return (p - q) ** 2 / q


def _jensen_shannon_term(p: mpf, q: mpf) -> mpf:
    """Term of the Jensen-Shannon divergence."""
    middle = (p + q) / 2
    return (_kl_term(p, middle) + _kl_term(q, middle)) / 2 if middle > 0 else mpf(0)


def _renyi_term(order: mpf) -> _Term:
    """Term of `sum P^order Q^(1 - order)`."""

    def term(p: mpf, q: mpf) -> mpf:
        if p == 0:
            return mpf(0)
        if q == 0:
            return mp.inf if order > 1 else mpf(0)
        return q * mp.exp(order * mp.log(p / q))

    return term


# ---- Direct sums over the support ------------------------------------------------------------


def mass(groups: Groups, x: int, digits: int = 60) -> mpf:
    """Probability that the other users output exactly `x` ones."""
    with _direct(digits):
        masses = _masses(_law(groups), mp.prec)
        return masses[x] if 0 <= x < len(masses) else mpf(0)


def upper_tail(groups: Groups, x: int, digits: int = 60) -> mpf:
    """Probability that the other users output `x` ones or more."""
    with _direct(digits):
        return mp.fsum(_masses(_law(groups), mp.prec)[max(x, 0) :])


def lower_tail(groups: Groups, x: int, digits: int = 60) -> mpf:
    """Probability that the other users output `x` ones or fewer."""
    with _direct(digits):
        return mp.fsum(_masses(_law(groups), mp.prec)[: max(x + 1, 0)])


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
        law, ratio = _law(groups), mp.exp(_number(epsilon))

        def value(a: _Bernoulli, b: _Bernoulli) -> mpf:
            # An infinite ratio times 0 would be nan: such outcomes count in full.
            return mp.fsum(
                p if q == 0 else max(p - ratio * q, mpf(0)) for p, q in _outcomes(law, a, b)
            )

        return _over_directions(value, p_a, p_b, direction)


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
        law, target = _law(groups), _number(delta)

        def value(a: _Bernoulli, b: _Bernoulli) -> mpf:
            exp_epsilon = mpf(1)
            for p_set, q_set in accumulate(_by_likelihood_ratio(law, a, b), _add):
                if p_set > target:
                    candidate = (p_set - target) / q_set if q_set > 0 else mp.inf
                    exp_epsilon = max(exp_epsilon, candidate)
            return mp.log(exp_epsilon)

        return _over_directions(value, p_a, p_b, direction)


def trade_off(
    groups: Groups, p_a: Probability, p_b: Probability, alpha: Number, digits: int = 60
) -> mpf:
    """Least type II error at level alpha, null Q (`p_a`) against alternative P (`p_b`)."""
    with _direct(digits):
        level, beta = _number(alpha), mpf(1)
        for p, q in _by_likelihood_ratio(_law(groups), _bernoulli(p_a), _bernoulli(p_b)):
            rejected = mpf(1) if q <= level else level / q
            level -= rejected * q
            beta -= rejected * p
        return beta


def total_variation(groups: Groups, p_a: Probability, p_b: Probability, digits: int = 60) -> mpf:
    """Half the sum of absolute differences."""
    with _direct(digits):
        outcomes = _outcomes(_law(groups), _bernoulli(p_a), _bernoulli(p_b))
        return mp.fsum(abs(p - q) for p, q in outcomes) / 2


def kl(
    groups: Groups,
    p_a: Probability,
    p_b: Probability,
    direction: Direction = "forward",
    digits: int = 60,
) -> mpf:
    """Kullback-Leibler divergence, `sum P log(P/Q)` forward."""
    return _sum_of_terms(_kl_term, groups, p_a, p_b, direction, digits)


def chi_square(
    groups: Groups,
    p_a: Probability,
    p_b: Probability,
    direction: Direction = "forward",
    digits: int = 60,
) -> mpf:
    """Chi-square divergence, `sum (P - Q)^2 / Q` forward."""
    return _sum_of_terms(_chi_square_term, groups, p_a, p_b, direction, digits)


def jensen_shannon(groups: Groups, p_a: Probability, p_b: Probability, digits: int = 60) -> mpf:
    """Jensen-Shannon divergence with weights 1/2, in natural logarithms."""
    return _sum_of_terms(_jensen_shannon_term, groups, p_a, p_b, "forward", digits)


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
        law, a = _law(groups), _number(order)
        if mp.isinf(a):

            def largest_loss(a: _Bernoulli, b: _Bernoulli) -> mpf:
                p, q = next(_by_likelihood_ratio(law, a, b))
                return mp.log(p / q) if q > 0 else mp.inf

            return _over_directions(largest_loss, p_a, p_b, direction)
        if direction == "both":
            return max(
                renyi(groups, p_a, p_b, order, "forward", digits),
                renyi(groups, p_a, p_b, order, "reverse", digits),
            )
        moment = _sum_of_terms(_renyi_term(a), groups, p_a, p_b, direction, digits)
        return mp.log(moment) / (a - 1)


@contextmanager
def _direct(digits: int) -> Generator[None, None, None]:
    """Work with guard digits: differences of nearly equal masses lose about `log10(n)`."""
    with mp.workdps(digits + 30):
        yield


@lru_cache(maxsize=16)
def _masses(law: _Law, precision: int) -> tuple[mpf, ...]:
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


def _outcomes(law: _Law, a: _Bernoulli, b: _Bernoulli) -> list[tuple[mpf, mpf]]:
    """Return `(P(x), Q(x))` for x on `0 .. n`."""
    masses = (mpf(0), *_masses(law, mp.prec), mpf(0))
    return [
        (b.p * masses[x] + b.q * masses[x + 1], a.p * masses[x] + a.q * masses[x + 1])
        for x in range(len(masses) - 1)
    ]


def _by_likelihood_ratio(law: _Law, a: _Bernoulli, b: _Bernoulli) -> Iterator[tuple[mpf, mpf]]:
    """Yield the outcomes P can produce, the largest P/Q first."""
    possible = [(p, q) for p, q in _outcomes(law, a, b) if p > 0]
    # P/(P+Q) orders as P/Q does, and is finite where Q = 0.
    return iter(sorted(possible, key=lambda pair: pair[0] / (pair[0] + pair[1]), reverse=True))


def _add(left: tuple[mpf, mpf], right: tuple[mpf, mpf]) -> tuple[mpf, mpf]:
    """Add two pairs of masses."""
    return left[0] + right[0], left[1] + right[1]


def _sum_of_terms(
    term: _Term,
    groups: Groups,
    p_a: Probability,
    p_b: Probability,
    direction: Direction,
    digits: int,
) -> mpf:
    """Sum `term(P(x), Q(x))` over the support."""
    with _direct(digits):
        law = _law(groups)
        return _over_directions(
            lambda a, b: mp.fsum(starmap(term, _outcomes(law, a, b))), p_a, p_b, direction
        )


# ---- Any n: sum of binomial groups at a cost that does not grow with n ----------------------


def mass_large(groups: Groups, x: int, digits: int = 60) -> mpf:
    """Probability that the other users output exactly `x` ones, at any n.

    One group is a binomial mass by log-gamma; several go through the inversion integral.
    """
    with _large(groups, digits):
        return _Background.of(groups).mass(x)


def upper_tail_large(groups: Groups, x: int, digits: int = 60) -> mpf:
    """Probability that the other users output `x` ones or more, at any n."""
    with _large(groups, digits):
        return _Background.of(groups).upper_tail(x)


def lower_tail_large(groups: Groups, x: int, digits: int = 60) -> mpf:
    """Probability that the other users output `x` ones or fewer, at any n."""
    with _large(groups, digits):
        background = _Background.of(groups)
        return background.relabelled().upper_tail(background.users - x)


def delta_large(
    groups: Groups,
    p_a: Probability,
    p_b: Probability,
    epsilon: Number,
    direction: Direction = "both",
    digits: int = 60,
) -> mpf:
    """Hockey-stick divergence at any n, by the half-line form of the optimal test."""
    with _large(groups, digits):
        background, loss = _Background.of(groups), _number(epsilon)
        return _over_directions(
            lambda a, b: _delta_of(*_increasing(background, a, b), loss), p_a, p_b, direction
        )


def log_delta_large(
    groups: Groups,
    p_a: Probability,
    p_b: Probability,
    epsilon: Number,
    direction: Direction = "both",
    digits: int = 60,
) -> mpf:
    """Natural logarithm of `delta_large`."""
    with _large(groups, digits):
        return mp.log(delta_large(groups, p_a, p_b, epsilon, direction, digits))


def epsilon_large(
    groups: Groups,
    p_a: Probability,
    p_b: Probability,
    delta: Number,
    direction: Direction = "both",
    digits: int = 60,
) -> mpf:
    """Smallest epsilon >= 0 whose hockey-stick divergence is at most delta, at any n."""
    with _large(groups, digits):
        background, target = _Background.of(groups), _number(delta)
        return _over_directions(
            lambda a, b: _epsilon_of(*_increasing(background, a, b), target), p_a, p_b, direction
        )


def total_variation_large(
    groups: Groups, p_a: Probability, p_b: Probability, digits: int = 60
) -> mpf:
    """Total variation distance at any n, the hockey-stick divergence at epsilon 0."""
    return delta_large(groups, p_a, p_b, 0, "forward", digits)


def kl_large(
    groups: Groups,
    p_a: Probability,
    p_b: Probability,
    direction: Direction = "forward",
    digits: int = 60,
) -> mpf:
    """Kullback-Leibler divergence at any n, by a strided sum."""
    return _strided_sum(_kl_term, groups, p_a, p_b, direction, digits)


def chi_square_large(
    groups: Groups,
    p_a: Probability,
    p_b: Probability,
    direction: Direction = "forward",
    digits: int = 60,
) -> mpf:
    """Chi-square divergence at any n, by a strided sum."""
    return _strided_sum(_chi_square_term, groups, p_a, p_b, direction, digits)


def jensen_shannon_large(
    groups: Groups, p_a: Probability, p_b: Probability, digits: int = 60
) -> mpf:
    """Jensen-Shannon divergence at any n, by a strided sum, in natural logarithms."""
    return _strided_sum(_jensen_shannon_term, groups, p_a, p_b, "forward", digits)


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
    with _large(groups, digits):
        a = _number(order)
        # The logarithm of a moment near 1 is of size 1/n: ask the sum for that many more.
        more = digits + len(str(sum(count for count, _ in groups) + 1))
        term = _renyi_term(a)
        moment = _strided_sum(term, groups, p_a, p_b, direction, more, peaked=True)
        return mp.log(moment) / (a - 1)


@contextmanager
def _large(groups: Groups, digits: int) -> Generator[None, None, None]:
    """Work with digits enough for every cancellation at this n.

    Exponents as large as n need `log10(n)` digits; a hockey-stick sum at epsilon far above the
    typical loss `1/sqrt(n)`, or a divergence of size `1/n`, needs `log10(n)` more; tilting away
    from the saddle costs up to 20.
    """
    users = sum(count for count, _ in groups) + 1
    with mp.workdps(digits + 3 * len(str(users)) + 50):
        yield


class _Background(NamedTuple):
    """Number of ones among the other users, with the certain outputs taken out.

    Attributes
    ----------
    law : tuple of (int, _Bernoulli)
        Groups whose probability is neither 0 nor 1.
    low : int
        Users who certainly output 1, hence the least possible number of ones.
    users : int
        All users, those who certainly output 0 included.
    """

    law: _Law
    low: int
    users: int

    @classmethod
    def of(cls, groups: Groups) -> _Background:
        """Take the certain outputs out of the groups."""
        law = _law(groups)
        return cls(
            tuple((count, own) for count, own in law if count > 0 and own.p > 0 and own.q > 0),
            sum(count for count, own in law if own.q == 0),
            sum(count for count, _ in law),
        )

    @property
    def high(self) -> int:
        """Largest possible number of ones."""
        return self.low + sum(count for count, _ in self.law)

    def relabelled(self) -> _Background:
        """Return the law of the number of zeros."""
        law = tuple((count, _Bernoulli(own.q, own.p)) for count, own in self.law)
        return _Background(law, self.users - self.high, self.users)

    def tilted(self, tilt: mpf) -> tuple[list[mpf], mpf, mpf]:
        """Success probabilities, mean and variance after weighting by `e^(tilt x)`."""
        odds = mp.exp(tilt)
        tilted = [own.p * odds / (own.q + own.p * odds) for _, own in self.law]
        counts = [count for count, _ in self.law]
        mean = mp.fsum(count * t for count, t in zip(counts, tilted, strict=True))
        variance = mp.fsum(
            count * t * own.q / (own.q + own.p * odds)
            for (count, own), t in zip(self.law, tilted, strict=True)
        )
        return tilted, self.low + mean, variance

    def saddle(self, x: int) -> mpf:
        """Tilt that moves the mean to `x`, inside the support, to a thousandth of a deviation.

        The identities that use it hold at any tilt, so it need not be accurate.
        """
        share = mpf(x - self.low) / (self.high - self.low)
        tilts = [mp.log(share / (1 - share)) - mp.log(own.p / own.q) for _, own in self.law]
        left, right = min(tilts), max(tilts)
        tilt = (left + right) / 2
        while left < right:
            _, mean, variance = self.tilted(tilt)
            excess = mean - x
            if excess**2 <= variance / 10**6:
                break
            left, right = (left, tilt) if excess > 0 else (tilt, right)
            tilt -= excess / variance
            if not left < tilt < right:
                tilt = (left + right) / 2
        return tilt

    def mass(self, x: int) -> mpf:
        """Probability of exactly `x` ones."""
        if not self.low <= x <= self.high:
            return mpf(0)
        if x in {self.low, self.high}:
            return self._end(x)
        if len(self.law) > 1:
            return _inverted_mass(self, x, mp.prec)
        count, (p, q) = self.law[0]
        ones = x - self.low
        zeros = count - ones
        log_comb = mp.loggamma(count + 1) - mp.loggamma(ones + 1) - mp.loggamma(zeros + 1)
        return mp.exp(log_comb + ones * mp.log(p) + zeros * mp.log(q))

    def upper_tail(self, x: int) -> mpf:
        """Probability of `x` ones or more."""
        if x > self.high:
            return mpf(0)
        if x <= self.low:
            return mpf(1)
        if x == self.high:
            return self._end(x)
        _, mean, _ = self.tilted(mpf(0))
        if x <= mean:
            return 1 - self.relabelled().upper_tail(self.users - x + 1)
        tilt = self.saddle(x)
        _, _, variance = self.tilted(tilt)
        # The geometric factor of a tail is singular at tilt 0: stay eight deviations off, which
        # costs digits and nothing else.
        return _inversion(self, x, max(tilt, min(8 / mp.sqrt(variance), mpf(1))), tail=True)

    def _end(self, x: int) -> mpf:
        """Probability of an end of the support."""
        top = x == self.high
        return mp.exp(mp.fsum(count * mp.log(own.p if top else own.q) for count, own in self.law))


@lru_cache(maxsize=4096)
def _inverted_mass(background: _Background, x: int, precision: int) -> mpf:
    """Mass inside the support at a precision in bits; searches and sums ask for some twice."""
    with mp.workprec(precision):
        return _inversion(background, x, background.saddle(x), tail=False)


def _inversion(background: _Background, x: int, tilt: mpf, *, tail: bool) -> mpf:
    """Mass at `x`, or the upper tail from `x`, by the Fourier series of the tilted law.

    `R(x) = e^(K - tilt x) (1/2 pi) int phi(theta) e^(-i theta x) d theta`, with phi the
    characteristic function of the tilted law and K its log normalisation; a tail sums the
    geometric series of the following masses, a factor `1/(1 - e^(-tilt - i theta))`.
    """
    tilted, mean, variance = background.tilted(tilt)
    counts = [count for count, _ in background.law]
    ones = x - background.low
    period, last = _nodes(abs(x - mean), variance, tilt if tail else mp.inf)
    shrink = mp.exp(-tilt)
    total = 1 / (1 - shrink) if tail else mpf(1)
    for j in range(1, last + 1):
        theta = 2 * mp.pi * j / period
        turn = mp.expj(theta)
        exponent = mp.fsum(
            count * mp.log(1 - t + t * turn) for count, t in zip(counts, tilted, strict=True)
        )
        value = mp.exp(exponent - mp.mpc(0, theta * ones))
        if tail:
            value /= 1 - shrink * mp.conj(turn)
        # Nodes come in conjugate pairs, and the odd period has no unpaired last one.
        total += 2 * value.real
    odds = mp.exp(tilt)
    log_norm = mp.fsum(count * mp.log(own.q + own.p * odds) for count, own in background.law)
    return mp.exp(log_norm - tilt * ones) * total / period


def _nodes(offset: mpf, variance: mpf, decay: mpf) -> tuple[int, int]:
    """Period of the trapezoid rule, an odd integer, and the last node worth visiting.

    M nodes over a period fold the law modulo M. M is so large, and phi at the dropped nodes so
    small, that both errors are below `e^-budget`, by Bernstein's inequality and by
    `|phi(theta)| <= exp(-2 variance sin^2(theta/2))`. The geometric factor of a tail, which
    falls as `e^(-decay m)`, has to die out within the period too.
    """
    # The result is about the tilted mass at x, which is below 1 by no more than this factor.
    budget = mp.dps * mp.log(10) + offset**2 / variance + mp.log(1 + variance)
    span = budget / 3 + mp.sqrt(budget**2 / 9 + 2 * budget * variance)
    after = mpf(0) if mp.isinf(decay) else span + budget / decay
    period = int(span + offset + after) // 2 * 2 + 3
    sine = mp.sqrt(budget / (2 * variance))
    cut = 2 * mp.asin(sine) if sine < 1 else mp.pi
    return period, min((period - 1) // 2, int(cut * period / (2 * mp.pi)) + 1)


def _increasing(
    background: _Background, a: _Bernoulli, b: _Bernoulli
) -> tuple[_Background, _Bernoulli, _Bernoulli]:
    """Relabel the outputs if need be, so that P/Q increases with the number of ones."""
    if _gap(a, b) >= 0:
        return background, a, b
    return background.relabelled(), _Bernoulli(a.q, a.p), _Bernoulli(b.q, b.p)


def _gap(a: _Bernoulli, b: _Bernoulli) -> mpf:
    """Return `b.p - a.p`, from the pair of numbers that has not been rounded against 1."""
    return b.p - a.p if b.p < a.q else a.q - b.q


def _delta_of(background: _Background, a: _Bernoulli, b: _Bernoulli, epsilon: mpf) -> mpf:
    """Hockey-stick divergence of P from Q where P/Q increases."""
    if mp.isinf(epsilon):
        return b.p * background.mass(background.high) if a.p == 0 else mpf(0)
    ratio = mp.exp(epsilon)
    if b.p <= ratio * a.p or _gap(a, b) == 0:
        return mpf(0)
    x = _cut(background, (mp.expm1(epsilon) * a.q + _gap(a, b)) / (b.p - ratio * a.p))
    near = background.mass(x - 1)
    tail = a.p * near + background.upper_tail(x)
    return max(_gap(a, b) * near - mp.expm1(epsilon) * tail, mpf(0))


def _epsilon_of(background: _Background, a: _Bernoulli, b: _Bernoulli, target: mpf) -> mpf:
    """Inverse of `_delta_of`: `e^epsilon = (P(X >= x) - delta) / Q(X >= x)` on one piece."""
    gap = _gap(a, b)
    start = _cut(background, mpf(1))
    if gap * background.mass(start - 1) <= target:
        return mpf(0)
    if a.p == 0 and target < b.p * background.mass(background.high):
        return mp.inf
    if target == 0:
        return mp.log(b.p / a.p)

    def excess(x: int) -> mpf:
        """Log of delta at the loss of x, over the target."""
        below, at = background.mass(x - 1), background.mass(x)
        tail = a.p * below + background.upper_tail(x)
        loss_factor = gap * (below - at) / (a.p * below + a.q * at)
        value = gap * below - loss_factor * tail
        return mp.log(value / target) if value > 0 else mp.ninf

    x = _crossing(excess, start, background.high + 1, _step(background))
    below = background.mass(x - 1)
    return mp.log1p((gap * below - target) / (a.p * below + background.upper_tail(x)))


def _step(background: _Background) -> int:
    """Half a standard deviation of the background, as a first step of a search."""
    return 1 + int(mp.sqrt(background.tilted(mpf(0))[2]) / 2)


def _cut(background: _Background, odds: mpf) -> int:
    """Least x with `R(x - 1) > odds R(x)`, by doubling steps and bisection.

    The ratio of consecutive masses is close to `e^tilt` at the saddle, which gives the start.
    """
    _, guess, _ = background.tilted(mp.log(odds))
    return _first(
        lambda x: background.mass(x - 1) > odds * background.mass(x),
        background.low,
        background.high + 1,
        int(guess + mpf(1) / 2),
        1,
    )


def _first(holds: Callable[[int], bool], left: int, right: int, x: int, step: int) -> int:
    """Least integer where a monotone statement holds, known false at left and true at right."""
    x = min(max(x, left + 1), right - 1)
    while right - left > 1:
        if holds(x):
            right = x
            x -= step
        else:
            left = x
            x += step
        step *= 2
        if not left < x < right:
            x = (left + right) // 2
    return right


def _crossing(excess: Callable[[int], mpf], start: int, right: int, step: int) -> int:
    """Least integer >= start where a decreasing function is <= 0, known to be so at right.

    Doubling steps, then the Illinois method with an occasional bisection.
    """
    left, at_left, at_right = start - 1, mp.inf, mp.ninf
    x, rounds, was_above = start, 0, True
    while right - left > 1:
        value = excess(x)
        above = value > 0
        if above:
            left, at_left = x, value
            at_right /= 2 if was_above else 1
        else:
            right, at_right = x, value
            at_left /= 1 if was_above else 2
        was_above = above
        rounds += 1
        if mp.isinf(at_right) and above:
            x, step = left + step, 2 * step
        elif mp.isinf(at_right) or mp.isinf(at_left) or rounds % 4 == 0:
            x = (left + right) // 2
        else:
            x = left + int((right - left) * at_left / (at_left - at_right))
        x = min(max(x, left + 1), right - 1)
    return right


def _strided_sum(
    term: _Term,
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
    with _large(groups, digits):
        background = _Background.of(groups)

        def value(a: _Bernoulli, b: _Bernoulli) -> mpf:
            def at(x: int) -> mpf:
                below, here = background.mass(x - 1), background.mass(x)
                return term(b.p * below + b.q * here, a.p * below + a.q * here)

            centre = int(background.tilted(mpf(0))[1])
            if peaked:
                past_peak = _first(
                    lambda x: at(x) < at(x - 1),
                    background.low,
                    background.high + 2,
                    centre,
                    _step(background),
                )
                centre = past_peak - 1
            return _outwards(background, at, centre, mpf(10) ** -(digits + 10))

        return _over_directions(value, p_a, p_b, direction)


def _outwards(
    background: _Background, at: Callable[[int], mpf], centre: int, tolerance: mpf
) -> mpf:
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
