"""The certified worst case against the enumeration of all datasets."""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf
from numpy.testing import assert_allclose

from fastshuffle import (
    DeltaWarning,
    Randomizer,
    ShuffleExperiment,
    Validity,
    WorstDataset,
    binary_randomized_response,
    exact_profile,
    worst_case_profile,
)
from tests.laws import profile, randomizer
from tests.tolerances import FEW_ROUNDINGS, LOG_PER_UNIT, ONE_ROUNDING, STATED
from validation.reference import exact
from validation.reference import mp as reference
from validation.reference.mp import Complement

pytestmark = pytest.mark.filterwarnings("ignore::fastshuffle.DeltaWarning")

RTOL = 1e-6
CHANNELS = [
    (0.2, 0.5),
    (0.7, 0.1),
    (0.0, 0.3),
    (0.4, 1.0),
    (1e-9, 0.6),
    (Complement(1e-6), 0.3),
    (0.3, 0.30001),
]


def exp_fraction(epsilon):
    """Return e**epsilon as a fraction, to 90 digits."""
    with mp.workdps(100):
        return Fraction(int(mp.exp(mpf(epsilon)) * 10**90), 10**90)


def all_profiles(laws, n):
    """Return the exact profile of every dataset of two inputs."""
    return [profile(laws, (n - 1 - k, k)) for k in range(n)]


def assert_brackets(worst, epsilon, log_truth):
    """The bracket holds the truth and is no wider than rtol and rounding."""
    lower, upper = worst.bounds(epsilon)
    if log_truth == -math.inf:
        assert lower == upper == worst.delta(epsilon) == 0.0
        return
    truth = math.exp(log_truth)
    # exp and log of the enumeration are each off by a rounding
    slack = FEW_ROUNDINGS * (1.0 + abs(log_truth))
    assert lower <= truth * (1.0 + slack)
    assert upper >= min(truth * (1.0 - slack), 1.0)
    assert upper == worst.delta(epsilon)
    width = RTOL + 4.0 * (STATED + LOG_PER_UNIT * abs(log_truth))
    assert upper <= lower * (1.0 + width) + 5e-324
    assert upper <= truth * (1.0 + width) + 5e-324


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize(
    "laws", [(0.2, 0.5), (0.0, 0.3), (0.2, 0.9, 0.35), (0.0, 1.0, 0.5), (0.6, 0.1, 0.0)], ids=str
)
def test_against_every_dataset_in_fractions(laws, n):
    """All compositions over all inputs, all ordered pairs, nothing shared with the package."""
    worst = worst_case_profile(randomizer(*laws), n)
    rows = [(1 - Fraction(p), Fraction(p)) for p in laws]
    for epsilon in (0.0, 0.05, 0.4, 1.3):
        truth, _ = exact.worst_composition(rows, n, exp_fraction(epsilon))
        assert_brackets(worst, epsilon, math.log(truth) if truth else -math.inf)


@pytest.mark.parametrize("n", [1, 2, 3, 31, 34, 120])
@pytest.mark.parametrize("laws", CHANNELS, ids=str)
def test_against_every_composition(laws, n):
    worst = worst_case_profile(randomizer(*laws), n)
    curves = all_profiles(laws, n)
    loss = max(curve.epsilon(0.0) for curve in curves)
    reach = min(loss, 30.0)
    epsilons = np.array([0.0, 1e-6, 0.02, 0.2, 0.5, 0.99, 1.0, 1.5]) * reach
    truths = np.max([curve.log_delta(epsilons) for curve in curves], axis=0)
    for epsilon, truth in zip(epsilons.tolist(), truths.tolist(), strict=True):
        assert_brackets(worst, epsilon, truth)
        dataset = worst.argmax(epsilon)
        assert isinstance(dataset, WorstDataset)
        assert dataset.experiment.n == n
        value = exact_profile(dataset.experiment).log_delta(epsilon, direction=dataset.direction)
        if truth > -math.inf:
            assert truth - RTOL <= value <= truth
            lower, _ = worst.bounds(epsilon)
            assert_allclose(lower, math.exp(value), rtol=1e-11, atol=5e-324)
    assert_brackets(worst, math.inf, max(curve.log_delta(math.inf) for curve in curves))


