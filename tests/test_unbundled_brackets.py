"""Several messages with any outputs: all histograms in fractions, and brackets at any size."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf
from numpy.testing import assert_allclose

import fastshuffle as fs
from fastshuffle.exact._replacing import log_factor
from fastshuffle.exact._scores import Users, log_lower_delta
from fastshuffle.exact.dispatch import _one_message
from fastshuffle.exact.revealing import bracket_profile
from tests.tolerances import FEW_ROUNDINGS, STATED
from validation.reference import exact
from validation.reference.messages import enumerated_pair, unbundled_delta, unbundled_pair

pytestmark = pytest.mark.filterwarnings("ignore::fastshuffle.DeltaWarning")

ROWS = [[0.5, 0.25, 0.25], [0.125, 0.375, 0.5], [0.25, 0.5, 0.25]]
ZEROS = [[0.5, 0.5, 0.0, 0.0], [0.25, 0.0, 0.5, 0.25], [0.25, 0.25, 0.5, 0.0]]
FOUR = [[0.5, 0.125, 0.125, 0.25], [0.125, 0.5, 0.125, 0.25], [0.25, 0.125, 0.5, 0.125]]
# Rows, others, pair and messages.
SMALL = [
    (ROWS, {}, (0, 1), 3),
    (ROWS, {2: 3}, (0, 1), 3),
    (ROWS, {0: 2}, (1, 0), 4),
    (ROWS, {0: 1, 1: 1, 2: 1}, (0, 2), 3),
    (ZEROS, {2: 2}, (0, 1), 3),
    (ZEROS, {0: 2}, (0, 1), 2),
    (ZEROS, {0: 1, 2: 2}, (1, 0), 2),
    (FOUR, {2: 5}, (0, 1), 2),
    (FOUR, {0: 1, 1: 2}, (1, 0), 3),
]


def fractions(rows):
    return [[Fraction(p) for p in row] for row in rows]


def ratio_of(epsilon):
    with mp.workdps(60):
        return Fraction(int(mp.exp(mpf(epsilon)) * 10**50), 10**50)


def test_the_reference_by_every_outcome():
    for rows, others, pair, messages in ((ROWS, {}, (0, 1), 3), (ROWS, {2: 2}, (1, 0), 2)):
        arguments = fractions(rows), others, pair, messages
        for law, listed in zip(
            unbundled_pair(*arguments), enumerated_pair(*arguments, bundled=False), strict=True
        ):
            assert sorted(law.values()) == sorted(listed.values())


@pytest.mark.parametrize("case", SMALL, ids=str)
def test_all_histograms_in_fractions(case):
    """The exact profile of few messages, and that the bracket for any number holds it."""
    rows, others, pair, messages = case
    n = 1 + sum(others.values())
    e = fs.ShuffleExperiment(fs.Randomizer(rows), n, others=others, pair=pair, messages=messages)
    profile, bracket = fs.exact_profile(e), fs.revealing_profile(e)
    assert profile.validity is fs.Validity.EXACT
    assert bracket.validity is fs.Validity.UPPER_BOUND
    q, p = unbundled_pair(fractions(rows), others, pair, messages)
    for direction, laws in (("forward", (p, q)), ("reverse", (q, p))):
        for epsilon in (0.0, 0.2, 1.0, 2.5, 5.0):
            truth = float(exact.hockey_stick(*laws, ratio_of(epsilon)))
            assert_allclose(profile.delta(epsilon, direction=direction), truth, rtol=STATED, atol=0)
            lower, upper = bracket.bounds(epsilon, direction=direction)
            assert lower <= truth * (1.0 + 1e-12)
            assert truth <= upper * (1.0 + 1e-12)
        infinite = float(sum(x for place, x in laws[0].items() if not laws[1].get(place)))
        assert_allclose(profile.delta(math.inf, direction=direction), infinite, rtol=STATED, atol=0)
        lower, upper = bracket.bounds(math.inf, direction=direction)
        assert lower <= infinite <= upper
        if len(others) == 1:
            assert upper <= lower * (1.0 + 1e-9)
    beta = float(exact.trade_off(p, q, Fraction(1, 8)))
    assert_allclose(profile.trade_off(0.125, direction="forward"), beta, rtol=1e-11, atol=0)
    if len(others) == 2:
        assert bracket.trade_off(0.125, direction="forward") <= beta
    divergence = sum(
        mp.mpf(x.numerator) / x.denominator * mp.log(mp.mpf(Fraction(x, q[place]).numerator)
        / Fraction(x, q[place]).denominator)
        for place, x in p.items() if q.get(place)
    )  # fmt: skip
    kl = profile.kl(direction="forward")
    if all(q.get(place) for place in p):
        assert_allclose(kl, float(divergence), rtol=STATED, atol=0)
    else:
        assert kl == math.inf


@pytest.mark.parametrize("others", [{0: 2, 1: 1, 2: 3}, {1: 3, 2: 3}], ids=str)
def test_one_message_of_any_composition(others):
    """The same sum covers the few users of one message that no other method does."""
    e = fs.ShuffleExperiment(fs.Randomizer(FOUR), 7, others=others)
    profile = fs.exact_profile(e)
    q, p = unbundled_pair(fractions(FOUR), others, (0, 1), 1)
    for epsilon in (0.0, 0.4, 1.2):
        truth = float(exact.hockey_stick(p, q, ratio_of(epsilon)))
        assert_allclose(profile.delta(epsilon, direction="forward"), truth, rtol=STATED, atol=0)


def test_epsilon_of_few_messages_is_the_safe_inverse():
    e = fs.ShuffleExperiment(fs.k_randomized_response(1.0, 5), 12, others={2: 11}, messages=4)
    profile = fs.exact_profile(e)
    assert profile.epsilon(0.0) == 4.0
    for delta in (1e-2, 1e-6, 1e-12):
        epsilon = profile.epsilon(delta)
        assert profile.delta(epsilon) <= delta
        assert profile.delta(epsilon * (1.0 - 1e-11)) >= delta * (1.0 - 1e-10)


@pytest.mark.parametrize(
    ("n", "messages", "width"),
    [(1000, 2, 0.06), (10**4, 4, 0.02), (10**6, 16, 2e-3), (10**9, 40, 2e-3)],
)
@pytest.mark.parametrize("held", [0, 2])
def test_brackets_at_any_size(n, messages, width, held):
    """Measured: a tenth at n = 1,000 and delta = 1e-8, a thousandth from n = 1e6 on."""
    krr = fs.k_randomized_response(2.0, 10)
    e = fs.ShuffleExperiment(krr, n, others={held: n - 1}, messages=messages)
    profile = fs.exact_profile(e)
    for direction in ("forward", "reverse"):
        epsilon = profile.epsilon(1e-8, direction=direction)
        lower, upper = profile.bounds(epsilon, direction=direction)
        assert upper <= 1e-8
        assert lower <= upper <= lower * (1.0 + width)


def test_others_at_the_inputs_of_the_pair():
    """One message replaced at a time, each step by the sum over the lattice."""
    w = fs.Randomizer(ROWS[:2])
    few = fs.ShuffleExperiment(w, 60, k=25, messages=4)
    truth = fs.exact_profile(few)
    assert truth.validity is fs.Validity.EXACT
    bracket = bracket_profile(few, 1e-3, _one_message(few))
    for direction in ("forward", "reverse"):
        for epsilon in (0.0, 0.05, 0.3, 1.0):
            exact_value = truth.delta(epsilon, direction=direction)
            lower, upper = bracket.bounds(epsilon, direction=direction)
            assert lower <= exact_value * (1.0 + 1e-12)
            assert exact_value <= upper * (1.0 + 1e-12)
    more = fs.ShuffleExperiment(w, 2000, k=800, messages=4)
    profile = fs.exact_profile(more)
    assert profile.validity is fs.Validity.UPPER_BOUND
    epsilon = profile.epsilon(1e-8)
    lower, upper = profile.bounds(epsilon)
    assert lower <= upper <= lower * 1.02


def test_others_at_many_inputs():
    """Far apart from the revealing of all inputs but one: the blanket and the scores close in."""
    krr = fs.k_randomized_response(2.0, 8)
    others = {x: 125_000 - (x == 7) for x in range(8)}
    for messages in (1, 3):
        e = fs.ShuffleExperiment(krr, 10**6, others=others, messages=messages)
        epsilon = fs.revealing_profile(e).epsilon(1e-6)
        lower, upper = fs.revealing_profile(e).bounds(epsilon)
        assert 0.0 < lower <= upper <= 1e-6


@pytest.mark.parametrize(
    ("n", "k", "messages"),
    [(20, 7, 3), (1000, 1, 1), (1000, 400, 6), (10**6, 0, 200), (10**12, 10**11, 4)],
)
@pytest.mark.parametrize(("p0", "p1"), [(0.375, 0.625), (0.01, 0.03)])
def test_scores_of_two_outputs_are_the_exact_profile(n, k, messages, p0, p1):
    """Any scores of two outputs count the ones, so the bound is the exact delta but for the cut."""
    share = k / n
    variance = (1 - share) * p0 * (1 - p0) + share * p1 * (1 - p1)
    mu = (p1 - p0) * math.sqrt(messages / (n * variance))
    w = fs.Randomizer.from_probabilities([p0, p1])
    merged = w.merged((0, 1, 0, 1))
    counts = np.array([(n - 1 - k) * messages, k * messages], dtype=float)
    users = Users(
        counts, merged.rows[2:], merged.rows[0], merged.rows[1], merged.log_ratios[1], messages
    )
    for factor in (0.3, 3.0, 12.0):
        epsilon = factor * mu
        groups = [(int(count), p) for count, p in zip(counts, (p0, p1), strict=True) if count]
        truth = unbundled_delta(groups, p0, p1, messages, epsilon)
        found = log_lower_delta(users, epsilon)
        if truth == 0:
            assert found == -math.inf
            continue
        with mp.workdps(40):
            gap = float(mpf(found) - mp.log(truth))
        assert gap <= 0.0
        assert gap >= (-1e-4 if n * variance > 1e3 else -1.0)


def test_one_message_is_the_bracket_of_one_message():
    krr = fs.k_randomized_response(1.0, 4)
    one = fs.ShuffleExperiment(krr, 1000, others={2: 999}, messages=1)
    assert fs.exact_profile(one).delta(0.1) == fs.revealing_profile(one).delta(0.1)


def test_the_factor_of_replacing():
    for step, messages, clear in ((0.0, 5, 0.0), (1e-9, 3, 0.0), (0.3, 7, 0.25), (2.0, 4, 1.0)):
        total = sum(
            math.exp(j * step) * (1.0 - clear) ** (messages - 1 - j) for j in range(messages)
        )
        assert_allclose(
            log_factor(step, messages, clear), math.log(total), rtol=FEW_ROUNDINGS, atol=0
        )
    assert log_factor(math.inf, 3) == math.inf


def test_continuous_noise_several_times():
    e = fs.ShuffleExperiment(fs.laplace(1.0), 1000, others={0: 999}, messages=3)
    more = fs.ShuffleExperiment(fs.laplace(1.0), 2998, others={0: 2997})
    profile = fs.exact_profile(e)
    lower, upper = profile.bounds(0.3)
    assert lower == 0.0
    factor = math.expm1(0.3) / math.expm1(0.1)
    assert_allclose(upper, factor * fs.exact_profile(more).delta(0.1), rtol=1e-9, atol=0)


# ---- Worst case --------------------------------------------------------------------------------

SYMMETRIC = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]]
INFINITE = [[0.5, 0.5, 0.0], [0.25, 0.25, 0.5], [0.25, 0.5, 0.25]]
BINARY = [[0.75, 0.25], [0.5, 0.5], [0.25, 0.75]]


@pytest.mark.parametrize(
    ("rows", "n", "messages"),
    [
        (ROWS, 1, 3),
        (ROWS, 4, 3),
        (SYMMETRIC, 3, 3),
        (INFINITE, 2, 4),
        (INFINITE, 3, 2),
        (BINARY, 4, 3),
        (BINARY, 2, 4),
    ],
    ids=str,
)
def test_worst_case_over_every_dataset(rows, n, messages):
    """All datasets of nm <= 12 messages, in both directions: none is above the bound."""
    worst = fs.worst_case_profile(fs.Randomizer(rows), n, messages=messages)
    assert worst.validity is fs.Validity.UPPER_BOUND
    laws = []
    for held in itertools.combinations_with_replacement(range(3), n - 1):
        others = {x: held.count(x) for x in set(held)}
        for pair in itertools.permutations(range(3), 2):
            q, p = (
                np.array([float(law.get(place, 0)) for place in histograms(n * messages, rows)])
                for law in unbundled_pair(fractions(rows), others, pair, messages)
            )
            laws.append((q, p))
    for epsilon in (0.0, 0.1, 0.5, 1.5, 4.0, math.inf):
        ratio = math.exp(epsilon)
        truth = max(
            float(np.maximum(p - np.where(q > 0.0, ratio, 0.0) * np.maximum(q, 1e-300), 0.0).sum())
            for q, p in laws
        )
        lower, upper = worst.bounds(epsilon)
        assert lower <= truth * (1.0 + 1e-12)
        assert truth <= upper * (1.0 + 1e-12)
    alpha = 0.1
    sorted_out = min(float(type_two_error(q, p, alpha)) for q, p in laws)
    assert worst.trade_off(alpha) <= sorted_out + 1e-12


def histograms(total, rows):
    return [
        place
        for place in itertools.product(range(total + 1), repeat=len(rows[0]))
        if sum(place) == total
    ]


def type_two_error(q, p, alpha):
    order = np.argsort(-p / (p + q + 1e-300))
    level = np.cumsum(q[order])
    power = np.interp(
        alpha, np.concatenate(([0.0], level)), np.concatenate(([0.0], np.cumsum(p[order])))
    )
    return 1.0 - power


def test_worst_case_at_any_size():
    krr = fs.k_randomized_response(2.0, 16)
    for n, messages, width in ((10**4, 4, 0.02), (10**8, 32, 2e-3)):
        worst = fs.worst_case_profile(krr, n, messages=messages)
        epsilon = worst.epsilon(1e-8)
        lower, upper = worst.bounds(epsilon)
        assert upper <= 1e-8
        assert lower <= upper <= lower * (1.0 + width)
        found = worst.argmax(epsilon)
        assert found.experiment.messages == messages
        assert set(found.experiment.others) == {2}
        attained = fs.exact_profile(found.experiment)
        assert attained.bounds(epsilon, direction=found.direction)[1] >= lower
    assert worst.to_dict()["setting"]["messages"] == 32


def test_worst_case_edges():
    krr = fs.k_randomized_response(1.0, 3)
    worst = fs.worst_case_profile(krr, 50, messages=3)
    assert worst.epsilon(0.0) == 3.0
    assert worst.delta(3.0) == 0.0
    infinite = fs.worst_case_profile(fs.Randomizer(INFINITE), 50, messages=3)
    lower, upper = infinite.bounds(math.inf)
    assert_allclose([lower, upper], 0.875, rtol=1e-9, atol=0)
    assert infinite.epsilon(0.5) == math.inf
    noise = fs.worst_case_profile(fs.laplace(1.0), 10**4, messages=3)
    assert noise.bounds(0.1)[0] == 0.0
    assert 0.0 < noise.epsilon(1e-6) < 3.0
