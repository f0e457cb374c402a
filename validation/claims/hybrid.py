"""Two frequent outputs and a rare one: a Gaussian factor and a Poisson field."""

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
    constant_is,
    rate_at_most,
    rate_is,
)
from validation.rates import fit_limit, fit_rate, geometric_grid
from validation.reference import lattice
from validation.reference.constants import Floats

_SOURCE = "arXiv:2603.13407v1, abstract"

CLAIMS = (
    Claim(
        "Rare output at rate a/n under W_0 and share r under W_1, two frequent ones: the whole "
        "curve is within O(n^-1/2) of its limit, whose Gaussian shift has vanished, and that rate "
        "is sharp in general",
        _SOURCE,
        Verdict.HOLDS,
    ),
    Claim(
        "Where both inputs agree on the frequent outputs given that one of them occurs, the "
        "rate is O(1/n)",
        f"{_SOURCE} (compatibility condition)",
        Verdict.HOLDS,
    ),
    Claim(
        "sqrt(n) TV(Bin(n, b0), Bin(n-1, b0) + Bern(b1)) tends to |b1 - b0|/sqrt(2 pi b0 (1-b0))",
        f"{_SOURCE} (binomial plus Bernoulli); constant by the local limit theorem",
        Verdict.HOLDS,
    ),
)

_RATE, _SHARE = 1.5, 0.4
_MOST_RARE = 45


def _thresholds() -> Floats:
    """Return values of e^epsilon: the jumps of the limiting likelihood ratio, and others."""
    jumps = (1.0 - _SHARE) + _SHARE / _RATE * np.arange(12)
    return np.union1d(jumps, np.linspace(0.2, 4.0, 39))


def _limit(thresholds: Floats) -> Floats:
    law = lattice.poisson(_RATE)
    ratio = (1.0 - _SHARE) + _SHARE * law.points / _RATE
    return np.array([float(law.masses @ np.maximum(ratio - t, 0.0)) for t in thresholds.tolist()])


def _exact(n: int, b0: float, b1: float, thresholds: Floats) -> Floats:
    """Return the exact positive parts at k = 0, summed over the histogram."""
    rare = lattice.binomial(n, _RATE / n)
    inner = 1.0 - _RATE / n
    w = (
        (1.0 - _SHARE) * (1.0 - b1) / (inner * (1.0 - b0)),
        (1.0 - _SHARE) * b1 / (inner * b0),
        _SHARE * n / _RATE,
    )
    total = np.zeros(len(thresholds))
    for j, mass in zip(rare.points.astype(int).tolist(), rare.masses.tolist(), strict=True):
        if j > _MOST_RARE or j > n:
            break
        block = lattice.binomial(n - j, b0)
        ones = block.points
        ratio = ((n - j - ones) * w[0] + ones * w[1] + j * w[2]) / n
        for i, threshold in enumerate(thresholds.tolist()):
            total[i] += mass * float(block.masses @ np.maximum(ratio - threshold, 0.0))
    return total


def measure(*, quick: bool) -> list[Finding]:
    """Compare the exact curve with the hybrid limit at the jumps and between them."""
    grid = geometric_grid(50, 20_000 if quick else 200_000, 9 if quick else 13)
    thresholds = _thresholds()
    limit = _limit(thresholds)
    curves: list[Curve] = []
    checks: dict[bool, list[Check]] = {True: [], False: []}
    for b0, b1 in ((0.3, 0.6), (0.5, 0.2), (0.3, 0.3), (0.5, 0.5)):
        values = [float(np.abs(_exact(n, b0, b1, thresholds) - limit).max()) for n in grid]
        compatible = b0 == b1
        rate = fit_rate(grid, values, 0.5)
        claimed = -1.0 if compatible else -0.5
        name = f"b0 = {b0:g}, b1 = {b1:g}"
        check = (
            rate_at_most(rate, claimed, name=name)
            if compatible
            else rate_is(rate, claimed, name=name)
        )
        checks[compatible].append(check)
        curves.append(Curve.of(name, grid, values, slope=claimed if b0 == 0.3 else None))
    b0, b1 = 0.3, 0.6
    wide = geometric_grid(50, 10**5 if quick else 10**7, 10)
    distances = [(b1 - b0) * float(lattice.binomial(n - 1, b0).masses.max()) for n in wide]
    scaled = [math.sqrt(n) * value for n, value in zip(wide, distances, strict=True)]
    span = f"n = {grid[0]} to {grid[-1]}"
    quantity = "largest difference of E(L - e^epsilon)_+, epsilon at jumps of the limit and others"
    return [
        Finding(
            quantity,
            span,
            tuple(checks[False]),
            figure=Figure(
                "Exact curve against the hybrid limit, k = 0",
                "number of users n",
                "largest absolute difference",
                tuple(curves),
            ),
        ),
        Finding(quantity, span, tuple(checks[True])),
        Finding(
            "sqrt(n) |b1 - b0| max Bin(n-1, b0), b0 = 0.3, b1 = 0.6",
            f"n = {wide[0]} to {wide[-1]:.0e}",
            (
                rate_is(fit_rate(wide, distances, 1.0), -0.5),
                constant_is(
                    fit_limit(wide, scaled, 1.0),
                    (b1 - b0) / math.sqrt(2.0 * math.pi * b0 * (1.0 - b0)),
                    rtol=1e-3,
                ),
            ),
        ),
    ]
