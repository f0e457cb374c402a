"""Exact profiles whose other users all hold one input: brackets against sums over histograms."""

import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

import fastshuffle as fs
from fastshuffle.bracket import BracketProfile
from tests.brackets import (
    assert_between,
    assert_bracket,
    exp_fraction,
    number,
    stored,
)
from tests.tolerances import BRACKET_ROUNDING, FEW_ROUNDINGS
from validation.reference.exact import histogram_pair, hockey_stick, trade_off
from validation.reference.homogeneous import background_deltas

pytestmark = pytest.mark.filterwarnings("ignore::fastshuffle.DeltaWarning")

DIRECTIONS = ("forward", "reverse")
DEFAULT = 1e-3
ON_REQUEST = 1e-6

FROZEN = stored("homogeneous")["entries"]
OTHER = {"a": 0, "b": 1, "third": 2}


def of_rows(rows, n, others, pair=(0, 1), **options):
    experiment = fs.ShuffleExperiment(fs.Randomizer(rows), n, others={others: n - 1}, pair=pair)
    return fs.exact_profile(experiment, **options)


def of_k_ary(epsilon0, k, n, holder="third", **options):
    randomizer = fs.k_randomized_response(epsilon0, k)
    experiment = fs.ShuffleExperiment(randomizer, n, others={OTHER[holder]: n - 1})
    return fs.exact_profile(experiment, **options)


def in_64ths(matrix):
    return [[p / 64 for p in row] for row in matrix]


def of_frozen(entry, **options):
    if "experiment" in entry:
        setting = entry["experiment"]
        rows = in_64ths(setting["matrix_in_64ths"])
        return of_rows(rows, entry["n"], setting["others"], setting["pair"], **options)
    setting = entry["k_ary"]
    return of_k_ary(setting["epsilon0"], setting["k"], entry["n"], setting["holder"], **options)


def frozen_id(entry):
    setting = entry.get("experiment") or entry["k_ary"]
    return (
        ",".join(f"{v}" for v in setting.values() if not isinstance(v, list)) + f"-n={entry['n']}"
    )


EXPERIMENTS = [entry for entry in FROZEN if "experiment" in entry or "k_ary" in entry]


class TestFrozen:
    @pytest.mark.parametrize("entry", EXPERIMENTS, ids=frozen_id)
    @pytest.mark.parametrize("rtol", [DEFAULT, ON_REQUEST])
    def test_bracket(self, entry, rtol):
        curve = of_frozen(entry, rtol=rtol)
        assert isinstance(curve, BracketProfile)
        for direction in DIRECTIONS:
            for epsilon, truth in entry[direction]:
                assert_bracket(curve, epsilon, truth, rtol, direction)

    @pytest.mark.parametrize("entry", EXPERIMENTS, ids=frozen_id)
    def test_epsilon(self, entry):
        """The inverse of a stored delta is on its safe side, and no more than the gap above."""
        curve = of_frozen(entry)
        for direction in DIRECTIONS:
            loss = curve.epsilon(0.0, direction=direction)
            for epsilon, truth in entry[direction][1:]:
                target = float(truth)
                if target == 0.0:
                    continue
                found = curve.epsilon(target, direction=direction)
                assert curve.delta(found, direction=direction) <= target
                assert found >= epsilon * (1.0 - FEW_ROUNDINGS)
                # delta falls at least linearly from here to the largest loss
                assert found <= epsilon + 2.0 * DEFAULT * (loss - epsilon)

    def test_the_reference_against_enumeration(self):
        rows = [
            [Fraction(p, 64) for p in row] for row in FROZEN[2]["experiment"]["matrix_in_64ths"]
        ]
        rows[1], rows[2] = [Fraction(1, 4), Fraction(3, 4), Fraction()], rows[1]
        law_q, law_p = histogram_pair(rows, {2: 4}, (0, 1))
        found = background_deltas([rows[2], rows[1], rows[0]], 5, [0.0, 0.3])
        for i, epsilon in enumerate((0.0, 0.3)):
            for values, laws in ((found.forward, (law_p, law_q)), (found.reverse, (law_q, law_p))):
                truth = number(hockey_stick(*laws, exp_fraction(epsilon)))
                assert abs(values[i] / truth - 1) < mpf(10) ** -30


