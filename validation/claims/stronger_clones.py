"""The stronger clone bound for randomizers outside the class for which it is proved."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
from scipy.optimize import linprog

from validation.bounds import largest_deltas
from validation.claim import Claim, Finding, Verdict, none_of
from validation.reference import lattice
from validation.reference.constants import Floats

_SOURCE = "V. Feldman, A. McMillan, K. Talwar, arXiv:2208.04591"

CLAIMS = (
    Claim(
        "The stronger clone bound holds for every epsilon0-private randomizer",
        f"{_SOURCE}; its errata take this back for general randomizers",
        Verdict.UNDECIDED,
    ),
    Claim(
        "It holds if W_z >= (W_a + W_b)/(e^epsilon0 + 1) for all a, b and z",
        f"{_SOURCE}, errata (a restricted class); recorded by this project",
        Verdict.HOLDS,
    ),
)

_SHARES = (0.0, 0.1, 0.3, 0.6, 0.9)
_MOST_OUTPUTS = 4


def _bound(epsilon0: float, n: int, epsilon: float) -> float:
    """Return delta of the pair with a clone of either kind from each of the others."""
    larger, flip = math.exp(epsilon0), 1.0 / (math.exp(epsilon0) + 1.0)
    rows = np.array(
        [
            [flip, flip, 1.0 - 2.0 * flip],
            [larger * flip, flip, 0.0],
            [flip, larger * flip, 0.0],
        ]
    )
    others = lattice.histogram(rows[:1], (n - 1,), n + 1)
    p, q = (lattice.with_one_more(others, row) for row in rows[1:])
    return lattice.hockey_stick(p, q, epsilon)


def _draw(rng: np.random.Generator, epsilon0: float) -> Floats | None:
    """Return a randomizer of 3 or 4 inputs, most of its ratios 1 or ``exp(epsilon0)``.

    A column is a pattern of two values; the weights are a vertex of those with rows that sum to 1,
    or between two vertices.
    """
    inputs = int(rng.integers(3, 5))
    patterns = [p for p in itertools.product((0.0, 1.0), repeat=inputs) if 0 < sum(p) < inputs]
    columns = np.exp(epsilon0 * np.array(patterns)).T
    weights = np.zeros(len(patterns))
    for share in (1.0,) if rng.random() < 0.5 else (0.5, 0.5):
        vertex = linprog(rng.normal(size=len(patterns)), A_eq=columns, b_eq=np.ones(inputs))
        if vertex.status != 0:
            return None
        weights = weights + share * vertex.x
    rows: Floats = (columns * weights)[:, weights > 1e-9]
    if not 2 <= rows.shape[1] <= _MOST_OUTPUTS:
        return None
    return rows / rows.sum(axis=1, keepdims=True)


def _in_class(rows: Floats, epsilon0: float) -> bool:
    flip = 1.0 / (math.exp(epsilon0) + 1.0)
    least = rows.min(axis=0)
    return all(
        bool((least >= (a + b) * flip * (1.0 - 1e-12)).all())
        for a, b in itertools.combinations(rows, 2)
    )


def measure(*, quick: bool) -> list[Finding]:
    """Search small n for a dataset above the bound, in the class and outside it."""
    wanted = 5 if quick else 150
    rng = np.random.default_rng(20260309)
    above, tried = {True: 0, False: 0}, {True: 0, False: 0}
    draws = 0
    while min(tried.values()) < wanted and draws < 40 * wanted:
        draws += 1
        epsilon0 = float(rng.choice([0.5, 1.0, 2.0, 3.0]))
        rows = _draw(rng, epsilon0)
        if rows is None or tried[inside := _in_class(rows, epsilon0)] >= wanted:
            continue
        n = int(rng.integers(2, 5 if rows.shape[1] == _MOST_OUTPUTS else 6))
        epsilons = [share * epsilon0 for share in _SHARES]
        found = largest_deltas(rows, n, epsilons)
        tried[inside] += 1
        above[inside] += any(
            extremes.low > _bound(epsilon0, n, epsilon) * (1.0 + 1e-12)
            for epsilon, extremes in zip(epsilons, found, strict=True)
        )
    # a search that finds nothing proves nothing
    outside = replace(
        none_of(above[False], tried[False], name="above"), passed=False if above[False] else None
    )
    grid = "random W of 3 and 4 inputs with extreme ratios, n = 2 to 5, every dataset, 5 epsilons"
    return [
        Finding(
            "randomizers outside the class with a dataset above the bound",
            grid,
            (outside,),
            otherwise="no counterexample among those tried, which proves nothing; the library "
            "refuses the bound there",
        ),
        Finding(
            "randomizers in the class with a dataset above the bound",
            grid,
            (none_of(above[True], tried[True], name="above"),),
        ),
    ]
