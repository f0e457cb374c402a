"""Composition holds brute force between its ends, at every scale and in every direction."""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from numpy.testing import assert_allclose

import fastshuffle as fs
from fastshuffle.composition._pair import Nodes, atoms_above, atoms_below
from tests.brackets import assert_between, assert_bracket, exp_fraction
from tests.tolerances import FEW_ROUNDINGS
from validation.reference.composition import by_ratio, composed, hockey_stick
from validation.reference.exact import binary_pair, histogram_pair

# Some binary laws whose entries are exact doubles, with and without zeros.
LAWS = [(Fraction(1, 4), Fraction(3, 4)), (Fraction(1, 8), Fraction(1, 2))]
ONE_SIDED = (Fraction(0), Fraction(1, 4))


def randomizer(laws):
    return fs.Randomizer([[float(1 - p), float(p)] for p in laws])


def binary_case(laws, n, k):
    """Return the exact profile, and the pair (P, Q) of the number of ones, by ratio."""
    profile = fs.exact_profile(fs.ShuffleExperiment(randomizer(laws), n, k=k))
    law_q, law_p = binary_pair([(n - 1 - k, laws[0]), (k, laws[1])], *laws)
    return profile, by_ratio(law_p, law_q), by_ratio(law_q, law_p)


@pytest.mark.parametrize("laws", LAWS)
@pytest.mark.parametrize(("n", "k"), [(1, 0), (2, 1), (6, 0), (6, 4)])
@pytest.mark.parametrize("rounds", [1, 2, 6])
def test_brute_force_lies_between_the_ends(laws, n, k, rounds):
    profile, forward, reverse = binary_case(laws, n, k)
    together = fs.composed_profile(profile, rounds, rtol=1e-3)
    truths = {"forward": composed([forward] * rounds), "reverse": composed([reverse] * rounds)}
    for epsilon in (0.0, 0.3, 1.0, 2.5, 7.0):
        for direction, pair in truths.items():
            truth = hockey_stick(pair, exp_fraction(epsilon))
            # near the largest loss, of few users, the grid meets the losses by chance
            assert_bracket(together, epsilon, truth, 1e-3 if epsilon < 7.0 else 2e-2, direction)


def test_the_default_covers_rounds_in_which_either_dataset_is_the_first():
    profile, forward, reverse = binary_case(LAWS[1], 5, 1)
    together = fs.composed_profile(profile, 4)
    for epsilon in (0.0, 0.2, 0.8, 1.7):
        truth = max(
            hockey_stick(composed(order), exp_fraction(epsilon))
            for order in itertools.product([forward, reverse], repeat=4)
        )
        lower, upper = together.bounds(epsilon)
        assert upper == together.delta(epsilon)
        assert_between(lower, upper, truth)


def test_rounds_that_depend_on_earlier_outcomes_are_covered():
    """The worst second round for each first outcome, among the orders of one pair."""
    profile, forward, reverse = binary_case(LAWS[1], 3, 0)
    together = fs.composed_profile(profile, 2)
    for epsilon in (0.0, 0.4, 1.2):
        scale = exp_fraction(epsilon)
        truth = Fraction(0)
        for p, q in forward.values():
            second = (forward, reverse)
            truth += max(
                sum(
                    (max(p * a - scale * q * b, Fraction(0)) for a, b in pair.values()), Fraction(0)
                )
                for pair in second
            )
        assert_between(0.0, together.delta(epsilon), truth)


@pytest.mark.parametrize("rounds", [2, 3, 8])
def test_infinite_losses_are_carried_as_mass(rounds):
    profile, forward, reverse = binary_case(ONE_SIDED, 3, 0)
    together = fs.composed_profile(profile, rounds)
    for pair, direction in ((forward, "forward"), (reverse, "reverse")):
        truth = composed([pair] * rounds)
        for epsilon in (0.0, 0.5, 3.0):
            value = hockey_stick(truth, exp_fraction(epsilon))
            assert_bracket(together, epsilon, value, 1e-2, direction)
        infinite = truth.get(None, (Fraction(0), Fraction(0)))[0]
        assert_bracket(together, math.inf, infinite, 1e-9, direction)
    with pytest.warns(fs.DeltaWarning):
        assert together.epsilon(0.99 * together.delta(math.inf)) == math.inf


def test_a_randomizer_that_hides_nothing():
    clear = fs.exact_profile(fs.ShuffleExperiment(fs.Randomizer([[1.0, 0.0], [0.0, 1.0]]), 4, k=1))
    together = fs.composed_profile(clear, 3)
    assert together.bounds(0.0) == (pytest.approx(1.0, rel=1e-12, abs=0.0), 1.0)
    assert together.delta(math.inf) == 1.0


