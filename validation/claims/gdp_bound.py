"""GDP is an approximation of the privacy curve, not a bound on it."""

from __future__ import annotations

import math

import numpy as np

from fastshuffle import ShuffleExperiment, binary_randomized_response, exact_profile
from validation.claim import (
    Claim,
    Curve,
    Figure,
    Finding,
    Verdict,
    at_least,
    at_most,
)
from validation.reference.constants import gaussian_delta

CLAIMS = (
    Claim(
        "The pair is mu_n-GDP with mu_n = sqrt(I_pi/n): delta(epsilon) never exceeds the Gaussian "
        "curve",
        "a reading of the GDP equivalence of arXiv:2602.09029v3, section 6, as a bound",
        Verdict.FALSE,
    ),
    Claim(
        "RR, epsilon0 = 4, n = 1e4, k = 0: about epsilon = 0.363 the exact delta is 9.1e-8 where "
        "GDP says 4.6e-9",
        "recorded by this project",
        Verdict.HOLDS,
    ),
)

_EPSILON0, _USERS = 4.0, 10**4


def measure(*, quick: bool) -> list[Finding]:
    """Compare the exact curve with the Gaussian one."""
    profile = exact_profile(ShuffleExperiment(binary_randomized_response(_EPSILON0), _USERS, k=0))
    mu = math.expm1(_EPSILON0) / math.sqrt(_USERS * math.exp(_EPSILON0))
    epsilons = np.linspace(0.005, 0.45, 30 if quick else 90)
    exact = np.asarray(profile.delta(epsilons))
    gaussian = np.array([gaussian_delta(mu, epsilon) for epsilon in epsilons.tolist()])
    near = np.linspace(0.3625, 0.3635, 101)
    both = [
        (float(profile.delta(epsilon)), gaussian_delta(mu, epsilon)) for epsilon in near.tolist()
    ]
    rounded = sum((f"{d:.1e}", f"{g:.1e}") == ("9.1e-08", "4.6e-09") for d, g in both)
    ratio = exact / gaussian
    worst = int(ratio.argmax())
    return [
        Finding(
            "largest exact delta over Gaussian delta",
            f"RR, epsilon0 = {_EPSILON0:g}, n = {_USERS}, k = 0, epsilon to {epsilons[-1]:g}",
            (at_most(float(ratio[worst]), 1.0, name="largest ratio"),),
            otherwise=f"{ratio[worst]:.3g} times too much privacy at epsilon = "
            f"{epsilons[worst]:.3f}, n = {_USERS}, RR with epsilon0 = {_EPSILON0:g}",
            figure=Figure(
                f"Exact curve and GDP: RR, epsilon0 = {_EPSILON0:g}, n = {_USERS:,}, k = 0",
                "epsilon",
                "delta",
                (
                    Curve.of("exact", epsilons, exact, line=True),
                    Curve.of("mu-GDP, no bound", epsilons, gaussian, line=True),
                ),
                log_x=False,
            ),
        ),
        Finding(
            "points at which both round to the numbers stated",
            "101 epsilons that round to 0.363",
            (at_least(rounded, 1, name="points"),),
        ),
    ]
