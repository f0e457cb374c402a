"""Brackets of the mean of a positive part, against nested multinomial sums at 60 digits."""

import itertools
import math

import numpy as np
import pytest
from mpmath import mp, mpf

from fastshuffle import Randomizer, ShuffleExperiment, _positive_part, exact_profile
from fastshuffle._background import BackgroundPair
from fastshuffle._positive_part import (
    Terms,
    _enumerated,
    log_mean_positive_part,
    log_smallest_exponential_bound,
)
from tests.tolerances import BRACKET_ROUNDING, LOG_PER_UNIT, STATED

DIGITS = 60
RTOLS = (1e-3, 1e-6)


def terms(*groups):
    return [Terms(float(n), np.array(v, float), np.array(p, float)) for n, v, p in groups]


def compositions(total, parts):
    for cuts in itertools.combinations(range(total + parts - 1), parts - 1):
        ends = zip((-1, *cuts), (*cuts, total + parts - 1), strict=True)
        yield tuple(high - low - 1 for low, high in ends)


def law_of_sum(count, values, probabilities):
    """Return the pairs (value, mass) of one group, a composition at a time."""
    n = int(count)
    powers = [
        [mpf(p) ** i / mp.factorial(i) for i in range(n + 1)] for p in probabilities.tolist()
    ]
    exact = [mpf(v) for v in values.tolist()]
    scale = mp.factorial(n)
    for counts in compositions(n, len(exact)):
        mass, total = scale, mpf(0)
        for i, power, value in zip(counts, powers, exact, strict=True):
            mass *= power[i]
            total += i * value
        yield total, mass


def log_reference(groups):
    """Return log E[S_+] with the doubles taken as they are, probabilities not normalised."""
    with mp.workdps(DIGITS):
        law = [(mpf(0), mpf(1))]
        for group in groups:
            step = list(law_of_sum(*group))
            law = [(s + t, p * q) for s, p in law for t, q in step]
        total = mp.fsum(s * p for s, p in law if s > 0)
        return mp.log(total) if total > 0 else mp.ninf


def assert_brackets(groups, log_truth, rtol):
    lower, upper = log_mean_positive_part(groups, rtol)
    if log_truth == mp.ninf:
        assert lower == upper == -math.inf
        return
    assert lower <= log_truth
    assert upper >= log_truth
    assert upper - lower <= rtol + BRACKET_ROUNDING + 4.0 * LOG_PER_UNIT * abs(upper)


@pytest.fixture(params=["enumerated", "lattice"])
def path(request, monkeypatch):
    """Force either way of computing; the same input takes both."""
    if request.param == "lattice":
        monkeypatch.setattr(_positive_part, "_MOST_VALUES", 0)
    else:
        monkeypatch.setattr(_positive_part, "_MOST_VALUES", 10**6)
    return request.param


def drawn(seed, n, atoms):
    """Draw a variable whose sum is positive with a probability of any size down to 1e-60."""
    rng = np.random.default_rng((seed, n, atoms))
    p = rng.dirichlet(np.full(atoms, rng.choice([0.3, 1.0, 5.0])))
    v = rng.normal(size=atoms) * 10.0 ** rng.integers(-3, 4)
    shift = float(p @ v) + float(rng.uniform(0.0, 0.9)) * (v.max() - float(p @ v))
    return (n, v - shift, p)


@pytest.mark.parametrize("n", [1, 2, 7, 40])
@pytest.mark.parametrize("atoms", [2, 3, 4])
@pytest.mark.parametrize("seed", range(4))
def test_random_variables(seed, atoms, n, path):
    if atoms == 4 and n == 40:
        pytest.skip("kept for the slower test")
    groups = terms(drawn(seed, n, atoms))
    truth = log_reference(groups)
    for rtol in RTOLS:
        assert_brackets(groups, truth, rtol)


@pytest.mark.parametrize(("n", "atoms"), [(300, 3), (60, 4)])
@pytest.mark.parametrize("seed", range(3))
def test_random_variables_of_many_terms(seed, n, atoms, monkeypatch):
    groups = terms(drawn(seed, n, atoms))
    truth = log_reference(groups)
    for values in (0, 10**6):
        monkeypatch.setattr(_positive_part, "_MOST_VALUES", values)
        for rtol in RTOLS:
            assert_brackets(groups, truth, rtol)


@pytest.mark.parametrize(
    "sizes", [((12, 2), (9, 2)), ((1, 3), (25, 2)), ((5, 2), (6, 2), (7, 2)), ((8, 3), (30, 2))]
)
@pytest.mark.parametrize("seed", range(2))
def test_several_groups(seed, sizes, path):
    groups = terms(*(drawn(seed + 10 * i, *size) for i, size in enumerate(sizes)))
    truth = log_reference(groups)
    for rtol in RTOLS:
        assert_brackets(groups, truth, rtol)


