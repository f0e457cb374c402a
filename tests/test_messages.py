"""Several messages a user: exact profiles against enumeration and sums at 60 digits and more."""

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from mpmath import mp, mpf
from numpy.testing import assert_allclose

import fastshuffle as fs
from fastshuffle._kernels.binomial_groups import log_mass
from fastshuffle._kernels.unbundled import message_laws, unbundled_hockey_stick
from tests.laws import group_rows, hockey_stick_pair, randomizer
from tests.tolerances import STATED, STATED_DIVERGENCE
from validation.reference import exact
from validation.reference.messages import enumerated_pair, unbundled_delta

# An interpreted kernel warns where machine code returns the same infinity without a word.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*encountered in scalar:RuntimeWarning", "ignore::fastshuffle.DeltaWarning"
)
jit_free = pytest.mark.jit_free

STORED = json.loads((Path(__file__).parent / "data" / "finite_n_unbundled.json").read_text())
RR = fs.binary_randomized_response(1.0)
EPSILONS = [0.0, 1e-9, 0.01, 0.1, 0.5, 1.0, 2.0, 3.5, 6.0]


def log_delta_and_cut(epsilon, groups, law_a, law_b, messages):
    """Call the kernel for others in groups of messages, law_b > law_a."""
    laws = np.empty((3, len(groups) + 2, 5))
    own = group_rows([(messages, law_a), (messages, law_b)])
    message_laws(group_rows(groups), own, laws)
    result = np.empty(2)
    unbundled_hockey_stick(
        epsilon, hockey_stick_pair(law_a, law_b), laws, np.empty((len(groups) + 2, 4)),
        np.empty(6), np.empty(4), result,
    )  # fmt: skip
    return result


# (messages of the others, law under Q, larger law under P, messages of the differing user)
SMALL = [
    ([], 0.2, 0.7, 1),
    ([], 0.2, 0.7, 3),
    ([(7, 0.2)], 0.2, 0.21, 4),
    ([(18, 0.2), (15, 0.7)], 0.2, 0.7, 3),
    ([(76, 0.3)], 0.3, 0.5, 4),
    ([(60, 0.2)], 0.2, 0.21, 10),
    ([(40, 0.2), (20, 0.9)], 0.2, 0.9, 20),
    ([(80, 0.01)], 0.01, 0.02, 40),
    ([(12, 0.3)], 0.0, 0.6, 3),
    ([(40, 0.3)], 0.0, 0.1, 6),
    ([(40, 0.3), (9, 0.01)], 0.4, 1.0, 6),
    ([(20, 0.5)], 0.0, 1.0, 5),
    ([], 0.0, 1.0, 5),
]


@jit_free
@pytest.mark.parametrize(("groups", "law_a", "law_b", "messages"), SMALL, ids=str)
def test_delta_and_cut_by_enumeration(groups, law_a, law_b, messages):
    """In fractions: both regimes, the recursion and the contour, certain messages."""
    p_a, p_b = Fraction(law_a), Fraction(law_b)
    others = [(count, Fraction(law)) for count, law in groups]
    q = exact.binomial_groups([*others, (messages, p_a)])
    p = exact.binomial_groups([*others, (messages, p_b)])
    for epsilon in EPSILONS:
        with mp.workdps(60):
            ratio = Fraction(int(mp.exp(mpf(epsilon)) * 10**50), 10**50)
        delta = exact.hockey_stick(p, q, ratio)
        log_delta, cut = log_delta_and_cut(epsilon, groups, law_a, law_b, messages)
        if delta == 0:
            assert log_delta == -math.inf
            continue
        assert_allclose(math.exp(log_delta), float(delta), rtol=STATED, atol=0)
        x = int(cut)
        assert p[x] > ratio * q[x] or p[x] == q[x] == 0
        assert x == 0 or p[x - 1] <= ratio * q[x - 1]


def large(n, k, messages, p0, p1):
    return [(c * messages, p) for c, p in ((n - 1 - k, p0), (k, p1)) if c], p0, p1, messages


# (n, k, messages, p0, p1): up to the largest sizes stated, epsilons up to 20 mu
LARGE = [
    (300, 299, 55, 0.27, 0.99),
    (50, 10, 10_000, 0.3, 0.4),
    (1808, 0, 6644, 0.0055, 0.015),
    (2_427_062_203, 1_080_982_424, 2, 4.12e-9, 4.33e-9),
    (10**9, 10**8, 10_000, 0.2, 0.6),
    (10**12, 0, 100, 0.27, 0.73),
    (10**12, 3 * 10**11, 100, 0.1, 0.2),
    (10**12, 7, 3, 1e-11, 1e-10),
]