def stored_cases():
    for entry in stored("finite_n_general")["entries"] + stored("finite_n_krr")["general"]:
        if len(entry["background"]) == 1:
            [[count, row]] = entry["background"]
            randomizer = fs.Randomizer([entry["W0"], entry["W1"], row])
            yield fs.ShuffleExperiment(randomizer, count + 1, others={2: count}), entry
    for entry in stored("finite_n_krr")["krr"]:
        randomizer = fs.k_randomized_response(entry["eps0"], entry["k"])
        others = {entry["others_hold"]: entry["others"]}
        yield fs.ShuffleExperiment(randomizer, entry["others"] + 1, others=others), entry


STORED = list(stored_cases())


@pytest.mark.parametrize(("experiment", "entry"), STORED)
class TestStored:
    @pytest.mark.parametrize("rtol", [DEFAULT, ON_REQUEST])
    def test_delta(self, experiment, entry, rtol):
        curve = fs.exact_profile(experiment, rtol=rtol)
        for direction in DIRECTIONS:
            loss = curve.epsilon(0.0, direction=direction)
            for epsilon, truth in entry[f"delta_{direction}"]:
                # from the loss on a sum at 60 digits is but its rounding
                expected = truth if epsilon < loss else 0
                assert_bracket(curve, epsilon, expected, rtol, direction)
        assert_between(0.0, curve.total_variation(), entry["tv"])

    def test_epsilon_and_trade_off(self, experiment, entry):
        curve = fs.exact_profile(experiment)
        for delta, truth in entry["epsilon"]:
            found = curve.epsilon(delta)
            assert curve.delta(found) <= delta
            assert float(truth) * (1.0 - FEW_ROUNDINGS) <= found
            assert found <= float(truth) * (1.0 + 3.0 * DEFAULT)
        for alpha, truth in entry["beta"]:
            beta = curve.trade_off(alpha, direction="forward")
            assert beta <= float(truth) * (1.0 + FEW_ROUNDINGS)
            assert beta >= float(truth) - 2.0 * DEFAULT * float(entry["tv"]) - 1e-12


# rows with every kind of output, and a third one for the others; exact in binary
SMALL = {
    "all": ((0.5, 0.25, 0.25), (0.25, 0.25, 0.5), (0.125, 0.625, 0.25)),
    "four outputs": (
        (0.5, 0.25, 0.125, 0.125),
        (0.125, 0.375, 0.25, 0.25),
        (0.25, 0.25, 0.0625, 0.4375),
    ),
    "only a": ((0.25, 0.5, 0.25), (0.75, 0.25, 0.0), (0.5, 0.25, 0.25)),
    "only b": ((0.75, 0.25, 0.0), (0.25, 0.5, 0.25), (0.5, 0.25, 0.25)),
    "outside the others": ((0.25, 0.5, 0.25), (0.5, 0.125, 0.375), (0.75, 0.25, 0.0)),
    "disjoint": ((0.25, 0.75, 0.0, 0.0), (0.0, 0.0, 0.5, 0.5), (0.25, 0.25, 0.25, 0.25)),
    "others elsewhere": ((0.25, 0.75, 0.0, 0.0), (0.5, 0.5, 0.0, 0.0), (0.0, 0.0, 0.25, 0.75)),
    "certain": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "certain others": ((0.5, 0.25, 0.25), (0.25, 0.25, 0.5), (0.0, 0.0, 1.0)),
    "certain a": ((1.0, 0.0, 0.0), (0.5, 0.25, 0.25), (0.25, 0.5, 0.25)),
    "equal": ((0.25, 0.5, 0.25), (0.25, 0.5, 0.25), (0.5, 0.25, 0.25)),
}
EPSILONS = (0.0, 0.07, 0.43, 1.3, 3.9)


