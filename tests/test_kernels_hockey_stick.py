"""The hockey-stick kernel, its inverse and the trade-off kernel against enumeration and mpmath."""

import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf
from numpy.testing import assert_allclose

from fastshuffle._kernels.hockey_stick import (
    crossing_tilt,
    epsilon_array,
    hockey_stick,
    log_delta_array,
    smallest_epsilon,
)
from fastshuffle._kernels.trade_off import type_two_error, type_two_error_array
from tests.laws import EXTREME_DIGITS, assert_log_close, group_rows, hockey_stick_pair
from tests.tolerances import DOZEN_ROUNDINGS, FEW_ROUNDINGS, STATED
from validation.reference import exact
from validation.reference import mp as reference
from validation.reference.mp import Complement

# An interpreted kernel warns where machine code returns the same infinity without a word.
pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in scalar:RuntimeWarning")
jit_free = pytest.mark.jit_free

# (groups of the others, law under Q, larger law under P)
SMALL = [
    ([], 0.2, 0.7),
    ([(1, 0.2)], 0.2, 0.7),
    ([(7, 0.2)], 0.2, 0.7),
    ([(31, 0.2)], 0.2, 0.5),
    ([(20, 0.2), (12, 0.5)], 0.2, 0.5),
    ([(33, 0.5)], 0.2, 0.5),
    ([(17, 0.2), (16, 0.9)], 0.1, 0.11),
    ([(9, 0.3), (9, 0.6), (9, 0.01)], 0.3, 0.95),
]
EPSILONS = [0.0, 1e-9, 0.003, 0.04, 0.1, 0.35, 0.9, 1.2]


def evaluate(epsilon, groups, law_a, law_b):
    rows = group_rows(groups)
    trials = float(sum(count for count, _ in groups))
    result = np.empty(3)
    hockey_stick(
        epsilon, trials, rows, hockey_stick_pair(law_a, law_b), np.empty((len(groups), 4)),
        np.empty(6), np.empty(4), result,
    )  # fmt: skip
    return result


def exp_fraction(epsilon):
    """Return e**epsilon as a fraction, to 90 digits."""
    with mp.workdps(100):
        return Fraction(int(mp.exp(mpf(epsilon)) * 10**90), 10**90)


@jit_free
@pytest.mark.parametrize(("groups", "law_a", "law_b"), SMALL, ids=str)
def test_delta_and_its_piece_by_enumeration(groups, law_a, law_b):
    """delta, the cut and A / delta, all from the definition in fractions."""
    p_a, p_b = Fraction(law_a), Fraction(law_b)
    q, p = exact.binary_pair([(count, Fraction(law)) for count, law in groups], p_a, p_b)
    others = exact.binomial_groups([(count, Fraction(law)) for count, law in groups])
    for epsilon in EPSILONS:
        ratio = exp_fraction(epsilon)
        delta = exact.hockey_stick(p, q, ratio)
        log_delta, cut, share = evaluate(epsilon, groups, law_a, law_b)
        if delta == 0:
            assert log_delta == -math.inf
            continue
        assert_allclose(math.exp(log_delta), float(delta), rtol=1e-13, atol=0)
        x = int(cut)
        if epsilon > 0.0:
            assert x == min(y for y in range(len(p)) if p[y] > ratio * q[y])
        expected = (p_b - p_a) * others[x - 1] / delta
        assert_allclose(share, float(expected), rtol=1e-12, atol=0)


@jit_free
@pytest.mark.parametrize(
    ("groups", "law_a", "law_b"),
    [
        ([(30, 0.0), (19, 0.3)], 0.0, 0.3),
        ([(40, 0.0)], 0.0, 0.3),
        ([(40, 1.0)], 0.3, 1.0),
        ([(12, 0.0), (30, 1.0)], 0.0, 1.0),
        ([(25, 1e-300), (15, 0.2)], 1e-300, 0.2),
        ([(5, 1e-30), (29, Complement(1e-30))], 1e-30, Complement(1e-30)),
        ([(33, Complement(1e-200))], Complement(2e-200), Complement(1e-200)),
        ([(33, 1e-200)], 1e-200, 2e-200),
        ([(20, 0.4), (20, 1e-7)], 0.4, math.nextafter(0.4, 1)),
    ],
    ids=str,
)
def test_case_11_certain_and_extreme_laws(groups, law_a, law_b):
    for epsilon in (0.0, 1e-6, 0.2, 0.69, 3.0, 60.0, 400.0, math.inf):
        truth = reference.delta(groups, law_a, law_b, epsilon, "forward", EXTREME_DIGITS)
        if hockey_stick_pair(law_a, law_b)[3] == math.inf and epsilon == math.inf:
            with mp.workdps(30):
                assert truth >= 0
        value = evaluate(epsilon, group_rows_kept(groups), law_a, law_b)[0]
        assert_log_close(value, truth)


