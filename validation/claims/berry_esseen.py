"""Berry-Esseen: the law of the privacy loss is normal up to order n^-1/2."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import ndtr

from validation.claim import Check, Claim, Curve, Figure, Finding, Verdict, constant_is, rate_is
from validation.rates import fit_limit, fit_rate, geometric_grid
from validation.reference import lattice
from validation.reference.constants import Floats

CLAIMS = (
    Claim(
        "For L - 1 at k = 0, a mean of n i.i.d. lattice variables X of span h: "
        "sqrt(n) sup|F - Phi| -> (|E X^3| + 3 h sigma^2)/(6 sqrt(2 pi) sigma^3)",
        "C.-G. Esseen, A moment inequality with an application to the central limit theorem, 1956",
        Verdict.HOLDS,
    ),
    Claim(
        "The privacy loss is N(-mu^2/2, mu^2) under Q and N(mu^2/2, mu^2) under P up to "
        "O(n^-1/2) in distribution, for every composition",
        "arXiv:2602.09029v2, abstract; v3, section 6",
        Verdict.HOLDS,
    ),
    Claim(
        "Esseen's constant of L - 1 is that of the privacy loss log L as well",
        "a reading of the two statements together",
        Verdict.CORRECTED,
    ),
)

_P = 0.3, 0.6


def _kolmogorov(standardized: Floats, masses: Floats) -> float:
    """Return sup |F - Phi| for a law on increasing points, at and just before each point."""
    cumulative = np.cumsum(masses)
    normal = ndtr(standardized)
    return float(max(np.abs(cumulative - normal).max(), np.abs(cumulative - masses - normal).max()))


def _mean_of_ratios(n: int) -> float:
    points, q, _ = lattice.binary_datasets(*_P, n, 0)
    p0 = _P[0]
    return _kolmogorov((points - n * p0) / math.sqrt(n * p0 * (1.0 - p0)), q)


def _losses(n: int, pi: float) -> tuple[float, float]:
    """Return the distances of the loss from its normal law under Q and under P."""
    k = round(pi * n)
    p0, p1 = _P
    points, q, p = lattice.binary_datasets(p0, p1, n, k)
    variance = n * ((1.0 - pi) * p0 * (1.0 - p0) + pi * p1 * (1.0 - p1))
    mu = (p1 - p0) / math.sqrt(variance)
    near = np.abs(points - n * p0 - k * (p1 - p0)) < 12.0 * math.sqrt(variance)
    q, p = q[near], p[near]
    loss = np.log(p / q)
    return (
        _kolmogorov((loss + 0.5 * mu * mu) / mu, q),
        _kolmogorov((loss - 0.5 * mu * mu) / mu, p),
    )


def _constants() -> tuple[float, float]:
    """Return the claimed constants for L - 1, and for the loss with its quadratic term."""
    p0, p1 = _P
    values = np.array([(1.0 - p1) / (1.0 - p0) - 1.0, p1 / p0 - 1.0])
    law = np.array([1.0 - p0, p0])
    variance, third = float(law @ values**2), float(law @ values**3)
    span = float(values[1] - values[0])
    scale = 6.0 * math.sqrt(2.0 * math.pi) * variance**1.5
    return (
        (abs(third) + 3.0 * span * variance) / scale,
        (abs(third - 3.0 * variance**2) + 3.0 * span * variance) / scale,
    )


def measure(*, quick: bool) -> list[Finding]:
    """Measure Kolmogorov distances over the whole law."""
    grid = geometric_grid(100, 10**4 if quick else 10**6, 9 if quick else 15, 10)
    span = f"n = {grid[0]} to {grid[-1]:.0e}"
    esseen, corrected = _constants()

    def series(distance: Callable[[int], float]) -> list[float]:
        return [distance(n) for n in grid]

    means = series(_mean_of_ratios)
    curves = [Curve.of("L - 1 under Q, pi = 0", grid, means, slope=-0.5)]
    rates: list[Check] = []
    of_loss: list[float] = []
    for pi in (0.0, 0.3, 0.5):
        pairs = [_losses(n, pi) for n in grid]
        for i, law in enumerate("QP"):
            values = [pair[i] for pair in pairs]
            rates.append(rate_is(fit_rate(grid, values), -0.5, name=f"under {law}, pi = {pi:g}"))
            curves.append(Curve.of(f"loss under {law}, pi = {pi:g}", grid, values))
            if pi == 0.0 and law == "Q":
                of_loss = values
    scaled = {
        name: fit_limit(grid, [v * math.sqrt(n) for n, v in zip(grid, values, strict=True)], 0.5)
        for name, values in (("ratio", means), ("loss", of_loss))
    }
    quantity = "sqrt(n) sup |F - Phi|, extrapolated"
    return [
        Finding(
            quantity,
            span,
            (
                rate_is(fit_rate(grid, means), -0.5),
                constant_is(scaled["ratio"], esseen),
            ),
        ),
        Finding(
            "sup |F - Phi| of the standardized loss, p0 = 0.3, p1 = 0.6",
            span,
            tuple(rates),
            figure=Figure(
                "Distance of the privacy loss from its normal law",
                "number of users n",
                "sup |F - Phi|",
                tuple(curves),
            ),
        ),
        Finding(
            f"{quantity}, for log L under Q at k = 0",
            span,
            (constant_is(scaled["loss"], esseen),),
            otherwise="(|E X^3 - 3 sigma^4| + 3 h sigma^2)/(6 sqrt(2 pi) sigma^3), from the "
            "quadratic term of the logarithm",
            amended=(constant_is(scaled["loss"], corrected),),
            amendment=Verdict.CORRECTED,
        ),
    ]