@cache
def laws_of(rows, n, others, pair):
    exact = [[Fraction(p) for p in row] for row in rows]
    return histogram_pair(exact, {others: n - 1}, pair)


class TestBruteForce:
    @pytest.mark.parametrize("n", [1, 2, 3, 5])
    @pytest.mark.parametrize("name", SMALL)
    def test_every_background_and_pair(self, name, n):
        rows = SMALL[name]
        for others, pair in itertools.product(range(3), ((0, 1), (2, 0))):
            law_q, law_p = laws_of(rows, n, others, pair)
            curve = of_rows(rows, n, others, pair)
            for direction, laws in (("forward", (law_p, law_q)), ("reverse", (law_q, law_p))):
                for epsilon in EPSILONS:
                    truth = hockey_stick(*laws, exp_fraction(epsilon))
                    assert_bracket(curve, epsilon, truth, DEFAULT, direction)
                beyond = sum(
                    (p for key, p in laws[0].items() if laws[1].get(key, 0) == 0), Fraction()
                )
                assert_bracket(curve, math.inf, beyond, DEFAULT, direction)

    @pytest.mark.parametrize("name", SMALL)
    def test_case_11_infinite_losses_are_carried(self, name):
        rows, n = SMALL[name], 3
        for others in range(3):
            law_q, law_p = laws_of(rows, n, others, (0, 1))
            curve = of_rows(rows, n, others)
            for direction, (first, second) in zip(
                DIRECTIONS, ((law_p, law_q), (law_q, law_p)), strict=True
            ):
                beyond = sum((p for key, p in first.items() if second.get(key, 0) == 0), Fraction())
                if beyond == 0:
                    assert curve.epsilon(0.0, direction=direction) < math.inf
                    assert curve.delta(math.inf, direction=direction) == 0.0
                    continue
                assert curve.epsilon(0.0, direction=direction) == math.inf
                mass = float(beyond)
                assert curve.epsilon(0.99 * mass, direction=direction) == math.inf
                for epsilon in (1.0, 30.0, 650.0, 1199.0, 1201.0, 1e6):
                    lower, upper = curve.bounds(epsilon, direction=direction)
                    assert lower >= mass * (1.0 - BRACKET_ROUNDING - 1e-14 * epsilon)
                    assert upper >= mass * (1.0 - 1e-15)

    @pytest.mark.parametrize("others", [0, 1, 2])
    @pytest.mark.parametrize("name", ["all", "only a", "outside the others"])
    def test_trade_off_is_below_the_most_powerful_test(self, name, others):
        rows, n = SMALL[name], 3
        law_q, law_p = laws_of(rows, n, others, (0, 1))
        curve = of_rows(rows, n, others)
        for alpha in (0.0, 0.05, 0.6, 1.0):
            forward = float(trade_off(law_p, law_q, Fraction(alpha)))
            reverse = float(trade_off(law_q, law_p, Fraction(alpha)))
            for direction, truth in (("forward", forward), ("reverse", reverse)):
                value = curve.trade_off(alpha, direction=direction)
                assert 0.0 <= value <= truth * (1.0 + FEW_ROUNDINGS)
                assert value >= truth - 2.0 * DEFAULT
            assert curve.trade_off(alpha) <= min(forward, reverse) * (1.0 + FEW_ROUNDINGS)


def test_trade_off_of_both_is_the_smaller_error():
    curve = of_rows(SMALL["only a"], 3, 0)
    for alpha in (0.05, 0.25):
        least = min(curve.trade_off(alpha, direction=direction) for direction in DIRECTIONS)
        assert curve.trade_off(alpha) == least


