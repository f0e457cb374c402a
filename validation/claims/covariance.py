"""The covariance that governs the pair: that of a fixed composition, not of the mixture."""

from __future__ import annotations

import numpy as np

from fastshuffle import ExactProfile, Randomizer, ShuffleExperiment, exact_profile
from validation.claim import Claim, Curve, Figure, Finding, Verdict, at_least, constant_is
from validation.rates import fit_limit, geometric_grid
from validation.reference import lattice
from validation.reference.constants import Floats, fisher_constant, mixture_constant

_SOURCE = "arXiv:2602.09029v5, section 3 and abstract"

CLAIMS = (
    Claim(
        "n chi^2(T_{n,k+1}, T_{n,k}) tends to I_pi = v^T Sigma_pi^+ v with "
        "Sigma_pi = (1-pi) Sigma_0 + pi Sigma_1, v = W_1 - W_0",
        _SOURCE,
        Verdict.HOLDS,
    ),
    Claim(
        "It tends to v^T Sigma_mix^+ v with the covariance of one message of the i.i.d. mixture "
        "(1-pi) W_0 + pi W_1",
        "the usual proxy, which arXiv:2602.09029v5, abstract, rejects",
        Verdict.CORRECTED,
    ),
    Claim(
        "I_pi is strictly larger than the mixture constant for every non-trivial W and every "
        "interior pi",
        _SOURCE,
        Verdict.HOLDS,
    ),
)

_PI = 0.5
_BINARY = np.array([[0.8, 0.2], [0.4, 0.6]])
_TERNARY = np.array([[0.5, 0.3, 0.2], [0.2, 0.35, 0.45]])


def _binary(n: int) -> float:
    experiment = ShuffleExperiment(Randomizer(_BINARY), n, k=round(_PI * n))
    profile = exact_profile(experiment)
    assert isinstance(profile, ExactProfile)  # two outputs
    return n * float(profile.chi_square())


def _ternary(n: int) -> float:
    k = round(_PI * n)
    others = lattice.histogram(_TERNARY, (n - 1 - k, k), n + 1)
    q, p = (lattice.with_one_more(others, row)[others >= 0.0] for row in _TERNARY)
    seen = q > 1e-290
    return n * float(((p - q)[seen] ** 2 / q[seen]).sum())


def _random_rows(rng: np.random.Generator) -> Floats:
    rows: Floats = rng.dirichlet(np.full(int(rng.integers(2, 7)), 2.0), 2) + 1e-3
    return rows / rows.sum(axis=1, keepdims=True)


def _least_excess(randomizers: int) -> float:
    """Return the least of I_pi/I_mix - 1 over its size pi (1 - pi) I_pi by Sherman-Morrison."""
    rng = np.random.default_rng(20260302)
    excesses = []
    for _ in range(randomizers):
        rows, pi = _random_rows(rng), float(rng.uniform(0.01, 0.99))
        fixed, mixture = fisher_constant(rows, pi), mixture_constant(rows, pi)
        excesses.append((fixed / mixture - 1.0) / (pi * (1.0 - pi) * fixed))
    return min(excesses)


def measure(*, quick: bool) -> list[Finding]:
    """Extrapolate the exact chi-square divergence, and compare constants of random W."""
    grids = (
        geometric_grid(20, 10**4 if quick else 10**7, 8 if quick else 14, 10),
        geometric_grid(20, 150 if quick else 500, 7 if quick else 10, 10),
    )
    fixed, mixture, curves = [], [], []
    for name, rows, grid, value in (
        ("d = 2", _BINARY, grids[0], _binary),
        ("d = 3", _TERNARY, grids[1], _ternary),
    ):
        scaled = [value(n) for n in grid]
        limit = fit_limit(grid, scaled, 1.0)
        constants = fisher_constant(rows, _PI), mixture_constant(rows, _PI)
        fixed.append(constant_is(limit, constants[0], name=name, rtol=1e-3))
        mixture.append(constant_is(limit, constants[1], name=name, rtol=1e-3))
        curves += [
            Curve.of(f"n chi^2, {name}", grid, scaled),
            Curve.of(f"fixed composition, {name}", grid, [constants[0]] * len(grid), line=True),
            Curve.of(f"i.i.d. mixture, {name}", grid, [constants[1]] * len(grid), line=True),
        ]
    randomizers = 200 if quick else 5_000
    quantity = f"n chi^2 at k/n = {_PI:g}, extrapolated"
    grid_text = f"n = 20 to {grids[0][-1]:.0e} (d = 2), to {grids[1][-1]} (d = 3)"
    return [
        Finding(
            quantity,
            grid_text,
            tuple(fixed),
            figure=Figure(
                f"Fixed composition against i.i.d. mixture, k/n = {_PI:g}",
                "number of users n",
                "n chi^2(T_{n,k+1}, T_{n,k})",
                tuple(curves),
                log_y=False,
            ),
        ),
        Finding(
            quantity,
            grid_text,
            tuple(mixture),
            otherwise="the constant of the fixed composition; the mixture promises too much "
            "privacy",
            amended=tuple(fixed),
            amendment=Verdict.CORRECTED,
        ),
        Finding(
            "least of (I_pi/I_mix - 1) / (pi (1-pi) I_pi)",
            f"{randomizers} random W with d = 2 to 6, pi in [0.01, 0.99]",
            (at_least(_least_excess(randomizers), 0.999, name="least excess"),),
        ),
    ]
