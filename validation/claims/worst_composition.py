"""Which composition of the others is the worst for the user who differs."""

from __future__ import annotations

import numpy as np

from fastshuffle import ShuffleExperiment, binary_randomized_response, exact_profile
from validation.claim import (
    Claim,
    Curve,
    Figure,
    Finding,
    Verdict,
    at_most,
)
from validation.rates import geometric_grid
from validation.reference.constants import Floats

CLAIMS = (
    Claim(
        "The worst composition at every epsilon is an end point, k = 0 or k = n - 1",
        "a reading of the convexity of I_pi at finite n",
        Verdict.FALSE,
    ),
    Claim(
        "Its excess over the end points at epsilon = 0 vanishes as n grows: it is below 1/n",
        "total variation is (p1 - p0) max R; recorded by this project",
        Verdict.HOLDS,
    ),
)

_EPSILON0 = 1.0
_EPSILONS = (0.0, 0.037, 0.147)


def _forward(n: int, ks: list[int], epsilons: tuple[float, ...]) -> Floats:
    rr = binary_randomized_response(_EPSILON0)
    return np.array(
        [
            exact_profile(ShuffleExperiment(rr, n, k=k)).delta(list(epsilons), direction="forward")
            for k in ks
        ]
    )


def _excess(n: int) -> float:
    """Return how far the worst total variation of 41 compositions lies above the ends."""
    ks = sorted({round(share * (n - 1)) for share in np.linspace(0.0, 1.0, 41).tolist()})
    values = _forward(n, ks, (0.0,))[:, 0]
    return float(values.max() / max(values[0], values[-1]) - 1.0)


def measure(*, quick: bool) -> list[Finding]:
    """Try every composition at n = 200, and some at larger n."""
    n = 200
    deltas = _forward(n, list(range(n)), _EPSILONS)
    worst = [int(k) for k in deltas.argmax(axis=0)]
    excess = float((deltas.max(axis=0) / np.maximum(deltas[0], deltas[-1])).max() - 1.0)
    grid = geometric_grid(50, 10**4 if quick else 10**6, 7 if quick else 10)
    excesses = [_excess(users) for users in grid]
    curves = [
        Curve.of(f"epsilon = {e:g}", range(n), column / max(column[0], column[-1]), line=True)
        for e, column in zip(_EPSILONS, deltas.T, strict=True)
    ]
    cases = ", ".join(f"k = {k} at {e:g}" for e, k in zip(_EPSILONS, worst, strict=True))
    return [
        Finding(
            "largest delta over that of the worse end point, less 1, forward",
            f"all k, n = {n}, RR with epsilon0 = {_EPSILON0:g}, epsilon = 0, 0.037, 0.147",
            (at_most(excess, 0.0, name="excess over the ends"),),
            otherwise=f"RR, epsilon0 = {_EPSILON0:g}, n = {n}: the worst is {cases}",
            figure=Figure(
                f"Delta by composition: RR, epsilon0 = {_EPSILON0:g}, n = {n}, forward",
                "ones among the others, k",
                "delta over that of the worse end point",
                tuple(curves),
                log_x=False,
                log_y=False,
            ),
        ),
        Finding(
            "excess of the worst total variation over the end points",
            f"n = {grid[0]} to {grid[-1]:.0e}, 41 compositions",
            (
                at_most(
                    max(n * excess for n, excess in zip(grid, excesses, strict=True)),
                    1.0,
                    name="largest n times the excess",
                ),
            ),
        ),
    ]
