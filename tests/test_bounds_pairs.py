"""One pair of inputs of each kind, and the largest of many bounds without evaluating them all."""

import itertools
import math

import numpy as np
import pytest
from mpmath import mp, mpf
from numpy.testing import assert_allclose

import fastshuffle as fs
from fastshuffle.bounds.blanket import blanket_laws
from fastshuffle.bounds.clones import OutsideClassError
from fastshuffle.bounds.largest import ChernoffBounds, LargestCurve
from fastshuffle.cli import methods

pytestmark = pytest.mark.filterwarnings("ignore::fastshuffle.DeltaWarning")

SYMMETRIC = [
    fs.k_randomized_response(2.0, 2),
    fs.k_randomized_response(2.0, 5),
    fs.symmetric_unary_encoding(1.0, 4),
    fs.optimized_unary_encoding(3.0, 6),
    fs.rappor(4, f=0.5, p=0.3, q=0.6),
    fs.subset_selection(1.0, 6, omega=2),
    fs.binary_local_hashing(1.0, 5),
    fs.optimized_local_hashing(2.0, 4),
]
HADAMARD = [
    fs.hadamard_response(epsilon0, k) for epsilon0, k in [(0.5, 2), (0.5, 7), (2.0, 9), (4.0, 11)]
]
DENSE = fs.Randomizer(
    [[0.5, 0.3, 0.2], [0.2, 0.35, 0.45], [0.35, 0.25, 0.4], [0.4, 0.4, 0.2], [0.3, 0.3, 0.4]]
)
ZEROS = fs.Randomizer([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.2, 0.3, 0.5]])
LEVELS = fs.discrete_laplace(1.5, 4)


def columns(randomizer, pair):
    """Return the columns of the shared rows in an order of their own, equal ratios merged."""
    rows = randomizer.shared_rows(pair)
    rows = rows[:, rows.sum(axis=0) > 0.0]
    ratios = np.round(rows / rows.sum(axis=0), 9)
    merged = {}
    for ratio, column in zip(ratios.T, rows.T, strict=True):
        merged[tuple(ratio)] = merged.get(tuple(ratio), 0.0) + column
    return np.array([merged[key] for key in sorted(merged)])


class TestRepresentativePairs:
    @pytest.mark.parametrize("randomizer", [*SYMMETRIC, *HADAMARD], ids=repr)
    def test_every_pair_is_of_the_kind_of_one(self, randomizer):
        kinds = [columns(randomizer, pair) for pair in randomizer.representative_pairs()]
        for pair in itertools.permutations(range(randomizer.n_inputs), 2):
            found = columns(randomizer, pair)
            assert any(
                found.shape == kind.shape and np.allclose(found, kind, rtol=1e-13, atol=0.0)
                for kind in kinds
            ), pair

    @pytest.mark.parametrize("randomizer", SYMMETRIC, ids=repr)
    def test_inputs_alike_need_one_pair(self, randomizer):
        assert randomizer.representative_pairs() == ((0, 1),)

    @pytest.mark.parametrize("randomizer", HADAMARD, ids=repr)
    def test_blocks_need_two_pairs_at_most(self, randomizer):
        pairs = randomizer.representative_pairs()
        assert len(pairs) == 1 + (1 < randomizer.block_size - 1 < randomizer.n_inputs)
        assert all(max(pair) < randomizer.n_inputs for pair in pairs)

    def test_a_matrix_needs_all(self):
        expected = set(itertools.permutations(range(DENSE.n_inputs), 2))
        assert set(DENSE.representative_pairs()) == expected

    @pytest.mark.parametrize("randomizer", [LEVELS, fs.laplace(1.0, 4)], ids=repr)
    def test_noise_on_an_interval_needs_one_of_two_reflections(self, randomizer):
        pairs = randomizer.representative_pairs()
        reflected = {(3 - a, 3 - b) for a, b in pairs}
        assert set(pairs) | reflected == set(itertools.permutations(range(4), 2))
        assert not set(pairs) & reflected


