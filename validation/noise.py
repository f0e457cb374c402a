"""How much less noise exact accounting needs, at equal central privacy.

Each way of accounting allows a largest local budget for a wanted (epsilon, delta) and n. The mean
squared error that follows is that of an unbiased estimate from n reports:

- the mean of bits by binary randomized response: the same whatever the bits are;
- the mean of numbers of [0, 1], rounded to bits: that of the worst numbers, which are all 1/2;
- frequencies by k-ary randomized response: the mean over the categories, which is the same whatever
  the users hold, since the error is affine in the frequency and frequencies have the mean 1/k.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fastshuffle import (
    BracketProfile,
    FrequencyRandomizer,
    LocalRandomizer,
    PrivacyProfile,
    Randomizer,
    WorstCaseProfile,
    binary_randomized_response,
    clone_profile,
    k_randomized_response,
    largest_epsilon0,
    personalized_gdp_profile,
    stronger_clone_profile,
    worst_case_profile,
)
from fastshuffle.protocols.numeric import RoundedResponse
from validation.claim import Curve, Figure

DELTA = 1e-8
CATEGORIES = 10
USERS = (10**4, 10**6)
# Those of the table; the figures show more.
TABLED = (0.1, 0.5, 1.0, 2.0)
_EPSILONS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 1.4, 2.0)
# How far above the smallest an upper bound on delta may be computed, relatively.
_RTOL = 1e-4


def _binary(epsilon0: float) -> Randomizer:
    return binary_randomized_response(epsilon0)


def _k_ary(epsilon0: float) -> FrequencyRandomizer:
    return k_randomized_response(epsilon0, CATEGORIES)


def _error_of_bits(epsilon0: float) -> float:
    return float(RoundedResponse(epsilon0).variance(np.zeros(1))[0])


def _error_of_numbers(epsilon0: float) -> float:
    return RoundedResponse(epsilon0).largest_variance


def _error_of_frequencies(epsilon0: float) -> float:
    return float(_k_ary(epsilon0).frequency_variance(1, 1.0 / CATEGORIES))


BITS = "mean of bits"
NUMBERS = "mean of numbers, the worst"
FREQUENCIES = f"{CATEGORIES} frequencies"
_ERRORS: dict[str, Callable[[float], float]] = {
    BITS: _error_of_bits,
    NUMBERS: _error_of_numbers,
    FREQUENCIES: _error_of_frequencies,
}


@dataclass(frozen=True)
class NoiseRow:
    """The local budgets that several ways of accounting allow for one estimate.

    Attributes
    ----------
    estimate : str
        What is estimated.
    users : int
        Number of users.
    epsilon : float
        The wanted central epsilon, at `DELTA`: also the budget of the local model.
    ours, stronger, clones, formula : float
        The largest local budget by the worst case of the randomizer, by the stronger clones, by
        the clones, and by the published formula, which is an approximation.
    factor : float
        The delta of a dataset at the formula's budget, over `DELTA`: above 1 the formula promises
        too much. It is 0 where that delta is below the smallest number, or nothing is allowed.
    """

    estimate: str
    users: int
    epsilon: float
    ours: float
    stronger: float
    clones: float
    formula: float
    factor: float

    def error(self, epsilon0: float) -> float:
        """Return the mean squared error at a local budget, inf where nothing may be sent."""
        if epsilon0 == 0.0:
            return math.inf
        return _ERRORS[self.estimate](epsilon0) / self.users

    def ratio(self, epsilon0: float) -> float:
        """Return our mean squared error over that at a local budget: below 1 is less noise."""
        return self.error(self.ours) / self.error(epsilon0)

    @property
    def passed(self) -> bool:
        """Whether all that is certified is in its order, strictly."""
        bounds = (self.stronger, self.clones, self.epsilon)
        return (
            all(self.ratio(budget) < 1.0 for budget in bounds)
            and self.clones < self.stronger
            and (self.factor <= 1.0 or self.formula > self.ours)
        )


def _largest(profile_of: Callable[[float], PrivacyProfile], epsilon: float) -> float:
    return largest_epsilon0(profile_of, epsilon=epsilon, delta=DELTA)


class _Allowed(NamedTuple):
    """What depends on the randomizer."""

    ours: float
    stronger: float
    factor: float


def _allowed(
    randomizer: Callable[[float], LocalRandomizer], n: int, epsilon: float, formula: float
) -> _Allowed:
    def worst_case(epsilon0: float) -> WorstCaseProfile:
        return worst_case_profile(randomizer(epsilon0), n)

    def stronger_clones(epsilon0: float) -> BracketProfile:
        return stronger_clone_profile(randomizer(epsilon0), n, rtol=_RTOL)

    true, _ = worst_case(formula).bounds(epsilon) if formula > 0.0 else (0.0, 0.0)
    return _Allowed(_largest(worst_case, epsilon), _largest(stronger_clones, epsilon), true / DELTA)


def rows_of(n: int, epsilon: float) -> list[NoiseRow]:
    """Return a row for each estimate at one n and epsilon."""
    clones = _largest(lambda epsilon0: clone_profile(epsilon0, n, rtol=_RTOL), epsilon)
    formula = _largest(lambda epsilon0: personalized_gdp_profile(np.full(n, epsilon0)), epsilon)
    binary, k_ary = (_allowed(kind, n, epsilon, formula) for kind in (_binary, _k_ary))
    return [
        NoiseRow(estimate, n, epsilon, some.ours, some.stronger, clones, formula, some.factor)
        for estimate, some in ((BITS, binary), (NUMBERS, binary), (FREQUENCIES, k_ary))
    ]


def check_noise(*, quick: bool, progress: Callable[[str], None]) -> list[NoiseRow]:
    """Tabulate the local budgets that each way of accounting allows.

    Parameters
    ----------
    quick : bool
        Only the smaller n, and few epsilons.
    progress : callable
        Called with a line of text before each n.

    Returns
    -------
    list of NoiseRow
        For each n and epsilon one for each estimate.
    """
    rows = []
    for n in USERS[:1] if quick else USERS:
        progress(f"noise at equal privacy: n = {n:.0e}")
        for epsilon in TABLED if quick else _EPSILONS:
            rows += rows_of(n, epsilon)
    return rows


_METHODS: tuple[tuple[str, Callable[[NoiseRow], float]], ...] = (
    ("stronger clones", lambda row: row.stronger),
    ("clones", lambda row: row.clones),
    ("formula (no bound)", lambda row: row.formula),
)


def figures(rows: Sequence[NoiseRow]) -> tuple[Figure, ...]:
    """Return a figure for each estimate and n: the ratios of the mean squared errors over epsilon.

    Parameters
    ----------
    rows : sequence of NoiseRow
        What `check_noise` returned.

    Returns
    -------
    tuple of Figure
        Of the bits and of the frequencies; rounding decides about the worst numbers.
    """
    return tuple(
        Figure(
            f"{estimate}, n = {n:.0e}: our mean squared error over others'",
            "central epsilon",
            "ratio (below 1: less noise)",
            tuple(
                Curve.of(
                    label,
                    [r.epsilon for r in some],
                    [r.ratio(budget(r)) for r in some],
                    line=True,
                )
                for label, budget in _METHODS
            ),
            log_y=False,
        )
        for estimate in (BITS, FREQUENCIES)
        for n in dict.fromkeys(row.users for row in rows)
        for some in ([r for r in rows if (r.estimate, r.users) == (estimate, n)],)
    )