def group_rows_kept(groups):
    """Drop what a profile drops before it calls the kernel: certain groups of zeros.

    Groups of certain ones move the histogram and change nothing.
    """
    return [(count, law) for count, law in groups if law not in (0.0, 1.0)]


@jit_free
def test_crossing_tilt():
    """exp(s) = (e**epsilon q0 - q1) / (p1 - e**epsilon p0), for epsilon from 0 to overflow."""
    for law_a, law_b in [(0.2, 0.7), (1e-9, 0.3), (1e-300, 0.5), (0.4, 0.4000001), (0.0, 0.25)]:
        pair = hockey_stick_pair(law_a, law_b)
        loss = min(pair[3], 800.0)
        for share in (0.0, 1e-200, 1e-15, 1e-6, 0.03, 0.5, 0.9):
            epsilon = share * loss
            gain, log_alpha, log_scaled, s = crossing_tilt(epsilon, pair)
            with mp.workdps(EXTREME_DIGITS):
                ratio = mp.exp(mpf(epsilon))
                alpha = mpf(law_b) - ratio * mpf(law_a)
                scaled = ratio * (1 - mpf(law_a)) - (1 - mpf(law_b))
                truth = [alpha / mpf(law_b), mp.log(alpha), mp.log(scaled), mp.log(scaled / alpha)]
                truth = [float(v) for v in truth]
            # the loss is rounded: its last bit is epsilon's own
            rtol = DOZEN_ROUNDINGS / (1.0 - share)
            if pair[3] > 1e-3:
                assert_allclose([gain, log_alpha, log_scaled], truth[:3], rtol=rtol, atol=0)
                assert_allclose(s, truth[3], rtol=rtol, atol=0)
            else:
                assert_allclose(s, truth[3], rtol=1e-9, atol=0)


@jit_free
@pytest.mark.parametrize(("groups", "law_a", "law_b"), SMALL, ids=str)
def test_inverse_is_safe_and_exact(groups, law_a, law_b):
    rows, pair = group_rows(groups), hockey_stick_pair(law_a, law_b)
    log_total = evaluate(0.0, groups, law_a, law_b)[0]
    for log_delta in (log_total - 0.1, log_total - 3.0, -20.0, -100.0, -700.0, -5000.0):
        epsilon = smallest_epsilon(log_delta, rows, pair)
        assert evaluate(epsilon, groups, law_a, law_b)[0] <= log_delta
        with mp.workdps(60):
            delta = mp.exp(mpf(log_delta))
            truth = reference.epsilon(groups, law_a, law_b, delta, "forward", 2300)
        # nearer to delta(0) a rounding of delta moves epsilon by more and more of itself
        assert_allclose(epsilon, float(truth), rtol=STATED, atol=0)
    # delta(0) and more need no epsilon, delta = 0 the largest loss
    assert smallest_epsilon(log_total, rows, pair) == 0.0
    assert smallest_epsilon(0.0, rows, pair) == 0.0
    assert smallest_epsilon(-math.inf, rows, pair) == pair[3]


@jit_free
def test_case_08_and_11_inverse_with_an_infinite_loss():
    """Below the mass that Q cannot produce no epsilon will do, just above it one does."""
    groups, law_a, law_b = [(19, 0.3)], 0.0, 0.3
    rows, pair = group_rows(groups), hockey_stick_pair(law_a, law_b)
    log_mass = 20 * math.log(0.3)
    assert smallest_epsilon(log_mass - 1e-9, rows, pair) == math.inf
    assert smallest_epsilon(-math.inf, rows, pair) == math.inf
    epsilon = smallest_epsilon(log_mass + 1e-3, rows, pair)
    with mp.workdps(60):
        delta = mp.exp(mpf(log_mass + 1e-3))
    truth = reference.epsilon(groups, law_a, law_b, delta, "forward")
    # delta less the mass below it is a thousandth of delta
    assert_allclose(epsilon, float(truth), rtol=1e-11, atol=0)
    assert evaluate(math.inf, groups, law_a, law_b)[0] == pytest.approx(log_mass, rel=1e-15, abs=0)