NASTY = {
    "three on a lattice, at 0": (40, [-1.0, 0.0, 1.0], [0.25, 0.5, 0.25]),
    "lattice, mean 0": (60, [-1.0, 2.0], [2 / 3, 1 / 3]),
    "lattice, sums at 0": (30, [-3.0, 2.0, 7.0], [0.7, 0.2, 0.1]),
    "two on a lattice, deep": (200, [-1.0, 1.0], [0.9, 0.1]),
    "equal spacing of 0.1": (50, [-0.3, -0.2, -0.1, 0.0], [0.1, 0.2, 0.3, 0.4]),
    "equal spacing of 0.1, crossing": (30, [-0.2, -0.1, 0.1], [0.5, 0.3, 0.2]),
    "one positive only": (50, [1.0, -50.0, -60.0], [0.3, 0.3, 0.4]),
    "only the largest sum is positive": (50, [1.0, -49.5, -70.0], [0.3, 0.3, 0.4]),
    "barely positive": (50, [1e-9, -1.0, -2.0], [0.5, 0.25, 0.25]),
    "barely positive, far": (100, [1e-12, -1.0, -2.0], [0.5, 0.25, 0.25]),
    "positive by a rounding": (100, [1e-15, -1.0, -2.0], [0.5, 0.25, 0.25]),
    "delta 1e-70": (70, [1.0, -60.0, -2.0], [0.1, 0.5, 0.4]),
    "delta 1e-290": (96, [1.0, -94.5, -200.0], [1e-3, 0.5, 0.499]),
    "probability 1e-300": (20, [1.0, -1e-3, -2e-3], [1e-300, 0.5, 0.5]),
    "two of probability 1e-300": (20, [1.0, -0.5, -1.0], [1e-300, 1e-300, 1.0]),
    "atom of 1e300": (20, [1e300, -1.0, -2.0], [1e-300, 0.5, 0.5]),
    "all of probability 1e-30": (30, [0.01, -1.0, -1.5], [1e-30, 0.5, 0.5]),
    "spread 1e12": (40, [1e12, -1.0, -0.5], [1e-12, 0.5, 0.5]),
    "spread 1e12, negative": (40, [1.0, -1e12, -0.5], [0.2, 1e-12, 0.8]),
    "spread 1e12, both": (40, [1e6, 1e-6, -1.0], [1e-9, 0.1, 0.9]),
    "unlikely and cheap": (250, [3e5, -1.0, -1.001], [1e-7, 0.5, 0.4999999]),
    "positive mean": (30, [1.0, 2.0, -0.5], [0.5, 0.3, 0.2]),
    "nearly surely positive": (250, [1.0, 2.0, -0.5], [0.5, 0.3, 0.2]),
    "surely positive": (200, [1.0, 2.0, 3.0], [0.5, 0.3, 0.2]),
    "one atom": (200, [0.25], [1.0]),
    "two equal atoms": (100, [0.25, 0.25], [0.5, 0.5]),
    "nearly equal atoms": (100, [1.0, 1.0 + 1e-12, -30.0], [0.5, 0.3, 0.2]),
    "tiny values": (40, [1e-200, -2e-200, 5e-201], [0.2, 0.6, 0.2]),
    "huge values": (40, [1e200, -2e200, 5e199], [0.2, 0.6, 0.2]),
    "zero probability of the largest": (30, [9.0, 1.0, -2.0], [0.0, 0.3, 0.7]),
}


@pytest.mark.parametrize("name", NASTY)
def test_nasty_variables(name, path):
    groups = terms(NASTY[name])
    truth = log_reference(groups)
    for rtol in RTOLS:
        assert_brackets(groups, truth, rtol)


@pytest.mark.parametrize(
    "group",
    [
        (5, [0.0], [1.0]),
        (5, [-1.0, 0.0], [0.5, 0.5]),
        (10**6, [-1.0, -3.0], [0.5, 0.5]),
        (7, [5.0, -1.0], [0.0, 1.0]),
    ],
)
def test_never_positive(group):
    assert log_mean_positive_part(terms(group), 1e-3) == (-math.inf, -math.inf)
    assert log_smallest_exponential_bound(terms(group)) == -math.inf


@pytest.mark.parametrize("n", [1000, 10**5, 10**7])
@pytest.mark.parametrize(
    "group",
    [
        ([0.25], [1.0]),
        ([0.5, 0.25], [0.5, 0.5]),
        ([1.0, 2.0, -0.5], [0.5, 0.3, 0.2]),
    ],
    ids=["one atom", "positive atoms", "positive mean"],
)
def test_surely_positive_sum_has_its_mean(group, n):
    """E[S_+] is E[S] but for exp(-c n), c > 0.08: the background that misses the null's outputs."""
    values, probabilities = group
    with mp.workdps(DIGITS):
        pairs = zip(values, probabilities, strict=True)
        truth = mp.log(n * mp.fsum(mpf(v) * mpf(p) for v, p in pairs))
    assert_brackets(terms((n, values, probabilities)), truth, 1e-3)


