"""k-ary randomized response with personal budgets, and the published formula."""

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fastshuffle as fs
from fastshuffle.personalized.count_law import CountLaw
from fastshuffle.personalized.difference import log_test_power
from tests.tolerances import STATED
from validation.reference.personalized import histogram_law, response_rows, worst_user_delta

SMALL = [(3, [4]), (3, [2, 5, 5]), (4, [9, 1, 2]), (3, [20, 2, 1, 3]), (5, [3, 8])]


@pytest.mark.parametrize(("k", "odds"), SMALL)
def test_bracket_holds_the_worst_dataset(k, odds):
    users = [response_rows(Fraction(x), k) for x in odds]
    profile = fs.personalized_k_rr_profile([math.log(x) for x in odds], k)
    assert profile.validity is fs.Validity.UPPER_BOUND
    for growth in (Fraction(1), Fraction(3, 2)):
        rights = []
        for j in range(len(odds)):
            if odds[j] > growth:
                right = float(worst_user_delta(users, j, growth))
                low, high = profile.user(j).bounds(math.log(growth))
                assert low <= right * (1.0 + STATED)
                assert right <= high * (1.0 + STATED)
                rights.append(right)
        low, high = profile.bounds(math.log(growth))
        assert low <= max(rights) * (1.0 + STATED)
        assert max(rights) <= high * (1.0 + STATED)


def test_power_of_the_test():
    """The test between the counts of two symbols, by enumeration."""
    k, odds = 4, [6, 2, 3, 2]
    users = [response_rows(Fraction(x), k) for x in odds]
    laws = [histogram_law(users, [own, 2, 2, 2]) for own in (0, 1)]
    for growth in (Fraction(1), Fraction(5, 4), Fraction(3)):
        powers = [
            sum(laws[1][h] - growth * laws[0][h] for h in laws[0] if h[1] - h[0] >= cut)
            for cut in range(-4, 6)
        ]
        others = np.log([2.0, 3.0]), np.array([2.0, 1.0])
        found = log_test_power(math.log(growth), math.log(6.0), others, k)
        assert_allclose(found, math.log(max(powers)), rtol=1e-9, atol=1e-9)


def test_test_stays_a_lower_bound_at_tiny_deltas():
    others = np.array([1.0]), np.array([2_000.0])
    exact = fs.blanket_profile(fs.k_randomized_response(1.0, 10), 2_001)
    for epsilon in (1e-7, 1e-4, 0.1, 0.3, 0.5):
        low = log_test_power(epsilon, 1.0, others, 10)
        assert low <= exact.log_delta(epsilon)
        assert low >= 1.3 * exact.log_delta(epsilon) - 0.01


@pytest.mark.parametrize(("n", "k"), [(50, 3), (3_000, 10)])
def test_equal_budgets_are_the_uniform_bracket(n, k):
    profile = fs.personalized_k_rr_profile([1.5] * n, k)
    uniform = fs.worst_case_profile(fs.k_randomized_response(1.5, k), n)
    for epsilon in (0.0, 0.03, 0.3):
        low, high = profile.bounds(epsilon)
        least, most = uniform.bounds(epsilon)
        assert low <= most
        assert least <= high
        assert_allclose(high, most, rtol=3e-3, atol=0.0)


@pytest.mark.parametrize("budget", [1e-6, 1e-9, 1e-12])
def test_tiny_budgets_keep_their_digits(budget):
    """Of a single user at epsilon = 0: keep - flip."""
    right = math.expm1(budget) / (math.exp(budget) + 2.0)
    low, high = fs.personalized_k_rr_profile([budget], 3).bounds(0.0)
    assert right * (1.0 - 1e-9) <= low <= right * (1.0 + STATED)
    assert right * (1.0 - STATED) <= high <= right * (1.0 + 1e-9)


