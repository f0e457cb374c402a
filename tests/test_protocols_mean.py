"""Means: unbiased, with the stated variance and intervals that hold."""

import itertools
import json
import math

import numpy as np
import pytest

from fastshuffle.protocols import estimate_mean
from fastshuffle.protocols._intervals import share_bounds
from fastshuffle.protocols.numeric import LEVELS, MECHANISMS, Piecewise, RoundedResponse
from tests.tolerances import DOZEN_ROUNDINGS

# A mean of 60,000 numbers.
MEAN_ROUNDING = 1e-13

VALUES = np.array([0.0, 0.11, 0.5, 0.8, 1.0])


def mean_of(values, epsilon0, rng, **options):
    return estimate_mean(values, epsilon0, low=0.0, high=1.0, rng=rng, **options)


@pytest.mark.parametrize("epsilon0", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("name", MECHANISMS)
def test_a_message_is_unbiased_with_the_stated_variance(name, epsilon0):
    """Mean and variance within 5 standard errors, the latter from the fourth moment."""
    mechanism = MECHANISMS[name](epsilon0)
    rng = np.random.default_rng(2)
    for value in VALUES.tolist():
        held = np.full(60_000, value)
        decoded = mechanism.decode(mechanism.report(held, rng))
        centred = decoded - value
        variance = float(mechanism.variance(np.array([value]))[0])
        assert abs(centred.mean()) <= 5.0 * math.sqrt(variance / held.size)
        error = (centred**2).std() / math.sqrt(held.size)  # 0 where bits are equally likely
        assert abs((centred**2).mean() - variance) <= 5.0 * error + MEAN_ROUNDING * variance
        assert variance <= mechanism.largest_variance * (1.0 + DOZEN_ROUNDINGS)


@pytest.mark.parametrize("epsilon0", [0.3, 2.0, 1500.0])
@pytest.mark.parametrize("value", VALUES.tolist())
def test_piecewise_by_integration(epsilon0, value):
    """The two uniform parts of the density, integrated: mass, mean and variance."""
    mechanism = Piecewise(epsilon0)
    if epsilon0 > 700.0:  # hardly any noise
        assert float(mechanism.variance(np.array([value]))[0]) <= 1e-300
        return
    z = math.exp(0.5 * epsilon0)
    reach = (z + 1) / (z - 1)
    t = 2.0 * value - 1.0
    left = (reach + 1) / 2 * t - (reach - 1) / 2
    right = left + reach - 1
    near = (math.exp(epsilon0) - z) / (2 * z + 2)
    far = near / math.exp(epsilon0)

    def moment(order):
        def part(a, b):
            return (b ** (order + 1) - a ** (order + 1)) / (order + 1)

        return near * part(left, right) + far * (part(-reach, left) + part(right, reach))

    np.testing.assert_allclose(moment(0), 1.0, rtol=1e-12, atol=0)
    np.testing.assert_allclose(mechanism.reach, reach, rtol=1e-12, atol=0)
    decoded = 0.5 * (moment(1) + 1.0)
    assert abs(decoded - value) <= 1e-12
    variance = 0.25 * (moment(2) - moment(1) ** 2)
    np.testing.assert_allclose(mechanism.variance(np.array([value])), variance, rtol=1e-9, atol=0)


@pytest.mark.parametrize("n", [1, 2, 4])
def test_bits_by_enumeration(n):
    """All bit vectors: the mean, its variance, and what the sample variance expects."""
    mechanism = RoundedResponse(1.3)
    values = VALUES[:n]
    chances = mechanism.flip + values * mechanism.difference
    totals = np.zeros(3)
    for bits in itertools.product((0.0, 1.0), repeat=n):
        weight = np.prod(np.where(bits, chances, 1.0 - chances))
        decoded = mechanism.decode(np.array(bits))
        spread = decoded.var(ddof=1) / n if n > 1 else 0.0
        totals += weight * np.array([decoded.mean(), decoded.mean() ** 2, spread])
    np.testing.assert_allclose(totals[0], values.mean(), rtol=1e-12, atol=1e-15)
    variance = float(mechanism.variance(values).sum()) / n**2
    np.testing.assert_allclose(totals[1] - totals[0] ** 2, variance, rtol=1e-12, atol=0)
    if n > 1:
        excess = values.var(ddof=1) / n
        np.testing.assert_allclose(totals[2], variance + excess, rtol=1e-12, atol=0)


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("weights", ["users", "precision"])
def test_the_estimate_is_unbiased_for_its_target(name, weights):
    """Budgets that go with the values: only the weighting by users meets the mean of all."""
    rng = np.random.default_rng(3)
    values = np.repeat([10.0, 30.0], 500)
    budgets = np.repeat([0.5, 3.0], 500)
    runs = [
        estimate_mean(values, budgets, low=0, high=50, rng=rng, mechanism=name, weights=weights)
        for _ in range(60)
    ]
    shares = np.array(runs[0].weights)
    assert math.isclose(shares.sum(), 1.0, rel_tol=1e-15)
    truth = float(shares @ [10.0, 30.0])
    if weights == "users":
        assert truth == 20.0
    else:
        assert truth > 28.0
        assert "if values and budgets are unrelated" in runs[0].target
    estimates = np.array([run.estimate for run in runs])
    kind = MECHANISMS[name]
    of_groups = [
        float(kind(e).variance(np.array([v / 50.0]))[0]) for e, v in ((0.5, 10.0), (3.0, 30.0))
    ]
    variance = 50.0**2 * float(shares**2 @ of_groups) / 500
    assert abs(estimates.mean() - truth) <= 5.0 * math.sqrt(variance / 60)
    stated = np.mean([run.variance for run in runs])
    np.testing.assert_allclose(stated, variance, rtol=0.05, atol=0)
    covered = sum(run.lower <= truth <= run.upper for run in runs)
    assert covered >= 50  # of 60 at 95 percent: below that with chance 1e-4
    assert all("normal" in run.interval for run in runs)


def test_precision_has_the_smallest_variance():
    rng = np.random.default_rng(4)
    values = rng.random(2000)
    budgets = np.repeat([0.3, 3.0], 1000)
    by_users = mean_of(values, budgets, rng)
    by_precision = mean_of(values, budgets, rng, weights="precision")
    assert by_precision.variance < 0.2 * by_users.variance
    ratio = RoundedResponse(0.3).largest_variance / RoundedResponse(3.0).largest_variance
    np.testing.assert_allclose(
        by_precision.weights[1] / by_precision.weights[0], ratio, rtol=1e-12, atol=0
    )


def poisson_binomial(chances):
    law = np.ones(1)
    for p in chances:
        law = np.convolve(law, [1.0 - p, p])
    return law


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("error", [0.25, 0.1, 0.025])
def test_bounds_on_shares_hold_for_unequal_chances(n, error):
    """Every chance on a grid, near the ends too: neither bound is wrong more often than stated."""
    bounds = np.array([share_bounds(count, n, error) for count in range(n + 1)])
    assert (bounds[:, 0] <= bounds[:, 1]).all()
    grid = [0.0, 1e-3, 0.02, 0.1, 0.26, 0.5, 0.74, 0.97, 0.999, 1.0]
    for chances in itertools.combinations_with_replacement(grid, n):
        law = poisson_binomial(chances)
        mean = sum(chances) / n
        assert law[bounds[:, 0] > mean * (1.0 + 1e-12)].sum() <= error * (1.0 + 1e-9)
        assert law[bounds[:, 1] < mean * (1.0 - 1e-12)].sum() <= error * (1.0 + 1e-9)


def test_a_binomial_bound_alone_would_fail():
    """One user of two: a count of 1 is more likely than a binomial one of the same mean."""
    error = 0.2
    mean = 0.1028  # of two trials
    binomial, unequal = poisson_binomial([mean] * 2), poisson_binomial([2.0 * mean, 0.0])
    assert binomial[1:].sum() < error < unequal[1:].sum()
    assert share_bounds(1, 2, error)[0] <= 0.5 * error


def test_interval_of_bits_covers():
    """By enumeration of the count, for users of different values: at least the confidence."""
    mechanism = RoundedResponse(2.0)
    n, level = 40, 0.9
    values = np.linspace(0.0, 0.3, n)
    law = poisson_binomial(mechanism.flip + values * mechanism.difference)
    covered = 0.0
    for count in range(n + 1):
        ends = mechanism.decode(np.array(share_bounds(count, n, 0.5 * (1.0 - level))))
        covered += law[count] * (ends[0] <= values.mean() <= ends[1])
    assert level <= covered <= 0.99


def test_one_budget_of_bits_has_an_exact_interval():
    rng = np.random.default_rng(5)
    result = mean_of(rng.random(500), 1.0, rng)
    mechanism = RoundedResponse(1.0)
    share = mechanism.flip + result.estimate * mechanism.difference
    count = round(500 * share)
    ends = mechanism.decode(np.array(share_bounds(count, 500, 0.025)))
    np.testing.assert_allclose([result.lower, result.upper], ends, rtol=1e-12, atol=0)
    assert "Clopper-Pearson" in result.interval
    assert result.lower < result.estimate < result.upper


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_shuffle_leaves_no_order(name, monkeypatch):
    """The first message is that of user 0 no more often than of any other user."""
    seen = []
    kind = MECHANISMS[name]

    def decode(_, messages):
        seen.append(messages)
        return messages

    monkeypatch.setattr(kind, "decode", decode)
    monkeypatch.setattr(kind, "report", lambda _self, values, _rng: values * 4.0)
    rng = np.random.default_rng(6)
    for _ in range(200):
        mean_of([0.0, 0.25, 0.5, 0.75], 1.0, rng, mechanism=name)
    places = np.array([messages for messages in seen if len(messages) == 4])
    counts = np.array([[(places[:, i] == v).sum() for v in range(4)] for i in range(4)])
    assert counts.sum() == 800
    # 9 degrees of freedom: above 33 with chance 1e-4
    assert ((counts - 50.0) ** 2 / 50.0).sum() * 0.75 < 33.0


def test_clipped_values_are_counted_and_never_silently():
    rng = np.random.default_rng(7)
    values = [-3.0, 0.0, 5.0, 10.0, 10.5, 99.0]
    with pytest.raises(ValueError, match=r"got -3\.0 at index 0, 3 outside in all"):
        estimate_mean(values, 1.0, low=0, high=10, rng=rng)
    result = estimate_mean(values, 30.0, low=0, high=10, rng=rng, clip=True, mechanism="piecewise")
    assert result.clipped == 3
    # hardly any noise at epsilon0 = 30: the mean of the clipped values
    assert abs(result.estimate - 35.0 / 6.0) <= 1e-4
    assert estimate_mean(values, 1.0, low=-5, high=100, rng=rng).clipped == 0


@pytest.mark.parametrize(
    ("values", "options", "error", "words"),
    [
        ([], {}, ValueError, r"values must be 1-D, of one or more users, got shape \(0,\)"),
        (0.5, {}, ValueError, "values must be 1-D"),
        ([[0.5]], {}, ValueError, r"values must be 1-D, of one or more users, got shape \(1, 1\)"),
        (
            [0.5, math.nan],
            {"clip": True},
            ValueError,
            "values must be other than nan, got nan at index 1",
        ),
        (
            [0.5, None],
            {},
            TypeError,
            "values must be a real number other than nan, got None at index 1",
        ),
        ([0.5], {"low": 1.0}, ValueError, "low must be < high, got 1.0 and 1.0"),
        ([0.5], {"low": -math.inf}, ValueError, "low must be in"),
    ],
)
def test_values_outside_their_domain(values, options, error, words):
    with pytest.raises(error, match=words):
        estimate_mean(
            values, 1.0, **{"low": 0.0, "high": 1.0, "rng": np.random.default_rng(1), **options}
        )


def test_infinite_values_are_clipped_where_asked():
    rng = np.random.default_rng(8)
    result = estimate_mean(
        [math.inf, -math.inf], 40.0, low=2, high=4, rng=rng, clip=True, mechanism="piecewise"
    )
    assert result.clipped == 2
    assert abs(result.estimate - 3.0) <= 1e-6


def test_a_single_user_of_a_budget_has_the_largest_variance():
    result = mean_of([0.5], 1.0, np.random.default_rng(9), mechanism="laplace")
    largest = 2.0 + 0.25 / (LEVELS - 1) ** 2
    np.testing.assert_allclose(result.variance, largest, rtol=DOZEN_ROUNDINGS, atol=0)


def test_messages_that_agree_have_the_largest_variance():
    """Two equal bits do not tell how much a bit varies."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        result = estimate_mean([0.5, 0.5], 1.0, low=0.0, high=1.0, rng=rng)
        assert result.variance > 0.0


def test_the_result_as_json():
    result = estimate_mean([0.5] * 9, 1.0, low=0.0, high=1.0, rng=np.random.default_rng(1))
    assert json.loads(result.to_json(delta=0.01)) == result.to_dict(delta=0.01)


def test_clip_is_no_text():
    with pytest.raises(TypeError, match="clip must be True or False, got 'yes'"):
        estimate_mean([0.5], 1.0, low=0, high=1, rng=np.random.default_rng(1), clip="yes")