@pytest.mark.parametrize("rtol", RTOLS)
@pytest.mark.parametrize(
    ("n", "v", "p"), [drawn(seed, 300, 3) for seed in range(3)]
)
def test_enumeration_and_lattice_agree(n, v, p, rtol, monkeypatch):
    groups = terms((n, v, p))
    low, high = _enumerated(groups)
    monkeypatch.setattr(_positive_part, "_MOST_VALUES", 0)
    lower, upper = log_mean_positive_part(groups, rtol)
    assert lower <= high
    assert upper >= low
    assert upper - lower <= rtol + BRACKET_ROUNDING + 4.0 * LOG_PER_UNIT * abs(upper)


@pytest.mark.parametrize("n", [10**4, 10**6, 10**8, 10**10])
@pytest.mark.parametrize("seed", range(3))
def test_brackets_of_all_rtols_meet(seed, n):
    rng = np.random.default_rng((seed, n))
    p = rng.dirichlet(np.ones(3 + seed))
    v = rng.normal(size=p.size)
    for deviations in (0.0, 1.0, 6.0, 15.0):
        shift = float(p @ v) + deviations * math.sqrt(float(p @ (v - p @ v) ** 2) / n)
        groups = terms((n, v - shift, p))
        brackets = [log_mean_positive_part(groups, rtol) for rtol in (1e-2, 1e-4, 1e-6)]
        assert max(b.lower for b in brackets) <= min(b.upper for b in brackets)
        for bracket, rtol in zip(brackets, (1e-2, 1e-4, 1e-6), strict=True):
            assert bracket.upper - bracket.lower <= rtol + STATED * (1.0 + abs(bracket.upper))
        assert log_smallest_exponential_bound(groups) >= brackets[-1].lower


@pytest.mark.parametrize("n", [5, 400, 10**4, 10**7, 10**10])
@pytest.mark.parametrize("law", [(0.2, 0.5), (0.3, 0.300003), (1e-6, 0.1), (0.9, 0.1)])
def test_two_atoms_against_the_closed_form(law, n):
    """The other users all at input 0: the same number without any lattice."""
    w0, w1 = (np.array([1.0 - p, p]) for p in law)
    exact = exact_profile(ShuffleExperiment(Randomizer([w0, w1]), n, k=0))
    loss = float(np.log(w1 / w0).max())
    pair = BackgroundPair(w0, w1, w0, n=n, loss=loss)
    scale = math.sqrt(float(((w1 - w0) ** 2 / w0).sum()) / n)
    for deviations in (0.0, 0.5, 3.0, 8.0, 20.0):
        epsilon = deviations * scale
        if epsilon >= 0.99 * loss:
            continue
        truth = exact.log_delta(epsilon, direction="forward")
        slack = 1e-9 + STATED * abs(truth)
        for rtol in RTOLS:
            lower, upper = pair.curve(rtol).at(epsilon)
            assert lower <= truth + slack
            assert upper >= truth - slack
            assert upper - lower <= rtol + STATED * (1.0 + abs(truth))


@pytest.mark.parametrize("n", [10, 1000, 10**5])
@pytest.mark.parametrize("gap", [1e-6, 1e-9, 1e-12])
def test_nearly_equal_rows_keep_the_bracket(gap, n):
    """Values that are differences of nearly equal ratios are known to fewer digits."""
    w0, w1 = np.array([0.5, 0.5]), np.array([0.5 - gap, 0.5 + gap])
    exact = exact_profile(ShuffleExperiment(Randomizer([w0, w1]), n, k=0))
    pair = BackgroundPair(w0, w1, w0, n=n, loss=float(np.log1p(2.0 * gap)))
    for share in (0.0, 0.5, 3.0):
        epsilon = share * 2.0 * gap / math.sqrt(n)
        truth = exact.log_delta(epsilon, direction="forward")
        if truth == -math.inf:
            continue
        slack = STATED + LOG_PER_UNIT * abs(truth)
        lower, upper = pair.curve(1e-6).at(epsilon)
        assert lower <= truth + slack
        assert upper >= truth - slack


@pytest.mark.parametrize("name", NASTY)
def test_exponential_bound_is_above(name):
    groups = terms(NASTY[name])
    assert log_smallest_exponential_bound(groups) >= log_reference(groups)


def test_many_atoms_and_many_terms_are_counted_quickly():
    """The number of sums must not be worked out where it is astronomical."""
    v = np.linspace(-1.0, 1.0, 2**15) - 0.01
    groups = [Terms(1e9, v, np.full(v.size, 1.0 / v.size))]
    lower, upper = log_mean_positive_part(groups, 1e-3)
    assert lower <= upper
