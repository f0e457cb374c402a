"""Accuracy survey of the limits: each curve, as a function, against its own definition.

How far a limit is from the exact curve is another question: see the claims. Here the limit itself
is computed at many digits from the parameters that the profile holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
from mpmath import mp, mpf

from fastshuffle import (
    Randomizer,
    ShuffleExperiment,
    binary_randomized_response,
    compound_poisson_profile,
    edgeworth_profile,
    fisher_constant,
    gaussian_profile,
    hybrid_profile,
    poisson_profile,
    skellam_profile,
    tangent_profile,
)
from validation.accuracy import AccuracyRow
from validation.reference import mp as binomial
from validation.reference import poisson as reference

RECORD = Path(__file__).with_name("recorded_limits.json")

# What the other users hold has no part in these: the key of the rows in the record.
LIMIT = "limit"

_SEED = 20260308
_DIGITS = 30
_LOG_SMALLEST = math.log(1e-300)

Measure = Callable[[np.random.Generator], float | None]


class Quantity(NamedTuple):
    """A quantity of a limit, where it is measured, and how.

    Attributes
    ----------
    name, span, regime : str
        As in `AccuracyRow`, the regime in place of the number of users.
    documented : float
        The bound on the error that the documentation states.
    cases, quick_cases : int
        Cases in the full and in the quick survey.
    measure : callable
        Returns the error at a random point, or None where the draw has none.
    """

    name: str
    span: str
    regime: str
    documented: float
    cases: int
    quick_cases: int
    measure: Measure


def _log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def _relative(log_value: float, exact: mpf) -> float | None:
    """Return the relative error, less what the last bits of epsilon and mu alone can do.

    In the Gaussian tail they move delta by a multiple ``2 abs(log delta)`` of themselves.
    """
    with mp.workdps(_DIGITS):
        log_exact = mp.log(exact) if exact > 0 else mp.ninf
        if log_exact < _LOG_SMALLEST:
            return None
        error = float(abs(mp.expm1(mpf(log_value) - log_exact)))
    return error / (1.0 - 2.0 * float(log_exact) / 1000.0)


# ---- The measures ------------------------------------------------------------------------------


def _solve(matrix: list[list[Fraction]], right: list[Fraction]) -> list[Fraction]:
    """Solve a linear system in fractions; the matrix is positive definite."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for i, pivot in enumerate(rows):
        for j, row in enumerate(rows):
            if j != i:
                factor = row[i] / pivot[i]
                rows[j] = [x - factor * y for x, y in zip(row, pivot, strict=True)]
    return [row[-1] / row[i] for i, row in enumerate(rows)]


def _fisher_in_fractions(rows: Sequence[Sequence[Fraction]], pi: Fraction) -> Fraction:
    """Return ``v^T Sigma_pi^+ v``, with the last output left out."""
    size = len(rows[0]) - 1
    covariance = [
        [
            sum(
                (
                    share * ((row[i] if i == j else 0) - row[i] * row[j])
                    for share, row in zip((1 - pi, pi), rows, strict=True)
                ),
                Fraction(0),
            )
            for j in range(size)
        ]
        for i in range(size)
    ]
    v = [rows[1][i] - rows[0][i] for i in range(size)]
    return sum((a * b for a, b in zip(v, _solve(covariance, v), strict=True)), Fraction(0))


def _fisher_error(rng: np.random.Generator) -> float | None:
    outputs = int(rng.integers(2, 7))
    base = np.exp(rng.uniform(-12.0, 0.0, outputs))
    close = rng.random() < 0.5
    counts = []
    for _ in range(2):
        weights = base * np.exp(rng.uniform(-1.0, 1.0, outputs) * (1e-4 if close else 2.0))
        whole = 1 + (weights / weights.sum() * (2**40 - outputs)).astype(np.int64)
        whole[int(whole.argmax())] += 2**40 - int(whole.sum())
        counts.append([int(x) for x in whole])
    if counts[0] == counts[1]:
        return None
    rows = [[Fraction(x, 2**40) for x in row] for row in counts]  # doubles, all of them
    pi = Fraction(int(rng.integers(0, 1025)), 1024)
    value = fisher_constant(Randomizer([[float(x) for x in row] for row in rows]), float(pi))
    exact = _fisher_in_fractions(rows, pi)
    return abs(float((Fraction(value) - exact) / exact))


