"""Binary randomized response with personal budgets, against enumeration in fractions."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fastshuffle as fs
from fastshuffle.personalized import grouping
from fastshuffle.personalized.envelope import log_envelope
from fastshuffle.personalized.user import UserProfile, response_pair
from tests.tolerances import STATED
from validation.reference.personalized import response_rows, user_delta, worst_user_delta

GROWTHS = [Fraction(1), Fraction(5, 4), Fraction(2), Fraction(7, 2)]
# (odds of the users, their bits): equal, two levels, all different, with fair coins
POPULATIONS = [
    ([3], [1]),
    ([3, 3], [0, 1]),
    ([20, 2, 2, 2], [0, 1, 1, 0]),
    ([1, 1, 5], [0, 1, 1]),
    ([2, 3, 4, 5, 6], [1, 0, 1, 0, 0]),
    ([1, 9, 2, 7, 3, 3], [1, 1, 0, 0, 1, 1]),
    ([2, 2, 3, 3, 8, 8, 1], [0, 1, 0, 1, 1, 0, 0]),
]


def budgets_of(odds):
    return [math.log(x) for x in odds]


def assert_delta(found, right):
    if right == 0:
        assert found == 0.0
    else:
        assert_allclose(found, float(right), rtol=STATED, atol=0.0)


@pytest.mark.parametrize(("odds", "bits"), POPULATIONS)
def test_known_bits(odds, bits):
    users = [response_rows(Fraction(x)) for x in odds]
    profile = fs.personalized_exact_profile(budgets_of(odds), bits=bits)
    assert profile.validity is fs.Validity.EXACT
    for growth in GROWTHS:
        epsilon = math.log(growth)
        pairs = [user_delta(users, bits, j, 1 - bits[j], growth) for j in range(len(odds))]
        for j, (forward, reverse) in enumerate(pairs):
            # at a budget itself the rounding of the logarithm decides
            if growth < odds[j]:
                user = profile.user(j)
                assert_delta(user.delta(epsilon, direction="forward"), forward)
                assert_delta(user.delta(epsilon, direction="reverse"), reverse)
        if growth < max(odds):
            forwards, reverses = zip(*pairs, strict=True)
            assert_delta(profile.delta(epsilon, direction="forward"), max(forwards))
            assert_delta(profile.delta(epsilon, direction="reverse"), max(reverses))


@pytest.mark.parametrize(("odds", "bits"), POPULATIONS[:-1])
def test_worst_bits_are_exact_where_they_can_be_tried(odds, bits):
    del bits
    users = [response_rows(Fraction(x)) for x in odds]
    profile = fs.personalized_exact_profile(budgets_of(odds))
    assert profile.validity is fs.Validity.EXACT
    growth = Fraction(5, 4)
    worst = [worst_user_delta(users, j, growth) for j in range(len(odds))]
    for j, right in enumerate(worst):
        found = profile.user(j).delta(math.log(growth)) if odds[j] > 1 else 0.0
        assert_allclose(found, float(right), rtol=2.0 * STATED, atol=0.0)
    assert_allclose(profile.delta(math.log(growth)), float(max(worst)), rtol=2.0 * STATED, atol=0.0)


def test_known_values():
    """The two populations of the published counterexamples (math.md section 7)."""
    assert_allclose(
        fs.personalized_exact_profile([5.0] * 100).delta(2.0), 0.4855, rtol=2e-4, atol=0.0
    )
    mixed = fs.personalized_exact_profile([8.0, *[1.0] * 9])
    assert_allclose(mixed.delta(3.0), 0.0592, rtol=1e-3, atol=0.0)


@pytest.mark.parametrize("n", [2, 300, 5_000])
def test_equal_budgets_are_the_uniform_functions(n):
    rr = fs.binary_randomized_response(1.5)
    worst = fs.personalized_exact_profile([1.5] * n)
    known = fs.personalized_exact_profile([1.5] * n, bits=[0] * n)
    uniform = fs.exact_profile(fs.ShuffleExperiment(rr, n=n, k=0))
    for epsilon in (0.0, 0.02, 0.3, 1.0):
        assert_allclose(
            worst.delta(epsilon), fs.worst_case_profile(rr, n).delta(epsilon), rtol=3e-6, atol=0.0
        )
        for direction in ("forward", "reverse"):
            assert_allclose(
                known.log_delta(epsilon, direction=direction),
                uniform.log_delta(epsilon, direction=direction),
                rtol=STATED,
                atol=0.0,
            )
    assert_allclose(known.trade_off(0.3), uniform.trade_off(0.3), rtol=STATED, atol=0.0)


def test_envelope_holds_the_curves_of_many_bits():
    """Too many compositions to try them all: none that is tried lies above."""
    rng = np.random.default_rng(7)
    for n in (16, 40, 150):
        budgets = np.concatenate(([3.5], rng.uniform(0.2, 3.5, n - 1)))
        profile = fs.personalized_exact_profile(budgets)
        assert profile.validity is fs.Validity.UPPER_BOUND
        tried = [np.zeros(n, dtype=int), np.arange(n) % 2]
        tried += [(rng.random(n) < share).astype(int) for share in (0.02, 0.1, 0.5, 0.9)]
        for epsilon in (0.0, 0.01, 0.1, 0.5, 1.5):
            low, high = profile.bounds(epsilon)
            found = [
                fs.personalized_exact_profile(budgets, bits=bits).user(0).delta(epsilon)
                for bits in tried
            ]
            assert max(found) <= high
            assert low <= high
            assert low >= found[0] * (1.0 - 1e-11)


@pytest.mark.parametrize("counts", [[55], [296], [20, 8], [4, 4]])
@pytest.mark.parametrize("fraction", [0.0, 1e-6, 0.1, 0.5, 0.999])
def test_envelope_of_few_that_ever_flip(counts, fraction):
    """Where the sum over the circle needs all of its nodes."""
    budgets, own = np.array([5.0, 8.0][: len(counts)]), 0.9
    zeros = grouping.group_rows(-budgets, np.array(counts, dtype=float))
    ones = grouping.group_rows(budgets, np.array(counts, dtype=float))
    log_odds = np.concatenate((-budgets, budgets))
    largest = -math.inf
    for held in itertools.product(*(range(count + 1) for count in counts)):
        k = np.array(held, dtype=float)
        rows = grouping.group_rows(log_odds, np.concatenate((counts - k, k)))
        profile = UserProfile(own, rows, 0, 1 + sum(counts))
        largest = max(largest, profile.log_delta(own * fraction, direction="forward"))
    assert largest <= log_envelope(own * fraction, zeros, ones, response_pair(own))


def test_envelope_is_narrow():
    budgets = np.random.default_rng(3).uniform(0.2, 4.0, 5_000)
    profile = fs.personalized_exact_profile(budgets)
    for epsilon, width in ((0.0, 1e-3), (0.05, 0.01), (0.2, 0.1)):
        low, high = profile.bounds(epsilon)
        assert low <= high <= low * (1.0 + width)


def test_envelope_is_above_the_certified_search():
    """Others of one budget: the envelope of the general case against branch and bound."""
    others = np.array([1.0]), np.array([400.0])
    envelope = fs.personalized.worst_bits._Envelope(2.0, *others, 401)
    search = fs.personalized.worst_bits._Search(2.0, 1.0, 400.0, 1e-6)
    for epsilon in (0.0, 0.003, 0.05, 0.2, 0.7):
        assert search(epsilon).lower <= envelope(epsilon).upper
        assert envelope(epsilon).upper <= search(epsilon).upper + 0.3


def test_gauss_rule_of_many_budgets(monkeypatch):
    rng = np.random.default_rng(5)
    budgets, bits = rng.uniform(0.05, 6.0, 3_000), rng.integers(0, 2, 3_000)
    few = fs.personalized_exact_profile(budgets, bits=bits)
    monkeypatch.setattr(grouping, "_MANY", 10**9)
    many = fs.personalized_exact_profile(budgets, bits=bits)
    assert len(few._all) < 200 < len(many._all)
    epsilons = [0.0, 1e-3, 0.1, 0.5, 2.0]
    for of in (lambda p: p, lambda p: p.user(int(budgets.argmin())), lambda p: p.user(17)):
        inside = [e for e in epsilons if of(few).delta(e) > 0.0]
        assert_allclose(
            of(few).log_delta(inside), of(many).log_delta(inside), rtol=STATED, atol=0.0
        )
    assert_allclose(few.epsilon(1e-200), many.epsilon(1e-200), rtol=STATED, atol=0.0)


def test_tiny_deltas_of_many_probabilities():
    """Some 100 different probabilities, deltas of 1e-200, against a sum in 400 digits."""
    odds = [Fraction(j + 2, 2) for j in range(100)]
    bits = [j % 2 for j in range(100)]
    law = [Fraction(1)]
    for x, bit in zip(odds[:-1], bits[:-1], strict=True):
        p = (x if bit else 1) / (1 + x)
        law = [
            a * (1 - p) + b * p
            for a, b in zip([*law, Fraction(0)], [Fraction(0), *law], strict=True)
        ]
    keep = odds[-1] / (1 + odds[-1])
    padded = [Fraction(0), *law, Fraction(0)]
    profile = fs.personalized_exact_profile([math.log(x) for x in odds], bits=bits).user(99)
    for growth in (Fraction(3, 2), Fraction(20), Fraction(49)):
        # the user holds 1: forward counts zeros
        p = [keep * padded[x + 1] + (1 - keep) * padded[x] for x in range(101)]
        q = [(1 - keep) * padded[x + 1] + keep * padded[x] for x in range(101)]
        right = sum(max(a - growth * b, Fraction(0)) for a, b in zip(p, q, strict=True))
        assert_allclose(
            profile.log_delta(math.log(growth), direction="forward"),
            math.log(right.numerator) - math.log(right.denominator),
            rtol=STATED,
            atol=0.0,
        )


def test_epsilons_of_all_users():
    budgets = [0.5, 2.0, 0.5, 1.0, 0.0]
    profile = fs.personalized_exact_profile(budgets, bits=[0, 1, 1, 0, 0])
    found = profile.epsilons(0.01)
    assert found.tolist() == [profile.user(j).epsilon(0.01) for j in range(5)]
    assert found[4] == 0.0
    assert found.max() == profile.epsilon(0.01)
    many = np.linspace(0.1, 3.0, 500)
    profile = fs.personalized_exact_profile(many, bits=[0] * 500)
    found = profile.epsilons(1e-6)
    assert (np.diff(found) >= 0.0).all()
    for j in (0, 3, 250, 499):
        own = profile.user(j).epsilon(1e-6)
        assert own <= found[j] <= 1.3 * own


def test_a_more_careful_neighbour_may_hide_less_at_one_dataset():
    """The worst curve rises with each budget; the curve at a given dataset need not."""

    def delta(other, bits=None):
        budgets = [2.0, 0.5, 1.0, 2.0, other]
        return fs.personalized_exact_profile(budgets, bits=bits).user(0).delta(0.0)

    assert delta(1.5, bits=[0, 0, 0, 0, 1]) < 0.98 * delta(0.5, bits=[0, 0, 0, 0, 1])
    assert delta(1.5) > delta(0.5)


def test_worst_user_has_the_largest_budget():
    budgets = [0.3, 1.1, 2.2, 0.9]
    for bits in itertools.product((0, 1), repeat=4):
        profile = fs.personalized_exact_profile(budgets, bits=bits)
        for epsilon in (0.0, 0.4):
            users = [profile.user(j).delta(epsilon) for j in range(4)]
            assert profile.delta(epsilon) == max(users)


def test_fair_coins_and_one_user():
    alone = fs.personalized_exact_profile([1.0])
    assert_allclose(alone.delta(0.0), math.tanh(0.5), rtol=2.0 * STATED, atol=0.0)
    assert fs.personalized_exact_profile([0.0, 0.0]).delta(0.0) == 0.0
    huge = fs.personalized_exact_profile([800.0, 800.0], bits=[0, 1])
    assert_allclose(huge.delta(700.0), 1.0, rtol=STATED, atol=0.0)


@pytest.mark.parametrize(
    ("budgets", "bits", "message"),
    [
        ([], None, "at least one user"),
        (1.0, None, "1-D"),
        ([[1.0]], None, "1-D"),
        ([1.0, -0.5], None, ">= 0 and at most 1e6, got -0.5 at index 1"),
        ([1.0, math.inf], None, "got inf at index 1"),
        ([math.nan], None, "got nan"),
        ([1.0, 2.0], [0], "as many as epsilons, 2"),
        ([1.0, 2.0], [0, 0.5], "0 or 1, got 0.5 at index 1"),
        ([1.0, 2.0], [0, 2], r"in \[0, 1\], got 2"),
    ],
)
def test_bad_input(budgets, bits, message):
    with pytest.raises(ValueError, match=message):
        fs.personalized_exact_profile(budgets, bits=bits)


def test_bad_types():
    with pytest.raises(TypeError):
        fs.personalized_exact_profile([1.0, "2"])
    with pytest.raises(ValueError, match="user must be <= 1"):
        fs.personalized_exact_profile([1.0, 2.0]).user(2)


@pytest.mark.parametrize(("n", "width"), [(14, 0.01), (50, 1.3), (300, 1.3)])
def test_bracket_of_few_users_far_out(n, width):
    """Where others hardly hide, the blanket says so and the envelope does not."""
    budgets = np.random.default_rng(2).uniform(0.2, 4.0, n)
    profile = fs.personalized_exact_profile(budgets)
    assert profile.validity is fs.Validity.UPPER_BOUND
    for delta in (1e-3, 1e-6):
        known = fs.personalized_exact_profile(budgets, bits=[0] * n).epsilon(delta)
        low, high = profile.log_bounds(known)
        assert low <= high <= low + width


@pytest.mark.parametrize(
    "budgets",
    [
        [1e-300, 1e-12, 1e-3] * 50,
        [800.0, 1000.0, 700.0] * 20,
        [1e-9, 50.0, 800.0, *[1.0] * 30, *np.linspace(0.1, 2.0, 30)],
        [1e6, 1.0, 2.0, *np.linspace(1.0, 2.0, 20)],
        list(1.0 + 1e-15 * np.arange(300)),
        [0.0] * 20,
    ],
    ids=["tiny", "huge", "mixed", "largest", "nearly equal", "coins"],
)
def test_extreme_budgets(budgets):
    """Curves fall, inverses are safe, and nothing overflows or is nan, by every method."""
    bits = np.arange(len(budgets)) % 2
    for profile in (
        fs.personalized_exact_profile(budgets),
        fs.personalized_exact_profile(budgets, bits=bits),
        fs.personalized_clone_profile(budgets),
        fs.personalized_clone_profile(budgets, 1e-9, family="containing"),
        fs.personalized_k_rr_profile(budgets, 5),
    ):
        curve = profile.log_delta([0.0, 1e-12, 0.1, 1.0, 30.0, 750.0, math.inf])
        fallen = np.where(curve[1:] == -math.inf, True, curve[1:] <= curve[:-1] + 1e-3)
        assert fallen.all()
        for delta in (0.0, 1e-300, 1e-8):
            epsilon = profile.epsilon(delta)
            assert epsilon == math.inf or profile.delta(epsilon) <= delta
        assert (profile.trade_off([0.0, 0.1, 1.0]) >= 0.0).all()