@pytest.mark.parametrize("n", [1, 2, 3, 33, 120])
@pytest.mark.parametrize("laws", CHANNELS, ids=str)
def test_case_10_epsilon_is_safe_and_tight(laws, n):
    """delta(epsilon(d)) <= d, no composition above d, and no more than rtol wasted."""
    worst = worst_case_profile(randomizer(*laws), n)
    curves = all_profiles(laws, n)
    total = worst.delta(0.0)
    for delta in (0.9 * total, 0.01 * total, 1e-4, 1e-9, 1e-40, 1e-300):
        epsilon = worst.epsilon(delta)
        least = max(curve.epsilon(delta) for curve in curves)
        assert epsilon >= least
        if epsilon == math.inf:
            assert least == math.inf or max(c.delta(math.inf) for c in curves) > delta * (1 - RTOL)
            continue
        assert worst.delta(epsilon) <= delta
        slack = 2.0 * RTOL + 2e-14 * abs(math.log(delta))
        most = max(curve.epsilon(delta * (1.0 - slack)) for curve in curves)
        assert epsilon <= most * (1.0 + ONE_ROUNDING)


@pytest.mark.parametrize("laws", CHANNELS, ids=str)
def test_case_07_08_ends_of_the_curve(laws):
    worst = worst_case_profile(randomizer(*laws), 40)
    total = worst.total_variation()
    assert worst.epsilon(0.0) == randomizer(*laws).epsilon0
    for delta in (1.0, min(1.0, total), min(1.0, 2.0 * total)):
        assert worst.epsilon(delta) == 0.0
    largest = worst.epsilon(0.0)
    if largest < math.inf:
        assert worst.delta([largest, 2.0 * largest, math.inf]).tolist() == [0.0, 0.0, 0.0]


def test_three_inputs_reduce_to_the_extreme_rows():
    """An input between two others never makes it worse."""
    laws = (0.35, 0.6, 0.2, 0.5)
    worst = worst_case_profile(randomizer(*laws), 9)
    two = worst_case_profile(randomizer(0.2, 0.6), 9)
    for epsilon in (0.0, 0.1, 0.7):
        assert worst.delta(epsilon) == two.delta(epsilon)
    dataset = worst.argmax(0.1)
    assert set(dataset.experiment.others) <= {1, 2}
    assert set(dataset.experiment.pair) == {1, 2}
    largest = max(
        profile(laws, (a, b, c, 8 - a - b - c), pair).delta(0.1)
        for a in range(9)
        for b in range(9 - a)
        for c in range(9 - a - b)
        for pair in ((0, 1), (1, 2), (2, 3), (0, 3))
    )
    lower, upper = worst.bounds(0.1)
    assert lower <= largest * (1.0 + STATED)
    assert largest <= upper


def test_the_worst_composition_is_not_an_end():
    """RR, epsilon0 = 1, n = 200: k = 107 at epsilon 0, 197 at .037, 198 at .147 (forward)."""
    rr = binary_randomized_response(1.0)
    worst = worst_case_profile(rr, 200)
    for epsilon, k in ((0.0, 107), (0.037, 197), (0.147, 198)):
        dataset = worst.argmax(epsilon)
        value = exact_profile(dataset.experiment).delta(epsilon, direction=dataset.direction)
        named = exact_profile(ShuffleExperiment(rr, 200, k=k)).delta(epsilon)
        assert named * (1.0 - RTOL) <= value <= worst.delta(epsilon)
        ends = exact_profile(ShuffleExperiment(rr, 200, k=0)).delta(epsilon)
        assert value > ends


@pytest.mark.parametrize("laws", [(0.2, 0.5), (0.9, 0.02)], ids=str)
def test_one_more_user_never_hurts(laws):
    sizes = [*range(1, 40), 77, 100, 1000, 10**5, 10**9, 10**15]
    for epsilon in (0.01, 0.3):
        values = [worst_case_profile(randomizer(*laws), n).delta(epsilon) for n in sizes]
        for smaller, larger in itertools.pairwise(values):
            assert larger <= smaller * (1.0 + RTOL + STATED)


