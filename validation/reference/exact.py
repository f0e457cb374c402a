"""Exact rational references by enumeration, straight from the definitions.

Everything is a `fractions.Fraction`, so there is no rounding to argue about; the price is that
only small `n` is practical. `n` always includes the user who differs.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import comb
from operator import itemgetter
from typing import NamedTuple

Histogram = tuple[int, ...]
Group = tuple[int, Fraction]
Law = Mapping[Histogram, Fraction] | Sequence[Fraction]


class Dataset(NamedTuple):
    """What the others hold, and the two inputs of the user who differs.

    Attributes
    ----------
    pair : tuple of int
        `(a, b)`: the differing user holds a under Q and b under P.
    others : dict of int to int
        How many of the other `n - 1` users hold each input.
    """

    pair: tuple[int, int]
    others: dict[int, int]


def histogram_pair(
    rows: Sequence[Sequence[Fraction]], others: Mapping[int, int], pair: tuple[int, int]
) -> tuple[dict[Histogram, Fraction], dict[Histogram, Fraction]]:
    """Laws of the shuffled histogram, by brute force over every output tuple of all n users.

    Parameters
    ----------
    rows : sequence of sequences of Fraction
        Row `x` is the law of one user's output when that user holds `x`.
    others : mapping of int to int
        How many of the other users hold each input.
    pair : tuple of int
        `(a, b)`, the two inputs of the user who differs.

    Returns
    -------
    tuple of dict
        `(Q, P)`, each from histogram to probability, for the user holding a and b.
    """
    held = [x for x, count in others.items() for _ in range(count)]
    laws = []
    for own in pair:
        users = [rows[x] for x in [*held, own]]
        law: defaultdict[Histogram, Fraction] = defaultdict(Fraction)
        for outputs in itertools.product(range(len(rows[0])), repeat=len(users)):
            probability = Fraction(1)
            for row, y in zip(users, outputs, strict=True):
                probability *= row[y]
            law[tuple(outputs.count(y) for y in range(len(rows[0])))] += probability
        laws.append(dict(law))
    return laws[0], laws[1]


def binomial_groups(groups: Sequence[Group]) -> list[Fraction]:
    """Mass function of a sum of independent `Bin(count, p)`, by convolution.

    Parameters
    ----------
    groups : sequence of (int, Fraction)
        The `(count, p)` of each group.

    Returns
    -------
    list of Fraction
        The masses on `0 .. sum of the counts`.
    """
    law = [Fraction(1)]
    for count, p in groups:
        group = [comb(count, x) * p**x * (1 - p) ** (count - x) for x in range(count + 1)]
        law = _convolve(law, group)
    return law


def binary_pair(
    groups: Sequence[Group], p_a: Fraction, p_b: Fraction
) -> tuple[list[Fraction], list[Fraction]]:
    """Laws of the number of ones among all n users, binary output.

    Parameters
    ----------
    groups : sequence of (int, Fraction)
        The other users: `count` of them output 1 with probability `p`.
    p_a, p_b : Fraction
        Probability that the differing user outputs 1 when holding a (law Q) and b (law P).

    Returns
    -------
    tuple of list
        `(Q, P)` on `0 .. n`.
    """
    others = binomial_groups(groups)
    return _convolve(others, [1 - p_a, p_a]), _convolve(others, [1 - p_b, p_b])


def hockey_stick(law_p: Law, law_q: Law, exp_epsilon: Fraction) -> Fraction:
    """Hockey-stick divergence of P from Q, `sum (P - e^epsilon Q)_+`.

    Parameters
    ----------
    law_p, law_q : mapping or sequence of Fraction
        The two laws; an outcome missing from one of them has probability 0 there.
    exp_epsilon : Fraction
        The number `e^epsilon`, rational.

    Returns
    -------
    Fraction
        The smallest delta at this epsilon.
    """
    return sum((max(p - exp_epsilon * q, Fraction(0)) for p, q in _pairs(law_p, law_q)), Fraction())


def total_variation(law_p: Law, law_q: Law) -> Fraction:
    """Total variation distance, half the sum of the absolute differences.

    Parameters
    ----------
    law_p, law_q : mapping or sequence of Fraction
        The two laws.

    Returns
    -------
    Fraction
        The distance, between 0 and 1.
    """
    return sum((abs(p - q) for p, q in _pairs(law_p, law_q)), Fraction()) / 2


def trade_off(law_p: Law, law_q: Law, alpha: Fraction) -> Fraction:
    """Least type II error at level `alpha`, null Q against alternative P.

    Parameters
    ----------
    law_p, law_q : mapping or sequence of Fraction
        Alternative and null.
    alpha : Fraction
        Largest allowed type I error, in [0, 1].

    Returns
    -------
    Fraction
        Type II error of the Neyman-Pearson test, randomised at its boundary.
    """
    support = [(p, q) for p, q in _pairs(law_p, law_q) if p > 0]
    # P/(P+Q) orders outcomes as the likelihood ratio P/Q does, and is finite where Q = 0.
    support.sort(key=lambda outcome: outcome[0] / (outcome[0] + outcome[1]), reverse=True)
    level, beta = alpha, Fraction(1)
    for p, q in support:
        rejected = Fraction(1) if q <= level else level / q
        level -= rejected * q
        beta -= rejected * p
    return beta


def worst_composition(
    rows: Sequence[Sequence[Fraction]], n: int, exp_epsilon: Fraction
) -> tuple[Fraction, Dataset]:
    """Largest delta over all datasets, by trying every one of them.

    Every composition of the other `n - 1` users over all inputs is tried with every ordered pair,
    which covers both directions. Users are added to a histogram law one at a time.

    Parameters
    ----------
    rows : sequence of sequences of Fraction
        The randomizer, any number of inputs (at least two) and outputs.
    n : int
        Number of users including the one who differs, at least 1.
    exp_epsilon : Fraction
        The number `e^epsilon`, rational.

    Returns
    -------
    tuple of Fraction and Dataset
        The value and the first dataset that attains it.
    """
    candidates = []
    for counts in _compositions(n - 1, len(rows)):
        background: dict[Histogram, Fraction] = {(0,) * len(rows[0]): Fraction(1)}
        for row, count in zip(rows, counts, strict=True):
            for _ in range(count):
                background = _add_user(background, row)
        laws = [_add_user(background, row) for row in rows]
        for a, b in itertools.permutations(range(len(rows)), 2):
            value = hockey_stick(laws[b], laws[a], exp_epsilon)
            candidates.append((value, Dataset((a, b), dict(enumerate(counts)))))
    return max(candidates, key=itemgetter(0))


def _convolve(left: Sequence[Fraction], right: Sequence[Fraction]) -> list[Fraction]:
    """Law of the sum of two independent counts."""
    law = [Fraction(0)] * (len(left) + len(right) - 1)
    for i, u in enumerate(left):
        for j, v in enumerate(right):
            law[i + j] += u * v
    return law


def _add_user(
    law: Mapping[Histogram, Fraction], row: Sequence[Fraction]
) -> dict[Histogram, Fraction]:
    """Histogram law with one more user, whose output has law `row`."""
    longer: defaultdict[Histogram, Fraction] = defaultdict(Fraction)
    for histogram, probability in law.items():
        for y, p in enumerate(row):
            longer[*histogram[:y], histogram[y] + 1, *histogram[y + 1 :]] += probability * p
    return dict(longer)


def _compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All ways to write `total` as an ordered sum of `parts` counts."""
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _compositions(total - first, parts - 1):
            yield (first, *rest)


def _pairs(law_p: Law, law_q: Law) -> list[tuple[Fraction, Fraction]]:
    """Both probabilities of each outcome that either law knows."""
    p, q = _as_mapping(law_p), _as_mapping(law_q)
    zero = Fraction(0)
    return [(p.get(key, zero), q.get(key, zero)) for key in dict.fromkeys([*p, *q])]


def _as_mapping(law: Law) -> Mapping[Hashable, Fraction]:
    """View a law on `0 .. len - 1` or on histograms as a mapping."""
    return dict(law.items()) if isinstance(law, Mapping) else dict(enumerate(law))
