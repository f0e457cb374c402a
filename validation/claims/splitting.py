"""Splitting a report into several messages: what it buys in privacy and accuracy."""

from __future__ import annotations

import itertools
import math

import numpy as np

from fastshuffle import ShuffleExperiment, binary_randomized_response, exact_profile
from validation.claim import (
    Check,
    Claim,
    Curve,
    Figure,
    Finding,
    Verdict,
    at_most,
    constant_is,
    none_of,
    rate_at_most,
    rate_is,
)
from validation.rates import fit_limit, fit_rate, geometric_grid
from validation.reference import constants, lattice
from validation.reference.constants import Floats

_OURS = "recorded by this project"

CLAIMS = (
    Claim(
        "Fraction of ones from nm messages shuffled one by one: n Var = 1/(m I_f), so that mu_unb "
        "= 1/(n sd) for every m; no linear unbiased estimate from bundles has n Var < 1/I_bund,f",
        f"Gauss-Markov; {_OURS}",
        Verdict.HOLDS,
    ),
    Claim(
        "Binary RR at a fixed total budget, epsilon0/m each: both constants decrease in m",
        _OURS,
        Verdict.HOLDS,
    ),
    Claim(
        "There mu_bund/mu_unb - 1 vanishes as 1/m",
        _OURS,
        Verdict.HOLDS,
    ),
    Claim(
        "Binary RR at a fixed accuracy, m I(epsilon0_m) = C: the local budget m epsilon0_m rises "
        "as sqrt(C m), and mu_bund/mu_unb tends to sqrt((e^C - 1)/C)",
        _OURS,
        Verdict.HOLDS,
    ),
    Claim(
        "There, k = 0, the exact unbundled epsilon at a fixed delta decreases in m, by O(n^-1/2)",
        f"{_OURS}; in the limit m changes nothing",
        Verdict.HOLDS,
    ),
)


def _split(epsilon0: float, m: int) -> float:
    """Return the budget of each of m messages as accurate as one of epsilon0."""
    return 2.0 * math.asinh(math.sinh(0.5 * epsilon0) / math.sqrt(m))


def _chi_square(epsilon0: float) -> float:
    return 4.0 * math.sinh(0.5 * epsilon0) ** 2


def _together(chi_square: float, m: int) -> float:
    return math.expm1(m * math.log1p(chi_square))


def _price(rng: np.random.Generator) -> tuple[float, float, bool]:
    """Return errors of two variances, and whether another estimate from bundles is better.

    The exact variance of the estimate from the number of ones against 1/(m I_f), and that of the
    best estimate from bundles against 1/I_bund,f.
    """
    p0, p1 = (float(p) for p in rng.uniform(0.05, 0.95, 2))
    p1 = p1 if abs(p1 - p0) > 0.1 else 0.5 * p0
    n, m = int(rng.integers(5, 60)), int(rng.integers(2, 6))
    k = int(rng.integers(0, n + 1))
    f = k / n
    law = lattice.sum_of_binomials([((n - k) * m, p0), (k * m, p1)])
    estimates = (law.points / (n * m) - p0) / (p1 - p0)
    mean = float(law.masses @ estimates)
    variance = float(law.masses @ (estimates - mean) ** 2)
    single = np.array([[1.0 - p0, p0], [1.0 - p1, p1]])
    apart = m * constants.fisher_constant(single, f)
    rows: Floats = np.array([lattice.binomial(m, p).masses for p in (p0, p1)])
    covariance = constants.fixed_covariance(rows, f)
    kept = constants.fisher_constant(rows, f)
    # weights c with c.W_0 = 0 and c.W_1 = 1: the best ones, and others
    best = constants.score(rows, covariance) / kept
    best = best - rows[0] @ best
    free = np.linalg.svd(rows)[2][2:]
    other = best + rng.normal(size=len(free)) @ free
    least, some = (float(c @ covariance @ c) for c in (best, other))
    unbiased = abs(mean - f) + abs(float(rows[1] @ best) - 1.0)
    return n * variance * apart - 1.0 + unbiased, least * kept - 1.0, some < least * (1.0 - 1e-9)


