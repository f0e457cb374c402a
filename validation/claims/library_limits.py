"""The limits of the library against its exact profiles, at the rates their documentation states."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
from scipy.special import ndtr

from fastshuffle import (
    ExactProfile,
    PrivacyProfile,
    Randomizer,
    ShuffleExperiment,
    berry_esseen_bound,
    berry_esseen_profile,
    binary_randomized_response,
    chi_square_expansion,
    edgeworth_profile,
    exact_profile,
    gaussian_profile,
    hybrid_profile,
    jensen_shannon_expansion,
    kl_expansion,
    poisson_profile,
    renyi_expansion,
    skellam_profile,
)
from validation.claim import (
    Check,
    Claim,
    Curve,
    Figure,
    Finding,
    Verdict,
    at_least,
    none_of,
    rate_at_most,
    rate_is,
)
from validation.rates import Estimate, fit_rate, geometric_grid
from validation.reference import lattice

_SOURCE = "documentation of this library"

CLAIMS = (
    Claim(
        "Relative error of delta at epsilon = mu: gaussian_profile n^-1/2, edgeworth_profile of "
        "order 3 n^-1 and of order 4 n^-3/2, two outputs",
        _SOURCE,
        Verdict.HOLDS,
    ),
    Claim(
        "berry_esseen_bound is above sup |F - Phi| of the number of ones under Q and under P",
        f"{_SOURCE}; constants of I. G. Shevtsova, 2013",
        Verdict.HOLDS,
    ),
    Claim(
        "berry_esseen_profile brackets the exact delta at every epsilon",
        _SOURCE,
        Verdict.HOLDS,
    ),
    Claim(
        "At k = 0 the expansions of Jensen-Shannon, Kullback-Leibler, chi-square and Renyi "
        "divergences to second order leave O(n^-3)",
        _SOURCE,
        Verdict.HOLDS,
    ),
    Claim(
        "hybrid_profile, which keeps the Gaussian shift at finite n, is within O(1/n) of delta "
        "with the others at one input",
        _SOURCE,
        Verdict.HOLDS,
    ),
    Claim(
        "law_errors of poisson_profile and skellam_profile are above the total variation distances "
        "of Q and P from their limits",
        f"{_SOURCE}; A. D. Barbour, P. Hall, 1984",
        Verdict.HOLDS,
    ),
)

_P = 0.2, 0.5
_ROWS = np.array([[1.0 - p, p] for p in _P])


def _experiment(n: int, pi: float) -> ShuffleExperiment:
    return ShuffleExperiment(Randomizer(_ROWS), n, k=round(pi * n))


def _exact(experiment: ShuffleExperiment) -> ExactProfile:
    profile = exact_profile(experiment)
    assert isinstance(profile, ExactProfile)  # two outputs
    return profile


def _relative_errors(n: int, pi: float) -> list[float]:
    """Return the largest relative error over both directions of the three approximations."""
    experiment = _experiment(n, pi)
    exact = _exact(experiment)
    gaussian = gaussian_profile(experiment)
    limits: list[PrivacyProfile] = [
        gaussian,
        *(edgeworth_profile(experiment, order=order) for order in (3, 4)),
    ]
    directions: tuple[Literal["forward", "reverse"], ...] = ("forward", "reverse")
    return [
        max(
            abs(
                math.expm1(
                    limit.log_delta(gaussian.mu, direction=direction)
                    - exact.log_delta(gaussian.mu, direction=direction)
                )
            )
            for direction in directions
        )
        for limit in limits
    ]


def _expansions(*, quick: bool) -> tuple[list[Check], list[Curve], str]:
    grid = geometric_grid(50, 2_000 if quick else 10_000, 8 if quick else 11)
    cases: dict[str, tuple[Callable[[ExactProfile], float], Callable[[ShuffleExperiment], float]]]
    cases = {
        "Jensen-Shannon": (
            lambda p: float(p.jensen_shannon()),
            lambda e: float(jensen_shannon_expansion(e)),
        ),
        "Kullback-Leibler": (
            lambda p: float(p.kl(direction="reverse")),
            lambda e: float(kl_expansion(e, direction="reverse")),
        ),
        "chi-square": (
            lambda p: float(p.chi_square(direction="reverse")),
            lambda e: float(chi_square_expansion(e, direction="reverse")),
        ),
        "Renyi of order 4": (
            lambda p: float(p.renyi(4.0, direction="forward")),
            lambda e: float(renyi_expansion(e, 4.0, direction="forward")),
        ),
    }
    checks: list[Check] = []
    curves: list[Curve] = []
    experiments = [_experiment(n, 0.0) for n in grid]
    profiles = [(experiment, _exact(experiment)) for experiment in experiments]
    for name, (divergence, expansion) in cases.items():
        rest = [abs(divergence(profile) - expansion(e)) for e, profile in profiles]
        checks.append(rate_is(fit_rate(grid, rest, 1.0), -3.0, name=name))
        curves.append(Curve.of(name, grid, rest, slope=None if curves else -3.0))
    return checks, curves, f"n = {grid[0]} to {grid[-1]}, k = 0"


def _least_ratio(grid: list[int]) -> float:
    """Return the least of the proved bound over the distance, over n, compositions and laws."""
    ratios = []
    for n in grid:
        for pi in (0.0, 0.3, 0.5):
            k = round(pi * n)
            points, *laws = lattice.binary_datasets(*_P, n, k)
            bounds = berry_esseen_bound(_experiment(n, pi))
            for ones, law, bound in zip((k, k + 1), laws, bounds, strict=True):
                mean = (n - ones) * _P[0] + ones * _P[1]
                spread = math.sqrt((n - ones) * _P[0] * (1 - _P[0]) + ones * _P[1] * (1 - _P[1]))
                cumulative, normal = np.cumsum(law), ndtr((points - mean) / spread)
                distance = max(
                    np.abs(cumulative - normal).max(), np.abs(cumulative - law - normal).max()
                )
                ratios.append(bound / float(distance))
    return min(ratios)


def _outside(grid: list[int]) -> tuple[int, int]:
    """Return how many exact deltas lie outside the proved bracket, and of how many."""
    outside = tried = 0
    for n in grid:
        for pi in (0.0, 0.4):
            experiment = _experiment(n, pi)
            epsilons = gaussian_profile(experiment).mu * np.linspace(0.0, 4.0, 17)
            lower, upper = berry_esseen_profile(experiment).bounds(epsilons)
            exact = np.asarray(_exact(experiment).delta(epsilons))
            outside += int(((exact < lower * (1 - 1e-12)) | (exact > upper * (1 + 1e-12))).sum())
            tried += len(exact)
    return outside, tried


def _hybrid_error(n: int, b0: float, b1: float) -> float:
    rate, share = 1.5 / n, 0.4
    rows = [
        [(1.0 - rare) * (1.0 - b), (1.0 - rare) * b, rare] for rare, b in ((rate, b0), (share, b1))
    ]
    experiment = ShuffleExperiment(Randomizer(rows), n, k=0)
    epsilons = np.linspace(0.0, 1.2, 25)
    exact = exact_profile(experiment, rtol=1e-7)
    limit = hybrid_profile(experiment)
    return float(np.abs(np.asarray(limit.delta(epsilons)) - exact.delta(epsilons)).max())


def _law_ratio(grid: list[int]) -> float:
    """Return the least of the proved law errors over the total variation distances."""
    ratios = []
    for n in grid:
        p0 = 1.0 / (1.0 + n)
        rr = binary_randomized_response(math.log(n))
        for k in (0, n // 2):
            experiment = ShuffleExperiment(rr, n, k=k)
            profile = (skellam_profile if k else poisson_profile)(experiment)
            up, down = profile.means
            limit = lattice.convolve(lattice.poisson(up), lattice.negated(lattice.poisson(down)))
            others = lattice.convolve(
                lattice.binomial(n - 1 - k, p0), lattice.negated(lattice.binomial(k, p0))
            )
            for own, shift, bound in zip((p0, 1.0 - p0), (0, 1), profile.law_errors, strict=True):
                law = lattice.convolve(others, lattice.binomial(1, own))
                _, (found, wanted) = lattice.aligned(law, lattice.shifted(limit, shift))
                ratios.append(bound / lattice.total_variation(found, wanted))
    return min(ratios)


def measure(*, quick: bool) -> list[Finding]:
    """Compare limits and proved distances of the library with exact values."""
    grid = geometric_grid(200, 10**5 if quick else 10**8, 8 if quick else 14, 10)
    rates: list[Check] = []
    curves: list[Curve] = []
    for pi in (0.0, 0.3):
        errors = [_relative_errors(n, pi) for n in grid]
        for i, (name, claimed) in enumerate(
            (("Gaussian", -0.5), ("order 3", -1.0), ("order 4", -1.5))
        ):
            column = [error[i] for error in errors]
            rate: Estimate = fit_rate(grid, column)
            check = rate_at_most if i == 2 else rate_is
            rates.append(check(rate, claimed, name=f"{name}, pi = {pi:g}"))
            slope = claimed if pi == 0.0 else None
            curves.append(Curve.of(f"{name}, pi = {pi:g}", grid, column, slope=slope))
    small = geometric_grid(10, 1_000 if quick else 10**5, 6 if quick else 10)
    checks, expansion_curves, expansion_grid = _expansions(quick=quick)
    users = geometric_grid(200, 5_000 if quick else 10**5, 6 if quick else 9)
    hybrid: list[Check] = []
    for b0, b1 in ((0.3, 0.6), (0.5, 0.2)):
        error = [_hybrid_error(n, b0, b1) for n in users]
        hybrid.append(rate_at_most(fit_rate(users, error), -1.0, name=f"b0 = {b0:g}, b1 = {b1:g}"))
    outside, tried = _outside(small)
    span = f"n = {small[0]} to {small[-1]:.0e}"
    return [
        Finding(
            "largest relative error over both directions at epsilon = mu, p0 = 0.2, p1 = 0.5",
            f"n = {grid[0]} to {grid[-1]:.0e}",
            tuple(rates),
            figure=Figure(
                "Gaussian and Edgeworth profiles at epsilon = mu",
                "number of users n",
                "relative error of delta",
                tuple(curves),
            ),
        ),
        Finding(
            "least of the bound over the exact distance",
            f"{span}, pi = 0, 0.3, 0.5",
            (at_least(_least_ratio(small), 1.0, name="least ratio"),),
        ),
        Finding(
            "exact deltas outside the bracket",
            f"{span}, pi = 0, 0.4, epsilon to 4 mu",
            (none_of(outside, tried, name="outside"),),
        ),
        Finding(
            "exact divergence less its expansion",
            expansion_grid,
            tuple(checks),
            figure=Figure(
                "Divergences at k = 0 less their expansions to second order",
                "number of users n",
                "absolute remainder",
                tuple(expansion_curves),
            ),
        ),
        Finding(
            "largest difference over epsilon in [0, 1.2], both directions",
            f"n = {users[0]} to {users[-1]:.0e}, k = 0",
            tuple(hybrid),
        ),
        Finding(
            "least of the proved error over the exact distance, c^2 = 1",
            f"{span}, k = 0 and n/2",
            (at_least(_law_ratio(small), 1.0, name="least ratio"),),
        ),
    ]
