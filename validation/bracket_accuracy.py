"""Accuracy survey of what rests on histograms: certified brackets and single privacy losses.

The truth is a sum over all histograms of few users, in mpmath, or an integer. A bracket has to hold
it without any allowance for rounding.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from mpmath import mp, mpf

from fastshuffle import Randomizer, ShuffleExperiment, exact_profile
from fastshuffle._positive_part.lattice import refined_on_grid
from fastshuffle._positive_part.terms import Terms, tilt_to_zero
from fastshuffle.monte_carlo.losses import loss_method
from validation.accuracy import AccuracyRow
from validation.limit_accuracy import Measure, Quantity, measure_quantities
from validation.reference.homogeneous import background_deltas
from validation.reference.mp import Direction

RECORD = Path(__file__).with_name("recorded_brackets.json")
RTOL = 1e-6

# What the other users hold is part of the regime: the key of the rows in the record.
HISTOGRAMS = "sum over histograms"

_DIGITS = 40
# Probabilities are multiples of 2**-_BITS: doubles that sum to exactly 1.
_BITS = 40
# Draws laws of the messages of so many inputs, in units of 2**-_BITS.
LawDraw = Callable[[np.random.Generator, int], list[list[int]]]
# Rounding that widens a bracket beyond rtol.
_ROUNDING = 2e-10


def _draw_rows(rng: np.random.Generator, rows: int, outputs: int) -> list[list[int]]:
    """Draw laws of moderate, rare or nearly equal outputs, in units of ``2**-_BITS``."""
    base = rng.uniform(-10.0 if rng.random() < 0.5 else -2.0, 0.0, outputs)
    width = float(rng.choice([1e-3, 0.3, 3.0]))
    laws = []
    for _ in range(rows):
        weights = np.exp(base + width * rng.uniform(-1.0, 1.0, outputs))
        units = 1 + (weights / weights.sum() * (2**_BITS - outputs)).astype(np.int64)
        units[int(units.argmax())] += 2**_BITS - int(units.sum())
        laws.append([int(x) for x in units])
    return laws


def _in_doubles(laws: Sequence[Sequence[int]]) -> list[list[float]]:
    return [[math.ldexp(x, -_BITS) for x in law] for law in laws]


def distance(log_lower: float, log_upper: float, exact: mpf) -> float:
    """Return how far the ends of a bracket are from the truth.

    Parameters
    ----------
    log_lower, log_upper : float
        Natural logarithms of the ends.
    exact : mpf
        The truth, positive.

    Returns
    -------
    float
        The larger relative distance, inf if the truth is not in between.
    """
    with mp.workdps(_DIGITS):
        log_exact = mp.log(exact)
        if not mpf(log_lower) <= log_exact <= mpf(log_upper):
            return math.inf
        ends = (mpf(log_upper) - log_exact, log_exact - mpf(log_lower))
        return float(max(mp.expm1(end) for end in ends))


# ---- The measures ------------------------------------------------------------------------------


def _bracket_error(outputs: int, most_users: int) -> Measure:
    """Return the measure of the exact profile of others who all hold one input."""

    def measure(rng: np.random.Generator) -> float | None:
        laws = _in_doubles(_draw_rows(rng, 3, outputs))
        n, held = int(rng.integers(2, most_users + 1)), int(rng.integers(3))
        experiment = ShuffleExperiment(Randomizer(laws), n, others={held: n - 1})
        profile = exact_profile(experiment, rtol=RTOL)
        direction: Direction = "forward" if rng.random() < 0.5 else "reverse"
        alternative, null = (laws[1], laws[0]) if direction == "forward" else (laws[0], laws[1])
        loss = max(math.log(p / q) for p, q in zip(alternative, null, strict=True))
        epsilon = loss * float(rng.uniform(0.0, 0.98)) ** 2
        exact = background_deltas([laws[held], alternative, null], n, [epsilon], _DIGITS).forward[0]
        return distance(*profile.log_bounds(epsilon, direction=direction), exact)

    return measure


def _grid_error(outputs: int, most_users: int) -> Measure:
    """Return the measure of the grid, which few users of few outputs do not reach by themselves."""

    def measure(rng: np.random.Generator) -> float | None:
        law = _in_doubles(_draw_rows(rng, 1, outputs))[0]
        n = int(rng.integers(2, most_users + 1))
        values = rng.standard_normal(outputs)
        values -= values @ law
        values -= float(rng.uniform(0.0, 0.98)) * values.max()  # a mean of 0, to a far tail
        terms = [Terms(float(n), values, np.array(law)).merged()]
        bracket = refined_on_grid(terms, terms, tilt_to_zero(terms), RTOL)
        with mp.workdps(_DIGITS):
            # the positive and the negative parts of the values are the ratios of two laws
            parts = [[mpf(p) * max(mpf(side * v), 0) for p, v in zip(law, values, strict=True)]
                     for side in (1.0, -1.0)]  # fmt: skip
            exact = n * background_deltas([law, *parts], n, [0.0], _DIGITS).forward[0]
        return distance(*bracket, exact)

    return measure


def _labelled(laws: Sequence[Sequence[int]], counts: Sequence[int], histogram: list[int]) -> int:
    """Return the coefficient of ``prod z_j**counts_j`` in ``prod_y (sum_j laws_jy z_j)**N_y``."""
    weights = {(0,) * len(counts): 1}
    for y, times in enumerate(histogram):
        for _ in range(times):
            longer: defaultdict[tuple[int, ...], int] = defaultdict(int)
            for labels, weight in weights.items():
                for j, law in enumerate(laws):
                    if labels[j] < counts[j]:
                        longer[*labels[:j], labels[j] + 1, *labels[j + 1 :]] += weight * law[y]
            weights = longer
    return weights[tuple(counts)]


def _parts(
    laws: Sequence[Sequence[int]], counts: Sequence[int], own: list[int], histogram: list[int]
) -> list[int]:
    """Return the law of a histogram by what the differing user sent, up to one common factor."""
    return [
        times * own[y] * _labelled(laws, counts, [*histogram[:y], times - 1, *histogram[y + 1 :]])
        for y, times in enumerate(histogram)
        if times > 0
    ]


def _loss(
    laws: Sequence[Sequence[int]],
    counts: Sequence[int],
    pair: tuple[list[int], list[int]],
    histogram: Sequence[int],
) -> float:
    """Return what the package makes of a histogram, others at some laws and the pair's own."""
    null, alternative = np.array(_in_doubles(pair))
    weights = np.stack([alternative, null, alternative - null])
    holders = np.array(counts, dtype=np.float64)
    losses = loss_method(weights, np.array(_in_doubles(laws)), holders)
    return float(losses(np.array([histogram], dtype=np.float64))[0])


