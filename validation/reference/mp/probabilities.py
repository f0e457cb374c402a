"""Probabilities and laws as exact numbers, and the two directions of a divergence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Literal, NamedTuple, TypeAlias

from mpmath import mpf

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


class Bernoulli(NamedTuple):
    """A probability and its complement, each to full relative precision."""

    p: mpf
    q: mpf


Law: TypeAlias = tuple[tuple[int, Bernoulli], ...]


def exact_number(value: Number) -> mpf:
    """Return the number as an mpf at the working precision."""
    if isinstance(value, Fraction):
        return mpf(value.numerator) / value.denominator
    return mpf(value)


def bernoulli(value: Probability) -> Bernoulli:
    """Split a probability into itself and its complement."""
    if isinstance(value, Complement):
        q = exact_number(value.q)
        return Bernoulli(1 - q, q)
    p = exact_number(value)
    return Bernoulli(p, 1 - p)


def exact_law(groups: Groups) -> Law:
    """Return the groups as exact numbers, hashable."""
    return tuple((int(count), bernoulli(p)) for count, p in groups)


def over_directions(
    value: Callable[[Bernoulli, Bernoulli], mpf],
    p_a: Probability,
    p_b: Probability,
    direction: Direction,
) -> mpf:
    """Evaluate `value(a, b)`, a divergence of b from a, in the directions asked for."""
    a, b = bernoulli(p_a), bernoulli(p_b)
    if direction == "both":
        return max(value(a, b), value(b, a))
    return value(a, b) if direction == "forward" else value(b, a)
