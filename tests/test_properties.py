"""What holds for every curve, on channels, sizes and levels of Hypothesis's choice."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from fastshuffle import (
    Randomizer,
    ShuffleExperiment,
    binary_randomized_response,
    exact_profile,
    worst_case_profile,
)
from tests.laws import randomizer
from tests.tolerances import LOG_PER_UNIT, STATED
from validation.reference.mp import Complement

pytestmark = pytest.mark.filterwarnings("ignore::fastshuffle.DeltaWarning")

tiny = st.floats(-300.0, -1.0).map(lambda e: 10.0**e)
laws = st.one_of(st.floats(0.0, 1.0, allow_subnormal=False), tiny, tiny.map(Complement))
sizes = st.one_of(
    st.integers(1, 5), st.integers(6, 70), st.integers(71, 10**6), st.integers(10**6, 2**53)
)
deltas = st.one_of(st.floats(0.0, 1.0), tiny, st.floats(-12.0, -1.0).map(lambda e: 10.0**e))
shares = st.floats(0.0, 1.2)
directions = st.sampled_from(["forward", "reverse", "both"])


@st.composite
def profiles(draw):
    """Two or three inputs, a composition at an end or anywhere."""
    rows = draw(st.lists(laws, min_size=2, max_size=3))
    n = draw(sizes)
    first = draw(st.one_of(st.just(0), st.just(n - 1), st.integers(0, n - 1)))
    counts = [first, n - 1 - first, 0]
    if len(rows) == 3:
        last = draw(st.integers(0, counts[1]))
        counts[1:] = counts[1] - last, last
    others = dict(enumerate(counts[: len(rows)]))
    return exact_profile(ShuffleExperiment(randomizer(*rows), n, others=others))


def reach(curve, direction):
    """Return where the curve still matters: its end, or 40 deviations of the loss."""
    return min(curve.epsilon(0.0, direction=direction), 100.0 * curve.total_variation(), 600.0)


@given(profiles(), directions, st.lists(shares, min_size=2, max_size=6))
@settings(max_examples=150)
def test_delta_decreases_and_lies_in_the_unit_interval(curve, direction, at):
    epsilons = np.sort(np.array(at)) * reach(curve, direction)
    log_deltas = curve.log_delta(epsilons, direction=direction)
    assert not np.isnan(log_deltas).any()
    assert (log_deltas <= 0.0).all()
    for higher, lower in itertools.pairwise(log_deltas):
        slack = 2.0 * (STATED + LOG_PER_UNIT * abs(lower)) if lower > -math.inf else 0.0
        assert lower <= higher + slack
    assert (curve.delta(math.inf, direction=direction) <= np.exp(log_deltas) * (1 + STATED)).all()


@given(profiles(), st.sampled_from(["forward", "reverse"]), shares, shares, st.floats(0.01, 0.99))
@settings(max_examples=150)
def test_delta_is_convex_in_the_ratio(curve, direction, first, second, weight):
    """A hockey-stick divergence is a supremum of functions linear in e**epsilon."""
    ends = np.sort(np.array([first, second])) * reach(curve, direction)
    ratios = np.expm1(ends)
    middle = math.log1p(weight * ratios[0] + (1.0 - weight) * ratios[1])
    deltas = curve.delta([ends[0], middle, ends[1]], direction=direction)
    chord = weight * deltas[0] + (1.0 - weight) * deltas[2]
    # the middle is a rounded number, and the curve as steep there as it is on the chord
    steepness = 4.0 * 2.3e-16 * (1.0 + ends[1]) * deltas[0]
    assert deltas[1] <= chord * (1.0 + 1e-11) + steepness


@given(profiles(), st.floats(1.0, 5.0))
@settings(max_examples=100)
def test_case_02_delta_vanishes_from_the_largest_loss_on(curve, factor):
    for direction in ("forward", "reverse", "both"):
        largest = curve.epsilon(0.0, direction=direction)
        if largest < math.inf:
            assert curve.delta(largest, direction=direction) == 0.0
            assert curve.delta(factor * largest, direction=direction) == 0.0
            assert curve.log_delta(factor * largest, direction=direction) == -math.inf


@given(st.floats(0.0, 1000.0), sizes, st.floats(0.0, 1.0))
@settings(max_examples=100)
def test_case_02_a_pure_randomizer_stays_pure(epsilon0, n, share):
    k = min(n - 1, int(share * n))
    rr = binary_randomized_response(epsilon0)
    curve = exact_profile(ShuffleExperiment(rr, n, k=k))
    assert curve.delta([epsilon0, 2.0 * epsilon0, math.inf]).tolist() == [0.0, 0.0, 0.0]
    assert curve.epsilon(0.0) == epsilon0
    assert worst_case_profile(rr, n).delta(epsilon0) == 0.0


@given(profiles(), directions, deltas)
@settings(max_examples=250)
def test_case_10_epsilon_is_on_the_safe_side(curve, direction, delta):
    epsilon = curve.epsilon(delta, direction=direction)
    assert epsilon >= 0.0
    if epsilon == math.inf:
        # the mass may underflow, and so may its logarithm's distance from that of delta
        log_mass = curve.log_delta(math.inf, direction=direction)
        log_delta = math.log(delta) if delta > 0.0 else -math.inf
        assert log_mass > log_delta or curve.delta(math.inf, direction=direction) > delta
        return
    assert curve.delta(epsilon, direction=direction) <= delta
    if epsilon > 1e-300:
        # and no more than rounding above: a hair less gives more than a hair less delta
        below = curve.delta(epsilon * (1.0 - 1e-11), direction=direction)
        assert below >= delta * (1.0 - 1e-11)


@given(profiles(), directions, st.floats(0.0, 1.0))
@settings(max_examples=100)
def test_case_07_no_epsilon_from_the_total_variation_on(curve, direction, share):
    total = min(1.0, curve.delta(0.0, direction=direction))
    assert curve.epsilon(total, direction=direction) == 0.0
    assert curve.epsilon(total + share * (1.0 - total), direction=direction) == 0.0


@given(
    profiles(), st.sampled_from(["forward", "reverse"]), st.lists(st.floats(0.0, 1.0), max_size=5)
)
@settings(max_examples=100)
def test_trade_off_is_a_trade_off_function(curve, direction, levels):
    """Convex, decreasing, at most 1 - alpha, and below it by no more than the total variation."""
    alphas = np.unique(np.array([0.0, *levels, 1.0]))
    errors = curve.trade_off(alphas, direction=direction)
    assert not np.isnan(errors).any()
    assert errors[-1] == 0.0
    assert (errors >= 0.0).all()
    assert (errors <= (1.0 - alphas) + 1e-12).all()
    total = curve.delta(0.0, direction=direction)
    assert (errors >= 1.0 - alphas - total - 1e-12).all()
    assert (np.diff(errors) <= 1e-12).all()
    for i in range(1, len(alphas) - 1):
        width = alphas[i + 1] - alphas[i - 1]
        weight = (alphas[i + 1] - alphas[i]) / width
        chord = weight * errors[i - 1] + (1.0 - weight) * errors[i + 1]
        assert errors[i] <= chord + 1e-11


@given(st.floats(700.0, 2000.0), st.integers(1, 60), st.floats(0.0, 1.0))
@settings(max_examples=40)
def test_case_04_trade_off_of_a_flip_that_underflows(epsilon0, n, share):
    k = int(share * (n - 1))
    curve = exact_profile(ShuffleExperiment(binary_randomized_response(epsilon0), n, k=k))
    for direction in ("forward", "reverse"):
        errors = curve.trade_off([0.0, 1e-200, 0.5, 1.0], direction=direction)
        # no level 0 test rejects what both laws can give; any other level is plenty
        assert errors[0] == pytest.approx(1.0, rel=STATED, abs=0.0)
        assert (errors[1:] >= 0.0).all()
        assert (errors[1:] <= 1e-300).all()


@given(profiles(), st.floats(0.0, 1.0), shares)
@settings(max_examples=60)
def test_trade_off_and_delta_are_dual(curve, alpha, share):
    """1 - beta <= e**epsilon alpha + delta(epsilon) for every test and every epsilon."""
    for direction in ("forward", "reverse"):
        epsilon = share * reach(curve, direction)
        beta = curve.trade_off(alpha, direction=direction)
        delta = curve.delta(epsilon, direction=direction)
        assert 1.0 - beta <= math.exp(epsilon) * alpha * (1.0 + 1e-13) + delta + 1e-12


@st.composite
def two_input_experiments(draw):
    pair = draw(st.tuples(laws, laws))
    n = draw(sizes)
    return pair, n, draw(st.integers(0, n - 1))


@given(two_input_experiments(), st.lists(st.floats(0.0, 5.0), min_size=1, max_size=4), deltas)
@example(((0.2, 0.5), 1000, 1), [0.05, 0.1], 1e-9)
@settings(max_examples=120)
def test_case_03_swap_and_relabelling(experiment, epsilons, delta):
    """forward(W0, W1, k) == reverse(W1, W0, n - 1 - k), and the outputs have no order."""
    pair, n, k = experiment
    channel = randomizer(*pair)
    curve = exact_profile(ShuffleExperiment(channel, n, k=k))
    swapped = exact_profile(ShuffleExperiment(randomizer(*pair[::-1]), n, k=n - 1 - k))
    flipped = Randomizer(channel.matrix[:, ::-1].copy())
    relabelled = exact_profile(ShuffleExperiment(flipped, n, k=k))
    forward = curve.log_delta(epsilons, direction="forward")
    reverse = curve.log_delta(epsilons, direction="reverse")
    for other, first, second in (
        (swapped, "reverse", "forward"),
        (relabelled, "forward", "reverse"),
    ):
        for expected, direction in ((forward, first), (reverse, second)):
            values = other.log_delta(epsilons, direction=direction)
            same = values == expected
            # two equal probabilities of 1/2 may be told apart by their place
            slack = 2.0 * (STATED + LOG_PER_UNIT * np.abs(expected[~same]))
            assert (np.abs(values[~same] - expected[~same]) <= slack).all()
    epsilon = swapped.epsilon(delta, direction="reverse")
    assert_allclose(curve.epsilon(delta, direction="forward"), epsilon, rtol=STATED, atol=0)


@given(two_input_experiments())
@settings(max_examples=40)
def test_divergences_are_ordered(experiment):
    """Renyi divergences grow with the order; Pinsker and the usual inequalities hold."""
    pair, n, k = experiment
    assume(n <= 70 or all(not isinstance(law, Complement) and 1e-4 < law < 0.9999 for law in pair))
    curve = exact_profile(ShuffleExperiment(randomizer(*pair), n, k=k))
    total = curve.total_variation()
    shannon = curve.jensen_shannon()
    assert 0.0 <= shannon <= math.log(2.0) * (1.0 + STATED)
    assert shannon <= total * math.log(2.0) * (1.0 + STATED)
    for direction in ("forward", "reverse"):
        values = [
            curve.renyi(order, direction=direction)
            for order in (0.2, 0.5, 0.8, 1.0, 1.5, 2.0, 7.0, math.inf)
        ]
        assert not any(math.isnan(value) or value < 0.0 for value in values)
        for smaller, larger in itertools.pairwise(values):
            assert smaller <= larger * (1.0 + STATED)
        kullback = values[3]
        assert 2.0 * total * total <= kullback * (1.0 + STATED)
        # the dual of the order 1/2
        assert values[1] == pytest.approx(
            curve.renyi(0.5, direction="reverse" if direction == "forward" else "forward"),
            rel=STATED, abs=0.0,
        )  # fmt: skip


@given(st.tuples(st.floats(0.01, 0.99), st.floats(0.01, 0.99)), st.integers(1, 400), deltas)
@settings(max_examples=40)
def test_the_worst_case_covers_every_composition(pair, n, delta):
    channel = randomizer(*pair)
    worst = worst_case_profile(channel, n)
    epsilon = worst.epsilon(delta)
    assert worst.delta(epsilon) <= delta or pair[0] == pair[1]
    for k in {0, n // 3, n // 2, n - 1}:
        curve = exact_profile(ShuffleExperiment(channel, n, k=k))
        assert curve.delta(epsilon) <= delta
        assert curve.epsilon(delta) <= epsilon
        for x in (0.0, 0.05, 0.7):
            lower, upper = worst.bounds(x)
            assert curve.delta(x) <= upper
            assert lower <= upper
