"""Profiles summed over the lattice: fractions, exact integers, stored values, other methods."""

import json
import math
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from mpmath import mp, mpf
from numpy.testing import assert_allclose

import fastshuffle as fs
from fastshuffle.exact import _lattice_points, _lattice_window
from fastshuffle.exact.homogeneous import homogeneous_profile
from fastshuffle.exact.lattice import lattice_profile
from fastshuffle.profile import DeltaWarning
from tests.tolerances import STATED, STATED_DIVERGENCE
from validation.reference.exact import histogram_pair, hockey_stick, total_variation, trade_off

pytestmark = pytest.mark.filterwarnings("ignore::fastshuffle.profile.DeltaWarning")

STORED = json.loads((Path(__file__).parent / "data" / "finite_n_general.json").read_text())

THREE = ((0.5, 0.3, 0.2), (0.2, 0.35, 0.45))
FOUR = ((0.4, 0.3, 0.2, 0.1), (0.125, 0.25, 0.25, 0.375))
# rows with every kind of output: both send it, only a, only b
SMALL = {
    "three": THREE,
    "four": FOUR,
    "only a": ((0.25, 0.5, 0.25), (0.75, 0.25, 0.0)),
    "only b": ((0.75, 0.25, 0.0), (0.25, 0.5, 0.25)),
    "each its own": ((0.5, 0.5, 0.0), (0.25, 0.0, 0.75)),
    "two of a": ((0.125, 0.375, 0.5, 0.0), (0.0, 0.0, 0.5, 0.5)),
    "two of b": ((0.25, 0.75, 0.0, 0.0), (0.125, 0.5, 0.125, 0.25)),
    "certain b": ((0.25, 0.5, 0.25), (0.0, 0.0, 1.0)),
    "disjoint": ((0.25, 0.75, 0.0, 0.0), (0.0, 0.0, 0.5, 0.5)),
    "tiny": ((0.5, 0.5, 1e-300), (0.75, 0.25, 1e-290)),
    "huge ratio": ((1.0, 1e-300, 1e-200), (0.5, 0.25, 0.25)),
}


def profile_of(rows, n, k, **options):
    return lattice_profile(fs.ShuffleExperiment(fs.Randomizer(rows), n, k=k), **options)


@cache
def brute_force(rows, n, k):
    """Return the laws (P, Q) by enumeration of all output tuples."""
    exact = [[Fraction(p) for p in row] for row in rows]
    law_q, law_p = histogram_pair(exact, {0: n - 1 - k, 1: k}, (0, 1))
    return law_p, law_q


@cache
def summed_users(rows, n, k):
    """Return the masses (P, Q) of all histograms in exact integers, and their common divisor.

    Users are added one at a time; nothing here knows of likelihood ratios or of contours.
    """
    exact = [[Fraction(p) for p in row] for row in rows]
    unit = math.lcm(*(p.denominator for row in exact for p in row))
    scaled = [[int(p * unit) for p in row] for row in exact]
    law = {(0,) * len(rows[0]): 1}

    def add_user(law, row):
        longer = {}
        for histogram, mass in law.items():
            for y, p in enumerate(row):
                if p:
                    key = (*histogram[:y], histogram[y] + 1, *histogram[y + 1 :])
                    longer[key] = longer.get(key, 0) + mass * p
        return longer

    for held in [0] * (n - 1 - k) + [1] * k:
        law = add_user(law, scaled[held])
    law_p, law_q = add_user(law, scaled[1]), add_user(law, scaled[0])
    pairs = [(law_p.get(key, 0), law_q.get(key, 0)) for key in {**law_p, **law_q}]
    return pairs, unit**n


def summed_delta(rows, n, k, epsilon, direction):
    """Return the hockey-stick divergence at 40 digits from `summed_users`."""
    pairs, divisor = summed_users(rows, n, k)
    with mp.workdps(60):
        factor = int(mp.exp(mpf(epsilon)) * mpf(2) ** 180)
        total = 0
        for p, q in pairs:
            first, second = (p, q) if direction == "forward" else (q, p)
            total += max((first << 180) - factor * second, 0)
        return mpf(total) / (mpf(divisor) * mpf(2) ** 180)