class TestLargest:
    @pytest.mark.parametrize("randomizer", [DENSE, LEVELS, HADAMARD[2]], ids=repr)
    @pytest.mark.parametrize("bound", [fs.blanket_profile, fs.chernoff_profile])
    def test_all_pairs_are_the_largest_of_single_pairs(self, randomizer, bound):
        worst = bound(randomizer, 50)
        pairs = itertools.permutations(range(randomizer.n_inputs), 2)
        single = [bound(randomizer, 50, pair=pair) for pair in pairs]
        for epsilon in (0.02, 0.5):
            expected = max(p.log_delta(epsilon, direction="forward") for p in single)
            # a mechanism that treats inputs alike adds its columns in another order
            assert_allclose(worst.log_delta(epsilon), expected, rtol=1e-10, atol=0.0)
            for direction in ("forward", "reverse"):
                assert worst.log_delta(epsilon, direction=direction) == worst.log_delta(epsilon)

    def test_only_few_curves_are_evaluated(self):
        rows = np.random.default_rng(3).dirichlet(np.full(5, 4.0), 12)
        randomizer = fs.Randomizer(rows / rows.sum(axis=1, keepdims=True))
        laws = blanket_laws(randomizer, randomizer.representative_pairs())
        evaluated = []

        def counted(law):
            curve = law.curve(1e-3)

            def log_bracket(epsilon):
                evaluated.append(epsilon)
                return curve.log_bracket(epsilon)

            return fs.bracket.Curve(log_bracket, curve.loss, curve.rtol)

        largest = LargestCurve(laws, 10_000, counted)
        epsilon = largest.curve().epsilon(math.log(1e-8))
        evaluated.clear()
        value, place = largest.at(epsilon)
        assert len(laws) == 132
        assert 1 <= len(evaluated) <= 6
        uppers = [law.among(10_000).curve(1e-3).at(epsilon).upper for law in laws]
        assert value == max(uppers) == uppers[place]

    def test_inputs_told_apart_by_few_outputs(self):
        # min_x W_x is (0, 0.3, 0): nearly all of the divergence lies outside of the background
        assert fs.blanket_profile(ZEROS, 10_000).delta(0.5) <= 0.5 * (1.0 + 1e-3)


def log_chernoff(law, n, epsilon):
    """Return the log of the Chernoff bound from its definition, its tilt by ternary search."""
    with mp.workdps(40):
        growth = mp.exp(mpf(epsilon))
        rows = [[mpf(float(x)) for x in row] for row in (law.background, law.alternative, law.null)]
        inside = [(b, (p - growth * q) / b) for b, p, q in zip(*rows, strict=True) if b > 0]
        clear = sum(max(p - growth * q, 0) for b, p, q in zip(*rows, strict=True) if b == 0)
        revealed = 1 - sum(b for b, _ in inside)
        if max(r for _, r in inside) <= 0:
            return float(mp.log(clear))

        def log_bound(log_tilt):
            mean = revealed + sum(b * mp.exp(mp.exp(log_tilt) * r) for b, r in inside)
            return n * mp.log(mean) - 1 - log_tilt - mp.log(n)

        low, high = mpf(-30), mpf(5)
        while high - low > 1e-12:
            third = (high - low) / 3
            if log_bound(low + third) < log_bound(high - third):
                high -= third
            else:
                low += third
        return float(mp.log(clear + mp.exp(log_bound(low))))


class TestChernoffBounds:
    @pytest.mark.parametrize("n", [1, 7, 10**9])
    def test_against_the_definition(self, n):
        laws = [
            law
            for randomizer in (DENSE, ZEROS, SYMMETRIC[3])
            for law in blanket_laws(randomizer, randomizer.representative_pairs())
        ][::4]
        bounds = ChernoffBounds(laws, n)
        for epsilon in (0.0, 0.3):
            for law, value in zip(laws, bounds.at(epsilon).tolist(), strict=True):
                if epsilon >= law.loss:
                    assert value == -math.inf
                    continue
                least = log_chernoff(law, n, epsilon)
                assert value >= least
                assert value <= least + 2e-4 + 1e-9 * abs(least)

    @pytest.mark.parametrize("n", [2, 300])
    def test_never_below_the_bracket(self, n):
        rows = np.random.default_rng(5).dirichlet(np.full(6, 0.1), 4) + 1e-30
        randomizer = fs.Randomizer(rows / rows.sum(axis=1, keepdims=True))
        laws = blanket_laws(randomizer, randomizer.representative_pairs())
        bounds = ChernoffBounds(laws, n)
        for epsilon in (0.0, 0.1, 2.0, 30.0, 710.0):
            for law, value in zip(laws, bounds.at(epsilon), strict=True):
                lower = law.among(n).curve(1e-3).at(epsilon).lower
                assert value >= lower

    def test_overflow_claims_nothing(self):
        law = blanket_laws(ZEROS, [(0, 1)])[0]._replace(background=np.array([5e-324, 0.3, 0.0]))
        (value,) = ChernoffBounds([law], 10).at(300.0)
        assert value == math.inf or value >= math.log(0.5)


class TestRefusals:
    def test_a_class_of_its_own(self):
        with pytest.raises(OutsideClassError, match="randomizer must satisfy"):
            fs.stronger_clone_profile(fs.binary_local_hashing(1.0, 9), 100)
        assert issubclass(OutsideClassError, fs.UnsupportedSettingError)
        assert issubclass(fs.UnsupportedSettingError, ValueError)

    def test_too_many_inputs(self):
        with pytest.raises(fs.UnsupportedSettingError, match="at most 64 inputs"):
            fs.blanket_profile(fs.discrete_laplace(1.0, 100), 100)

    def test_the_command_line_hides_no_other_error(self, monkeypatch):
        def broken(*_):
            raise ValueError("a mistake in the program")

        monkeypatch.setitem(methods._METHODS, "clones", broken)
        with pytest.raises(ValueError, match="a mistake in the program"):
            methods.outcomes(methods.Setting(fs.k_randomized_response(1.0, 3), 10), 1e-3)
