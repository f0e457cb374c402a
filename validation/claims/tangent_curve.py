"""The local privacy curve at epsilon = t mu_n."""

from __future__ import annotations

from typing import Literal

import numpy as np

from fastshuffle import Randomizer, ShuffleExperiment, exact_profile
from validation.claim import Check, Claim, Curve, Figure, Finding, Verdict, at_most, rate_is
from validation.rates import fit_rate, geometric_grid
from validation.reference.constants import fisher_constant, tangent_delta

_SOURCE = "arXiv:2602.09029v5, section 7 and abstract"

CLAIMS = (
    Claim(
        "Both directions at epsilon = t mu_n equal mu_n {phi(t) - t Phi(-t)} + O(1/n), uniformly "
        "for t in compact sets",
        _SOURCE,
        Verdict.HOLDS,
    ),
    Claim(
        "The local curve is within 10 percent of delta, whatever delta",
        "a reading of the absolute remainder as a relative one",
        Verdict.HOLDS_ONLY,
    ),
)

_ROWS = np.array([[0.8, 0.2], [0.4, 0.6]])
_SHARES = (0.0, 0.3, 0.5)
_T = np.linspace(0.0, 3.0, 61)
_DIRECTIONS: tuple[Literal["forward", "reverse"], ...] = ("forward", "reverse")


def _errors(n: int, pi: float, direction: Literal["forward", "reverse"]) -> tuple[float, float]:
    """Return the largest error over t, and the largest relative error where n delta > 100."""
    profile = exact_profile(ShuffleExperiment(Randomizer(_ROWS), n, k=round(pi * n)))
    mu = float(np.sqrt(fisher_constant(_ROWS, pi) / n))
    exact = np.asarray(profile.delta(_T * mu, direction=direction))
    error = np.abs(exact - [tangent_delta(mu, t) for t in _T.tolist()])
    return float(error.max()), float((error / exact)[n * exact > 100.0].max(initial=0.0))


def _far_error(n: int) -> float:
    """Return the largest relative error for t from 3 to 8."""
    profile = exact_profile(ShuffleExperiment(Randomizer(_ROWS), n, k=0))
    mu = float(np.sqrt(fisher_constant(_ROWS, 0.0) / n))
    t = np.linspace(3.0, 8.0, 11)
    exact = np.asarray(profile.delta(t * mu))
    return float(np.abs([tangent_delta(mu, x) for x in t.tolist()] / exact - 1.0).max())


def measure(*, quick: bool) -> list[Finding]:
    """Compare the exact curve with the local one for t from 0 to 3."""
    grid = geometric_grid(100, 10**5 if quick else 10**10, 8 if quick else 17, 10)
    checks: list[Check] = []
    curves: list[Curve] = []
    relative = 0.0
    for pi in _SHARES:
        for direction in _DIRECTIONS:
            errors = [_errors(n, pi, direction) for n in grid]
            relative = max(relative, *(error for _, error in errors))
            name = f"{direction}, pi = {pi:g}"
            values = [error for error, _ in errors]
            checks.append(rate_is(fit_rate(grid, values, 0.5), -1.0, name=name))
            curves.append(Curve.of(name, grid, values, slope=None if curves else -1.0))
    users = 10**4
    return [
        Finding(
            "largest error over t in [0, 3], p0 = 0.2, p1 = 0.6",
            f"n = {grid[0]} to {grid[-1]:.0e}, both directions",
            tuple(checks),
            figure=Figure(
                "Exact curve against the local curve, t in [0, 3]",
                "number of users n",
                "largest absolute error",
                tuple(curves),
            ),
        ),
        Finding(
            "largest relative error",
            f"t in [3, 8], n = {users}; and delta > 100/n, t in [0, 3], on the grid above",
            (at_most(_far_error(users), 0.1, name="t in [3, 8]"),),
            otherwise="where delta > 100/n",
            amended=(at_most(relative, 0.1, name="where delta > 100/n"),),
            amendment=Verdict.HOLDS_ONLY,
        ),
    ]