def assert_relative(actual, truth, rtol=STATED):
    """Compare through mpf, since a ratio of deltas of 1e-300 is no double."""
    if truth == 0:
        assert actual == 0
        return
    with mp.workdps(50):
        assert abs(mpf(actual) / truth - 1) <= rtol


class TestSmall:
    @pytest.mark.parametrize("name", SMALL)
    @pytest.mark.parametrize("n", [1, 2, 5])
    def test_brute_force(self, name, n):
        rows = SMALL[name]
        for k in range(n):
            profile = profile_of(rows, n, k)
            assert profile.validity is fs.Validity.EXACT
            law_p, law_q = brute_force(rows, n, k)
            # none of them is a privacy loss, where the last bit of epsilon would decide
            for epsilon in (0.0, 0.07, 0.43, 1.3, 3.9):
                with mp.workdps(40):
                    exp_epsilon = Fraction(str(mp.exp(mpf(epsilon))))
                for direction, first, second in (
                    ("forward", law_p, law_q),
                    ("reverse", law_q, law_p),
                ):
                    truth = hockey_stick(first, second, exp_epsilon)
                    value = profile.delta(epsilon, direction=direction)
                    lower, upper = profile.bounds(epsilon, direction=direction)
                    assert_allclose(value, float(truth), rtol=STATED, atol=0)
                    assert lower <= float(truth) * (1 + 1e-15)
                    assert upper >= float(truth) * (1 - 1e-15)
            for direction, first, second in (("forward", law_p, law_q), ("reverse", law_q, law_p)):
                clear = sum((first[N] for N in first if second.get(N, 0) == 0), Fraction())
                assert_allclose(
                    profile.delta(math.inf, direction=direction), float(clear), rtol=STATED, atol=0
                )

    @pytest.mark.parametrize("name", SMALL)
    def test_trade_off(self, name):
        rows, n, k = SMALL[name], 5, 2
        profile = profile_of(rows, n, k)
        law_p, law_q = brute_force(rows, n, k)
        for alpha in (0.0, 1e-3, 0.05, 0.3, 0.7, 0.99, 1.0):
            for direction, null, alternative in (
                ("forward", law_q, law_p),
                ("reverse", law_p, law_q),
            ):
                truth = float(trade_off(alternative, null, Fraction(alpha)))
                value = profile.trade_off(alpha, direction=direction)
                assert_allclose(value, truth, rtol=0, atol=1e-15)
                assert 0.0 <= value <= 1.0

    @pytest.mark.parametrize("name", SMALL)
    def test_divergences(self, name):
        rows, n, k = SMALL[name], 5, 3
        profile = profile_of(rows, n, k)
        law_p, law_q = brute_force(rows, n, k)
        with mp.workdps(40):
            pairs = [
                tuple(mpf(v.numerator) / v.denominator for v in (law_p[N], law_q[N])) for N in law_p
            ]
            assert_relative(profile.total_variation(), mpf_of(total_variation(law_p, law_q)))
            jensen_shannon = sum(
                m * mp.log(2 * m / (p + q)) / 2 for p, q in pairs for m in (p, q) if m > 0
            )
            assert_relative(profile.jensen_shannon(), jensen_shannon, 4 * STATED_DIVERGENCE)
            for direction, own in (("forward", pairs), ("reverse", [(q, p) for p, q in pairs])):
                infinite = any(p > 0 and q == 0 for p, q in own)
                for order in (0.25, 0.5, 1.0, 2.0, 7.5):
                    value = profile.renyi(order, direction=direction)
                    if infinite and order >= 1.0:
                        assert value == math.inf
                        continue
                    if order == 1.0:
                        truth = sum(p * mp.log(p / q) for p, q in own if p > 0)
                    else:
                        moment = sum(
                            p ** mpf(order) * q ** mpf(1 - order) for p, q in own if p > 0 and q > 0
                        )
                        if moment == 0:
                            assert value == math.inf
                            continue
                        truth = mp.log(moment) / (order - 1)
                    assert_relative(value, truth, STATED)
                if not infinite:
                    chi_square = sum((p - q) ** 2 / q for p, q in own if q > 0)
                    assert_relative(profile.chi_square(direction=direction), chi_square)

    @pytest.mark.parametrize("entry", STORED["entries"], ids=["k=0", "k=4"])
    def test_stored_values(self, entry):
        counts = [count for count, _ in entry["background"]]
        n, k = 1 + sum(counts), counts[1] if len(counts) > 1 else 0
        profile = profile_of((entry["W0"], entry["W1"]), n, k)
        for direction in ("forward", "reverse"):
            for epsilon, truth in entry[f"delta_{direction}"]:
                assert_relative(profile.delta(epsilon, direction=direction), mpf(truth))
        for delta, truth in entry["epsilon"]:
            epsilon = profile.epsilon(delta)
            assert_relative(epsilon, mpf(truth))
            assert profile.delta(epsilon) <= delta
        for alpha, truth in entry["beta"]:
            assert_relative(profile.trade_off(alpha, direction="forward"), mpf(truth))
        assert_relative(profile.jensen_shannon(), mpf(entry["jsd"]))
        assert_relative(profile.kl(direction="forward"), mpf(entry["kl_forward"]))
        assert_relative(profile.kl(direction="reverse"), mpf(entry["kl_reverse"]))
        assert_relative(profile.total_variation(), mpf(entry["tv"]))
        for order, truth in entry["renyi_forward"]:
            assert_relative(profile.renyi(order, direction="forward"), mpf(truth))


