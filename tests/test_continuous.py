"""Continuous noise: brackets against closed forms, integrals and finer bins; samplers."""

import math

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy import stats

import fastshuffle as fs

pytestmark = pytest.mark.filterwarnings("ignore::fastshuffle.DeltaWarning")
DIRECTIONS = ["forward", "reverse"]


def among(noise, n, others, pair=(0, 1), rtol=1e-3):
    counts = {others: n - 1} if n > 1 else {}
    return fs.exact_profile(fs.ShuffleExperiment(noise, n, others=counts, pair=pair), rtol=rtol)


def assert_between(bounds, value, rtol, slack=1e-11):
    lower, upper = bounds
    assert lower * (1.0 - slack) <= value <= upper * (1.0 + slack)
    assert upper <= lower * (1.0 + 1.01 * rtol)


class TestOneUser:
    @pytest.mark.parametrize("epsilon0", [0.1, 1.0, 5.0])
    @pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
    def test_laplace(self, epsilon0, share):
        epsilon = share * epsilon0
        exact = -math.expm1(0.5 * (epsilon - epsilon0))
        for direction in DIRECTIONS:
            bounds = among(fs.laplace(epsilon0), 1, 0).bounds(epsilon, direction=direction)
            assert_between(bounds, exact, 1e-3)

    @pytest.mark.parametrize("sigma", [0.3, 1.0, 4.0])
    @pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 3.0])
    def test_gaussian(self, sigma, epsilon):
        with mp.workdps(120):  # the two terms nearly cancel
            mu, loss = 1 / mpf(sigma), mpf(epsilon)
            near, far = mp.ncdf(mu / 2 - loss / mu), mp.ncdf(-mu / 2 - loss / mu)
            exact = float(near - mp.exp(loss) * far)
        for direction in DIRECTIONS:
            bounds = among(fs.gaussian(sigma), 1, 0).bounds(epsilon, direction=direction)
            assert_between(bounds, exact, 1e-3)

    def test_the_largest_loss(self):
        assert among(fs.laplace(2.0), 1, 0).epsilon(0.0) == 2.0
        assert among(fs.laplace(2.0, 5), 1, 0, pair=(1, 3)).epsilon(0.0) == 1.0
        assert among(fs.laplace(2.0), 1, 0).delta(2.0) == 0.0
        assert among(fs.gaussian(2.0), 1, 0).epsilon(0.0) == math.inf
        assert among(fs.gaussian(2.0), 1, 0).delta(math.inf) == 0.0


def two_users(density, others, epsilon, direction):
    """Integrate half of E (r(Y_1) + r(Y_2))_+ by the trapezoid rule, its kinks on the nodes."""
    y = np.arange(-900, 951) * 0.02
    weights = 0.02 * density(y - others)
    p, q = (1.0, 0.0) if direction == "forward" else (0.0, 1.0)
    r = (density(y - p) - math.exp(epsilon) * density(y - q)) / density(y - others)
    return 0.5 * float(weights @ np.maximum(np.add.outer(r, r), 0.0) @ weights)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_two_users_against_an_integral(direction, place, epsilon):
    cases = (
        (fs.laplace(1.0, 3), stats.laplace(0.0, 1.0)),
        (fs.gaussian(1.0, 3), stats.norm(0.0, 1.0)),
    )
    for noise, law in cases:
        value = two_users(law.pdf, place / 2, epsilon, direction)
        bounds = among(noise, 2, place, pair=(0, 2)).bounds(epsilon, direction=direction)
        assert_between(bounds, value, 1e-3, slack=3e-4)


@pytest.mark.parametrize("n", [10, 10_000])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_bins_are_a_lower_bound_that_comes_close(n, direction):
    """What the analyst sees of discretised noise is a function of the continuous one."""
    noise, bins = fs.laplace(2.0), fs.discretized_laplace(2.0, 2, bins_per_step=200)
    profile = among(noise, n, 0, rtol=1e-2)
    epsilon = profile.epsilon(1e-6, direction=direction)
    lower, upper = profile.bounds(epsilon, direction=direction)
    binned_lower, binned_upper = among(bins, n, 0).bounds(epsilon, direction=direction)
    assert binned_lower <= upper <= 1e-6
    assert lower <= binned_upper * 1.05


@pytest.mark.parametrize("noise", [fs.laplace(1.0), fs.gaussian(1.0)], ids=repr)
class TestWorstCase:
    def test_the_blanket_is_above_and_a_dataset_below(self, noise):
        worst = fs.worst_case_profile(noise, 10_000)
        lower, upper = worst.bounds(0.03)
        blanket = fs.blanket_profile(noise, 10_000)
        assert lower < upper <= blanket.delta(0.03) * (1.0 + 1e-12)
        exact = among(noise, 10_000, 0)
        assert exact.bounds(0.03)[0] <= upper
        assert worst.argmax(0.03).experiment.randomizer == noise

    def test_chernoff_is_above_the_blanket(self, noise):
        assert fs.blanket_profile(noise, 1000).delta(0.1) <= fs.chernoff_profile(noise, 1000).delta(
            0.1
        )

    def test_what_needs_a_list_of_outputs_says_so(self, noise):
        for call in (
            lambda: noise.merged((0, 1)),
            lambda: noise.shared_rows((0, 1)),
            lambda: fs.exact_profile(fs.ShuffleExperiment(noise, 10, k=3)),
        ):
            with pytest.raises(
                fs.UnsupportedSettingError, match="randomizer must have finitely many outputs, got"
            ):
                call()


def test_equal_laws_have_nothing_to_tell():
    assert among(fs.laplace(0.0), 100, 0).delta(0.0) == 0.0


def test_the_ends_of_the_interval_are_the_worst_pair_found():
    noise = fs.laplace(1.0, 3)
    assert set(noise.representative_pairs()) == {(0, 1), (0, 2), (1, 0)}
    assert fs.worst_case_profile(noise, 1000).argmax(0.1).experiment.pair == (0, 2)


@pytest.mark.parametrize("epsilon0", [0.1, 1.0, 5.0])
def test_samples_of_laplace_noise(epsilon0):
    noise, rng = fs.laplace(epsilon0, 3), np.random.default_rng(7)
    for x in range(3):
        values = noise.sample(np.full(20_000, x), rng)
        law = stats.laplace(x / 2, 1.0 / epsilon0)
        assert stats.kstest(values, law.cdf).pvalue > 1e-4


@pytest.mark.parametrize("sigma", [0.1, 1.0, 100.0])
def test_samples_of_gaussian_noise(sigma):
    noise, rng = fs.gaussian(sigma, 3), np.random.default_rng(7)
    for x in range(3):
        values = noise.sample(np.full(20_000, x), rng)
        assert stats.kstest(values, stats.norm(x / 2, sigma).cdf).pvalue > 1e-4


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fs.laplace(-1.0), "epsilon0 must be >= 0"),
        (lambda: fs.laplace(math.inf), "epsilon0 must be >= 0"),
        (lambda: fs.laplace(1.0, 1), "n_inputs must be >= 2"),
        (lambda: fs.gaussian(0.01), r"sigma must be in \[0.05, 1000\], got 0.01"),
        (lambda: fs.gaussian(math.nan), "sigma must be"),
        (lambda: fs.laplace(0.0).sample([0], np.random.default_rng(1)), "epsilon0 must be > 0"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