def _experiment(rng: np.random.Generator) -> ShuffleExperiment:
    n = round(_log_uniform(rng, 2.0, 1e15))
    k = int(rng.choice([0, n // 3, n - 1]))
    return ShuffleExperiment(binary_randomized_response(_log_uniform(rng, 1e-3, 20.0)), n, k=k)


def _gaussian_error(rng: np.random.Generator) -> float | None:
    profile = gaussian_profile(_experiment(rng))
    mu = profile.mu
    epsilon = mu * (float(rng.uniform(0.0, 37.0)) + 0.5 * mu)
    if epsilon > 700.0:
        return None
    with mp.workdps(400):  # the two terms cancel, by up to a factor of mu^2
        scaled, half = mpf(epsilon) / mpf(mu), mpf(mu) / 2
        exact = mp.ncdf(half - scaled) - mp.exp(mpf(epsilon)) * mp.ncdf(-half - scaled)
    return _relative(float(profile.log_delta(epsilon)), exact)


def _tangent_error(rng: np.random.Generator) -> float | None:
    experiment = _experiment(rng)
    if gaussian_profile(experiment).mu > 2.5:
        return None
    profile = tangent_profile(experiment)
    epsilon = profile.mu * float(rng.uniform(0.0, 37.0))
    with mp.workdps(60):
        t = mpf(epsilon) / mpf(profile.mu)
        exact = mpf(profile.mu) * (mp.npdf(t) - t * mp.ncdf(-t))
    return _relative(float(profile.log_delta(epsilon)), exact)


def _shift_error(*, inside: bool) -> Measure:
    """Return the measure of the Poisson limit, or inside (0, 1) of the Skellam limit."""

    def measure(rng: np.random.Generator) -> float | None:
        n = round(_log_uniform(rng, 1e3, 1e12))
        rate = _log_uniform(rng, 0.05, 40.0)
        rr = binary_randomized_response(math.log(n / rate))
        k = round(float(rng.uniform(0.1, 0.9)) * n) if inside else 0
        make = skellam_profile if inside else poisson_profile
        profile = make(ShuffleExperiment(rr, n, k=k))
        direction = "forward" if rng.random() < 0.5 else "reverse"
        epsilon = float(rng.uniform(0.0, 3.0))
        exact = reference.shift_delta(epsilon, *profile.means, direction, _DIGITS)
        value = float(
            profile.log_delta(epsilon, direction="forward")
            if direction == "forward"
            else profile.log_delta(epsilon, direction="reverse")
        )
        return _relative(value, exact)

    return measure


def _compound_error(rng: np.random.Generator) -> float | None:
    """Return the error of the compound limit of three outputs, others at one home or at two."""
    n = round(_log_uniform(rng, 200.0, 1e6))
    rates = rng.uniform(0.05, 1.2, (3, 3)) / n
    np.fill_diagonal(rates, 0.0)
    matrix = rates + np.diag(1.0 - rates.sum(axis=1))
    randomizer = Randomizer(matrix)
    first = int(rng.integers(0, n))
    others = {0: n - 1 - first, 1: first} if rng.random() < 0.5 else {2: n - 1}
    jumps = []
    for home, count in others.items():
        for y in range(3):
            if y != home and count > 0:
                move = [0, 0, 0]
                move[home], move[y] = -1, 1
                jumps.append((tuple(move), count * float(randomizer.matrix[home, y])))
    epsilon = float(rng.uniform(0.0, 1.5))
    exact = reference.field_delta(epsilon, tuple(jumps), {(0, 1, 0): 1}, {(1, 0, 0): 1}, 18)
    profile = compound_poisson_profile(ShuffleExperiment(randomizer, n, others=others))
    if exact < 1e-3:  # the law of the reference is cut at 18 digits
        return None
    return _relative(float(profile.log_delta(epsilon, direction="forward")), exact)


def _large_shift_error(rng: np.random.Generator) -> float | None:
    """Return the error of the Skellam limit at large means.

    There a Poisson count is a binomial one of 10**45 trials to more than 15 digits, and a shift of
    both laws changes nothing.
    """
    n = round(_log_uniform(rng, 1e7, 1e15))
    rr = binary_randomized_response(math.log(n / _log_uniform(rng, 1e3, 0.1 * n)))
    profile = skellam_profile(ShuffleExperiment(rr, n, k=round(float(rng.random()) * (n - 1))))
    up, down = (Fraction(mean) / 10**45 for mean in profile.means)
    epsilon = float(rng.uniform(0.0, 37.0)) / math.sqrt(sum(profile.means))
    groups = [(10**45, up), (10**45, 1 - down)]
    exact = binomial.delta_large(groups, 0, 1, epsilon, "forward", 20)
    return _relative(float(profile.log_delta(epsilon, direction="forward")), exact)


def _hybrid_error(rng: np.random.Generator) -> float | None:
    """Return the error of the hybrid limit with one rare output, others at the first input."""
    n = round(_log_uniform(rng, 1e3, 1e9))
    rare = _log_uniform(rng, 0.05, 15.0) / n
    share, moved, own = rng.uniform(0.2, 0.7), rng.uniform(0.2, 0.7), _log_uniform(rng, 1e-3, 0.2)
    randomizer = Randomizer([[share, 1.0 - share - rare, rare], [moved, 1.0 - moved - own, own]])
    profile = hybrid_profile(ShuffleExperiment(randomizer, n, k=0))
    direction = "forward" if rng.random() < 0.5 else "reverse"
    epsilon = _log_uniform(rng, 1e-3, 2.0)
    rows = randomizer.matrix
    often = (float(rows[0, :2].sum()), float(rows[1, :2].sum()))
    rare_rows = [(profile.means[0], float(rows[0, 2]), float(rows[1, 2]))]
    exact = reference.hybrid_delta(epsilon, profile.mu, often, rare_rows, direction, 250)
    value = float(
        profile.log_delta(epsilon, direction="forward")
        if direction == "forward"
        else profile.log_delta(epsilon, direction="reverse")
    )
    return _relative(value, exact)


def _edgeworth_error(rng: np.random.Generator) -> float | None:
    """Return the error of the expansion for others at one input, 3 to 6 outputs."""
    outputs, order = int(rng.integers(3, 7)), int(rng.integers(3, 5))
    counts = [1 + rng.multinomial(2**20 - outputs, rng.dirichlet(np.full(outputs, 3.0)))
              for _ in range(3)]  # fmt: skip
    rows = [[math.ldexp(int(x), -20) for x in row] for row in counts]
    n, held = round(_log_uniform(rng, 1e4, 1e15)), int(rng.integers(3))
    experiment = ShuffleExperiment(Randomizer(rows), n, others={held: n - 1})
    profile = edgeworth_profile(experiment, order=order)
    epsilon = float(rng.uniform(0.0, 0.99)) * profile.largest_epsilon
    with mp.workdps(60):
        growth, root = mp.expm1(mpf(epsilon)), mp.sqrt(n)
        law = [mpf(p) for p in rows[held]]
        terms = [(mpf(b) - (1 + growth) * mpf(a)) / p + growth
                 for a, b, p in zip(*rows[:2], law, strict=True)]  # fmt: skip
        square, third, fourth = (
            mp.fsum(p * x**power for p, x in zip(law, terms, strict=True)) for power in (2, 3, 4)
        )
        deviation = mp.sqrt(square)
        skewness, kurtosis = third / deviation**3, fourth / square**2 - 3
        t = root * growth / deviation
        correction = skewness * t / (6 * root)
        if order == 4:
            of_square = skewness**2 * (t**4 - 6 * t**2 + 3) / 72
            correction += (kurtosis * (t**2 - 1) / 24 + of_square) / n
        exact = deviation / root * (mp.npdf(t) * (1 + correction) - t * mp.ncdf(-t))
    return _relative(float(profile.log_delta(epsilon, direction="forward")), exact)


def _hermite(degree: int, u: mpf) -> mpf:
    """Return the Hermite polynomial He of a degree."""
    return mp.hermite(degree, u / mp.sqrt(2)) / mp.sqrt(2) ** degree


def _edgeworth_half_line(x: int, growth: mpf, pair: Sequence[mpf], cumulants: Sequence[mpf]) -> mpf:
    """Return the expansion of order 4 of ``P(x or more) - exp(epsilon) Q(x or more)``."""
    mean, variance, third, fourth = cumulants
    root = mp.sqrt(variance)
    skew, kurt = third / root**3, fourth / variance**2
    below, edge = (x - 1 - mean) / root, (x - mpf(1) / 2 - mean) / root
    of_mass, of_tail = (
        skew / 6 * _hermite(3 - shift, u)
        + kurt / 24 * _hermite(4 - shift, u)
        + skew**2 / 72 * _hermite(6 - shift, u)
        for shift, u in ((0, below), (1, edge))
    )
    mass = mp.npdf(below) / root * (1 + of_mass)
    tail = mp.ncdf(-edge) + mp.npdf(edge) * (of_tail - edge / (24 * variance))
    return (pair[1] - pair[0]) * mass - growth * (pair[0] * mass + tail)


def _edgeworth_groups_error(rng: np.random.Generator) -> float | None:
    """Return the error of the expansion for two groups, at the best half-line near the crossing."""
    p0, p1 = sorted(math.ldexp(int(x), -20) for x in rng.integers(2**15, 2**20 - 2**15, 2))
    if p0 == p1:
        return None
    n = round(_log_uniform(rng, 1e4, 1e15))
    k = int(rng.choice([0, n // 3, n - 1]))
    experiment = ShuffleExperiment(Randomizer([[1.0 - p0, p0], [1.0 - p1, p1]]), n, k=k)
    profile, mu = edgeworth_profile(experiment), gaussian_profile(experiment).mu
    epsilon = float(rng.uniform(0.0, 0.99)) * min(10.0 * mu, profile.largest_epsilon)
    with mp.workdps(60):
        pair, growth = (mpf(p0), mpf(p1)), mp.expm1(mpf(epsilon))
        cumulants = [
            (n - 1 - k) * of_0 + k * of_1
            for of_0, of_1 in zip(*([p, p * (1 - p), p * (1 - p) * (1 - 2 * p),
                                     p * (1 - p) * (1 - 6 * p * (1 - p))] for p in pair),
                                  strict=True)
        ]  # fmt: skip
        # near the crossing the values rise to their largest, and fall
        low, high = (
            int(cumulants[0] + mp.sqrt(cumulants[1]) * (share * epsilon / mu + side)) + 2 * side
            for share, side in ((0.7, -1), (1.4, 1))
        )
        while high > low:
            middle = (low + high) // 2
            here, after = (
                _edgeworth_half_line(x, growth, pair, cumulants) for x in (middle, middle + 1)
            )
            low, high = (middle + 1, high) if after > here else (low, middle)
        exact = _edgeworth_half_line(low, growth, pair, cumulants)
    return _relative(float(profile.log_delta(epsilon, direction="forward")), exact)


QUANTITIES = (
    Quantity("fisher_constant", "all", "2 to 6 outputs", 1e-13, 200, 10, _fisher_error),
    Quantity("gaussian_profile", "delta to 1e-300", "mu 1e-10 to 1e3", 1e-12, 300, 10,
             _gaussian_error),
    Quantity("tangent_profile", "delta to 1e-300", "mu below 2.5", 1e-12, 200, 10,
             _tangent_error),
    Quantity("poisson_profile", "delta to 1e-300", "means 0.05 to 40", 1e-12, 100, 4,
             _shift_error(inside=False)),
    Quantity("skellam_profile", "delta to 1e-300", "means 0.05 to 40", 1e-12, 60, 3,
             _shift_error(inside=True)),
    Quantity("compound_poisson_profile", "delta above 1e-3", "3 homes", 1e-12, 12, 1,
             _compound_error),
    Quantity("skellam_profile", "delta to 1e-300", "means 1e3 to 1e14", 1e-12, 60, 3,
             _large_shift_error),
    Quantity("hybrid_profile", "delta to 1e-300", "means 0.05 to 15", 1e-11, 60, 3,
             _hybrid_error),
    Quantity("edgeworth_profile", "delta to 1e-300", "others at one input", 1e-12, 100, 6,
             _edgeworth_error),
    Quantity("edgeworth_profile", "epsilon to 10 mu", "2 groups, order 4", 1e-11, 100, 4,
             _edgeworth_groups_error),
)  # fmt: skip


def measure_quantities(
    quantities: Sequence[Quantity], kind: str, *, quick: bool, progress: Callable[[str], None]
) -> list[AccuracyRow]:
    """Measure the largest error of quantities that have no regime of users.

    Parameters
    ----------
    quantities : sequence of Quantity
        What is measured, and where.
    kind : str
        What all of them are, in a word: the key of the rows in the record.
    quick : bool
        Visit a small part of the cases.
    progress : callable
        Called with a line of text as each quantity begins.

    Returns
    -------
    list of AccuracyRow
        In the order of the quantities.
    """
    rows = []
    for i, quantity in enumerate(quantities):
        progress(f"accuracy of a {kind}: {quantity.name}, {quantity.regime}")
        wanted = quantity.quick_cases if quick else quantity.cases
        errors: list[float] = []
        for attempt in range(20 * wanted):
            if len(errors) == wanted:
                break
            error = quantity.measure(np.random.default_rng((_SEED, i, attempt)))
            if error is not None:
                errors.append(math.inf if math.isnan(error) else error)
        name, span, regime, documented = quantity[:4]
        rows.append(AccuracyRow(name, span, kind, regime, len(errors), max(errors), documented))
    return rows


def survey(*, quick: bool, progress: Callable[[str], None]) -> list[AccuracyRow]:
    """Measure the largest error of every limit, in the order of `QUANTITIES`."""
    return measure_quantities(QUANTITIES, LIMIT, quick=quick, progress=progress)
