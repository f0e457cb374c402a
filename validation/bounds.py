"""The universal bounds against every dataset by brute force, and the gap of the worst case.

The brute force shares no code with the package: the law of the histogram is built one user at a
time, for all compositions of the others over all inputs and every ordered pair of the differing
user, and its delta is taken on the low side of rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fastshuffle import (
    LocalRandomizer,
    PrivacyProfile,
    Randomizer,
    blanket_profile,
    chernoff_profile,
    clone_profile,
    discrete_laplace,
    discretized_gaussian,
    hadamard_response,
    k_randomized_response,
    optimized_local_hashing,
    optimized_unary_encoding,
    rappor,
    stronger_clone_profile,
    subset_selection,
    symmetric_unary_encoding,
    variation_ratio_profile,
    worst_case_profile,
)
from validation.reference.lattice import with_one_more

Floats = npt.NDArray[np.float64]

_SEED = 20260415
_SHARES = (0.0, 0.15, 0.5, 0.9)

# k-ary randomized response whose gap is tabulated.
EPSILON0 = 2.0
INPUTS = 10
DELTA = 1e-9
_GAP_USERS = (10**3, 10**4, 10**5, 10**6, 10**8)
_LARGEST_GAP = 0.01


@dataclass(frozen=True)
class BoundRow:
    """How a universal bound compares with the largest delta over all datasets.

    Attributes
    ----------
    bound : str
        Name of the bound.
    datasets : str
        Which randomizers and which n were tried.
    points : int
        Number of randomizers, n and epsilons.
    tried : int
        Number of datasets tried in all.
    above : int
        Points at which some dataset lies above the bound.
    tightest : float
        The smallest ratio of the bound to the worst delta found.
    """

    bound: str
    datasets: str
    points: int
    tried: int
    above: int
    tightest: float

    @property
    def passed(self) -> bool:
        """Whether no dataset lies above the bound."""
        return self.points > 0 and self.above == 0


@dataclass(frozen=True)
class GapRow:
    """The bracket of the worst case of k-ary randomized response.

    Attributes
    ----------
    users : int
        Number of users.
    epsilon : float
        Where the upper end is `DELTA`.
    gap : float
        How far the upper end lies above the lower end, relative.
    smaller : bool
        Whether the gap is below that of the row before, or below the rtol of either end.
    """

    users: int
    epsilon: float
    gap: float
    smaller: bool

    @property
    def passed(self) -> bool:
        """Whether the gap shrinks, and is below one percent at a million users and more."""
        return self.smaller and (self.users < 10**6 or self.gap < _LARGEST_GAP)


class Extremes(NamedTuple):
    """The largest delta over all datasets, between two numbers, and how many were tried."""

    low: float
    high: float
    tried: int


def _backgrounds(rows: Floats, law: Floats, users: int) -> Iterator[Floats]:
    """Yield the law of the histogram for every composition of some users over the rows."""
    if len(rows) == 1 or users == 0:
        for _ in range(users):
            law = with_one_more(law, rows[0])
        yield law
        return
    for left in range(users, -1, -1):
        yield from _backgrounds(rows[1:], law, left)
        if left > 0:
            law = with_one_more(law, rows[0])


def largest_deltas(
    rows: Floats,
    n: int,
    epsilons: Sequence[float],
    pairs: Sequence[tuple[int, int]] | None = None,
) -> list[Extremes]:
    """Return the largest delta over all datasets at each epsilon, by trying every one.

    Parameters
    ----------
    rows : array of float
        The randomizer; columns may be merged where all rows are proportional.
    n : int
        Number of users including the one who differs.
    epsilons : sequence of float
        Finite privacy parameters.
    pairs : sequence of tuple of int, optional
        The ordered pairs `(a, b)` of the differing user, a under Q and b under P; by default all.

    Returns
    -------
    list of Extremes
        For each epsilon.
    """
    rows = np.asarray(rows, dtype=np.float64)
    chosen = list(permutations(range(len(rows)), 2)) if pairs is None else list(pairs)
    start = np.zeros((n + 1,) * (rows.shape[1] - 1))
    start[(0,) * start.ndim] = 1.0
    # every mass is off by at most this, relatively: two roundings a user and output
    error = 2.0 * (n + 2) * rows.shape[1] * float(np.finfo(np.float64).eps)
    low, high = np.zeros(len(epsilons)), np.zeros(len(epsilons))
    tried = 0
    for background in _backgrounds(rows, start, n - 1):
        laws = [with_one_more(background, row) for row in rows]
        for a, b in chosen:
            tried += 1
            for i, epsilon in enumerate(epsilons):
                scaled = math.exp(epsilon) * laws[a]
                spread = error * (laws[b] + scaled)
                gap = laws[b] - scaled
                low[i] = max(low[i], float(np.maximum(gap - spread, 0.0).sum()))
                high[i] = max(high[i], float(np.maximum(gap + spread, 0.0).sum()))
    return [Extremes(*ends, tried) for ends in zip(low.tolist(), high.tolist(), strict=True)]


# ---- Randomizers ------------------------------------------------------------------------------


def _draw(rng: np.random.Generator) -> Randomizer:
    n_inputs, n_outputs = int(rng.integers(2, 4)), int(rng.integers(2, 5))
    rows = rng.dirichlet(np.full(n_outputs, rng.choice([0.5, 1.0, 4.0])), n_inputs)
    if rng.random() < 0.5:  # nearer to each other
        rows = 0.3 * rows + 0.7 * rows.mean(axis=0)
    return Randomizer(rows / rows.sum(axis=1, keepdims=True))


def _named() -> list[tuple[LocalRandomizer, int]]:
    """Return mechanisms at small alphabets, each with the largest n that is tried."""
    return [
        (k_randomized_response(1.0, 3), 8),
        (k_randomized_response(2.0, 5), 8),
        (k_randomized_response(3.0, 4), 8),
        (subset_selection(1.0, 4, omega=2), 5),
        (symmetric_unary_encoding(2.0, 2), 8),
        (symmetric_unary_encoding(1.0, 3), 4),
        (optimized_unary_encoding(2.0, 2), 8),
        (optimized_unary_encoding(3.0, 3), 4),
        (optimized_local_hashing(2.0, 3), 4),
        (rappor(3, f=0.5, p=0.25, q=0.75), 4),
        (rappor(3, f=0.25, p=0.75, q=0.125), 4),
        (hadamard_response(2.0, 3), 6),
        (discrete_laplace(1.0, 4), 7),
        (discrete_laplace(3.0, 3), 8),
        (discretized_gaussian(0.5, 3), 7),
    ]


def _distance(rows: Floats, a: int, b: int) -> float:
    return 0.5 * float(np.abs(rows[a] - rows[b]).sum())


def _ratio(rows: Floats, over: Floats) -> float:
    return float((rows / over).max())


def _variation_ratio(randomizer: LocalRandomizer, n: int) -> PrivacyProfile | None:
    """Return the variation-ratio bound of the pair (0, 1), if its parameters are finite."""
    rows = randomizer.merged_rows(range(randomizer.n_inputs))
    if (rows == 0.0).any():
        return None
    p = max(_ratio(rows[0], rows[1]), _ratio(rows[1], rows[0]))
    q = max(_ratio(rows[:2], row) for row in rows)
    beta = _distance(rows, 0, 1)
    # rounding of the ratios goes up, and that of the distance is within the brute force's
    p, q = p * (1.0 + 1e-14), q * (1.0 + 1e-14)
    return variation_ratio_profile(p, min(beta, (p - 1.0) / (p + 1.0)), q, n)


def _stronger_clones(randomizer: LocalRandomizer, n: int) -> PrivacyProfile | None:
    """Return the stronger clone bound, or None where it is refused."""
    try:
        return stronger_clone_profile(randomizer, n)
    except ValueError:
        return None


_Maker = Callable[[LocalRandomizer, int], PrivacyProfile | None]

_BOUNDS: dict[str, _Maker] = {
    "blanket": blanket_profile,
    "chernoff": chernoff_profile,
    "worst case": worst_case_profile,
    "clones": lambda randomizer, n: clone_profile(randomizer.epsilon0, n),
    "stronger clones": _stronger_clones,
    "variation ratio": _variation_ratio,
}


def _compare(bound: str, cases: Sequence[tuple[LocalRandomizer, int]], datasets: str) -> BoundRow:
    points = tried = above = 0
    tightest = math.inf
    for randomizer, n in cases:
        if not 0.0 < randomizer.epsilon0 < math.inf:
            continue
        profile = _BOUNDS[bound](randomizer, n)
        if profile is None:
            continue
        pairs = [(0, 1), (1, 0)] if bound == "variation ratio" else None
        epsilons = [share * randomizer.epsilon0 for share in _SHARES]
        rows = randomizer.merged_rows(range(randomizer.n_inputs))
        found = largest_deltas(rows, n, epsilons, pairs)
        for epsilon, (low, _, count) in zip(epsilons, found, strict=True):
            value = float(profile.delta(epsilon))
            points += 1
            tried += count
            above += not value >= low
            tightest = min(tightest, value / low) if low > 0.0 else tightest
    return BoundRow(bound, datasets, points, tried, above, tightest)


def check_bounds(*, quick: bool, progress: Callable[[str], None]) -> list[BoundRow]:
    """Check each universal bound at small n against every dataset.

    Parameters
    ----------
    quick : bool
        Try a small part of the randomizers.
    progress : callable
        Called with a line of text as each table row begins.

    Returns
    -------
    list of BoundRow
        Random randomizers and named mechanisms at small alphabets, for each bound.
    """
    rng = np.random.default_rng(_SEED)
    drawn = [(_draw(rng), int(rng.integers(1, 9))) for _ in range(6 if quick else 150)]
    named = [
        (randomizer, n)
        for randomizer, most_users in _named()
        for n in ((min(most_users, 3),) if quick else range(1, most_users + 1))
    ]
    rows = []
    for bound in _BOUNDS:
        for cases, datasets in ((drawn, "random, n <= 8"), (named, "mechanisms, n <= 8")):
            progress(f"bounds: {bound}, {datasets}")
            rows.append(_compare(bound, cases, datasets))
    return rows


def check_gap(*, quick: bool, progress: Callable[[str], None]) -> list[GapRow]:
    """Tabulate the gap of the worst case of k-ary randomized response over n.

    Parameters
    ----------
    quick : bool
        Leave out the largest n.
    progress : callable
        Called with a line of text at the start.

    Returns
    -------
    list of GapRow
        One for each n.
    """
    progress(f"bounds: gap of {INPUTS}-ary randomized response")
    rtol = 1e-4
    rows: list[GapRow] = []
    for n in _GAP_USERS[:-1] if quick else _GAP_USERS:
        profile = worst_case_profile(k_randomized_response(EPSILON0, INPUTS), n, rtol=rtol)
        epsilon = float(profile.epsilon(DELTA))
        lower, upper = profile.bounds(epsilon)
        gap = upper / lower - 1.0
        rows.append(GapRow(n, epsilon, gap, not rows or gap < max(rows[-1].gap, 2.0 * rtol)))
    return rows
