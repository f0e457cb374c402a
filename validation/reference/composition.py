"""Composition of pairs of laws, straight from the definition: the law of all outcomes together.

Outcomes of equal likelihood ratio are the same for every hockey-stick divergence, so they are
merged: the rounds stay few numbers, all of them rational.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction

# The likelihood ratio P/Q, or None where Q is 0.
Ratio = Fraction | None
Law = Mapping[Hashable, Fraction] | Sequence[Fraction]


def by_ratio(law_p: Law, law_q: Law) -> dict[Ratio, tuple[Fraction, Fraction]]:
    """Probabilities P and Q of each value of the likelihood ratio."""
    p, q = (law if isinstance(law, Mapping) else dict(enumerate(law)) for law in (law_p, law_q))
    merged: defaultdict[Ratio, tuple[Fraction, Fraction]] = defaultdict(
        lambda: (Fraction(0), Fraction(0))
    )
    for key in dict.fromkeys([*p, *q]):
        a, b = p.get(key, Fraction(0)), q.get(key, Fraction(0))
        if a or b:
            _add(merged, a / b if b else None, a, b)
    return dict(merged)


def composed(
    rounds: Sequence[Mapping[Ratio, tuple[Fraction, Fraction]]],
) -> dict[Ratio, tuple[Fraction, Fraction]]:
    """The pair of independent rounds, each given `by_ratio`."""
    total: Mapping[Ratio, tuple[Fraction, Fraction]] = {Fraction(1): (Fraction(1), Fraction(1))}
    for one in rounds:
        longer: defaultdict[Ratio, tuple[Fraction, Fraction]] = defaultdict(
            lambda: (Fraction(0), Fraction(0))
        )
        for ratio, (a, b) in total.items():
            for other, (c, d) in one.items():
                unseen = ratio is None or other is None
                if a * c or b * d:
                    _add(longer, None if unseen else ratio * other, a * c, b * d)  # type: ignore[operator]
        total = longer
    return dict(total)


def hockey_stick(
    pair: Mapping[Ratio, tuple[Fraction, Fraction]], exp_epsilon: Fraction
) -> Fraction:
    """Hockey-stick divergence of P from Q, `sum (P - e^epsilon Q)_+`."""
    return sum((max(a - exp_epsilon * b, Fraction(0)) for a, b in pair.values()), Fraction(0))


def _add(
    pair: defaultdict[Ratio, tuple[Fraction, Fraction]], ratio: Ratio, a: Fraction, b: Fraction
) -> None:
    pair[ratio] = (pair[ratio][0] + a, pair[ratio][1] + b)
