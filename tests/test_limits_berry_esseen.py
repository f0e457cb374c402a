"""Proved distances and brackets from central limit theorems, against brute force, one-sided."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtr
from scipy.stats import binom, norm

import fastshuffle as fs
from fastshuffle.limits.proved import _mass_error
from validation.reference import exact as reference

ASYMMETRIC = fs.Randomizer.from_probabilities([0.2, 0.5])
SIDES = ("forward", "reverse")
EPSILONS = [0.0, 0.05, 0.2, 0.5, 1.0, 2.0]


def distance_from_normal(values, masses):
    """Return ``sup |F - Phi|`` of a discrete law, standardised."""
    values, masses = np.array(values, dtype=float), np.array(masses, dtype=float)
    mean = values @ masses
    deviation = math.sqrt((values - mean) ** 2 @ masses)
    order = values.argsort()
    points, cumulative = values[order], masses[order].cumsum()
    apart = np.append(np.diff(points) > 1e-9, [True])
    points, cumulative = points[apart], cumulative[apart]
    normal = ndtr((points - mean) / deviation)
    before = np.append(0.0, cumulative[:-1])
    return max(np.abs(cumulative - normal).max(), np.abs(before - normal).max())


@pytest.mark.parametrize(("p0", "p1"), [(0.2, 0.5), (0.01, 0.6), (0.45, 0.55), (0.3, 0.999)])
def test_distance_of_a_count(p0, p1):
    w = fs.Randomizer.from_probabilities([p0, p1])
    for n, k in [(2, 0), (2, 1), (9, 0), (9, 4), (9, 8), (60, 0), (60, 25)]:
        bound = fs.berry_esseen_bound(fs.ShuffleExperiment(w, n, k=k))
        laws = reference.binary_pair(
            [(n - 1 - k, Fraction(p0)), (k, Fraction(p1))], Fraction(p0), Fraction(p1)
        )
        for law, value in zip(laws, bound, strict=True):
            assert distance_from_normal(range(n + 1), law) <= value <= 1.0


def test_constants():
    # a fair coin has L = 1 / sqrt(n) exactly
    half = fs.Randomizer.from_probabilities([0.5, 0.9])
    bound = fs.berry_esseen_bound(fs.ShuffleExperiment(half, 400, k=0))
    assert_allclose(bound.null, 0.4690 / 20, rtol=1e-11, atol=0)
    # a rare message: the constants with an addend are smaller there
    rare = fs.Randomizer.from_probabilities([1e-4, 0.5])
    ratio = (1.0 - 2e-4 + 2e-8) / math.sqrt(1e-4 - 1e-8)
    bound = fs.berry_esseen_bound(fs.ShuffleExperiment(rare, 10**8, k=0))
    assert_allclose(bound.null, 0.3031 * (ratio + 0.646) / 1e4, rtol=1e-11, atol=0)
    # two kinds of users: the constant for independent terms
    mixed = fs.berry_esseen_bound(fs.ShuffleExperiment(ASYMMETRIC, 1001, k=500))
    variance, third = 501 * 0.16 + 500 * 0.25, 501 * 0.16 * 0.68 + 500 * 0.25 * 0.5
    assert_allclose(mixed.null, 0.5583 * third / variance**1.5, rtol=1e-11, atol=0)


@pytest.mark.parametrize("held", [0, 1])
def test_distance_of_a_sum_of_ratios(held):
    rows = [[0.5, 0.3, 0.2], [0.2, 0.35, 0.45]]
    n = 6
    bound = fs.berry_esseen_bound(
        fs.ShuffleExperiment(fs.Randomizer(rows), n, others={held: n - 1})
    )
    ratio = np.divide(rows[1 - held], rows[held])
    for own, value in zip((0, 1), bound, strict=True):
        sums, masses = [], []
        for outputs in itertools.product(range(3), repeat=n):
            sums.append(sum(ratio[y] for y in outputs))
            masses.append(rows[own][outputs[0]] * math.prod(rows[held][y] for y in outputs[1:]))
        assert distance_from_normal(sums, masses) <= value <= 1.0
    assert (bound.null < bound.alternative) == (held == 0)


ROWS = [
    [[0.75, 0.25], [0.5, 0.5]],
    [[0.75, 0.25], [0.25, 0.75], [0.625, 0.375]],
    [[0.5, 0.25, 0.25], [0.125, 0.375, 0.5], [0.25, 0.5, 0.25]],
    [[0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [0.0, 0.5, 0.5]],
    [[1.0, 0.0], [0.5, 0.5]],
    [[0.0625, 0.9375], [0.9375, 0.0625]],
]


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("n", [2, 4, 7])
def test_brackets_brute_force(rows, n):
    exact_rows = [[Fraction(x) for x in row] for row in rows]
    w = fs.Randomizer(rows)
    compositions = [{x: n - 1} for x in range(len(rows))] + [{0: n // 2, 1: n - 1 - n // 2}]
    if len(rows) == 3 and n > 2:
        compositions.append({0: 1, 2: n - 2})
    for others in compositions:
        held = {x: count for x, count in others.items() if count}
        profile = fs.berry_esseen_profile(fs.ShuffleExperiment(w, n, others=others))
        law_q, law_p = reference.histogram_pair(exact_rows, held, (0, 1))
        for epsilon in EPSILONS:
            scale = Fraction(math.exp(epsilon))
            for side, laws in zip(SIDES, ((law_p, law_q), (law_q, law_p)), strict=True):
                truth = float(reference.hockey_stick(*laws, scale))
                lower, upper = profile.bounds(epsilon, direction=side)
                assert lower <= truth * (1.0 + 1e-13)
                assert truth * (1.0 - 1e-13) <= upper <= 1.0


@pytest.mark.parametrize(
    ("randomizer", "n", "k"),
    [
        (ASYMMETRIC, 100, 0),
        (ASYMMETRIC, 1000, 300),
        (ASYMMETRIC, 1000, 999),
        (fs.binary_randomized_response(4.0), 10**4, 0),
        (fs.binary_randomized_response(1.0), 10**9, 0),
        (fs.binary_randomized_response(0.01), 50, 20),
        (fs.binary_randomized_response(1e-9), 50, 0),
        (fs.binary_randomized_response(600.0), 50, 20),
        (fs.Randomizer.from_probabilities([1e-6, 0.1]), 1000, 0),
        (fs.Randomizer.from_probabilities([0.0, 0.1]), 1000, 200),
    ],
)
def test_brackets_exact_curves(randomizer, n, k):
    experiment = fs.ShuffleExperiment(randomizer, n, k=k)
    profile, exact = fs.berry_esseen_profile(experiment), fs.exact_profile(experiment)
    assert profile.validity is fs.Validity.UPPER_BOUND
    total = exact.delta(0.0)
    epsilons = np.sort([*(np.linspace(0.0, 30.0, 61) * total), 0.5, 1.0, 5.0, 1e3, math.inf])
    for side in SIDES:
        lower, upper = profile.bounds(epsilons, direction=side)
        below, above = exact.bounds(epsilons, direction=side)
        assert (lower <= above).all()
        assert (below <= upper).all()
        assert (np.diff(upper) <= 1e-12 * upper[:-1]).all()
        assert (np.diff(lower) <= 0.0).all()
        assert (profile.delta(epsilons, direction=side) == upper).all()


def test_the_limit_is_proved_to_one_over_n_where_the_others_are_alike():
    for randomizer, others in (
        (ASYMMETRIC, lambda n: {0: n - 1}),
        (fs.k_randomized_response(1.0, 5), lambda n: {2: n - 1}),
    ):
        widths = []
        for n in (10**3, 10**5, 10**7, 10**9):
            experiment = fs.ShuffleExperiment(randomizer, n, others=others(n))
            lower, upper = fs.berry_esseen_profile(experiment).bounds(
                fs.gaussian_profile(experiment).mu
            )
            assert lower > 0.0
            widths.append(n * (upper - lower))
        assert_allclose(widths, widths[-1], rtol=0.1, atol=0)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5])
def test_two_outputs_are_proved_to_one_over_n(share):
    for randomizer in (fs.binary_randomized_response(1.0), ASYMMETRIC):
        widths = []
        for n in (10**4, 10**6, 10**8, 10**10):
            experiment = fs.ShuffleExperiment(randomizer, n, k=int(share * n))
            lower, upper = fs.berry_esseen_profile(experiment).bounds(
                [0.0, fs.gaussian_profile(experiment).mu]
            )
            assert (lower > 0.0).all()
            widths.append(n * (upper - lower))
        assert_allclose(widths[1:], widths[1:2] * 3, rtol=0.2, atol=0)
        assert np.max(widths) < 4.0


@pytest.mark.parametrize(("p0", "p1"), [(0.5, 0.5), (0.01, 0.4), (0.2, 0.9)])
def test_mass_error(p0, p1):
    for zeros, ones in [(300, 0), (200, 100), (2000, 40)]:
        groups = np.array([[zeros, p0, 1.0 - p0], [ones, p1, 1.0 - p1]])
        x = np.arange(zeros + ones + 1)
        masses = np.convolve(
            binom.pmf(x[: zeros + 1], zeros, p0), binom.pmf(x[: ones + 1], ones, p1)
        )
        mean = zeros * p0 + ones * p1
        deviation = math.sqrt(zeros * p0 * (1.0 - p0) + ones * p1 * (1.0 - p1))
        found = np.abs(masses - norm.pdf(x, mean, deviation)).max()
        bound = _mass_error(groups)
        assert found < bound
        assert bound < 0.3 / deviation**2 or deviation < 4.0
    assert _mass_error(np.array([[3.0, 0.5, 0.5]])) == math.inf


def test_inverse_and_trade_off_are_safe():
    experiment = fs.ShuffleExperiment(ASYMMETRIC, 10**6, k=0)
    profile, exact = fs.berry_esseen_profile(experiment), fs.exact_profile(experiment)
    with pytest.warns(fs.DeltaWarning):
        epsilon = profile.epsilon(2e-5)
    assert profile.delta(epsilon) <= 2e-5
    assert exact.delta(epsilon) <= 2e-5 < exact.delta(0.9 * epsilon)
    # nothing is known of so small a delta but the curve of one user
    assert profile.epsilon(1e-9) > 0.9 * exact.epsilon(0.0)
    for alpha in (0.0, 0.01, 0.5):
        assert profile.trade_off(alpha) <= exact.trade_off(alpha)
    assert profile.trade_off(0.5) > exact.trade_off(0.5) - 1e-5


def test_identical_rows_have_no_loss():
    experiment = fs.ShuffleExperiment(fs.binary_randomized_response(0.0), 10, k=3)
    assert fs.berry_esseen_profile(experiment).delta(0.0) == 0.0
    assert fs.berry_esseen_bound(experiment) == (1.0, 1.0)


def test_what_cannot_be_bounded_is_refused():
    three = fs.Randomizer([[0.5, 0.25, 0.25], [0.125, 0.375, 0.5], [0.25, 0.5, 0.25]])
    for others in ({2: 9}, {0: 5, 1: 4}):
        with pytest.raises(ValueError, match="must all hold one input of the pair"):
            fs.berry_esseen_bound(fs.ShuffleExperiment(three, 10, others=others))
    pure = fs.Randomizer([[0.5, 0.5, 0.0], [0.125, 0.375, 0.5]])
    with pytest.raises(ValueError, match="likelihood ratio must be finite"):
        fs.berry_esseen_bound(fs.ShuffleExperiment(pure, 10, k=0))
    for function in (fs.berry_esseen_bound, fs.berry_esseen_profile):
        with pytest.raises(ValueError, match="n must be >= 2"):
            function(fs.ShuffleExperiment(three, 1, k=0))
        with pytest.raises(TypeError, match="experiment must be a ShuffleExperiment, got str"):
            function("rr")