@pytest.mark.parametrize("n", [10**4, 10**8, 10**12, 10**15, 2**53])
def test_many_users(n):
    """The bracket against other compositions, its own against mpmath."""
    laws = (0.2, 0.6)
    worst = worst_case_profile(randomizer(*laws), n)
    delta = 1e-10
    epsilon = worst.epsilon(delta)
    assert 0.0 < epsilon < 5.0
    assert worst.delta(epsilon) <= delta
    assert worst.delta(epsilon * (1.0 - 1e-5)) > delta
    for k in (0, 1, n // 1000, n // 3, n // 2, n - 2, n - 1):
        curve = exact_profile(ShuffleExperiment(randomizer(*laws), n, k=k))
        assert curve.delta(epsilon) <= delta
        assert curve.epsilon(delta) <= epsilon
    dataset = worst.argmax(epsilon)
    groups = [(count, laws[x]) for x, count in dataset.experiment.others.items()]
    a, b = (laws[x] for x in dataset.experiment.pair)
    truth = reference.delta_large(groups, a, b, epsilon, dataset.direction, 20)
    lower, upper = worst.bounds(epsilon)
    assert mpf(lower) <= truth <= mpf(upper)
    assert truth >= mpf(upper) * mpf(1.0 - 2.0 * RTOL)


@pytest.mark.parametrize("epsilon0", [40.0, 50.0, 100.0, 400.0, 709.0, 710.0, 1000.0])
def test_case_04_large_epsilon0(epsilon0):
    """n = 1000, delta = 1e-6: hardly any amplification is left, and the number says so."""
    n = 1000
    rr = binary_randomized_response(epsilon0)
    worst = worst_case_profile(rr, n)
    for delta in (1e-6, 1e-300):
        # k = 0, reverse: the set {no ones} alone has mass beyond delta
        with mp.workdps(900):
            flip = 1 / (1 + mp.exp(mpf(epsilon0)))
            none_q = (1 - flip) ** n
            none_p = flip * (1 - flip) ** (n - 1)
            truth = float(mp.log((none_q - mpf(delta)) / none_p))
        of_k = [exact_profile(ShuffleExperiment(rr, n, k=k)).epsilon(delta) for k in (0, 500, 999)]
        assert_allclose(of_k[0], truth, rtol=FEW_ROUNDINGS, atol=0)
        epsilon = worst.epsilon(delta)
        assert worst.delta(epsilon) <= delta
        assert max(of_k) <= epsilon <= epsilon0
        assert_allclose(epsilon, truth, rtol=1e-9, atol=0)
    assert worst.epsilon(0.0) == epsilon0
    assert worst.delta(epsilon0) == 0.0


@pytest.mark.parametrize("laws", [(0.2, 0.5), (0.0, 0.3), (0.9, 0.3)], ids=str)
def test_trade_off_is_a_lower_bound(laws):
    n = 20
    worst = worst_case_profile(randomizer(*laws), n)
    curves = all_profiles(laws, n)
    alphas = np.array([0.0, 1e-9, 0.01, 0.2, 0.5, 0.9, 1.0])
    least = np.min([curve.trade_off(alphas) for curve in curves], axis=0)
    values = worst.trade_off(alphas)
    assert (values <= least * (1.0 + STATED)).all()
    assert (values >= 0.0).all()
    assert (np.diff(values) <= STATED).all()
    assert values[-1] == 0.0
    # supporting lines of several datasets: their convex hull, below the least of the curves
    assert (values[3:5] >= 0.6 * least[3:5]).all()


@pytest.mark.parametrize("rtol", [1e-9, 1e-3, 0.5])
def test_rtol_is_the_width(rtol):
    worst = worst_case_profile(randomizer(0.2, 0.5), 60, rtol=rtol)
    truth = max(curve.delta(0.1) for curve in all_profiles((0.2, 0.5), 60))
    lower, upper = worst.bounds(0.1)
    assert lower <= truth <= upper
    assert upper <= lower * (1.0 + rtol + 4.0 * STATED)
    # epsilon certified within its own tolerance
    epsilon = worst.epsilon(1e-4)
    assert max(curve.delta(epsilon) for curve in all_profiles((0.2, 0.5), 60)) <= 1e-4


def test_identical_rows_lose_nothing():
    worst = worst_case_profile(randomizer(0.3, 0.3), 1000)
    assert worst.delta([0.0, 1.0]).tolist() == [0.0, 0.0]
    assert worst.epsilon(0.0) == worst.epsilon(1e-12) == 0.0
    assert worst.trade_off(0.25) == 0.75
    assert worst.bounds(0.0) == (0.0, 0.0)


def test_directions_and_shapes():
    worst = worst_case_profile(randomizer(0.2, 0.5), 50)
    epsilons = np.array([[0.0, 0.1], [0.5, 2.0]])
    both = worst.delta(epsilons)
    assert both.shape == (2, 2)
    for direction in ("forward", "reverse"):
        assert worst.delta(epsilons, direction=direction).tolist() == both.tolist()
    assert [type(x) for x in (worst.delta(0.1), worst.epsilon(0.01))] == [float, float]
    assert worst.epsilon([1e-3, 1e-6]).shape == (2,)
    assert worst.delta([]).shape == (0,)


def test_what_it_says_of_itself():
    worst = worst_case_profile(randomizer(0.0, 0.5), 30)
    assert worst.validity is Validity.UPPER_BOUND
    assert worst.n == 30
    assert "1e-06" in worst.method
    for word in ("30 (including", "UPPER_BOUND", "replace-one"):
        assert word in worst.describe()
    content = json.loads(worst.to_json(epsilon=[0.0, 1.0], delta=[0.0, 1e-3]))
    assert content["validity"] == "UPPER_BOUND"
    assert content["setting"]["n"] == 30
    assert content["guarantees"][0]["epsilon"] == "inf"
    assert content["curve"][1]["delta"] == worst.delta(1.0)
    assert "n = 30" in repr(worst)


def test_refusals():
    rr = binary_randomized_response(1.0)
    with pytest.raises(TypeError, match="randomizer must be a Randomizer"):
        worst_case_profile([[0.5, 0.5]], 10)
    with pytest.raises(ValueError, match="at least 2 inputs"):
        worst_case_profile(Randomizer([[0.5, 0.5]]), 10)
    with pytest.raises(ValueError, match="at most 64 inputs"):
        worst_case_profile(Randomizer([[0.5, 0.3, 0.2], *[[0.2, 0.3, 0.5]] * 64]), 10)
    for n in (0, -1, 2**53 + 2):
        with pytest.raises(ValueError, match="n must be"):
            worst_case_profile(rr, n)
    for n in (2.5, True, "10", math.nan):
        with pytest.raises((TypeError, ValueError), match="n must be"):
            worst_case_profile(rr, n)
    for rtol in (0.0, 1e-10, 0.6, math.nan):
        with pytest.raises(ValueError, match="rtol must be"):
            worst_case_profile(rr, 10, rtol=rtol)
    worst = worst_case_profile(rr, 10)
    for bad in (-0.1, math.nan):
        with pytest.raises(ValueError, match="epsilon must be >= 0"):
            worst.delta(bad)
        with pytest.raises(ValueError, match="epsilon must be >= 0"):
            worst.argmax(bad)
        with pytest.raises(ValueError, match="delta must be in"):
            worst.epsilon(bad)


@pytest.mark.filterwarnings("error")
def test_case_23_warns():
    worst = worst_case_profile(randomizer(0.2, 0.5), 100)
    with pytest.warns(DeltaWarning, match="not below 1/n"):
        worst.epsilon(0.01)
    worst.epsilon(0.0099)


def test_compositions_that_nearly_tie_are_certified_too():
    """Two rows that nearly agree: every composition loses the same, to many digits."""
    worst = worst_case_profile(binary_randomized_response(flip_probability=0.49996643), 882_722_988)
    delta = 1e-188
    epsilon = worst.epsilon(delta)
    assert worst.delta(epsilon) <= delta
    assert worst.delta(epsilon * (1.0 - 1e-5)) > delta


@pytest.mark.slow
def test_compositions_of_rare_outputs_are_certified_at_zero():
    """Rows that agree to 1e-5 of a probability of 1e-5, at epsilon 0."""
    worst = worst_case_profile(randomizer(1.2074242842418171e-05, 1.2074342867431891e-05), 17752617)
    lower, upper = worst.bounds(0.0)
    assert 0.0 < lower <= upper <= lower * (1.0 + RTOL + 4.0 * STATED)
