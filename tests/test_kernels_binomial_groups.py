"""Mass and tails of sums of binomial groups: small against fractions, large against mpmath."""

import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf
from numpy.testing import assert_allclose

from fastshuffle._kernels.binomial_groups import (
    count_trials,
    drop_certain_groups,
    log_lower_tail,
    log_mass,
    log_upper_tail,
    mirror_groups,
)
from fastshuffle._kernels.group_contour import (
    contour_nodes,
    contour_sums,
    edge_sums,
    odd_exponent,
    recursion_sums,
)
from fastshuffle._kernels.group_tilt import saddle_point, tilt_group, tilt_groups
from tests.laws import EXTREME_DIGITS, assert_log_close, group_rows, ones_and_zeros
from tests.tolerances import DOZEN_ROUNDINGS, LOG_PER_UNIT, STATED
from validation.reference import exact
from validation.reference import mp as reference
from validation.reference.mp import Complement

# An interpreted kernel warns where machine code returns the same infinity without a word.
pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in scalar:RuntimeWarning")
jit_free = pytest.mark.jit_free

KERNELS = [
    pytest.param(log_mass, "mass", id="mass"),
    pytest.param(log_upper_tail, "upper_tail", id="upper"),
    pytest.param(log_lower_tail, "lower_tail", id="lower"),
]

# Around the 32 trials up to which the mass function is built by recursion.
SMALL = [
    [(1, 0.3)],
    [(1, 0.3), (1, 0.9)],
    [(31, 0.2)],
    [(32, 0.2)],
    [(33, 0.2)],
    [(30, 0.2), (1, 0.7)],
    [(30, 0.2), (2, 0.7)],
    [(30, 0.2), (3, 0.7)],
    [(16, 0.01), (15, 0.99)],
    [(16, 0.01), (16, 0.99)],
    [(17, 0.01), (16, 0.99)],
    [(40, 0.45), (20, 0.55), (10, 0.05)],
    [(0, 0.4), (33, 0.25), (0, 0.9)],
    [(0, 0.4)],
    [],
    [(5, 1.0), (3, 0.0)],
    [(5, 1.0), (31, 0.3), (7, 0.0), (1, 0.6)],
    [(5, 1.0), (32, 0.3), (7, 0.0), (1, 0.6)],
]

EXTREME = [
    [(7, Complement(5e-11))],
    [(4, Complement(5e-11)), (3, Complement(6e-11))],
    [(4, 5e-11), (3, 6e-11)],
    [(20, 1e-300), (13, 0.4)],
    [(20, Complement(1e-200)), (13, 0.4)],
    [(20, Complement(1e-200)), (20, 1e-300)],
    [(33, 1e-300), (2, 1e-250)],
    [(33, Complement(1e-200)), (2, Complement(1e-300))],
    [(25, Complement(1e-9)), (9, 1e-7), (2, 0.5)],
    [(1, Complement(1e-16)), (39, Complement(3e-13))],
]


def points(trials):
    return [-2, -1, *range(trials + 1), trials + 1, trials + 5]


def moments_of(groups):
    parts = [(count, *ones_and_zeros(law)) for count, law in groups]
    mean = sum(count * p for count, p, _ in parts)
    return mean, math.sqrt(sum(count * p * q for count, p, q in parts))


@jit_free
@pytest.mark.parametrize("groups", SMALL, ids=str)
def test_case_32_every_point_of_small_sums(groups):
    """Certain and empty groups, the ends of the support and outside it, by enumeration."""
    masses = exact.binomial_groups([(count, Fraction(p)) for count, p in groups])
    rows = group_rows(groups)
    for x in points(len(masses) - 1):
        mass = masses[x] if 0 <= x < len(masses) else Fraction(0)
        for kernel, truth in (
            (log_mass, mass),
            (log_upper_tail, sum(masses[max(x, 0) :], Fraction(0))),
            (log_lower_tail, sum(masses[: max(x + 1, 0)], Fraction(0))),
        ):
            with mp.workdps(60):
                assert_log_close(kernel(float(x), rows), mpf(truth.numerator) / truth.denominator)


@jit_free
@pytest.mark.parametrize(("kernel", "name"), KERNELS)
@pytest.mark.parametrize("groups", EXTREME, ids=str)
def test_every_point_with_extreme_probabilities(groups, kernel, name):
    """Down to 1e-300, and complements where p itself is the double 1."""
    rows = group_rows(groups)
    for x in points(sum(count for count, _ in groups)):
        truth = getattr(reference, name)(groups, x, EXTREME_DIGITS)
        assert_log_close(kernel(float(x), rows), truth)