def _draw_common_part(rng: np.random.Generator, rows: int) -> list[list[int]]:
    """Draw laws that exceed a common part in one output each, as many outputs as laws."""
    common = np.array(_draw_rows(rng, 1, rows)[0]) >> int(rng.integers(1, 4))
    own = 2**_BITS - int(common.sum())
    return [[int(x) + own * (y == row) for y, x in enumerate(common)] for row in range(rows)]


def _some_outputs(rng: np.random.Generator, inputs: int) -> list[list[int]]:
    return _draw_rows(rng, inputs, int(rng.integers(3, 6)))


def _three_outputs(rng: np.random.Generator, inputs: int) -> list[list[int]]:
    return _draw_rows(rng, inputs, 3)


def _loss_error(inputs: int, most_users: int, draw_laws: LawDraw) -> Measure:
    """Return the measure of the loss of a histogram, others at so many inputs."""

    def measure(rng: np.random.Generator) -> float | None:
        laws = draw_laws(rng, inputs)
        outputs = len(laws[0])
        null, alternative = _draw_rows(rng, 2, outputs)
        n = int(rng.integers(inputs + 1, most_users + 1))
        counts = [int(x) for x in 1 + rng.multinomial(n - 1 - inputs, [1.0 / inputs] * inputs)]
        senders = [*counts, 1]
        if rng.random() < 0.5:
            rows = _in_doubles([*laws, alternative])
            drawn = sum(rng.multinomial(c, row) for c, row in zip(senders, rows, strict=True))
        else:
            drawn = rng.multinomial(n, rng.dirichlet(np.ones(outputs)))
        histogram = [int(x) for x in np.atleast_1d(drawn)]
        q, p = (_parts(laws, counts, own, histogram) for own in (null, alternative))
        if sum(p) == sum(q):
            return None
        value = _loss(laws, counts, (null, alternative), histogram)
        with mp.workdps(_DIGITS):
            exact = mp.log(mpf(sum(p)) / sum(q))
            gap = sum(abs(x - y) for x, y in zip(p, q, strict=True))
            condition = mpf(gap) / abs(sum(p) - sum(q))
            return float(abs(mpf(value) - exact) / abs(exact) / condition)

    return measure


QUANTITIES = (
    Quantity("exact_profile", "delta, all", "3 outputs, n <= 60", RTOL + _ROUNDING, 100, 6,
             _bracket_error(3, 60)),
    Quantity("exact_profile", "delta, all", "4 outputs, n <= 40", RTOL + _ROUNDING, 40, 2,
             _bracket_error(4, 40)),
    Quantity("mean of a positive part on a grid", "all", "3 values, n <= 60", RTOL + _ROUNDING,
             60, 4, _grid_error(3, 60)),
    Quantity("mean of a positive part on a grid", "all", "5 values, n <= 16", RTOL + _ROUNDING,
             40, 2, _grid_error(5, 16)),
    Quantity("privacy loss of a histogram", "by labels", "others at 2 inputs, n <= 60", 1e-13, 200,
             20, _loss_error(2, 60, _some_outputs)),
    Quantity("privacy loss of a histogram", "by labels", "others at 3 inputs, n <= 30", 1e-13, 60,
             4, _loss_error(3, 30, _some_outputs)),
    Quantity("privacy loss of a histogram", "by outputs", "others at 4 inputs, n <= 20", 1e-13, 60,
             4, _loss_error(4, 20, _three_outputs)),
    Quantity("privacy loss of a histogram", "by outputs", "others at 5 inputs, n <= 16", 1e-13, 40,
             2, _loss_error(5, 16, _three_outputs)),
    Quantity("privacy loss of a histogram", "common part", "others at 4 inputs, n <= 20", 1e-13,
             40, 4, _loss_error(4, 20, _draw_common_part)),
    Quantity("privacy loss of a histogram", "common part", "others at 5 inputs, n <= 16", 1e-13,
             20, 2, _loss_error(5, 16, _draw_common_part)),
)  # fmt: skip


def survey(*, quick: bool, progress: Callable[[str], None]) -> list[AccuracyRow]:
    """Measure the largest error of every bracket and loss, in the order of `QUANTITIES`."""
    return measure_quantities(QUANTITIES, HISTOGRAMS, quick=quick, progress=progress)
