"""Argument checks: one message form, the exact domain, no silent conversion."""

import math
from fractions import Fraction

import numpy as np
import pytest

from fastshuffle._validation import (
    NONNEGATIVE,
    NONNEGATIVE_FINITE,
    POSITIVE,
    PROBABILITY,
    check_count,
    check_direction,
    check_real,
    check_reals,
)

NOT_REAL = [None, True, np.True_, "1", b"1", 1j, Fraction(1, 2), {}, {1.0}, object()]


@pytest.mark.parametrize("value", [7, 7.0, np.int8(7), np.uint64(7), np.float64(7.0)])
def test_counts(value):
    count = check_count("n", value, minimum=1)
    assert (count, type(count)) == (7, int)


def test_counts_up_to_2_to_the_53():
    assert check_count("n", 2**53, minimum=1) == check_count("n", 2.0**53, minimum=1) == 2**53
    for value in (2**53 + 1, 2.0**54, 10**400):
        with pytest.raises(ValueError, match="^n must be <= 9007199254740992, got "):
            check_count("n", value, minimum=1)
    with pytest.raises(ValueError, match="^n must be >= 1, got 0$"):
        check_count("n", 0, minimum=1)


@pytest.mark.parametrize("value", [2.9, math.nan, math.inf, [1], np.array([1]), *NOT_REAL])
def test_case_13_refused_counts(value):
    with pytest.raises(TypeError, match="^n must be an integer, got "):
        check_count("n", value, minimum=1)


def test_message_form():
    with pytest.raises(TypeError, match=r"^n must be an integer, got 2\.9$"):
        check_count("n", np.float64(2.9), minimum=1)
    with pytest.raises(ValueError, match=r"^epsilon must be >= 0, got -0\.5$"):
        check_real("epsilon", np.float64(-0.5), NONNEGATIVE)
    with pytest.raises(TypeError, match="^epsilon must be a real number >= 0, got None$"):
        check_real("epsilon", None, NONNEGATIVE)
    with pytest.raises(TypeError) as caught:
        check_real("epsilon", "x" * 10_000, NONNEGATIVE)
    assert len(str(caught.value)) < 120


@pytest.mark.parametrize("value", [1, 1.0, np.float64(1), np.float32(1), np.int64(1)])
@pytest.mark.parametrize("interval", [NONNEGATIVE, NONNEGATIVE_FINITE, POSITIVE, PROBABILITY])
def test_reals(value, interval):
    number = check_real("x", value, interval)
    assert (number, type(number)) == (1.0, float)
    flat, shape = check_reals("x", value, interval)
    assert (flat.tolist(), flat.dtype, shape) == ([1.0], np.float64, ())


@pytest.mark.parametrize(
    ("interval", "inside", "outside"),
    [
        (NONNEGATIVE, [0.0, -0.0, math.inf], [-5e-324, -math.inf]),
        (NONNEGATIVE_FINITE, [0.0, 1e308], [-1.0, math.inf, 10**400]),
        (POSITIVE, [5e-324, math.inf], [0.0, -0.0]),
        (PROBABILITY, [0.0, 1.0, -0.0], [-5e-324, 1.0 + 2.0**-52, 2, -(10**400)]),
    ],
)
def test_case_13_domains(interval, inside, outside):
    for value in inside:
        assert check_real("x", value, interval) == value
        assert not np.signbit(check_real("x", value, interval))
        assert not np.signbit(check_reals("x", np.array([value]), interval)[0]).any()
    for value in [*outside, math.nan]:
        with pytest.raises(ValueError, match="^x must be "):
            check_real("x", value, interval)
        with pytest.raises(ValueError, match=r"^x must be .* at index \(0, 1\)$"):
            check_reals("x", [[1.0, value]], interval)


@pytest.mark.parametrize("value", NOT_REAL)
def test_case_13_what_is_no_real_number(value):
    with pytest.raises(TypeError, match="^epsilon must be a real number >= 0, got "):
        check_real("epsilon", value, NONNEGATIVE)
    with pytest.raises(TypeError, match="^epsilon must be .*real number"):
        check_reals("epsilon", value, NONNEGATIVE)
    with pytest.raises(TypeError, match=r"^epsilon must be a real number >= 0, got .* at index 1$"):
        check_reals("epsilon", [0.5, value, 0.7], NONNEGATIVE)


def test_case_13_one_bad_element_of_an_array():
    message = r"^delta must be in \[0, 1\], got 1\.5 at index 3$"
    for values in ([0, 0.1, 1, 1.5, 2], np.array([0, 0.1, 1, 1.5, 2]), (0, 0.1, 1, 1.5, 2)):
        with pytest.raises(ValueError, match=message):
            check_reals("delta", values, PROBABILITY)
    with pytest.raises(ValueError, match=r"got nan at index \(1, 0\)"):
        check_reals("delta", np.array([[0.0, 1.0], [math.nan, 0.5]]), PROBABILITY)
    with pytest.raises(TypeError, match=r"got \[1\.0\] at index 0"):
        check_reals("delta", [[1.0], [0.5, 0.5]], PROBABILITY)


@pytest.mark.parametrize("dtype", [bool, complex, "U1", "M8[s]"])
def test_case_13_arrays_of_other_types(dtype):
    with pytest.raises(TypeError, match="^delta must be real numbers .* got dtype "):
        check_reals("delta", np.zeros(2, dtype=dtype), PROBABILITY)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8, np.uint64, object, ">f8"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0)])
def test_arrays_come_back_flat_fresh_and_contiguous(dtype, shape):
    values = np.ones(shape, dtype=dtype).T
    flat, returned = check_reals("epsilon", values, NONNEGATIVE)
    assert returned == values.shape
    assert (flat.ndim, flat.size, flat.dtype) == (1, values.size, np.float64)
    assert flat.dtype.isnative
    assert flat.flags.c_contiguous
    assert flat.flags.writeable
    assert not np.shares_memory(flat, values)


def test_arrays_keep_c_order():
    values = np.asfortranarray([[1.0, 2.0], [3.0, 4.0]])
    assert check_reals("epsilon", values, NONNEGATIVE)[0].tolist() == [1.0, 2.0, 3.0, 4.0]


def test_directions():
    for direction in ("both", "forward", "reverse"):
        assert check_direction(direction) == direction
    with pytest.raises(ValueError, match="^direction must be 'both', .* got 'Forward'$"):
        check_direction("Forward")
    for value in (None, 1, np.array(["both"]), ["both"]):
        with pytest.raises(TypeError, match="^direction must be 'both', "):
            check_direction(value)