def mpf_of(fraction):
    return mpf(fraction.numerator) / fraction.denominator


class TestTinyDeltas:
    @pytest.mark.parametrize(
        ("rows", "n", "k"),
        [
            (THREE, 40, 0),
            (THREE, 60, 1),
            (THREE, 100, 37),
            (THREE, 60, 59),
            (((0.75, 0.1875, 0.0625), (0.0625, 0.1875, 0.75)), 60, 35),
            (((0.5, 0.5, 0.0), (0.25, 0.625, 0.125)), 60, 30),
            (FOUR, 24, 11),
        ],
    )
    def test_integers(self, rows, n, k):
        profile = profile_of(rows, n, k)
        for direction in ("forward", "reverse"):
            largest = min(profile._losses[direction], 3.0)
            smallest = 1.0
            for epsilon in np.linspace(0.0, 1.0, 12)[:-1] ** 0.6 * largest:
                truth = summed_delta(rows, n, k, epsilon, direction)
                if truth == 0:
                    continue
                smallest = min(smallest, float(truth))
                lower, upper = profile.bounds(epsilon, direction=direction)
                with mp.workdps(50):
                    assert lower <= truth <= upper
                assert upper <= lower * (1 + 1e-10)
                assert_relative(profile.delta(epsilon, direction=direction), truth)
            if rows is THREE and n >= 60:
                assert smallest < 1e-18

    def test_delta_of_1e_minus_60(self):
        rows, n, k = THREE, 100, 37
        profile = profile_of(rows, n, k)
        for delta in (1e-12, 1e-30, 1e-60):
            for direction in ("forward", "reverse"):
                epsilon = profile.epsilon(delta, direction=direction)
                at = summed_delta(rows, n, k, epsilon, direction)
                before = summed_delta(rows, n, k, epsilon * (1 - 1e-12), direction)
                assert at <= delta * (1 + 1e-12)
                assert before >= delta * (1 - 1e-12)

    def test_beyond_the_range_of_a_double(self):
        rows, n, k = ((0.5, 0.5 - 1e-300, 1e-300), (0.75, 0.25, 1e-290)), 6, 2
        profile = profile_of(rows, n, k)
        truth = summed_delta(rows, n, k, 20.0, "forward")
        with mp.workdps(50):
            assert_allclose(profile.log_delta(20.0), float(mp.log(truth)), rtol=2e-15, atol=0)
        assert profile.epsilon(0.0) == pytest.approx(10 * math.log(10), rel=1e-15)

    def test_rows_that_nearly_agree(self):
        # losses of 1e-12, of which a difference of rounded masses would see nothing
        gap = 2.0**-40
        rows, n, k = ((0.5, 0.25, 0.25), (0.5 - gap, 0.25 + gap, 0.25)), 40, 17
        profile = profile_of(rows, n, k)
        for direction in ("forward", "reverse"):
            truth = summed_delta(rows, n, k, 0.0, direction)
            assert_relative(profile.delta(0.0, direction=direction), truth)


