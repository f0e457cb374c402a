"""The worst case of randomizers with more than two outputs: its bracket and its dataset."""

import itertools
import json
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fastshuffle as fs
from fastshuffle.exact.general_worst_case import GeneralWorstCase
from tests.brackets import assert_between, exp_fraction
from tests.tolerances import FEW_ROUNDINGS
from validation.reference.exact import histogram_pair, hockey_stick, trade_off, worst_composition

pytestmark = pytest.mark.filterwarnings("ignore::fastshuffle.DeltaWarning")

DEFAULT = 1e-3

# asymmetric, with three and four outputs, and with zeros; exact in binary
MATRICES = {
    "two inputs": ((0.5, 0.25, 0.25), (0.25, 0.1875, 0.5625)),
    "three inputs": ((0.5, 0.25, 0.25), (0.25, 0.25, 0.5), (0.125, 0.625, 0.25)),
    "four outputs": ((0.5, 0.25, 0.125, 0.125), (0.125, 0.375, 0.25, 0.25)),
    "four inputs": (
        (0.5, 0.25, 0.25), (0.375, 0.25, 0.375), (0.25, 0.5, 0.25), (0.0625, 0.5, 0.4375),
    ),
    "a zero": ((0.5, 0.5, 0.0), (0.25, 0.25, 0.5), (0.375, 0.5, 0.125)),
    "zeros": ((0.75, 0.25, 0.0), (0.0, 0.25, 0.75), (0.25, 0.5, 0.25)),
}  # fmt: skip
EPSILONS = (0.0, 0.11, 0.45, 1.3)


@cache
def truth_of(name, n, epsilon):
    rows = [[Fraction(p) for p in row] for row in MATRICES[name]]
    return worst_composition(rows, n, exp_fraction(epsilon))[0]


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("name", MATRICES)
class TestEveryDataset:
    def test_bracket(self, name, n):
        curve = fs.worst_case_profile(fs.Randomizer(MATRICES[name]), n)
        assert isinstance(curve, GeneralWorstCase)
        for epsilon in EPSILONS:
            lower, upper = curve.bounds(epsilon)
            assert_between(lower, upper, truth_of(name, n, epsilon))
            assert upper == curve.delta(epsilon)

    def test_the_dataset_it_names(self, name, n):
        """Its delta, in its direction, is the lower end; the others all hold one input."""
        rows = [[Fraction(p) for p in row] for row in MATRICES[name]]
        randomizer = fs.Randomizer(MATRICES[name])
        curve = fs.worst_case_profile(randomizer, n)
        for epsilon in EPSILONS:
            found = curve.argmax(epsilon)
            experiment = found.experiment
            assert experiment.randomizer == randomizer
            assert experiment.n == n
            assert len(experiment.others) <= 1
            law_q, law_p = histogram_pair(rows, experiment.others, experiment.pair)
            first, second = (law_p, law_q) if found.direction == "forward" else (law_q, law_p)
            value = float(hockey_stick(first, second, exp_fraction(epsilon)))
            lower, _ = curve.bounds(epsilon)
            assert value * (1.0 - 2.0 * DEFAULT) <= lower <= value * (1.0 + FEW_ROUNDINGS)

    def test_epsilon_is_safe(self, name, n):
        curve = fs.worst_case_profile(fs.Randomizer(MATRICES[name]), n)
        for delta in (0.3, 0.01, 1e-6):
            epsilon = curve.epsilon(delta)
            if epsilon < math.inf:
                assert curve.delta(epsilon) <= delta
                assert float(truth_of(name, n, epsilon)) <= delta * (1.0 + FEW_ROUNDINGS)


@pytest.mark.parametrize("name", ["two inputs", "a zero"])
def test_trade_off_is_below_every_test(name):
    n = 3
    rows = [[Fraction(p) for p in row] for row in MATRICES[name]]
    curve = fs.worst_case_profile(fs.Randomizer(MATRICES[name]), n)
    laws = [
        histogram_pair(rows, {x: held.count(x) for x in set(held)}, pair)
        for held in itertools.combinations_with_replacement(range(len(rows)), n - 1)
        for pair in itertools.permutations(range(len(rows)), 2)
    ]
    for alpha in (0.05, 0.4, 1.0):
        least = float(min(trade_off(law_p, law_q, Fraction(alpha)) for law_q, law_p in laws))
        value = curve.trade_off(alpha)
        assert 0.0 <= value <= least * (1.0 + FEW_ROUNDINGS)
    assert curve.trade_off(0.4, direction="reverse") == curve.trade_off(0.4)


