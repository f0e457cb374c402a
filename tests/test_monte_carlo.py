"""Estimated profiles: against exact values, their intervals, and what is refused."""

import json
import math
import tracemalloc
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import beta

import fastshuffle as fs
from fastshuffle.exact.lattice import lattice_profile
from fastshuffle.monte_carlo.intervals import (
    bets_on_less,
    bets_on_more,
    lower_mean,
    probability_bounds,
    upper_mean,
)
from validation.reference.exact import histogram_pair, hockey_stick

pytestmark = pytest.mark.filterwarnings("ignore::fastshuffle.profile.DeltaWarning")

DATA = Path(__file__).parent / "data"
STORED = [
    entry
    for name in ("finite_n_general.json", "finite_n_krr.json")
    for entry in json.loads((DATA / name).read_text()).get(
        "entries" if name == "finite_n_general.json" else "general"
    )
]
THREE = fs.Randomizer([[0.5, 0.3, 0.2], [0.2, 0.35, 0.45], [0.3, 0.3, 0.4]])
THREE_LOSS = -THREE.log_ratio(1, 0, 0)
DIRECTIONS = ("forward", "reverse")
# five standard errors: one estimate in 1.7 million is further off, were errors normal
STANDARD_ERRORS = 5.0


def estimate(experiment, n_samples, *, seed=1, **options):
    rng = np.random.default_rng(seed)
    return fs.monte_carlo_profile(experiment, n_samples=n_samples, rng=rng, **options)


def assert_near(profile, epsilon, direction, low, high):
    """Compare with an exact delta between low and high; the interval has to hold as well."""
    value = profile.delta(epsilon, direction=direction)
    error = profile.standard_error(epsilon, direction=direction)
    assert low - STANDARD_ERRORS * error <= value <= high + STANDARD_ERRORS * error
    lower, upper = profile.bounds(epsilon, direction=direction)
    assert lower <= high
    assert low <= upper
    assert lower <= value <= upper


