"""The Gaussian curve against mpmath, its tangent, and the smallest curve above a profile."""

import json
import math
from statistics import NormalDist

import numpy as np
import pytest
from mpmath import mp, mpf
from numpy.testing import assert_allclose

import fastshuffle as fs
from fastshuffle.limits import LimitProfile
from fastshuffle.limits._normal import log_gaussian_delta, log_mean_excess, log_upper_tail
from tests.tolerances import DOZEN_ROUNDINGS, STATED

RR1 = fs.binary_randomized_response(1.0)
ASYMMETRIC = fs.Randomizer.from_probabilities([0.2, 0.5])


def tail(x):
    return mp.erfc(x / mp.sqrt(2)) / 2


def log_curve(epsilon, mu):
    """Return log delta of N(mu, 1) against N(0, 1) from its definition."""
    with mp.workdps(500):
        epsilon, mu = mpf(epsilon), mpf(mu)
        a = epsilon / mu - mu / 2
        return mp.log(tail(a) - mp.exp(epsilon) * tail(a + mu))


def assert_logs_close(log_value, log_truth, units=0.0):
    """Compare two logarithms of deltas: relative error ``STATED`` of delta, plus units of 1e-15."""
    with mp.workdps(60):
        assert abs(mpf(float(log_value)) - log_truth) <= STATED + 1e-15 * float(units)


@pytest.mark.parametrize("mu", [1e-9, 1e-4, 0.1, 1.0, 2.0, 3.9, 4.1, 6.0, 40.0, 1e3])
def test_gaussian_curve(mu):
    for t in (0.0, 1e-6, 1e-3, 0.1, 0.5, 1.0, 2.0, 5.0, 20.0, 36.5):
        for epsilon in {t * mu, (t + 0.5 * mu) * mu}:
            value = log_gaussian_delta(np.array([epsilon]), np.array([mu]))[0]
            a, b = epsilon / mu - 0.5 * mu, epsilon / mu + 0.5 * mu
            assert_logs_close(value, log_curve(epsilon, mu), abs(a) * b)


def test_gaussian_curve_beyond_doubles():
    value = log_gaussian_delta(np.array([1e4, 1e300, math.inf]), np.array([1.0, 1e-9, 1.0]))
    with mp.workdps(60):
        a = mpf("9999.5")
        # Mills' ratio of huge numbers, 1 / a - 1 / a**3 + ..., and the difference of two
        leading = -(a**2) / 2 - mp.log(mp.sqrt(2 * mp.pi)) + mp.log(1 / a - 1 / (a + 1))
    assert_allclose(value[0], float(leading), rtol=DOZEN_ROUNDINGS, atol=0)
    assert value[1] == value[2] == -math.inf


@pytest.mark.parametrize("x", [-38.0, -3.0, -1e-9, 0.0, 1e-9, 0.5, 3.0, 37.0, 100.0, 1e5])
def test_normal_tails(x):
    with mp.workdps(80):
        truth = mp.log(tail(mpf(x)))
        assert_logs_close(log_upper_tail(np.array([x]))[0], truth, x * x if x > 37 else 0.0)
        if x >= 0.0:
            truth = mp.log(mp.npdf(mpf(x)) - mpf(x) * tail(mpf(x)))
            assert_logs_close(log_mean_excess(np.array([x]))[0], truth, x * x if x > 37 else 0.0)


def test_is_an_approximation_and_says_so():
    experiment = fs.ShuffleExperiment(ASYMMETRIC, 1000, k=300)
    for profile in (fs.gaussian_profile(experiment), fs.tangent_profile(experiment)):
        assert isinstance(profile, LimitProfile)
        assert profile.validity is fs.Validity.APPROXIMATION
        assert profile.bounds([0.0, 0.1])[0].tolist() == [0.0, 0.0]
        assert profile.bounds([0.0, 0.1])[1].tolist() == [1.0, 1.0]
        assert profile.n == 1000
        assert profile.experiment == experiment
        assert profile.delta(math.inf) == 0.0
        assert profile.epsilon(0.0) == math.inf
        with pytest.warns(fs.DeltaWarning):
            assert profile.epsilon(profile.delta(0.0)) == 0.0
        assert profile.delta(0.01, direction="forward") == profile.delta(0.01, direction="reverse")
        assert "region:" in profile.describe()
        content = json.loads(profile.to_json(epsilon=[0.1]))
        assert content["region"] == profile.region
        assert content["validity"] == "APPROXIMATION"


