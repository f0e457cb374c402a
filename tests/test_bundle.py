"""Bundles of messages: their law against enumeration, and their profiles from the definition."""

import copy
import json
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf
from numpy.testing import assert_allclose

import fastshuffle as fs
from tests.tolerances import FEW_ROUNDINGS
from validation.reference import exact
from validation.reference.messages import enumerated_pair

TWO = [[0.75, 0.25], [0.375, 0.625]]
THREE = [[0.5, 0.25, 0.25], [0.125, 0.375, 0.5], [0.25, 0.5, 0.25]]
# The lattice states 1e-12, the homogeneous bracket 1e-3 by default and here 1e-9.
BRACKET = 2e-9


def assert_tuples_merged(randomizer, rows, messages):
    """Every tuple has its ratio among the groups, and the groups have the mass of their tuples."""
    inputs = range(len(rows))
    merged = randomizer.merged(inputs)
    assert_allclose(merged.rows.sum(axis=1), 1.0, rtol=1e-14, atol=0)
    columns = np.array(rows)
    for _ in range(messages - 1):
        columns = np.einsum("xi,xj->xij", columns, rows).reshape(len(rows), -1)
    columns = columns[:, columns.any(axis=0)]
    scaled = columns / columns.max(axis=0)
    groups = merged.rows / merged.rows.max(axis=0)
    distance = np.abs(scaled[:, :, np.newaxis] - groups[:, np.newaxis]).max(axis=0)
    assert (distance.min(axis=1) < 1e-13).all()
    for group, row in zip(distance.argmin(axis=1), columns.T, strict=True):
        merged.rows[:, group] -= row
    assert_allclose(merged.rows, 0.0, rtol=0, atol=1e-14)


@pytest.mark.parametrize("messages", [2, 3, 5])
@pytest.mark.parametrize(
    "rows",
    [TWO, THREE, [[1.0, 0.0], [0.5, 0.5]], [[0.5, 0.5, 0.0], [0.0, 0.25, 0.75]]],
    ids=["two", "three", "zero", "zeros"],
)
def test_law_is_that_of_the_tuples(rows, messages):
    assert_tuples_merged(fs.bundle(fs.Randomizer(rows), messages), rows, messages)


