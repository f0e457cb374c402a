"""Binary output: the curve in closed form."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np

from validation.claim import Claim, Finding, Verdict, none_of
from validation.reference.exact import (
    Group,
    binary_pair,
    binomial_groups,
    hockey_stick,
    total_variation,
)

CLAIMS = (
    Claim(
        "p1 > p0, R the others' number of ones: delta_forward = (p1-p0) R(x-1) - (e^eps - 1) "
        "[p0 R(x-1) + Pr(R >= x)], x the least number with P(x) > e^eps Q(x); reverse by "
        "relabelling outputs and inputs",
        "half-line form of the optimal test, R being log-concave; arXiv:2602.09029v5, section 8",
        Verdict.HOLDS,
    ),
    Claim(
        "Total variation is (p1 - p0) max R",
        "the same at epsilon = 0",
        Verdict.HOLDS,
    ),
    Claim(
        "Unbundled, m messages a user: delta = (1 - e^eps) Pr(R >= x) + sum_{i<m} R(x-1-i) "
        "[Pr(B1 > i) - e^eps Pr(B0 > i)], B_b ~ Bin(m, p_b)",
        "arXiv:2602.09029v3, section 9 (v5, section 9)",
        Verdict.HOLDS,
    ),
)


def _at(law: Sequence[Fraction], x: int) -> Fraction:
    return law[x] if 0 <= x < len(law) else Fraction(0)


def _least(p: Sequence[Fraction], q: Sequence[Fraction], scale: Fraction) -> int:
    """Return the least x with P(x) > scale Q(x), past the end if there is none."""
    return next((x for x in range(len(p)) if p[x] > scale * q[x]), len(p))


def _forward(
    groups: Sequence[Group], p0: Fraction, p1: Fraction, scale: Fraction
) -> tuple[Fraction, Fraction]:
    """Return delta by the closed form and by its definition."""
    law = binomial_groups(groups)
    q, p = binary_pair(groups, p0, p1)
    x = _least(p, q, scale)
    near, tail = _at(law, x - 1), sum(law[x:], Fraction(0))
    value = (p1 - p0) * near - (scale - 1) * (p0 * near + tail)
    return value, hockey_stick(p, q, scale)


def _unbundled(
    zeros: int, ones: int, p0: Fraction, p1: Fraction, m: int, scale: Fraction
) -> tuple[Fraction, Fraction]:
    """Return delta by the formula and by its definition."""
    groups = [(zeros * m, p0), (ones * m, p1)]
    law = binomial_groups(groups)
    q, p = (binomial_groups([*groups, (m, own)]) for own in (p0, p1))
    x = _least(p, q, scale)
    above = [[1 - total for total in accumulate(binomial_groups([(m, own)]))] for own in (p0, p1)]
    value = (1 - scale) * sum(law[max(x, 0) :], Fraction(0)) + sum(
        (_at(law, x - 1 - i) * (above[1][i] - scale * above[0][i]) for i in range(m)),
        Fraction(0),
    )
    return value, hockey_stick(p, q, scale)


def measure(*, quick: bool) -> list[Finding]:
    """Compare both sides as fractions."""
    rng = np.random.default_rng(20260305)
    cases, most_users = (20, 6) if quick else (150, 12)
    wrong, tried = [0, 0, 0], [0, 0, 0]
    for _ in range(cases):
        low, high = sorted(int(x) for x in rng.choice(np.arange(1, 30), 2, replace=False))
        p0, p1 = Fraction(low, 30), Fraction(high, 30)
        n = int(rng.integers(1, most_users + 1))
        k = int(rng.integers(0, n))
        groups = [(n - 1 - k, p0), (k, p1)]
        mirrored = [(k, 1 - p1), (n - 1 - k, 1 - p0)]
        q, p = binary_pair(groups, p0, p1)
        for scale in (Fraction(1), Fraction(21, 20), Fraction(3, 2), Fraction(5)):
            found, true = _forward(groups, p0, p1, scale)
            back, _ = _forward(mirrored, 1 - p1, 1 - p0, scale)
            tried[0] += 2
            wrong[0] += (found != true) + (back != hockey_stick(q, p, scale))
            found, true = _unbundled(n - 1 - k, k, p0, p1, 2 + k % 2, scale)
            tried[2] += 1
            wrong[2] += found != true
        tried[1] += 1
        wrong[1] += (p1 - p0) * max(binomial_groups(groups)) != total_variation(p, q)
    grid = f"{cases} random p0 < p1, n = 1 to {most_users}, k, and e^eps = 1, 21/20, 3/2, 5"
    return [
        Finding("cases where the two sides differ as fractions", grid, (check,))
        for check in (
            none_of(bad, of, name="unequal") for bad, of in zip(wrong, tried, strict=True)
        )
    ]