def test_fraction_of_the_others():
    experiment = fs.ShuffleExperiment(ASYMMETRIC, 11, k=4)
    mu = fs.gaussian_profile(experiment).mu
    assert_allclose(mu, math.sqrt(fs.fisher_constant(ASYMMETRIC, 0.4) / 11), rtol=1e-15, atol=0)
    krr = fs.ShuffleExperiment(fs.k_randomized_response(1.0, 5), 11, others={2: 10})
    worst = fs.worst_fisher_constant(krr.randomizer).constant
    assert_allclose(fs.gaussian_profile(krr).mu, math.sqrt(worst / 11), rtol=1e-15, atol=0)


def test_inverse_is_on_the_safe_side():
    for mu_experiment in (
        fs.ShuffleExperiment(RR1, 10**4, k=0),
        fs.ShuffleExperiment(ASYMMETRIC, 2, k=1),
    ):
        for profile in (fs.gaussian_profile(mu_experiment), fs.tangent_profile(mu_experiment)):
            for delta in (1e-300, 1e-20, 1e-5, 1e-3):
                epsilon = profile.epsilon(delta) if delta * profile.n < 1.0 else None
                if epsilon:
                    assert profile.delta(epsilon) <= delta
                    assert profile.delta(epsilon * (1.0 - 1e-13)) > delta * (1.0 - 1e-15)


def test_trade_off_is_the_normal_one():
    profile = fs.gaussian_profile(fs.ShuffleExperiment(RR1, 100, k=0))
    alphas = [1e-300, 1e-12, 0.05, 0.5, 0.99, 1.0 - 1e-12]
    with mp.workdps(40):
        for alpha in alphas:
            # the point of the normal law at this level, from a start that is nearly there
            start = NormalDist().inv_cdf(alpha)
            level = mp.log(mpf(alpha))
            z = mp.findroot(lambda x, level=level: mp.log(tail(-x)) - level, start)
            truth = tail(z + mpf(profile.mu))
            assert_allclose(profile.trade_off(alpha), float(truth), rtol=STATED, atol=0)
    assert profile.trade_off([0.0, 1.0]).tolist() == [1.0, 0.0]


def test_tangent_is_its_formula():
    profile = fs.tangent_profile(fs.ShuffleExperiment(RR1, 10**6, k=0))
    for t in (0.0, 0.1, 1.0, 5.0, 36.0):
        epsilon = t * profile.mu
        with mp.workdps(60):
            at = mpf(epsilon) / mpf(profile.mu)
            truth = mp.log(mpf(profile.mu) * (mp.npdf(at) - at * tail(at)))
        assert_logs_close(profile.log_delta(epsilon), truth, t * t)


@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize("kind", [fs.gaussian_profile, fs.tangent_profile])
def test_error_is_of_order_one_over_n(kind, share):
    scaled = []
    for n in (10**3, 10**4, 10**5, 10**6):
        experiment = fs.ShuffleExperiment(ASYMMETRIC, n, k=int(share * n))
        limit, exact = kind(experiment), fs.exact_profile(experiment)
        epsilons = limit.mu * np.array([0.0, 0.5, 1.0, 2.0, 3.0])
        scaled.append(
            [
                n * np.abs(limit.delta(epsilons) - exact.delta(epsilons, direction=side)).max()
                for side in ("forward", "reverse")
            ]
        )
    scaled = np.array(scaled)
    assert scaled.max() < 0.2
    # and of no smaller order
    assert scaled[-1].max() > 0.5 * scaled[0].max()


def test_neither_is_a_bound():
    experiment = fs.ShuffleExperiment(fs.binary_randomized_response(4.0), 10**4, k=0)
    exact = fs.exact_profile(experiment)
    limit, tangent = fs.gaussian_profile(experiment), fs.tangent_profile(experiment)
    assert_allclose(exact.delta(0.363), 8.96e-8, rtol=1e-3, atol=0)
    assert_allclose(limit.delta(0.363), 4.54e-9, rtol=1e-3, atol=0)
    assert_allclose(tangent.delta(0.363), 3.79e-9, rtol=1e-3, atol=0)
    assert exact.delta(0.7) > 4e7 * limit.delta(0.7)