@jit_free
def test_arrays_and_directions():
    groups, mirrored = [(30, 0.2), (9, 0.5)], [(30, 0.8), (9, 0.5)]
    both = np.array([group_rows(groups), group_rows(mirrored)])
    pairs = np.array([hockey_stick_pair(0.2, 0.5), hockey_stick_pair(0.5, 0.8)])
    epsilons = np.array([0.0, 0.05, 0.3, 0.46, 0.6, 0.9, 1.0, math.inf])
    columns = []
    for direction in range(3):
        log_deltas, back = np.empty(8), np.empty(8)
        log_delta_array(epsilons, direction, both, pairs, log_deltas)
        epsilon_array(log_deltas, direction, both, pairs, back)
        columns.append(log_deltas)
        for epsilon, log_delta, returned in zip(epsilons, log_deltas, back, strict=True):
            if direction < 2:
                assert log_delta == evaluate(
                    epsilon, [groups, mirrored][direction], [0.2, 0.5][direction],
                    [0.5, 0.8][direction],
                )[0]  # fmt: skip
            if log_delta > -math.inf:
                assert_allclose(returned, epsilon, rtol=1e-11, atol=0)
    assert columns[2].tolist() == np.maximum(columns[0], columns[1]).tolist()
    assert columns[0].tolist() != columns[1].tolist()
    log_delta_array(epsilons[:0], 2, both, pairs, np.empty(0))
    epsilon_array(epsilons[:0], 2, both, pairs, np.empty(0))


@pytest.mark.parametrize("n", [10**4, 10**9, 10**15])
def test_large_sums(n):
    """Both ends of the composition and a mixture, from the bulk to log delta = -1e5."""
    for groups in ([(n, 0.2)], [(n - n // 3, 0.2), (n // 3, 0.5)], [(n, 0.5)]):
        scale = 1.0 / math.sqrt(n)
        for epsilon in (0.0, 0.3 * scale, 5 * scale, min(400 * scale, 0.9)):
            truth = reference.delta_large(groups, 0.2, 0.5, epsilon, "forward", 20)
            assert_log_close(evaluate(epsilon, groups, 0.2, 0.5)[0], truth)


@jit_free
@pytest.mark.parametrize(("groups", "law_a", "law_b"), SMALL, ids=str)
def test_trade_off_by_enumeration(groups, law_a, law_b):
    p_a, p_b = Fraction(law_a), Fraction(law_b)
    q, p = exact.binary_pair([(count, Fraction(law)) for count, law in groups], p_a, p_b)
    null, alternative = group_rows([*groups, (1, law_a)]), group_rows([*groups, (1, law_b)])
    alphas = np.array([0.0, 1e-30, 1e-9, 0.01, 0.05, 0.5, 0.9, 1.0])
    errors = np.empty_like(alphas)
    type_two_error_array(alphas, null, alternative, errors)
    for alpha, error in zip(alphas.tolist(), errors, strict=True):
        truth = exact.trade_off(p, q, Fraction(alpha))
        assert_allclose(error, float(truth), rtol=STATED, atol=0, err_msg=f"{alpha = }")
        assert error == type_two_error(alpha, null, alternative)


@jit_free
def test_trade_off_of_certain_laws():
    """Laws that no test confuses, and laws that agree where one of them is certain."""
    zero, one, fair = group_rows([(1, 0.0)]), group_rows([(1, 1.0)]), group_rows([(1, 0.5)])
    for alpha in (0.0, 0.3, 1.0):
        assert type_two_error(alpha, zero, one) == 0.0
        error = type_two_error(alpha, zero, fair)
        assert_allclose(error, (1.0 - alpha) / 2.0, rtol=FEW_ROUNDINGS, atol=0)
    assert_allclose(type_two_error(0.25, fair, one), 0.5, rtol=FEW_ROUNDINGS, atol=0)
    assert type_two_error(0.5, fair, one) == 0.0
