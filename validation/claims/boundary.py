"""The boundary of the Gaussian regime: randomized response with e^epsilon0 / n = a_n -> 0."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import ndtr

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

_SOURCE = "arXiv:2602.09029v3, section 10 (v5, section 10)"

CLAIMS = (
    Claim(
        "The privacy loss of RR with e^epsilon0/n = a_n -> 0 is normal up to O(sqrt(a_n)), "
        "along every sequence a_n",
        _SOURCE,
        Verdict.HOLDS,
    ),
    Claim(
        "At k = 0, sup|F - Phi| / sqrt(a_n) tends to 5/(6 sqrt(2 pi))",
        "Edgeworth expansion of the Poisson law, with the quadratic term of the logarithm; in no "
        "paper",
        Verdict.HOLDS,
    ),
)

# a_n, and the largest n of the quick and of the full grid: 1/a_n up to about 1e4 and 1e5
_SEQUENCES: dict[str, tuple[Callable[[float], float], float, float]] = {
    "n^-1/4": (lambda n: n**-0.25, 1e12, 1e15),
    "n^-1/2": (lambda n: n**-0.5, 1e8, 1e10),
    "n^-3/4": (lambda n: n**-0.75, 2e5, 5e6),
    "1/log n": (lambda n: 1.0 / math.log(n), 1e12, 1e15),
}


def _distance(n: int, a: float, pi: float) -> float:
    """Return sup |F - Phi| of the standardized loss under Q."""
    odds = a * n
    p0 = 1.0 / (1.0 + odds)
    k = round(pi * n)
    _, q, p = lattice.binary_datasets(p0, odds * p0, n, k)
    mu = math.expm1(math.log(odds)) / math.sqrt(n * odds)
    inside = (q > 1e-200) & (p > 1e-200)
    q, p = q[inside], p[inside]
    standardized = (np.log(p / q) + 0.5 * mu * mu) / mu
    cumulative, normal = np.cumsum(q), ndtr(standardized)
    return float(max(np.abs(cumulative - normal).max(), np.abs(cumulative - q - normal).max()))


def measure(*, quick: bool) -> list[Finding]:
    """Fit the distance against 1/a_n along four sequences."""
    checks: list[Check] = []
    curves: list[Curve] = []
    constants: list[Check] = []
    for name, (a_of, quick_end, end) in _SEQUENCES.items():
        slow = "log" in name
        users = geometric_grid(10**3, int(quick_end if quick else end), 9 if quick else 15)
        for pi in (0.0, 0.5):
            inverse = [1.0 / a_of(n) for n in users]
            values = [_distance(n, a_of(n), pi) for n in users]
            label = f"a_n = {name}, pi = {pi:g}"
            rate = fit_rate(inverse, values, None if slow else 1.0)
            check = rate_at_most if slow else rate_is
            checks.append(check(rate, -0.5, name=f"in 1/a_n, {label}"))
            curves.append(Curve.of(label, inverse, values, slope=None if curves else -0.5))
            if pi == 0.0 and not slow:  # a_n falls too little there to be extrapolated
                scaled = [v * math.sqrt(x) for v, x in zip(values, inverse, strict=True)]
                constants.append(
                    constant_is(
                        fit_limit(inverse, scaled, 0.5),
                        5.0 / (6.0 * math.sqrt(2.0 * math.pi)),
                        name=label,
                        rtol=0.02,
                    )
                )
    span = "four sequences, n = 1e3 to " + ", ".join(
        f"{of[1 if quick else 2]:.0e}" for of in _SEQUENCES.values()
    )
    return [
        Finding(
            "sup |F - Phi| of the loss under Q, against 1/a_n",
            span,
            tuple(checks),
            figure=Figure(
                "Randomized response towards the boundary of the Gaussian regime",
                "1/a_n = n / e^epsilon0",
                "sup |F - Phi|",
                tuple(curves),
            ),
        ),
        Finding("the same over sqrt(a_n), extrapolated", span, tuple(constants)),
    ]