@pytest.mark.parametrize("case", LARGE, ids=str)
def test_delta_at_any_size(case):
    n, k, messages, p0, p1 = case
    share = k / n
    variance = (1 - share) * p0 * (1 - p0) + share * p1 * (1 - p1)
    mu = (p1 - p0) * math.sqrt(messages / (n * variance))
    arguments = large(*case)
    for factor in (0.3, 4.0, 16.0):
        epsilon = factor * mu
        truth = unbundled_delta(*arguments, epsilon)
        log_delta, _ = log_delta_and_cut(epsilon, *arguments)
        if truth == 0:
            assert log_delta == -math.inf
            continue
        with mp.workdps(60):
            assert_allclose(float(mp.exp(mpf(float(log_delta))) / truth), 1.0, rtol=STATED, atol=0)


@jit_free
@pytest.mark.parametrize("groups", [[], [(7, 0.2)], [(500, 0.2), (300, 0.6)], [(10**9, 0.3)]])
@pytest.mark.parametrize("epsilon", [0.0, 1e-7, 1e-4, 0.01, 0.3, 1.0])
def test_one_message_is_the_single_message_kernel(groups, epsilon):
    """The mixture has one part: what `exact_profile` takes from another kernel."""
    w = fs.Randomizer([[0.8, 0.2], [0.4, 0.6], *([1 - law, law] for _, law in groups)])
    others = {i + 2: count for i, (count, _) in enumerate(groups)}
    single = fs.exact_profile(
        fs.ShuffleExperiment(w, 1 + sum(others.values()), others=others)
    ).log_delta(epsilon, direction="forward")
    log_delta, _ = log_delta_and_cut(epsilon, groups, 0.2, 0.6, 1)
    assert_allclose(math.expm1(log_delta - single), 0.0, rtol=0, atol=1e-14 * (1 + abs(single)))


@pytest.mark.parametrize("case", STORED["cases"], ids=lambda c: f"n={c['n']}-m={c['m']}")
def test_stored_values(case):
    w = randomizer(case["p0"], case["p1"])
    e = fs.ShuffleExperiment(w, case["n"], k=case["k"], messages=case["m"])
    profile = fs.exact_profile(e)
    assert profile.validity is fs.Validity.EXACT
    assert profile.experiment is e
    for direction in ("forward", "reverse"):
        for epsilon, value in case[f"delta_{direction}"]:
            delta = profile.delta(epsilon, direction=direction)
            assert_allclose(delta, float(value), rtol=STATED, atol=0)
            lower, upper = profile.bounds(epsilon, direction=direction)
            assert lower <= float(value) <= upper
    for delta, value in case["epsilon"]:
        assert_allclose(profile.epsilon(delta), float(value), rtol=STATED, atol=0)
    for alpha, value in case["beta"]:
        beta = profile.trade_off(alpha, direction="forward")
        assert_allclose(beta, float(value), rtol=STATED, atol=0)
    assert_allclose(profile.total_variation(), float(case["tv"]), rtol=STATED, atol=0)


