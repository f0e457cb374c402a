"""The universal bounds: above every dataset at small n, near what they bound, and never silent."""

import itertools
import math
import time
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from mpmath import mp, mpf

import fastshuffle as fs
from tests.brackets import assert_above, exp_fraction, number, stored
from tests.tolerances import BRACKET_ROUNDING, FEW_ROUNDINGS
from validation.reference import mp as reference
from validation.reference.exact import hockey_stick, trade_off

pytestmark = pytest.mark.filterwarnings("ignore::fastshuffle.DeltaWarning")

DIRECTIONS = ("forward", "reverse")
FROZEN = stored("homogeneous")["entries"]
STORED = stored("bounds")
SHARES = (0.0, 0.15, 0.5, 0.9)


# ---- Every dataset ----------------------------------------------------------------------------


def with_one_more(law, row):
    longer = {}
    for histogram, mass in law.items():
        for y, p in enumerate(row):
            if p:
                key = (*histogram[:y], histogram[y] + 1, *histogram[y + 1 :])
                longer[key] = longer.get(key, 0) + mass * p
    return longer


@cache
def datasets(rows, n):
    """Return, for what the others may hold, the laws when the differing user holds each input."""
    found = []
    for held in itertools.combinations_with_replacement(range(len(rows)), n - 1):
        law = {(0,) * len(rows[0]): Fraction(1)}
        for x in held:
            law = with_one_more(law, rows[x])
        found.append([with_one_more(law, row) for row in rows])
    return found


@cache
def worst(rows, n, epsilon, pairs=None):
    """Return the largest delta over all datasets and ordered pairs, as a fraction."""
    factor = exp_fraction(epsilon)
    chosen = pairs or tuple(itertools.permutations(range(len(rows)), 2))
    return max(
        hockey_stick(laws[b], laws[a], factor) for laws in datasets(rows, n) for a, b in chosen
    )


def in_fractions(rows):
    return tuple(tuple(Fraction(p) for p in row) for row in np.asarray(rows).tolist())


def random_matrices():
    rng = np.random.default_rng(7)
    found = {}
    for n, n_inputs, n_outputs in (
        (1, 2, 3), (2, 3, 4), (3, 3, 3), (4, 2, 4), (4, 4, 3), (5, 2, 3), (6, 3, 2), (6, 2, 3),
    ):  # fmt: skip
        counts = 1 + rng.multinomial(64 - n_outputs, rng.dirichlet(np.ones(n_outputs)), n_inputs)
        found[f"random-{n_inputs}x{n_outputs}-n={n}"] = fs.Randomizer(counts / 64.0), n
    return found


CASES = {
    **random_matrices(),
    "krr-3": (fs.k_randomized_response(1.0, 3), 5),
    "krr-5": (fs.k_randomized_response(2.0, 5), 3),
    "rr": (fs.binary_randomized_response(2.0), 6),
    "asymmetric": (fs.asymmetric_randomized_response(p=0.9, q=0.3), 6),
    "sue": (fs.symmetric_unary_encoding(2.0, 2), 4),
    "sue-3": (fs.symmetric_unary_encoding(1.0, 3), 2),
    "oue": (fs.optimized_unary_encoding(2.0, 2), 4),
    "oue-3": (fs.optimized_unary_encoding(3.0, 3), 2),
    "rappor": (fs.rappor(3, f=0.5, p=0.25, q=0.75), 2),
    "rappor-reversed": (fs.rappor(3, f=0.25, p=0.75, q=0.125), 2),
    "subset": (fs.subset_selection(1.0, 4, omega=2), 3),
    "hadamard": (fs.hadamard_response(2.0, 3), 3),
    "blh": (fs.binary_local_hashing(1.0, 3), 3),
    "olh": (fs.optimized_local_hashing(2.0, 3), 2),
    "discrete-laplace": (fs.discrete_laplace(2.0, 4), 3),
    "discretized-laplace": (fs.discretized_laplace(1.0, 4), 3),
    "discretized-gaussian": (fs.discretized_gaussian(0.5, 3), 4),
}


def all_rows(randomizer):
    return in_fractions(randomizer.merged_rows(range(randomizer.n_inputs)))


def assert_covers(value, truth):
    """Not below the truth, whose rows are the doubles of the package, but for their rounding."""
    assert value >= min(float(truth) * (1.0 - 1e-12), 1.0)
    assert value <= 1.0


