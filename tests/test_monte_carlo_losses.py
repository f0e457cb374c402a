"""Privacy losses of histograms and the half-spaces that contain the large ones, by brute force."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fastshuffle as fs
from fastshuffle._kernels.binomial_groups import log_mass
from fastshuffle._kernels.form_tilt import arc, log_one_plus, solve_positive
from fastshuffle.monte_carlo.half_spaces import best_tilt, half_spaces
from fastshuffle.monte_carlo.losses import ByCommonPart, ByLabels, ByOutputs, loss_method
from fastshuffle.monte_carlo.pair import SIDES, PairLaws
from tests.tolerances import DOZEN_ROUNDINGS, FEW_ROUNDINGS, KERNEL_SUM
from validation.reference.exact import histogram_pair

THREE = ((0.5, 0.3, 0.2), (0.2, 0.35, 0.45), (0.3, 0.3, 0.4), (0.1, 0.6, 0.3))
BINARY = ((0.75, 0.25), (0.5, 0.5), (0.4, 0.6), (0.9, 0.1))
ZEROS = (
    (0.25, 0.75, 0.0, 0.0),
    (0.125, 0.5, 0.125, 0.25),
    (0.5, 0.0, 0.5, 0.0),
    (0.0, 0.0, 0.5, 0.5),
)
# a common part and one output each, of which inputs 0 and 4 share one
SHARED_OWN = (
    (0.5, 0.125, 0.125, 0.25),
    (0.25, 0.375, 0.125, 0.25),
    (0.25, 0.125, 0.375, 0.25),
    (0.25, 0.125, 0.125, 0.5),
    (0.5, 0.125, 0.125, 0.25),
)
FOUR_ARY = tuple(tuple(0.625 if x == y else 0.125 for y in range(4)) for x in range(4))
RARE = (1.0 - 2.0**-40 - 2.0**-50, 2.0**-40, 2.0**-50)
NEARLY_HONEST = tuple(
    tuple(1.0 - 3 * 2.0**-40 if x == y else 2.0**-40 for y in range(4)) for x in range(4)
)
CASES = [
    (THREE, {0: 3, 1: 2}, (0, 1)),
    (THREE, {0: 5}, (0, 1)),
    (THREE, {1: 5}, (0, 1)),
    (THREE, {2: 5}, (0, 1)),
    (THREE, {2: 3, 3: 2}, (0, 1)),
    (THREE, {0: 2, 2: 2, 3: 1}, (0, 1)),
    (THREE, {0: 1, 1: 1, 2: 2, 3: 1}, (1, 2)),
    (BINARY, {0: 2, 1: 3}, (0, 1)),
    (BINARY, {0: 2, 1: 2, 2: 1, 3: 1}, (0, 2)),
    (ZEROS, {0: 3, 1: 2}, (0, 1)),
    (ZEROS, {0: 1, 1: 4}, (0, 1)),
    (ZEROS, {0: 5}, (0, 1)),
    (ZEROS, {1: 1}, (0, 2)),
    (ZEROS, {0: 2, 2: 2, 3: 1}, (2, 3)),
    # messages that hardly anybody sends: the sums of nodes cancel, and are added up term by term
    ((RARE, (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), RARE[::-1]), {1: 2, 3: 3}, (0, 2)),
    ((RARE, RARE[::-1], (2.0**-60, 1.0 - 2.0**-30, 2.0**-30)), {0: 2, 2: 3}, (0, 1)),
    ((RARE, RARE[::-1], *THREE), {0: 2, 1: 1, 2: 1, 3: 1}, (0, 1)),
    (NEARLY_HONEST, {0: 1, 1: 1, 2: 2, 3: 1}, (0, 1)),
    (SHARED_OWN, {0: 1, 1: 1, 2: 1, 3: 1, 4: 1}, (1, 2)),
    (FOUR_ARY, {0: 1, 1: 1, 2: 2, 3: 1}, (0, 1)),
    (((0.25, 0.5, 0.25), (0.75, 0.25, 0.0)), {0: 2, 1: 3}, (0, 1)),
    (((0.5, 0.5, 0.0), (0.25, 0.0, 0.75)), {0: 4, 1: 2}, (0, 1)),
    (((0.25, 0.5, 0.25), (0.0, 0.0, 1.0)), {0: 3, 1: 2}, (0, 1)),
]


def experiment_of(rows, others, pair):
    n = 1 + sum(others.values())
    return fs.ShuffleExperiment(fs.Randomizer(rows), n, others=others, pair=pair)


def drawn_histograms(laws):
    """Return all histograms of the drawn part, with P and Q in fractions, user by user."""
    rows = [
        [Fraction(p) for p in row.tolist()]
        for row in (laws.opposite, laws.own, *(row for _, row in laws.held))
    ]
    others = {2 + i: count for i, (count, _) in enumerate(laws.held)}
    law_q, law_p = histogram_pair(rows, others, (0, 1))
    possible = [h for h in set(law_p) | set(law_q) if law_p.get(h, 0) or law_q.get(h, 0)]
    return [(h, law_p.get(h, 0), law_q.get(h, 0)) for h in possible]


def exact_loss(p, q):
    if q == 0:
        return math.inf
    if p == 0:
        return -math.inf
    excess = Fraction(p, q) - 1
    return math.log1p(float(excess)) if abs(excess) < 0.5 else math.log(Fraction(p, q))


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(("rows", "others", "pair"), CASES)
def test_losses_of_all_histograms(rows, others, pair, side):
    laws = PairLaws(experiment_of(rows, others, pair), side)
    found = list(drawn_histograms(laws))
    histograms = np.array([histogram for histogram, _, _ in found], dtype=np.float64)
    expected = np.array([exact_loss(p, q) for _, p, q in found])
    losses = laws.losses(histograms)
    infinite = np.isinf(expected)
    assert_allclose(losses[infinite], expected[infinite])
    zero = expected == 0.0
    assert np.abs(losses[zero]).max(initial=0.0) < KERNEL_SUM
    rest = ~infinite & ~zero
    assert_allclose(losses[rest], expected[rest], rtol=5 * KERNEL_SUM, atol=0)


def loss_by_assignments(rows, senders, pair, histogram):
    """Sum over who sent which of the messages, listed one by one; for few users only."""
    messages = [y for y, count in enumerate(histogram) for _ in range(count)]
    laws = []
    for own in pair[::-1]:
        held = [rows[x] for x in (*senders, own)]
        orders = set(itertools.permutations(messages))
        factors = (
            math.prod(row[y] for row, y in zip(held, order, strict=True)) for order in orders
        )
        laws.append(math.fsum(factors))
    return laws[0] / laws[1]


@pytest.mark.parametrize(("outputs", "inputs"), [(6, 6), (7, 6), (6, 7)])
def test_losses_with_many_variables(outputs, inputs):
    """Of so many the transform is cut at a millionth of n**(-1/2)."""
    rows = np.random.default_rng(9).dirichlet(np.ones(outputs), inputs)
    laws = PairLaws(experiment_of(rows, dict.fromkeys(range(inputs), 1), (0, 1)), "forward")
    assert isinstance(laws.method, ByLabels if inputs <= outputs else ByOutputs)
    held = [row for _, row in laws.held]
    rows = [laws.opposite.tolist(), laws.own.tolist(), *(row.tolist() for row in held)]
    senders = range(2, 2 + inputs)
    for start in ([1] * (inputs + 1), [2, 2, *[1] * (inputs - 3)], [inputs - 1, 1, 0, 1]):
        histogram = (start + [0] * outputs)[:outputs]
        histogram[-1] += inputs + 1 - sum(histogram)
        losses = laws.losses(np.array([histogram], dtype=np.float64))
        expected = loss_by_assignments(rows, senders, (0, 1), histogram)
        assert_allclose(np.exp(losses[0]), expected, rtol=1e-6, atol=0)


def test_ways_to_a_loss_agree_at_many_users():
    """k-ary randomized response, 10**5 users over 4 inputs: labels, outputs, the common part."""
    rng = np.random.default_rng(8)
    k_rr = fs.k_randomized_response(1.0, 4).merged((0, 1, 2, 3)).rows
    rows = np.ascontiguousarray(k_rr)
    holders = np.array([40_000.0, 30_000.0, 20_000.0, 9_999.0])
    weights = np.stack([rows[1], rows[0], rows[1] - rows[0]])
    common = loss_method(weights, rows, holders)
    assert isinstance(common, ByCommonPart)
    mean = holders @ rows / holders.sum()
    shares = np.ascontiguousarray(((holders / holders.sum())[:, np.newaxis] * rows / mean).T)
    others = [
        ByLabels(shares, holders, np.ascontiguousarray((weights / mean).T), 30.0),
        ByOutputs(rows, holders, np.ascontiguousarray(weights.T), 30.0),
    ]
    histograms = sum(rng.multinomial(int(c), row, 5) for c, row in zip(holders, rows, strict=True))
    histograms = 1.0 * histograms + rng.multinomial(1, rows[1], 5)
    losses = common(histograms)
    for other in others:
        assert_allclose(np.expm1(other(histograms)), np.expm1(losses), rtol=1e-9, atol=0)


def test_ten_inputs_of_k_ary_randomized_response_at_any_n():
    k_rr = fs.k_randomized_response(2.0, 10)
    for users in (1, 10**4, 2**40):
        experiment = fs.ShuffleExperiment(
            k_rr, 1 + 10 * users, others=dict.fromkeys(range(10), users), pair=(0, 1)
        )
        laws = PairLaws(experiment, "forward")
        assert isinstance(laws.method, ByCommonPart)
        histograms = np.full((3, 10), float(users))
        histograms[0, 0] += 1.0
        histograms[1, 1] += 1.0
        histograms[2, 2] += 1.0
        losses = laws.losses(histograms)
        # the two inputs are exchanged between the first two, and equal in the third
        assert_allclose(losses[0], -losses[1], rtol=1e-4, atol=0)
        assert losses[1] > 0.0
        assert abs(losses[2]) < 1e-9 * losses[1] + 1e-15


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(("rows", "others", "pair"), CASES)
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5, 1.5])
def test_half_spaces_contain_all_larger_losses(rows, others, pair, side, epsilon):
    laws = PairLaws(experiment_of(rows, others, pair), side)
    spaces = half_spaces(laws, epsilon)
    same = set(others) <= set(pair)
    assert bool(spaces) == (len(laws.held) == 1 or same)
    for histogram, p, q in drawn_histograms(laws):
        loss = exact_loss(p, q)
        if not loss > epsilon:
            continue
        excess = -math.expm1(epsilon - loss)
        excess *= laws.scales(np.array([histogram], dtype=np.float64))[0]
        for scores, threshold, gain, largest in spaces:
            total = float(np.array(histogram) @ scores)
            assert excess <= largest * (1.0 + 1e-12)
            assert total >= (threshold + gain * excess) - 1e-12 * (1.0 + abs(threshold))


def test_half_spaces_of_all_small_compositions():
    rng = np.random.default_rng(5)
    for _ in range(12):
        d, n = int(rng.integers(2, 4)), int(rng.integers(2, 7))
        rows = rng.dirichlet(np.full(d, 0.7), 2)
        rows = (np.round(rows * 64) + 1) / (64 + d)
        rows[:, -1] = 1.0 - rows[:, :-1].sum(axis=1)
        for k in range(n):
            others = {x: c for x, c in ((0, n - 1 - k), (1, k)) if c}
            case = (tuple(map(tuple, rows.tolist())), others, (0, 1))
            for epsilon in (0.0, 0.3):
                for side in SIDES:
                    test_half_spaces_contain_all_larger_losses(*case, side, epsilon)


@pytest.mark.parametrize("side", SIDES)
def test_the_largest_term_is_no_larger_than_its_bound(side):
    rows, others, pair = THREE, {0: 3, 1: 2}, (0, 1)
    laws = PairLaws(experiment_of(rows, others, pair), side)
    for epsilon in (0.0, 0.2, 0.6):
        for space in half_spaces(laws, epsilon):
            tilt = best_tilt(laws, space)
            largest = 0.0
            for histogram, p, q in drawn_histograms(laws):
                term = max(0.0, -math.expm1(epsilon - exact_loss(p, q)))
                weight = math.exp(tilt.log_normalizer - float(np.array(histogram) @ tilt.exponents))
                largest = max(largest, term * weight)
            assert largest <= math.exp(tilt.log_bound) * (1.0 + 1e-12)
            # and the bound is of some use
            assert largest >= 0.05 * math.exp(tilt.log_bound)


def test_losses_at_a_million_users_by_another_formula():
    """exp(L) is (k + 1) / k times the ratio of the masses of k + 1 and k labels."""
    n, k = 10**6, 400_000
    experiment = fs.ShuffleExperiment(fs.Randomizer(THREE[:2]), n, k=k)
    laws = PairLaws(experiment, "forward")
    rng = np.random.default_rng(2)
    histograms = 1.0 * rng.multinomial(n - k, laws.opposite, 50) + rng.multinomial(k, laws.own, 50)
    losses = laws.losses(histograms)
    shares = k * laws.own / (k * laws.own + (n - k) * laws.opposite)
    for histogram, loss in zip(histograms, losses, strict=True):
        groups = np.array(
            [
                [count, t, 1.0 - t, math.log(t), math.log1p(-t)]
                for count, t in zip(histogram.tolist(), shares.tolist(), strict=True)
            ]
        )
        ratio = log_mass(k + 1.0, groups) - log_mass(float(k), groups)
        assert_allclose(loss, ratio + math.log1p(1.0 / k), rtol=0, atol=1e-12)


def test_the_cost_of_a_loss_is_bounded_at_any_n():
    rows, others = THREE, {0: 2**39, 1: 2**39}
    laws = PairLaws(experiment_of(rows, others, (0, 1)), "forward")
    mean = sum(count * row for count, row in laws.held)
    losses = laws.losses(np.floor(mean) + np.array([[0.0, 0.0, 0.0], [-1e6, 0.0, 1e6]]))
    assert (np.abs(losses) < 1e-5).all()
    assert losses[0] != losses[1]


@pytest.mark.jit_free
def test_series_of_small_arguments():
    for x in (-0.0039, 1e-9, 0.0039, 0.3, -0.4):
        assert_allclose(log_one_plus(x), math.log1p(x), rtol=FEW_ROUNDINGS, atol=0)
    for sine, cosine in ((0.06, 0.99), (-1e-9, 1.0), (0.5, 0.2), (0.3, -0.4), (0.0, 1.0)):
        assert_allclose(arc(sine, cosine), math.atan2(sine, cosine), rtol=FEW_ROUNDINGS, atol=0)


@pytest.mark.jit_free
def test_solve_positive():
    rng = np.random.default_rng(4)
    for size in (1, 2, 4):
        root = rng.normal(size=(size, size + 2))
        matrix = np.ascontiguousarray(root @ root.T)
        right, solution = rng.normal(size=size), np.empty(size)
        expected = np.linalg.solve(matrix, right)
        solve_positive(matrix.copy(), right, solution)
        assert_allclose(solution, expected, rtol=1e3 * DOZEN_ROUNDINGS, atol=0)


class TestRefusals:
    def test_too_many_inputs_and_outputs(self):
        rows = np.random.default_rng(1).dirichlet(np.ones(9), 9)
        experiment = experiment_of(rows, dict.fromkeys(range(9), 1), (0, 1))
        with pytest.raises(ValueError, match="at most 7 inputs .* got 9 rows and 9 groups"):
            PairLaws(experiment, "forward")

    def test_groups_beyond_what_numpy_draws(self):
        experiment = fs.ShuffleExperiment(fs.binary_randomized_response(1.0), 2**50, k=0)
        with pytest.raises(ValueError, match=r"at most 2\*\*48 times for a simulation, got"):
            PairLaws(experiment, "reverse")

    def test_probabilities_that_underflow(self):
        experiment = fs.ShuffleExperiment(fs.k_randomized_response(800.0, 3), 5, k=1)
        with pytest.raises(ValueError, match="probabilities must be at least 1e-308"):
            PairLaws(experiment, "forward")
