"""Several messages a user: shuffled apart (unbundled) or as one (bundled)."""

from __future__ import annotations

import math

import numpy as np

from validation.claim import (
    Check,
    Claim,
    Curve,
    Figure,
    Finding,
    Verdict,
    at_least,
    at_most,
    constant_is,
    printed_number,
)
from validation.rates import fit_limit, geometric_grid
from validation.reference import lattice
from validation.reference.constants import Floats, fisher_constant, ratio_moment

CLAIMS = (
    Claim(
        "Unbundled, m messages a user: mu_unb = sqrt(m I_pi/n)",
        "arXiv:2602.09029v3, section 9 (v5, section 9)",
        Verdict.HOLDS,
    ),
    Claim(
        "Bundled, k = 0: mu_bund = sqrt(((1 + chi^2)^m - 1)/n)",
        "arXiv:2602.09029v1, abstract; v3, section 9",
        Verdict.HOLDS,
    ),
    Claim(
        "mu_unb <= mu_bund for every W, m and pi",
        "arXiv:2602.09029v3, section 9",
        Verdict.HOLDS,
    ),
    Claim(
        "mu_unb < mu_bund strictly for m >= 2 and every non-trivial W",
        "arXiv:2602.09029v3, abstract (not in v5)",
        Verdict.HOLDS_ONLY,
    ),
    Claim(
        "Symmetric RR, epsilon0 = 1, m = 2, pi = 1/2: both constants are 2.172323",
        "recorded by this project",
        Verdict.HOLDS,
    ),
)

_P = 0.2, 0.6
_ROUNDING = 1e-12


def _count_rows(p0: float, p1: float, m: int) -> Floats:
    """Return the laws of the number of ones in a bundle, which tells all about the input."""
    rows = [lattice.binomial(m, p).masses for p in (p0, p1)]
    return np.array(rows)


def _constants(p0: float, p1: float, m: int, pi: float) -> tuple[float, float]:
    """Return n mu^2, unbundled and bundled."""
    single = np.array([[1.0 - p0, p0], [1.0 - p1, p1]])
    return m * fisher_constant(single, pi), fisher_constant(_count_rows(p0, p1, m), pi)


def _unbundled(n: int, m: int, pi: float) -> float:
    """Return n times the exact chi-square divergence of the unbundled pair."""
    k = round(pi * n)
    groups = [((n - 1 - k) * m, _P[0]), (k * m, _P[1])]
    _, q, p = lattice.binary_pair(groups, lattice.binomial(m, _P[0]), lattice.binomial(m, _P[1]))
    seen = q > 1e-290
    return n * float(((p - q)[seen] ** 2 / q[seen]).sum())


def _bundled(n: int, m: int) -> float:
    """Return n times the exact chi-square divergence of bundles of two, k = 0."""
    rows = _count_rows(*_P, m)
    others = lattice.histogram(rows, (n - 1, 0), n + 1)
    q, p = (lattice.with_one_more(others, row).ravel() for row in rows)
    seen = q > 1e-290
    return n * float(((p - q)[seen] ** 2 / q[seen]).sum())


def _excesses(randomizers: int) -> tuple[float, float, float]:
    """Return relative excesses of the bundled constant over the unbundled one.

    The least of all; the largest size where m = 2 and ``(1 - pi) p0 (1 - p0) = pi p1 (1 - p1)``;
    the least elsewhere, for m >= 3 over the fourth power of the distance of the rows.
    """
    rng = np.random.default_rng(20260303)
    every, equal, elsewhere = [], [], []
    for _ in range(randomizers):
        p0, p1 = (float(p) for p in rng.uniform(0.02, 0.98, 2))
        zero, one = p0 * (1.0 - p0), p1 * (1.0 - p1)
        if abs(p1 - p0) < 0.05:
            continue
        for m, pi in ((2, zero / (zero + one)), *((m, float(rng.uniform())) for m in (2, 3, 5))):
            apart, together = _constants(p0, p1, m, pi)
            excess = together / apart - 1.0
            every.append(excess)
            if m == 2 and pi == zero / (zero + one):
                equal.append(abs(excess))
            else:
                elsewhere.append(excess / (p1 - p0) ** 4 if m > 2 else excess)
    return min(every), max(equal), min(elsewhere)


