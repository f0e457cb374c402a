"""Deltas of two messages among n - 1 messages of one law, summed over every histogram.

Straight from the definition: the histogram of the n - 1 messages is multinomial, the message of
the differing user is added to it, and the hockey-stick divergence is summed. No likelihood ratio
enters. ``python -m validation.reference.homogeneous`` writes the values that the tests read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple, TypeAlias

from mpmath import mp, mpf

Number: TypeAlias = int | float | Fraction | mpf


class Deltas(NamedTuple):
    """Hockey-stick divergences at the epsilons asked for.

    Attributes
    ----------
    forward, reverse : list of mpf
        Of the alternative from the null, and of the null from the alternative.
    """

    forward: list[mpf]
    reverse: list[mpf]


def background_deltas(
    rows: Sequence[Sequence[Number]], n: int, epsilons: Sequence[Number], digits: int = 60
) -> Deltas:
    """Sum both divergences over all histograms of n messages.

    Parameters
    ----------
    rows : sequence of three sequences of numbers
        The law of each of the n - 1 other messages, the law of the differing user's message under
        P (alternative) and under Q (null), over the same outputs.
    n : int
        Number of messages in all, at least 1.
    epsilons : sequence of numbers
        Finite privacy parameters, taken as exact numbers.
    digits : int
        Decimal digits carried.

    Returns
    -------
    Deltas
        One value for each epsilon and direction.
    """
    with mp.workdps(digits + 10):
        background, alternative, null = ([_number(p) for p in row] for row in rows)
        factors = [mp.exp(_number(epsilon)) for epsilon in epsilons]
        # w**j / j!, the factor of an output that occurs j times
        weights = [[mpf(1)] for _ in background]
        for p, table in zip(background, weights, strict=True):
            for j in range(1, n + 1 if p > 0 else 2):
                table.append(table[-1] * p / j)
        forward, reverse = [mpf(0)] * len(factors), [mpf(0)] * len(factors)
        for histogram in _histograms(n, [len(table) - 1 for table in weights]):
            law_p, law_q = _masses(histogram, weights, alternative, null)
            if law_p == law_q == 0:
                continue
            for i, factor in enumerate(factors):
                forward[i] += max(law_p - factor * law_q, 0)
                reverse[i] += max(law_q - factor * law_p, 0)
        scale = mp.factorial(n - 1)
        return Deltas([scale * value for value in forward], [scale * value for value in reverse])


def _masses(
    histogram: tuple[int, ...],
    weights: list[list[mpf]],
    alternative: list[mpf],
    null: list[mpf],
) -> tuple[mpf, mpf]:
    """Return the mass of a histogram under P and Q, both without the factor (n - 1)!."""
    factors = [table[count] for table, count in zip(weights, histogram, strict=True)]
    law_p = law_q = mpf(0)
    for y, count in enumerate(histogram):  # the differing user sent y
        if count == 0 or (alternative[y] == 0 and null[y] == 0):
            continue
        others = weights[y][count - 1]
        for z, factor in enumerate(factors):
            if z != y:
                others *= factor
        law_p += others * alternative[y]
        law_q += others * null[y]
    return law_p, law_q


def _histograms(n: int, most: list[int]) -> Iterator[tuple[int, ...]]:
    """Return the histograms of n messages with at most so many of each output."""
    if len(most) == 1:
        if n <= most[0]:
            yield (n,)
        return
    for count in range(min(n, most[0]) + 1):
        for rest in _histograms(n - count, most[1:]):
            yield (count, *rest)


def _number(value: Number) -> mpf:
    if isinstance(value, Fraction):
        return mpf(value.numerator) / value.denominator
    return mpf(value)


# ---- The laws whose deltas are known by name, as rows of `background_deltas` -------------------


def k_ary_rows(epsilon0: Number, k: int, holder: str) -> list[list[mpf]]:
    """Rows of k-ary randomized response over (b, a, the third input, the rest), others at holder.

    Parameters
    ----------
    epsilon0 : number
        Local privacy parameter.
    k : int
        Number of inputs, at least 3 (and at least 4 for a rest).
    holder : {"a", "b", "third"}
        What every other user holds.

    Returns
    -------
    list of list of mpf
        The background, the row of b and the row of a.
    """
    larger = mp.exp(_number(epsilon0))
    places = {"b": 0, "a": 1, "third": 2}
    found = []
    for own in (places[holder], places["b"], places["a"]):
        row = [larger if y == own else mpf(1) for y in range(3)]
        if k > 3:
            row.append(mpf(k - 3))
        found.append([p / (larger + k - 1) for p in row])
    return found


def blanket_rows(matrix: Sequence[Sequence[Number]], pair: tuple[int, int]) -> list[list[mpf]]:
    """Rows of the privacy blanket: the others send what all inputs share, or are revealed.

    Parameters
    ----------
    matrix : sequence of sequences of numbers
        The randomizer.
    pair : tuple of int
        The differing user's input under Q and under P.

    Returns
    -------
    list of list of mpf
        The last output is a revealed message.
    """
    rows = [[_number(p) for p in row] for row in matrix]
    shared = [min(column) for column in zip(*rows, strict=True)]
    a, b = pair
    return [[*shared, 1 - sum(shared)], [*rows[b], mpf(0)], [*rows[a], mpf(0)]]


def clone_rows(epsilon0: Number, clone: Number | None = None) -> list[list[mpf]]:
    """Rows of the clone reductions: two kinds of clone, or revealed.

    Parameters
    ----------
    epsilon0 : number
        Local privacy parameter.
    clone : number, optional
        Chance of a clone of either kind; by default ``exp(-epsilon0) / 2``, that for any
        randomizer.

    Returns
    -------
    list of list of mpf
        The last output is a revealed message.
    """
    decay = mp.exp(-_number(epsilon0))
    keep, flip = 1 / (1 + decay), decay / (1 + decay)
    share = decay / 2 if clone is None else _number(clone)
    return [[share, share, 1 - 2 * share], [keep, flip, mpf(0)], [flip, keep, mpf(0)]]


def variation_ratio_rows(p: Number, beta: Number, q: Number) -> list[list[mpf]]:
    """Rows of the variation-ratio reduction: clones, what is revealed, and the common part.

    Parameters
    ----------
    p, beta, q : number
        Largest ratio of the two laws, their total variation, largest ratio to any other law.

    Returns
    -------
    list of list of mpf
        The last two outputs are a message of another user and one of the differing user that
        tell nothing.
    """
    ratio = _number(p)
    share = _number(beta) / (ratio - 1)
    clone = ratio * share / _number(q)
    rest = 1 - (ratio + 1) * share
    return [
        [clone, clone, 1 - 2 * clone, mpf(0)],
        [ratio * share, share, mpf(0), rest],
        [share, ratio * share, mpf(0), rest],
    ]


def _entries() -> Iterator[tuple[dict[str, object], list[list[mpf]], int, list[float]]]:
    """Return what is frozen: a description, its rows, n and the epsilons."""
    near = [[32, 19, 13], [13, 22, 29], [20, 24, 20]]
    four = [[16, 16, 16, 16], [26, 19, 13, 6], [8, 12, 18, 26]]
    apart = [[32, 32, 0, 0], [8, 16, 24, 16], [16, 8, 8, 32]]
    for matrix, a, b, others, n, epsilons in (
        (near, 0, 1, 0, 300, [0.0, 0.01, 0.1, 0.2, 0.3, 0.4]),
        (near, 0, 1, 2, 250, [0.0, 0.02, 0.1, 0.25, 0.4]),
        (near, 2, 0, 1, 40, [0.0, 0.1, 0.3, 0.5]),
        (four, 1, 2, 0, 60, [0.0, 0.1, 0.4, 0.8, 1.2]),
        (four, 0, 2, 1, 24, [0.0, 0.05, 0.3, 0.6]),
        (apart, 1, 2, 0, 100, [0.0, 0.1, 0.4, 0.65, 2.0]),
        (apart, 0, 1, 2, 30, [0.0, 0.1, 0.4, 1.0, 3.0]),
    ):
        rows = [[mpf(p) / 64 for p in matrix[x]] for x in (others, b, a)]
        setting = {"matrix_in_64ths": matrix, "pair": [a, b], "others": others}
        yield {"experiment": setting}, rows, n, epsilons
    for epsilon0, k, holder, n, epsilons in (
        (2.0, 3, "third", 300, [0.0, 0.1, 0.4, 0.8, 1.1]),
        (4.0, 10, "third", 100, [0.0, 0.5, 1.5, 2.5, 3.5]),
        (1.0, 5, "a", 80, [0.0, 0.1, 0.3, 0.6, 0.9]),
        (0.25, 4, "third", 90, [0.0, 0.02, 0.1, 0.18]),
        (6.0, 1000, "b", 60, [0.0, 1.0, 4.0, 5.9]),
    ):
        setting = {"epsilon0": epsilon0, "k": k, "holder": holder}
        yield {"k_ary": setting}, k_ary_rows(epsilon0, k, holder), n, epsilons
    for pair in ((0, 1), (2, 1)):
        rows = blanket_rows([[Fraction(p, 64) for p in row] for row in near], pair)
        setting = {"matrix_in_64ths": near, "pair": list(pair)}
        yield {"blanket": setting}, rows, 70, [0.0, 0.05, 0.2, 0.4, 0.6]
    for epsilon0, n, epsilons in (
        (1.0, 300, [0.0, 0.05, 0.2, 0.5, 0.8]),
        (0.125, 120, [0.0, 0.01, 0.05, 0.12]),
        (5.0, 200, [0.0, 0.5, 2.0, 4.5]),
        (11.0, 301, [0.1, 9.0]),
        (1e-12, 400, [0.0, 3e-13]),
    ):
        yield {"clones": {"epsilon0": epsilon0}}, clone_rows(epsilon0), n, epsilons
    clone = 1 / (mp.exp(mpf(2)) + 1)
    yield {"stronger_clones": {"epsilon0": 2.0}}, clone_rows(2.0, clone), 200, [0.0, 0.1, 0.5, 1.5]
    setting = {"p": 4.0, "beta": 0.5, "q": 5.0}
    yield {"variation_ratio": setting}, variation_ratio_rows(4, 0.5, 5), 60, [0.0, 0.1, 0.4, 1.0]


def _main() -> None:
    frozen = []
    with mp.workdps(70):
        for description, rows, n, epsilons in _entries():
            found = background_deltas(rows, n, epsilons)
            entry = dict(description, n=n)
            for direction in ("forward", "reverse"):
                values = [mp.nstr(value, 30) for value in getattr(found, direction)]
                entry[direction] = [list(pair) for pair in zip(epsilons, values, strict=True)]
            frozen.append(entry)
    source = (
        "validation.reference.homogeneous: direct sums over all histograms at 70 digits, printed "
        "to 30. Rows are the fractions given; those of mechanisms are computed from epsilon0."
    )
    target = Path(__file__).parents[2] / "tests" / "data" / "homogeneous.json"
    target.write_text(json.dumps({"source": source, "entries": frozen}, indent=1) + "\n")


if __name__ == "__main__":
    _main()