@pytest.mark.parametrize("epsilon0", [695.0, 709.0, 1000.0])
def test_losses_whose_exponential_nears_the_end_of_a_double(epsilon0):
    """With one other user, who holds the same, a round is seen through for nearly certain."""
    experiment = fs.ShuffleExperiment(fs.binary_randomized_response(epsilon0), 2, k=0)
    profile = fs.composed_profile(fs.exact_profile(experiment), 2)
    lower, upper = profile.bounds(1.0)
    assert 1.0 - 1e-9 <= lower <= upper == 1.0
    assert profile.delta(2.001 * epsilon0) == 0.0


def test_a_randomizer_that_says_nothing():
    same = fs.exact_profile(fs.ShuffleExperiment(fs.Randomizer([[0.5, 0.5], [0.5, 0.5]]), 4, k=1))
    together = fs.composed_profile(same, 1000)
    assert together.bounds(0.0) == (0.0, 0.0)
    assert together.epsilon(0.0) == 0.0


def test_different_rounds():
    first, forward, _ = binary_case(LAWS[0], 4, 2)
    second, other, _ = binary_case(LAWS[1], 4, 0)
    together = fs.composed_profile([first, second, second], 2)
    assert together.rounds == 6
    truth = composed([forward, other, other] * 2)
    for epsilon in (0.0, 0.6, 2.0):
        value = hockey_stick(truth, exp_fraction(epsilon))
        assert_bracket(together, epsilon, value, 1e-2, "forward")


def test_three_outputs_bracketed_by_themselves():
    rows = [[Fraction(2, 4), Fraction(1, 4), Fraction(1, 4)] for _ in range(3)]
    rows = [row[-x:] + row[:-x] for x, row in enumerate(rows)]
    experiment = fs.ShuffleExperiment(
        fs.Randomizer([[float(p) for p in row] for row in rows]), 4, others={2: 3}
    )
    law_q, law_p = histogram_pair(rows, {2: 3}, (0, 1))
    one = fs.exact_profile(experiment, rtol=1e-6)
    together = fs.composed_profile(one, 4)
    truth = composed([by_ratio(law_p, law_q)] * 4)
    for epsilon in (0.0, 0.5, 1.5):
        value = hockey_stick(truth, exp_fraction(epsilon))
        assert_bracket(together, epsilon, value, 1.2e-2, "forward")


def repeated_response(p0, p1, rounds, epsilon):
    """One user's bit, sent again and again: the divergence of two binomials, at 60 digits."""
    with mp.workdps(60):
        scale = mp.exp(mpf(epsilon))
        total = mpf(0)
        for ones in range(rounds + 1):
            choices = mp.binomial(rounds, ones)
            p, q = (choices * mpf(x) ** ones * (1 - mpf(x)) ** (rounds - ones) for x in (p1, p0))
            total += max(p - scale * q, 0)
        return total


@pytest.mark.parametrize("rounds", [40, 1000])
@pytest.mark.parametrize(("p0", "p1"), [(0.5, 0.5625), (0.46875, 0.46881103515625)])
def test_tiny_deltas_are_as_right_as_large_ones(rounds, p0, p1):
    one = fs.exact_profile(fs.ShuffleExperiment(randomizer((p0, p1)), 1, k=0))
    together = fs.composed_profile(one, rounds, rtol=1e-3)
    loss = math.log(p1 / p0)
    for share in (0.0, 0.1, 0.4, 0.8, 0.95):
        epsilon = share * loss * rounds
        truth = repeated_response(p0, p1, rounds, epsilon)
        assert_bracket(together, epsilon, truth, 1e-3, "forward")
    assert together.delta(rounds * loss * (1.0 + 1e-12), direction="forward") == 0.0


@pytest.mark.parametrize(
    ("p0", "p1", "rounds"), [(0.3, 0.31, 300), (0.05, 0.02, 5_000), (0.6, 0.6004, 10**6)]
)
def test_rounds_of_one_user_are_messages_of_one_user(p0, p1, rounds):
    """The exact profile of so many messages, which another way of computing has at any number."""
    rr = randomizer((p0, p1))
    messages = fs.exact_profile(fs.ShuffleExperiment(rr, 1, k=0, messages=rounds))
    together = fs.composed_profile(fs.exact_profile(fs.ShuffleExperiment(rr, 1, k=0)), rounds)
    for direction in ("forward", "reverse"):
        for target in (0.5, 1e-3, 1e-12, 1e-100):
            epsilon = messages.epsilon(target, direction=direction)
            truth = messages.delta(epsilon, direction=direction)
            assert_bracket(together, epsilon, truth, 2e-2, direction)