def _fixed_accuracy(m_grid: list[int]) -> list[Check]:
    checks = []
    for epsilon0 in (0.5, 1.0, 2.0):
        c = _chi_square(epsilon0)
        budgets = [m * _split(epsilon0, m) for m in m_grid]
        shares = [b / math.sqrt(c * m) for b, m in zip(budgets, m_grid, strict=True)]
        ratios = [math.sqrt(_together(c / m, m) / c) for m in m_grid]
        name = f"epsilon0 = {epsilon0:g}"
        checks += [
            none_of(
                sum(a >= b for a, b in itertools.pairwise(budgets)),
                len(budgets) - 1,
                name=f"{name}, budgets that fall",
            ),
            constant_is(
                fit_limit(m_grid, shares, 1.0),
                1.0,
                name=f"{name}, budget over sqrt(C m)",
                rtol=1e-3,
            ),
            constant_is(
                fit_limit(m_grid, ratios, 1.0),
                math.sqrt(math.expm1(c) / c),
                name=f"{name}, mu ratio",
                rtol=1e-3,
            ),
        ]
    return checks


def _epsilons(epsilon0: float, n: int, delta: float) -> list[float]:
    """Return the exact unbundled epsilon for 1, 2, 4, 8 and 32 messages of the same accuracy."""
    return [
        float(
            exact_profile(
                ShuffleExperiment(
                    binary_randomized_response(_split(epsilon0, m)), n, k=0, messages=m
                )
            ).epsilon(delta)
        )
        for m in (1, 2, 4, 8, 32)
    ]


def measure(*, quick: bool) -> list[Finding]:
    """Compare variances with constants, and follow both over m and n."""
    rng = np.random.default_rng(20260306)
    cases = 50 if quick else 2_000
    prices = [_price(rng) for _ in range(cases)]
    budgets = np.geomspace(0.1, 30.0, 12 if quick else 60).tolist()
    counts = list(range(1, 65))
    rising = [0, 0]
    for total in budgets:
        apart = [m * _chi_square(total / m) for m in counts]
        kept = [_together(_chi_square(total / m), m) for m in counts]
        for i, values in enumerate((apart, kept)):
            rising[i] += sum(a <= b for a, b in itertools.pairwise(values))
    m_grid = geometric_grid(4, 2_000, 12)
    excesses = [
        math.sqrt(_together(_chi_square(4.0 / m), m) / (m * _chi_square(4.0 / m))) - 1.0
        for m in m_grid
    ]
    n_grid = geometric_grid(1_000, 10**5 if quick else 10**8, 6 if quick else 11)
    rises, pairs, rates, curves = 0, 0, [], []
    for epsilon0 in (0.5, 1.0, 2.0, 4.0):
        found = [_epsilons(epsilon0, n, 1e-10) for n in n_grid]
        rises += sum(a < b for some in found for a, b in itertools.pairwise(some))
        pairs += sum(len(some) - 1 for some in found)
        gains = [some[0] / some[-1] - 1.0 for some in found]
        name = f"epsilon0 = {epsilon0:g}"
        rates.append(rate_at_most(fit_rate(n_grid, gains), -0.5, name=f"{name}, m = 1 over 32"))
        curves.append(Curve.of(name, n_grid, gains, slope=-0.5))
    return [
        Finding(
            "exact variance at a fixed composition, times the constant",
            f"{cases} random p0, p1, n = 5 to 59, m = 2 to 5 and k",
            (
                at_most(max(abs(p[0]) for p in prices), 1e-11, name="error, one by one"),
                at_most(max(abs(p[1]) for p in prices), 1e-8, name="error, best of bundles"),
                none_of(sum(p[2] for p in prices), cases, name="better estimates"),
            ),
        ),
        Finding(
            "m I(epsilon0/m) and (1 + I(epsilon0/m))^m - 1",
            f"{len(budgets)} budgets from 0.1 to 30, m = 1 to 64",
            (
                none_of(rising[0], 63 * len(budgets), name="one by one, not falling"),
                none_of(rising[1], 63 * len(budgets), name="bundled, not falling"),
            ),
        ),
        Finding(
            "mu_bund/mu_unb - 1, total budget 4",
            f"m = {m_grid[0]} to {m_grid[-1]}",
            (rate_is(fit_rate(m_grid, excesses, 1.0), -1.0, name="exponent of m"),),
        ),
        Finding(
            "local budget and mu ratio, extrapolated to infinite m",
            f"m = {m_grid[0]} to {m_grid[-1]}",
            tuple(_fixed_accuracy(m_grid)),
        ),
        Finding(
            "exact epsilon at delta = 1e-10 for m = 1, 2, 4, 8, 32",
            f"n = {n_grid[0]} to {n_grid[-1]}",
            (none_of(rises, pairs, name="not falling in m"), *rates),
            figure=Figure(
                "Messages of the same accuracy: epsilon of one message over that of 32",
                "number of users n",
                "relative difference",
                tuple(curves),
            ),
        ),
    ]
