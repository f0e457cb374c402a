"""Error-free transformations, deviances and the binomial mass against exact arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf
from numpy.testing import assert_allclose

from fastshuffle._kernels.deviance import (
    deviance,
    exponential_excess,
    log_binomial_mass,
    stirling_error,
)
from fastshuffle._kernels.error_free import two_product, two_sum
from tests.laws import assert_log_close, group_rows
from tests.tolerances import DOZEN_ROUNDINGS, FEW_ROUNDINGS
from validation.reference import exact
from validation.reference import mp as reference
from validation.reference.mp import Complement

pytestmark = pytest.mark.jit_free

PROBABILITIES = [
    1e-300, 1e-30, 1e-9, 0.1, 0.2, 0.5, 0.7, 0.999,
    Complement(1e-9), Complement(1e-30), Complement(1e-200), Complement(1e-300),
]  # fmt: skip


def wide_doubles(seed, size, exponents):
    rng = np.random.default_rng(seed)
    signs = rng.choice([-1.0, 1.0], size)
    return (signs * rng.random(size) * 10.0 ** rng.uniform(*exponents, size)).tolist()


def test_two_sum_is_exact():
    numbers = [*wide_doubles(1, 400, (-300, 300)), *wide_doubles(2, 400, (-3, 3)), 0.0, 1e300]
    for a, b in zip(numbers, reversed(numbers), strict=True):
        total, error = two_sum(a, b)
        assert total == a + b
        assert Fraction(total) + Fraction(error) == Fraction(a) + Fraction(b)


def test_two_product_is_exact():
    counts = [0.0, 1.0, 3.0, 2.0**53, 2.0**53 - 1, 1e15, 33333333333.0, -7.0, -(2.0**52) + 1]
    probabilities = [abs(p) for p in wide_doubles(3, 100, (-290, 0))] + [1.0, 0.5, 1 / 3, 1e-290]
    for count in counts:
        for p in probabilities:
            product, error = two_product(count, p)
            assert product == count * p
            assert Fraction(product) + Fraction(error) == Fraction(count) * Fraction(p)


def test_two_product_below_its_range():
    """A product too small to split leaves an error of no consequence, and no nan."""
    product, error = two_product(2.0**53, 1e-300)
    assert product == 2.0**53 * 1e-300
    assert abs(error) <= 1e-15 * product
    assert two_product(2.0**53, 0.0) == (0.0, 0.0)


def test_deviance():
    sizes = [10.0**e for e in range(-150, 300, 3)]
    near = np.linspace(-0.999, 3.0, 1201).tolist()  # both sides of the switch at |u/(2+u)| = 0.3
    edges = [-1.0 + 2.0**-53, -1.0 + 1e-9, math.nextafter(6 / 7, 1), math.nextafter(-6 / 13, 0)]
    for u in [*sizes, *(-s for s in sizes if s < 1.0), *near, *edges]:
        with mp.workdps(340):
            truth = float((1 + mpf(u)) * mp.log1p(mpf(u)) - mpf(u))
        assert_allclose(deviance(u), truth, rtol=DOZEN_ROUNDINGS, atol=0, err_msg=f"u = {u!r}")
    assert deviance(0.0) == 0.0
    assert deviance(-1.0) == 1.0


def test_exponential_excess():
    sizes = [10.0**e for e in range(-150, 2)] + [0.5, math.nextafter(0.5, 1), 700.0]
    for y in [*sizes, *(-s for s in sizes), *np.linspace(-3, 3, 601).tolist()]:
        with mp.workdps(340):
            truth = float(mp.expm1(mpf(y)) - mpf(y))
        assert_allclose(
            exponential_excess(y), truth, rtol=DOZEN_ROUNDINGS, atol=0, err_msg=f"y = {y!r}"
        )
    assert exponential_excess(-1000.0) == 999.0


def test_stirling_error():
    for n in [*range(1, 200), 10**3, 10**5, 10**8, 10**12, 10**15, 2**53]:
        with mp.workdps(80):
            x = mpf(n)
            truth = mp.loggamma(x + 1) - (mp.log(2 * mp.pi * x) / 2 + x * mp.log(x) - x)
        assert_allclose(
            stirling_error(float(n)), float(truth), rtol=FEW_ROUNDINGS, atol=0, err_msg=f"n = {n}"
        )
    assert stirling_error(0.0) == 0.0


@pytest.mark.parametrize("law", PROBABILITIES, ids=str)
def test_case_33_small_masses(law):
    """Every outcome of small binomials; 21! and its like never enter an integer."""
    for n in (1, 2, 15, 16, 17, 31, 40):
        group = group_rows([(n, law)])[0]
        for x in range(n + 1):
            with mp.workdps(380):
                p = 1 - mpf(law.q) if isinstance(law, Complement) else mpf(law)
                q = mpf(law.q) if isinstance(law, Complement) else 1 - mpf(law)
                truth = math.comb(n, x) * p**x * q ** (n - x)
            assert_log_close(log_binomial_mass(float(x), group), truth)


def test_masses_of_fractions_add_up():
    """The enumeration of the definition, with nothing of mpmath in between."""
    for p in (0.3, 0.625):
        masses = exact.binomial_groups([(29, Fraction(p))])
        assert sum(masses) == 1
        group = group_rows([(29, p)])[0]
        values = [math.exp(log_binomial_mass(float(x), group)) for x in range(30)]
        assert_allclose(values, [float(mass) for mass in masses], rtol=1e-13, atol=0)


@pytest.mark.parametrize("n", [10**4, 10**8, 10**12, 10**15])
@pytest.mark.parametrize("law", [0.2, 0.7, 1e-3, Complement(1e-6)], ids=str)
def test_large_masses(n, law):
    p, q = (1.0 - law.q, law.q) if isinstance(law, Complement) else (law, 1.0 - law)
    group = group_rows([(n, law)])[0]
    mean, sigma = n * p, math.sqrt(n * p * q)
    centre = [round(mean + z * sigma) for z in (-37, -8, -1, 0.3, 5, 20, 37)]
    for x in [*centre, 1, 2, n // 2, n - 1, 0, n]:
        inside = min(max(x, 0), n)
        truth = reference.mass_large([(n, law)], inside, 30)
        assert_log_close(log_binomial_mass(float(inside), group), truth)


@pytest.mark.parametrize("n", [10**4, 10**9, 10**15])
def test_masses_of_rare_outputs(n):
    """Means far below one, and the mirror image to the last digit."""
    for p in (1e-300, 1e-40, 1e-17, 0.3 / n):
        ones, zeros = group_rows([(n, p), (n, Complement(p))])
        for x in (0, 1, 2, 7):
            value = log_binomial_mass(float(x), ones)
            assert_log_close(value, reference.mass_large([(n, p)], x, 30))
            assert log_binomial_mass(float(n - x), zeros) == value


def test_case_29_at_the_mode():
    """A mass at the mode is a Gaussian density: no difference of log-gammas survives here."""
    n = 10**15
    group = group_rows([(n, 0.25)])[0]
    expected = -0.5 * math.log(2 * math.pi * n * 0.1875)
    assert_allclose(log_binomial_mass(n / 4, group), expected, rtol=1e-14, atol=0)