def test_identical_rows_have_no_loss():
    w = fs.Randomizer([[0.5, 0.5], [0.5, 0.5]])
    experiment = fs.ShuffleExperiment(w, 10, k=3)
    for profile in (fs.gaussian_profile(experiment), fs.tangent_profile(experiment)):
        assert profile.delta([0.0, 1.0, math.inf]).tolist() == [0.0, 0.0, 0.0]
        assert profile.epsilon(0.0) == 0.0
        assert profile.trade_off(0.25) == 0.75
    assert fs.gdp_mu(fs.exact_profile(experiment)) == 0.0


def test_what_has_no_limit_is_refused():
    with pytest.raises(ValueError, match="n must be >= 2"):
        fs.gaussian_profile(fs.ShuffleExperiment(RR1, 1, k=0))
    pure = fs.Randomizer([[1.0, 0.0], [0.5, 0.5]])
    with pytest.raises(ValueError, match="Fisher constant must be finite"):
        fs.gaussian_profile(fs.ShuffleExperiment(pure, 10, k=0))
    with pytest.raises(ValueError, match=r"mu = sqrt\(I / n\) must be <= sqrt\(2 pi\)"):
        fs.tangent_profile(fs.ShuffleExperiment(fs.binary_randomized_response(9.0), 10, k=0))
    with pytest.raises(TypeError, match="experiment must be a ShuffleExperiment, got Randomizer"):
        fs.gaussian_profile(RR1)


@pytest.mark.parametrize(
    ("randomizer", "n", "k"),
    [
        (RR1, 1, 0),
        (RR1, 2, 1),
        (ASYMMETRIC, 50, 10),
        (fs.binary_randomized_response(4.0), 1000, 0),
        # rare messages: the largest mu is at 0.99 of the largest loss
        (fs.Randomizer.from_probabilities([0.003, 0.0015]), 10, 8),
    ],
)
def test_gdp_mu_dominates_and_is_tight(randomizer, n, k):
    exact = fs.exact_profile(fs.ShuffleExperiment(randomizer, n, k=k))
    mu = fs.gdp_mu(exact, rtol=1e-6)
    epsilons = np.linspace(0.0, exact.epsilon(0.0), 20_001)[:-1]
    log_deltas = exact.log_delta(epsilons)
    curve = log_gaussian_delta(epsilons, np.full_like(epsilons, mu))
    assert (curve >= log_deltas).all()
    smaller = log_gaussian_delta(epsilons, np.full_like(epsilons, mu * (1.0 - 3e-6)))
    assert (smaller < log_deltas).any()


def test_gdp_mu_is_not_that_of_the_limit():
    experiment = fs.ShuffleExperiment(fs.binary_randomized_response(4.0), 10**4, k=0)
    mu = fs.gdp_mu(fs.exact_profile(experiment), rtol=1e-6)
    assert_allclose(mu, 0.210453, rtol=1e-5, atol=0)
    assert_allclose(fs.gaussian_profile(experiment).mu, 0.0725372, rtol=1e-5, atol=0)


def test_gdp_mu_of_a_single_user():
    # n = 1 is randomized response itself: the two-point laws (p, q) against (q, p)
    exact = fs.exact_profile(fs.ShuffleExperiment(RR1, 1, k=0))
    p = 1.0 / (1.0 + math.exp(-1.0))
    with mp.workdps(30):
        # the corner of the trade-off function at (q, q) decides
        truth = -2.0 * mp.findroot(lambda x: tail(-x) - (1 - mpf(p)), -0.6)
    assert_allclose(fs.gdp_mu(exact, rtol=1e-9), float(truth), rtol=2e-9, atol=0)


def test_gdp_mu_of_infinite_losses():
    pure = fs.Randomizer([[1.0, 0.0], [0.5, 0.5]])
    assert fs.gdp_mu(fs.exact_profile(fs.ShuffleExperiment(pure, 10, k=3))) == math.inf
    with pytest.raises(ValueError, match="profile must have a finite largest loss"):
        fs.gdp_mu(fs.gaussian_profile(fs.ShuffleExperiment(RR1, 10, k=3)))
    with pytest.raises(TypeError, match="profile must be a PrivacyProfile, got float"):
        fs.gdp_mu(0.5)
    with pytest.raises(ValueError, match=r"rtol must be in \[1e-9, 0.5\], got 0.0"):
        fs.gdp_mu(fs.exact_profile(fs.ShuffleExperiment(RR1, 10, k=3)), rtol=0.0)


def test_a_mu_whose_integral_is_no_double():
    experiment = fs.ShuffleExperiment(fs.binary_randomized_response(1e-105), 10**7, k=0)
    assert fs.gaussian_profile(experiment).log_delta(0.7) == -math.inf