class TestTruncated:
    @pytest.mark.parametrize(
        ("rows", "n", "k"), [(THREE, 100, 37), (THREE, 100, 0), (FOUR, 24, 11)]
    )
    @pytest.mark.parametrize("log_truncation", [-30.0, -80.0])
    def test_bracket(self, rows, n, k, log_truncation):
        profile = profile_of(rows, n, k, log_truncation=log_truncation)
        whole = profile_of(rows, n, k)
        assert profile.validity is fs.Validity.UPPER_BOUND
        assert profile.n_points <= whole.n_points
        epsilons = np.linspace(0.0, profile._losses["forward"], 20)
        for direction in ("forward", "reverse"):
            lower, upper = profile.bounds(epsilons, direction=direction)
            exact_lower, exact_upper = whole.bounds(epsilons, direction=direction)
            assert (lower <= exact_upper).all()
            assert (upper >= exact_lower).all()
            assert (upper - lower <= math.exp(log_truncation) + 1e-10 * upper).all()
            assert_allclose(profile.delta(epsilons, direction=direction), upper, rtol=0, atol=0)
        for alpha in (1e-3, 0.4):
            assert profile.trade_off(alpha) <= whole.trade_off(alpha) + 1e-15
        assert_allclose(profile.kl(), whole.kl(), rtol=1e-9 if log_truncation > -80 else 1e-12)

    def test_epsilon_is_on_the_safe_side(self):
        profile = profile_of(THREE, 1000, 300, log_truncation=-80.0)
        for delta in (1e-3, 1e-8, 1e-30):
            for direction in ("forward", "reverse", "both"):
                epsilon = profile.epsilon(delta, direction=direction)
                assert profile.delta(epsilon, direction=direction) <= delta
                assert profile.delta(epsilon * (1 - 1e-12), direction=direction) > delta
        # below what was left out only the largest loss is safe
        assert profile.epsilon(1e-40) == pytest.approx(math.log(2.5), rel=1e-15)
        assert profile.epsilon(0.9) == 0.0
        assert profile.epsilon(0.0) == pytest.approx(math.log(2.5), rel=1e-15)

    def test_large_orders_are_refused(self):
        profile = profile_of(THREE, 1000, 300, log_truncation=-80.0)
        assert_allclose(profile.renyi(20.0), profile_of(THREE, 1000, 300).renyi(20.0), rtol=1e-12)
        with pytest.raises(ValueError, match=r"order must be <= \d+.* or inf with this window"):
            profile.renyi(1000.0)
        assert profile.renyi(math.inf) == pytest.approx(math.log(2.5), rel=1e-15)

    def test_rare_outputs_at_large_n(self):
        # few histograms matter whatever n, and the counts of the rare outputs are Poisson
        n, rate = 10**9, 2.0**-30
        rows = ((1.0 - 2.0 * rate, rate, rate), (1.0 - 6.0 * rate, 2.0 * rate, 4.0 * rate))
        profile = profile_of(rows, n, 0)
        assert profile.n_points < 50_000
        counts = np.arange(60.0)
        log_factorials = np.cumsum(np.log(np.maximum(counts, 1.0)))
        mass = np.exp(counts * math.log(n * rate) - n * rate - log_factorials)
        excess = counts[:, np.newaxis] + 3.0 * counts - 4.0 * n * rate
        truth = (np.outer(mass, mass) * np.maximum(excess, 0.0)).sum() / n
        assert_allclose(profile.delta(0.0), truth, rtol=1e-5, atol=0)

    def test_chunks_do_not_matter(self, monkeypatch):
        whole = profile_of(FOUR, 24, 11)
        monkeypatch.setattr(_lattice_points, "_POINTS_A_CHUNK", 25)
        chunked = profile_of(FOUR, 24, 11)
        assert len(chunked._points._chunks["forward"]) > 20
        assert chunked.n_points == whole.n_points
        epsilons = np.linspace(0.0, 1.0, 9)
        for direction in ("forward", "reverse"):
            assert_allclose(
                chunked.delta(epsilons, direction=direction),
                whole.delta(epsilons, direction=direction),
                rtol=1e-14,
                atol=0,
            )


