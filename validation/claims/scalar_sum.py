"""Others who all hold one input: the curve as the mean of a positive part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import permutations, product

import numpy as np

from validation.claim import Claim, Finding, Verdict, none_of
from validation.reference.exact import histogram_pair, hockey_stick, worst_composition

CLAIMS = (
    Claim(
        "The others all at z: H_eps(P, Q) = (1/n) E (sum_i r(Y_i))_+, Y_i i.i.d. W_z, "
        "r = (W_1 - e^eps W_0)/W_z",
        "exact positive-part formulas, arXiv:2602.09029v5, section 8; any z: this project",
        Verdict.HOLDS,
    ),
    Claim(
        "Privacy blanket: delta <= (1/(g n)) E (sum_{i<=M} G_i)_+ for every dataset, "
        "g = sum_y min_x W_x, M ~ Bin(n, g), G = g (W_x - e^eps W_x')/min W under min W / g",
        "Balle, Bell, Gascon, Nissim, CRYPTO 2019, arXiv:1903.02837",
        Verdict.HOLDS,
    ),
)

Rows = list[list[Fraction]]


def _positive_part(law: Sequence[Fraction], values: Sequence[Fraction], n: int) -> Fraction:
    """Return ``E (sum of n values)_+`` over every outcome."""
    total = Fraction(0)
    for outcome in product(range(len(law)), repeat=n):
        value = sum((values[y] for y in outcome), Fraction(0))
        if value > 0:
            mass = Fraction(1)
            for y in outcome:
                mass *= law[y]
            total += mass * value
    return total


def _rows(rng: np.random.Generator, inputs: int) -> Rows:
    rows = []
    for _ in range(inputs):
        weights = [int(weight) for weight in rng.integers(1, 10, 3)]
        rows.append([Fraction(weight, sum(weights)) for weight in weights])
    return rows


def _blanket(rows: Rows, n: int, scale: Fraction) -> Fraction:
    """Return the largest blanket bound over pairs of inputs."""
    least = [min(column) for column in zip(*rows, strict=True)]
    gamma = sum(least, Fraction(0))
    law = [*least, 1 - gamma]
    values = []
    for q, p in permutations(rows, 2):
        gains = [(b - scale * a) * gamma / w for a, b, w in zip(q, p, least, strict=True)]
        values.append(_positive_part(law, [*gains, Fraction(0)], n) / (gamma * n))
    return max(values)


def _cases(rng: np.random.Generator, cases: int, most: int) -> Iterator[tuple[Rows, int, Fraction]]:
    for _ in range(cases):
        scale = Fraction(int(rng.integers(20, 40)), 20)
        yield _rows(rng, 3), int(rng.integers(1, most + 1)), scale


def measure(*, quick: bool) -> list[Finding]:
    """Compare both sides as fractions, and the blanket with every dataset."""
    rng = np.random.default_rng(20260306)
    wrong = tried = above = compared = 0
    cases, most = (8, 4) if quick else (40, 6)
    for rows, n, scale in _cases(rng, cases, most):
        for z in range(3):
            q, p = histogram_pair(rows, {z: n - 1}, (0, 1))
            ratios = [
                (b - scale * a) / w for a, b, w in zip(rows[0], rows[1], rows[z], strict=True)
            ]
            tried += 1
            wrong += _positive_part(rows[z], ratios, n) / n != hockey_stick(p, q, scale)
    pairs, users = (4, 3) if quick else (20, 4)
    for rows, n, scale in _cases(rng, pairs, users):
        worst, _ = worst_composition(rows, n, scale)
        compared += 1
        above += worst > _blanket(rows, n, scale)
    return [
        Finding(
            "cases where the two sides differ as fractions",
            f"{cases} random W with 3 inputs and outputs, n <= {most}, each z",
            (none_of(wrong, tried, name="unequal"),),
        ),
        Finding(
            "cases with a dataset above the bound, in fractions",
            f"{pairs} random W with 3 inputs and outputs, n <= {users}, every dataset",
            (none_of(above, compared, name="above"),),
        ),
    ]
