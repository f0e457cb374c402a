"""The GDP parameter for users with personal privacy parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence

from validation.claim import (
    Claim,
    Curve,
    Figure,
    Finding,
    Verdict,
    at_least,
    at_most,
    printed_number,
)
from validation.reference import lattice
from validation.reference.constants import gaussian_delta

_SOURCE = "E Chen, Y. Cao, Y. Ge, AAAI 2024, arXiv:2312.14388v3, abstract"

CLAIMS = (
    Claim(
        "Shuffled (epsilon_i, 0)-personalized LDP is mu-GDP with mu^2 = 2/(sum_i c_i - max_i c_i), "
        "c_i = 1/(1 + e^epsilon_i), taken as a bound (the paper says approximately)",
        _SOURCE,
        Verdict.FALSE,
    ),
    Claim(
        "Uniform epsilon_i = 5, n = 100, epsilon = 2: exact 0.4855, formula 0.2284; one "
        "epsilon_i = 8 and nine of 1, epsilon = 3: exact 0.0592, formula 0.0010",
        "recorded by this project",
        Verdict.HOLDS,
    ),
    Claim(
        "With delta_i > 0 the same mu, with c_i times 1 - delta_i, bounds delta at every epsilon",
        f"{_SOURCE}; a user whose message is in the clear with probability delta_i has delta >= "
        "delta_i",
        Verdict.FALSE,
    ),
)


def _mu(epsilons: Sequence[float], deltas: Sequence[float] | None = None) -> float:
    floors = deltas or [0.0] * len(epsilons)
    c = [(1.0 - d) / (1.0 + math.exp(e)) for e, d in zip(epsilons, floors, strict=True)]
    return math.sqrt(2.0 / (sum(c) - max(c)))


def _exact(epsilons: Sequence[float], epsilon: float) -> float:
    """Return the largest delta over who differs, the direction and homogeneous others' bits.

    Randomized response: user i flips with probability ``1/(1 + e^epsilon_i)``.
    """
    worst = 0.0
    flips = [1.0 / (1.0 + math.exp(e)) for e in epsilons]
    for own in sorted(set(flips)):
        rest = list(flips)
        rest.remove(own)
        counts = {p: rest.count(p) for p in sorted(set(rest))}
        for bit in (0, 1):
            groups = [(count, p if bit == 0 else 1.0 - p) for p, count in counts.items()]
            _, q, p = lattice.binary_pair(
                groups, lattice.binomial(1, own), lattice.binomial(1, 1.0 - own)
            )
            worst = max(
                worst, lattice.hockey_stick(p, q, epsilon), lattice.hockey_stick(q, p, epsilon)
            )
    return worst


def measure(*, quick: bool) -> list[Finding]:
    """Compare exact randomized response with the formula."""
    cases = {
        "100 users of epsilon_i = 5": [5.0] * 100,
        "one of 8, nine of 1": [8.0, *[1.0] * 9],
        "1000 users of epsilon_i = 1": [1.0] * 1000,
        "500 of 1, 500 of 3": [1.0] * 500 + [3.0] * 500,
    }
    steps = 12 if quick else 40
    curves, ratios, where = [], [], []
    for name, budgets in cases.items():
        top = 0.999 * max(budgets)
        mu = _mu(budgets)
        epsilons = [top * (i + 1) / (steps + 1) for i in range(steps)]
        pairs = [(e, _exact(budgets, e), gaussian_delta(mu, e)) for e in epsilons]
        kept = [(e, d / g) for e, d, g in pairs if d > 1e-12 and g > 1e-14]
        ratios += [ratio for _, ratio in kept]
        where += [(name, e) for e, _ in kept]
        curves.append(
            Curve.of(name, [e / max(budgets) for e, _ in kept], [r for _, r in kept], line=True)
        )
    worst = max(range(len(ratios)), key=ratios.__getitem__)
    name, epsilon = where[worst]
    uniform, mixed = cases["100 users of epsilon_i = 5"], cases["one of 8, nine of 1"]
    floor, users = 0.01, 1000
    mu = _mu([1.0] * users, [floor] * users)
    return [
        Finding(
            "largest exact delta over that of the formula",
            f"4 populations of binary RR, {steps} epsilons each",
            (at_most(ratios[worst], 1.0, name="largest ratio"),),
            otherwise=f"{ratios[worst]:.3g} times the formula for {name} at epsilon = "
            f"{epsilon:.3g}",
            figure=Figure(
                "Personalized privacy: exact delta over that of the mu formula",
                "epsilon / largest epsilon_i",
                "exact / formula (above 1: not a bound)",
                tuple(curves),
                log_x=False,
            ),
        ),
        Finding(
            "delta, exact and by the formula",
            "two populations",
            (
                printed_number(_exact(uniform, 2.0), "0.4855", name="uniform, exact"),
                printed_number(gaussian_delta(_mu(uniform), 2.0), "0.2284", name="formula"),
                printed_number(_exact(mixed, 3.0), "0.0592", name="mixed, exact"),
                printed_number(gaussian_delta(_mu(mixed), 3.0), "0.0010", name="formula"),
            ),
        ),
        Finding(
            "delta of the formula at epsilon = 1",
            f"{users} users, epsilon_i = 1, delta_i = {floor:g}",
            (at_least(gaussian_delta(mu, 1.0), floor, name="formula at epsilon = 1"),),
            otherwise=f"the formula gives {gaussian_delta(mu, 1.0):.1e} where delta_i = {floor:g} "
            "can be lost outright",
        ),
    ]
