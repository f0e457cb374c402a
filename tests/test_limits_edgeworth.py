"""Edgeworth expansions: their rates, the end of their region, and what lies beyond it."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fastshuffle as fs

ASYMMETRIC = fs.Randomizer.from_probabilities([0.2, 0.5])
THREE = fs.Randomizer([[0.5, 0.3, 0.2], [0.2, 0.35, 0.45], [0.25, 0.5, 0.25]])
SIDES = ("forward", "reverse")


def relative_errors(profile, exact, epsilon):
    return [
        abs(math.expm1(float(ours - truth)))
        for ours, truth in (
            (profile.log_delta(epsilon, direction=side), exact.log_delta(epsilon, direction=side))
            for side in SIDES
        )
    ]


def scaled_errors(experiment, rtol=1e-3):
    """Return the largest relative errors up to 1.5 mu, times n**1/2, n and n**3/2, by method."""
    exact = fs.exact_profile(experiment, rtol=rtol)
    limit = fs.gaussian_profile(experiment)
    methods = [limit, *(fs.edgeworth_profile(experiment, order=order) for order in (3, 4))]
    rates = [0.5, 1.0, 1.5]
    return [
        experiment.n**rate
        * max(max(relative_errors(method, exact, t * limit.mu)) for t in (0.0, 0.4, 1.0, 1.5))
        for method, rate in zip(methods, rates, strict=True)
    ]


@pytest.mark.parametrize(("share", "constants"), [(0.0, (0.8, 6.2, 8.6)), (0.3, (0.5, 4.0, 3.2))])
def test_rates_with_two_outputs(share, constants):
    for n in (10**3, 10**4, 10**5, 10**6):
        experiment = fs.ShuffleExperiment(ASYMMETRIC, n, k=round(share * (n - 1)))
        assert_allclose(scaled_errors(experiment), constants, rtol=0.1, atol=0)


def test_rates_of_a_count_without_skewness():
    # the others send a fair coin: the error of order 4 falls faster still
    for n in (10**3, 10**5):
        limit, third, fourth = scaled_errors(fs.ShuffleExperiment(ASYMMETRIC, n, k=n - 1))
        assert 1.9 < limit < 2.2
        assert 3.0 < third < 3.2
        assert fourth < 0.1


def test_rates_with_a_third_input():
    w = fs.Randomizer.from_probabilities([0.2, 0.5, 0.35])
    for n in (10**3, 10**5):
        experiment = fs.ShuffleExperiment(
            w, n, others={0: n // 4, 1: n // 4, 2: n - 1 - n // 4 * 2}
        )
        _, third, fourth = scaled_errors(experiment)
        assert third < 8.0
        assert fourth < 4.0


@pytest.mark.parametrize("held", [0, 1, 2])
def test_rates_with_three_outputs(held):
    for n in (200, 2000):
        experiment = fs.ShuffleExperiment(THREE, n, others={held: n - 1})
        limit, third, fourth = scaled_errors(experiment, rtol=1e-7)
        assert 0.1 < limit < 2.0
        assert 0.2 < third < 1.0
        assert fourth < 3.0


def test_documented_errors():
    documented = {10**3: (1.21e-2, 1.7e-3, 3.8e-5), 10**4: (3.7e-3, 1.7e-4, 1.2e-6)}
    for n, errors in documented.items():
        experiment = fs.ShuffleExperiment(ASYMMETRIC, n, k=0)
        exact, limit = fs.exact_profile(experiment), fs.gaussian_profile(experiment)
        methods = [limit, *(fs.edgeworth_profile(experiment, order=order) for order in (3, 4))]
        found = [max(relative_errors(method, exact, limit.mu)) for method in methods]
        assert_allclose(found, errors, rtol=0.05, atol=0)


@pytest.mark.parametrize(
    ("randomizer", "n", "k", "limit_on_error"),
    [
        (ASYMMETRIC, 10, 0, 0.05),
        (ASYMMETRIC, 10, 3, 0.05),
        (ASYMMETRIC, 100, 33, 0.02),
        (ASYMMETRIC, 10**4, 0, 0.02),
        (ASYMMETRIC, 10**6, 333_333, 0.02),
        (fs.binary_randomized_response(1.0), 1000, 500, 0.02),
        (fs.binary_randomized_response(4.0), 100, 0, 0.02),
        (fs.binary_randomized_response(4.0), 10**6, 0, 0.02),
    ],
)
def test_better_than_the_limit_at_the_end_of_the_region(randomizer, n, k, limit_on_error):
    experiment = fs.ShuffleExperiment(randomizer, n, k=k)
    exact, limit = fs.exact_profile(experiment), fs.gaussian_profile(experiment)
    profile = fs.edgeworth_profile(experiment)
    for epsilon in np.linspace(0.2, 1.0, 5) * profile.largest_epsilon:
        error = max(relative_errors(profile, exact, epsilon))
        assert error < limit_on_error
        assert error < max(relative_errors(limit, exact, epsilon))


def test_decreases_within_its_region():
    for order in (3, 4):
        for experiment in (
            fs.ShuffleExperiment(ASYMMETRIC, 50, k=20),
            fs.ShuffleExperiment(THREE, 50, k=0),
        ):
            profile = fs.edgeworth_profile(experiment, order=order)
            epsilons = np.linspace(0.0, profile.largest_epsilon, 501)
            for side in SIDES:
                assert (np.diff(profile.log_delta(epsilons, direction=side)) < 0.0).all()


def test_beyond_its_region_it_is_refused():
    profile = fs.edgeworth_profile(fs.ShuffleExperiment(ASYMMETRIC, 1000, k=0))
    end = profile.largest_epsilon
    least = profile.delta(end)
    assert least > 0.0
    assert profile.epsilon(1.001 * least) <= end
    for epsilon in (1.01 * end, [0.0, math.inf]):
        with pytest.raises(ValueError, match=r"epsilon must be <= 0\.07\d+, where the corrections"):
            profile.delta(epsilon)
    for delta in (0.9 * least, 0.0):
        with pytest.raises(
            ValueError, match=r"delta must be >= exp\(-\d+.* at the end of its region"
        ):
            profile.epsilon(delta)


def test_where_it_is_refused_it_turns_negative():
    experiment = fs.ShuffleExperiment(fs.binary_randomized_response(4.0), 10**4, k=0)
    profile, exact = fs.edgeworth_profile(experiment), fs.exact_profile(experiment)
    epsilons = fs.gaussian_profile(experiment).mu * np.array([2.0, 5.0, 6.0])
    assert profile.largest_epsilon < epsilons[0]
    with np.errstate(invalid="ignore"):
        beyond = profile._expansions["reverse"].log_delta(epsilons, 4)
    assert beyond[1] < exact.log_delta(epsilons[1], direction="reverse") + math.log(0.1)
    assert np.isnan(beyond[2])


def test_lattice_term():
    # delta(0) is a mass of about binomial(99, 1/2), half a count from its mean
    experiment = fs.ShuffleExperiment(fs.binary_randomized_response(1e-3), 100, k=0)
    third, fourth = (fs.edgeworth_profile(experiment, order=order).delta(0.0) for order in (3, 4))
    square = 1.0 / 99
    hermite = square * (square - 6.0) + 3.0
    assert_allclose(fourth / third, 1.0 - 2.0 / 99 * hermite / 24, rtol=1e-5, atol=0)


def test_identical_rows_have_no_loss():
    experiment = fs.ShuffleExperiment(fs.binary_randomized_response(0.0), 10, k=3)
    profile = fs.edgeworth_profile(experiment)
    assert profile.delta([0.0, 0.3, math.inf]).tolist() == [0.0, 0.0, 0.0]
    assert profile.epsilon(0.0) == 0.0


def test_inverse_and_trade_off():
    experiment = fs.ShuffleExperiment(ASYMMETRIC, 10**4, k=2000)
    profile, exact = fs.edgeworth_profile(experiment), fs.exact_profile(experiment)
    epsilon = profile.epsilon(1e-6)
    assert profile.delta(epsilon) <= 1e-6
    assert_allclose(epsilon, exact.epsilon(1e-6), rtol=3e-5, atol=0)
    assert_allclose(profile.trade_off(0.1), exact.trade_off(0.1), rtol=1e-5, atol=0)
    assert profile.validity is fs.Validity.APPROXIMATION
    assert profile.bounds(0.0) == (0.0, 1.0)
    assert profile.order == 4
    assert f"{profile.largest_epsilon:.6g}" in profile.region


def test_what_has_no_expansion_is_refused():
    with pytest.raises(ValueError, match="order must be >= 3, got 2"):
        fs.edgeworth_profile(fs.ShuffleExperiment(ASYMMETRIC, 100, k=0), order=2)
    with pytest.raises(ValueError, match="order must be <= 4, got 5"):
        fs.edgeworth_profile(fs.ShuffleExperiment(ASYMMETRIC, 100, k=0), order=5)
    with pytest.raises(ValueError, match="got 2 inputs and 3 groups"):
        fs.edgeworth_profile(fs.ShuffleExperiment(THREE, 100, k=50))
    with pytest.raises(ValueError, match="n must be larger for an Edgeworth expansion"):
        fs.edgeworth_profile(fs.ShuffleExperiment(fs.binary_randomized_response(6.0), 10, k=0))
    rare = fs.Randomizer.from_probabilities([5e-4, 1e-3])
    with pytest.raises(ValueError, match=r"some messages are too rare .*, got 1000"):
        fs.edgeworth_profile(fs.ShuffleExperiment(rare, 1000, k=0))
    with pytest.raises(ValueError, match="n must be >= 2"):
        fs.edgeworth_profile(fs.ShuffleExperiment(ASYMMETRIC, 1, k=0))
    with pytest.raises(TypeError, match="experiment must be a ShuffleExperiment, got int"):
        fs.edgeworth_profile(7)
