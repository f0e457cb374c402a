"""The Jensen-Shannon divergence of the pair to second order at k = 0."""

from __future__ import annotations

import numpy as np
from mpmath import mp, mpf

from validation.claim import (
    Claim,
    Curve,
    Figure,
    Finding,
    Verdict,
    constant_is,
    printed_number,
    rate_is,
)
from validation.rates import fit_limit, fit_rate, geometric_grid
from validation.reference import mp as reference
from validation.reference.constants import ratio_moment

_P = 0.2, 0.6
_ROWS = np.array([[1.0 - p, p] for p in _P])
_DIGITS = 40

CLAIMS = (
    Claim(
        "JSD(T_{n,0}, T_{n,1}) = chi^2/(8n) + O(n^-2)",
        "arXiv:2602.09029v1 and v2, abstracts",
        Verdict.HOLDS,
    ),
    Claim(
        "JSD = chi^2/(8n) - mu_3/(16 n^2) + O(n^-3), mu_3 = E (w-1)^3",
        "a summary of arXiv:2602.09029 in circulation",
        Verdict.CORRECTED,
    ),
    Claim(
        "JSD = chi^2/(8n) + (7 chi^4/64 - mu_3/16)/n^2 + O(n^-3)",
        "arXiv:2602.09029v1, abstract",
        Verdict.HOLDS,
    ),
    Claim(
        "The third-order coefficient is 7 (mu_4 - 3 chi^4)/192 - 15 mu_3 chi^2/64 + 31 chi^6/128",
        "Taylor series of the divergence with the moments of a mean of n ratios; in no paper",
        Verdict.HOLDS,
    ),
)


def _coefficients() -> tuple[float, float, float, float]:
    """Return the first, the printed and the right second, and the third coefficient."""
    chi2, mu3, mu4 = (ratio_moment(_ROWS, order) for order in (2, 3, 4))
    return (
        chi2 / 8.0,
        -mu3 / 16.0,
        7.0 * chi2**2 / 64.0 - mu3 / 16.0,
        7.0 * (mu4 - 3.0 * chi2**2) / 192.0 - 15.0 * mu3 * chi2 / 64.0 + 31.0 * chi2**3 / 128.0,
    )


def measure(*, quick: bool) -> list[Finding]:
    """Subtract the terms from 40-digit values of the divergence."""
    grid = geometric_grid(30, 2_000 if quick else 100_000, 8 if quick else 14)
    exact = [reference.jensen_shannon_large([(n - 1, _P[0])], _P[0], _P[1], _DIGITS) for n in grid]
    first, printed, second, third = _coefficients()
    with mp.workdps(_DIGITS):
        chi2 = mpf(_P[1] - _P[0]) ** 2 / (mpf(_P[0]) * (1 - mpf(_P[0])))
        rest = [value - chi2 / (8 * n) for n, value in zip(grid, exact, strict=True)]
        scaled = [float(value * n**2) for n, value in zip(grid, rest, strict=True)]
        after = {
            name: [float(value - mpf(c) / n**2) for n, value in zip(grid, rest, strict=True)]
            for name, c in (("printed", printed), ("right", second))
        }
    found_second = fit_limit(grid, scaled, 1.0)
    found_third = fit_limit(
        grid, [n**3 * value for n, value in zip(grid, after["right"], strict=True)], 1.0
    )
    size = {name: [abs(value) for value in values] for name, values in after.items()}
    found_first = fit_limit(grid, [n * float(v) for n, v in zip(grid, exact, strict=True)], 1.0)
    right = (
        constant_is(found_second, second, name="second order", rtol=1e-3),
        rate_is(fit_rate(grid, size["right"], 1.0), -3.0, name="remainder"),
    )
    quantity = f"JSD to {_DIGITS} digits less the terms, p0 = {_P[0]:g}, p1 = {_P[1]:g}"
    span = f"n = {grid[0]} to {grid[-1]}"
    return [
        Finding(
            quantity,
            span,
            (
                constant_is(found_first, first, name="first order", rtol=1e-4),
                rate_is(fit_rate(grid, [abs(float(v)) for v in rest], 1.0), -2.0, name="remainder"),
            ),
        ),
        Finding(
            quantity,
            span,
            (
                constant_is(found_second, printed, name="second order", rtol=1e-3),
                rate_is(fit_rate(grid, size["printed"], 1.0), -3.0, name="remainder"),
            ),
            otherwise="7 chi^4/64 - mu_3/16 at second order",
            amended=right,
            amendment=Verdict.CORRECTED,
        ),
        Finding(
            quantity,
            span,
            (*right, printed_number(second, "0.015625", name="7 chi^4/64 - mu_3/16")),
            figure=Figure(
                "Jensen-Shannon divergence at k = 0 less its terms",
                "number of users n",
                "absolute remainder",
                (
                    Curve.of("first order", grid, [abs(float(v)) for v in rest], slope=-2.0),
                    Curve.of("with -mu_3/16 (printed)", grid, size["printed"], slope=-2.0),
                    Curve.of("with 7 chi^4/64 - mu_3/16", grid, size["right"], slope=-3.0),
                ),
            ),
        ),
        Finding(
            "n^3 times the remainder, extrapolated",
            span,
            (constant_is(found_third, third, name="third order", rtol=2e-3),),
        ),
    ]
