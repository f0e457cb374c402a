"""The likelihood ratio is linear in the histogram up to a remainder of order 1/n."""

from __future__ import annotations

import numpy as np

from validation.claim import Check, Claim, Curve, Figure, Finding, Verdict, rate_is
from validation.rates import fit_rate, geometric_grid
from validation.reference import lattice
from validation.reference.constants import Floats, fixed_covariance, score

_SOURCE = "arXiv:2602.09029v5, section 5 and abstract"

CLAIMS = tuple(
    Claim(
        f"L - 1 = (1/n) s_pi^T (N - E N) + Rem with E Rem^{order} = O(n^-{order}), "
        "over interior compositions",
        _SOURCE,
        Verdict.HOLDS,
    )
    for order in (2, 4)
)

_BINARY = np.array([[0.8, 0.2], [0.4, 0.6]])
_TERNARY = np.array([[0.5, 0.3, 0.2], [0.2, 0.35, 0.45]])
_SHARES = (0.1, 0.3, 0.5, 0.9)


def _moments(q: Floats, p: Floats, linear: Floats) -> tuple[float, float]:
    """Return the second and fourth moment of the remainder under Q."""
    seen = q > 1e-290
    rest = p[seen] / q[seen] - 1.0 - linear[seen]
    return float(q[seen] @ rest**2), float(q[seen] @ rest**4)


def _binary(n: int, k: int) -> tuple[float, float]:
    points, q, p = lattice.binary_datasets(_BINARY[0, 1], _BINARY[1, 1], n, k)
    slope = score(_BINARY[:, ::-1], fixed_covariance(_BINARY[:, ::-1], k / n))[0]
    mean = (n - k) * _BINARY[0, 1] + k * _BINARY[1, 1]
    return _moments(q, p, slope * (points - mean) / n)


def _ternary(n: int, k: int) -> tuple[float, float]:
    others = lattice.histogram(_TERNARY, (n - 1 - k, k), n + 1)
    q, p = (lattice.with_one_more(others, row) for row in _TERNARY)
    s = score(_TERNARY, fixed_covariance(_TERNARY, k / n))
    mean = (n - k) * _TERNARY[0] + k * _TERNARY[1]
    counts = np.indices(q.shape)
    linear = sum(s[y] * (counts[y] - mean[y]) for y in range(2)) / n
    return _moments(q.ravel(), p.ravel(), np.asarray(linear).ravel())


def measure(*, quick: bool) -> list[Finding]:
    """Sum the remainder over the whole law, for two and three outputs."""
    binary_grid = geometric_grid(50, 2_000 if quick else 20_000, 8 if quick else 12, 10)
    ternary_grid = geometric_grid(20, 200 if quick else 500, 8 if quick else 10, 10)
    values = {
        f"d = 2, pi = {pi:g}": (binary_grid, [_binary(n, round(pi * n)) for n in binary_grid])
        for pi in _SHARES
    }
    values["d = 3, pi = 0.3"] = (
        ternary_grid,
        [_ternary(n, round(0.3 * n)) for n in ternary_grid],
    )
    findings = []
    for i, order in enumerate((2, 4)):
        checks: list[Check] = []
        curves: list[Curve] = []
        for name, (grid, moments) in values.items():
            column = [moment[i] for moment in moments]
            checks.append(rate_is(fit_rate(grid, column, correction=1.0), -order, name=name))
            curves.append(Curve.of(name, grid, column, slope=None if curves else -order))
        findings.append(
            Finding(
                f"E Rem^{order} under T_{{n,k}}, summed over the law",
                f"n = {binary_grid[0]} to {binary_grid[-1]} (d = 3: to {ternary_grid[-1]})",
                tuple(checks),
                figure=Figure(
                    f"Remainder of the linear likelihood ratio, moment {order}",
                    "number of users n",
                    f"E Rem^{order}",
                    tuple(curves),
                ),
            )
        )
    return findings