@pytest.mark.parametrize("epsilon", [1.0, 50.0, 350.0, 690.0])
def test_huge_budget_beside_a_uniform_message(epsilon):
    """The histograms {b, b}, {b, c} and {b, d}: a quarter each, and Q has 1, 2 and 2 flips / 4."""
    low, high = fs.personalized_k_rr_profile([0.0, 700.0], 4).log_bounds(epsilon)
    right = math.log(0.75 - 1.25 * math.exp(epsilon - 700.0))
    assert low <= right <= high <= right + 1e-3


def test_huge_budgets_among_many_symbols():
    """Neither the ratios nor the weights of the counts overflow."""
    profile = fs.personalized_k_rr_profile([1000.0] * 5 + [1.0] * 5, 10**6)
    low, high = profile.log_bounds([0.0, 10.0, 690.0, 900.0, 1000.0])
    assert (low <= high).all()
    assert (high[:4] > -1e-5).all()
    assert high[4] == -math.inf


def test_characteristic_function_with_a_zero():
    """A uniform message among three symbols has one, at a node of the sum."""
    low, high = fs.personalized_k_rr_profile([0.0, 1.0, 2.0], 3).bounds(0.0)
    right = 0.40557877796512884  # by enumeration
    assert right * (1.0 - 1e-9) <= low <= right <= high


def test_weights_of_many_counts_do_not_overflow():
    law = CountLaw(np.zeros(1), np.array([1e9]))
    right = float(law.log_moment(np.array([5.0]))[0])
    bound = law.log_mean_above(lambda counts: -5.0 * counts, rate=5.0, log_scale=0.0, points=24)
    assert right <= bound < math.inf


def test_two_symbols_are_bits():
    budgets = [1.0, 2.0, 0.5]
    profile = fs.personalized_k_rr_profile(budgets, 2)
    assert profile.delta(0.2) == fs.personalized_exact_profile(budgets).delta(0.2)


def test_many_budgets():
    budgets = np.random.default_rng(1).uniform(0.2, 4.0, 20_000)
    profile = fs.personalized_k_rr_profile(budgets, 16)
    low, high = profile.bounds(0.12)
    assert low <= high <= 1.2 * low


def test_worst_user_has_the_largest_budget():
    budgets = [0.3, 1.1, 2.2, 0.9, 0.0]
    profile = fs.personalized_k_rr_profile(budgets, 5)
    users = [profile.user(j).delta(0.2) for j in range(5)]
    assert profile.delta(0.2) == max(users)
    assert users[4] == 0.0


@pytest.mark.parametrize("k", [1, 0, -3])
def test_bad_alphabet(k):
    with pytest.raises(ValueError, match="k must be >= 2"):
        fs.personalized_k_rr_profile([1.0], k)


# ---- The published formula -------------------------------------------------------------------


def test_formula():
    budgets, deltas = [0.5, 1.0, 2.0], [0.0, 0.1, 0.2]
    c = [(1.0 - d) / (1.0 + math.exp(e)) for e, d in zip(budgets, deltas, strict=True)]
    right = math.sqrt(2.0 / (sum(c) - max(c)))
    assert_allclose(fs.personalized_gdp_mu(budgets, deltas), right, rtol=1e-15, atol=0.0)
    profile = fs.personalized_gdp_profile(budgets, deltas)
    assert profile.mu == fs.personalized_gdp_mu(budgets, deltas)
    assert profile.validity is fs.Validity.APPROXIMATION
    assert profile.bounds(0.1) == (0.0, 1.0)
    assert profile.n == 3


def test_formula_is_no_bound():
    formula = fs.personalized_gdp_profile([5.0] * 100)
    exact = fs.personalized_exact_profile([5.0] * 100, bits=[0] * 100)
    assert_allclose(formula.delta(2.0), 0.2284, rtol=3e-4, atol=0.0)
    assert exact.delta(2.0) > 2.1 * formula.delta(2.0)


def test_formula_without_others():
    assert fs.personalized_gdp_mu([1.0]) == math.inf
    assert fs.personalized_gdp_mu([1.0, 1.0], 1.0) == math.inf
    assert fs.personalized_gdp_mu([800.0] * 10**4) > 1e150
    with pytest.raises(fs.UnsupportedSettingError, match="at least 2 users"):
        fs.personalized_gdp_profile([1.0])
