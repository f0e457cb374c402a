"""The compound Poisson limit against the law of all jumps, and against the exact profiles."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fastshuffle as fs
from tests.tolerances import STATED
from validation.reference import poisson as reference

# Homes 0, 1, 2 and 3, with errors of their own sizes.
W = fs.Randomizer(
    [
        [0.985, 0.004, 0.008, 0.003],
        [0.006, 0.980, 0.005, 0.009],
        [0.007, 0.011, 0.970, 0.012],
        [0.002, 0.003, 0.005, 0.990],
    ]
)


def moves(others):
    """Return every kind of jump of the other users of W as a move of the histogram, its mean."""
    jumps = []
    for home, count in others.items():
        for y in range(4):
            if y != home:
                move = [0, 0, 0, 0]
                move[home], move[y] = -1, 1
                jumps.append((tuple(move), count * float(W.matrix[home, y])))
    return tuple(jumps)


def unit(y):
    return tuple(int(i == y) for i in range(4))


def jump_delta(epsilon, others, b, a):
    return float(
        reference.field_delta(epsilon, moves(others), {unit(b): 1}, {unit(a): 1}, digits=15)
    )


@pytest.mark.parametrize("others", [{0: 60}, {0: 9, 1: 7}, {2: 60}, {1: 60}])
def test_against_the_law_of_all_jumps(others):
    n = 1 + sum(others.values())
    limit = fs.compound_poisson_profile(fs.ShuffleExperiment(W, n, others=others))
    for epsilon in (0.0, 0.4, 1.5):
        for direction, b, a in (("forward", 1, 0), ("reverse", 0, 1)):
            truth = jump_delta(epsilon, others, b, a)
            assert_allclose(limit.delta(epsilon, direction=direction), truth, rtol=STATED, atol=0)


def test_floors_of_a_third_home():
    """An empty count at the home of b reveals a: with probability exp(-its mean)."""
    limit = fs.compound_poisson_profile(fs.ShuffleExperiment(W, 401, others={2: 400}))
    mean_a, mean_b = 400 * W.matrix[2, :2]
    forward, reverse = (limit.delta(math.inf, direction=d) for d in ("forward", "reverse"))
    assert_allclose((forward, reverse), np.exp((-mean_a, -mean_b)), rtol=STATED, atol=0)
    inside = fs.compound_poisson_profile(fs.ShuffleExperiment(W, 401, k=100))
    assert inside.delta(math.inf) == 0.0


def test_reduces_to_poisson_and_skellam():
    rr = fs.binary_randomized_response(6.0)
    epsilons = np.array([0.0, 0.5, 2.0, math.inf])
    inside = fs.ShuffleExperiment(rr, 1000, k=300)
    assert_allclose(
        fs.compound_poisson_profile(inside).log_delta(epsilons),
        fs.skellam_profile(inside).log_delta(epsilons),
        rtol=STATED,
        atol=0,
    )
    end = fs.ShuffleExperiment(W, 1000, k=0)
    assert_allclose(
        fs.compound_poisson_profile(end).log_delta(epsilons),
        fs.poisson_profile(end).log_delta(epsilons),
        rtol=STATED,
        atol=0,
    )


def test_equal_shares_are_one_count():
    """Whatever the size of the alphabet, the errors of k-ary response that are seen are one sum."""
    n, wide = 600, fs.k_randomized_response(math.log(2000.0), k=40)
    rate = float(wide.merged_rows((0, 1, 2))[0].min())
    limit = fs.compound_poisson_profile(fs.ShuffleExperiment(wide, n, k=200))
    total = 38 * 599 * rate
    jumps = [((1, 0), 399 * rate), ((-1, 0), 200 * rate)]
    # all other outputs as one coordinate, with the errors from 0 leaving the count of 1 alone
    jumps += [((0, 1), total * 399 / 599), ((-1, 1), total * 200 / 599)]
    truth = reference.field_delta(0.5, tuple(jumps), {(1, 0): 1}, {(0, 0): 1}, digits=15)
    assert_allclose(limit.delta(0.5, direction="forward"), float(truth), rtol=STATED, atol=0)


@pytest.mark.parametrize("others", [{0: 699, 1: 300}, {2: 999}])
def test_bounds_bracket_the_exact_delta(others):
    krr = fs.k_randomized_response(math.log(800.0), k=3)
    experiment = fs.ShuffleExperiment(krr, 1000, others=others)
    limit, exact = fs.compound_poisson_profile(experiment), fs.exact_profile(experiment)
    for direction in ("forward", "reverse"):
        lower, upper = limit.bounds([0.0, 0.5, 1.5], direction=direction)
        exact_lower, exact_upper = exact.bounds([0.0, 0.5, 1.5], direction=direction)
        assert (lower <= exact_lower).all()
        assert (exact_upper <= upper).all()
        near = limit.delta([0.0, 0.5], direction=direction)
        assert_allclose(near, exact_upper[:2], rtol=0.03, atol=0)


def test_error_falls_as_one_over_n():
    gaps = []
    for n in (500, 2000):
        krr = fs.k_randomized_response(math.log(n / 4.0), k=3)
        experiment = fs.ShuffleExperiment(krr, n, others={2: n - 1})
        limit, exact = fs.compound_poisson_profile(experiment), fs.exact_profile(experiment)
        epsilons = np.linspace(0.0, 2.0, 9)
        gaps.append(np.abs(limit.delta(epsilons) - exact.delta(epsilons)).max())
    assert 3.4 < gaps[0] / gaps[1] < 4.6


def test_far_tail_and_inverse():
    limit = fs.compound_poisson_profile(fs.ShuffleExperiment(W, 151, others={0: 90, 1: 60}))
    for delta in (1e-8, 1e-200):
        epsilon = limit.epsilon(delta)
        assert limit.delta(epsilon) <= delta
        assert limit.delta(epsilon * (1 - 1e-12)) > delta * (1 - 1e-8)


def test_refusals():
    with pytest.raises(
        fs.UnsupportedSettingError, match="the homes of the pair or all one third home, got 2"
    ):
        fs.compound_poisson_profile(fs.ShuffleExperiment(W, 10, others={0: 4, 2: 5}))
    with pytest.raises(fs.UnsupportedSettingError, match="at most 200000 combinations of counts"):
        fs.compound_poisson_profile(fs.ShuffleExperiment(W, 10**6, k=10**5))
    with pytest.raises(TypeError, match="experiment must be a ShuffleExperiment"):
        fs.compound_poisson_profile(None)
