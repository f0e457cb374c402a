"""The exact likelihood-ratio identities."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import comb

import numpy as np

from validation.claim import Claim, Finding, Verdict, none_of
from validation.reference.exact import histogram_pair

_SOURCE = "arXiv:2602.09029v5, section 4 (v3, section 3)"

CLAIMS = (
    Claim(
        "At k = 0 the likelihood ratio of a histogram is affine: L(N) = (1/n) sum_y N_y w_y, "
        "w = W_1/W_0",
        _SOURCE,
        Verdict.HOLDS,
    ),
    Claim(
        "For every k, L(N) = [e_{k+1}(N)/C(n,k+1)] / [e_k(N)/C(n,k)] with e_k = [t^k] prod_y "
        "(1 + w_y t)^{N_y}",
        _SOURCE,
        Verdict.HOLDS,
    ),
    Claim(
        "For every k, L(N) = E[w(Y) | N] with Y the message of the user who differs, under Q",
        _SOURCE,
        Verdict.HOLDS,
    ),
)


def _rows(rng: np.random.Generator, outputs: int) -> list[list[Fraction]]:
    rows = []
    for _ in range(2):
        weights = [int(weight) for weight in rng.integers(1, 12, outputs)]
        rows.append([Fraction(weight, sum(weights)) for weight in weights])
    return rows


def _coefficients(ratios: list[Fraction], counts: tuple[int, ...]) -> list[Fraction]:
    """Return the coefficients of ``prod_y (1 + w_y t)^{N_y}``."""
    product = [Fraction(1)]
    for ratio, count in zip(ratios, counts, strict=True):
        for _ in range(count):
            longer = [*product, Fraction(0)]
            product = [longer[0]] + [
                longer[i] + ratio * product[i - 1] for i in range(1, len(longer))
            ]
    return product


def _posterior_mean(
    rows: list[list[Fraction]], n: int, k: int, counts: tuple[int, ...]
) -> Fraction:
    """Return ``E[w(Y) | N]``, from the law of the histogram of the others."""
    total, weighted = Fraction(0), Fraction(0)
    for y, count in enumerate(counts):
        if count == 0:
            continue
        rest = (*counts[:y], count - 1, *counts[y + 1 :])
        mass = rows[0][y] * _others(rows, n - 1 - k, k, rest)
        total += mass
        weighted += mass * rows[1][y] / rows[0][y]
    return weighted / total


def _others(rows: list[list[Fraction]], zeros: int, ones: int, counts: tuple[int, ...]) -> Fraction:
    """Return the mass of a histogram, by splitting it over the zeros and the ones."""
    if not counts:
        return Fraction(int(zeros == 0 and ones == 0))
    total = Fraction(0)
    for first in range(max(0, counts[0] - ones), min(counts[0], zeros) + 1):
        second = counts[0] - first
        total += (
            comb(zeros, first)
            * comb(ones, second)
            * rows[0][0] ** first
            * rows[1][0] ** second
            * _others([row[1:] for row in rows], zeros - first, ones - second, counts[1:])
        )
    return total


def _histograms(
    rng: np.random.Generator, most_users: int, randomizers: int
) -> Iterator[tuple[list[list[Fraction]], int, int, tuple[int, ...], Fraction]]:
    """Yield every histogram of every k, with its likelihood ratio by brute force."""
    for i in range(randomizers):
        rows = _rows(rng, 2 + i % 2)
        for n in range(1, most_users + 1):
            for k in range(n):
                q, p = histogram_pair(rows, {0: n - 1 - k, 1: k}, (0, 1))
                for counts, mass in q.items():
                    yield rows, n, k, counts, p[counts] / mass


def measure(*, quick: bool) -> list[Finding]:
    """Compare both sides as fractions, at every histogram."""
    most_users, randomizers = (4, 2) if quick else (7, 6)
    wrong, tried = [0, 0, 0], [0, 0, 0]
    rng = np.random.default_rng(20260301)
    for rows, n, k, counts, ratio in _histograms(rng, most_users, randomizers):
        ratios = [one / zero for zero, one in zip(*rows, strict=True)]
        e = _coefficients(ratios, counts)
        sides = [
            (e[k + 1] / comb(n, k + 1)) / (e[k] / comb(n, k)),
            _posterior_mean(rows, n, k, counts),
        ]
        for i, side in enumerate(sides, start=1):
            tried[i] += 1
            wrong[i] += side != ratio
        if k == 0:
            affine = sum(count * w for count, w in zip(counts, ratios, strict=True)) / n
            tried[0] += 1
            wrong[0] += affine != ratio
    grid = f"n = 1 to {most_users}, all k and histograms, {randomizers} random W with d = 2, 3"
    return [
        Finding(
            "histograms where the two sides differ as fractions",
            grid,
            (none_of(bad, of, name="unequal"),),
        )
        for bad, of in zip(wrong, tried, strict=True)
    ]
