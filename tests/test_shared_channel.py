"""Messages of different randomizers in one channel: brackets against all histograms."""

import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf
from numpy.testing import assert_allclose

import fastshuffle as fs
from validation.reference import exact
from validation.reference.messages import shared_pair

pytestmark = pytest.mark.filterwarnings("ignore::fastshuffle.DeltaWarning")

LOUD = [[0.5, 0.25, 0.25], [0.125, 0.375, 0.5], [0.25, 0.5, 0.25]]
QUIET = [[0.375, 0.375, 0.25], [0.25, 0.375, 0.375], [0.375, 0.25, 0.375]]
DUMMY = [[0.25, 0.25, 0.5]] * 3
TRUE = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]


def k_ary(epsilon0, k):
    """The matrix of k-ary randomized response."""
    matrix = np.exp(epsilon0 * np.eye(k))
    return fs.Randomizer(matrix / matrix.sum(axis=1, keepdims=True))


def profile_of(matrices, others, **options):
    n = 1 + sum(others.values())
    return fs.shared_channel_profile(
        [fs.Randomizer(matrix) for matrix in matrices], n, others=others, **options
    )


@pytest.mark.parametrize(
    ("matrices", "others", "pair"),
    [
        ((LOUD, QUIET), {}, (0, 1)),
        ((LOUD, QUIET), {2: 3}, (0, 1)),
        ((LOUD, QUIET, LOUD), {0: 2, 1: 1}, (1, 0)),
        ((LOUD, DUMMY, DUMMY), {0: 1, 2: 2}, (0, 2)),
        ((TRUE, DUMMY, DUMMY), {2: 3}, (0, 1)),
        ((TRUE, LOUD), {1: 2, 2: 2}, (0, 1)),
        ((DUMMY, DUMMY), {1: 2}, (0, 1)),
    ],
    ids=str,
)
def test_it_holds_the_sum_over_all_histograms(matrices, others, pair):
    profile = profile_of(matrices, others, pair=pair)
    assert profile.validity is fs.Validity.UPPER_BOUND
    fractions = [[[Fraction(p) for p in row] for row in matrix] for matrix in matrices]
    q, p = shared_pair(fractions, others, pair)
    for direction, laws in (("forward", (p, q)), ("reverse", (q, p))):
        for epsilon in (0.0, 0.2, 1.0, 2.5, 6.0):
            with mp.workdps(60):
                ratio = Fraction(int(mp.exp(mpf(epsilon)) * 10**50), 10**50)
            truth = float(exact.hockey_stick(*laws, ratio))
            lower, upper = profile.bounds(epsilon, direction=direction)
            assert lower <= truth * (1.0 + 1e-12)
            assert truth <= upper * (1.0 + 1e-12)
        infinite = float(sum(x for place, x in laws[0].items() if not laws[1].get(place)))
        lower, upper = profile.bounds(math.inf, direction=direction)
        assert lower <= infinite * (1.0 + 1e-12)
        assert infinite <= upper * (1.0 + 1e-12)


BITS = ([[0.75, 0.25], [0.5, 0.5], [0.9, 0.1]], [[0.625, 0.375], [0.125, 0.875], [0.4, 0.6]])
SURE = [[1.0, 0.0], [0.25, 0.75], [0.5, 0.5]]
COIN = [[0.375, 0.625]] * 3


@pytest.mark.parametrize(
    ("matrices", "others", "pair"),
    [
        (BITS, {}, (0, 1)),
        (BITS, {0: 2, 1: 1}, (0, 1)),
        (BITS, {1: 1, 2: 3}, (1, 0)),
        ((*BITS, BITS[0], COIN), {0: 1, 2: 2}, (0, 1)),
        ((SURE, BITS[1]), {0: 3}, (0, 1)),
        ((SURE, BITS[0], COIN), {0: 2, 1: 1}, (1, 0)),
    ],
    ids=str,
)
def test_two_outputs_are_exact(matrices, others, pair):
    profile = profile_of(matrices, others, pair=pair)
    assert profile.validity is fs.Validity.EXACT
    fractions = [[[Fraction(p) for p in row] for row in matrix] for matrix in matrices]
    q, p = shared_pair(fractions, others, pair)
    for direction, laws in (("forward", (p, q)), ("reverse", (q, p))):
        for growth in (Fraction(1), Fraction(5, 4), Fraction(3), Fraction(40)):
            truth = float(exact.hockey_stick(*laws, growth))
            found = profile.delta(math.log(growth), direction=direction)
            assert_allclose(found, truth, rtol=1e-11, atol=0)
        infinite = float(sum(x for place, x in laws[0].items() if not laws[1].get(place)))
        assert_allclose(profile.delta(math.inf, direction=direction), infinite, rtol=1e-11, atol=0)


