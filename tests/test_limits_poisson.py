"""Poisson and Skellam limits against the exact profiles."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fastshuffle as fs
from tests.tolerances import STATED


def randomized_response(mean, n):
    """Return the symmetric mechanism whose n users make ``mean`` errors in the mean."""
    return fs.binary_randomized_response(math.log(n / mean - 1.0))


@pytest.mark.parametrize("k", [0, 1999])
def test_poisson_profile_is_near_the_exact_one(k):
    experiment = fs.ShuffleExperiment(randomized_response(4.0, 2000), 2000, k=k)
    limit, exact = fs.poisson_profile(experiment), fs.exact_profile(experiment)
    mean = 1999.0 * 4.0 / 2000.0
    assert_allclose(limit.means, (mean, 0.0) if k == 0 else (0.0, mean), rtol=STATED, atol=0)
    for direction in ("forward", "reverse"):
        for epsilon in (0.0, 0.3, 1.0):
            assert_allclose(
                limit.delta(epsilon, direction=direction),
                exact.delta(epsilon, direction=direction),
                rtol=0.05,
                atol=0,
            )
    floor = "reverse" if k == 0 else "forward"
    assert_allclose(limit.delta(math.inf, direction=floor), math.exp(-mean), rtol=STATED, atol=0)
    opposite = "forward" if k == 0 else "reverse"
    assert limit.delta(math.inf, direction=opposite) == 0.0
    assert limit.epsilon(1e-6) == math.inf


@pytest.mark.parametrize("k", [0, 700, 1999])
def test_total_variation_error_falls_as_one_over_n(k):
    gaps = []
    for n in (2000, 8000):
        ones = k * n // 2000 if k < 1999 else n - 1
        experiment = fs.ShuffleExperiment(randomized_response(4.0, n), n, k=ones)
        limit, exact = fs.skellam_profile(experiment), fs.exact_profile(experiment)
        epsilons = np.linspace(0.0, 2.0, 21)
        gaps.append(np.abs(limit.delta(epsilons) - exact.delta(epsilons)).max())
    assert 3.5 < gaps[0] / gaps[1] < 4.5


def test_skellam_has_no_floor_inside():
    experiment = fs.ShuffleExperiment(randomized_response(4.0, 2000), 2000, k=700)
    limit = fs.skellam_profile(experiment)
    assert limit.delta(math.inf) == 0.0
    assert limit.epsilon(1e-9) < math.inf
    up, down = limit.means
    assert_allclose((up, down), (1299 * 0.002, 700 * 0.002), rtol=STATED, atol=0)


def test_asymmetric_homes_and_directions():
    w = fs.Randomizer([[0.998, 0.002], [0.005, 0.995], [0.003, 0.997]])
    forward = fs.ShuffleExperiment(w, 1000, others={0: 600, 2: 399})
    backward = fs.ShuffleExperiment(w, 1000, others={0: 600, 2: 399}, pair=(1, 0))
    limit, turned = fs.skellam_profile(forward), fs.skellam_profile(backward)
    for epsilon in (0.0, 0.5, 2.0):
        assert limit.delta(epsilon, direction="forward") == turned.delta(
            epsilon, direction="reverse"
        )
    assert_allclose(limit.means, (600 * 0.002, 399 * 0.003), rtol=STATED, atol=0)
    # the differing user's own errors are the part of the distance that n cannot mend
    assert limit.law_errors[0] - limit.law_errors[1] == pytest.approx(0.002 - 0.005, rel=1e-9)


def test_a_larger_alphabet_with_one_rare_count():
    """Others at the home of a: only the count at the home of b tells the datasets apart."""
    krr = fs.k_randomized_response(math.log(500.0), k=6)
    experiment = fs.ShuffleExperiment(krr, 2000, k=0)
    limit = fs.poisson_profile(experiment)
    assert_allclose(limit.means, (1999.0 / 505.0, 0.0), rtol=STATED, atol=0)
    lower, upper = limit.bounds(0.5)
    exact_lower, exact_upper = fs.exact_profile(experiment).bounds(0.5)
    assert lower < exact_lower <= exact_upper < upper


@pytest.mark.parametrize("k", [0, 300, 999])
def test_bounds_bracket_the_exact_delta(k):
    for mean in (0.3, 4.0, 60.0):
        experiment = fs.ShuffleExperiment(randomized_response(mean, 1000), 1000, k=k)
        limit, exact = fs.skellam_profile(experiment), fs.exact_profile(experiment)
        epsilons = np.array([0.0, 0.1, 0.5, 1.5, math.inf])
        for direction in ("forward", "reverse", "both"):
            lower, upper = limit.bounds(epsilons, direction=direction)
            delta = exact.delta(epsilons, direction=direction)
            assert (lower <= delta).all()
            assert (delta <= upper).all()
            assert upper[0] - lower[0] < 0.5


def test_inverse_and_trade_off():
    experiment = fs.ShuffleExperiment(randomized_response(40.0, 10**6), 10**6, k=4 * 10**5)
    limit = fs.skellam_profile(experiment)
    for delta in (1e-7, 1e-30, 1e-300):
        epsilon = limit.epsilon(delta)
        assert limit.delta(epsilon) <= delta
        assert limit.delta(epsilon * (1 - 1e-13)) > delta * (1 - 1e-9)
    exact = fs.exact_profile(experiment)
    assert_allclose(limit.trade_off(0.05), exact.trade_off(0.05), rtol=1e-4, atol=0)
    assert limit.trade_off(0.05) == min(
        limit.trade_off(0.05, direction="forward"), limit.trade_off(0.05, direction="reverse")
    )


def test_says_what_it_is():
    limit = fs.poisson_profile(fs.ShuffleExperiment(randomized_response(4.0, 100), 100, k=0))
    assert limit.validity is fs.Validity.APPROXIMATION
    assert "2603.10073v1" in limit.source
    assert "errors are rare" in limit.describe()
    assert limit.to_dict()["region"] == limit.region


def test_one_user_and_no_errors():
    limit = fs.poisson_profile(fs.ShuffleExperiment(randomized_response(0.1, 10), 1, k=0))
    assert limit.delta(3.0) == 1.0
    certain = fs.Randomizer([[1.0, 0.0], [0.0, 1.0]])
    assert fs.poisson_profile(fs.ShuffleExperiment(certain, 5, k=0)).delta(3.0) == 1.0


def test_refusals():
    rr = randomized_response(1.0, 150)
    fair = fs.Randomizer([[0.5, 0.5], [0.1, 0.9]])
    with pytest.raises(TypeError, match="experiment must be a ShuffleExperiment, got int"):
        fs.poisson_profile(3)
    with pytest.raises(
        fs.UnsupportedSettingError, match=r"above 1/2, got 0\.5 as the largest of input 0"
    ):
        fs.skellam_profile(fs.ShuffleExperiment(fair, 9, k=0))
    same = fs.Randomizer([[0.9, 0.1], [0.8, 0.2]])
    with pytest.raises(fs.UnsupportedSettingError, match="got the same for 0 and 1"):
        fs.skellam_profile(fs.ShuffleExperiment(same, 9, k=0))
    with pytest.raises(fs.UnsupportedSettingError, match="must all have the home of one input"):
        fs.poisson_profile(fs.ShuffleExperiment(rr, 9, k=4))
    krr = fs.k_randomized_response(5.0, k=4)
    with pytest.raises(fs.UnsupportedSettingError, match="must fall into 2 groups, got 3"):
        fs.skellam_profile(fs.ShuffleExperiment(krr, 9, k=4))
