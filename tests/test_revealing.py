"""The bracket by revealing and merging, against exact profiles of mixed compositions."""

import itertools

import numpy as np
import pytest

import fastshuffle as fs

pytestmark = pytest.mark.filterwarnings("ignore::fastshuffle.DeltaWarning")
ROWS = [[0.5, 0.3, 0.2], [0.2, 0.35, 0.45], [0.25, 0.5, 0.25]]
EPSILONS = [0.0, 0.05, 0.2, 0.6]


def brute_force(rows, n, others, pair, epsilon):
    """Sum over all histograms, forward."""
    laws = []
    for own in (pair[1], pair[0]):
        law = {(0,) * len(rows[0]): 1.0}
        for x in [own, *others]:
            grown = {}
            for histogram, mass in law.items():
                for y, p in enumerate(rows[x]):
                    key = (*histogram[:y], histogram[y] + 1, *histogram[y + 1 :])
                    grown[key] = grown.get(key, 0.0) + mass * p
            law = grown
        laws.append(law)
    assert len(others) == n - 1
    return sum(max(p - np.exp(epsilon) * laws[1][key], 0.0) for key, p in laws[0].items())


@pytest.mark.parametrize("others", list(itertools.combinations_with_replacement(range(3), 4))[:12])
@pytest.mark.parametrize("pair", [(0, 1), (2, 0)])
def test_it_holds_the_sum_over_all_histograms(others, pair):
    counts = {x: others.count(x) for x in set(others)}
    e = fs.ShuffleExperiment(fs.Randomizer(ROWS), 5, others=counts, pair=pair)
    for epsilon in EPSILONS:
        lower, upper = fs.revealing_profile(e).bounds(epsilon, direction="forward")
        exact = brute_force(ROWS, 5, others, pair, epsilon)
        assert lower * (1.0 - 1e-12) <= exact <= upper * (1.0 + 1e-12)


def test_it_holds_where_messages_are_those_of_some_inputs_alone():
    rng = np.random.default_rng(4)
    for _ in range(12):
        rows = rng.integers(0, 5, (4, 3)) + np.eye(3, dtype=int)[rng.integers(0, 3, 4)]
        rows = (rows / rows.sum(axis=1, keepdims=True)).tolist()
        others = sorted(rng.integers(0, 4, 4).tolist())
        counts = {x: others.count(x) for x in set(others)}
        e = fs.ShuffleExperiment(fs.Randomizer(rows), 5, others=counts, pair=(0, 1))
        for epsilon in EPSILONS:
            lower, upper = fs.revealing_profile(e).bounds(epsilon, direction="forward")
            exact = brute_force(rows, 5, others, (0, 1), epsilon)
            assert lower * (1.0 - 1e-12) <= exact <= upper * (1.0 + 1e-12)


def test_the_common_part_of_many_inputs_hides_more_than_one_of_them():
    krr = fs.k_randomized_response(2.0, 8)
    e = fs.ShuffleExperiment(krr, 10**6, others={x: 125_000 - (x == 7) for x in range(8)})
    blanket = fs.blanket_profile(krr, 10**6).epsilon(1e-8)
    assert fs.revealing_profile(e).epsilon(1e-8) <= blanket * (1.0 + 1e-9)


@pytest.mark.parametrize("k", [100, 500, 900])
@pytest.mark.parametrize("direction", ["forward", "reverse", "both"])
def test_it_holds_the_exact_profile_of_a_mixed_composition(k, direction):
    e = fs.ShuffleExperiment(fs.Randomizer(ROWS[:2]), 1001, k=k)
    exact, bracket = fs.exact_profile(e), fs.revealing_profile(e)
    for epsilon in EPSILONS:
        lower, upper = bracket.bounds(epsilon, direction=direction)
        assert lower <= exact.delta(epsilon, direction=direction) <= upper


def test_one_input_is_the_homogeneous_bracket():
    e = fs.ShuffleExperiment(fs.Randomizer(ROWS), 1000, others={2: 999})
    assert fs.revealing_profile(e).delta(0.1) == fs.exact_profile(e).delta(0.1)


def test_two_groups_are_sharp_below():
    e = fs.ShuffleExperiment(fs.binary_randomized_response(1.0), 1000, k=300)
    lower, _ = fs.revealing_profile(e).bounds(0.05)
    assert lower == pytest.approx(fs.exact_profile(e).delta(0.05), rel=1e-8, abs=0.0)


def test_continuous_noise_has_the_upper_end_alone():
    e = fs.ShuffleExperiment(fs.laplace(1.0), 1001, k=500)
    lower, upper = fs.revealing_profile(e).bounds(0.2)
    finer = fs.ShuffleExperiment(fs.laplace(1.0), 501, others={0: 500})
    assert lower == 0.0
    assert upper <= fs.exact_profile(finer).delta(0.2) * 1.01


def test_alphabets_and_users_without_number():
    krr = fs.k_randomized_response(2.0, 10**6)
    e = fs.ShuffleExperiment(krr, 2**53, others={0: 2**52, 5: 2**52 - 1})
    lower, upper = fs.revealing_profile(e).bounds(1e-7)
    assert 0.0 <= lower <= upper < 1e-3


def test_bad_input():
    with pytest.raises(TypeError, match="experiment must be a ShuffleExperiment, got int"):
        fs.revealing_profile(3)
    e = fs.ShuffleExperiment(fs.Randomizer(ROWS), 5, k=2)
    with pytest.raises(ValueError, match=r"rtol must be in \[1e-9, 0.5\], got 0.0"):
        fs.revealing_profile(e, rtol=0.0)
