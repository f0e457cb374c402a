"""The critical regime of randomized response at k = 0: a Poisson shift."""

from __future__ import annotations

import math
from typing import Literal

from fastshuffle import ShuffleExperiment, binary_randomized_response, exact_profile
from validation.claim import (
    Check,
    Claim,
    Curve,
    Figure,
    Finding,
    Verdict,
    at_least,
    at_most,
    constant_is,
    rate_is,
)
from validation.rates import fit_limit, fit_rate, geometric_grid
from validation.reference import lattice

_SOURCE = "arXiv:2603.10073v1, section 3"

CLAIMS = (
    Claim(
        "RR with e^epsilon0/n = c^2: T_{n,0} -> Poi(1/c^2) and T_{n,1} -> 1 + Poi(1/c^2) in total "
        "variation at rate O(1/n)",
        f"{_SOURCE}; rate: the description of the preprint, zenodo 18910239 v4",
        Verdict.HOLDS,
    ),
    Claim(
        "In the limit delta(epsilon) does not fall below e^{-1/c^2}, however large epsilon, in one "
        "direction",
        _SOURCE,
        Verdict.HOLDS,
    ),
    Claim(
        "The same floor bounds delta in both directions",
        "a reading of the floor as two-sided",
        Verdict.HOLDS_ONLY,
    ),
)

_SCALES = (0.5, 1.0, 4.0)  # c^2
_EPSILON = 8.0


def _distances(n: int, scale: float) -> tuple[float, float]:
    p0 = 1.0 / (1.0 + scale * n)
    limit = lattice.poisson(1.0 / scale)
    others = lattice.binomial(n - 1, p0)
    distances = []
    for own, target in ((p0, limit), (1.0 - p0, lattice.shifted(limit, 1))):
        law = lattice.convolve(others, lattice.binomial(1, own))
        _, (found, wanted) = lattice.aligned(law, target)
        distances.append(lattice.total_variation(found, wanted))
    return distances[0], distances[1]


def _delta(n: int, scale: float, direction: Literal["forward", "reverse"]) -> float:
    rr = binary_randomized_response(math.log(scale * n))
    return float(exact_profile(ShuffleExperiment(rr, n, k=0)).delta(_EPSILON, direction=direction))


def measure(*, quick: bool) -> list[Finding]:
    """Sum total variations over the whole laws, and extrapolate delta at a large epsilon."""
    grid = geometric_grid(20, 10**4 if quick else 10**7, 8 if quick else 14)
    large = geometric_grid(10**6, 10**12, 8)
    checks: list[Check] = []
    curves: list[Curve] = []
    floors: list[Check] = []
    both: list[Check] = []
    others: list[Check] = []
    for scale in _SCALES:
        pairs = [_distances(n, scale) for n in grid]
        for i, law in enumerate(("T_{n,0}", "T_{n,1}")):
            values = [pair[i] for pair in pairs]
            name = f"{law}, c^2 = {scale:g}"
            checks.append(rate_is(fit_rate(grid, values, 1.0), -1.0, name=name))
            curves.append(Curve.of(name, grid, values, slope=None if curves else -1.0))
        floor = math.exp(-1.0 / scale)
        reverse = fit_limit(large, [_delta(n, scale, "reverse") for n in large], 1.0)
        floors.append(constant_is(reverse, floor, name=f"c^2 = {scale:g}", rtol=1e-6))
        forward = max(_delta(n, scale, "forward") for n in large)
        both.append(at_least(forward, 0.99 * floor, name=f"forward, c^2 = {scale:g}"))
        others.append(at_most(forward, 1e-9 * floor, name=f"forward, c^2 = {scale:g}"))
    quantity = f"exact delta at epsilon = {_EPSILON:g}"
    return [
        Finding(
            "total variation between exact law and limit",
            f"n = {grid[0]} to {grid[-1]:.0e}",
            tuple(checks),
            figure=Figure(
                "Critical randomized response against its Poisson limit, k = 0",
                "number of users n",
                "total variation",
                tuple(curves),
            ),
        ),
        Finding(f"{quantity}, reverse, extrapolated", "n = 1e6 to 1e12", tuple(floors)),
        Finding(
            quantity,
            "n = 1e6 to 1e12",
            tuple(both),
            otherwise="in the reverse direction, where the Poisson law has the outcome 0 and the "
            "shifted one has not",
            amended=(*floors, *others),
            amendment=Verdict.HOLDS_ONLY,
        ),
    ]
