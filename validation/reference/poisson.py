"""High-precision references for limits of rare errors, by direct sums.

Laws are summed from their definitions: the mass of a difference of Poisson counts as a sum over
the second one, and a field of independent jumps as the law of the sum of its moves. Sums stop where
what is left cannot change the digits asked for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import count, product
from typing import TypeAlias

from mpmath import mp, mpf

Number: TypeAlias = int | float | mpf
Point: TypeAlias = tuple[int, ...]

_GUARD_DIGITS = 15


def poisson_mass(x: int, mean: Number, digits: int = 60) -> mpf:
    """Return Pr[Poi(mean) = x]."""
    with mp.workdps(digits + _GUARD_DIGITS):
        return mp.exp(-mpf(mean)) * mpf(mean) ** x / mp.factorial(x) if x >= 0 else mpf(0)


@cache
def skellam_mass(x: int, up: Number, down: Number, digits: int = 60) -> mpf:
    """Return Pr[Poi(up) - Poi(down) = x]."""
    with mp.workdps(digits + _GUARD_DIGITS):
        first = max(0, -x)
        term = poisson_mass(x + first, up, mp.dps) * poisson_mass(first, down, mp.dps)
        total = term
        for j in count(first + 1):
            term *= mpf(up) * mpf(down) / (mpf(j) * (x + j))
            total += term
            if term <= total * mpf(10) ** -mp.dps and (x + j) * j > mpf(up) * mpf(down):
                return total
    raise AssertionError


def skellam_upper_tail(x: int, up: Number, down: Number, digits: int = 60) -> mpf:
    """Return Pr[Poi(up) - Poi(down) >= x] for x above the mean."""
    return _falling_sum(lambda y: skellam_mass(y, up, down, digits), x, digits)


def shift_delta(
    epsilon: Number, up: Number, down: Number, direction: str = "forward", digits: int = 60
) -> mpf:
    """Return the hockey-stick divergence of R + 1 from R = Poi(up) - Poi(down), or reverse.

    The terms ``P - exp(epsilon) Q`` are summed one by one from where they begin to be positive.
    """
    if direction == "reverse":
        up, down = down, up
    with mp.workdps(digits + _GUARD_DIGITS):
        factor = mp.exp(mpf(epsilon))

        def term(y: int) -> mpf:
            lower, upper = (skellam_mass(z, up, down, mp.dps) for z in (y - 1, y))
            return lower - factor * upper

        start = int(mp.floor(factor * mpf(up) - mpf(down) / factor))
        while term(start) > 0:
            start -= 1
        while not term(start) > 0:
            start += 1
            if up == 0 and start > 1:
                return mpf(0)
        return _falling_sum(term, start, digits)


def shift_type_two_error(alpha: Number, up: Number, down: Number, digits: int = 60) -> mpf:
    """Return the least type II error of a level alpha test of R against R + 1, by enumeration."""
    with mp.workdps(digits + _GUARD_DIGITS):
        reach = int(20 * mp.sqrt(mpf(up) + mpf(down)) + 60)
        middle = int(mpf(up) - mpf(down))
        points = range(middle - reach, middle + reach)
        null = {y: skellam_mass(y, up, down, mp.dps) for y in (points[0] - 1, *points)}
        level, power = mpf(0), mpf(0)
        for y in reversed(points):
            if level + null[y] > alpha:
                share = (mpf(alpha) - level) / null[y]
                return (
                    mp.fsum(null[z - 1] for z in points[: y - points[0] + 1]) - share * null[y - 1]
                )
            level += null[y]
            power += null[y - 1]
        return mpf(0)


@cache
def field_law(jumps: tuple[tuple[Point, Number], ...], digits: int = 40) -> Mapping[Point, mpf]:
    """Return the law of the sum of all moves, each made an independent Poisson number of times."""
    with mp.workdps(digits + _GUARD_DIGITS):
        law: Mapping[Point, mpf] = {(0,) * len(jumps[0][0]): mpf(1)}
        for move, mean in jumps:
            masses: list[mpf] = []
            while not masses or masses[-1] > mpf(10) ** -digits or len(masses) <= mean:
                masses.append(poisson_mass(len(masses), mean, mp.dps))
            moved: defaultdict[Point, mpf] = defaultdict(mpf)
            for point, mass in law.items():
                for times, share in enumerate(masses):
                    reached = tuple(x + times * dx for x, dx in zip(point, move, strict=True))
                    moved[reached] += mass * share
            law = moved
        return law


def field_delta(
    epsilon: Number,
    jumps: tuple[tuple[Point, Number], ...],
    messages_p: Mapping[Point, Number],
    messages_q: Mapping[Point, Number],
    digits: int = 40,
) -> mpf:
    """Return the hockey-stick divergence between two random moves of the same field of jumps."""
    with mp.workdps(digits + _GUARD_DIGITS):
        difference: defaultdict[Point, mpf] = defaultdict(mpf)
        factor = mp.exp(mpf(epsilon))
        for point, mass in field_law(jumps, digits).items():
            for sign, messages in ((mpf(1), messages_p), (-factor, messages_q)):
                for move, share in messages.items():
                    reached = tuple(x + dx for x, dx in zip(point, move, strict=True))
                    difference[reached] += sign * mass * mpf(share)
        return mp.fsum(value for value in difference.values() if value > 0)


def hybrid_delta(
    epsilon: Number,
    mu: Number,
    often: tuple[Number, Number],
    rare: Sequence[tuple[Number, Number, Number]],
    direction: str = "forward",
    reach: int = 60,
    digits: int = 30,
) -> mpf:
    """Return the hockey-stick divergence of ``often_b exp(X) + b`` from ``often_a + a``.

    They are densities against ``X ~ N(-mu**2/2, mu**2)`` and counts ``N_y ~ Poi(mean_y)``, with
    ``a = sum a_y N_y / mean_y``; ``often`` is (often_a, often_b), ``rare`` lists (mean, a, b) and
    each count is summed up to ``reach``. The mean over X is the formula of Black and Scholes.
    """
    with mp.workdps(digits + _GUARD_DIGITS):
        factor, spread = mp.exp(mpf(epsilon)), mpf(mu)
        low, high = mpf(often[0]), mpf(often[1])
        total = mpf(0)
        for counts in product(range(reach), repeat=len(rare)):
            mass, a, b = mpf(1), low, mpf(0)
            for times, (mean, rare_a, rare_b) in zip(counts, rare, strict=True):
                mass *= poisson_mass(times, mean, mp.dps)
                a += mpf(rare_a) * times / mpf(mean)
                b += mpf(rare_b) * times / mpf(mean)
            if direction == "forward":
                strike, price = factor * a - b, high
            else:
                strike, price = a - factor * b, factor * high
            if strike <= 0:
                value = price - strike if direction == "forward" else mpf(0)
            else:
                near = mp.log(price / strike) / spread + spread / 2
                sign = 1 if direction == "forward" else -1
                value = sign * (
                    price * mp.ncdf(sign * near) - strike * mp.ncdf(sign * (near - spread))
                )
            total += mass * value
        return total


def _falling_sum(term: Callable[[int], mpf], start: int, digits: int) -> mpf:
    """Return the sum of positive terms from ``start`` on that fall geometrically in the end."""
    total = mpf(0)
    for value in _terms(term, start):
        total += value
        if value <= total * mpf(10) ** -(digits + 5):
            return total
    raise AssertionError


def _terms(term: Callable[[int], mpf], start: int) -> Iterator[mpf]:
    return (term(y) for y in count(start))
