"""The clone bound with personal budgets and deltas: its value, and that no mechanism lies above."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fastshuffle as fs
from fastshuffle.personalized.count_law import CountLaw
from tests.tolerances import STATED
from validation.reference.exact import hockey_stick
from validation.reference.personalized import (
    clone_delta,
    histogram_law,
    response_rows,
    user_delta,
    worst_user_delta,
)

# How far the mean over the number of clones may lie above itself: its rounding for few users.
MEAN = 3e-11
SMALL = [[3], [2, 5], [4, 4, 4], [1, 2, 7, 3], [9, 1, 2, 2, 3]]


@pytest.mark.parametrize("odds", SMALL)
@pytest.mark.parametrize("family", ["nested", "containing"])
def test_value_for_few_users(odds, family):
    profile = fs.personalized_clone_profile([math.log(x) for x in odds], family=family)
    for growth in (Fraction(1), Fraction(3, 2)):
        rights = []
        for j, own in enumerate(odds):
            others = [x for i, x in enumerate(odds) if i != j]
            if family == "nested":
                others = [max(x, own) for x in others]
            right = clone_delta(Fraction(own), [Fraction(1, x) for x in others], growth)
            rights.append(float(right))
            found = profile.user(j).delta(math.log(growth))
            assert right <= found * (1.0 + STATED) if own > growth else found == 0.0
            assert found <= float(right) * (1.0 + MEAN)
        assert_allclose(profile.delta(math.log(growth)), max(rights), rtol=MEAN, atol=0.0)


@pytest.mark.parametrize("odds", SMALL)
def test_above_binary_response(odds):
    users = [response_rows(Fraction(x)) for x in odds]
    budgets = [math.log(x) for x in odds]
    for family in ("nested", "containing"):
        profile = fs.personalized_clone_profile(budgets, family=family)
        for j in range(len(odds)):
            for growth in (Fraction(1), Fraction(3, 2)):
                if growth < odds[j]:
                    right = worst_user_delta(users, j, growth)
                    assert profile.user(j).delta(math.log(growth)) >= float(right) * (1 - 1e-12)


def test_above_k_ary_response_where_it_is_nested():
    odds = [20, 2, 1]
    users = [response_rows(Fraction(x), 4) for x in odds]
    budgets = [math.log(x) for x in odds]
    right = worst_user_delta(users, 0, Fraction(2))
    assert fs.personalized_clone_profile(budgets).delta(math.log(2)) >= float(right)
    # the same numbers in the class that k-ary response is not of: no bound, as documented
    contained = fs.personalized_clone_profile(budgets, family="containing")
    assert contained.delta(math.log(2)) < float(right)


def _shuffled_delta(users, data, j, other, epsilon):
    """A float version of the reference, for random matrices."""
    exact = [[[Fraction(float(p)) for p in row] for row in rows] for rows in users]
    forward, reverse = user_delta(exact, data, j, other, Fraction(math.exp(epsilon)))
    return float(max(forward, reverse))


def test_above_random_randomizers_with_deltas():
    """Random matrices, budgets below their largest loss, so that each has a delta_i of its own."""
    rng = np.random.default_rng(11)
    for case in range(6):
        k, d, n = 2 + case % 2, 2 + case % 3, 2 + case % 3
        base = rng.dirichlet(np.full(d, 1.0), k)
        matrices, budgets, deltas = [], [], []
        for i in range(n):
            share = 0.0 if case % 2 else 0.3 * i
            matrix = (1.0 - share) * base + share * base.mean(axis=0)
            with np.errstate(divide="ignore"):
                loss = np.log(matrix[:, np.newaxis] / matrix).max()
            epsilon = 0.6 * float(loss)
            gaps = matrix[:, np.newaxis] - math.exp(epsilon) * matrix
            matrices.append(matrix.tolist())
            budgets.append(epsilon)
            deltas.append(float(np.maximum(gaps, 0.0).sum(axis=2).max()))
        profile = fs.personalized_clone_profile(budgets, deltas)
        for j, epsilon in itertools.product((0, n - 1), (0.0, 0.3, 1.5 * budgets[0])):
            for data in itertools.product(range(k), repeat=n):
                right = _shuffled_delta(matrices, data, j, (data[j] + 1) % k, epsilon)
                assert right <= profile.user(j).delta(epsilon) * (1.0 + 1e-9)
                assert right <= profile.delta(epsilon) * (1.0 + 1e-9)


def test_a_coin_that_is_off_by_its_delta():
    """A clone that is merely rarer would be no bound; the sum of both terms is one."""
    keep, off = Fraction(3, 4), Fraction(1, 10)
    own = [[keep, 1 - keep], [1 - keep, keep]]
    coin = [[Fraction(1, 2) + off, Fraction(1, 2) - off]] * 2
    laws = [histogram_law([own, coin], data) for data in ([0, 0], [1, 0])]
    right = hockey_stick(laws[1], laws[0], Fraction(1))
    assert right == (Fraction(1, 2) + off) * (2 * keep - 1)
    profile = fs.personalized_clone_profile([math.log(3), 0.0], [0.0, 0.1], family="containing")
    found = profile.user(0).delta(0.0)
    thinned = (Fraction(1, 2) + off / 2) * (2 * keep - 1)
    assert float(thinned) < float(right) <= found


def test_delta_of_a_user_is_a_floor():
    profile = fs.personalized_clone_profile([1.0] * 50, [1e-4, *[0.0] * 49])
    assert_allclose(profile.user(0).delta([1.0, 5.0, math.inf]), 1e-4, rtol=STATED, atol=0.0)
    assert profile.user(0).epsilon(5e-5) == math.inf
    assert profile.user(1).delta(1.0) == 0.0
    assert profile.delta(2.0) >= 1e-4


def test_curve_falls_where_deltas_add():
    profile = fs.personalized_clone_profile([3.0] * 500, 1e-8, family="containing")
    values = profile.delta(np.linspace(0.0, 3.5, 40))
    assert (np.diff(values) <= 1e-3 * values[1:]).all()
    epsilon = profile.epsilon(1e-5)
    assert 0.0 < epsilon < 3.0
    assert profile.delta(epsilon) <= 1e-5


def test_useless_clones_are_not_used():
    """A few users without protection cost nothing; they are as if they were not there."""
    with_them = fs.personalized_clone_profile([1.0] * 20, [0.0] * 15 + [1.0] * 5)
    assert with_them.delta(0.5) == 1.0
    without = fs.personalized_clone_profile([1.0] * 15)
    assert_allclose(
        with_them.user(0).delta([0.0, 0.5]), without.user(0).delta([0.0, 0.5]), rtol=MEAN, atol=0.0
    )


@pytest.mark.parametrize("n", [1, 40, 3_000])
def test_equal_budgets_are_the_uniform_bound(n):
    uniform = fs.clone_profile(1.5, n)
    for family in ("nested", "containing"):
        profile = fs.personalized_clone_profile([1.5] * n, family=family)
        for epsilon in (0.0, 0.05, 0.4, 1.2):
            assert_allclose(
                profile.log_delta(epsilon), uniform.log_delta(epsilon), rtol=1e-6, atol=0.0
            )


def test_many_deltas_are_rounded_up():
    rng = np.random.default_rng(2)
    budgets, deltas = rng.uniform(0.5, 1.5, 300), 10.0 ** rng.uniform(-14, -9, 300)
    profile = fs.personalized_clone_profile(budgets, deltas)
    assert profile.delta(0.4) >= fs.personalized_clone_profile(budgets, deltas.min()).delta(0.4)
    found = profile.epsilons(1e-5)
    assert found.shape == (300,)
    assert found.max() <= profile.epsilon(1e-5)


def test_mean_over_many_different_chances():
    """200 chances, 0 and 1 among them, and means down to 1e-200, against a convolution."""
    chances = np.concatenate(([0.0, 1.0, 1.0], np.linspace(0.01, 0.99, 200)))
    law = np.array([1.0])
    for p in chances:
        law = np.convolve(law, [1.0 - p, p])
    with np.errstate(divide="ignore"):
        log_odds = np.log(chances) - np.log1p(-chances)
    count = CountLaw(log_odds, np.ones(chances.size))
    for rate in (0.0, 0.3, 2.0, 6.0):
        right = math.log(math.fsum(law * np.exp(-rate * np.arange(law.size))))
        for points, width in ((1_000, 1e-10), (60, 1e-10 + 0.3 * rate)):
            found = count.log_mean_above(
                lambda c, rate=rate: -rate * c, rate=rate, log_scale=0.0, points=points
            )
            assert right <= found + 1e-11 * (1.0 + abs(right))
            assert found <= right + width + 1e-11 * (1.0 + abs(right))
    assert math.log(law[2:].max()) - 6.0 * law.size < math.log(1e-200)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, 2.0], [0.1]), "as many as epsilons, 2, got shape"),
        (([1.0, 2.0], [0.1, 1.5]), r"deltas must be in \[0, 1\], got 1.5"),
        (([1.0, math.nan],), "got nan"),
        (([1.0], [math.nan]), "got nan"),
        (([],), "at least one user"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        fs.personalized_clone_profile(*arguments)


def test_unknown_family():
    with pytest.raises(ValueError, match="family must be 'nested' or 'containing', got 'any'"):
        fs.personalized_clone_profile([1.0], family="any")


def test_describes_itself():
    profile = fs.personalized_clone_profile([1.0] * 3, 0.0)
    assert profile.n == 3
    assert profile.validity is fs.Validity.UPPER_BOUND
    assert "worst of 3 users" in profile.method
    table = profile.to_dict(epsilon=0.1, delta=0.2)
    assert table["setting"]["epsilons"] == [1.0, 1.0]
    assert profile.trade_off(0.1) > 0.0