@pytest.mark.parametrize("epsilon0", [700.0, 709.0, 715.0, 720.0, 740.0, 744.0, 745.0])
@pytest.mark.parametrize(
    "mechanism_of",
    [
        lambda e: fs.k_randomized_response(e, 5),
        lambda e: fs.subset_selection(e, 8, omega=2),
    ],
)
def test_probabilities_that_are_no_normal_double(mechanism_of, epsilon0):
    """Losses taken from rounded rows gave .36 for .63 at epsilon0 = 745: no bound at all."""
    randomizer = mechanism_of(epsilon0)
    # nobody sends a message of anybody else's: the local curve, for any n
    local = fs.worst_case_profile(mechanism_of(50.0), 1).delta(49.0)
    blanket = fs.blanket_profile(randomizer, 1000)
    assert local * (1.0 - 1e-9) <= blanket.delta(epsilon0 - 1.0) <= 1.0
    assert fs.worst_case_profile(randomizer, 1000).delta(epsilon0 - 1.0) >= local * (1.0 - 1e-9)


@pytest.mark.parametrize("name", CASES)
class TestEveryDataset:
    @pytest.mark.parametrize(
        "bound", [fs.blanket_profile, fs.chernoff_profile, fs.worst_case_profile]
    )
    def test_bounds_of_a_randomizer(self, name, bound):
        randomizer, n = CASES[name]
        rows, curve = all_rows(randomizer), bound(randomizer, n)
        for share in SHARES:
            epsilon = share * randomizer.epsilon0
            truth = worst(rows, n, epsilon)
            assert_covers(curve.delta(epsilon), truth)
            lower, upper = curve.bounds(epsilon)
            assert lower <= float(truth) * (1.0 + 1e-12)
            assert upper == curve.delta(epsilon)

    def test_bounds_by_epsilon0(self, name):
        randomizer, n = CASES[name]
        rows, curve = all_rows(randomizer), fs.clone_profile(randomizer.epsilon0, n)
        try:
            stronger = fs.stronger_clone_profile(randomizer, n)
        except ValueError:
            stronger = curve
        for share in SHARES:
            epsilon = share * randomizer.epsilon0
            truth = worst(rows, n, epsilon)
            assert_covers(curve.delta(epsilon), truth)
            assert_covers(stronger.delta(epsilon), truth)
            assert stronger.delta(epsilon) <= curve.delta(epsilon) * (1.0 + 1e-5)

    def test_one_pair_in_each_direction(self, name):
        randomizer, n = CASES[name]
        rows = all_rows(randomizer)
        for a, b in ((0, 1), (randomizer.n_inputs - 1, 0)):
            curve = fs.blanket_profile(randomizer, n, pair=(a, b))
            loose = fs.chernoff_profile(randomizer, n, pair=(a, b))
            for epsilon in (0.0, 0.3 * randomizer.epsilon0):
                for direction, pair in (("forward", (a, b)), ("reverse", (b, a))):
                    truth = worst(rows, n, epsilon, (pair,))
                    value = curve.delta(epsilon, direction=direction)
                    assert_covers(value, truth)
                    assert loose.delta(epsilon, direction=direction) >= min(value, 1.0) * (1 - 1e-3)

    def test_trade_off_in_each_direction(self, name):
        randomizer, n = CASES[name]
        rows = all_rows(randomizer)
        curve = fs.blanket_profile(randomizer, n, pair=(0, 1))
        for alpha in (0.05, 0.5):
            for direction, (a, b) in (("forward", (0, 1)), ("reverse", (1, 0))):
                least = min(
                    trade_off(laws[b], laws[a], Fraction(alpha)) for laws in datasets(rows, n)
                )
                assert curve.trade_off(alpha, direction=direction) <= float(least) * (1 + 1e-12)

    def test_variation_ratio(self, name):
        randomizer, n = CASES[name]
        rows = all_rows(randomizer)
        if any(p == 0 for row in rows for p in row):
            pytest.fail("the ratios are finite in all cases")
        ratio = max(max(p / q, q / p) for p, q in zip(rows[0], rows[1], strict=True))
        q = max(
            p / r for row in rows[:2] for other in rows for p, r in zip(row, other, strict=True)
        )
        beta = sum(abs(p - r) for p, r in zip(rows[0], rows[1], strict=True)) / 2
        p_up, q_up = (float(x) * (1.0 + 1e-14) for x in (ratio, q))
        curve = fs.variation_ratio_profile(p_up, min(float(beta), (p_up - 1) / (p_up + 1)), q_up, n)
        for share in SHARES:
            epsilon = share * math.log(ratio)
            truth = worst(rows, n, epsilon, ((0, 1), (1, 0)))
            assert curve.delta(epsilon) >= float(truth) * (1.0 - 1e-9)


# ---- Known values -----------------------------------------------------------------------------