def measure(*, quick: bool) -> list[Finding]:
    """Extrapolate exact divergences, and search for equality."""
    grid = geometric_grid(20, 1_000 if quick else 20_000, 7 if quick else 11, 10)
    small = geometric_grid(20, 150 if quick else 300, 6, 10)
    unbundled: list[Check] = []
    curves: list[Curve] = []
    single = np.array([[1.0 - p, p] for p in _P])
    for m in (2, 4):
        for pi in (0.0, 0.5):
            values = [_unbundled(n, m, pi) for n in grid]
            name, claimed = f"m = {m}, pi = {pi:g}", m * fisher_constant(single, pi)
            unbundled.append(
                constant_is(fit_limit(grid, values, 1.0), claimed, name=name, rtol=1e-3)
            )
            curves += [Curve.of(name, grid, values)]
            if pi == 0.0:
                curves += [Curve.of(f"m I_0, m = {m}", grid, [claimed] * len(grid), line=True)]
    chi2 = ratio_moment(single, 2)
    together = [_bundled(n, 2) for n in small]
    bundled = [
        constant_is(
            fit_limit(small, together, 1.0), (1.0 + chi2) ** 2 - 1.0, name="m = 2", rtol=1e-6
        ),
        *(
            Check(
                "fact",
                f"I_0 of bundles, m = {m}",
                f"{_constants(*_P, m, 0.0)[1]:.9g}",
                f"{(1.0 + chi2) ** m - 1.0:.9g}",
                math.isclose(_constants(*_P, m, 0.0)[1], (1.0 + chi2) ** m - 1.0, rel_tol=1e-9),
            )
            for m in (3, 5, 8)
        ),
    ]
    randomizers = 200 if quick else 5_000
    least, equality, elsewhere = _excesses(randomizers)
    p0 = 1.0 / (1.0 + math.e)
    equal = _constants(p0, 1.0 - p0, 2, 0.5)
    cases = f"{randomizers} random binary W, m = 2, 3, 5, random pi; m = 2 at the pi of equality"
    return [
        Finding(
            "n chi^2 of the exact unbundled pair, extrapolated",
            f"n = {grid[0]} to {grid[-1]}, p0 = {_P[0]:g}, p1 = {_P[1]:g}",
            tuple(unbundled),
            figure=Figure(
                "Unbundled messages: n chi^2 tends to m I_pi",
                "number of users n",
                "n chi^2",
                tuple(curves),
                log_y=False,
            ),
        ),
        Finding(
            "n chi^2 of the exact bundled pair; I_0 of the bundles",
            f"n = {small[0]} to {small[-1]}",
            tuple(bundled),
        ),
        Finding(
            "least of I_bund/(m I_pi) - 1",
            cases,
            (at_least(least, -_ROUNDING, name="least excess"),),
        ),
        Finding(
            "least of I_bund/(m I_pi) - 1",
            cases,
            (at_least(least, _ROUNDING, name="least excess"),),
            otherwise="away from m = 2 with (1-pi) p0 (1-p0) = pi p1 (1-p1): every binary W has an "
            "interior pi, 1/2 for symmetric RR, where both are equal",
            amended=(
                at_most(equality, _ROUNDING, name="largest difference there"),
                at_least(elsewhere, _ROUNDING, name="least excess elsewhere"),
            ),
            amendment=Verdict.HOLDS_ONLY,
        ),
        Finding(
            "both constants",
            "one case",
            (
                printed_number(equal[0], "2.172323", name="unbundled"),
                printed_number(equal[1], "2.172323", name="bundled"),
            ),
        ),
    ]