class TestAgainstExactValues:
    @pytest.mark.parametrize("entry", STORED, ids=range(len(STORED)))
    def test_the_general_table(self, entry):
        rows = [entry["W0"], entry["W1"]]
        others = {}
        for count, row in entry["background"]:
            if row not in rows:
                rows.append(row)
            others[rows.index(row)] = others.get(rows.index(row), 0) + count
        n = 1 + sum(others.values())
        experiment = fs.ShuffleExperiment(fs.Randomizer(rows), n, others=others)
        epsilons = [epsilon for epsilon, _ in entry["delta_forward"]]
        profile = estimate(experiment, 40_000, epsilons=epsilons)
        for direction in DIRECTIONS:
            for epsilon, text in entry[f"delta_{direction}"]:
                assert_near(profile, epsilon, direction, float(text), float(text))

    @pytest.mark.parametrize("k", [0, 1, 100, 5000, 9990, 9999])
    def test_lattice_sums_at_ten_thousand_users(self, k):
        experiment = fs.ShuffleExperiment(THREE, 10_000, k=k)
        exact = exact_lattice(k)
        profile = estimate(experiment, 40_000, target_delta=1e-9)
        for direction in DIRECTIONS:
            for epsilon in profile.epsilons[direction][::13].tolist():
                low, high = exact.bounds(epsilon, direction=direction)
                assert_near(profile, epsilon, direction, low, high)
        # the weights are bounded by some times delta for every composition
        lower, upper = profile.bounds(exact.epsilon(1e-9))
        assert upper < 1.6 * lower
        lower, upper = profile.epsilon_bounds([1e-6, 1e-9])
        assert (lower <= exact.epsilon([1e-6, 1e-9])).all()
        assert (exact.epsilon([1e-6, 1e-9]) <= upper).all()

    @pytest.mark.parametrize("input_held", [0, 1, 2])
    def test_brackets_at_a_million_users(self, input_held):
        experiment = fs.ShuffleExperiment(THREE, 10**6, others={input_held: 10**6 - 1})
        exact = fs.exact_profile(experiment)
        profile = estimate(experiment, 60_000, target_delta=1e-12)
        for direction in DIRECTIONS:
            for epsilon in profile.epsilons[direction][::13].tolist():
                low, high = exact.bounds(epsilon, direction=direction)
                assert_near(profile, epsilon, direction, low, high)

    def test_a_trillionth_at_a_million_users_within_five_percent(self):
        """Against the lattice sum over 4.5e7 histograms, which takes a minute."""
        experiment = fs.ShuffleExperiment(THREE, 10**6, k=500_000)
        profile = estimate(experiment, 400_000, target_delta=1e-12)
        assert_allclose(profile.epsilon(1e-12), 0.00405640788, rtol=1e-3, atol=0)
        for direction, exact in (("forward", 1.02942684e-12), ("reverse", 1.05461843e-12)):
            assert_near(profile, 0.00405, direction, exact, exact)
            assert_allclose(profile.delta(0.00405, direction=direction), exact, rtol=0.05, atol=0)
        for direction, exact in (("forward", 5.76664966e-7), ("reverse", 5.78718179e-7)):
            assert_near(profile, 0.002, direction, exact, exact)
            assert_allclose(profile.delta(0.002, direction=direction), exact, rtol=0.05, atol=0)
        lower, upper = profile.epsilon_bounds(1e-12)
        assert lower <= 0.00405640788 <= upper
        low, high = profile.bounds(0.00405)
        assert high / low < 1.15

    def test_a_delta_far_below_every_double_squared(self):
        experiment = fs.ShuffleExperiment(THREE, 10**5, others={0: 10**5 - 1})
        exact = fs.exact_profile(experiment)
        epsilon = exact.epsilon(1e-200)
        profile = estimate(experiment, 60_000, target_epsilon=epsilon)
        low, high = exact.bounds(epsilon)
        assert_near(profile, epsilon, "both", low, high)
        assert_allclose(profile.delta(epsilon), high, rtol=0.2, atol=0)

    def test_several_inputs_and_binary_output(self):
        binary = fs.Randomizer.from_probabilities([0.25, 0.5, 0.375, 0.75, 0.125, 0.625, 0.875])
        others = {0: 20, 1: 10, 2: 30, 3: 15, 4: 5, 5: 9, 6: 10}
        experiment = fs.ShuffleExperiment(binary, 100, others=others)
        exact = fs.exact_profile(experiment)
        profile = estimate(experiment, 40_000, epsilons=[0.0, 0.05, 0.1])
        for direction in DIRECTIONS:
            for epsilon in (0.0, 0.05, 0.1):
                low, high = exact.bounds(epsilon, direction=direction)
                assert_near(profile, epsilon, direction, low, high)

    @pytest.mark.parametrize(
        ("rows", "others"),
        [
            # as many outputs as inputs, from a common part
            ([[0.625 if x == y else 0.125 for y in range(4)] for x in range(4)], [2, 1, 2, 1]),
            # fewer outputs than inputs
            ([[x / 16, (10 - x) / 16, 0.375] for x in range(1, 7)], [1, 1, 1, 1, 1, 1]),
            # zeros: a message that only some may send
            (
                [[0.5, 0.5, 0.0], [0.25, 0.25, 0.5], [0.5, 0.25, 0.25], [0.0, 0.5, 0.5]],
                [2, 0, 2, 2],
            ),
        ],
    )
    def test_compositions_of_many_inputs(self, rows, others):
        counts = {x: count for x, count in enumerate(others) if count}
        law_q, law_p = histogram_pair([[Fraction(p) for p in row] for row in rows], counts, (0, 1))
        n = 1 + sum(others)
        experiment = fs.ShuffleExperiment(fs.Randomizer(rows), n, others=counts)
        profile = estimate(experiment, 40_000, epsilons=[0.0, 0.1, 0.25])
        for epsilon in (0.0, 0.1, 0.25):
            factor = Fraction(math.exp(epsilon))
            for direction, pair in (("forward", (law_p, law_q)), ("reverse", (law_q, law_p))):
                exact = float(hockey_stick(*pair, factor))
                assert_near(profile, epsilon, direction, exact, exact)

    def test_a_small_delta_with_ten_inputs(self):
        """The upper end is the common part of all rows, within a fifth of epsilon."""
        k_rr = fs.k_randomized_response(2.0, 10)
        n = 10**5
        others = {x: n // 10 - (x == 9) for x in range(10)}
        experiment = fs.ShuffleExperiment(k_rr, n, others=others)
        profile = estimate(experiment, 6_000, target_delta=1e-8)
        lower, upper = profile.epsilon_bounds(1e-8)
        assert lower <= fs.gaussian_profile(experiment).epsilon(1e-8) * 1.01
        assert upper <= fs.worst_case_profile(k_rr, n).epsilon(1e-8) * 1.002
        assert upper < 1.25 * lower

    def test_a_target_at_several_inputs(self):
        """No half-space is proved here: the lower bound is sharp, the upper one wide, both hold."""
        binary = fs.Randomizer.from_probabilities([0.25, 0.5, 0.375, 0.75])
        others = {0: 200, 1: 100, 2: 300, 3: 399}
        experiment = fs.ShuffleExperiment(binary, 1000, others=others)
        exact = fs.exact_profile(experiment)
        profile = estimate(experiment, 40_000, target_delta=1e-10)
        for direction in DIRECTIONS:
            for epsilon in profile.epsilons[direction][::7].tolist():
                low, high = exact.bounds(epsilon, direction=direction)
                lower, upper = profile.bounds(epsilon, direction=direction)
                assert lower <= low
                assert high <= upper
                if epsilon <= profile.reach:
                    assert_near(profile, epsilon, direction, low, high)
        epsilon = exact.epsilon(1e-10)
        lower, upper = profile.epsilon_bounds(1e-10)
        assert 0.98 * epsilon < lower <= epsilon <= upper < 2.0 * epsilon
        assert_allclose(profile.epsilon(1e-10), epsilon, rtol=0.01, atol=0)

    def test_a_target_at_three_inputs_with_three_outputs(self):
        others = {0: 3, 1: 2, 2: 2}
        experiment = fs.ShuffleExperiment(THREE, 8, others=others)
        rows = [[Fraction(p) for p in row] for row in THREE.matrix.tolist()]
        law_q, law_p = histogram_pair(rows, others, (0, 1))
        profile = estimate(experiment, 8_000, target_epsilon=0.7)
        for direction, laws in (("forward", (law_p, law_q)), ("reverse", (law_q, law_p))):
            for epsilon in (0.0, 0.2, 0.5, 0.7):
                exact = float(hockey_stick(*laws, Fraction(math.exp(epsilon))))
                assert_near(profile, epsilon, direction, exact, exact)

    def test_three_inputs_with_an_output_nobody_else_sends(self):
        rows = [[0.5, 0.25, 0.25, 0.0], [0.25, 0.5, 0.0, 0.25], [0.5, 0.5, 0.0, 0.0]]
        experiment = fs.ShuffleExperiment(fs.Randomizer(rows), 20, others={2: 19})
        exact = fs.exact_profile(experiment)
        profile = estimate(experiment, 40_000, epsilons=[0.0, 0.1, 0.3])
        for direction in DIRECTIONS:
            for epsilon in (0.0, 0.1, 0.3):
                low, high = exact.bounds(epsilon, direction=direction)
                assert_near(profile, epsilon, direction, low, high)
            # beyond all drawn losses delta is known
            assert profile.bounds(50.0, direction=direction)[0] == 0.25


@cache
def exact_lattice(k):
    experiment = fs.ShuffleExperiment(THREE, 10_000, k=k)
    if k in (0, 9999):
        return fs.exact_profile(experiment, rtol=1e-6)
    return lattice_profile(experiment, log_truncation=-45.0)


class TestDerivedNumbers:
    @pytest.mark.parametrize("k", [3, 5])
    def test_losses_that_are_infinite(self, k):
        w = fs.Randomizer([[0.9, 0.1, 0.0], [0.0, 0.1, 0.9]])
        experiment = fs.ShuffleExperiment(w, 10, k=k)
        exact, profile = fs.exact_profile(experiment), estimate(experiment, 100_000)
        for direction in DIRECTIONS:
            for epsilon in (0.5, 2.0, 5.0, 50.0, 299.0):
                lower, upper = profile.bounds(epsilon, direction=direction)
                truth = exact.delta(epsilon, direction=direction)
                assert lower <= truth <= upper < 1.1 * lower
        assert profile.epsilon_bounds(1e-3) == (300.0, math.inf)
        truth = exact.jensen_shannon()
        lower, upper = profile.jensen_shannon_bounds()
        assert lower <= truth <= upper < 1.1 * lower
        assert_allclose(profile.jensen_shannon(), truth, rtol=0.02, atol=0)

    @pytest.mark.parametrize("n", [40, 1000])
    def test_divergences_and_trade_off(self, n):
        experiment = fs.ShuffleExperiment(THREE, n, k=n // 3)
        exact = lattice_profile(experiment)
        profile = estimate(experiment, 60_000)
        for direction in (*DIRECTIONS, "both"):
            lower, upper = profile.kl_bounds(direction=direction)
            assert lower <= exact.kl(direction=direction) <= upper
            assert_allclose(
                profile.kl(direction=direction), exact.kl(direction=direction), rtol=0.05, atol=0
            )
            for alpha in (0.0, 0.01, 0.3, 0.9, 1.0):
                low, high = profile.trade_off_bounds(alpha, direction=direction)
                truth = exact.trade_off(alpha, direction=direction)
                assert low <= truth + 1e-12
                assert truth <= high + 1e-12
                assert low <= profile.trade_off(alpha, direction=direction) <= high
                assert high - low < 0.05
        lower, upper = profile.jensen_shannon_bounds()
        assert lower <= exact.jensen_shannon() <= upper
        assert_allclose(profile.jensen_shannon(), exact.jensen_shannon(), rtol=0.05, atol=0)

    def test_the_inverse_of_the_estimate_is_on_its_safe_side(self):
        profile = estimate(fs.ShuffleExperiment(THREE, 1000, k=300), 20_000)
        for delta in (1e-2, 1e-4, 3e-6):
            epsilon = profile.epsilon(delta)
            assert profile.delta(epsilon) <= delta
            assert epsilon == 0.0 or profile.delta(epsilon * (1.0 - 1e-9)) > delta * (1.0 - 1e-6)
            lower, upper = profile.epsilon_bounds(delta)
            assert lower <= epsilon <= upper
        assert profile.epsilon(0.0) == profile.epsilon_bounds(0.0)[1] == THREE_LOSS

    def test_bounds_between_grid_points_and_beyond(self):
        experiment = fs.ShuffleExperiment(THREE, 1000, k=300)
        exact = lattice_profile(experiment)
        profile = estimate(experiment, 20_000)
        epsilons = np.linspace(0.0, 1.0, 301)
        for direction in DIRECTIONS:
            lower, upper = profile.bounds(epsilons, direction=direction)
            truth = exact.delta(epsilons, direction=direction)
            assert (lower <= truth).all()
            assert (truth <= upper).all()
            assert (np.diff(lower) <= 0.0).all()
            assert (np.diff(upper) <= 0.0).all()
        with pytest.raises(ValueError, match="epsilon must be <= .* for an estimate, got 0.5"):
            profile.delta(0.5)
        with pytest.raises(ValueError, match="delta must be larger for an estimate of epsilon"):
            profile.epsilon(1e-30)
        assert profile.delta(THREE_LOSS) == 0.0
        assert math.isnan(profile.standard_error(0.5))

    def test_json(self):
        profile = estimate(fs.ShuffleExperiment(THREE, 100, k=30), 20_000)
        content = json.loads(profile.to_json(epsilon=[0.0, 0.1], delta=[1e-3]))
        assert content["validity"] == "ESTIMATE"
        assert content["setting"]["n_samples"] == 20_000
        row = content["curve"][1]
        assert row["lower_forward"] <= row["delta_forward"] <= row["upper_forward"]
        row = content["guarantees"][0]
        assert row["lower"] <= row["epsilon"] <= row["upper"]
        assert "exact likelihood ratio" in profile.source
        assert "20000 histograms" in profile.describe()
        assert "MonteCarloProfile" in repr(profile)
        assert profile.confidence == 0.99

    def test_effective_samples(self):
        profile = estimate(fs.ShuffleExperiment(THREE, 1000, k=300), 20_000)
        for direction in DIRECTIONS:
            assert 100 < profile.effective_samples(0.02, direction=direction) <= 10_000
        assert profile.effective_samples(0.02) <= profile.effective_samples(
            0.02, direction="forward"
        )


class TestNullCase:
    """Identical rows: no noise of the simulation may be taken for a loss."""

    @pytest.mark.parametrize("others", [{0: 99}, {0: 50, 1: 49}, {2: 99}])
    def test_interval_contains_zero(self, others):
        rows = [[0.5, 0.25, 0.25], [0.5, 0.25, 0.25], [0.25, 0.25, 0.5]]
        profile = estimate(fs.ShuffleExperiment(fs.Randomizer(rows), 100, others=others), 2000)
        assert profile.bounds(0.0) == (0.0, 0.0)
        assert profile.delta([0.0, 1.0]).tolist() == [0.0, 0.0]
        assert profile.epsilon(1e-9) == 0.0
        assert profile.epsilon_bounds(1e-9) == (0.0, 0.0)
        assert profile.kl_bounds() == (0.0, 0.0)
        assert profile.jensen_shannon() == 0.0
        assert profile.trade_off(0.25) == 0.75

    @pytest.mark.parametrize("epsilon0", [40.0, 60.0])
    @pytest.mark.parametrize("k", [0, 4])
    def test_messages_in_the_clear_are_seen(self, epsilon0, k):
        rr = fs.k_randomized_response(epsilon0, 3)
        profile = estimate(fs.ShuffleExperiment(rr, 10, k=k), 20_000, epsilons=[0.0])
        lower, upper = profile.bounds(0.0)
        assert lower > 0.995
        assert upper == 1.0

    def test_probabilities_too_far_apart(self):
        rr = fs.k_randomized_response(360.0, 3)
        with pytest.raises(fs.UnsupportedSettingError, match=r"must be at most 1e\+130 times"):
            fs.Simulation(fs.ShuffleExperiment(rr, 10, k=0))

    @pytest.mark.parametrize("loss", [math.inf, math.nan, 1.0])
    def test_a_loss_above_the_largest_is_no_sample(self, loss, monkeypatch):
        monkeypatch.setattr(
            "fastshuffle.monte_carlo.pair.PairLaws.losses",
            lambda _, histograms: np.full(len(histograms), loss),
        )
        with pytest.raises(ArithmeticError, match=f"came out as {loss}, where 0.8109.* is the la"):
            estimate(fs.ShuffleExperiment(THREE, 100, k=50), 1000, epsilons=[0.0])

    def test_rows_that_hardly_differ(self):
        rows = [[0.5, 0.25, 0.25], [0.5 - 1e-9, 0.25 + 1e-9, 0.25]]
        profile = estimate(fs.ShuffleExperiment(fs.Randomizer(rows), 10**6, k=10**5), 2000)
        assert 0.0 < profile.delta(0.0) < 1e-11


def mean_bounds(sample, bet, log_wealth):
    """Return both bounds from one sample, as numbers."""
    sums = np.array([sample.sum()]), np.array([(sample**2).sum()])
    wealth = np.array([log_wealth])
    ends = (f(len(sample), *sums, np.array([bet]), wealth)[0] for f in (lower_mean, upper_mean))
    return tuple(map(float, ends))


class TestTargetsFarOut:
    """Targets close to the largest loss, where a likely bound is far below delta."""

    @pytest.mark.parametrize(
        ("rows", "others", "pair", "target"),
        [
            (
                [[0.62, 0.38, 0.0], [0.41, 0.15, 0.44], [0.0, 0.63, 0.37], [0.06, 0.58, 0.36]],
                {0: 1, 3: 1},
                (2, 3),
                {"target_epsilon": 1.766},
            ),
            (
                [
                    [0.388, 0.196, 0.351, 0.065],
                    [0.24, 0.118, 0.398, 0.244],
                    [0.141, 0.26, 0.238, 0.361],
                    [0.344, 0.163, 0.058, 0.435],
                ],
                {0: 3, 1: 2, 2: 1, 3: 1},
                (3, 1),
                {"target_epsilon": 1.3815},
            ),
            (
                [
                    [0.05010726231808126, 0.9498927376819187],
                    [0.8073955754042422, 0.19260442459575777],
                    [0.5297848295235278, 0.4702151704764722],
                    [0.40067511231086134, 0.5993248876891386],
                ],
                {2: 3, 3: 4},
                (2, 1),
                {"target_epsilon": 0.871443482195249},
            ),
        ],
    )
    def test_no_overflow(self, rows, others, pair, target):
        experiment = fs.ShuffleExperiment(
            fs.Randomizer(rows), 1 + sum(others.values()), others=others, pair=pair
        )
        simulation = fs.Simulation(experiment, **target)
        simulation.run(20_000, np.random.default_rng(1), workers=1)
        simulation._target = None  # few samples may reach it
        fractions = [[Fraction(p) for p in row] for row in experiment.randomizer.matrix.tolist()]
        law_q, law_p = histogram_pair(fractions, others, pair)
        for direction, laws in zip(DIRECTIONS, ((law_p, law_q), (law_q, law_p)), strict=True):
            truth = float(hockey_stick(*laws, Fraction(math.exp(0.25))))
            lower, upper = simulation.profile().bounds(0.25, direction=direction)
            assert lower <= truth <= upper

    def test_histograms_of_neither_law(self):
        """All messages at an output that the differing user never sends: drawn, and no loss."""
        w = fs.Randomizer(
            [[0.0, 0.29, 0.4, 0.31], [0.0, 0.28, 0.19, 0.53], [0.37, 0.09, 0.0, 0.54]]
        )
        experiment = fs.ShuffleExperiment(w, 4, others={2: 3})
        exact = fs.exact_profile(experiment, rtol=1e-6)
        profile = estimate(experiment, 100_000, target_delta=1e-6)
        for direction in DIRECTIONS:
            assert_near(profile, 0.1, direction, *exact.bounds(0.1, direction=direction))


class TestIntervals:
    def test_what_is_refused_is_refused_by_the_wealth_itself(self):
        rng = np.random.default_rng(3)
        for n, power in ((50, 1.0), (1000, 4.0), (3000, 12.0)):
            sample = rng.random(n) ** power
            for bet, log_wealth in product((0.01, 0.1, 0.5, 0.95), (0.1, 3.0, 10.0)):
                low, high = mean_bounds(sample, bet, log_wealth)
                assert 0.0 <= low <= sample.mean() <= high <= 1.0
                if low > 0.0:
                    assert np.log1p(bet * (sample - low)).sum() >= log_wealth - 1e-12 * n
                if high < 1.0:
                    assert np.log1p(bet * (high - sample)).sum() >= log_wealth - 1e-12 * n

    @pytest.mark.parametrize("values", [(0.0, 0.4), (0.0, 1.0), (0.3, 1.0)])
    def test_samples_of_the_least_wealth(self, values):
        sample = np.repeat(values, (9000, 1000))
        for bet, log_wealth in product((0.1, 0.5, 0.9), (1.0, 5.0)):
            low, high = mean_bounds(sample, bet, log_wealth)
            if values[0] == 0.0:
                wealth = np.log1p(bet * (sample - low)).sum()
                assert_allclose(wealth, log_wealth, rtol=1e-9, atol=0)
            if values[1] == 1.0:
                wealth = np.log1p(bet * (high - sample)).sum()
                assert_allclose(wealth, log_wealth, rtol=1e-9, atol=0)

    @pytest.mark.parametrize("value", [0.0, 0.25, 1.0])
    def test_terms_that_are_all_equal(self, value):
        low, high = mean_bounds(np.full(10_000, value), 0.5, 5.0)
        assert max(0.0, value - 0.002) <= low <= value <= high <= min(1.0, value + 0.002)

    def test_width_is_near_that_of_a_known_variance(self):
        rng = np.random.default_rng(3)
        sample = rng.random(10**5) ** 8
        share, deviation = np.array([0.005 / math.e]), np.array([sample.std()])
        sums = np.array([sample.sum()]), np.array([(sample**2).sum()])
        more = bets_on_more(10**5, np.array([sample.mean()]), deviation, share)
        less = bets_on_less(10**5, deviation, share)
        wealth = np.array([math.log(200)])
        low, high = lower_mean(10**5, *sums, more, wealth), upper_mean(10**5, *sums, less, wealth)
        ideal = 2.0 * math.sqrt(2.0 * math.log(200) / 10**5) * sample.std()
        assert 0.99 * ideal < high[0] - low[0] < 1.02 * ideal

    def test_clopper_pearson(self):
        """Limits are quantiles of beta laws."""
        for successes, trials, alpha in (
            (0, 10, 0.05),
            (3, 10, 0.025),
            (10, 10, 0.01),
            (7, 10**6, 1e-6),
        ):
            low, high = probability_bounds(successes, trials, alpha)
            expected_low = beta.ppf(alpha, successes, trials - successes + 1)
            expected_high = beta.isf(alpha, successes + 1, trials - successes)
            assert_allclose(low, 0.0 if successes == 0 else expected_low, rtol=1e-10, atol=0)
            assert_allclose(high, 1.0 if successes == trials else expected_high, rtol=1e-10, atol=0)

    def test_between_two_epsilons_the_lower_bound_follows_the_tangent(self):
        experiment = fs.ShuffleExperiment(THREE, 1000, others={2: 999})
        exact = fs.exact_profile(experiment, rtol=1e-6)
        profile = estimate(experiment, 400_000, target_delta=1e-6)
        for direction in DIRECTIONS:
            grid = profile.epsilons[direction]
            grid = grid[grid < exact.epsilon(1e-7)]
            ends = np.array([profile.bounds(e, direction=direction) for e in grid])
            for e, following, (low, _), (next_low, _) in zip(
                grid, grid[1:], ends, ends[1:], strict=False
            ):
                middle = 0.5 * (e + following)
                lower, upper = profile.bounds(middle, direction=direction)
                assert lower <= exact.delta(middle, direction=direction) <= upper
                # half of the way between the ends, but for the curvature in between
                assert lower > 0.94 * math.sqrt(low * next_low)

    def test_a_target_is_favoured(self):
        experiment = fs.ShuffleExperiment(THREE, 1000, k=500)
        rng = np.random.default_rng(1)
        plain = fs.Simulation(experiment, target_delta=1e-6)
        plain.run(2**17, rng)
        favoured = plain.profile()
        epsilon = favoured.epsilon(1e-6, direction="forward")
        plain._target = None
        even = plain.profile()

        def width(profile, at):
            lower, upper = profile.bounds(at, direction="forward")
            return upper - lower

        assert width(favoured, epsilon) < 0.92 * width(even, epsilon)
        assert width(favoured, 0.0) < 1.06 * width(even, 0.0)

    def test_coverage_of_the_joint_interval(self):
        """Of 100 repeats at 90 percent, no fewer hold than chance allows; more in validation."""
        experiment = fs.ShuffleExperiment(THREE, 100, others={0: 99})
        exact = fs.exact_profile(experiment, rtol=1e-6)
        rng = np.random.default_rng(8)
        simulation = fs.Simulation(experiment, epsilons=[0.1])
        empty = simulation.to_json()
        held = 0
        for _ in range(100):
            simulation = fs.Simulation.from_json(experiment, empty)
            simulation.run(1000, rng, workers=1)
            profile = simulation.profile(confidence=0.9)
            held += all(
                profile.bounds(0.1, direction=direction)[0]
                <= exact.delta(0.1, direction=direction)
                <= profile.bounds(0.1, direction=direction)[1]
                for direction in DIRECTIONS
            )
        assert 0.9 * 100 - 3 * math.sqrt(100 * 0.09) <= held


class TestRefusals:
    EXPERIMENT = fs.ShuffleExperiment(THREE, 100, k=30)

    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({"target_delta": 2.0}, ValueError, r"target_delta must be in \[1e-300, 1\], got 2.0"),
            ({"target_epsilon": math.inf}, ValueError, "target_epsilon must be >= 0 and finite"),
            ({"target_epsilon": 0.1, "target_delta": 0.1}, TypeError, "at most one of target_"),
            ({"epsilons": []}, ValueError, "epsilons must be 1 to 4096 numbers, got 0"),
            ({"epsilons": [0.1, -1.0]}, ValueError, "epsilons must be >= 0 and finite, got -1.0"),
            ({"n_samples": 1}, ValueError, "n_samples must be >= 2, got 1"),
            ({"n_samples": 2.5}, TypeError, "n_samples must be an integer, got 2.5"),
            ({"rng": 7}, TypeError, "rng must be a numpy.random.Generator, got 7"),
            ({"confidence": 1.0}, ValueError, "confidence must be in"),
            ({"workers": 0}, ValueError, "workers must be >= 1, got 0"),
            (
                {"executor": 3},
                TypeError,
                "executor must be a concurrent.futures.Executor or a dask",
            ),
        ],
    )
    def test_arguments(self, options, error, message):
        arguments = {"n_samples": 100, "rng": np.random.default_rng(1), **options}
        with pytest.raises(error, match=message):
            fs.monte_carlo_profile(self.EXPERIMENT, **arguments)

    def test_an_experiment_is_needed(self):
        with pytest.raises(
            TypeError, match="experiment must be a ShuffleExperiment, got Randomizer"
        ):
            estimate(THREE, 100)
        with pytest.raises(ValueError, match="n must be >= 2 for a simulation, got 1"):
            estimate(fs.ShuffleExperiment(THREE, 1, k=0), 100)

    def test_too_few_samples_at_the_target(self):
        with pytest.raises(ArithmeticError, match="are worth .* of equal weight, and an interval"):
            estimate(self.EXPERIMENT, 200, target_delta=1e-9)

    def test_no_samples(self):
        with pytest.raises(ArithmeticError, match="no samples have been drawn"):
            fs.Simulation(self.EXPERIMENT).profile()

    def test_estimates_before_the_first_epsilon(self):
        profile = estimate(self.EXPERIMENT, 2000, epsilons=[0.1, 0.2])
        with pytest.raises(ValueError, match="epsilon must be >= 0.1, the first that is summed"):
            profile.delta(0.05)
        lower, upper = profile.bounds(0.05)
        assert (lower > 0.0, upper) == (True, 1.0)


def test_memory_is_bounded_for_large_alphabets():
    """Half a million counts at a time, whatever the number of outputs and samples."""
    rng = np.random.default_rng(1)
    rows = rng.dirichlet(np.ones(1000), 2)
    experiment = fs.ShuffleExperiment(fs.Randomizer(rows), 10_000, others={0: 9_999})
    simulation = fs.Simulation(experiment)
    tracemalloc.start()
    simulation.run(1200, rng, workers=1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5 * 8 * 2**19
    assert simulation.n_samples == 1200


def test_counts_stay_exact_beyond_32_bits():
    """Totals of 3e12 messages and their squares: no integer product is formed."""
    experiment = fs.ShuffleExperiment(
        THREE, 3 * 10**12, others={0: 10**12, 1: 10**12, 2: 10**12 - 1}
    )
    profile = estimate(experiment, 2000, epsilons=[0.0])
    assert 1e-8 < profile.delta(0.0) < 1e-6