class TestKnownValues:
    @pytest.mark.parametrize("entry", [e for e in FROZEN if "clones" in e], ids=str)
    @pytest.mark.parametrize("rtol", [1e-3, 1e-6])
    def test_clones(self, entry, rtol):
        curve = fs.clone_profile(entry["clones"]["epsilon0"], entry["n"], rtol=rtol)
        for direction in DIRECTIONS:
            for epsilon, truth in entry[direction]:
                assert_above(curve.delta(epsilon, direction=direction), truth, rtol)

    @pytest.mark.parametrize("entry", STORED["clones"], ids=lambda entry: f"{entry['n']}")
    def test_stored_clones(self, entry):
        curve = fs.clone_profile(entry["eps0"], entry["n"])
        for direction in DIRECTIONS:
            for epsilon, truth in entry[direction]:
                assert_above(curve.delta(epsilon, direction=direction), truth, 1e-6)

    @pytest.mark.parametrize("entry", [e for e in FROZEN if "blanket" in e], ids=str)
    @pytest.mark.parametrize("rtol", [1e-3, 1e-6])
    def test_blanket(self, entry, rtol):
        rows = [[p / 64 for p in row] for row in entry["blanket"]["matrix_in_64ths"]]
        pair = entry["blanket"]["pair"]
        curve = fs.blanket_profile(fs.Randomizer(rows), entry["n"], pair=pair, rtol=rtol)
        for direction in DIRECTIONS:
            for epsilon, truth in entry[direction]:
                assert_above(curve.delta(epsilon, direction=direction), truth, rtol)

    @pytest.mark.parametrize("entry", STORED["blanket"], ids=lambda entry: f"{entry['n']}")
    def test_stored_blanket(self, entry):
        curve = fs.blanket_profile(fs.Randomizer(entry["W"]), entry["n"], pair=entry["pair"])
        for epsilon, truth in entry["delta"]:
            # the pair is (a, b) with the divergence of W_a from W_b
            assert_above(curve.delta(epsilon, direction="reverse"), truth, 1e-3)

    @pytest.mark.parametrize("k", [2, 4, 10**6])
    def test_stronger_clones(self, k):
        """They depend on epsilon0 alone."""
        [entry] = [e for e in FROZEN if "stronger_clones" in e]
        krr = fs.k_randomized_response(entry["stronger_clones"]["epsilon0"], k)
        curve = fs.stronger_clone_profile(krr, entry["n"])
        for direction in DIRECTIONS:
            for epsilon, truth in entry[direction]:
                assert_above(curve.delta(epsilon, direction=direction), truth, 1e-6)

    def test_variation_ratio(self):
        [entry] = [e for e in FROZEN if "variation_ratio" in e]
        curve = fs.variation_ratio_profile(**entry["variation_ratio"], n=entry["n"])
        for direction in DIRECTIONS:
            for epsilon, truth in entry[direction]:
                assert_above(curve.delta(epsilon, direction=direction), truth, 1e-6)

    def test_the_blanket_of_krr_is_below_its_reductions(self):
        larger = math.exp(2.0)
        krr = fs.k_randomized_response(2.0, 4)
        blanket = fs.blanket_profile(krr, 200)
        variation = fs.variation_ratio_profile(larger, (larger - 1.0) / (larger + 3.0), larger, 200)
        stronger = fs.stronger_clone_profile(krr, 200)
        for epsilon in (0.0, 0.1, 0.5, 1.5):
            least = blanket.bounds(epsilon)[1] * (1.0 - 2e-3)
            assert least <= variation.delta(epsilon)
            assert least <= stronger.delta(epsilon)

    @pytest.mark.parametrize(
        ("n", "delta", "truth"), [(50, 1e-5, 0.824601160237), (100, 1e-6, 0.643688895335)]
    )
    def test_case_01_clones(self, n, delta, truth):
        epsilon = fs.clone_profile(1.0, n, rtol=1e-9).epsilon(delta)
        assert truth * (1.0 - 1e-12) <= epsilon <= truth * (1.0 + 1e-8)
        default = fs.clone_profile(1.0, n).epsilon(delta)
        assert truth * (1.0 - 1e-12) <= default <= truth * (1.0 + 1e-6)

    @pytest.mark.parametrize("epsilon0", [1e-12, 0.5, 3.0, 50.0, 700.0])
    def test_one_user_is_not_amplified(self, epsilon0):
        curves = [
            fs.clone_profile(epsilon0, 1),
            fs.stronger_clone_profile(fs.k_randomized_response(epsilon0, 2), 1),
        ]
        for share in (0.0, 0.3, 0.9):
            epsilon = share * epsilon0
            with mp.workdps(60):
                flip = 1 / (1 + mp.exp(mpf(epsilon0)))
                truth = flip * mp.exp(mpf(epsilon)) * mp.expm1(mpf(epsilon0) - mpf(epsilon))
            for curve in curves:
                assert_above(curve.delta(epsilon), truth, 1e-6)

    def test_the_published_variation_ratio_row_is_not_repeated(self):
        """n = 8, 5-ary randomized response, epsilon0 = 2: true 0.1019404, published 0.0948147."""
        ratio = math.exp(2.0)
        curve = fs.variation_ratio_profile(ratio, (ratio - 1.0) / (ratio + 4.0), ratio, 8)
        krr = fs.k_randomized_response(2.0, 5)
        exact = fs.exact_profile(fs.ShuffleExperiment(krr, 8, others={2: 7})).bounds(1.0)
        assert abs(exact[0] - 0.1019404) < 6e-8
        assert curve.delta(1.0) >= exact[0]

    @pytest.mark.parametrize("n", [10**3, 10**5, 10**8])
    def test_order_of_the_bounds_of_krr(self, n):
        krr = fs.k_randomized_response(2.0, 10)
        epsilon = fs.blanket_profile(krr, n).epsilon(1e-8)
        blanket = fs.blanket_profile(krr, n).bounds(epsilon)[1]
        values = [
            blanket,
            fs.stronger_clone_profile(krr, n).delta(epsilon),
            fs.clone_profile(2.0, n).delta(epsilon),
        ]
        assert all(x <= y * (1.0 + 2e-3) for x, y in itertools.pairwise(values))
        assert blanket <= fs.chernoff_profile(krr, n).delta(epsilon)