class TestOtherMethods:
    def test_homogeneous_bracket(self):
        randomizer, n = fs.Randomizer(THREE), 10_000
        experiment = fs.ShuffleExperiment(randomizer, n, k=0)
        profile = lattice_profile(experiment, log_truncation=-80.0)
        other = homogeneous_profile(experiment, 1e-6)
        for direction in ("forward", "reverse"):
            for epsilon in (0.0, 0.005, 0.02, 0.05):
                lower, upper = profile.bounds(epsilon, direction=direction)
                other_lower, other_upper = other.bounds(epsilon, direction=direction)
                assert lower <= other_upper
                assert upper >= other_lower
                assert upper <= lower * (1 + 1e-9)

    def test_proportional_outputs_are_merged(self):
        # the third output is the second one split: two groups, the binary case
        split = fs.Randomizer([[0.5, 0.25, 0.25], [0.75, 0.125, 0.125]])
        binary = fs.Randomizer([[0.5, 0.5], [0.75, 0.25]])
        for k in (0, 150, 399):
            profile = lattice_profile(fs.ShuffleExperiment(split, 400, k=k))
            exact = fs.exact_profile(fs.ShuffleExperiment(binary, 400, k=k))
            for direction in ("forward", "reverse"):
                for epsilon in (0.0, 0.03, 0.1, 0.4):
                    assert_allclose(
                        profile.delta(epsilon, direction=direction),
                        exact.delta(epsilon, direction=direction),
                        rtol=STATED,
                        atol=0,
                    )
                assert_allclose(
                    profile.epsilon(1e-9, direction=direction),
                    exact.epsilon(1e-9, direction=direction),
                    rtol=STATED,
                    atol=0,
                )

    def test_nearly_proportional_outputs(self):
        # not merged, so that the lattice is summed; the deltas are continuous
        split = fs.Randomizer([[0.5, 0.25, 0.25], [0.75, 0.125 + 2.0**-46, 0.125 - 2.0**-46]])
        binary = fs.Randomizer([[0.5, 0.5], [0.75, 0.25]])
        profile = lattice_profile(fs.ShuffleExperiment(split, 400, k=150))
        exact = fs.exact_profile(fs.ShuffleExperiment(binary, 400, k=150))
        assert profile.n_points > 10_000
        for epsilon in (0.0, 0.03, 0.1, 0.4):
            assert_allclose(profile.delta(epsilon), exact.delta(epsilon), rtol=1e-10, atol=0)

    def test_laws_sum_to_one(self):
        profile = profile_of(
            ((0.5, 0.3, 0.2), (0.2, 0.36, 0.44)), 20_000, 7_000, log_truncation=-80
        )
        masses = [0.0, 0.0]
        for side, chunks in profile._points._chunks.items():
            for chunk in chunks:
                larger = np.exp(chunk.points[:, 1])
                smaller = np.exp(chunk.points[:, 1] - chunk.points[:, 0])
                masses[side == "forward"] += larger.sum()
                masses[side == "reverse"] += smaller.sum()
        assert_allclose(masses, 1.0, rtol=STATED, atol=0)