@pytest.mark.parametrize("n", [10**8, 10**12])
def test_the_grid_follows_the_losses(n):
    """In the limit of many users a thousand rounds are a Gaussian shift: nothing is lost."""
    experiment = fs.ShuffleExperiment(fs.binary_randomized_response(1.0), n, k=0)
    together = fs.composed_profile(fs.exact_profile(experiment), 1000)
    limit = fs.composed_gaussian_profile(fs.gaussian_profile(experiment), 1000)
    epsilons = limit.mu * np.array([0.0, 0.5, 2.0, 5.0])
    assert_allclose(together.delta(epsilons), limit.delta(epsilons), rtol=4e-3, atol=0)
    lower, _ = together.bounds(epsilons)
    assert_allclose(lower, limit.delta(epsilons), rtol=1e-2, atol=0)


def test_inverse_on_the_safe_side():
    one = fs.worst_case_profile(fs.binary_randomized_response(1.0), 1000)
    together = fs.composed_profile(one, 20)
    for delta in (1e-4, 1e-8, 1e-30):
        epsilon = together.epsilon(delta)
        assert together.delta(epsilon) <= delta
        assert together.delta(epsilon) >= delta * (1.0 - 1e-2)
    assert together.epsilon(1e-8) < 20 * one.epsilon(1e-8 / 20)


def test_one_round_is_the_profile():
    one = fs.clone_profile(1.0, 100)
    together = fs.composed_profile(one)
    assert together.epsilon(1e-6) == pytest.approx(one.epsilon(1e-6), rel=1e-4, abs=0.0)
    assert together.delta(0.2) == one.delta(0.2)


def test_a_universal_profile_has_no_lower_end():
    together = fs.composed_profile(fs.worst_case_profile(fs.binary_randomized_response(1.0), 50), 3)
    assert together.bounds(0.1)[0] == 0.0
    assert together.delta(0.1, direction="forward") == together.delta(0.1, direction="reverse")


def test_against_another_library():
    """dp-accounting 0.6.0: its privacy loss distribution of randomized response, composed.

    From ``from_randomized_response(2 / (1 + e), 2, value_discretization_interval=1e-5)`` and
    ``self_compose(30)``, whose numbers are bounds from above, too.
    """
    theirs = {
        0.0: 0.9922500788464327,
        2.0: 0.9800576319660799,
        10.0: 0.7057116645928655,
        25.0: 0.004036840310122474,
    }
    one = fs.exact_profile(fs.ShuffleExperiment(fs.binary_randomized_response(1.0), 1, k=0))
    together = fs.composed_profile(one, 30)
    for epsilon, delta in theirs.items():
        assert_allclose(together.delta(epsilon), delta, rtol=3e-5, atol=0)
        assert together.delta(epsilon) <= delta


def test_more_rounds_reveal_more():
    one = fs.clone_profile(2.0, 1000)
    deltas = [fs.composed_profile(one, rounds).delta(0.5) for rounds in (1, 2, 4, 16, 64)]
    assert all(np.diff(deltas) > 0.0)


def test_what_is_no_guarantee_is_refused():
    experiment = fs.ShuffleExperiment(fs.binary_randomized_response(1.0), 100, k=0)
    with pytest.raises(fs.UnsupportedSettingError, match="got APPROXIMATION"):
        fs.composed_profile(fs.gaussian_profile(experiment), 3)
    estimate = fs.monte_carlo_profile(experiment, n_samples=1000, rng=np.random.default_rng(1))
    with pytest.raises(fs.UnsupportedSettingError, match=r"profile\[1\] must be EXACT .* ESTIMATE"):
        fs.composed_profile([fs.exact_profile(experiment), estimate], 3)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((3.0, 2), TypeError, "profile must be a PrivacyProfile or a sequence of them, got float"),
        (([], 2), ValueError, "one or more profiles"),
        (([None], 2), TypeError, r"profile\[0\] must be a PrivacyProfile, got NoneType"),
    ],
)
def test_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        fs.composed_profile(*arguments)


@pytest.mark.parametrize("rounds", [0, -1, 2.5, math.nan, True])
def test_rounds(rounds):
    with pytest.raises((TypeError, ValueError), match="rounds must be"):
        fs.composed_profile(fs.clone_profile(1.0, 10), rounds)


def test_rounds_with_different_users():
    with pytest.raises(ValueError, match="the same n"):
        fs.composed_profile([fs.clone_profile(1.0, 10), fs.clone_profile(1.0, 11)])


