"""What personal budgets cost: the published formula, earlier bounds and exact values side by side.

Binary randomized response with budgets of several kinds. The earlier bounds know one budget only,
the largest: clones and exact values of uniform budgets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fastshuffle import (
    binary_randomized_response,
    clone_profile,
    personalized_clone_profile,
    personalized_exact_profile,
    personalized_gdp_profile,
    worst_case_profile,
)
from validation.claim import Curve, Figure

DELTA = 1e-8
_USERS = (10**3, 10**4, 10**5, 10**6)
_QUICK_USERS = (10**3,)
# Brackets of epsilon and the search of uniform budgets end this close, relatively.
_SLACK = 1.0 + 1e-4

Budgets = npt.NDArray[np.float64]


@dataclass(frozen=True)
class PersonalRow:
    """The epsilon of the worst user by several methods.

    Attributes
    ----------
    population : str
        How the budgets are spread.
    users : int
        Number of users.
    formula : float
        By the published formula.
    equal_bits, exact : float
        Exactly, where the others' bits are equal; and certified over all bits.
    median : float
        Exactly, of a user with the median budget.
    clones : float
        By the clones with personal budgets, of the class that contains binary response.
    uniform_clones, uniform : float
        By the clones, and certified, if all had the largest budget.
    factor : float
        The exact delta with equal bits at the epsilon of the formula, over `DELTA`: above 1 the
        formula promises too much.
    """

    population: str
    users: int
    formula: float
    equal_bits: float
    exact: float
    median: float
    clones: float
    uniform_clones: float
    uniform: float
    factor: float

    @property
    def passed(self) -> bool:
        """Whether all that is certified is in its order."""
        return (
            self.median <= self.equal_bits * _SLACK
            and self.equal_bits <= self.exact * _SLACK
            and self.exact <= self.clones * _SLACK
            and self.clones <= self.uniform_clones * _SLACK
            and self.equal_bits <= self.uniform * _SLACK
        )


def _equal(budget: float) -> Callable[[np.random.Generator, int], Budgets]:
    return lambda _, n: np.full(n, budget)


def _one_apart(rng: np.random.Generator, n: int) -> Budgets:
    del rng
    return np.append(8.0, np.full(n - 1, 1.0))


def _two_levels(rng: np.random.Generator, n: int) -> Budgets:
    del rng
    return np.concatenate((np.full(n // 10, 3.0), np.full(n - n // 10, 0.5)))


def _between(low: float, high: float) -> Callable[[np.random.Generator, int], Budgets]:
    return lambda rng, n: rng.uniform(low, high, n)


def _clipped_normal(rng: np.random.Generator, n: int) -> Budgets:
    return np.clip(rng.normal(0.75, 0.5, n), 0.05, 1.0)


POPULATIONS: dict[str, Callable[[np.random.Generator, int], Budgets]] = {
    "uniform, 1": _equal(1.0),
    "uniform, 5": _equal(5.0),
    "one of 8, the others 1": _one_apart,
    "two levels, 10 % of 3 and 90 % of 0.5": _two_levels,
    "random, uniform on [0.05, 1]": _between(0.05, 1.0),
    "random, uniform on [0.5, 5]": _between(0.5, 5.0),
    "random, normal (0.75, 0.5) clipped to [0.05, 1]": _clipped_normal,
}


def _row(population: str, n: int) -> PersonalRow:
    budgets = POPULATIONS[population](np.random.default_rng(n), n)
    largest = float(budgets.max())
    formula = personalized_gdp_profile(budgets)
    known = personalized_exact_profile(budgets, bits=np.zeros(n))
    epsilon = float(formula.epsilon(DELTA))
    middle = int(np.argsort(budgets)[n // 2])
    return PersonalRow(
        population,
        n,
        epsilon,
        float(known.epsilon(DELTA)),
        float(personalized_exact_profile(budgets).epsilon(DELTA)),
        float(known.user(middle).epsilon(DELTA)),
        float(personalized_clone_profile(budgets, family="containing").epsilon(DELTA)),
        float(clone_profile(largest, n).epsilon(DELTA)),
        float(worst_case_profile(binary_randomized_response(largest), n).epsilon(DELTA)),
        float(known.delta(epsilon) / DELTA),
    )


def check_personal(*, quick: bool, progress: Callable[[str], None]) -> list[PersonalRow]:
    """Tabulate the epsilon of the worst user over populations and n.

    Parameters
    ----------
    quick : bool
        Only small n.
    progress : callable
        Called with a line of text before each population.

    Returns
    -------
    list of PersonalRow
        For each population, in order of n.
    """
    rows = []
    for population in POPULATIONS:
        progress(f"personal budgets: {population}")
        rows += [_row(population, n) for n in (_QUICK_USERS if quick else _USERS)]
    return rows


_METHODS: tuple[tuple[str, Callable[[PersonalRow], float]], ...] = (
    ("clones, all with the largest budget", lambda row: row.uniform_clones),
    ("exact, all with the largest budget", lambda row: row.uniform),
    ("clones, personal budgets", lambda row: row.clones),
    ("exact, personal budgets", lambda row: row.exact),
    ("exact, a user with the median budget", lambda row: row.median),
    ("formula (no bound)", lambda row: row.formula),
)


def figures(rows: Sequence[PersonalRow]) -> tuple[Figure, ...]:
    """Return a figure for each population: epsilon over n by each method.

    Parameters
    ----------
    rows : sequence of PersonalRow
        What `check_personal` returned.

    Returns
    -------
    tuple of Figure
        In the order of the populations.
    """
    return tuple(
        Figure(
            f"{population}: epsilon of the worst user at delta = {DELTA:g}",
            "users n",
            "epsilon",
            tuple(
                Curve.of(label, [r.users for r in some], [value(r) for r in some], line=True)
                for label, value in _METHODS
            ),
        )
        for population in dict.fromkeys(row.population for row in rows)
        for some in ([row for row in rows if row.population == population],)
    )