@pytest.mark.parametrize("messages", [2, 40, 3000])
def test_binomial_law_at_any_number_of_messages(messages):
    merged = fs.bundle(fs.Randomizer(TWO), messages).merged((0, 1))
    assert merged.rows.shape == (2, messages + 1)
    order = merged.log_ratios[1].argsort()
    with mp.workdps(60):
        for ones in {0, 1, messages // 3, messages}:
            for row, p in zip(merged.log_rows, (mpf(1) / 4, mpf(5) / 8), strict=True):
                truth = mp.log(mp.binomial(messages, ones) * p**ones * (1 - p) ** (messages - ones))
                assert_allclose(row[order[ones]], float(truth), rtol=1e-13, atol=0)
    step = math.log(2.5) + math.log(2.0)
    assert_allclose(np.diff(merged.log_ratios[1][order]), step, rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("rows", "others", "pair", "messages"),
    [
        (TWO, {0: 3}, (0, 1), 3),
        (TWO, {1: 2}, (0, 1), 4),
        (TWO, {0: 3, 1: 2}, (0, 1), 2),
        (TWO, {0: 1, 1: 2}, (1, 0), 3),
        (THREE, {2: 2}, (0, 1), 2),
        (THREE, {}, (0, 2), 3),
    ],
    ids=str,
)
def test_profiles_by_every_outcome(rows, others, pair, messages):
    n = 1 + sum(others.values())
    e = fs.ShuffleExperiment(
        fs.Randomizer(rows), n, others=others, pair=pair, messages=messages, bundled=True
    )
    profile = fs.exact_profile(e, rtol=1e-9)
    exact_rows = [[Fraction(p) for p in row] for row in rows]
    q, p = enumerated_pair(exact_rows, others, pair, messages, bundled=True)
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        with mp.workdps(60):
            ratio = Fraction(int(mp.exp(mpf(epsilon)) * 10**50), 10**50)
        for direction, laws in (("forward", (p, q)), ("reverse", (q, p))):
            truth = float(exact.hockey_stick(*laws, ratio))
            lower, upper = profile.bounds(epsilon, direction=direction)
            assert lower <= truth <= upper
            if truth > 0.0:
                assert upper <= lower * (1.0 + BRACKET)


def test_keeping_messages_together_reveals_no_less():
    """Shuffling messages apart is a post-processing of shuffling the bundles."""
    w = fs.Randomizer(TWO)
    for n, k in ((2, 1), (40, 0), (40, 39)):
        apart = fs.exact_profile(fs.ShuffleExperiment(w, n, k=k, messages=2))
        together = fs.exact_profile(fs.ShuffleExperiment(w, n, k=k, messages=2, bundled=True))
        for direction in ("forward", "reverse"):
            for epsilon in (0.0, 0.1, 1.0):
                _, upper = together.bounds(epsilon, direction=direction)
                assert apart.delta(epsilon, direction=direction) <= upper


def test_bounds_over_all_datasets():
    """The blanket of a bundle lies above every composition, and is its least tuple by tuple."""
    w = fs.bundle(fs.Randomizer(TWO), 2)
    shared = w.shared_rows((0, 1))
    assert_allclose(shared[2], np.minimum(shared[0], shared[1]), rtol=FEW_ROUNDINGS, atol=0)
    worst = fs.worst_case_profile(w, 5)
    for epsilon in (0.1, 1.0):
        truth = max(
            fs.exact_profile(fs.ShuffleExperiment(w, 5, k=k)).delta(epsilon) for k in range(5)
        )
        lower, upper = worst.bounds(epsilon)
        assert lower * (1.0 - 1e-9) <= truth <= upper


def test_what_a_bundle_is():
    w = fs.Randomizer(TWO)
    two = fs.bundle(w, 2)
    assert two.n_inputs == 2
    assert two.epsilon0 == 2.0 * w.epsilon0
    assert fs.bundle(w, 1) is w
    assert fs.bundle(two, 3) == fs.bundle(w, 6) != two
    assert hash(fs.bundle(w, 2)) == hash(two)
    assert pickle.loads(pickle.dumps(two)) == copy.deepcopy(two) == two
    assert json.loads(json.dumps(two.to_dict()))["messages"] == 2
    assert "2 messages of <Randomizer" in repr(two)
    e = fs.ShuffleExperiment(w, 10, k=2, messages=2, bundled=True)
    assert e == fs.ShuffleExperiment(two, 10, k=2)
    assert e.messages == 1
    drawn = fs.bundle(fs.k_randomized_response(3.0, 5), 4).sample(
        np.full(500, 2), np.random.default_rng(1)
    )
    assert drawn.shape == (500, 4)
    assert 0.7 < (drawn == 2).mean() < 0.95


# ---- Different randomizers ---------------------------------------------------------------------

OTHER = [[0.5, 0.5], [0.125, 0.875]]
DUMMY = [[0.25, 0.25, 0.5]] * 2
TRUE = [[1.0, 0.0], [0.0, 1.0]]


def product_rows(matrices):
    """Every tuple of messages, one of each matrix."""
    rows = [[Fraction(1)] for _ in matrices[0]]
    for matrix in matrices:
        rows = [
            [p * Fraction(q) for p in row for q in own]
            for row, own in zip(rows, matrix, strict=True)
        ]
    return rows


@pytest.mark.parametrize(
    "matrices", [(TWO, OTHER), (TWO, DUMMY, TWO), (TRUE, DUMMY), (THREE[:2], OTHER, TRUE)], ids=str
)
def test_different_randomizers_by_every_tuple(matrices):
    """The law of the tuples, their profiles, and infinite losses carried as mass."""
    w = fs.bundle([fs.Randomizer(matrix) for matrix in matrices])
    rows = product_rows(matrices)
    merged = w.merged((0, 1))
    assert_allclose(merged.rows.sum(axis=1), 1.0, rtol=1e-14, atol=0)
    assert merged.rows.shape[1] == len({
        Fraction(a, a + b) for a, b in zip(*rows, strict=True) if a + b > 0
    })  # fmt: skip
    ratios = [b / a if a else math.inf for a, b in zip(*rows, strict=True) if a + b > 0]
    assert_allclose(np.exp(merged.log_ratios[1].max()), float(max(ratios)), rtol=1e-14, atol=0)
    assert_allclose(w.epsilon0, max(merged.log_ratios[1].max(), -merged.log_ratios[1].min()))
    for k in (0, 2):
        profile = fs.exact_profile(fs.ShuffleExperiment(w, 3, k=k))
        q, p = exact.histogram_pair(rows, {0: 2 - k, 1: k}, (0, 1))
        for epsilon in (0.0, 0.5, 2.0):
            with mp.workdps(60):
                ratio = Fraction(int(mp.exp(mpf(epsilon)) * 10**50), 10**50)
            truth = float(exact.hockey_stick(p, q, ratio))
            lower, upper = profile.bounds(epsilon, direction="forward")
            assert lower * (1.0 - 1e-12) <= truth <= upper * (1.0 + 1e-12)
        infinite = float(sum(x for place, x in p.items() if not q.get(place)))
        lower, upper = profile.bounds(math.inf, direction="forward")
        assert lower * (1.0 - 1e-12) <= infinite <= upper * (1.0 + 1e-12)


def test_different_randomizers_without_common_messages():
    """Tuples that no input sends are left out, and the pair is told apart for certain."""
    sure, constant = fs.Randomizer(np.eye(2)), fs.Randomizer([[0.0, 1.0, 0.0]] * 2)
    together = fs.bundle([sure, sure, constant])
    assert_allclose(together.merged((0, 1)).rows, np.eye(2), rtol=0.0, atol=0.0)
    profile = fs.exact_profile(fs.ShuffleExperiment(together, 1, k=0))
    assert_allclose(profile.delta([0.0, 1.0, math.inf]), 1.0, rtol=FEW_ROUNDINGS)


def test_the_bundle_bounds_every_way_of_shuffling():
    """Channels of their own and one for all are post-processings of the shuffled tuples."""
    matrices, n = (TWO, OTHER), 3
    worst = fs.worst_case_profile(fs.bundle([fs.Randomizer(m) for m in matrices]), n)
    fractions = [[[Fraction(p) for p in row] for row in m] for m in matrices]
    for k in range(n):
        laws = {"shared": [], "apart": []}
        for own in (0, 1):
            held = [0] * (n - 1 - k) + [1] * k + [own]
            channels = [
                exact.binomial_groups([(1, rows[x][1]) for x in held]) for rows in fractions
            ]
            laws["apart"].append([a * b for a in channels[0] for b in channels[1]])
            laws["shared"].append(
                exact.binomial_groups([(1, rows[x][1]) for rows in fractions for x in held])
            )
        for epsilon in (0.0, 0.3, 1.0):
            ratio = Fraction(math.exp(epsilon))
            bound = worst.delta(epsilon) * (1.0 + 1e-12)
            for q, p in laws.values():
                assert float(exact.hockey_stick(p, q, ratio)) <= bound
                assert float(exact.hockey_stick(q, p, ratio)) <= bound


def test_what_a_bundle_of_different_randomizers_is():
    w, other = fs.Randomizer(TWO), fs.Randomizer(OTHER)
    both = fs.bundle([w, other])
    assert both.n_inputs == 2
    assert_allclose(both.epsilon0, math.log(2.0) + math.log(4.0), rtol=1e-15, atol=0)
    assert fs.bundle([w]) is w
    assert fs.bundle([both, w]) == fs.bundle([w, other, w]) != both
    assert hash(fs.bundle([w, other])) == hash(both)
    assert pickle.loads(pickle.dumps(both)) == copy.deepcopy(both) == both
    assert len(json.loads(json.dumps(both.to_dict()))["randomizers"]) == 2
    assert "one message of each of [<Randomizer" in repr(both)
    assert both.sample(np.zeros(7, dtype=int), np.random.default_rng(1)).shape == (7, 2)
    twice = fs.bundle([w, other], 2)
    assert_allclose(twice.epsilon0, 2.0 * both.epsilon0, rtol=1e-15, atol=0)
    with pytest.raises(TypeError, match=r"randomizers\[1\] must be a Randomizer, got list"):
        fs.bundle([w, OTHER])
    with pytest.raises(ValueError, match="randomizers must have the same inputs, got 2 and 3"):
        fs.bundle([w, fs.Randomizer(THREE)])
    with pytest.raises(ValueError, match="randomizers must be one or more, got none"):
        fs.bundle([])
    with pytest.raises(fs.UnsupportedSettingError, match="no continuous noise"):
        fs.bundle([fs.laplace(1.0), fs.laplace(2.0)])
    rng = np.random.default_rng(1)
    many = [fs.Randomizer(rng.dirichlet([1.0] * 400, 2)) for _ in range(2)]
    with pytest.raises(fs.UnsupportedSettingError, match="at most 100,000 to be listed, got"):
        fs.bundle(many).merged((0, 1))


def assert_constants(constants, unbundled, bundled):
    assert_allclose(constants, (unbundled, bundled), rtol=1e-12, atol=0)


def test_constants_of_the_limit():
    rr = fs.binary_randomized_response(1.0)
    chi_square = fs.chi_square(rr)
    constants = fs.message_constants(rr, 5)
    assert_constants(constants, 5 * chi_square, (1 + chi_square) ** 5 - 1)
    assert_allclose(
        constants.mu_ratio, math.sqrt(constants.bundled / constants.unbundled), rtol=1e-15, atol=0
    )
    # the closed form is the constant of the tuples, at either end
    for rows in (TWO, THREE):
        w = fs.Randomizer(rows)
        for pi in (0.0, 1.0):
            direct = fs.fisher_constant(fs.bundle(w, 3), pi)
            assert_constants(fs.message_constants(w, 3, pi), 3 * fs.fisher_constant(w, pi), direct)
        assert fs.message_constants(w, 3, 0.3).mu_ratio > 1.0
    # equality, m = 2 and the symmetric channel in the middle
    half = fs.message_constants(rr, 2, 0.5)
    assert_allclose(half.mu_ratio, 1.0, rtol=1e-12, atol=0)
    assert_allclose(half.bundled, 2 * chi_square, rtol=1e-12, atol=0)
    revealing = fs.message_constants(fs.Randomizer([[1.0, 0.0], [0.5, 0.5]]), 2)
    assert revealing == (math.inf, math.inf)
    assert revealing.mu_ratio == 1.0
    assert fs.message_constants(fs.Randomizer([[0.5, 0.5]] * 2), 2).mu_ratio == 1.0
    with pytest.raises(ValueError, match="messages must be >= 1, got 0"):
        fs.message_constants(rr, 0)


@pytest.mark.parametrize("bundled", [False, True])
def test_exact_profiles_approach_the_limit(bundled):
    """The total variation at k = 0, where ``mu phi(0)`` is the first term."""
    w = fs.Randomizer(TWO)
    errors = []
    for n in (10**4, 10**6):
        e = fs.ShuffleExperiment(w, n, k=0, messages=3, bundled=bundled)
        limit = fs.gaussian_profile(e)
        constant = fs.message_constants(w, 3)[int(bundled)]
        assert_allclose(limit.mu, math.sqrt(constant / n), rtol=1e-12, atol=0)
        exact_value = fs.exact_profile(e, rtol=1e-6).delta(limit.mu)
        errors.append(abs(exact_value / limit.delta(limit.mu) - 1.0))
    assert errors[1] < 0.01
    assert errors[1] < 0.3 * errors[0]


def test_refusals():
    w = fs.Randomizer(TWO)
    with pytest.raises(TypeError, match="randomizer must be a Randomizer, got int"):
        fs.bundle(3, 2)
    with pytest.raises(ValueError, match="messages must be >= 1, got 0"):
        fs.bundle(w, 0)
    with pytest.raises(fs.UnsupportedSettingError, match="continuous noise"):
        fs.bundle(fs.laplace(1.0), 2)
    with pytest.raises(fs.UnsupportedSettingError, match="at most 100,000 to be listed, got"):
        fs.bundle(fs.k_randomized_response(1.0, 5), 100).merged((0, 1, 2))
    with pytest.raises(TypeError, match="bundled must be True or False, got 1"):
        fs.ShuffleExperiment(w, 10, k=2, messages=2, bundled=1)
    mixed = fs.ShuffleExperiment(w, 100, k=2, messages=5, bundled=True)
    with pytest.raises(fs.UnsupportedSettingError, match="at most 4 groups"):
        fs.exact_profile(mixed)
    assert fs.revealing_profile(mixed).validity is fs.Validity.UPPER_BOUND