def test_rounding_of_far_tails_does_not_cross_the_ends():
    """Rounding grows with the logarithm: this raised at a log delta of some thousands."""
    experiment = fs.ShuffleExperiment(
        fs.Randomizer([[0.5, 0.3, 0.2], [0.2, 0.35, 0.45]]), 10**4, k=0
    )
    curve = fs.exact_profile(experiment)
    for direction in DIRECTIONS:
        values = curve.log_delta(np.linspace(0.3, 0.8, 12), direction=direction)
        assert (np.diff(values) < 0.0).all()
        assert values[-1] < -2000.0


class TestExtremeRows:
    def test_identical_rows_lose_nothing(self):
        rows = [[0.5, 0.3, 0.2], [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]
        for others in range(3):
            curve = of_rows(rows, 1000, others)
            for direction in (*DIRECTIONS, "both"):
                assert curve.delta([0.0, 0.5, math.inf], direction=direction).tolist() == [0.0] * 3
                assert curve.epsilon([0.0, 1e-12, 1.0], direction=direction).tolist() == [0.0] * 3
                assert curve.bounds(0.0, direction=direction) == (0.0, 0.0)
                assert curve.trade_off(0.25, direction=direction) == 0.75

    @pytest.mark.parametrize("n", [1, 2, 3, 6])
    @pytest.mark.parametrize("others", [0, 1, 2])
    def test_rows_of_1e_300(self, n, others):
        rows = ((0.5, 0.5, 1e-300), (0.75, 0.25, 1e-290), (0.25, 0.75, 1e-295))
        law_q, law_p = laws_of(rows, n, others, (0, 1))
        curve = of_rows(rows, n, others)
        for direction, laws in (("forward", (law_p, law_q)), ("reverse", (law_q, law_p))):
            for epsilon in (0.0, 0.1, 0.2):
                truth = hockey_stick(*laws, exp_fraction(epsilon))
                assert_bracket(curve, epsilon, truth, DEFAULT, direction)

    @pytest.mark.parametrize("others", [1, 2])
    def test_an_output_that_the_others_send_as_good_as_never(self, others):
        """It tells who sent it: the mass shows in delta at nearly any epsilon."""
        rows = [[0.5, 0.25, 0.25], [0.5, 0.5, 1e-300], [0.5, 0.5, 1e-300]]
        curve = of_rows(rows, 1000, others)
        for epsilon in (1.0, 100.0, 600.0):
            lower, upper = curve.bounds(epsilon, direction="reverse")
            assert lower <= 0.25 <= upper <= 0.25 * (1.0 + 1e-9)

    @pytest.mark.parametrize("n", [3, 10, 100, 1000, 10**5, 10**9])
    def test_an_output_that_the_others_never_send(self, n):
        """Many others hide all but that output: a sum that is nearly surely positive."""
        rows = [[3 / 64, 3 / 64, 58 / 64], [38 / 64, 26 / 64, 0.0], [0.5, 0.5, 0.0]]
        curve = of_rows(rows, n, 2)
        for epsilon in (0.0, 0.5, 1.0, 2.0):
            lower, upper = curve.bounds(epsilon, direction="forward")
            assert upper <= lower * (1.0 + DEFAULT + 2.0 * BRACKET_ROUNDING)
            # the test "the output was not sent"
            least = 1.0 - 6.0 / 64.0 * math.exp(epsilon)
            assert upper >= least * (1.0 - FEW_ROUNDINGS)
            assert lower <= 1.0 - 6.0 / 64.0
            if n >= 1000:
                assert upper <= least * 1.01

    def test_probabilities_that_underflow_are_refused(self):
        with pytest.raises(ValueError, match=r"probabilities must be at least 1e-308 .*got exp\("):
            of_k_ary(800.0, 5, 100)


def swapped(direction):
    return DIRECTIONS[1 - DIRECTIONS.index(direction)]


@st.composite
def settings_of(draw):
    """Rows in 256ths, asymmetric, with zeros; the number of users; who holds what."""
    d = draw(st.integers(3, 4))
    rows = []
    for _ in range(3):
        parts = draw(st.lists(st.integers(0, 60), min_size=d - 1, max_size=d - 1))
        rows.append([*(p / 256 for p in parts), (256 - sum(parts)) / 256])
    n = draw(st.sampled_from([1, 2, 3, 7, 20, 100, 1000, 10**6, 10**12]))
    return rows, n, draw(st.integers(0, 2))


class TestCurve:
    @given(settings_of(), st.floats(0.0, 1.5))
    @settings(max_examples=25)
    def test_case_03_swap_and_relabelling(self, setting, share):
        rows, n, others = setting
        curve = of_rows(rows, n, others)
        exchanged = of_rows(rows, n, others, (1, 0))
        relabelled = of_rows([row[::-1] for row in rows], n, others)
        # near delta(0), where the curve is not negligible at any n
        epsilon = share * curve.delta(0.0)
        for direction in DIRECTIONS:
            values = [
                curve.bounds(epsilon, direction=direction),
                exchanged.bounds(epsilon, direction=swapped(direction)),
                relabelled.bounds(epsilon, direction=direction),
            ]
            # three brackets of one number
            assert max(lower for lower, _ in values) <= min(upper for _, upper in values)
            assert max(upper for _, upper in values) <= (1.0 + 2.0 * DEFAULT) * min(
                lower for lower, _ in values
            )

    @given(settings_of(), st.lists(st.floats(0.0, 6.0), min_size=3, max_size=3))
    @settings(max_examples=25)
    def test_falling_and_convex_in_the_ratio(self, setting, shares):
        rows, n, others = setting
        curve = of_rows(rows, n, others)
        first, middle, last = (share * curve.delta(0.0) for share in sorted(shares))
        for direction in DIRECTIONS:
            lower, upper = curve.bounds([first, middle, last], direction=direction)
            assert (lower <= upper).all()
            assert (lower[1:] <= upper[:-1]).all()
            if last > first:
                weight = math.expm1(last - middle) * math.exp(middle - first)
                weight /= math.expm1(last - first)
                chord = weight * upper[0] + (1.0 - weight) * upper[2]
                assert lower[1] <= chord * (1.0 + 1e-9)

    @given(settings_of(), st.floats(-200.0, -0.01), st.sampled_from([*DIRECTIONS, "both"]))
    @settings(max_examples=25)
    def test_case_10_round_trip(self, setting, log_share, direction):
        rows, n, others = setting
        curve = of_rows(rows, n, others)
        delta = curve.delta(0.0, direction=direction) * math.exp(log_share)
        epsilon = curve.epsilon(delta, direction=direction)
        if epsilon == math.inf:
            assert curve.delta(math.inf, direction=direction) > delta * (1.0 - 1e-12)
            return
        assert curve.delta(epsilon, direction=direction) <= delta
        if epsilon > 0.0:
            below = curve.bounds(epsilon * (1.0 - 1e-6), direction=direction)[0]
            assert below >= 0.0
            lower, _ = curve.bounds(epsilon * 0.999, direction=direction)
            # not far inside: a little lower the exact delta is above the target, but for the gap
            assert lower >= delta * (1.0 - 3.0 * DEFAULT)

    def test_case_07_08_ends(self):
        curve = of_k_ary(2.0, 6, 500)
        assert curve.epsilon(0.0) == 2.0
        assert curve.delta([2.0, 3.0, math.inf]).tolist() == [0.0, 0.0, 0.0]
        total = curve.total_variation()
        assert curve.epsilon([total, 0.5 * (1.0 + total), 1.0]).tolist() == [0.0, 0.0, 0.0]

    def test_one_more_user_never_hurts(self):
        sizes = [1, 2, 3, 5, 10, 30, 100, 301, 1000, 10**4, 10**6, 10**8]
        brackets = [of_k_ary(1.0, 4, n).bounds(1e-4) for n in sizes]
        for (_, upper), (lower, _) in itertools.pairwise(brackets):
            assert lower <= upper

    def test_shapes(self):
        curve = of_k_ary(1.0, 4, 50)
        assert isinstance(curve.delta(0.1), float)
        assert curve.delta([[0.1, 0.2, 0.3]]).shape == (1, 3)
        assert curve.epsilon([]).shape == (0,)
        assert [end.shape for end in curve.bounds([0.1, 0.2])] == [(2,), (2,)]

    def test_what_it_says_of_itself(self):
        curve = of_k_ary(1.0, 4, 50, rtol=1e-5)
        assert curve.validity is fs.Validity.UPPER_BOUND
        assert curve.n == 50
        assert "1e-05" in curve.method
        for word in ("50 (including", "UPPER_BOUND", "replace-one"):
            assert word in curve.describe()


class TestFieldCases:
    @pytest.mark.parametrize("epsilon0", [40.0, 50.0, 100.0, 400.0, 709.0, 710.0])
    @pytest.mark.parametrize("k", [3, 10**6])
    def test_case_04_large_epsilon0(self, epsilon0, k):
        """The others all at a: the one histogram of n times a is what tells."""
        n, delta = 1000, 1e-6
        with mp.workdps(800):
            log_p = -mp.log1p((k - 1) * mp.exp(-mpf(epsilon0)))
            all_a = mp.exp(n * log_p)
            truth = epsilon0 + mp.log1p(-mpf(delta) / all_a)
        curve = of_k_ary(epsilon0, k, n, "a")
        epsilon = curve.epsilon(delta, direction="reverse")
        assert curve.delta(epsilon, direction="reverse") <= delta
        assert float(truth) * (1.0 - FEW_ROUNDINGS) <= epsilon <= epsilon0
        assert epsilon <= float(truth) + 2.0 * DEFAULT * delta

    @pytest.mark.parametrize("epsilon0", [745.0, 746.0, 1000.0])
    def test_case_04_beyond_doubles(self, epsilon0):
        with pytest.raises(ValueError, match="probabilities must be at least 1e-308"):
            of_k_ary(epsilon0, 5, 1000)

    @pytest.mark.parametrize(
        ("epsilon0", "truth"), [(6.0, 5.4262), (1.0, 0.102893)], ids=["6", "1"]
    )
    def test_case_36_a_third_symbol(self, epsilon0, truth):
        curve = of_k_ary(epsilon0, 10, 1000, rtol=1e-6)
        # the reference values are printed to five and six digits
        digits = 5e-5 if epsilon0 == 6.0 else 5e-7
        assert abs(curve.epsilon(1e-8) - truth) <= 1.2 * digits

    @pytest.mark.parametrize("log_delta", [-28.0, -115.0, -450.0, -690.0])
    def test_case_38_accuracy_is_relative_to_delta(self, log_delta):
        curve = of_k_ary(1.0, 10, 10**5)
        delta = math.exp(log_delta)
        epsilon = curve.epsilon(delta)
        lower, upper = curve.bounds(epsilon)
        assert lower <= upper <= delta
        assert upper <= lower * (1.0 + DEFAULT + 2.0 * BRACKET_ROUNDING)
        assert lower >= delta * (1.0 - 3.0 * DEFAULT)

    @pytest.mark.parametrize(
        ("epsilon0", "n", "truth"),
        [
            (1.0, 10**3, 0.162844222951),
            (1.0, 10**5, 0.0138794564447),
            (4.0, 10**4, 0.404346820574),
            (4.0, 10**7, 0.00946189151827),
        ],
    )
    def test_case_42_two_symbols(self, epsilon0, n, truth):
        """With k = 2 it is binary randomized response, and exact."""
        curve = of_k_ary(epsilon0, 2, n, "a")
        assert curve.validity is fs.Validity.EXACT
        assert abs(curve.epsilon(1e-8) / truth - 1.0) < 1e-11

    @pytest.mark.parametrize(
        ("epsilon0", "n", "truth"),
        [(1.0, 10**4, 0.030916127897), (4.0, 10**5, 0.14035541077)],
    )
    def test_case_43_ten_symbols(self, epsilon0, n, truth):
        epsilon = of_k_ary(epsilon0, 10, n, rtol=1e-6).epsilon(1e-8)
        assert truth * (1.0 - 1e-10) <= epsilon <= truth * (1.0 + 1e-6)


class TestRefusals:
    @pytest.mark.parametrize("rtol", [0.0, 9e-10, 0.51, math.nan, -1.0])
    def test_rtol(self, rtol):
        with pytest.raises(ValueError, match=r"rtol must be in \[1e-9, 0.5\], got"):
            of_k_ary(1.0, 4, 10, rtol=rtol)

    def test_kinds(self):
        with pytest.raises(TypeError, match="experiment must be a ShuffleExperiment, got list"):
            fs.exact_profile([[0.5, 0.5]])
        with pytest.raises(TypeError, match="rtol must be a real number"):
            of_k_ary(1.0, 4, 10, rtol="1e-3")

    def test_two_kinds_of_others_with_many_outputs(self):
        krr = fs.k_randomized_response(1.0, 5)
        experiment = fs.ShuffleExperiment(krr, 100, others={2: 50, 3: 49})
        with pytest.raises(ValueError, match=r"must all hold one input.*got 2 inputs and 5 groups"):
            fs.exact_profile(experiment)

    def test_epsilons_and_deltas(self):
        curve = of_k_ary(1.0, 4, 10)
        for bad in (-0.1, math.nan):
            with pytest.raises(ValueError, match="epsilon must be >= 0"):
                curve.delta(bad)
            with pytest.raises(ValueError, match="epsilon must be >= 0"):
                curve.bounds([0.1, bad])
            with pytest.raises(ValueError, match=r"delta must be in \[0, 1\]"):
                curve.epsilon(bad)
            with pytest.raises(ValueError, match=r"alpha must be in \[0, 1\]"):
                curve.trade_off(bad)
        with pytest.raises(ValueError, match="direction must be"):
            curve.delta(0.1, direction="up")

    def test_arrays_agree_with_scalars(self):
        curve = of_k_ary(1.0, 4, 100)
        epsilons = np.array([0.0, 0.1, 0.3])
        assert curve.delta(epsilons).tolist() == [curve.delta(e) for e in epsilons.tolist()]


@pytest.mark.parametrize("n", [10**9, 20_810_988_918_707, 10**15])
def test_a_coarse_grid_does_not_fold_the_sum_back(n):
    """The lower end was exp(1e14): on a grid too coarse, the tilt no longer centred the sum."""
    w = fs.Randomizer([[0.2578, 0.3783, 0.3639], [0.1114, 0.8547, 0.0339]])
    profile = fs.exact_profile(fs.ShuffleExperiment(w, n, k=0))
    for direction in ("forward", "reverse"):
        lower, upper = profile.log_bounds(0.1, direction=direction)
        assert lower <= upper < -4e-3 * n


def test_no_epsilons_and_the_ends_of_the_trade_off():
    w = fs.Randomizer([[0.5, 0.3, 0.2], [0.2, 0.35, 0.45]])
    profile = fs.exact_profile(fs.ShuffleExperiment(w, 100, k=0))
    assert profile.delta([]).shape == profile.log_delta([]).shape == (0,)
    assert all(side.shape == (0,) for side in profile.bounds([]))
    assert (profile.trade_off(0.0), profile.trade_off(1.0)) == (1.0, 0.0)


def test_an_entry_too_small_to_be_multiplied_is_refused():
    w = fs.Randomizer([[1e-320, 0.5, 0.5], [0.25, 0.25, 0.5]])
    with pytest.raises(fs.UnsupportedSettingError, match="at least 1e-310 .*got 1e-320"):
        fs.exact_profile(fs.ShuffleExperiment(w, 10, k=0))
    assert fs.blanket_profile(w, 10).delta(0.0) >= 0.25 * (1.0 - 1e-12)
