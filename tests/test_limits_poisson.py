"""Poisson and Skellam limits: kernels against direct sums, profiles against the exact ones."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from mpmath import mp
from numpy.testing import assert_allclose

import fastshuffle as fs
from fastshuffle._kernels.poisson_shift import (
    jumps_log_tail,
    log_poisson_mass,
    shift_log_delta,
    shift_type_two_error,
)
from fastshuffle.limits._jumps import shift_law
from tests.laws import assert_log_close
from tests.tolerances import DOZEN_ROUNDINGS, FEW_ROUNDINGS, STATED
from validation.reference import poisson as reference

# Printed by validation/reference/poisson.py at 60 digits: (x, up, down, Pr[R >= x]).
TAILS = [
    (301, 100.0, 100.0, 1.0527200244445134e-88),
    (21, 2.0, 2000.0, None),
    (1100, 1000.0, 1.0, None),
    (30, 1e-3, 1e-6, None),
    (-30, 0.0, 50.0, None),
    (80, 30.0, 0.0, None),
]
LAWS = [
    (1.0, 0.0), (0.0, 1.0), (4.0, 0.0), (0.0, 4.0), (1e-5, 0.0), (1e-20, 3.0), (0.5, 3.0),
    (2.0, 2.0), (1e-5, 1e-5), (0.3, 200.0), (400.0, 1.0), (60.0, 50.0),
]  # fmt: skip


def randomized_response(mean, n):
    """Return the symmetric mechanism whose n users make ``mean`` errors in the mean."""
    return fs.binary_randomized_response(math.log(n / mean - 1.0))


# ---- Kernels ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("x", "mean"), [(0, 3.0), (1, 1e-300), (7, 2.5), (50, 1e-3), (900, 1e3)])
def test_log_poisson_mass(x, mean):
    assert_log_close(log_poisson_mass(float(x), mean), reference.poisson_mass(x, mean))


def test_log_poisson_mass_of_a_huge_mean():
    """A difference of log-gammas gives 0 here."""
    assert_allclose(log_poisson_mass(5e15, 5e15), -18.993045686877068, rtol=FEW_ROUNDINGS, atol=0)
    # -log(2 pi 5e15) / 2 - 1 / (12 5e15) at 40 digits
    assert log_poisson_mass(1.0, 0.0) == -math.inf


@pytest.mark.parametrize(("x", "up", "down", "value"), TAILS)
def test_tail(x, up, down, value):
    truth = reference.skellam_upper_tail(x, up, down) if up else None
    if truth is None:  # Pr[-Poi(50) >= -30]
        truth = mp.fsum(reference.poisson_mass(j, down) for j in range(-x + 1))
    if value is not None:
        assert_allclose(float(truth), value, rtol=FEW_ROUNDINGS, atol=0)
    log_tail = jumps_log_tail(float(x), shift_law(up, down), shift_law(down, up))
    assert_log_close(log_tail, truth)


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


# ---- Profiles --------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [0, 1999])
def test_poisson_profile_is_near_the_exact_one(k):
    experiment = fs.ShuffleExperiment(randomized_response(4.0, 2000), 2000, k=k)
    limit, exact = fs.poisson_profile(experiment), fs.exact_profile(experiment)
    mean = 1999.0 * 4.0 / 2000.0
    assert_allclose(limit.means, (mean, 0.0) if k == 0 else (0.0, mean), rtol=STATED, atol=0)
    for direction in ("forward", "reverse"):
        for epsilon in (0.0, 0.3, 1.0):
            assert_allclose(
                limit.delta(epsilon, direction=direction),
                exact.delta(epsilon, direction=direction),
                rtol=0.05,
                atol=0,
            )
    floor = "reverse" if k == 0 else "forward"
    assert_allclose(limit.delta(math.inf, direction=floor), math.exp(-mean), rtol=STATED, atol=0)
    opposite = "forward" if k == 0 else "reverse"
    assert limit.delta(math.inf, direction=opposite) == 0.0
    assert limit.epsilon(1e-6) == math.inf


@pytest.mark.parametrize("k", [0, 700, 1999])
def test_total_variation_error_falls_as_one_over_n(k):
    gaps = []
    for n in (2000, 8000):
        ones = k * n // 2000 if k < 1999 else n - 1
        experiment = fs.ShuffleExperiment(randomized_response(4.0, n), n, k=ones)
        limit, exact = fs.skellam_profile(experiment), fs.exact_profile(experiment)
        epsilons = np.linspace(0.0, 2.0, 21)
        gaps.append(np.abs(limit.delta(epsilons) - exact.delta(epsilons)).max())
    assert 3.5 < gaps[0] / gaps[1] < 4.5


def test_skellam_has_no_floor_inside():
    experiment = fs.ShuffleExperiment(randomized_response(4.0, 2000), 2000, k=700)
    limit = fs.skellam_profile(experiment)
    assert limit.delta(math.inf) == 0.0
    assert limit.epsilon(1e-9) < math.inf
    up, down = limit.means
    assert_allclose((up, down), (1299 * 0.002, 700 * 0.002), rtol=STATED, atol=0)


def test_asymmetric_homes_and_directions():
    w = fs.Randomizer([[0.998, 0.002], [0.005, 0.995], [0.003, 0.997]])
    forward = fs.ShuffleExperiment(w, 1000, others={0: 600, 2: 399})
    backward = fs.ShuffleExperiment(w, 1000, others={0: 600, 2: 399}, pair=(1, 0))
    limit, turned = fs.skellam_profile(forward), fs.skellam_profile(backward)
    for epsilon in (0.0, 0.5, 2.0):
        assert limit.delta(epsilon, direction="forward") == turned.delta(
            epsilon, direction="reverse"
        )
    assert_allclose(limit.means, (600 * 0.002, 399 * 0.003), rtol=STATED, atol=0)
    # the differing user's own errors are the part of the distance that n cannot mend
    assert limit.law_errors[0] - limit.law_errors[1] == pytest.approx(0.002 - 0.005, rel=1e-9)


def test_a_larger_alphabet_with_one_rare_count():
    """Others at the home of a: only the count at the home of b tells the datasets apart."""
    krr = fs.k_randomized_response(math.log(500.0), k=6)
    experiment = fs.ShuffleExperiment(krr, 2000, k=0)
    limit = fs.poisson_profile(experiment)
    assert_allclose(limit.means, (1999.0 / 505.0, 0.0), rtol=STATED, atol=0)
    lower, upper = limit.bounds(0.5)
    exact_lower, exact_upper = fs.exact_profile(experiment).bounds(0.5)
    assert lower < exact_lower <= exact_upper < upper


@pytest.mark.parametrize("k", [0, 300, 999])
def test_bounds_bracket_the_exact_delta(k):
    for mean in (0.3, 4.0, 60.0):
        experiment = fs.ShuffleExperiment(randomized_response(mean, 1000), 1000, k=k)
        limit, exact = fs.skellam_profile(experiment), fs.exact_profile(experiment)
        epsilons = np.array([0.0, 0.1, 0.5, 1.5, math.inf])
        for direction in ("forward", "reverse", "both"):
            lower, upper = limit.bounds(epsilons, direction=direction)
            delta = exact.delta(epsilons, direction=direction)
            assert (lower <= delta).all()
            assert (delta <= upper).all()
            assert upper[0] - lower[0] < 0.5


def test_inverse_and_trade_off():
    experiment = fs.ShuffleExperiment(randomized_response(40.0, 10**6), 10**6, k=4 * 10**5)
    limit = fs.skellam_profile(experiment)
    for delta in (1e-7, 1e-30, 1e-300):
        epsilon = limit.epsilon(delta)
        assert limit.delta(epsilon) <= delta
        assert limit.delta(epsilon * (1 - 1e-13)) > delta * (1 - 1e-9)
    exact = fs.exact_profile(experiment)
    assert_allclose(limit.trade_off(0.05), exact.trade_off(0.05), rtol=1e-4, atol=0)
    assert limit.trade_off(0.05) == min(
        limit.trade_off(0.05, direction="forward"), limit.trade_off(0.05, direction="reverse")
    )


def test_says_what_it_is():
    limit = fs.poisson_profile(fs.ShuffleExperiment(randomized_response(4.0, 100), 100, k=0))
    assert limit.validity is fs.Validity.APPROXIMATION
    assert "2603.10073v1" in limit.source
    assert "errors are rare" in limit.describe()
    assert limit.to_dict()["region"] == limit.region


def test_one_user_and_no_errors():
    limit = fs.poisson_profile(fs.ShuffleExperiment(randomized_response(0.1, 10), 1, k=0))
    assert limit.delta(3.0) == 1.0
    certain = fs.Randomizer([[1.0, 0.0], [0.0, 1.0]])
    assert fs.poisson_profile(fs.ShuffleExperiment(certain, 5, k=0)).delta(3.0) == 1.0


def test_refusals():
    rr = randomized_response(1.0, 150)
    fair = fs.Randomizer([[0.5, 0.5], [0.1, 0.9]])
    with pytest.raises(TypeError, match="experiment must be a ShuffleExperiment, got int"):
        fs.poisson_profile(3)
    with pytest.raises(
        fs.UnsupportedSettingError, match=r"above 1/2, got 0\.5 as the largest of input 0"
    ):
        fs.skellam_profile(fs.ShuffleExperiment(fair, 9, k=0))
    same = fs.Randomizer([[0.9, 0.1], [0.8, 0.2]])
    with pytest.raises(fs.UnsupportedSettingError, match="got the same for 0 and 1"):
        fs.skellam_profile(fs.ShuffleExperiment(same, 9, k=0))
    with pytest.raises(fs.UnsupportedSettingError, match="must all have the home of one input"):
        fs.poisson_profile(fs.ShuffleExperiment(rr, 9, k=4))
    krr = fs.k_randomized_response(5.0, k=4)
    with pytest.raises(fs.UnsupportedSettingError, match="must fall into 2 groups, got 3"):
        fs.skellam_profile(fs.ShuffleExperiment(krr, 9, k=4))
