"""The trade-off function against that of mu_n-GDP, mu_n = sqrt(I_pi/n)."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr, ndtri

from validation.claim import (
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
from validation.reference.constants import normal_density

_SOURCE = "arXiv:2602.09029v3, section 6"

CLAIMS = (
    Claim(
        "sup over alpha |T(alpha) - G_{mu_n}(alpha)| = O(n^-1/2) for a fixed full-support W",
        _SOURCE,
        Verdict.HOLDS,
    ),
    Claim(
        "n^-1/2 is the order of that distance",
        "a reading of the same bound as sharp",
        Verdict.CORRECTED,
    ),
    Claim(
        "n sup |T - G_{mu_n}| tends to (v/s^2) phi(1) |(p0 + p1 - 1)/2 + g/3|, v = p1 - p0, "
        "s^2 and g s^2 the variance and third central moment a user",
        "Edgeworth expansion of the lattice law; in no paper",
        Verdict.HOLDS,
    ),
)

# p0, p1, k/n
_CASES = ((0.2, 0.6, 0.0), (0.2, 0.6, 0.8), (0.25, 0.75, 0.0), (0.25, 0.75, 0.5))


def _moments(p0: float, p1: float, pi: float) -> tuple[float, float]:
    """Return the variance and the third central moment of the sum, a user."""
    zero, one = p0 * (1.0 - p0), p1 * (1.0 - p1)
    return (
        (1.0 - pi) * zero + pi * one,
        (1.0 - pi) * zero * (1.0 - 2.0 * p0) + pi * one * (1.0 - 2.0 * p1),
    )


def _distance(p0: float, p1: float, pi: float, n: int) -> float:
    """Return the largest distance, at the vertices and between them."""
    k = round(pi * n)
    _, q, p = lattice.binary_datasets(p0, p1, n, k)
    alpha = np.cumsum(q[::-1])[::-1]
    gap = np.cumsum((p - q)[::-1])[::-1]  # 1 - alpha - beta, without its cancellation
    inside = (alpha > 1e-12) & (alpha < 1.0 - 1e-12)
    alpha, gap = alpha[inside][::-1], gap[inside][::-1]
    share = np.linspace(0.0, 1.0, 9)[:, None]
    levels = (alpha[:-1] + share * np.diff(alpha)).ravel()
    gaps = (gap[:-1] + share * np.diff(gap)).ravel()
    variance, _ = _moments(p0, p1, pi)
    mu = (p1 - p0) / math.sqrt(n * variance)
    z = -ndtri(levels)
    return float(np.abs(gaps - (ndtr(z) - ndtr(z - mu))).max())


def measure(*, quick: bool) -> list[Finding]:
    """Compare exact trade-off functions with the Gaussian ones at all levels."""
    grid = geometric_grid(100, 10**4 if quick else 10**6, 8 if quick else 13, 10)
    curves: list[Curve] = []
    bounds, sharp, fast, constants = [], [], [], []
    for p0, p1, pi in _CASES:
        name = f"p0 = {p0:g}, p1 = {p1:g}, pi = {pi:g}"
        values = [_distance(p0, p1, pi, n) for n in grid]
        rate = fit_rate(grid, values, 0.5)
        variance, third = _moments(p0, p1, pi)
        skew = abs(0.5 * (p0 + p1 - 1.0) + third / variance / 3.0)
        claimed = (p1 - p0) / variance * normal_density(1.0) * skew
        bounds.append(rate_at_most(rate, -0.5, name=name))
        sharp.append(rate_is(rate, -0.5, name=name))
        if claimed > 0.0:
            fast.append(rate_is(rate, -1.0, name=name))
            scaled = [n * value for n, value in zip(grid, values, strict=True)]
            constants.append(constant_is(fit_limit(grid, scaled, 0.5), claimed, name=name))
        else:
            fast.append(rate_at_most(rate, -1.0, name=f"{name} (no skewness)"))
        curves.append(Curve.of(name, grid, values, slope=None if curves else -1.0))
    quantity = "sup over all levels of |T - G|, from the whole law"
    span = f"n = {grid[0]} to {grid[-1]:.0e}"
    figure = Figure(
        "Trade-off function against mu-GDP",
        "number of users n",
        "sup |T - G|",
        (
            *curves,
            Curve.of("the bound's order n^-1/2", grid, [0.2 * n**-0.5 for n in grid], line=True),
        ),
    )
    return [
        Finding(quantity, span, tuple(bounds), figure=figure),
        Finding(
            quantity,
            span,
            tuple(sharp),
            otherwise="O(1/n): mu_n itself is of order n^-1/2 and the error is relative to it",
            amended=tuple(fast),
            amendment=Verdict.CORRECTED,
        ),
        Finding(f"n times the {quantity}", span, tuple(constants)),
    ]
