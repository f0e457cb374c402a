"""Local asymptotic normality: compositions that differ by h sqrt(n) users."""

from __future__ import annotations

import math

import numpy as np

from validation.claim import Check, Claim, Curve, Figure, Finding, Verdict, rate_is
from validation.rates import fit_rate
from validation.reference import lattice
from validation.reference.deficiency import jitter_and_rounding

_SOURCE = "arXiv:2602.09029v3, section 7 (not in v5)"

CLAIMS = (
    Claim(
        "log dT_{n,k+h sqrt n}/dT_{n,k} = h Delta_n - h^2 I_pi/2 + Rem, Delta_n the linear score "
        "over sqrt(n), with E Rem^2 = O(1/n)",
        _SOURCE,
        Verdict.HOLDS,
    ),
    Claim(
        "The experiment {T_{n,k+h sqrt n}: |h| <= 1} is within O(n^-1/2) of the Gaussian shift "
        "{N(h sqrt(I_pi), 1)} in Le Cam distance",
        _SOURCE,
        Verdict.HOLDS,
    ),
)

_P = 0.2, 0.6
_STEPS = (-1.0, -0.5, 0.5, 1.0)


def _law(n: int, ones: int) -> lattice.Law:
    return lattice.sum_of_binomials([(n - ones, _P[0]), (ones, _P[1])])


def _moments(n: int, pi: float) -> tuple[int, float, float]:
    """Return k, the mean and the standard deviation of the number of ones under T_{n,k}."""
    k = round(pi * n)
    mean = (n - k) * _P[0] + k * _P[1]
    variance = (n - k) * _P[0] * (1.0 - _P[0]) + k * _P[1] * (1.0 - _P[1])
    return k, mean, math.sqrt(variance)


def _remainder(root: int, pi: float) -> float:
    """Return the largest E Rem^2 over h."""
    n = root * root
    k, mean, deviation = _moments(n, pi)
    shift = (_P[1] - _P[0]) * root / deviation  # sqrt(I_pi)
    base = _law(n, k)
    worst = 0.0
    for h in _STEPS:
        low, (q, p) = lattice.aligned(base, _law(n, k + round(h * root)))
        points = low + np.arange(len(q))
        seen = (q > 1e-250) & (p > 1e-250)
        z = (points[seen] - mean) / deviation
        rest = np.log(p[seen] / q[seen]) - h * shift * z + 0.5 * (h * shift) ** 2
        worst = max(worst, float(q[seen] @ rest**2))
    return worst


def _le_cam(root: int, pi: float) -> float:
    """Return an upper bound on the Le Cam distance over the grid of h."""
    n = root * root
    k, centre, deviation = _moments(n, pi)
    shift = (_P[1] - _P[0]) * root / deviation
    gaps = [
        jitter_and_rounding(_law(n, k + round(h * root)), centre, deviation, h * shift)
        for h in (0.0, *_STEPS)
    ]
    return max(gaps)


def measure(*, quick: bool) -> list[Finding]:
    """Sum the remainder, and the deficiencies of two explicit kernels, over the whole laws."""
    roots = sorted({10 * round(x / 10) for x in np.geomspace(10, 60 if quick else 500, 8)})
    grid = [root * root for root in roots]
    checks: list[Check] = []
    distances: list[Check] = []
    curves: list[Curve] = []
    for pi in (0.3, 0.5, 0.7):
        rest = [_remainder(root, pi) for root in roots]
        bound = [_le_cam(root, pi) for root in roots]
        checks.append(rate_is(fit_rate(grid, rest, 0.5), -1.0, name=f"pi = {pi:g}"))
        distances.append(rate_is(fit_rate(grid, bound, 0.5), -0.5, name=f"pi = {pi:g}"))
        curves += [
            Curve.of(f"E Rem^2, pi = {pi:g}", grid, rest, slope=None if curves else -1.0),
            Curve.of(f"Le Cam bound, pi = {pi:g}", grid, bound,
                     slope=None if len(curves) > 1 else -0.5),
        ]  # fmt: skip
    span = f"n = {grid[0]} to {grid[-1]}, h = -1, -1/2, 1/2, 1"
    return [
        Finding(
            "largest E Rem^2 over h, p0 = 0.2, p1 = 0.6",
            span,
            tuple(checks),
            figure=Figure(
                "Local asymptotic normality",
                "number of users n",
                "E Rem^2 and bound on the Le Cam distance",
                tuple(curves),
            ),
        ),
        Finding(
            "largest total variation over h after a uniform jitter, and after rounding: an upper "
            "bound on the distance",
            span,
            tuple(distances),
        ),
    ]
