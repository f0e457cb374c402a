"""The Fisher constant as a function of the composition."""

from __future__ import annotations

import math

import numpy as np

from validation.claim import Claim, Curve, Figure, Finding, Verdict, at_least, at_most
from validation.reference.constants import Floats, fisher_constant

CLAIMS = (
    Claim(
        "I_pi is convex in pi, so that its largest value is at pi = 0 or 1",
        "matrix-fractional functions are convex; recorded by this project",
        Verdict.HOLDS,
    ),
    Claim(
        "Symmetric binary RR: I_pi = (e^epsilon0 - 1)^2 / e^epsilon0 for every pi",
        "direct from the definition; arXiv:2602.09029v5, section 10",
        Verdict.HOLDS,
    ),
)

_PI = np.linspace(0.0, 1.0, 41)


def _rows(rng: np.random.Generator) -> Floats:
    rows: Floats = rng.dirichlet(np.full(int(rng.integers(2, 7)), 1.0), 2) + 1e-3
    return rows / rows.sum(axis=1, keepdims=True)


def measure(*, quick: bool) -> list[Finding]:
    """Take second differences for random randomizers."""
    rng = np.random.default_rng(20260304)
    randomizers = 100 if quick else 3_000
    least, above = math.inf, -math.inf
    curves = []
    for i in range(randomizers):
        rows = _rows(rng)
        values = np.array([fisher_constant(rows, pi) for pi in _PI.tolist()])
        least = min(least, float((np.diff(values, 2) / values[1:-1]).min()))
        above = max(above, float(values[1:-1].max() / max(values[0], values[-1])))
        if i < 6:
            name = f"random W, d = {rows.shape[1]}"
            curves.append(Curve.of(name, _PI, values / values.max(), line=True))
    spread = 0.0
    for epsilon0 in np.geomspace(0.01, 8.0, 20).tolist():
        p = 1.0 / (1.0 + math.exp(epsilon0))
        claimed = math.expm1(epsilon0) ** 2 / math.exp(epsilon0)
        rows = np.array([[1.0 - p, p], [p, 1.0 - p]])
        spread = max(
            spread, *(abs(fisher_constant(rows, pi) / claimed - 1.0) for pi in _PI.tolist())
        )
    return [
        Finding(
            "least second difference over the value; largest interior value over that at the ends",
            f"{randomizers} random W with d = 2 to 6, 41 values of pi",
            (
                at_least(least, -1e-12, name="second difference"),
                at_most(above, 1.0 + 1e-12, name="interior over ends"),
            ),
            figure=Figure(
                "I_pi is convex in pi",
                "share pi of users who hold input 1",
                "I_pi over its maximum",
                tuple(curves),
                log_x=False,
                log_y=False,
            ),
        ),
        Finding(
            "largest relative difference",
            "20 values of epsilon0 from 0.01 to 8, 41 of pi",
            (at_most(spread, 1e-10, name="difference"),),
        ),
    ]
