"""Simulations where users send several messages: losses by enumeration, estimates by exact sums."""

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fastshuffle as fs
from fastshuffle.monte_carlo.pair import SIDES, PairLaws
from tests.tolerances import KERNEL_SUM
from validation.reference.messages import unbundled_pair

pytestmark = pytest.mark.filterwarnings("ignore::fastshuffle.DeltaWarning")

ROWS = [[0.5, 0.25, 0.25], [0.125, 0.375, 0.5], [0.25, 0.5, 0.25]]
ZEROS = [[0.5, 0.375, 0.125, 0.0], [0.25, 0.25, 0.375, 0.125], [0.25, 0.0, 0.25, 0.5]]


def drawn_outputs(experiment, rows, side):
    """Return the outputs in the order in which a simulation counts them."""
    a, b = experiment.pair if side == "forward" else experiment.pair[::-1]
    merged = experiment.randomizer.merged((a, b, *experiment.others)).rows
    order = np.argsort(merged[2:].max(axis=0))
    held = np.array(rows)[[a, b, *experiment.others]]
    return [int(np.abs(held - merged[:, [y]]).sum(axis=0).argmin()) for y in order]


@pytest.mark.parametrize(
    ("rows", "others", "pair", "messages"),
    [
        (ROWS, {2: 3}, (0, 1), 3),
        (ROWS, {0: 3}, (0, 1), 3),
        (ROWS, {1: 3}, (0, 1), 2),
        (ROWS, {0: 2, 1: 1}, (0, 1), 3),
        (ROWS, {0: 2, 1: 1}, (1, 0), 3),
        (ZEROS, {0: 1, 1: 2}, (0, 1), 2),
        (ZEROS, {1: 3}, (0, 1), 2),
        (ZEROS, {1: 3}, (0, 2), 3),
        (ROWS, {0: 1, 1: 1, 2: 1}, (0, 1), 2),
        (ROWS, {0: 1, 2: 2}, (0, 1), 3),
        (ZEROS, {0: 1, 1: 1, 2: 1}, (2, 1), 2),
        (ZEROS, {0: 1, 2: 2}, (0, 1), 2),
    ],
    ids=str,
)
def test_losses_by_every_outcome(rows, others, pair, messages):
    n = 1 + sum(others.values())
    e = fs.ShuffleExperiment(fs.Randomizer(rows), n, others=others, pair=pair, messages=messages)
    q, p = unbundled_pair([[Fraction(x) for x in row] for row in rows], others, pair, messages)
    for side, (law, other) in zip(SIDES, ((p, q), (q, p)), strict=True):
        laws = PairLaws(e, side)
        outputs = drawn_outputs(e, rows, side)
        places = list(law)
        histograms = np.array([[place[y] for y in outputs] for place in places], dtype=float)
        truth = np.array([
            math.log(law[place] / other[place]) if other.get(place) else math.inf
            for place in places
        ])  # fmt: skip
        finite = np.isfinite(truth)
        losses = laws.losses(histograms)
        assert_allclose(losses[finite], truth[finite], rtol=0, atol=KERNEL_SUM)
        assert (losses[~finite] == math.inf).all()
        assert (laws.scales(histograms) == 1.0).all()
        assert sum(count for count, _ in laws.groups) == n * messages
        assert losses.max() <= laws.loss * (1.0 + 1e-14)


def test_losses_of_many_users():
    """Two masses of size n: the loss is small and keeps its digits to 1e-10."""
    e = fs.ShuffleExperiment(fs.Randomizer(ROWS), 10**9, others={2: 10**9 - 1}, messages=4)
    laws = PairLaws(e, "forward")
    total = 4 * 10**9
    outputs = drawn_outputs(e, ROWS, "forward")
    mean = np.array(ROWS)[2] * total
    moves = np.array([[0.0, 0.0, 0.0], [3e4, -2e4, -1e4], [-5e4, 0.0, 5e4]])
    histograms = (mean + moves)[:, outputs]
    # of first order: m times the mean of the ratios less 1, in each message
    ratios = (np.array(ROWS)[1] - np.array(ROWS)[0]) / np.array(ROWS)[2]
    first = 4.0 * (histograms @ ratios[outputs]) / total
    assert_allclose(laws.losses(histograms), first, rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    ("randomizer", "others", "messages"),
    [
        (fs.k_randomized_response(1.0, 3), {2: 39}, 2),
        (fs.Randomizer(ROWS), {0: 40, 1: 59}, 3),
        (fs.Randomizer(ROWS), {0: 2, 1: 3, 2: 2}, 2),
        (fs.binary_randomized_response(1.0), {0: 300, 1: 699}, 4),
    ],
    ids=str,
)
def test_estimates_against_exact_values(randomizer, others, messages):
    n = 1 + sum(others.values())
    e = fs.ShuffleExperiment(randomizer, n, others=others, messages=messages)
    truth = fs.exact_profile(e)
    target = truth.epsilon(1e-6)
    profile = fs.monte_carlo_profile(
        e, n_samples=2**16, rng=np.random.default_rng(7), target_delta=1e-6
    )
    assert profile.validity is fs.Validity.ESTIMATE
    for direction in ("forward", "reverse"):
        for factor in (0.0, 0.3, 0.6, 0.95):
            epsilon = factor * target
            lower, upper = profile.bounds(epsilon, direction=direction)
            assert lower <= truth.delta(epsilon, direction=direction) <= upper
    assert_allclose(profile.delta(0.5 * target), truth.delta(0.5 * target), rtol=0.05, atol=0)


def test_small_deltas_of_many_users():
    """The proved bracket, and the estimate within it."""
    krr = fs.k_randomized_response(2.0, 10)
    e = fs.ShuffleExperiment(krr, 10**4, others={2: 9_999}, messages=4)
    bracket = fs.exact_profile(e)
    epsilon = bracket.epsilon(1e-8)
    profile = fs.monte_carlo_profile(
        e, n_samples=2**16, rng=np.random.default_rng(2), target_epsilon=epsilon
    )
    lower, upper = bracket.bounds(epsilon)
    assert lower * 0.97 <= profile.delta(epsilon) <= upper * 1.03
    assert profile.bounds(epsilon)[0] >= 0.9 * lower
    assert profile.bounds(epsilon)[1] <= 3.0 * upper


def test_states_and_refusals():
    e = fs.ShuffleExperiment(fs.Randomizer(ROWS), 50, others={2: 49}, messages=3)
    run = fs.Simulation(e)
    run.run(2**16, np.random.default_rng(1))
    again = fs.Simulation.from_json(e, run.to_json())
    assert again.profile().delta(0.1) == run.profile().delta(0.1)
    alone = fs.ShuffleExperiment(fs.Randomizer(ZEROS), 50, others={0: 49}, messages=3)
    with pytest.raises(fs.UnsupportedSettingError, match="must send every message"):
        fs.Simulation(alone)