def matrix_of_krr(epsilon0, k):
    flip = 1.0 / (math.exp(epsilon0) + k - 1.0)
    return fs.Randomizer(
        [[math.exp(epsilon0) * flip if y == x else flip for y in range(k)] for x in range(k)]
    )


def matrix_of_bits(p, q, k):
    """Return unary encoding: bit y is 1 with probability p where y is the input, and else q."""
    rows = []
    for x in range(k):
        chances = [p if y == x else q for y in range(k)]
        rows.append(
            [
                math.prod(c if bit else 1.0 - c for c, bit in zip(chances, bits, strict=True))
                for bits in itertools.product((0, 1), repeat=k)
            ]
        )
    return fs.Randomizer(rows)


def matrix_of_subsets(epsilon0, k, omega):
    subsets = list(itertools.combinations(range(k), omega))
    rows = [[math.exp(epsilon0) if x in s else 1.0 for s in subsets] for x in range(k)]
    return fs.Randomizer([[p / math.fsum(row) for p in row] for row in rows])


def half_unary(epsilon0):
    return 1.0 / (1.0 + math.exp(-0.5 * epsilon0))


SYMMETRIC = {
    "krr": (fs.k_randomized_response(1.5, 5), matrix_of_krr(1.5, 5)),
    "sue": (fs.symmetric_unary_encoding(2.0, 3), matrix_of_bits(half_unary(2), half_unary(-2), 3)),
    "oue": (fs.optimized_unary_encoding(1.0, 4), matrix_of_bits(0.5, 1 / (1 + math.e), 4)),
    "subset": (fs.subset_selection(1.0, 5, omega=2), matrix_of_subsets(1.0, 5, 2)),
}


@pytest.mark.parametrize("name", SYMMETRIC)
@pytest.mark.parametrize("n", [1, 6, 300])
def test_representatives_stand_for_the_full_matrix(name, n):
    mechanism, matrix = SYMMETRIC[name]
    short, full = (fs.worst_case_profile(w, n, rtol=1e-6) for w in (mechanism, matrix))
    assert_allclose(short.epsilon(0.0), full.epsilon(0.0), rtol=1e-13, atol=0)
    for epsilon in (0.0, 0.15):
        ends = [curve.bounds(epsilon) for curve in (short, full)]
        # below the blanket may be what all bit strings share, but for a message of all inputs
        assert ends[0][1] >= ends[1][1] * (1.0 - 3e-6)
        assert_allclose(ends[0][0], ends[1][0], rtol=3e-6, atol=0)
        assert ends[0][0] <= ends[0][1]
        # no input of the others loses more
        best = max(
            fs.exact_profile(
                fs.ShuffleExperiment(matrix, n, others={z: n - 1}, pair=(0, 1)), rtol=1e-6
            ).bounds(epsilon)[0]
            for z in range(matrix.n_inputs)
        )
        assert ends[0][0] >= best * (1.0 - 3e-6)


@pytest.mark.parametrize("k", [3, 10, 10**6])
def test_the_worst_dataset_of_krr_is_a_third_input(k):
    curve = fs.worst_case_profile(fs.k_randomized_response(2.0, k), 10**4)
    found = curve.argmax(0.01)
    [third] = found.experiment.others
    assert third not in found.experiment.pair


class TestGap:
    @pytest.mark.parametrize("epsilon0", [1.0, 4.0])
    def test_it_shrinks_as_n_grows(self, epsilon0):
        """By a power of n, down to the width of the two brackets."""
        krr = fs.k_randomized_response(epsilon0, 10)
        rtol = 1e-5
        gaps = []
        for n in (10**3, 10**4, 10**5, 10**6):
            curve = fs.worst_case_profile(krr, n, rtol=rtol)
            lower, upper = curve.bounds(curve.epsilon(1e-8))
            gaps.append(upper / lower - 1.0)
        for larger, smaller in itertools.pairwise(gaps):
            assert smaller < max(0.7 * larger, 3.0 * rtol)
        assert gaps[-1] < 0.02

    def test_one_user(self):
        """Alone the blanket hides nothing, and is exact."""
        for name, rows in MATRICES.items():
            curve = fs.worst_case_profile(fs.Randomizer(rows), 1)
            for epsilon in (0.0, 0.2):
                lower, upper = curve.bounds(epsilon)
                assert_allclose(lower, float(truth_of(name, 1, epsilon)), rtol=1e-9, atol=0)
                assert_allclose(upper, lower, rtol=1e-9, atol=0)


