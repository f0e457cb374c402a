"""The critical regime of randomized response at k/n -> pi: a Skellam shift."""

from __future__ import annotations

import math
from itertools import pairwise

from fastshuffle import ShuffleExperiment, binary_randomized_response, exact_profile
from validation.claim import Check, Claim, Curve, Figure, Finding, Verdict, at_most, rate_is
from validation.rates import fit_rate, geometric_grid
from validation.reference import lattice

_SOURCE = "arXiv:2603.10073v1, section 4"

CLAIMS = (
    Claim(
        "RR with e^epsilon0/n = c^2 and k/n = pi: N - k -> Poi((1-pi)/c^2) - Poi(pi/c^2) under "
        "T_{n,k}, shifted by 1 under T_{n,k+1}, in total variation at rate O(1/n)",
        f"{_SOURCE}; rate: the description of the preprint, zenodo 18910239 v4",
        Verdict.HOLDS,
    ),
    Claim(
        "For pi in (0, 1) the floor of delta disappears: delta(epsilon) -> 0 as epsilon grows",
        f"{_SOURCE} and abstract",
        Verdict.HOLDS,
    ),
)

_CASES = ((1.0, 0.5), (1.0, 0.2), (0.5, 0.5))  # c^2, pi
_EPSILONS = (1.0, 2.0, 3.0, 4.0, 5.0)


def _distances(n: int, scale: float, pi: float) -> tuple[float, float]:
    p0 = 1.0 / (1.0 + scale * n)
    k = round(pi * n)
    limit = lattice.convolve(
        lattice.poisson((1.0 - pi) / scale), lattice.negated(lattice.poisson(pi / scale))
    )
    gained = lattice.binomial(n - 1 - k, p0)
    lost = lattice.negated(lattice.binomial(k, p0))
    others = lattice.convolve(gained, lost)  # less k
    distances = []
    for own, target in ((p0, limit), (1.0 - p0, lattice.shifted(limit, 1))):
        law = lattice.convolve(others, lattice.binomial(1, own))
        _, (found, wanted) = lattice.aligned(law, target)
        distances.append(lattice.total_variation(found, wanted))
    return distances[0], distances[1]


def _log_deltas(n: int, scale: float, pi: float) -> list[float]:
    rr = binary_randomized_response(math.log(scale * n))
    profile = exact_profile(ShuffleExperiment(rr, n, k=round(pi * n)))
    return [float(value) for value in profile.log_delta(list(_EPSILONS))]


def measure(*, quick: bool) -> list[Finding]:
    """Sum total variations over the whole laws, and follow the curve far out."""
    grid = geometric_grid(20, 10**4 if quick else 10**7, 8 if quick else 14, 10)
    users = 10**12
    checks: list[Check] = []
    curves: list[Curve] = []
    tails: list[Check] = []
    for scale, pi in _CASES:
        pairs = [_distances(n, scale, pi) for n in grid]
        for i, law in enumerate(("T_{n,k}", "T_{n,k+1}")):
            values = [pair[i] for pair in pairs]
            name = f"{law}, c^2 = {scale:g}, pi = {pi:g}"
            checks.append(rate_is(fit_rate(grid, values, 1.0), -1.0, name=name))
            curves.append(Curve.of(name, grid, values, slope=None if curves else -1.0))
        logs = _log_deltas(users, scale, pi)
        name = f"log delta(5) + 1/c^2, c^2 = {scale:g}, pi = {pi:g}"
        tails.append(at_most(logs[-1] + 1.0 / scale, -50.0, name=name))
        largest = max(b - a for a, b in pairwise(logs))
        tails.append(at_most(largest, -1.0, name=f"steps of log delta, c^2 = {scale:g}"))
    return [
        Finding(
            "total variation between exact law and limit",
            f"n = {grid[0]} to {grid[-1]:.0e}",
            tuple(checks),
            figure=Figure(
                "Critical randomized response against its Skellam limit",
                "number of users n",
                "total variation",
                tuple(curves),
            ),
        ),
        Finding(
            "exact log delta, both directions, at epsilon = 1, ..., 5",
            f"n = {users:.0e}",
            tuple(tails),
        ),
    ]
