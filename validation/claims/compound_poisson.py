"""Sparse errors on three outputs: an independent Poisson vector."""

from __future__ import annotations

import numpy as np
from scipy.signal import convolve2d

from validation.claim import Check, Claim, Curve, Figure, Finding, Verdict, rate_is
from validation.rates import fit_rate, geometric_grid
from validation.reference import lattice
from validation.reference.constants import Floats

CLAIMS = (
    Claim(
        "d = 3, W_0 = (1 - (a1+a2)/n, a1/n, a2/n), W_1 = (b0/n, 1 - (b0+b2)/n, b2/n), k/n = pi: "
        "the centred histogram (N_1 - k, N_2) tends to the image (A1 - B0 - B2, A2 + B2) of "
        "independent Poisson errors in total variation at rate O(1/n), shifted by one under "
        "T_{n,k+1}",
        "arXiv:2603.10073v1, section 5; rate: the description of the preprint, zenodo 18910239 v4",
        Verdict.HOLDS,
    ),
)

_ZEROS = (0.7, 0.4)  # errors to outputs 1 and 2
_ONES = (0.5, 0.8)  # errors to outputs 0 and 2
_MOST_ERRORS = 40


def _thinned(errors: lattice.Law, rates: tuple[float, float]) -> Floats:
    """Return the law of two kinds of errors, from that of their sum."""
    law = np.zeros((_MOST_ERRORS + 1, _MOST_ERRORS + 1))
    share = rates[0] / (rates[0] + rates[1])
    for total, mass in zip(errors.points.astype(int).tolist(), errors.masses, strict=True):
        if total <= _MOST_ERRORS:
            first = lattice.binomial(total, share)
            for i, part in zip(first.points.astype(int).tolist(), first.masses, strict=True):
                law[i, total - i] = mass * part
    return law


def _image(zeros: Floats, ones: Floats) -> Floats:
    """Return the law of ``(A1 - B0 - B2, A2 + B2)``, the first offset by twice the most errors."""
    size = 2 * _MOST_ERRORS + 1
    moved = np.zeros((size, _MOST_ERRORS + 1))
    for b0, b2 in np.argwhere(ones > 0.0):
        moved[size - 1 - b0 - b2, b2] += ones[b0, b2]
    law: Floats = convolve2d(zeros, moved)
    return law


def _exact(n: int, zeros: int, ones: int) -> Floats:
    """Return the law of the errors of users at either input."""
    laws = [
        _thinned(lattice.binomial(count, sum(rates) / n), rates)
        for count, rates in ((zeros, _ZEROS), (ones, _ONES))
    ]
    return _image(laws[0], laws[1])


def _limit(pi: float) -> Floats:
    laws = [
        _thinned(lattice.poisson(share * sum(rates)), rates)
        for share, rates in ((1.0 - pi, _ZEROS), (pi, _ONES))
    ]
    return _image(laws[0], laws[1])


def measure(*, quick: bool) -> list[Finding]:
    """Sum total variations over the whole laws of the histogram."""
    grid = geometric_grid(20, 10**4 if quick else 10**8, 7 if quick else 13, 10)
    checks: list[Check] = []
    curves: list[Curve] = []
    for pi in (0.0, 0.3, 0.5):
        limit = _limit(pi)
        for step in (0, 1):
            # a one who replaces a zero shifts N_1 - k by one, in both laws alike
            values = [
                lattice.total_variation(
                    _exact(n, n - round(pi * n) - step, round(pi * n) + step), limit
                )
                for n in grid
            ]
            name = f"T_{{n,k{'+1' if step else ''}}}, pi = {pi:g}"
            checks.append(rate_is(fit_rate(grid, values, 1.0), -1.0, name=name))
            curves.append(Curve.of(name, grid, values, slope=None if curves else -1.0))
    return [
        Finding(
            "total variation between the exact law of the histogram and the limit",
            f"n = {grid[0]} to {grid[-1]:.0e}",
            tuple(checks),
            figure=Figure(
                "Sparse errors on three outputs against the Poisson vector",
                "number of users n",
                "total variation",
                tuple(curves),
            ),
        )
    ]
