"""The edges of the critical regime of randomized response: Gaussian below, no privacy above."""

from __future__ import annotations

import math

import numpy as np

from fastshuffle import ShuffleExperiment, binary_randomized_response, exact_profile
from validation.claim import Check, Claim, Curve, Figure, Finding, Verdict, rate_at_most, rate_is
from validation.rates import fit_rate, geometric_grid
from validation.reference import lattice
from validation.reference.constants import gaussian_delta
from validation.reference.deficiency import jitter_and_rounding

CLAIMS = (
    Claim(
        "The Poisson shift {Poi(1/c^2), 1 + Poi(1/c^2)} is within O(c) of the Gaussian shift "
        "{N(0, 1), N(c, 1)} in Le Cam distance as c -> 0",
        "arXiv:2603.13407v1, abstract",
        Verdict.HOLDS,
    ),
    Claim(
        "Their privacy curves are within O(c) of each other",
        "arXiv:2603.13407v1, abstract (a matching curve)",
        Verdict.HOLDS,
    ),
    Claim(
        "Above the critical regime, e^epsilon0/n = a_n -> infinity, privacy is lost: total "
        "variation tends to 1",
        "arXiv:2603.10073v1, abstract (super-critical regime)",
        Verdict.HOLDS,
    ),
)


def _le_cam(inverse: int) -> float:
    """Return an upper bound on the Le Cam distance at c = 1/inverse."""
    mean = float(inverse**2)
    law = lattice.poisson(mean)
    return max(
        jitter_and_rounding(law, mean, float(inverse), 0.0),
        jitter_and_rounding(lattice.shifted(law, 1), mean, float(inverse), 1.0 / inverse),
    )


def _curves(inverse: int) -> float:
    """Return the largest difference of the two curves over epsilon, both directions."""
    c, mean = 1.0 / inverse, float(inverse**2)
    law = lattice.poisson(mean)
    _, (q, p) = lattice.aligned(law, lattice.shifted(law, 1))
    return max(
        abs(value - gaussian_delta(c, epsilon))
        for epsilon in np.linspace(0.0, 5.0 * c, 101).tolist()
        for value in (lattice.hockey_stick(p, q, epsilon), lattice.hockey_stick(q, p, epsilon))
    )


def _kept(n: int, a: float, pi: float) -> float:
    """Return 1 less the total variation."""
    experiment = ShuffleExperiment(
        binary_randomized_response(math.log(a * n)), n, k=round(pi * (n - 1))
    )
    return 1.0 - float(exact_profile(experiment).total_variation())


def measure(*, quick: bool) -> list[Finding]:
    """Bound distances by two kernels, and follow the total variation up."""
    inverse = geometric_grid(3, 100 if quick else 1_000, 8 if quick else 13)
    distances = [_le_cam(x) for x in inverse]
    differences = [_curves(x) for x in inverse]
    scales = np.geomspace(3.0, 1e4, 9).tolist()
    lost: list[Check] = []
    curves: list[Curve] = []
    for pi in (0.0, 0.5):
        kept = [_kept(10**9, a, pi) for a in scales]
        lost.append(rate_is(fit_rate(scales, kept, 1.0), -1.0, name=f"in a_n, pi = {pi:g}"))
        curves.append(Curve.of(f"1 - TV against a_n, pi = {pi:g}", scales, kept, slope=-1.0))
    span = f"1/c = {inverse[0]} to {inverse[-1]}"
    return [
        Finding(
            "total variation after a uniform jitter, and after rounding: an upper bound on the "
            "distance",
            span,
            (rate_is(fit_rate(inverse, distances, 1.0), -1.0, name="in 1/c"),),
            figure=Figure(
                "The edges of the critical regime",
                "1/c, or a_n = e^epsilon0/n",
                "distance from the limit on that side",
                (
                    Curve.of("Le Cam bound, Gaussian shift", inverse, distances, slope=-1.0),
                    Curve.of("difference of the curves", inverse, differences, slope=-2.0),
                    *curves,
                ),
            ),
        ),
        Finding(
            "largest difference over epsilon in [0, 5 c], both directions",
            span,
            (rate_at_most(fit_rate(inverse, differences, 1.0), -1.0, name="in 1/c"),),
        ),
        Finding("1 less the exact total variation", "a_n = 3 to 1e4, n = 1e9", tuple(lost)),
    ]