# ---- Faults that a bound must not have again --------------------------------------------------


class TestSoundness:
    def test_clones_of_a_large_epsilon0(self):
        """They came out as 0."""
        assert 0.99 < fs.clone_profile(11.0, 301, rtol=1e-3).delta(0.1) < 1.0

    def test_clones_of_a_tiny_epsilon0(self):
        _, upper = fs.clone_profile(1e-12, 400).bounds(0.0)
        assert 1.99346e-14 <= upper <= 1.99348e-14

    def test_a_rare_symbol_among_a_million(self):
        """The count of one symbol alone loses this much; it came out as 0."""
        epsilon0, k, n, delta = 3.0, 10**6, 1000, 1e-9
        with mp.workdps(60):
            larger = mp.exp(mpf(epsilon0))
            p, q = larger / (larger + k - 1), 1 / (larger + k - 1)
            least = float(reference.epsilon([(n - 1, q)], q, p, delta))
        krr = fs.k_randomized_response(epsilon0, k)
        for bound in (fs.worst_case_profile, fs.blanket_profile):
            epsilon = bound(krr, n).epsilon(delta)
            assert 0.03 < least <= epsilon <= 1.01 * least

    def test_case_36_the_third_symbol_is_covered(self):
        krr = fs.k_randomized_response(6.0, 10)
        assert fs.worst_case_profile(krr, 1000).epsilon(1e-8) >= 5.42615
        assert fs.blanket_profile(fs.k_randomized_response(1.0, 10), 1000).epsilon(1e-8) >= 0.102892

    @pytest.mark.parametrize("k", [2, 3])
    @pytest.mark.parametrize("factory", [fs.symmetric_unary_encoding, fs.optimized_unary_encoding])
    def test_the_shared_part_of_unary_encoding(self, factory, k):
        """It must not exceed the sum over all bit strings of the smallest probability."""
        randomizer = factory(2.0, k)
        # a bit is 1 with probability p where the input is, and q elsewhere
        p = 0.5 if factory is fs.optimized_unary_encoding else 1.0 / (1.0 + math.exp(-1.0))
        q = 1.0 / (1.0 + math.exp(2.0 if factory is fs.optimized_unary_encoding else 1.0))
        smallest = 0.0
        for bits in itertools.product((0, 1), repeat=k):
            smallest += min(
                math.prod(
                    (p if y == x else q) if bit else (1.0 - (p if y == x else q))
                    for y, bit in enumerate(bits)
                )
                for x in range(k)
            )
        w_a, w_b, shared = randomizer.shared_rows((0, 1))
        assert (shared <= np.minimum(w_a, w_b) * (1.0 + FEW_ROUNDINGS)).all()
        assert float(shared.sum()) <= smallest * (1.0 + 1e-14)

    @pytest.mark.parametrize(
        "randomizer",
        [fs.rappor(3, f=0.5, p=0.25, q=0.75), fs.optimized_local_hashing(2.0, 4),
         fs.binary_local_hashing(1.0, 4), fs.subset_selection(2.0, 5, omega=2),
         fs.hadamard_response(2.0, 4), fs.k_randomized_response(1.0, 4)],
        ids=str,
    )  # fmt: skip
    def test_the_shared_part_of_mechanisms(self, randomizer):
        rows = randomizer.merged_rows(range(randomizer.n_inputs))
        w_a, w_b, shared = randomizer.shared_rows((0, 1))
        assert (shared <= np.minimum(w_a, w_b) * (1.0 + FEW_ROUNDINGS)).all()
        assert float(shared.sum()) <= float(rows.min(axis=0).sum()) * (1.0 + 1e-14)

    def test_what_the_others_do_not_share_is_not_rounded(self):
        """A blanket of nearly 1: what it lacks must not come from 1 minus a sum."""
        rows = [[2.48594422054114e-08, 0.9999999751405203, 3.750243312721915e-14],
                [3.18519954940751e-09, 0.9999999968040372, 1.0763258319091495e-11]]  # fmt: skip
        curve = fs.blanket_profile(fs.Randomizer(rows), 5, pair=(0, 1))
        # 60 digits, rows completed by their largest entries
        value = curve.delta(1.6978463374113373, direction="reverse")
        assert 1.40645976523e-32 * (1.0 - 1e-9) <= value <= 1.40645976523e-32 * (1.0 + 1e-8)

    @pytest.mark.parametrize("epsilon0", [1e-9, 1e-6])
    @pytest.mark.parametrize(
        "factory",
        [
            lambda epsilon0: fs.symmetric_unary_encoding(epsilon0, 3),
            lambda epsilon0: fs.optimized_unary_encoding(epsilon0, 100),
            lambda epsilon0: fs.hadamard_response(epsilon0, 8),
            lambda epsilon0: fs.binary_local_hashing(epsilon0, 5),
        ],
    )
    def test_rows_that_nearly_agree(self, factory, epsilon0):
        """Their losses are not those of the rounded rows: the bounds were below the truth."""
        randomizer = factory(epsilon0)
        curve = fs.worst_case_profile(randomizer, 1)
        for share in (0.0, 0.3, 0.9):
            epsilon = share * randomizer.epsilon0
            lower, upper = curve.bounds(epsilon)
            assert 0.0 < lower <= upper
            for bound in (fs.blanket_profile, fs.chernoff_profile):
                assert bound(randomizer, 1).delta(epsilon) >= lower

    @pytest.mark.parametrize("n", [1, 50, 10**8])
    def test_case_04_krr_of_a_large_epsilon0(self, n):
        for k in (3, 10**6):
            curve = fs.worst_case_profile(fs.k_randomized_response(300.0, k), n)
            for delta in (1e-3, 1e-30):
                epsilon = curve.epsilon(delta)
                assert 299.0 < epsilon <= 300.0
                lower, upper = curve.bounds(epsilon)
                assert lower <= upper <= delta

    def test_what_is_not_shared_is_the_larger_of_two_roundings(self):
        """The rows sum to 1 but for rounding, and lack the blanket by two numbers."""
        rows = [[0.9999999999990561, 9.439190474357932e-13],
                [0.9999999999990342, 9.65831990278469e-13]]  # fmt: skip
        curve = fs.blanket_profile(fs.Randomizer(rows), 3, pair=(0, 1))
        value = curve.delta(0.018359590676468696, direction="forward")
        assert 4.12583e-39 <= value <= 4.1263e-39

    @pytest.mark.parametrize("epsilon0", [0.25, 2.0, 20.0])
    @pytest.mark.parametrize("n", [1, 30, 10**4])
    def test_no_end_is_above_one(self, epsilon0, n):
        curves = [
            fs.clone_profile(epsilon0, n),
            fs.blanket_profile(fs.k_randomized_response(epsilon0, 7), n),
            fs.chernoff_profile(fs.k_randomized_response(epsilon0, 7), n),
            fs.worst_case_profile(fs.k_randomized_response(epsilon0, 7), n),
        ]
        for curve in curves:
            for epsilon in (0.0, 1e-9, 1e-3, epsilon0, math.inf):
                lower, upper = curve.bounds(epsilon)
                assert 0.0 <= lower <= upper <= 1.0


