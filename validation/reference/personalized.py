"""Exact rational references for users with randomizers of their own, by enumeration."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import comb
from typing import TypeAlias

from validation.reference.exact import Histogram, hockey_stick

Rows: TypeAlias = Sequence[Sequence[Fraction]]


def response_rows(odds: Fraction, k: int = 2) -> list[list[Fraction]]:
    """Rows of k-ary randomized response whose budget is the logarithm of ``odds``."""
    total = odds + k - 1
    return [[(odds if x == y else Fraction(1)) / total for y in range(k)] for x in range(k)]


def histogram_law(users: Sequence[Rows], data: Sequence[int]) -> dict[Histogram, Fraction]:
    """Law of the histogram when user i applies ``users[i]`` to ``data[i]``, by every output tuple.

    Parameters
    ----------
    users : sequence of sequences of sequences of Fraction
        Each user's own matrix; all have the same outputs.
    data : sequence of int
        What each user holds.

    Returns
    -------
    dict
        From histogram to probability.
    """
    outputs = range(len(users[0][0]))
    law: defaultdict[Histogram, Fraction] = defaultdict(Fraction)
    for sent in itertools.product(outputs, repeat=len(users)):
        probability = Fraction(1)
        for rows, x, y in zip(users, data, sent, strict=True):
            probability *= rows[x][y]
        law[tuple(sent.count(y) for y in outputs)] += probability
    return dict(law)


def user_delta(
    users: Sequence[Rows], data: Sequence[int], user: int, other: int, growth: Fraction
) -> tuple[Fraction, Fraction]:
    """Forward and reverse delta at ``exp(epsilon) = growth`` when one user holds ``other`` instead.

    Returns
    -------
    tuple of Fraction
        The divergence of the second dataset from the first, and of the first from the second.
    """
    first = histogram_law(users, data)
    second = histogram_law(users, [*data[:user], other, *data[user + 1 :]])
    return hockey_stick(second, first, growth), hockey_stick(first, second, growth)


def worst_user_delta(users: Sequence[Rows], user: int, growth: Fraction) -> Fraction:
    """Largest delta of a user over all datasets and both directions."""
    inputs = range(len(users[0]))
    return max(
        max(user_delta(users, data, user, other, growth))
        for data in itertools.product(inputs, repeat=len(users))
        for other in inputs
        if other != data[user]
    )


def clone_delta(own_odds: Fraction, chances: Sequence[Fraction], growth: Fraction) -> Fraction:
    """Delta of a bit of randomized response among clones, each there with a chance of its own."""
    keep = own_odds / (1 + own_odds)
    total = Fraction(0)
    for clones, probability in _subsets(chances):
        if probability:
            half = Fraction(1, 2**clones)
            fair = [half * comb(clones, i) for i in range(clones + 1)]
            up, down = ([*fair, Fraction(0)], [Fraction(0), *fair])
            p = [(1 - keep) * a + keep * b for a, b in zip(up, down, strict=True)]
            q = [keep * a + (1 - keep) * b for a, b in zip(up, down, strict=True)]
            total += probability * hockey_stick(p, q, growth)
    return total


def _subsets(chances: Sequence[Fraction]) -> Iterator[tuple[int, Fraction]]:
    for there in itertools.product((0, 1), repeat=len(chances)):
        probability = Fraction(1)
        for chance, one in zip(chances, there, strict=True):
            probability *= chance if one else 1 - chance
        yield sum(there), probability