@jit_free
@pytest.mark.parametrize(("kernel", "name"), KERNELS)
@pytest.mark.parametrize("log_p", [-740.0, -800.0, -1000.0])
@pytest.mark.parametrize("counts", [(1, 0), (3, 0), (0, 4), (2, 5), (40, 3)], ids=str)
def test_case_04_probabilities_that_underflow(counts, log_p, kernel, name):
    """Randomized response beyond epsilon0 = 745: p is 0 as a double, its logarithm is not."""
    with mp.workdps(900):
        rare = mp.exp(mpf(log_p))
        groups = [(counts[0], rare), (counts[1], Complement(rare))]
        rows = np.empty((2, 5))
        rows[0] = counts[0], float(rare), 1.0, log_p, 0.0
        rows[1] = counts[1], 1.0, float(rare), 0.0, log_p
        for x in range(sum(counts) + 1):
            value = kernel(float(x), rows)
            truth = mp.log(getattr(reference, name)(groups, x, 900))
            assert abs(value - truth) <= mpf(STATED) + mpf(LOG_PER_UNIT) * abs(truth)


@jit_free
@pytest.mark.parametrize("n_groups", [2, 65, 200])
def test_case_32_many_groups(n_groups):
    """As many different probabilities as trials or more, certain ones among them."""
    rng = np.random.default_rng(n_groups)
    laws = [0.0, 1.0, *(rng.random(n_groups - 2) ** 3).tolist()]
    groups = [(1 + g % 2, law) for g, law in enumerate(laws)]
    rows = group_rows(groups)
    trials = sum(count for count, _ in groups)
    for x in sorted({0, 1, 2, trials // 5, trials // 4, trials // 2, trials - 1, trials}):
        for kernel, truth in (
            (log_mass, reference.mass(groups, x, 40)),
            (log_upper_tail, reference.upper_tail(groups, x, 40)),
            (log_lower_tail, reference.lower_tail(groups, x, 40)),
        ):
            assert_log_close(kernel(float(x), rows), truth)


@jit_free
@pytest.mark.parametrize("trials", [31, 33, 5000])
def test_order_and_splits_of_groups_do_not_matter(trials):
    whole = group_rows([(trials, 0.3), (11, 0.8)])
    split = group_rows([(3, 0.8), (trials - 9, 0.3), (0, 0.1), (9, 0.3), (8, 0.8)])
    for x in (1.0, 0.3 * trials // 1, trials - 2.0, trials + 11.0):
        for kernel in (log_mass, log_upper_tail, log_lower_tail):
            with mp.workdps(40):
                assert_log_close(kernel(x, split), mp.exp(mpf(kernel(x, whole))))


@jit_free
def test_tails_mirror_to_the_last_bit():
    rows = group_rows([(70, 0.3), (11, Complement(1e-3)), (4, 1.0)])
    mirrored = np.empty_like(rows)
    mirror_groups(rows, mirrored)
    for x in range(-1, 88):
        assert log_upper_tail(float(x), rows) == log_lower_tail(85.0 - x, mirrored)
        assert log_upper_tail(float(x), mirrored) == log_lower_tail(85.0 - x, rows)


SIZES = [10**4, 10**8, 10**12, 10**15]
SHAPES = [
    [(1.0, 0.2)],
    [(0.4, 0.2), (0.6, 0.7)],
    [(0.5, 1e-3), (0.3, Complement(1e-4)), (0.2, 0.4)],
    [(1.0, 1e-4)],
]


def scaled(shape, n):
    counts = [int(share * n) for share, _ in shape]
    counts[0] += n - sum(counts)
    return [(count, law) for count, (_, law) in zip(counts, shape, strict=True)]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_large_sums(n, shape):
    """Masses and tails up to 37 standard deviations from the mean."""
    groups = scaled(shape, n)
    rows = group_rows(groups)
    mean, sigma = moments_of(groups)
    for z in (-37.0, -6.0, 0.02, 3.0, 37.0):
        x = min(max(round(mean + z * sigma), 0), n)
        assert_log_close(log_mass(float(x), rows), reference.mass_large(groups, x, 20))
    for z in (-37.0, -0.5, 4.0):
        x = min(max(round(mean + z * sigma), 0), n)
        lower = reference.lower_tail_large(groups, x, 15) if z < 0.0 else None
        upper = reference.upper_tail_large(groups, x, 15) if z > -1.0 else None
        for kernel, tail in ((log_lower_tail, lower), (log_upper_tail, upper)):
            if tail is None:  # all but a far tail
                assert_allclose(math.exp(kernel(float(x), rows)), 1.0, rtol=0.01, atol=0)
            else:
                assert_log_close(kernel(float(x), rows), tail)


@pytest.mark.parametrize(
    ("groups", "x"),
    [
        ([(10**6, 0.2), (10**6, 0.5)], 1_500_000),  # log mass -2e5
        ([(10**7, 0.2), (10**6, 0.5)], 4_300_000),  # -1e6
        ([(10**7, 0.2), (10**6, 0.5)], 1_300_000),
        ([(10**15, 0.2), (10**14, 0.5)], 250_022_000_000_000),  # -1.5e9
        ([(10**5, 1e-300), (10**5, 1e-30)], 3000),
        ([(10**6, 1e-3), (10**5, Complement(1e-3))], 2),
        ([(10**6, 1e-3), (10**5, Complement(1e-3))], 1_099_998),
    ],
    ids=str,
)
def test_logarithms_far_beyond_underflow(groups, x):
    rows = group_rows(groups)
    truth = reference.mass_large(groups, x, 20)
    with mp.workdps(30):
        assert mp.log(truth) < -1e4
    assert_log_close(log_mass(float(x), rows), truth)
    mean, _ = moments_of(groups)
    if x > mean:
        tail = reference.upper_tail_large(groups, x, 20)
        assert_log_close(log_upper_tail(float(x), rows), tail)
    else:
        tail = reference.lower_tail_large(groups, x, 20)
        assert_log_close(log_lower_tail(float(x), rows), tail)


def test_case_28_far_binomial_tails():
    """Where general libraries are good to 6e-11, or return nan."""
    n = 10**9
    rows = group_rows([(n, 0.3)])
    for x in (300_200_000, 300_500_000, 299_700_000):
        upper = reference.upper_tail_large([(n, 0.3)], x, 20)
        lower = reference.lower_tail_large([(n, 0.3)], x, 20)
        assert_log_close(log_upper_tail(float(x), rows), upper)
        assert_log_close(log_lower_tail(float(x), rows), lower)
    # isf(1e-20; 10000, 4e-5) should be <= 16
    rows = group_rows([(10_000, 4e-5)])
    assert math.exp(log_upper_tail(17.0, rows)) <= 1e-20


@jit_free
def test_case_06_small_tails_are_not_zero():
    """A tail by 1 - cdf is 0 below 1e-16, in either direction."""
    rows = group_rows([(1000, 0.5), (1000, 0.25)])
    for x in (1000, 1200, 1500):
        assert_log_close(
            log_upper_tail(float(x), rows),
            reference.upper_tail_large([(1000, 0.5), (1000, 0.25)], x, 20),
        )
    for x in (500, 300, 100):
        assert_log_close(
            log_lower_tail(float(x), rows),
            reference.lower_tail_large([(1000, 0.5), (1000, 0.25)], x, 20),
        )


# ---- The parts -------------------------------------------------------------------------------


@jit_free
def test_bookkeeping_of_groups():
    rows = group_rows([(3, 0.0), (5, 1.0), (0, 0.5), (7, 0.25), (2, 1.0), (1, Complement(1e-200))])
    assert count_trials(rows) == 18.0
    assert count_trials(rows[:0]) == 0.0
    kept = np.empty_like(rows)
    n_kept, shift = drop_certain_groups(rows, kept)
    assert (n_kept, shift) == (2, 7.0)
    assert kept[:2].tolist() == rows[[3, 5]].tolist()  # p == 1.0 but not certain: it stays
    mirrored, twice = np.empty_like(rows), np.empty_like(rows)
    mirror_groups(rows, mirrored)
    mirror_groups(mirrored, twice)
    assert twice.tolist() == rows.tolist()
    assert mirrored[:, 1].tolist() == rows[:, 2].tolist()


@jit_free
@pytest.mark.parametrize(
    "law",
    [0.2, 0.5, 0.9, 1e-10, 1e-300, Complement(1e-4), Complement(5e-11), Complement(1e-200)],
    ids=str,
)
def test_tilt_of_one_group(law):
    """The tilted probability, its complement, the displacement and the divergence, each apart."""
    group = group_rows([(1, law)])[0]
    tilted = np.empty(4)
    tilts = [0.0, 1e-12, 1e-3, 0.7, 5.0, 21.0, 29.9, 30.1, 40.0, 300.0, 690.0]
    for s in [*tilts, *(-t for t in tilts)]:
        tilt_group(s, group, tilted)
        with mp.workdps(EXTREME_DIGITS + 320):
            q = mpf(law.q) if isinstance(law, Complement) else 1 - mpf(law)
            p = 1 - q
            norm = q + p * mp.exp(s)
            t, u = p * mp.exp(s) / norm, q / norm
            divergence = t * mp.log(t / p) + u * mp.log(u / q)
            truth = [float(v) for v in (t, u, t - p, divergence)]
        # log p enters as a rounded number where the tilt is far, at most 700 units of its own
        rtol = DOZEN_ROUNDINGS if abs(s) <= 30.0 else 3e-13
        for value, expected in zip(tilted, truth, strict=True):
            if abs(expected) < 1e-300:  # too small beside the other terms to enter a result
                assert abs(value) < 1e-290
            else:
                assert_allclose(value, expected, rtol=rtol, atol=0, err_msg=f"{s = }")


@jit_free
@pytest.mark.parametrize("n", [10**4, 10**10, 10**15])
def test_moments_of_tilted_groups(n):
    groups = [(n // 2, 0.2), (n // 3, Complement(1e-3)), (n // 7, 1e-5)]
    rows = group_rows(groups)
    tilted, moments = np.empty((3, 4)), np.empty(6)
    for s in (-2.0, -1e-5, 0.0, 1e-9, 0.3, 4.0):
        tilt_groups(s, rows, tilted, moments)
        with mp.workdps(60):
            mean = shift = variance = third = divergence = mpf(0)
            for count, law in groups:
                q = mpf(law.q) if isinstance(law, Complement) else 1 - mpf(law)
                p = 1 - q
                t, u = (v / (q + p * mp.exp(s)) for v in (p * mp.exp(s), q))
                mean += count * t
                shift += count * (t - p)
                variance += count * t * u
                third += count * t * u * (u - t)
                divergence += count * (t * mp.log(t / p) + u * mp.log(u / q))
            # the mean is a number and its error, to a rounding of the displacement
            gap = abs(mpf(moments[0]) + mpf(moments[1]) - mean)
            assert gap <= mpf(DOZEN_ROUNDINGS) * abs(shift) + mpf(10) ** -30 * mean
        for value, truth in zip(moments[2:4], (shift, variance), strict=True):
            assert_allclose(value, float(truth), rtol=DOZEN_ROUNDINGS, atol=0)
        assert_allclose(moments[5], float(divergence), rtol=DOZEN_ROUNDINGS, atol=0)
        assert abs(moments[4] - float(third)) <= 1e-14 * float(variance)


@jit_free
@pytest.mark.parametrize("t", [0.3, 0.5, 0.93, 1e-12, 1 - 1e-9])
def test_odd_exponent(t):
    u = 1.0 - t
    for tangent in (1e-8, 1e-3, 0.05, 0.19):
        with mp.workdps(60):
            theta = 2 * mp.atan(mpf(tangent))
            # u is the exact complement of this t
            truth = mp.arg(1 - mpf(t) + mpf(t) * mp.expj(theta)) - mpf(t) * theta
        expected = float(truth)
        value = odd_exponent(t, u, tangent, 14)  # 0.19**28 is below rounding
        if t == 0.5:
            assert value == 0.0
            continue
        assert_allclose(value, expected, rtol=DOZEN_ROUNDINGS, atol=0)
        # the closed form cancels to the third order: absolutely of a rounding times the angle
        closed = odd_exponent(t, u, tangent, 0)
        assert abs(closed - expected) <= 4e-16 * min(t, u) * 2.0 * tangent
    for tangent in (0.5, 3.0, 1e3):
        with mp.workdps(60):
            theta = 2 * mp.atan(mpf(tangent))
            truth = mp.arg(1 - mpf(t) + mpf(t) * mp.expj(theta)) - mpf(t) * theta
        closed = odd_exponent(t, u, tangent, 0)
        assert abs(closed - float(truth)) <= 1e-15 * min(t, u) * 3.0


@jit_free
def test_contour_nodes():
    """Aliases and nodes left out are both below exp(-42)."""
    for variance in (0.0, 0.1, 1.0, 20.9, 21.1, 1e3, 1e8, 1e15):
        length, n_nodes = contour_nodes(variance)
        # Bernstein: a mass at distance M is below exp(-M**2 / (2 v + 2 M / 3))
        assert length**2 / (2.0 * variance + 2.0 * length / 3.0) >= 42.0 * (1 - 1e-12)
        theta = 2.0 * math.pi * (n_nodes + 1) / length
        beyond = 2.0 * variance * math.sin(0.5 * min(theta, math.pi)) ** 2
        assert beyond >= 42.0 or 2 * n_nodes + 1 >= length
        assert n_nodes <= 60


@jit_free
@pytest.mark.parametrize(
    "groups",
    [[(20, 0.3)], [(12, 0.3), (9, 0.8)], [(31, 0.05)], [(10, 1e-5), (21, Complement(1e-7))]],
    ids=str,
)
@pytest.mark.parametrize("tilt", [0.0, 1e-6, 0.4, 2.0])
def test_contour_agrees_with_recursion(groups, tilt):
    """The two ways to the four sums, at every edge where the tilted mass is not negligible."""
    rows = group_rows(groups)
    trials = count_trials(rows)
    tilted, moments = np.empty((len(groups), 4)), np.empty(6)
    tilt_groups(tilt, rows, tilted, moments)
    direct, contour = np.empty(4), np.empty(4)
    for x in range(1, int(trials) + 1):
        recursion_sums(tilt, x, trials, rows, tilted, direct)
        if direct[0] < 1e-3:
            continue
        offset = (x - moments[0]) - moments[1]
        exponent = moments[5] + tilt * offset
        contour_sums(tilt, trials, offset, exponent, moments, rows, tilted, contour)
        assert_allclose(contour[0], direct[0], rtol=1e-12, atol=0)
        # differences of masses are right to a rounding of the masses
        largest = max(direct[0], direct[0] - direct[1], direct[0] + direct[2])
        assert np.abs(contour[1:3] - direct[1:3]).max() <= 1e-13 * largest
        assert abs(contour[3] - direct[3]) <= 1e-13 * max(largest, abs(direct[3]))


@jit_free
def test_edge_sums_rebuild_the_mass():
    """R(x - 1) from the edge below x, at any tilt, right of it or left."""
    groups = [(40, 0.3), (25, 0.8)]
    rows = group_rows(groups)
    tilted, moments, sums = np.empty((2, 4)), np.empty(6), np.empty(4)
    for x in (20, 33, 45):
        truth = reference.mass(groups, x - 1, 40)
        for s in (-0.5, 0.0, 0.2, 1.0):
            tilt_groups(s, rows, tilted, moments)
            log_scale = edge_sums(float(x), s, 65.0, moments, rows, tilted, sums)
            if sums[0] > 1e-4:
                assert_log_close(log_scale + s + math.log(sums[0]), truth)


@jit_free
@pytest.mark.parametrize(
    "groups",
    [
        [(50, 0.2)],
        [(50, 0.2), (3, Complement(1e-200))],
        [(10**15, 1e-300), (10**15, Complement(1e-300))],
        [(10**6, 1e-9), (10, 0.5), (10**8, Complement(1e-12))],
    ],
    ids=str,
)
def test_saddle_point_is_within_a_tenth_of_a_deviation(groups):
    rows = group_rows(groups)
    trials = count_trials(rows)
    tilted, _moments = np.empty((len(groups), 4)), np.empty(6)
    for target in (0.5, 1.0, 7.5, trials // 3, trials - 20.5, trials - 1.0, trials - 0.5):
        s = saddle_point(float(target), trials, rows, tilted)
        assert math.isfinite(s)
        with mp.workdps(700):
            ones = zeros = variance = mpf(0)
            for count, law in groups:
                q = mpf(law.q) if isinstance(law, Complement) else 1 - mpf(law)
                p = 1 - q
                t, u = (v / (q + p * mp.exp(mpf(s))) for v in (p * mp.exp(mpf(s)), q))
                ones, zeros = ones + count * t, zeros + count * u
                variance += count * t * u
            assert abs(ones - mpf(target)) <= mpf("0.101") * mp.sqrt(variance)
