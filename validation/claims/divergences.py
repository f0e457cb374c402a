"""Smooth divergences of the pair at leading order, for every composition."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fastshuffle import ExactProfile, Randomizer, ShuffleExperiment, exact_profile
from validation.claim import Check, Claim, Curve, Figure, Finding, Verdict, constant_is, rate_is
from validation.rates import fit_limit, fit_rate, geometric_grid
from validation.reference import lattice
from validation.reference.constants import Floats, fisher_constant

_SOURCE = "arXiv:2602.09029v5, section 6 and abstract"
_BINARY = np.array([[0.8, 0.2], [0.4, 0.6]])
_TERNARY = np.array([[0.5, 0.3, 0.2], [0.2, 0.35, 0.45]])
_SHARES = (0.0, 0.3, 0.7)

Divergence = Callable[[ExactProfile], float]

# Name, half of f''(1) times 2, from the package, and the summand for three outputs.
_DIVERGENCES: dict[str, tuple[float, Divergence, Callable[[Floats, Floats], Floats]]] = {
    "Jensen-Shannon": (
        1.0 / 8.0,
        lambda profile: float(profile.jensen_shannon()),
        lambda p, q: 0.5 * (p * np.log(2.0 * p / (p + q)) + q * np.log(2.0 * q / (p + q))),
    ),
    "Kullback-Leibler": (
        1.0 / 2.0,
        lambda profile: float(profile.kl()),
        lambda p, q: p * np.log(p / q) - p + q,
    ),
    "chi-square": (
        1.0,
        lambda profile: float(profile.chi_square()),
        lambda p, q: (p - q) ** 2 / q,
    ),
    "squared Hellinger": (
        1.0 / 8.0,
        lambda profile: float(-np.expm1(-0.5 * profile.renyi(0.5))),
        lambda p, q: 0.5 * (np.sqrt(p) - np.sqrt(q)) ** 2,
    ),
    "Renyi of order 4": (
        2.0,
        lambda profile: float(profile.renyi(4.0)),
        lambda p, q: (q * (p / q) ** 4 - 4.0 * p + 3.0 * q) / 3.0,
    ),
}

CLAIMS = (
    Claim("JSD(T_{n,k+1}, T_{n,k}) = I_pi/(8n) + O(n^-2) for k/n -> pi", _SOURCE, Verdict.HOLDS),
    *(
        Claim(
            f"{name} divergence = {text} + O(n^-2) for k/n -> pi",
            f"{_SOURCE} (smooth divergences)",
            Verdict.HOLDS,
        )
        for name, text in (
            ("Kullback-Leibler", "I_pi/(2n)"),
            ("chi-square", "I_pi/n"),
            ("squared Hellinger", "I_pi/(8n)"),
            ("Renyi (order a = 4)", "a I_pi/(2n)"),
        )
    ),
)


def _profile(n: int, pi: float) -> ExactProfile:
    profile = exact_profile(ShuffleExperiment(Randomizer(_BINARY), n, k=round(pi * n)))
    assert isinstance(profile, ExactProfile)  # two outputs
    return profile


def _ternary_pair(n: int) -> tuple[Floats, Floats]:
    k = round(0.3 * n)
    others = lattice.histogram(_TERNARY, (n - 1 - k, k), n + 1)
    q, p = (lattice.with_one_more(others, row).ravel() for row in _TERNARY)
    seen = (q > 1e-280) & (p > 1e-280)
    return p[seen], q[seen]


def measure(*, quick: bool) -> list[Finding]:
    """Extrapolate n times each divergence, and fit the rate of what remains."""
    grid = geometric_grid(50, 10**4 if quick else 10**6, 8 if quick else 12, 10)
    small = geometric_grid(20, 150 if quick else 400, 7 if quick else 10, 10)
    profiles = {pi: [_profile(n, pi) for n in grid] for pi in _SHARES}
    pairs = [_ternary_pair(n) for n in small]
    findings = []
    for name, (factor, divergence, term) in _DIVERGENCES.items():
        series = {
            f"d = 2, pi = {pi:g}": (
                grid,
                [divergence(profile) for profile in of_pi],
                factor * fisher_constant(_BINARY, pi),
            )
            for pi, of_pi in profiles.items()
        }
        sums = [float(term(p, q).sum()) for p, q in pairs]
        if name.startswith("Renyi"):
            sums = [float(np.log1p(3.0 * value)) / 3.0 for value in sums]
        series["d = 3, pi = 0.3"] = small, sums, factor * fisher_constant(_TERNARY, 0.3)
        checks: list[Check] = []
        curves: list[Curve] = []
        for label, (users, values, constant) in series.items():
            scaled = [n * value for n, value in zip(users, values, strict=True)]
            rest = [abs(v - constant / n) for n, v in zip(users, values, strict=True)]
            checks.append(constant_is(fit_limit(users, scaled, 1.0), constant, name=label))
            checks.append(rate_is(fit_rate(users, rest, 1.0), -2.0, name=f"remainder, {label}"))
            curves.append(Curve.of(label, users, rest, slope=None if curves else -2.0))
        findings.append(
            Finding(
                f"n times the {name} divergence, and its remainder",
                f"n = {grid[0]} to {grid[-1]:.0e} (d = 3: to {small[-1]})",
                tuple(checks),
                figure=Figure(
                    f"{name} divergence less its leading term",
                    "number of users n",
                    "absolute remainder",
                    tuple(curves),
                ),
            )
        )
    return findings
