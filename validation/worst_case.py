"""The certificate of the worst case, checked against every dataset by brute force.

Small n: all compositions and pairs in exact fractions, from the definition alone. Larger n: all
compositions of two or three inputs with exact profiles, whose own accuracy `accuracy` surveys.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import NamedTuple

import numpy as np
from mpmath import mp, mpf

from fastshuffle import (
    DeltaWarning,
    PrivacyProfile,
    Randomizer,
    ShuffleExperiment,
    WorstDataset,
    binary_randomized_response,
    exact_profile,
    worst_case_profile,
)
from validation.reference import exact
from validation.reference import mp as reference
from validation.reference.mp import Complement, Probability

_SEED = 20260210
_RTOLS = (1e-2, 1e-4, 1e-6, 1e-8)
# The lower end of a bracket lies below the value of a dataset by the stated rounding of log delta.
_ROUNDING = 5e-12

# math.md, section 1: the worst number of ones among the others, forward, at three epsilons.
EPSILON0 = 1.0
USERS = 200
_CLAIMED = {0.0: 107, 0.037: 197, 0.147: 198}


@dataclass(frozen=True)
class CertificateRow:
    """How the certified bounds compare with the largest delta over all datasets.

    Attributes
    ----------
    datasets : str
        Which datasets were tried, and how.
    points : int
        Number of random randomizers, n and epsilons.
    tried : int
        Number of datasets tried in all.
    above : int
        Points at which some dataset lies above the upper end.
    not_attained : int
        Points at which the dataset that ``argmax`` names does not attain the lower end.
    unsafe : int
        Points at which ``epsilon(delta)`` leaves some dataset above delta.
    widest : float
        The largest relative width of a bracket, as a share of rtol.
    given_away : float
        The largest relative distance from the worst delta at ``epsilon(delta)`` up to delta, less
        the stated rounding, as a share of rtol.
    """

    datasets: str
    points: int
    tried: int
    above: int
    not_attained: int
    unsafe: int
    widest: float
    given_away: float

    @property
    def passed(self) -> bool:
        """Whether the certificate held at every point."""
        failures = self.above + self.not_attained + self.unsafe
        return failures == 0 and max(self.widest, self.given_away) <= 1.0


@dataclass(frozen=True)
class CompositionRow:
    """The worst composition of randomized response at one epsilon, forward.

    Attributes
    ----------
    epsilon : float
        Privacy parameter.
    claimed, found : int
        Ones among the others: as claimed, and the worst of those tried.
    tried : int
        Number of compositions tried.
    above_ends : float
        How far the worst delta lies above that of the worse end point, relative.
    below_bound : float
        How far it lies below the certified upper end, relative.
    """

    epsilon: float
    claimed: int
    found: int
    tried: int
    above_ends: float
    below_bound: float

    @property
    def passed(self) -> bool:
        """Whether the claim is met, no end point is worst and the bound holds."""
        return (
            self.claimed == self.found
            and self.above_ends > 0.0
            and 0.0 <= self.below_bound <= _RTOLS[-1]
        )


class _Point(NamedTuple):
    """What was compared for one randomizer, n and epsilon."""

    tried: int
    above: bool
    not_attained: bool
    unsafe: bool
    width: float
    given_away: float


def _draw_randomizer(rng: np.random.Generator, n_inputs: int) -> Randomizer:
    if n_inputs == 2 and rng.random() < 0.25:
        return binary_randomized_response(float(rng.uniform(0.1, 4.0)))
    return Randomizer.from_probabilities(rng.uniform(0.0, 1.0, n_inputs) ** rng.integers(1, 4))


def _draw_epsilon(rng: np.random.Generator, randomizer: Randomizer, n: int) -> float:
    """Draw an epsilon of all sizes from the typical loss to the largest, or 0."""
    if rng.random() < 0.2:
        return 0.0
    return float(randomizer.epsilon0 * n ** -rng.uniform(0.0, 0.6) * rng.random())


def _compare(
    rng: np.random.Generator,
    randomizer: Randomizer,
    n: int,
    largest: Callable[[float], tuple[float, int]],
    attained: Callable[[float, WorstDataset], float],
) -> _Point:
    """Compare the certificate with the truth at an epsilon and at the inverse of a smaller delta.

    ``largest`` gives the largest delta at an epsilon and the number of datasets it tried,
    ``attained`` that of one dataset.
    """
    epsilon = _draw_epsilon(rng, randomizer, n)
    rtol = float(rng.choice(_RTOLS))
    profile = worst_case_profile(randomizer, n, rtol=rtol)
    lower, upper = profile.bounds(epsilon)
    value = attained(epsilon, profile.argmax(epsilon))
    truth, tried = largest(epsilon)
    delta = 0.9 * truth
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeltaWarning)
        inverse = profile.epsilon(delta)
    truth_at_inverse, _ = largest(inverse)
    return _Point(
        tried,
        above=not truth <= upper,
        not_attained=not lower <= value <= lower * (1.0 + _ROUNDING),
        unsafe=not truth_at_inverse <= delta,
        width=(upper / lower - 1.0) / rtol,
        given_away=(delta / truth_at_inverse - 1.0 - _ROUNDING) / rtol,
    )


def _row(datasets: str, points: Iterable[_Point]) -> CertificateRow:
    tried, above, not_attained, unsafe, width, given_away = zip(*points, strict=True)
    return CertificateRow(
        datasets,
        len(tried),
        sum(tried),
        sum(above),
        sum(not_attained),
        sum(unsafe),
        max(width),
        max(given_away),
    )


# ---- Small n, in fractions -------------------------------------------------------------------


def _exp(epsilon: float) -> Fraction:
    with mp.workdps(60):
        return Fraction(mp.nstr(mp.exp(mpf(epsilon)), 50))


def _fractions(randomizer: Randomizer) -> list[list[Fraction]]:
    """Return the rows that a randomizer stands for: the smaller entry and its complement."""
    rows = []
    for low, high in randomizer.matrix.tolist():
        p = Fraction(min(low, high))
        rows.append([p, 1 - p] if low <= high else [1 - p, p])
    return rows


def _compare_in_fractions(rng: np.random.Generator, n_inputs: int, most_users: int) -> _Point:
    p = rng.uniform(0.0, 1.0, n_inputs) ** rng.integers(1, 4)
    randomizer = Randomizer.from_probabilities(p)
    n = int(rng.integers(1, most_users + 1))
    rows = _fractions(randomizer)

    def largest(epsilon: float) -> tuple[float, int]:
        value, _ = exact.worst_composition(rows, n, _exp(epsilon))
        return float(value), math.comb(n + n_inputs - 2, n - 1) * n_inputs * (n_inputs - 1)

    def attained(epsilon: float, worst: WorstDataset) -> float:
        a, b = worst.experiment.pair
        groups = [(count, rows[x][1]) for x, count in worst.experiment.others.items()]
        q, p = exact.binary_pair(groups, rows[a][1], rows[b][1])
        laws = (p, q) if worst.direction == "forward" else (q, p)
        return float(exact.hockey_stick(*laws, _exp(epsilon)))

    return _compare(rng, randomizer, n, largest, attained)


# ---- Larger n, with exact profiles -----------------------------------------------------------


def _all_profiles(randomizer: Randomizer, n: int) -> list[PrivacyProfile]:
    """Return the profiles of all compositions with every pair of inputs."""
    inputs = range(randomizer.n_inputs)
    profiles: list[PrivacyProfile] = []
    # stars and bars: the cuts between the inputs among n - 1 users
    for cuts in combinations(range(n - 2 + len(inputs)), len(inputs) - 1):
        ends = zip((-1, *cuts), (*cuts, n - 2 + len(inputs)), strict=True)
        others = {x: high - low - 1 for x, (low, high) in zip(inputs, ends, strict=True)}
        profiles += [
            exact_profile(ShuffleExperiment(randomizer, n, others=others, pair=pair))
            for pair in combinations(inputs, 2)
        ]
    return profiles


def _compare_with_profiles(rng: np.random.Generator, n_inputs: int, most_users: int) -> _Point:
    randomizer = _draw_randomizer(rng, n_inputs)
    n = int(most_users ** rng.uniform(0.3, 1.0))
    profiles = _all_profiles(randomizer, n)

    def largest(epsilon: float) -> tuple[float, int]:
        return max(float(profile.delta(epsilon)) for profile in profiles), 2 * len(profiles)

    def attained(epsilon: float, worst: WorstDataset) -> float:
        return float(exact_profile(worst.experiment).delta(epsilon, direction=worst.direction))

    return _compare(rng, randomizer, n, largest, attained)


# ---- The tables ------------------------------------------------------------------------------


def check_certificate(*, quick: bool, progress: Callable[[str], None]) -> list[CertificateRow]:
    """Check the certified worst case at random points against every dataset.

    Parameters
    ----------
    quick : bool
        Try a small part of the points.
    progress : callable
        Called with a line of text as each table row begins.

    Returns
    -------
    list of CertificateRow
        Two and three inputs, in fractions and with exact profiles.
    """
    rows = []
    plans = (
        (_compare_in_fractions, 2, 8, 300),
        (_compare_in_fractions, 3, 8, 100),
        (_compare_with_profiles, 2, 400, 300),
        (_compare_with_profiles, 3, 30, 150),
    )
    for compare, n_inputs, most_users, points in plans:
        how = "in fractions" if compare is _compare_in_fractions else "with exact profiles"
        datasets = f"{n_inputs} inputs, n <= {most_users}, {how}"
        progress(f"worst case: {datasets}")
        generators = (
            np.random.default_rng((_SEED, n_inputs, most_users, i))
            for i in range(points // 15 if quick else points)
        )
        rows.append(_row(datasets, [compare(rng, n_inputs, most_users) for rng in generators]))
    return rows


def check_compositions(*, quick: bool, progress: Callable[[str], None]) -> list[CompositionRow]:
    """Check that the worst composition depends on epsilon and need not be an end point.

    Parameters
    ----------
    quick : bool
        Try the end points and the neighbours of the claimed compositions only.
    progress : callable
        Called with a line of text at the start.

    Returns
    -------
    list of CompositionRow
        One for each epsilon of the claim.
    """
    progress(f"worst case: compositions of randomized response, n = {USERS}")
    ends = (0, USERS - 1)
    near = (k + step for k in _CLAIMED.values() for step in (-1, 0, 1))
    tried = sorted({*ends, *near}) if quick else range(USERS)
    with mp.workdps(60):
        flip = 1 / (1 + mp.exp(mpf(EPSILON0)))
    laws: tuple[Probability, Probability] = flip, Complement(flip)
    profile = worst_case_profile(binary_randomized_response(EPSILON0), USERS, rtol=_RTOLS[-1])
    deltas: dict[float, dict[int, mpf]] = {epsilon: {} for epsilon in _CLAIMED}
    for k in tried:  # the masses of one composition serve all epsilons
        groups = list(zip((USERS - 1 - k, k), laws, strict=True))
        for epsilon, of_k in deltas.items():
            of_k[k] = reference.delta(groups, *laws, epsilon, "forward", 25)
    rows = []
    for epsilon, of_k in deltas.items():
        largest = max(of_k.values())
        with mp.workdps(25):
            # at epsilon = 0 both directions agree: k and n - 1 - k tie but for rounding
            found = max(k for k in tried if of_k[k] >= largest * (1 - mpf(10) ** -20))
            above_ends = float(largest / max(of_k[k] for k in ends) - 1)
            below_bound = float(mpf(profile.bounds(epsilon)[1]) / largest - 1)
        rows.append(
            CompositionRow(epsilon, _CLAIMED[epsilon], found, len(tried), above_ends, below_bound)
        )
    return rows