def test_equal_bits_are_several_messages_of_any_number_of_users():
    rr = fs.Randomizer([[0.75, 0.25], [0.25, 0.75]])
    for n in (3, 10**4, 10**12):
        mixed = fs.shared_channel_profile([rr] * 3, n, others={0: n // 2, 1: n - 1 - n // 2})
        several = fs.exact_profile(fs.ShuffleExperiment(rr, n, k=n - 1 - n // 2, messages=3))
        for delta in (1e-3, 1e-12, 1e-200):
            epsilon = several.epsilon(delta)
            if 0.0 < epsilon < 2.9:
                assert_allclose(
                    mixed.log_delta(epsilon), several.log_delta(epsilon), rtol=1e-11, atol=0
                )


def test_next_to_the_largest_loss_delta_is_not_lost():
    """The masses of so many users are known to exp(1e-3): no ratio of them tells an epsilon."""
    rr = fs.Randomizer([[0.75, 0.25], [0.25, 0.75]])
    n = 10**13
    profile = fs.shared_channel_profile([rr, rr], n, others={0: n - 1})
    loss = 2.0 * math.log(3.0)
    for gap in (1e-3, 1e-6, 1e-12):
        lower, upper = profile.log_bounds(loss - gap, direction="forward")
        # all 2n bits are ones: q**(2n - 2) p**2 (1 - exp(-gap))
        truth = (2 * n - 2) * math.log(0.25) + 2.0 * math.log(0.75) + math.log(-math.expm1(-gap))
        assert lower <= truth <= upper
        assert lower > 1.001 * truth
    assert profile.delta(loss * (1.0 + 1e-12)) == 0.0


def test_bits_that_go_both_ways_are_bracketed():
    crossed = ([[0.75, 0.25], [0.5, 0.5]], [[0.5, 0.5], [0.75, 0.25]])
    assert profile_of(crossed, {0: 5}).validity is fs.Validity.UPPER_BOUND


def test_equal_randomizers_are_several_messages():
    krr = k_ary(2.0, 5)
    n = 10**5
    mixed = fs.shared_channel_profile([krr] * 3, n, others={2: n - 1})
    several = fs.exact_profile(fs.ShuffleExperiment(krr, n, others={2: n - 1}, messages=3))
    epsilon = several.epsilon(1e-8)
    assert_allclose(mixed.log_bounds(epsilon), several.log_bounds(epsilon), rtol=2e-4, atol=0)


def test_brackets_of_many_users():
    """Two budgets, others at one input: the loss is shared out, and little is lost."""
    parts = [k_ary(epsilon0, 5) for epsilon0 in (1.0, 2.0)]
    n = 10**6
    profile = fs.shared_channel_profile(parts, n, others={2: n - 1})
    epsilon = profile.epsilon(1e-8)
    lower, upper = profile.bounds(epsilon)
    assert 0.0 < lower <= upper <= 1e-8
    assert_allclose(profile.epsilon(0.0), 3.0, rtol=1e-14, atol=0)
    # no worse than kept together
    together = fs.exact_profile(fs.ShuffleExperiment(fs.bundle(parts), n, others={2: n - 1}))
    assert epsilon <= together.epsilon(1e-8)


def test_one_true_message_among_dummies():
    """Balls into bins: the dummies of all users hide the one message that differs."""
    bins, n = 20, 10**4
    true = fs.Randomizer(np.eye(bins))
    dummy = fs.Randomizer(np.full((bins, bins), 1.0 / bins))
    curves = []
    for n_dummies in (1, 2, 8):
        profile = fs.shared_channel_profile([true, *[dummy] * n_dummies], n, others={2: n - 1})
        lower, upper = profile.bounds(0.2, direction="forward")
        assert lower <= upper <= lower * 1.01
        curves.append(upper)
    assert curves[0] > curves[1] > curves[2]
    # the same as one message among the dummies of all
    stacked = fs.Randomizer(np.vstack((np.eye(bins), np.full(bins, 1.0 / bins))))
    single = fs.ShuffleExperiment(stacked, 8 * n + 1, others={bins: 8 * n})
    assert_allclose(
        curves[2], fs.exact_profile(single).delta(0.2, direction="forward"), rtol=2e-3, atol=0
    )


def test_what_it_says_and_refuses():
    w = fs.Randomizer(LOUD)
    profile = profile_of((LOUD, QUIET), {2: 4})
    assert len(profile.to_dict()["setting"]["randomizers"]) == 2
    assert profile.n == 5
    with pytest.raises(TypeError, match="randomizers must be a sequence"):
        fs.shared_channel_profile(w, 5, others={2: 4})
    with pytest.raises(
        TypeError, match=r"randomizers\[1\] must be a Randomizer given by its matrix"
    ):
        fs.shared_channel_profile([w, fs.laplace(1.0)], 5, others={2: 4})
    with pytest.raises(ValueError, match=r"same inputs and outputs, got \(3, 3\) and \(2, 2\)"):
        fs.shared_channel_profile([w, fs.binary_randomized_response(1.0)], 5, others={2: 4})
    with pytest.raises(ValueError, match="others must sum to n - 1"):
        fs.shared_channel_profile([w, w], 5, others={2: 3})
