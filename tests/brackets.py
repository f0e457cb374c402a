"""What every bracket of a delta must do, for the tests of brackets and of bounds."""

import json
import math
from fractions import Fraction
from pathlib import Path

from mpmath import mp, mpf

from fastshuffle import Validity
from tests.tolerances import BRACKET_ROUNDING, FEW_ROUNDINGS

DATA = Path(__file__).parent / "data"

# Below this a double holds fewer digits than 1e-15.
SMALLEST = mpf(10) ** -306


def stored(name):
    """Return a file of frozen values."""
    return json.loads((DATA / f"{name}.json").read_text())


def number(value):
    """Return a stored string, a fraction or a double as an mpf of 40 digits."""
    with mp.workdps(40):
        if isinstance(value, Fraction):
            return mpf(value.numerator) / value.denominator
        return mpf(value)


def exp_fraction(epsilon):
    """Return e**epsilon as a fraction, to 90 digits."""
    with mp.workdps(100):
        return Fraction(int(mp.exp(mpf(epsilon)) * 10**90), 10**90)


def assert_bracket(curve, epsilon, truth, rtol, direction="both"):
    """The bracket holds the truth, is as narrow as asked, and delta is its upper end."""
    lower, upper = curve.bounds(epsilon, direction=direction)
    if curve.validity is Validity.UPPER_BOUND:
        assert upper == curve.delta(epsilon, direction=direction)
    assert_between(lower, upper, truth)
    if number(truth) > SMALLEST:
        assert upper <= lower * (1.0 + rtol + 2.0 * BRACKET_ROUNDING)


def assert_between(lower, upper, truth):
    """``lower <= truth <= upper``, each a probability, with only exp's rounding allowed."""
    truth = number(truth)
    assert 0.0 <= lower <= upper <= 1.0
    if truth < SMALLEST:
        assert mpf(lower) <= 2 * truth + mpf(math.ulp(0.0))
        return
    slack = mpf(FEW_ROUNDINGS) * (1 - mp.log(truth))
    assert mpf(lower) <= truth * (1 + slack)
    assert mpf(upper) >= min(truth * (1 - slack), mpf(1))


def assert_above(upper, truth, rtol):
    """An upper bound, no further above what it bounds than rtol."""
    assert_between(0.0, upper, truth)
    if number(truth) > SMALLEST:
        assert mpf(upper) <= number(truth) * (1 + mpf(rtol) + mpf(2.0 * BRACKET_ROUNDING))
