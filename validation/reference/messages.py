"""Several messages a user: the two laws by enumeration in fractions, and deltas at any size.

Each of n users applies the randomizer m times to the same input. *Unbundled*: all nm messages are
shuffled, and the analyst sees how often each output occurs. *Bundled*: the m messages of a user
stay together, and the analyst sees how often each m-tuple of outputs occurs.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction

from mpmath import mp, mpf

from validation.reference.mp.half_line import mass_large, upper_tail_large
from validation.reference.mp.probabilities import (
    Bernoulli,
    Groups,
    Number,
    Probability,
    bernoulli,
    exact_law,
    exact_number,
)
from validation.reference.mp.searches import first

Law = dict[Hashable, Fraction]


def enumerated_pair(
    rows: Sequence[Sequence[Fraction]],
    others: Mapping[int, int],
    pair: tuple[int, int],
    messages: int,
    *,
    bundled: bool,
) -> tuple[Law, Law]:
    """Laws of what the analyst sees, over every outcome of every message of every user.

    Parameters
    ----------
    rows : sequence of sequences of Fraction
        Row x is the law of one message of a user who holds x.
    others : mapping of int to int
        How many of the other users hold each input.
    pair : tuple of int
        What the differing user holds under Q and under P.
    messages : int
        How many messages every user sends.
    bundled : bool
        Whether the messages of a user stay together.

    Returns
    -------
    tuple of dict
        Q and P.
    """
    held = [x for x, count in others.items() for _ in range(count)]
    laws = []
    for own in pair:
        law: defaultdict[Hashable, Fraction] = defaultdict(Fraction)
        senders = [x for x in [*held, own] for _ in range(messages)]
        for outputs in itertools.product(range(len(rows[0])), repeat=len(senders)):
            probability = Fraction(1)
            for x, y in zip(senders, outputs, strict=True):
                probability *= rows[x][y]
            size = messages if bundled else 1
            starts = range(0, len(outputs), size)
            law[tuple(sorted(outputs[i : i + size] for i in starts))] += probability
        laws.append(dict(law))
    return laws[0], laws[1]


def shared_pair(
    matrices: Sequence[Sequence[Sequence[Fraction]]],
    others: Mapping[int, int],
    pair: tuple[int, int],
) -> tuple[Law, Law]:
    """Laws of the histogram of all messages, by adding one message after another.

    Parameters
    ----------
    matrices : sequence of matrices of Fraction
        Every user sends a message of each, the row of the input held; all are shuffled together.
    others, pair
        As for `enumerated_pair`.

    Returns
    -------
    tuple of dict
        Q and P, from histogram to probability.
    """
    held = [x for x, count in others.items() for _ in range(count)]
    laws: list[Law] = []
    for own in pair:
        law: dict[tuple[int, ...], Fraction] = {(0,) * len(matrices[0][0]): Fraction(1)}
        for x in [*held, own]:
            for rows in matrices:
                longer: defaultdict[tuple[int, ...], Fraction] = defaultdict(Fraction)
                for histogram, probability in law.items():
                    for y, p in enumerate(rows[x]):
                        if p:
                            place = (*histogram[:y], histogram[y] + 1, *histogram[y + 1 :])
                            longer[place] += probability * p
                law = dict(longer)
        laws.append(dict(law.items()))
    return laws[0], laws[1]


def unbundled_pair(
    rows: Sequence[Sequence[Fraction]],
    others: Mapping[int, int],
    pair: tuple[int, int],
    messages: int,
) -> tuple[Law, Law]:
    """Laws of the histogram of all messages, m of the same randomizer from each user.

    Parameters
    ----------
    rows, others, pair, messages
        As for `enumerated_pair`.

    Returns
    -------
    tuple of dict
        Q and P, from histogram to probability.
    """
    return shared_pair([rows] * messages, others, pair)


def unbundled_delta(
    groups: Groups,
    p_a: Probability,
    p_b: Probability,
    messages: int,
    epsilon: Number,
    digits: int = 60,
) -> mpf:
    """Hockey-stick divergence of P from Q at any size, p_b > p_a, as a difference of tails.

    Parameters
    ----------
    groups : sequence of (int, probability)
        The messages of the other users: `count` of them are 1 with probability `p`.
    p_a, p_b : probability
        That a message of the differing user is 1, under Q and under P.
    messages : int
        How many messages the differing user sends.
    epsilon : number
        Finite privacy parameter.
    digits : int
        Decimal digits carried; what cancels is about twice the logarithm of the size.

    Returns
    -------
    mpf
        The divergence.
    """
    null, alternative = [*groups, (messages, p_a)], [*groups, (messages, p_b)]
    trials = sum(count for count, _ in null)
    with mp.workdps(digits + 3 * len(str(trials))):
        factor = mp.exp(exact_number(epsilon))

        def gain(x: int) -> mpf:
            return mass_large(alternative, x, digits) - factor * mass_large(null, x, digits)

        # the ratio of the laws increases: it exceeds the factor from the cut on
        start = _likely_cut(groups, bernoulli(p_a), bernoulli(p_b), messages, factor)
        high = first(lambda x: gain(x) > 0, -1, trials + 1, start, 1)
        if high > trials:
            return mpf(0)
        return upper_tail_large(alternative, high, digits) - factor * upper_tail_large(
            null, high, digits
        )


def _likely_cut(groups: Groups, a: Bernoulli, b: Bernoulli, messages: int, factor: mpf) -> int:
    """Guess where the laws cross: the mean in the tilt that makes the two users equally likely."""
    step = mp.root(factor, messages)
    trials = sum(count for count, _ in groups) + messages
    if b.p <= step * a.p:
        return trials
    odds = (step * a.q - b.q) / (b.p - step * a.p)
    means = [
        count * p * odds / (q + p * odds)
        for count, (p, q) in [*exact_law(groups), (messages, a), (messages, b)]
    ]
    return int(sum(means) - (means[-1] + means[-2]) / 2) + 1