@pytest.mark.parametrize(("n", "messages"), [(2, 5), (3, 3), (5, 2)])
@pytest.mark.parametrize("pair", [(0, 1), (2, 0)])
def test_profiles_against_every_outcome(n, messages, pair):
    """From the definition, others at three inputs, either order of the pair."""
    rows = [[0.75, 0.25], [0.375, 0.625], [0.125, 0.875]]
    others = {0: n // 2, 2: n - 1 - n // 2}
    e = fs.ShuffleExperiment(fs.Randomizer(rows), n, others=others, pair=pair, messages=messages)
    profile = fs.exact_profile(e)
    exact_rows = [[Fraction(p) for p in row] for row in rows]
    q, p = enumerated_pair(exact_rows, others, pair, messages, bundled=False)
    for epsilon in (0.0, 0.2, 1.0, 2.5):
        with mp.workdps(60):
            ratio = Fraction(int(mp.exp(mpf(epsilon)) * 10**50), 10**50)
        for direction, laws in (("forward", (p, q)), ("reverse", (q, p))):
            truth = float(exact.hockey_stick(*laws, ratio))
            assert_allclose(profile.delta(epsilon, direction=direction), truth, rtol=STATED, atol=0)
    beta = float(exact.trade_off(p, q, Fraction(1, 8)))
    assert_allclose(profile.trade_off(0.125, direction="forward"), beta, rtol=STATED, atol=0)


@pytest.mark.parametrize("direction", ["forward", "reverse", "both"])
@pytest.mark.parametrize(
    ("n", "k", "messages"), [(1, 0, 3), (30, 7, 5), (10**6, 0, 64), (9, 2, 999)]
)
def test_epsilon_is_the_safe_inverse(n, k, messages, direction):
    w = fs.Randomizer([[0.8, 0.2], [0.5, 0.5]])
    profile = fs.exact_profile(fs.ShuffleExperiment(w, n, k=k, messages=messages))
    for delta in (0.5, 1e-3, 1e-8, 1e-100, 1e-300):
        epsilon = profile.epsilon(delta, direction=direction)
        assert profile.delta(epsilon, direction=direction) <= delta
        if epsilon > 0.0:
            below = profile.delta(epsilon * (1.0 - STATED), direction=direction)
            assert below >= delta * (1.0 - 1e-13 * (1.0 - math.log(delta)))


def test_edge_values():
    """The largest loss is m times that of a message; infinite losses leave a certain mass."""
    profile = fs.exact_profile(fs.ShuffleExperiment(RR, 20, k=3, messages=4))
    assert profile.epsilon(0.0) == 4.0
    assert profile.delta(4.0) == profile.delta(math.inf) == 0.0
    assert profile.delta(3.999999) > 0.0
    revealing = fs.Randomizer([[1.0, 0.0], [0.5, 0.5]])
    profile = fs.exact_profile(fs.ShuffleExperiment(revealing, 9, k=0, messages=3))
    assert_allclose(profile.delta(math.inf, direction="forward"), 0.875, rtol=STATED, atol=0)
    assert profile.epsilon(0.8, direction="forward") == math.inf
    same = fs.Randomizer([[0.5, 0.5], [0.5, 0.5]])
    profile = fs.exact_profile(fs.ShuffleExperiment(same, 9, k=0, messages=3))
    assert profile.delta(0.0) == 0.0


def test_more_messages_reveal_more():
    epsilons = np.array([0.0, 0.05, 0.4])
    curves = [
        fs.exact_profile(fs.ShuffleExperiment(RR, 500, k=100, messages=m)).delta(epsilons)
        for m in (1, 2, 3, 8, 50, 1000)
    ]
    assert (np.diff(curves, axis=0) > 0.0).all()


def test_setting_and_refusals():
    e = fs.ShuffleExperiment(RR, 10, k=2, messages=3.0)
    assert e.messages == 3
    assert e.to_dict()["messages"] == 3
    assert "3 messages each" in repr(e)
    assert e != fs.ShuffleExperiment(RR, 10, k=2)
    assert fs.ShuffleExperiment(RR, 10, k=2, messages=1) == fs.ShuffleExperiment(RR, 10, k=2)
    assert "messages" not in fs.ShuffleExperiment(RR, 10, k=2).to_dict()
    with pytest.raises(ValueError, match="messages must be >= 1, got 0"):
        fs.ShuffleExperiment(RR, 10, k=2, messages=0)
    with pytest.raises(TypeError, match=r"messages must be an integer, got 2\.5"):
        fs.ShuffleExperiment(RR, 10, k=2, messages=2.5)
    with pytest.raises(ValueError, match="messages must be <= 8192, got 8193"):
        fs.ShuffleExperiment(RR, 2**40, k=2, messages=8193)
    krr = fs.k_randomized_response(1.0, 5)
    three = fs.ShuffleExperiment(krr, 10**4, others={2: 2, 3: 9_997}, messages=2)
    with pytest.raises(fs.UnsupportedSettingError, match="fall into 2 groups, or be few"):
        fs.exact_profile(three)


@pytest.mark.parametrize(
    "method",
    [
        fs.tangent_profile,
        fs.jensen_shannon_expansion,
        fs.berry_esseen_profile,
    ],
)
def test_methods_for_one_message_refuse_several(method):
    with pytest.raises(
        fs.UnsupportedSettingError, match="messages must be 1 or bundled for this method"
    ):
        method(fs.ShuffleExperiment(RR, 10, k=2, messages=3))


# ---- Divergences -------------------------------------------------------------------------------


def renyi_by_enumeration(p, q, order):
    """From masses in fractions, at 60 digits."""
    pairs = [
        tuple(mpf(x.numerator) / x.denominator for x in masses) for masses in zip(p, q, strict=True)
    ]
    if order >= 1 and any(b == 0 < a for a, b in pairs):
        return mpf("inf")
    both = [(a, b) for a, b in pairs if a > 0 and b > 0]
    if order == 1:
        return mp.fsum(a * mp.log(a / b) for a, b in both)
    return mp.log(mp.fsum(a ** mpf(order) * b ** (1 - mpf(order)) for a, b in both)) / (order - 1)


# The n, k, messages, p0 and p1: laws that nearly agree, that lie far apart, and certain messages
DIVERGENCES = [
    (1, 0, 3, 0.3, 0.6),
    (5, 2, 3, 0.2, 0.7),
    (20, 3, 10, 0.3, 0.35),
    (3, 1, 30, 0.4, 0.6),
    (12, 4, 5, 0.3, 0.3000001),
    (30, 0, 4, 0.0, 0.2),
    (9, 3, 4, 0.25, 1.0),
]


@pytest.mark.parametrize(("n", "k", "messages", "p0", "p1"), DIVERGENCES)
def test_divergences_by_enumeration(n, k, messages, p0, p1):
    w = fs.Randomizer.from_probabilities([p0, p1])
    profile = fs.exact_profile(fs.ShuffleExperiment(w, n, k=k, messages=messages))
    others = [((n - 1 - k) * messages, Fraction(p0)), (k * messages, Fraction(p1))]
    q, p = (exact.binomial_groups([*others, (messages, Fraction(own))]) for own in (p0, p1))
    with mp.workdps(60):
        for direction, laws in (("forward", (p, q)), ("reverse", (q, p))):
            for order in (0.25, 0.5, 1.0, 2.0, 8.0):
                truth = renyi_by_enumeration(*laws, order)
                found = profile.renyi(order, direction=direction)
                assert_allclose(found, float(truth), rtol=STATED_DIVERGENCE, atol=0)
        middle = [(x + y) / 2 for x, y in zip(p, q, strict=True)]
        truth = 0.5 * sum(renyi_by_enumeration(law, middle, 1) for law in (p, q))
        assert_allclose(profile.jensen_shannon(), float(truth), rtol=STATED_DIVERGENCE, atol=0)
    assert profile.kl() == max(profile.renyi(1.0, direction=d) for d in ("forward", "reverse"))
    assert_allclose(profile.chi_square(), np.expm1(profile.renyi(2.0)), rtol=1e-15, atol=0)
    assert_allclose(
        profile.renyi(math.inf),
        messages * profile.experiment.randomizer.epsilon0,
        rtol=1e-15,
        atol=0,
    )


@pytest.mark.parametrize(("n", "messages"), [(10**6, 2), (10**12, 100), (10**10, 10**4)])
def test_divergences_approach_the_limit(n, messages):
    """``m I / (c n)`` with the next term ``O(m / n)``; several messages are no reason for less."""
    w = fs.Randomizer.from_probabilities([0.3, 0.4])
    profile = fs.exact_profile(fs.ShuffleExperiment(w, n, k=0, messages=messages))
    information = fs.fisher_constant(w, 0.0) * messages / n
    for found, c in ((profile.kl(), 2), (profile.chi_square(), 1), (profile.jensen_shannon(), 8)):
        assert_allclose(found, information / c, rtol=information + 1e-12, atol=0)


@pytest.mark.parametrize("case", [(50, 10, 10_000, 0.3, 0.4), (300, 299, 55, 0.27, 0.99)])
def test_divergences_of_laws_far_apart(case):
    """Every point against every stride-th: where P / Q is large, logarithms do not cancel."""
    n, k, messages, p0, p1 = case
    others = [(c * messages, p) for c, p in ((n - 1 - k, p0), (k, p1)) if c]
    variance = sum(c * p * (1 - p) for c, p in others)
    middle = sum(c * p for c, p in others) + 0.5 * messages * (p0 + p1)
    reach = messages * (p1 - p0) + 12.0 * math.sqrt(variance)
    points = np.arange(max(0.0, middle // 1 - reach // 1), min(n * messages, middle + reach))
    log_p, log_q = np.empty(len(points)), np.empty(len(points))
    for own, masses in ((p0, log_q), (p1, log_p)):
        groups = group_rows([*others, (messages, own)])
        masses[:] = [log_mass(x, groups) for x in points.tolist()]
    w = fs.Randomizer.from_probabilities([p0, p1])
    profile = fs.exact_profile(fs.ShuffleExperiment(w, n, k=k, messages=messages))
    kl = math.fsum(np.exp(log_p) * (log_p - log_q))
    assert_allclose(profile.kl(direction="forward"), kl, rtol=1e-11, atol=0)
    log_moment = np.logaddexp.reduce(2.0 * log_p - log_q)
    assert_allclose(profile.renyi(2.0, direction="forward"), log_moment, rtol=1e-11, atol=0)


def test_divergences_refused():
    w = fs.Randomizer.from_probabilities([0.2, 0.8])
    apart = fs.exact_profile(fs.ShuffleExperiment(w, 2, k=0, messages=10**7))
    with pytest.raises(fs.UnsupportedSettingError, match="messages must be fewer"):
        apart.kl()
    many = fs.exact_profile(fs.ShuffleExperiment(w, 10**12, k=0, messages=10))
    with pytest.raises(ValueError, match="order must be <="):
        many.renyi(1e12)


# ---- Worst case --------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [[[0.75, 0.25], [0.375, 0.625]], [[0.9, 0.1], [0.1, 0.9]]])
@pytest.mark.parametrize(("n", "messages"), [(1, 4), (2, 3), (30, 3), (12, 200)])
def test_worst_case_by_trying_every_composition(rows, n, messages):
    w = fs.Randomizer(rows)
    worst = fs.worst_case_profile(w, n, messages=messages)
    assert worst.validity is fs.Validity.UPPER_BOUND
    assert worst.to_dict()["setting"]["messages"] == worst.messages == messages
    each = [fs.exact_profile(fs.ShuffleExperiment(w, n, k=k, messages=messages)) for k in range(n)]
    for epsilon in (0.0, 0.05, 0.7, 2.5):
        truth = max(profile.delta(epsilon) for profile in each)
        lower, upper = worst.bounds(epsilon)
        assert lower <= truth <= upper
        assert upper <= lower * (1.0 + 1.001e-3)
        found = worst.argmax(epsilon)
        attained = fs.exact_profile(found.experiment).delta(epsilon, direction=found.direction)
        assert lower <= attained <= upper
    for delta in (1e-2, 1e-9):
        truth = max(profile.epsilon(delta) for profile in each)
        epsilon = worst.epsilon(delta)
        assert worst.delta(epsilon) <= delta
        assert truth * (1.0 - STATED) <= epsilon <= truth * (1.0 + 2e-4)
    alpha = 0.1
    assert worst.trade_off(alpha) <= min(profile.trade_off(alpha) for profile in each) + 1e-12


@pytest.mark.parametrize(("n", "messages"), [(10**4, 4), (10**9, 100)])
def test_worst_case_at_any_size(n, messages):
    w = fs.Randomizer([[0.75, 0.25], [0.375, 0.625]])
    worst = fs.worst_case_profile(w, n, messages=messages)
    epsilon = worst.epsilon(1e-10)
    assert worst.delta(epsilon) <= 1e-10
    for k in (0, n // 2, n - 1):
        e = fs.ShuffleExperiment(w, n, k=k, messages=messages)
        assert fs.exact_profile(e).delta(epsilon) <= 1e-10


def test_worst_case_edges():
    revealing = fs.Randomizer([[1.0, 0.0], [0.5, 0.5]])
    worst = fs.worst_case_profile(revealing, 9, messages=3)
    each = [fs.exact_profile(fs.ShuffleExperiment(revealing, 9, k=k, messages=3)) for k in range(9)]
    lower, upper = worst.bounds(math.inf)
    assert lower <= max(p.delta(math.inf) for p in each) <= upper
    assert worst.epsilon(0.8) == math.inf
    assert fs.worst_case_profile(RR, 20, messages=3).epsilon(0.0) == 3.0
    assert fs.worst_case_profile(RR, 20, messages=3).delta(3.0) == 0.0
    same = fs.worst_case_profile(fs.Randomizer([[0.5, 0.5]] * 2), 9, messages=2)
    assert same.delta(0.0) == same.epsilon(0.1) == 0.0
    with pytest.raises(ValueError, match="messages must be >= 1, got 0"):
        fs.worst_case_profile(RR, 9, messages=0)