def test_it_says_what_it_is():
    together = fs.composed_profile(fs.clone_profile(1.0, 1000), 7)
    content = json.loads(together.to_json(epsilon=[0.1], delta=[1e-6]))
    assert content["validity"] == "UPPER_BOUND"
    assert content["relation"] == "replace-one, n known"
    assert "7 rounds" in content["method"]
    assert content["setting"]["rounds"][0]["count"] == 7
    assert "2106.08567" in content["source"]
    assert "ComposedProfile" in repr(together)


def test_trade_off_is_below_that_of_fewer_rounds():
    one = fs.clone_profile(1.0, 1000)
    alphas = [0.0, 0.05, 0.5, 1.0]
    few, many = (fs.composed_profile(one, rounds).trade_off(alphas) for rounds in (2, 8))
    assert (many <= few).all()
    assert few[0] == 1.0
    assert few[-1] == 0.0


# ---- The pair of a curve known at some points ------------------------------------------------


def curve_of(p, q, infinite, epsilons):
    gain = np.maximum(p[None, :] - np.exp(epsilons)[:, None] * q[None, :], 0.0)
    return gain.sum(axis=1) + infinite


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.0, 0.3))
def test_the_pairs_are_above_and_below_random_pairs(seed, noise):
    """Also where the values are only known between two numbers, which need not be convex."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 30))
    p = rng.dirichlet(np.ones(size))
    q = rng.dirichlet(np.ones(size))
    nodes = []
    grid = 0.25 * np.arange(0, 40)
    for first, second in ((p, q), (q, p)):
        truth = curve_of(first, second, 0.0, grid)
        lower = truth * (1.0 - noise * rng.random(grid.size))
        upper = np.minimum(truth * (1.0 + noise * rng.random(grid.size)), 1.0)
        nodes.append(Nodes(grid, lower, upper, 0.0))
    epsilons = np.linspace(-6.0, 6.0, 97)
    truth = curve_of(p, q, 0.0, epsilons)
    above, below = atoms_above(*nodes), atoms_below(*nodes)
    for atoms in (above, below):
        assert (atoms.p >= 0.0).all()
        assert (atoms.q >= 0.0).all()
        assert_allclose(atoms.p, atoms.q * np.exp(atoms.losses), rtol=1e-12, atol=0)
        assert atoms.p.sum() + atoms.infinite == pytest.approx(1.0, rel=1e-9, abs=0.0)
    slack = FEW_ROUNDINGS * 10.0
    assert (
        curve_of(above.p, above.q, above.infinite, epsilons) >= truth * (1 - slack) - slack
    ).all()
    assert (
        curve_of(below.p, below.q, below.infinite, epsilons) <= truth * (1 + slack) + slack
    ).all()


# ---- Sampling --------------------------------------------------------------------------------


def sampled_law(rows, inputs, size):
    """The law of the histogram of a random subset of the users, by brute force."""
    law = {}
    subsets = list(itertools.combinations(range(len(inputs)), size))
    for subset in subsets:
        one = {(0,) * len(rows[0]): Fraction(1)}
        for user in subset:
            longer = {}
            for histogram, mass in one.items():
                for y, share in enumerate(rows[inputs[user]]):
                    key = (*histogram[:y], histogram[y] + 1, *histogram[y + 1 :])
                    longer[key] = longer.get(key, Fraction(0)) + mass * share
            one = longer
        for histogram, mass in one.items():
            law[histogram] = law.get(histogram, Fraction(0)) + mass / len(subsets)
    return law


@pytest.mark.parametrize("laws", LAWS)
@pytest.mark.parametrize(("size", "n"), [(1, 4), (2, 5), (3, 3), (4, 6)])
def test_sampling_is_above_brute_force_over_all_datasets(laws, size, n):
    rows = [[1 - p, p] for p in laws]
    bound = fs.subsampled_profile(fs.worst_case_profile(randomizer(laws), size), n)
    assert bound.rate == size / n
    for epsilon in (0.0, 0.1, 0.5, 1.0):
        scale = exp_fraction(epsilon)
        truth = Fraction(0)
        for ones in range(n):
            others = [1] * ones + [0] * (n - 1 - ones)
            a, b = (sampled_law(rows, [own, *others], size) for own in (0, 1))
            truth = max(truth, *(hockey_stick(by_ratio(*x), scale) for x in ((a, b), (b, a))))
        assert_between(0.0, bound.delta(epsilon), truth)


def test_sampling_composes():
    """Two rounds with a fresh sample each, brute force over all datasets."""
    rows = [[1 - p, p] for p in LAWS[1]]
    one = fs.subsampled_profile(fs.worst_case_profile(randomizer(LAWS[1]), 2), 4)
    together = fs.composed_profile(one, 3)
    for epsilon in (0.0, 0.2, 0.7):
        for ones in range(4):
            others = [1] * ones + [0] * (3 - ones)
            a, b = (sampled_law(rows, [own, *others], 2) for own in (0, 1))
            for pair in ((a, b), (b, a)):
                truth = hockey_stick(composed([by_ratio(*pair)] * 3), exp_fraction(epsilon))
                assert_between(0.0, together.delta(epsilon), truth)


def test_a_sample_of_all_is_no_sample():
    one = fs.clone_profile(1.0, 200)
    bound = fs.subsampled_profile(one, 200)
    for epsilon in (0.0, 0.05, 0.2):
        assert_allclose(bound.delta(epsilon), one.delta(epsilon), rtol=1e-9, atol=0)
    assert_allclose(bound.epsilon(1e-7), one.epsilon(1e-7), rtol=1e-9, atol=0)


def test_sampling_inverse_and_large_epsilon():
    one = fs.clone_profile(8.0, 20)
    bound = fs.subsampled_profile(one, 20_000)
    for delta in (1e-5, 1e-9, 1e-60):
        epsilon = bound.epsilon(delta)
        assert bound.delta(epsilon) <= delta
        assert bound.delta(epsilon * (1.0 - 1e-9)) >= delta
    assert bound.epsilon(0.0) == pytest.approx(math.log1p(1e-3 * math.expm1(8.0)), rel=1e-12, abs=0)
    assert bound.delta(bound.epsilon(0.0)) == 0.0
    assert bound.delta(math.inf) == 0.0
    assert bound.delta(0.0) == pytest.approx(1e-3 * one.delta(0.0), rel=1e-12, abs=0)


def test_sampling_needs_all_datasets():
    exact = fs.exact_profile(fs.ShuffleExperiment(fs.binary_randomized_response(1.0), 10, k=0))
    with pytest.raises(fs.UnsupportedSettingError, match="all neighbouring datasets"):
        fs.subsampled_profile(exact, 100)
    personal = fs.personalized_clone_profile([1.0] * 5 + [2.0] * 5)
    for profile in (personal, personal.user(0)):
        with pytest.raises(fs.UnsupportedSettingError, match="users with one randomizer"):
            fs.subsampled_profile(profile, 100)
    with pytest.raises(ValueError, match="n must be >= 10, got 9"):
        fs.subsampled_profile(fs.clone_profile(1.0, 10), 9)


# ---- The limit -------------------------------------------------------------------------------


def test_squares_of_mu_add_up():
    experiments = [
        fs.ShuffleExperiment(fs.binary_randomized_response(x), 1000, k=10) for x in (1.0, 2.0)
    ]
    limits = [fs.gaussian_profile(e) for e in experiments]
    together = fs.composed_gaussian_profile(limits, 8)
    assert_allclose(together.mu, math.sqrt(8 * sum(x.mu**2 for x in limits)), rtol=1e-15, atol=0)
    assert together.rounds == 16
    assert together.validity is fs.Validity.APPROXIMATION
    twice = fs.composed_gaussian_profile(together, 2)
    assert_allclose(twice.mu, math.sqrt(2) * together.mu, rtol=1e-15, atol=0)
    personal = fs.composed_gaussian_profile(fs.personalized_gdp_profile([1.0] * 50), 3)
    assert personal.n == 50
    assert_allclose(personal.mu, math.sqrt(3) * fs.personalized_gdp_mu([1.0] * 50), rtol=1e-15)
    with pytest.raises(TypeError, match="a Gaussian limit or a sequence"):
        fs.composed_gaussian_profile(fs.exact_profile(experiments[0]), 2)


def test_a_bound_with_a_long_tail_is_no_worse_than_adding_up():
    """Deltas that stay at 7e-7 up to epsilon = 1: a rare loss far beyond all others."""
    experiment = fs.ShuffleExperiment(fs.binary_randomized_response(1.0), 10**6, k=0)
    one = fs.berry_esseen_profile(experiment)
    together = fs.composed_profile(one, 5)
    epsilon = 0.0028
    assert 0.0 < together.delta(5 * epsilon) <= 5 * one.delta(epsilon) * 1.01
    exact = fs.composed_profile(fs.exact_profile(experiment), 5)
    lower, upper = together.bounds(0.005)
    assert lower <= exact.delta(0.005) <= upper