# ---- The whole domain -------------------------------------------------------------------------


class TestDomain:
    @pytest.mark.parametrize(
        "epsilon0", [0.0, 1e-300, 1e-12, 1.0, 50.0, 100.0, 400.0, 709.0, 710.0, 745.0, 1000.0]
    )
    @pytest.mark.parametrize("n", [1, 2, 3, 100, 10**4, 10**8, 2**53])
    def test_case_04_clones(self, epsilon0, n):
        curve = fs.clone_profile(epsilon0, n)
        assert curve.delta([epsilon0, 2.0 * epsilon0, math.inf]).tolist() == [0.0] * 3
        assert curve.epsilon(0.0) == epsilon0
        assert curve.epsilon(1.0) == 0.0
        last = 0.0
        for delta in (0.3, 1e-6, 1e-40) if n <= 10**8 else (0.3, 1e-6):
            epsilon = curve.epsilon(delta)
            assert last <= epsilon <= epsilon0
            assert curve.delta(epsilon) <= delta
            last = epsilon

    @pytest.mark.parametrize("epsilon0", [50.0, 400.0, 709.0, 745.0, 1000.0])
    def test_case_04_nothing_is_left_of_the_amplification(self, epsilon0):
        """No other user sends a clone: it is the keep probability against the flip probability."""
        for n in (2, 1000):
            epsilon = fs.clone_profile(epsilon0, n).epsilon(1e-6)
            assert epsilon0 - 2e-6 <= epsilon <= epsilon0 - 0.9e-6

    @pytest.mark.parametrize("delta", [1e-100, 1e-300])
    @pytest.mark.parametrize("n", [1, 100, 10**4])
    def test_case_05_tiny_deltas(self, delta, n):
        curve = fs.clone_profile(1.0, n)
        epsilon = curve.epsilon(delta)
        assert curve.delta(epsilon) <= delta
        assert curve.delta(epsilon) >= delta * (1.0 - 1e-5) or epsilon == 1.0

    @pytest.mark.parametrize("bound", [fs.blanket_profile, fs.chernoff_profile])
    @pytest.mark.parametrize("n", [1, 2, 1000, 10**9, 2**53])
    def test_randomizers(self, bound, n):
        for epsilon0 in (0.0, 1e-12, 1.0, 400.0):
            curve = bound(fs.k_randomized_response(epsilon0, 5), n)
            assert curve.delta([epsilon0, math.inf]).tolist() == [0.0, 0.0]
            assert curve.epsilon([0.0, 1.0]).tolist() == [epsilon0, 0.0]
            epsilon = curve.epsilon(1e-9)
            assert 0.0 <= epsilon <= epsilon0
            assert curve.delta(epsilon) <= 1e-9

    def test_infinite_losses(self):
        """Without a shared message nothing is hidden; with one, only its senders are."""
        certain = fs.Randomizer([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
        for bound in (fs.blanket_profile, fs.chernoff_profile, fs.worst_case_profile):
            curve = bound(certain, 100)
            assert curve.epsilon([0.0, 0.5]).tolist() == [math.inf, math.inf]
            assert curve.delta([0.0, 5.0, 800.0, math.inf]).tolist() == [1.0] * 4
        partly = fs.Randomizer([[0.5, 0.5, 0.0], [0.5, 0.0, 0.5], [0.75, 0.125, 0.125]])
        for bound in (fs.blanket_profile, fs.worst_case_profile):
            curve = bound(partly, 100)
            assert curve.epsilon(0.4) == math.inf
            assert 0.5 <= curve.delta(math.inf) <= 0.5 * (1.0 + 1e-9)

    def test_identical_rows_lose_nothing(self):
        constant = fs.Randomizer([[0.5, 0.3, 0.2]] * 3)
        for bound in (fs.blanket_profile, fs.chernoff_profile, fs.worst_case_profile):
            curve = bound(constant, 50)
            assert curve.delta([0.0, 1.0]).tolist() == [0.0, 0.0]
            assert curve.epsilon(0.0) == 0.0
            assert curve.trade_off(0.25) == 0.75
        assert fs.stronger_clone_profile(constant, 50).delta(0.0) == 0.0

    def test_more_users_never_hurt(self):
        sizes = [1, 2, 3, 10, 100, 1000, 10**5, 10**8]
        for curves in (
            [fs.clone_profile(1.0, n) for n in sizes],
            [fs.blanket_profile(fs.k_randomized_response(1.0, 4), n, rtol=1e-6) for n in sizes],
        ):
            values = [curve.delta(1e-5) for curve in curves]
            assert all(y <= x * (1.0 + 3e-6) for x, y in itertools.pairwise(values))

    @pytest.mark.parametrize("n", [1000, 10**6])
    def test_a_million_symbols_take_no_longer_than_five(self, n):
        def seconds(k):
            start = time.perf_counter()
            fs.blanket_profile(fs.k_randomized_response(3.0, k), n).epsilon(1e-9)
            return time.perf_counter() - start

        seconds(5)
        assert min(seconds(10**6) for _ in range(3)) <= 10.0 * max(seconds(5), 0.05)

    def test_what_they_say_of_themselves(self):
        krr = fs.k_randomized_response(1.0, 4)
        profiles = {
            "blanket": fs.blanket_profile(krr, 30),
            "Chernoff": fs.chernoff_profile(krr, 30),
            "clones": fs.clone_profile(1.0, 30),
            "stronger clones": fs.stronger_clone_profile(krr, 30),
            "variation-ratio": fs.variation_ratio_profile(3.0, 0.25, 3.0, 30),
        }
        for name, curve in profiles.items():
            assert curve.validity is fs.Validity.UPPER_BOUND
            assert curve.n == 30
            assert name in curve.method
            assert "arXiv:" in curve.source
            # the datasets may lose anything up to the bound
            assert curve.bounds(0.1) == (0.0, curve.delta(0.1))
            assert curve.to_dict()["setting"]["n"] == 30


class TestStrongerClones:
    @pytest.mark.parametrize(
        "randomizer",
        [
            fs.discrete_laplace(1.0, 5),
            fs.Randomizer([[0.5, 0.3, 0.2], [0.2, 0.35, 0.45], [0.3, 0.2, 0.5]]),
            fs.optimized_unary_encoding(1.0, 4),
            fs.symmetric_unary_encoding(2.0, 3),
        ],
        ids=str,
    )
    def test_refused_outside_their_class(self, randomizer):
        with pytest.raises(
            ValueError, match=r"randomizer must satisfy W_z\(y\) >= .*, got .* at a = \d+, b = \d+"
        ):
            fs.stronger_clone_profile(randomizer, 100)

    def test_refused_without_a_finite_epsilon0(self):
        with pytest.raises(ValueError, match="randomizer must have a finite epsilon0, got inf"):
            fs.stronger_clone_profile(fs.Randomizer([[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]]), 10)

    @pytest.mark.parametrize("epsilon0", [0.0, 1e-12, 1.0, 20.0])
    def test_krr_is_of_the_class(self, epsilon0):
        for k in (2, 3, 10**6):
            curve = fs.stronger_clone_profile(fs.k_randomized_response(epsilon0, k), 100)
            assert curve.delta(0.5 * epsilon0) <= fs.clone_profile(epsilon0, 100).delta(
                0.5 * epsilon0
            ) * (1.0 + 1e-5)


KRR = fs.k_randomized_response(1.0, 4)
# short names for a long table
clones, stronger, ratio = fs.clone_profile, fs.stronger_clone_profile, fs.variation_ratio_profile
blanket, chernoff = fs.blanket_profile, fs.chernoff_profile


class TestRefusals:
    @pytest.mark.parametrize(
        ("call", "error", "message"),
        [
            (lambda: clones(-1.0, 9), ValueError, "epsilon0 must be >= 0 and finite, got -1"),
            (lambda: clones(math.inf, 9), ValueError, "epsilon0 must be >= 0 and finite, got inf"),
            (lambda: clones(math.nan, 9), ValueError, "epsilon0 must be .*got nan"),
            (lambda: clones("1", 9), TypeError, "epsilon0 must be a real number .*got '1'"),
            (lambda: clones(True, 9), TypeError, "epsilon0 must be a real number .*got True"),
            (lambda: clones(1.0, 0), ValueError, "n must be >= 1, got 0"),
            (lambda: clones(1.0, 2.5), TypeError, "n must be an integer, got 2.5"),
            (lambda: clones(1.0, 2**53 + 2), ValueError, "n must be <= 9007199254740992, got"),
            (
                lambda: clones(1.0, 9, rtol=0.0),
                ValueError,
                r"rtol must be in \[1e-9, 0.5\], got 0.0",
            ),
            (lambda: clones(1.0, 9, rtol=1), ValueError, r"rtol must be in \[1e-9, 0.5\], got 1"),
            (lambda: blanket([[1.0]], 9), TypeError, "randomizer must be a Randomizer, got list"),
            (lambda: blanket(KRR, math.nan), TypeError, "n must be an integer, got nan"),
            (lambda: blanket(KRR, 9, rtol=math.nan), ValueError, "rtol must be in .*got nan"),
            (
                lambda: blanket(KRR, 9, pair=(0, 0)),
                ValueError,
                r"pair must be two different inputs, got \(0, 0\)",
            ),
            (
                lambda: blanket(KRR, 9, pair=(0, 4)),
                ValueError,
                r"pair\[1\] must be <= 3, got 4",
            ),
            (
                lambda: blanket(KRR, 9, pair=(0, -1)),
                ValueError,
                r"pair\[1\] must be >= 0, got -1",
            ),
            (
                lambda: chernoff(fs.Randomizer([[0.5, 0.5]]), 9),
                ValueError,
                "at least 2 inputs, got 1",
            ),
            (lambda: chernoff(KRR, -3), ValueError, "n must be >= 1, got -3"),
            (lambda: stronger(1.0, 9), TypeError, "randomizer must be a Randomizer, got float"),
            (lambda: stronger(KRR, 9, rtol=0.7), ValueError, "rtol must be in .*got 0.7"),
            (lambda: ratio(0.9, 0.0, 2.0, 9), ValueError, "p must be >= 1, got 0.9"),
            (lambda: ratio(math.nan, 0.0, 2.0, 9), ValueError, "p must be >= 1, got nan"),
            (lambda: ratio(3.0, 0.51, 3.0, 9), ValueError, r"beta must be in .* = 0.5\], got 0.51"),
            (lambda: ratio(3.0, -0.1, 3.0, 9), ValueError, "beta must be in .*got -0.1"),
            (lambda: ratio(3.0, 0.5, 0.5, 9), ValueError, "q must be >= 1, got 0.5"),
            (lambda: ratio(3.0, 0.5, 1.2, 9), ValueError, "q must be at least .*got 1.2"),
            (lambda: ratio(3.0, 0.5, math.inf, 9), ValueError, "q must be finite, got inf"),
            (lambda: ratio(3.0, 0.5, 3.0, 0), ValueError, "n must be >= 1, got 0"),
            (lambda: ratio(3.0, 0.5, 3.0, 9, rtol=2.0), ValueError, "rtol must be in .*got 2.0"),
        ],
    )
    def test_argument_domain_and_value_are_named(self, call, error, message):
        with pytest.raises(error, match=message):
            call()

    def test_epsilons_and_deltas(self):
        curve = fs.clone_profile(1.0, 9)
        for bad in (-0.5, math.nan):
            with pytest.raises(ValueError, match="epsilon must be >= 0, got"):
                curve.delta(bad)
            with pytest.raises(ValueError, match=r"delta must be in \[0, 1\], got"):
                curve.epsilon(bad)
        with pytest.raises(ValueError, match=r"delta must be in \[0, 1\], got 1.5 at index 1"):
            curve.epsilon([0.1, 1.5])

    @pytest.mark.filterwarnings("error")
    def test_case_23_warns(self):
        with pytest.warns(fs.DeltaWarning, match="not below 1/n"):
            fs.clone_profile(1.0, 100).epsilon(0.01)


class TestVariationRatio:
    def test_ends_of_the_domain(self):
        assert fs.variation_ratio_profile(1.0, 0.0, 1.0, 10).delta(0.0) == 0.0
        assert fs.variation_ratio_profile(3.0, 0.0, 3.0, 10).delta(0.0) == 0.0
        # the differing user's message is told unless it is common; the others send it or clones
        free = fs.variation_ratio_profile(math.inf, 0.5, 2.0, 10)
        assert free.epsilon(0.0) == math.inf
        assert 0.0 < free.delta(math.inf) <= 0.5
        alone = fs.variation_ratio_profile(math.inf, 0.5, 2.0, 1)
        assert_above(alone.delta([0.0, 3.0]).min(), 0.5, BRACKET_ROUNDING)

    @pytest.mark.parametrize("n", [1, 2, 3, 4])
    def test_against_its_own_pair_in_fractions(self, n):
        """Two kinds of clone or a revealed message; the differing user may send a common part."""
        p, beta, q = Fraction(4), Fraction(1, 2), Fraction(5)
        alpha = beta / (p - 1)
        clone = p * alpha / q
        rest = 1 - alpha * (p + 1)
        others = (clone, clone, 1 - 2 * clone, Fraction(0))
        laws = {(0, 0, 0, 0): Fraction(1)}
        for _ in range(n - 1):
            laws = with_one_more(laws, others)
        law_p = with_one_more(laws, (p * alpha, alpha, Fraction(0), rest))
        law_q = with_one_more(laws, (alpha, p * alpha, Fraction(0), rest))
        curve = fs.variation_ratio_profile(4.0, 0.5, 5.0, n)
        for epsilon in (0.0, 0.3, 0.9, 1.3):
            truth = number(hockey_stick(law_p, law_q, exp_fraction(epsilon)))
            assert_above(curve.delta(epsilon), truth, 1e-6)
