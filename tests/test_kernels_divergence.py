"""Divergence kernels: each term and point, small windows by enumeration, large ones by mpmath."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf
from numpy.testing import assert_allclose

from fastshuffle._kernels.divergence import (
    jensen_shannon_term,
    pair_point,
    renyi_term,
    window_divergence,
)
from tests.laws import EXTREME_DIGITS, group_rows, hockey_stick_pair, ones_and_zeros
from tests.tolerances import DOZEN_ROUNDINGS, KERNEL_SUM, STATED_DIVERGENCE
from validation.reference import exact
from validation.reference import mp as reference
from validation.reference.mp import Complement

# An interpreted kernel warns where machine code returns the same infinity without a word.
pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in scalar:RuntimeWarning")
jit_free = pytest.mark.jit_free

# (groups of the others, law under Q, law under P), the latter the larger one
SMALL = [
    ([], 0.2, 0.7),
    ([(1, 0.2)], 0.2, 0.7),
    ([(3, 0.19)], 0.19, 1.0),
    ([(3, 1.0)], 0.19, 1.0),
    ([(31, 0.2)], 0.2, 0.5),
    ([(12, 0.2), (20, 0.5)], 0.2, 0.5),
    ([(30, 0.85)], 0.004, 0.85),
    ([(30, 0.004)], 0.004, 0.85),
    ([(33, 1e-20), (2, 0.3)], 1e-20, 0.3),
    ([(7, Complement(5e-11))], 0.46, Complement(5e-11)),
    ([(15, 1e-12), (16, 1e-150)], 1e-150, 1e-12),
    ([(40, 0.5)], 0.3, math.nextafter(0.3, 1)),
    ([(7, 0.4), (7, 0.01), (30, 0.9)], 0.1, 0.6),
]
# Sums of high orders overflow on purpose, which an interpreted kernel refuses.
ORDERS = [
    *(pytest.param(o, marks=jit_free) for o in (0.5, 0.75, 0.9, 1 - 1e-8, 1.0, 1 + 1e-8, 1.5, 2.0)),
    8.0,
    40.0,
    1000.0,
]


def own_pair(law_a, law_b):
    """Return the rows of Q and of P, ``(p, q, log p, log q, p of this row minus the other)``."""
    rows = group_rows([(1, law_a), (1, law_b)])[:, [1, 2, 3, 4, 0]].copy()
    with mp.workdps(EXTREME_DIGITS):
        (p_a, q_a), (p_b, q_b) = (
            (mpf(p), mpf(q)) for p, q in (ones_and_zeros(law_a), ones_and_zeros(law_b))
        )
        difference = float(p_b - p_a if p_b <= q_a else q_a - q_b)
    rows[:, 4] = -difference, difference
    return rows


def evaluate(order, groups, law_a, law_b):
    kept = [(count, law) for count, law in groups if law not in (0.0, 1.0)]
    loss = hockey_stick_pair(law_a, law_b)[3]
    return window_divergence(order - 1.0, loss, 1.0, group_rows(kept), own_pair(law_a, law_b))


def points_of_laws():
    """Pairs of masses in every branch: near, far, P = 0, and a ratio beyond 1e8."""
    for q in (0.3, 1e-5, 1e-200):
        for ratio in (1 + 1e-12, 1 - 1e-9, 1.0, 1.3, 0.6, 3.0, 0.01, 1e-12, 1e5, 1e9, 1e100):
            if 0.0 < q * ratio < 1.0:
                yield mpf(q) * mpf(ratio), mpf(q)


@pytest.mark.parametrize("order", ORDERS[:-2])
def test_renyi_terms(order):
    """Q [deviance(u) + (1 + u) (exp(b L) - 1 - b L) / b], in closed form."""
    b = order - 1.0
    for p, q in points_of_laws():
        with mp.workdps(150):
            u = p / q - 1
            loss = mp.log(p / q)
            term = (1 + u) * loss - u
            if b != 0.0:
                term += (1 + u) * (mp.expm1(b * loss) - b * loss) / mpf(b)
            truth = float(q * term)
            point = np.array([float(mp.log(p)), float(mp.log(q)), float(u)])
        if truth < 1e-290:
            continue
        # exp(log q) is off by a unit of log q, and u near -1 and below 0 by one of 1 + u
        rtol = DOZEN_ROUNDINGS * (1.0 + abs(point[:2]).max() * max(1.0, order))
        assert_allclose(renyi_term(b, point), truth, rtol=rtol, atol=0, err_msg=f"{p}, {q}")


@jit_free
def test_case_30_jensen_shannon_terms():
    """P = 0 contributes Q log 2 / 2; equal masses nothing; none is negative or nan."""
    for p, q in points_of_laws():
        with mp.workdps(150):
            middle = (p + q) / 2
            truth = float((p * mp.log(p / middle) + q * mp.log(q / middle)) / 2)
            point = np.array([float(mp.log(p)), float(mp.log(q)), float(p / q - 1)])
        if truth < 1e-290:
            continue
        rtol = DOZEN_ROUNDINGS * (1.0 + abs(point[:2]).max())
        assert_allclose(jensen_shannon_term(point), truth, rtol=rtol, atol=0)
    half_log_two = 0.5 * math.log(2.0)
    for q in (0.25, 1.0):
        only_q = jensen_shannon_term(np.array([-math.inf, math.log(q), -1.0]))
        only_p = jensen_shannon_term(np.array([math.log(q), -math.inf, math.inf]))
        assert_allclose([only_q, only_p], q * half_log_two, rtol=DOZEN_ROUNDINGS, atol=0)
    assert jensen_shannon_term(np.array([-1.0, -1.0, 0.0])) == 0.0
    # masses that underflow contribute nothing, and no nan
    assert jensen_shannon_term(np.array([-2000.0, -math.inf, math.inf])) == 0.0
    assert jensen_shannon_term(np.array([-2000.0, -2500.0, math.inf])) == 0.0


@jit_free
@pytest.mark.parametrize(("groups", "law_a", "law_b"), SMALL, ids=str)
def test_points_of_the_pair(groups, law_a, law_b):
    """log P, log Q, u at every outcome, and a tail that bounds the tail of P from above."""
    kept = [(count, law) for count, law in groups if law not in (0.0, 1.0)]
    rows, pair = group_rows(kept), own_pair(law_a, law_b)
    trials = sum(count for count, _ in kept)
    tilted, point = np.empty((len(kept), 4)), np.empty(4)
    with mp.workdps(EXTREME_DIGITS):
        others = [reference.mass(kept, x, EXTREME_DIGITS) for x in range(-1, trials + 2)]
        q_a = mpf(law_a.q) if isinstance(law_a, Complement) else 1 - mpf(law_a)
        q_b = mpf(law_b.q) if isinstance(law_b, Complement) else 1 - mpf(law_b)
        laws = [
            [(1 - q) * below + q * here for below, here in itertools.pairwise(others)]
            for q in (q_a, q_b)
        ]
        for x in range(trials + 2):
            pair_point(float(x), float(trials), rows, pair, tilted, point)
            null, alternative = laws[0][x], laws[1][x]
            for value, truth in ((point[0], alternative), (point[1], null)):
                if truth == 0:
                    assert value == -math.inf
                else:
                    log_truth = float(mp.log(truth))
                    assert abs(value - log_truth) <= 1e-13 + 1e-15 * abs(log_truth)
            if null == 0:
                assert point[2] == math.inf
            else:
                u = alternative / null - 1
                assert abs(point[2] - float(u)) <= KERNEL_SUM * max(abs(float(u)), 1e-16)
            tail = mp.fsum(laws[1][x:])
            assert point[3] >= (float(mp.log(tail)) - 1e-12 if tail > 0 else -math.inf)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("groups", "law_a", "law_b"), SMALL, ids=str)
def test_small_windows(groups, law_a, law_b, order):
    truth = reference.renyi(groups, law_a, law_b, order, "forward", EXTREME_DIGITS)
    value = evaluate(order, groups, law_a, law_b)
    assert_allclose(value, float(truth), rtol=STATED_DIVERGENCE, atol=0)


@jit_free
@pytest.mark.parametrize(("groups", "law_a", "law_b"), SMALL, ids=str)
def test_small_jensen_shannon(groups, law_a, law_b):
    truth = reference.jensen_shannon(groups, law_a, law_b, EXTREME_DIGITS)
    value = evaluate(math.nan, groups, law_a, law_b)
    assert_allclose(value, float(truth), rtol=STATED_DIVERGENCE, atol=0)


@jit_free
def test_chi_square_by_enumeration():
    """Order 2 in fractions: expm1 of it is sum (P - Q)**2 / Q."""
    for groups, law_a, law_b in [SMALL[0], SMALL[4], SMALL[5], SMALL[12]]:
        q, p = exact.binary_pair(
            [(count, Fraction(law)) for count, law in groups], Fraction(law_a), Fraction(law_b)
        )
        truth = sum((x - y) ** 2 / y for x, y in zip(p, q, strict=True))
        value = math.expm1(evaluate(2.0, groups, law_a, law_b))
        assert_allclose(value, float(truth), rtol=STATED_DIVERGENCE, atol=0)


@jit_free
def test_infinite_loss_below_order_one():
    """P has mass where Q has none: orders below 1 stay finite."""
    for groups in ([(12, 0.3)], [(5, 0.0), (20, 0.3)]):
        for order in (0.5, 0.8, 1.0 - 1e-8):
            truth = reference.renyi(groups, 0.0, 0.3, order, "forward", 60)
            value = evaluate(order, groups, 0.0, 0.3)
            assert_allclose(value, float(truth), rtol=STATED_DIVERGENCE, atol=0)


@pytest.mark.parametrize(
    ("groups", "law_a", "law_b"),
    [
        ([(1500, 0.3)], 0.3, 0.6),
        ([(3000, 0.6)], 0.3, 0.6),  # a standard deviation just below 32
        ([(6600, 0.2)], 0.2, 0.5),  # and just above
        ([(10**15, 1e-14)], 1e-14, 0.3),  # a Poisson law
    ],
    ids=str,
)
def test_windows_between_small_and_large(groups, law_a, law_b):
    for order in (0.5, 1.0, 8.0):
        truth = reference.renyi_large(groups, law_a, law_b, order, "forward", 20)
        value = evaluate(order, groups, law_a, law_b)
        assert_allclose(value, float(truth), rtol=STATED_DIVERGENCE, atol=0)
