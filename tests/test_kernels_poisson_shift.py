"""Shifted jumps: masses, tails, divergences and trade-offs against direct sums."""

import json
import math
from fractions import Fraction
from pathlib import Path

import pytest
from mpmath import mp
from numpy.testing import assert_allclose

from fastshuffle._kernels.poisson_shift import (
    jumps_log_tail,
    log_poisson_mass,
    shift_log_delta,
    shift_type_two_error,
)
from fastshuffle.limits._jumps import shift_law
from tests.laws import assert_log_close
from tests.tolerances import DOZEN_ROUNDINGS, FEW_ROUNDINGS, STATED
from validation.reference import mp as binomial
from validation.reference import poisson as reference

pytestmark = pytest.mark.jit_free

TAILS = [
    (301, 100.0, 100.0),
    (21, 2.0, 2000.0),
    (450, 400.0, 1.0),
    (30, 1e-3, 1e-6),
    (80, 30.0, 0.0),
]
LAWS = [
    (1.0, 0.0), (0.0, 1.0), (4.0, 0.0), (0.0, 4.0), (1e-5, 0.0), (1e-20, 3.0), (0.5, 3.0),
    (2.0, 2.0), (1e-5, 1e-5), (0.3, 200.0), (400.0, 1.0), (60.0, 50.0),
]  # fmt: skip


@pytest.mark.parametrize(("x", "mean"), [(0, 3.0), (1, 1e-300), (7, 2.5), (50, 1e-3), (900, 1e3)])
def test_log_poisson_mass(x, mean):
    assert_log_close(log_poisson_mass(float(x), mean), reference.poisson_mass(x, mean))


def test_log_poisson_mass_of_a_huge_mean():
    """A difference of log-gammas gives 0 here."""
    assert_allclose(log_poisson_mass(5e15, 5e15), -18.993045686877068, rtol=FEW_ROUNDINGS, atol=0)
    # -log(2 pi 5e15) / 2 - 1 / (12 5e15) at 40 digits
    assert log_poisson_mass(1.0, 0.0) == -math.inf


@pytest.mark.parametrize(("x", "up", "down"), TAILS)
def test_tail(x, up, down):
    log_tail = jumps_log_tail(float(x), shift_law(up, down), shift_law(down, up))
    assert_log_close(log_tail, reference.skellam_upper_tail(x, up, down))


def test_tail_where_public_tools_return_0():
    law = shift_law(100.0, 100.0)
    assert_allclose(math.exp(jumps_log_tail(301.0, law, law)), 1.0527e-88, rtol=5e-5, atol=0)


def test_tail_of_jumps_down():
    truth = mp.fsum(reference.poisson_mass(j, 50) for j in range(31))
    assert_log_close(jumps_log_tail(-30.0, shift_law(0.0, 50.0), shift_law(50.0, 0.0)), truth)


def test_tail_below_the_mean():
    law, mirrored = shift_law(100.0, 3.0), shift_law(3.0, 100.0)
    truth = 1 - mp.fsum(reference.skellam_mass(x, 100, 3) for x in range(-80, 95))
    assert_log_close(jumps_log_tail(95.0, law, mirrored), truth)


@pytest.mark.parametrize(("up", "down"), LAWS)
def test_hockey_stick(up, down):
    for epsilon in (0.0, 1e-6, 1e-3, 0.01, 0.2, 1.0, 3.0, 6.0):
        if up * math.exp(epsilon) < 1000.0:
            truth = reference.shift_delta(epsilon, up, down, digits=30)
            assert_log_close(shift_log_delta(epsilon, shift_law(up, down)), truth)


def test_hockey_stick_stored():
    """Values of another program, printed to 30 digits."""
    stored = json.loads((Path(__file__).parent / "data" / "poisson_shift.json").read_text())
    for entry in stored:
        up, down = entry["up"], entry["down"]
        for direction, law in (("forward", (up, down)), ("reverse", (down, up))):
            for epsilon, value in entry[direction]:
                log_delta = shift_log_delta(epsilon, shift_law(*law))
                assert_allclose(math.exp(log_delta), float(value), rtol=DOZEN_ROUNDINGS, atol=0)


def test_hockey_stick_at_its_ends():
    assert shift_log_delta(0.0, shift_law(0.0, 0.0)) == 0.0
    assert shift_log_delta(math.inf, shift_law(0.0, 0.0)) == 0.0
    assert shift_log_delta(math.inf, shift_law(0.0, 4.0)) == -4.0
    assert shift_log_delta(math.inf, shift_law(1e-300, 4.0)) == -math.inf
    assert shift_log_delta(800.0, shift_law(0.0, 4.0)) == -4.0
    assert shift_log_delta(800.0, shift_law(4.0, 0.0)) == -math.inf  # -1e350


@pytest.mark.parametrize(
    ("up", "down", "deviations"),
    [(1e6, 3e5, 8), (1e13, 2e4, 1), (2.0**51, 2.0**50, 36), (0.0, 1e10, 36)],
)
def test_hockey_stick_of_large_means(up, down, deviations):
    """Binomial counts of 10**45 trials are Poisson counts to 15 digits, and a shift is nothing."""
    trials = 10**45
    groups = [(trials, Fraction(up) / trials)] if up else []
    groups.append((trials, 1 - Fraction(down) / trials))
    epsilon = deviations / math.sqrt(up + down)
    truth = binomial.delta_large(groups, 0, 1, epsilon, "forward", 18)
    assert_log_close(shift_log_delta(epsilon, shift_law(up, down)), truth)


@pytest.mark.parametrize(("up", "down"), [(1.0, 0.0), (1e9, 0.0), (3.0, 1e6), (2.0**50, 7.0)])
def test_hockey_stick_of_huge_counts(up, down):
    """Beyond 2**53 the leading terms; where the two forms meet they agree, and so does mpmath."""
    for cut in (2.0**52, 1.01 * 2.0**53, 1e18):
        epsilon = math.log((cut + down) / up)
        with mp.workdps(40):
            e, u, d = mp.exp(mp.mpf(epsilon)), mp.mpf(up), mp.mpf(down)
            divergence = u * (e * (mp.log(e) - 1) + 1) + d * (1 - (1 + mp.log(e)) / e)
            leading = -divergence - 1.5 * mp.log(u * e + d / e) - 2 * mp.log1p(-1 / e)
            truth = float(leading - mp.log(2 * mp.pi) / 2)
        assert_allclose(shift_log_delta(epsilon, shift_law(up, down)), truth, rtol=2e-14, atol=0)


@pytest.mark.parametrize(("up", "down"), [(1.0, 0.0), (0.0, 1.0), (0.5, 3.0), (1e-3, 1e-5)])
def test_type_two_error(up, down):
    law, mirrored = shift_law(up, down), shift_law(down, up)
    for alpha in (1e-50, 1e-9, 0.01, 0.3, 0.9, 0.9999):
        truth = float(reference.shift_type_two_error(alpha, up, down, 30))
        assert_allclose(shift_type_two_error(alpha, law, mirrored), truth, rtol=STATED, atol=0)
    assert shift_type_two_error(1.0, law, mirrored) == 0.0
    level_0 = 1.0 if up > 0.0 else -math.expm1(-down)
    assert_allclose(shift_type_two_error(0.0, law, mirrored), level_0, rtol=STATED, atol=0)


def test_reference_at_twice_the_digits():
    for epsilon in (0.0, 0.7):
        once, twice = (reference.shift_delta(epsilon, 0.5, 3.0, digits=d) for d in (30, 60))
        assert abs(once - twice) < twice * mp.mpf(10) ** -30