def test_case_43_ten_symbols():
    """The others all at a third symbol: a lower end, with the upper end close above."""
    for epsilon0, n, truth in ((1.0, 10**4, 0.030916127897), (4.0, 10**5, 0.14035541077)):
        curve = fs.worst_case_profile(fs.k_randomized_response(epsilon0, 10), n, rtol=1e-6)
        lower, upper = curve.bounds(truth)
        assert_allclose(lower, 1e-8, rtol=2e-6, atol=0)
        assert 1e-8 * (1.0 - 1e-9) <= upper <= 1.2e-8
        epsilon = curve.epsilon(1e-8)
        assert truth * (1.0 - 1e-10) <= epsilon <= 1.01 * truth


def test_both_directions_are_one_number():
    curve = fs.worst_case_profile(fs.Randomizer(MATRICES["three inputs"]), 50)
    epsilons = np.array([[0.0, 0.1], [0.5, 2.0]])
    both = curve.delta(epsilons)
    assert both.shape == (2, 2)
    for direction in ("forward", "reverse"):
        assert curve.delta(epsilons, direction=direction).tolist() == both.tolist()
        assert curve.epsilon(1e-5, direction=direction) == curve.epsilon(1e-5)


def test_ends_of_the_curve():
    randomizer = fs.Randomizer(MATRICES["three inputs"])
    curve = fs.worst_case_profile(randomizer, 40)
    assert curve.epsilon(0.0) == randomizer.epsilon0
    assert curve.delta([randomizer.epsilon0, 9.0, math.inf]).tolist() == [0.0, 0.0, 0.0]
    total = curve.total_variation()
    assert curve.epsilon([min(1.0, total), 1.0]).tolist() == [0.0, 0.0]
    infinite = fs.worst_case_profile(fs.Randomizer(MATRICES["zeros"]), 40)
    assert infinite.epsilon(0.0) == math.inf
    lower, upper = infinite.bounds(math.inf)
    # a message that one input sends never: the blanket holds it neither
    assert 0.0 < lower <= upper <= 0.75 * (1.0 + 1e-9)


@pytest.mark.parametrize("rtol", [1e-6, 0.1])
def test_rtol_is_the_width_of_either_end(rtol):
    randomizer = fs.Randomizer(MATRICES["two inputs"])
    curve = fs.worst_case_profile(randomizer, 200, rtol=rtol)
    fine = fs.worst_case_profile(randomizer, 200, rtol=1e-8)
    for epsilon in (0.0, 0.1, 0.3):
        (lower, upper), (best, blanket) = curve.bounds(epsilon), fine.bounds(epsilon)
        assert best * (1.0 - rtol - 1e-7) <= lower <= best * (1.0 + 1e-7)
        assert blanket * (1.0 - 1e-7) <= upper <= blanket * (1.0 + rtol + 1e-7)


def test_what_it_says_of_itself():
    curve = fs.worst_case_profile(fs.Randomizer(MATRICES["a zero"]), 30)
    assert curve.validity is fs.Validity.UPPER_BOUND
    assert curve.n == 30
    assert "blanket" in curve.method
    assert "1903.02837" in curve.source
    for word in ("30 (including", "UPPER_BOUND", "replace-one"):
        assert word in curve.describe()
    content = json.loads(curve.to_json(epsilon=[0.0, 1.0], delta=[0.0, 1e-3]))
    assert content["setting"]["datasets"] == "all pairs of neighbouring datasets"
    assert content["guarantees"][0]["epsilon"] == "inf"
    assert content["curve"][1]["delta"] == curve.delta(1.0)


def test_refusals():
    many = [[0.5, 0.3, 0.2], *[[0.2, 0.3, 0.5]] * 64]
    with pytest.raises(ValueError, match="at most 64 inputs"):
        fs.worst_case_profile(fs.Randomizer(many), 10)
    curve = fs.worst_case_profile(fs.Randomizer(MATRICES["two inputs"]), 10)
    for bad in (-0.1, math.nan):
        with pytest.raises(ValueError, match="epsilon must be >= 0"):
            curve.argmax(bad)
    with pytest.raises(ValueError, match=r"rtol must be in \[1e-9, 0.5\]"):
        fs.worst_case_profile(fs.Randomizer(many[:3]), 10, rtol=0.6)
