"""Accuracy survey of the library against the mpmath references, over all magnitudes.

A row of the survey is the largest error of one quantity in one regime: the range of the quantity,
what the other users hold, and the number of users. Cases are drawn by fixed generators, each from
its own seed, so that the quick survey visits a part of the cases of the full one and its errors
cannot exceed the recorded ones unless the code has changed.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
from mpmath import mp, mpf

from fastshuffle import DeltaWarning, ExactProfile, Randomizer, ShuffleExperiment, exact_profile
from fastshuffle import binary_randomized_response as randomized_response
from fastshuffle._kernels import binomial_groups
from validation.reference import mp as reference
from validation.reference.mp import Complement, Direction, Probability

RECORD = Path(__file__).with_name("recorded_accuracy.json")

# A run passes within this factor of the recorded error. Errors of one unit in the last place, and
# of a hundredth of the documented bound, depend on the processor and its libm: they always pass.
_ALLOWED_FACTOR = 4.0
_ONE_UNIT = 2.2e-16

USERS = {"n <= 100": (1, 100), "1e3 to 1e6": (10**3, 10**6), "1e8 to 1e15": (10**8, 10**15)}
OTHERS = ("one input", "two inputs", "3 to 20 inputs")

_SEED = 20260209
_DIGITS = 25
_DIRECT_SUMS_UP_TO = 100
_MOST_ATTEMPTS = 600  # in a regime that holds few cases
_NEAR_LOSS = 3e-4  # relative distance to the largest loss
_TINY_STEP = 10.0**-_DIGITS  # for a difference quotient of the references


@dataclass(frozen=True)
class AccuracyRow:
    """The largest error of one quantity in one regime.

    Attributes
    ----------
    quantity, span : str
        What is computed and in which range of it.
    others, users : str
        What the other users hold, and the range of n.
    cases : int
        Number of random cases.
    error : float
        The largest relative error, in the measure of the span.
    documented : float
        The bound on it that the documentation states.
    """

    quantity: str
    span: str
    others: str
    users: str
    cases: int
    error: float
    documented: float

    @property
    def key(self) -> tuple[str, ...]:
        """What names the row in the record."""
        return self.quantity, self.span, self.others, self.users


class Case(NamedTuple):
    """An experiment and the exact probabilities of output 1 that its randomizer stands for."""

    randomizer: Randomizer
    experiment: ShuffleExperiment
    probabilities: tuple[Probability, ...]

    @property
    def profile(self) -> ExactProfile:
        """The profile under survey."""
        profile = exact_profile(self.experiment)
        assert isinstance(profile, ExactProfile)  # two outputs
        return profile

    @property
    def groups(self) -> list[tuple[int, Probability]]:
        """The other users, as the references take them."""
        return [(count, self.probabilities[x]) for x, count in self.experiment.others.items()]

    @property
    def pair(self) -> tuple[Probability, Probability]:
        """The differing user under Q and under P."""
        a, b = self.experiment.pair
        return self.probabilities[a], self.probabilities[b]

    def largest_loss(self, direction: Direction) -> float:
        """Return the privacy loss above which delta is 0."""
        a, b = self.experiment.pair
        forward, reverse = (
            max(self.randomizer.log_ratio(*inputs, y) for y in range(2))
            for inputs in ((b, a), (a, b))
        )
        return {"forward": forward, "reverse": reverse, "both": max(forward, reverse)}[direction]

    def reference(self, name: str) -> Callable[..., mpf]:
        """Return a reference, as a direct sum where n is small."""
        direct = self.experiment.n <= _DIRECT_SUMS_UP_TO
        return getattr(reference, name if direct else f"{name}_large")


Measure = Callable[[Case, np.random.Generator], float | None]


class Quantity(NamedTuple):
    """A quantity in one range, how its error is measured, and how many cases are drawn.

    Attributes
    ----------
    name, span : str
        As in `AccuracyRow`.
    documented : float
        The bound on the error that the documentation states.
    cases, quick_cases : int
        Cases a regime in the full and in the quick survey; `cases_of` adjusts them.
    measure : callable
        Returns the error at a random point of a case, or None where the case has no such point.
    costly : bool
        Whether the reference sums inversion integrals where many others hold several inputs. Such
        regimes get no cases in the quick survey, the rest four times as many in the full one.
    """

    name: str
    span: str
    documented: float
    cases: int
    quick_cases: int
    measure: Measure
    costly: bool = False

    def cases_of(self, others: str, users: str, *, quick: bool) -> int:
        """Return how many cases are drawn of a regime."""
        if not self.costly:
            return self.quick_cases if quick else self.cases
        if others == OTHERS[0] or USERS[users][1] <= _DIRECT_SUMS_UP_TO:
            return self.quick_cases if quick else 4 * self.cases
        return 0 if quick else self.cases


# ---- Random cases ----------------------------------------------------------------------------


def _log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def _draw_count(rng: np.random.Generator, low: int, high: int) -> int:
    return min(high, int(_log_uniform(rng, low, high + 1)))


def _draw_randomizer(
    rng: np.random.Generator, n_inputs: int
) -> tuple[Randomizer, tuple[Probability, ...]]:
    """Draw a randomizer: moderate, tiny or nearly equal probabilities, or randomized response."""
    kind = rng.choice(["moderate", "tiny", "close", "response"])
    if kind == "response" and n_inputs == 2:
        epsilon0 = _log_uniform(rng, 1e-3, 50.0)
        with mp.workdps(200):
            flip = 1 / (1 + mp.exp(mpf(epsilon0)))
        return randomized_response(epsilon0), (flip, Complement(flip))
    if kind == "close":
        base = _log_uniform(rng, 1e-12, 0.3)
        smaller = base * (1.0 + _log_uniform(rng, 1e-9, 0.1) * rng.random(n_inputs))
        zeros = np.full(n_inputs, rng.random() < 0.5)
    else:
        lowest = 1e-30 if kind == "tiny" else 0.01
        smaller = np.array([_log_uniform(rng, lowest, 0.5) for _ in range(n_inputs)])
        zeros = rng.random(n_inputs) < 0.5
    rows = [(p, 1.0 - p) if zero else (1.0 - p, p) for p, zero in zip(smaller, zeros, strict=True)]
    probabilities = (
        Complement(float(p)) if zero else float(p) for p, zero in zip(smaller, zeros, strict=True)
    )
    return Randomizer(rows), tuple(probabilities)


def _draw_others(rng: np.random.Generator, others: str, n: int, n_inputs: int) -> dict[int, int]:
    rest = n - 1
    if others == "one input":
        return {int(rng.integers(2)): rest}
    if others == "two inputs":
        fewer = _draw_count(rng, 1, max(1, rest // 2)) if rest > 1 else 0
        x = int(rng.integers(2))
        return {x: fewer, 1 - x: rest - fewer}
    shares = np.exp(rng.uniform(-12.0, 0.0, n_inputs))
    counts = {x: int(rest * share) for x, share in enumerate(shares / shares.sum())}
    counts[int(shares.argmax())] += rest - sum(counts.values())
    return counts


def draw_case(rng: np.random.Generator, others: str, users: str) -> Case:
    """Draw an experiment of a regime.

    Parameters
    ----------
    rng : numpy.random.Generator
        The source of randomness.
    others : str
        One of `OTHERS`.
    users : str
        One of `USERS`.

    Returns
    -------
    Case
        The experiment and what its randomizer stands for.
    """
    n = _draw_count(rng, *USERS[users])
    n_inputs = 2 if others != OTHERS[2] else _draw_count(rng, 3, 20)
    while True:
        randomizer, probabilities = _draw_randomizer(rng, n_inputs)
        a, b = (int(x) for x in rng.choice(n_inputs, 2, replace=False))
        if randomizer.probability_difference(b, a, 1) != 0.0:
            break
    counts = _draw_others(rng, others, n, n_inputs)
    experiment = ShuffleExperiment(randomizer, n, others=counts, pair=(a, b))
    return Case(randomizer, experiment, probabilities)


def _draw_direction(rng: np.random.Generator) -> Direction:
    choices: tuple[Direction, ...] = get_args(Direction)
    return choices[rng.integers(len(choices))]


# ---- Errors ----------------------------------------------------------------------------------


def _relative(value: float, exact: mpf) -> float:
    with mp.workdps(_DIGITS):
        return float(abs(mpf(value) - exact) / abs(exact))


def _log_error(log_value: float, log_exact: mpf) -> float:
    """Relative error of the number whose logarithm is given, which may be out of range."""
    with mp.workdps(_DIGITS):
        return float(abs(mpf(log_value) - log_exact))


def _epsilon_at(case: Case, log_target: float, direction: Direction) -> float | None:
    """Return an epsilon with about the wanted log delta, if one lies off the ends of the curve."""
    profile = case.profile
    low, high = 0.0, (1.0 - _NEAR_LOSS) * case.largest_loss(direction)
    if not profile.log_delta(high, direction=direction) < log_target:
        return None
    if not log_target < profile.log_delta(low, direction=direction) + math.log(0.9):
        return None
    for _ in range(50):
        middle = 0.5 * (low + high)
        if profile.log_delta(middle, direction=direction) > log_target:
            low = middle
        else:
            high = middle
    return high


def _log_delta_and_condition(case: Case, epsilon: float, direction: Direction) -> tuple[mpf, float]:
    """Return the exact log delta and its condition number ``abs(epsilon delta' / delta)``."""
    delta = case.reference("delta")
    with mp.workdps(2 * _DIGITS):
        exact, before = (
            delta(case.groups, *case.pair, mpf(epsilon) * factor, direction, 2 * _DIGITS)
            for factor in (1, 1 - mpf(_TINY_STEP))
        )
        return mp.log(exact), float((before / exact - 1) / _TINY_STEP)


def _is_ill_conditioned(condition: float, log_delta: mpf) -> bool:
    """Whether the rounding of epsilon alone takes up a good part of the documented error.

    In the Gaussian regime the condition number is ``2 abs(log delta)``.
    """
    return bool(condition > 3.0 * max(100.0, -log_delta))


def _delta_error(low: float, high: float) -> Measure:
    """Return the measure of delta with log delta between two numbers."""

    def measure(case: Case, rng: np.random.Generator) -> float | None:
        direction = _draw_direction(rng)
        epsilon = _epsilon_at(case, -_log_uniform(rng, -high, -low), direction)
        if epsilon is None:
            return None
        log_exact, condition = _log_delta_and_condition(case, epsilon, direction)
        if _is_ill_conditioned(condition, log_exact):
            return None
        if high > -700.0:
            with mp.workdps(_DIGITS):
                exact = mp.exp(log_exact)
            return _relative(case.profile.delta(epsilon, direction=direction), exact)
        return _relative(case.profile.log_delta(epsilon, direction=direction), log_exact)

    return measure


def _ill_conditioned_error(case: Case, rng: np.random.Generator) -> float | None:
    """Error of delta over 1000 + its condition number, near the largest loss or a step."""
    direction = _draw_direction(rng)
    if rng.random() < 0.5:
        epsilon = case.largest_loss(direction) * (1.0 - _log_uniform(rng, 1e-12, _NEAR_LOSS))
    else:
        drawn = _epsilon_at(case, -_log_uniform(rng, 1.0, 1e6), direction)
        if drawn is None:
            return None
        epsilon = drawn
    log_exact, condition = _log_delta_and_condition(case, epsilon, direction)
    if not _is_ill_conditioned(condition, log_exact):
        return None
    error = _log_error(case.profile.log_delta(epsilon, direction=direction), log_exact)
    return error / (1000.0 + condition)


def _epsilon_error(low: float, high: float) -> Measure:
    """Return the measure of epsilon for a log delta between two numbers."""

    def measure(case: Case, rng: np.random.Generator) -> float | None:
        direction = _draw_direction(rng)
        delta = math.exp(-_log_uniform(rng, -high, -low))
        if _epsilon_at(case, math.log(delta), direction) is None:
            return None
        exact = case.reference("epsilon")(case.groups, *case.pair, delta, direction, _DIGITS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeltaWarning)
            value = case.profile.epsilon(delta, direction=direction)
        return _relative(value, exact)

    return measure


def _group_rows(case: Case) -> Any:
    """Return the other users as the kernels take them: with float64 probabilities."""
    inputs = list(case.experiment.others)
    counts = np.array([case.experiment.others[x] for x in inputs], dtype=np.float64)
    columns = [table[inputs, y] for table in (case.randomizer.matrix, case.randomizer.log_matrix)
               for y in (1, 0)]  # fmt: skip
    return np.ascontiguousarray(np.column_stack((counts, *columns)))


def _draw_count_of_ones(rows: Any, rng: np.random.Generator) -> int:
    """Draw a number of ones: anywhere, or some standard deviations from the mean."""
    counts, p, q = rows[:, :3].T
    total = int(counts.sum())
    if rng.random() < 0.25:
        x = int(rng.integers(total + 1))
    else:
        deviations = _log_uniform(rng, 0.01, 40.0) * rng.choice([-1.0, 1.0])
        x = round(float(counts @ p) + deviations * math.sqrt(float((counts * p * q).sum())))
    return min(max(x, 0), total)


def _group_error(name: str, *, far: bool) -> Measure:
    """Return the measure of a mass or tail: of the value to 1e-300, of its logarithm beyond."""

    def measure(case: Case, rng: np.random.Generator) -> float | None:
        rows = _group_rows(case)
        if len(rows) == 0:
            return None
        x = _draw_count_of_ones(rows, rng)
        log_value = getattr(binomial_groups, f"log_{name}")(float(x), rows)
        if far is not (log_value < -690.0):
            return None
        groups = [
            (int(count), float(p) if p <= q else Complement(float(q)))
            for count, p, q in rows[:, :3]
        ]
        exact = case.reference(name)(groups, x, _DIGITS)
        with mp.workdps(_DIGITS):
            log_exact = mp.log(exact)
        error = _log_error(log_value, log_exact)
        return error / -float(log_exact) if far else error

    return measure


def _other_output(p: Probability) -> Probability:
    return p.q if isinstance(p, Complement) else Complement(p)


def _trade_off_error(case: Case, rng: np.random.Generator) -> float | None:
    """Error of the type II error over its condition number, at a level between two vertices.

    A level drawn beside a vertex of the reference spares it the search for the vertex.
    """
    groups, (p_a, p_b) = case.groups, case.pair
    a, b = case.experiment.pair
    if case.randomizer.probability_difference(b, a, 1) < 0.0:
        groups = [(count, _other_output(p)) for count, p in groups]
        p_a, p_b = _other_output(p_a), _other_output(p_b)
    null, alternative = ([*groups, (1, p)] for p in (p_a, p_b))
    rows = _group_rows(case)
    x = _draw_count_of_ones(rows, rng) if len(rows) else 0
    x = x if p_a is case.pair[0] else case.experiment.n - 1 - x
    upper_tail, lower_tail, mass = (
        case.reference(name) for name in ("upper_tail", "lower_tail", "mass")
    )
    with mp.workdps(2 * _DIGITS):
        tail, step = upper_tail(null, x + 1, 2 * _DIGITS), mass(null, x, 2 * _DIGITS)
        level = float(tail + mpf(rng.random()) * step)
        share = (mpf(level) - tail) / step
        if not (0 <= share <= 1 and 1e-300 < level < 1.0 - 1e-6):
            return None
        slope = mass(alternative, x, 2 * _DIGITS) / step
        exact = lower_tail(alternative, x, 2 * _DIGITS) - share * slope * step
        condition = float(level * slope / exact)
    value = case.profile.trade_off(level, direction="forward")
    return _relative(value, exact) / max(1.0, condition)


def _divergence_error(name: str) -> Measure:
    def measure(case: Case, rng: np.random.Generator) -> float | None:
        direction = _draw_direction(rng)
        exact = case.reference(name)(case.groups, *case.pair, direction, _DIGITS)
        return _relative(getattr(case.profile, name)(direction=direction), exact)

    return measure


def _renyi_error(case: Case, rng: np.random.Generator) -> float | None:
    direction = _draw_direction(rng)
    order = _log_uniform(rng, 0.1, 30.0)
    # the reference sums a moment, which differs from 1 by the order of the squared loss
    digits = _DIGITS - 2 * min(0, math.floor(math.log10(case.largest_loss("both"))))
    exact = case.reference("renyi")(case.groups, *case.pair, order, direction, digits)
    return _relative(case.profile.renyi(order, direction=direction), exact)


def _jensen_shannon_error(case: Case, rng: np.random.Generator) -> float | None:
    del rng
    exact = case.reference("jensen_shannon")(case.groups, *case.pair, _DIGITS)
    return _relative(case.profile.jensen_shannon(), exact)


QUANTITIES = (
    Quantity("delta", "1e-10 to 1", 1e-12, 16, 1, _delta_error(-23.0, -0.01)),
    Quantity("delta", "1e-300 to 1e-10", 1e-12, 16, 1, _delta_error(-690.0, -23.0)),
    Quantity("log_delta", "-1e6 to -700", 2e-15, 12, 1, _delta_error(-1e6, -700.0)),
    Quantity("delta", "ill-conditioned", 1e-15, 12, 1, _ill_conditioned_error),
    Quantity("epsilon", "delta 1e-10 to 1", 1e-12, 6, 1, _epsilon_error(-23.0, -0.01), costly=True),
    Quantity(
        "epsilon", "delta 1e-300 to 1e-10", 1e-12, 6, 1, _epsilon_error(-690.0, -23.0), costly=True
    ),
    Quantity("mass", "1e-300 to 1", 1e-12, 20, 1, _group_error("mass", far=False)),
    Quantity("upper tail", "1e-300 to 1", 1e-12, 12, 1, _group_error("upper_tail", far=False)),
    Quantity("lower tail", "1e-300 to 1", 1e-12, 12, 1, _group_error("lower_tail", far=False)),
    Quantity("log of a mass", "below -690", 2e-15, 8, 1, _group_error("mass", far=True)),
    Quantity("log of a tail", "below -690", 2e-15, 8, 1, _group_error("upper_tail", far=True)),
    Quantity("trade_off", "all levels", 1e-12, 8, 1, _trade_off_error),
    Quantity("kl", "all", 1e-13, 3, 1, _divergence_error("kl"), costly=True),
    Quantity("chi_square", "all", 1e-13, 3, 1, _divergence_error("chi_square"), costly=True),
    Quantity("jensen_shannon", "all", 1e-13, 3, 1, _jensen_shannon_error, costly=True),
    Quantity("renyi", "orders 0.1 to 30", 1e-13, 3, 1, _renyi_error, costly=True),
)


# ---- The survey and its record ---------------------------------------------------------------


def _errors(quantity: Quantity, others: str, users: str, cases: int) -> Iterator[float]:
    """Yield the errors of the first cases of a regime that have a point in the span."""
    found = 0
    for attempt in range(_MOST_ATTEMPTS):
        if found == cases:
            return
        regime = (list(USERS).index(users), OTHERS.index(others))
        rng = np.random.default_rng((_SEED, *regime, attempt))
        error = quantity.measure(draw_case(rng, others, users), rng)
        if error is not None:
            found += 1
            yield error


def survey_regime(
    others: str, users: str, *, quick: bool, progress: Callable[[str], None]
) -> list[AccuracyRow]:
    """Measure the largest error of every quantity in one regime.

    Parameters
    ----------
    others : str
        One of `OTHERS`.
    users : str
        One of `USERS`.
    quick : bool
        Visit a small part of the cases.
    progress : callable
        Called with a line of text at the start.

    Returns
    -------
    list of AccuracyRow
        In the order of `QUANTITIES`, without those that have no case in the regime.
    """
    progress(f"accuracy: {users}, the others hold {others}")
    rows = []
    for quantity in QUANTITIES:
        cases = quantity.cases_of(others, users, quick=quick)
        errors = list(_errors(quantity, others, users, cases))
        if errors:
            # a nan must not be lost in a maximum
            worst = max(math.inf if math.isnan(error) else error for error in errors)
            name, span, documented = quantity[:3]
            rows.append(AccuracyRow(name, span, others, users, len(errors), worst, documented))
    return rows


def in_order(rows: Iterable[AccuracyRow]) -> list[AccuracyRow]:
    """Return rows in the order of `QUANTITIES`, `OTHERS` and `USERS`."""
    spans = [(quantity.name, quantity.span) for quantity in QUANTITIES]
    return sorted(
        rows,
        key=lambda row: (
            spans.index((row.quantity, row.span)),
            OTHERS.index(row.others),
            list(USERS).index(row.users),
        ),
    )


def read_record(path: Path = RECORD) -> list[AccuracyRow]:
    """Return the rows of the recorded survey, none if there is no record yet."""
    if not path.exists():
        return []
    return [AccuracyRow(**row) for row in json.loads(path.read_text(encoding="utf-8"))]


def record_text(rows: Iterable[AccuracyRow]) -> str:
    """Return the rows as the text of a record: JSON, one row a line."""
    lines = ",\n".join(json.dumps(asdict(row), allow_nan=False) for row in rows)
    return f"[\n{lines}\n]\n"


def allowed_error(row: AccuracyRow, recorded: Iterable[AccuracyRow]) -> float:
    """Return the largest error with which a row passes.

    Parameters
    ----------
    row : AccuracyRow
        The row to be judged.
    recorded : iterable of AccuracyRow
        The recorded survey; a regime without a record is held to the documented bound.

    Returns
    -------
    float
        Four times the recorded error, and no more than the documented bound.
    """
    for before in recorded:
        if before.key == row.key:
            usual = max(before.error, _ONE_UNIT, 0.01 * row.documented)
            return min(_ALLOWED_FACTOR * usual, row.documented)
    return row.documented