class TestSymmetries:
    @pytest.mark.parametrize("rows", [THREE, FOUR, SMALL["two of a"]])
    def test_swap(self, rows):
        n, k = 30, 9
        randomizer = fs.Randomizer(rows)
        profile = lattice_profile(fs.ShuffleExperiment(randomizer, n, k=k))
        swapped = lattice_profile(
            fs.ShuffleExperiment(randomizer, n, others={0: n - 1 - k, 1: k}, pair=(1, 0))
        )
        exchanged = lattice_profile(fs.ShuffleExperiment(fs.Randomizer(rows[::-1]), n, k=n - 1 - k))
        for epsilon in (0.0, 0.1, 0.5, math.inf):
            for there, back in (("forward", "reverse"), ("reverse", "forward")):
                value = profile.delta(epsilon, direction=there)
                for other in (swapped, exchanged):
                    found = other.delta(epsilon, direction=back)
                    assert_allclose(found, value, rtol=STATED, atol=0)

    @pytest.mark.parametrize("rows", [THREE, FOUR, SMALL["two of b"]])
    def test_relabel(self, rows):
        value = profile_of(rows, 30, 9).delta([0.0, 0.1, 0.5])
        for shift in range(1, len(rows[0])):
            relabelled = [row[shift:] + row[:shift] for row in rows]
            assert_allclose(
                profile_of(relabelled, 30, 9).delta([0.0, 0.1, 0.5]), value, rtol=STATED, atol=0
            )

    def test_equal_rows(self):
        profile = profile_of((THREE[0], THREE[0]), 100, 30)
        assert profile.delta(0.0) == 0.0
        assert profile.epsilon(0.0) == 0.0
        assert profile.bounds(0.0) == (0.0, 0.0)
        assert profile.trade_off(0.25) == 0.75
        assert profile.kl() == profile.jensen_shannon() == 0.0


class TestErrors:
    def test_not_an_experiment(self):
        with pytest.raises(TypeError, match="experiment must be a ShuffleExperiment, got int"):
            lattice_profile(3)

    def test_another_input(self):
        randomizer = fs.Randomizer([*THREE, [0.3, 0.3, 0.4]])
        experiment = fs.ShuffleExperiment(randomizer, 10, others={0: 4, 2: 5})
        with pytest.raises(ValueError, match=r"inputs 0 and 1 only, got \[2\].*bracket"):
            lattice_profile(experiment)

    def test_too_many_outputs(self):
        rows = [[0.1, 0.2, 0.3, 0.2, 0.2], [0.2, 0.2, 0.2, 0.1, 0.3]]
        with pytest.raises(ValueError, match="at most 4 groups of equal ratio, got 5.*bracket"):
            profile_of(rows, 10, 3)

    @pytest.mark.parametrize(("rows", "n"), [(THREE, 10**6), (FOUR, 10**4), (THREE, 2**53)])
    def test_too_many_histograms(self, rows, n):
        with pytest.raises(ValueError, match="at most 60000000, got about .* at n = .*bracket"):
            profile_of(rows, n, n // 2)

    def test_too_many_histograms_found_late(self, monkeypatch):
        # where the estimate is too low, the sum itself stops
        monkeypatch.setattr(_lattice_window.Window, "_correlation", lambda *_: 0.0)
        monkeypatch.setattr(_lattice_points, "_MOST_POINTS", 100)
        with pytest.raises(ValueError, match="at most 100"):
            profile_of(THREE, 40, 20, log_truncation=-80.0)

    @pytest.mark.parametrize("value", [-10.0, -701.0, math.nan])
    def test_truncation(self, value):
        with pytest.raises(ValueError, match=r"log_truncation must be in \[-700, -30\]"):
            profile_of(THREE, 40, 20, log_truncation=value)

    def test_underflow(self):
        randomizer = fs.randomizers.k_randomized_response(epsilon0=800.0, k=3)
        with pytest.raises(ValueError, match="at least 1e-308"):
            lattice_profile(fs.ShuffleExperiment(randomizer, 40, k=20))

    def test_description(self):
        profile = profile_of(THREE, 40, 20)
        assert "861 histograms, all of the mass" in profile.describe()
        assert profile.experiment.n == profile.n == 40
        assert "LatticeProfile of <ShuffleExperiment" in repr(profile)
        assert profile.to_dict()["setting"]["others"] == {"0": 19, "1": 20}
        with pytest.warns(DeltaWarning):
            profile.epsilon(0.1)
