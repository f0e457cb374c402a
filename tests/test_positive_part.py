"""The engine of all certified brackets: E[S_+] against exact enumeration and exact integers."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from fastshuffle._positive_part import (
    Bracket,
    Terms,
    log_mean_positive_part,
    log_smallest_exponential_bound,
)
from fastshuffle._positive_part.lattice import refined_on_grid
from fastshuffle._positive_part.nested import log_nested
from fastshuffle._positive_part.terms import tilt_to_zero
from tests.tolerances import BRACKET_ROUNDING

DIGITS = 50


def terms_of(*groups):
    return [
        Terms(float(copies), np.array(values, dtype=float), np.array(masses, dtype=float))
        for copies, values, masses in groups
    ]


def bracket_of(*groups, rtol=1e-3):
    terms = terms_of(*groups)
    return log_mean_positive_part(terms, terms, rtol)


def enumerated(*groups):
    """Return log E[S_+] from all counts of all groups, the values and masses taken exactly."""
    with mp.workdps(DIGITS):
        law = [(Fraction(0), mpf(1))]
        for copies, values, masses in groups:
            law = [(x + y, p * q) for x, p in law for y, q in sums_of(copies, values, masses)]
        total = mp.fsum(p * mpf(x.numerator) / x.denominator for x, p in law if x > 0)
        return mp.log(total) if total > 0 else mp.ninf


def sums_of(copies, values, masses):
    """Yield the sums of the copies of one variable and the mass of each composition."""
    *first, value = map(Fraction, values)
    if not first:
        yield copies * value, mpf(masses[0]) ** copies
        return
    for count in range(copies + 1):
        mass = mpf(masses[-1]) ** count * math.comb(copies, count)
        for rest, other in sums_of(copies - count, values[:-1], masses[:-1]):
            yield rest + count * value, other * mass


def of_integers(copies, lowest, weights):
    """Return log E[S_+] for values lowest, lowest + 1, ... of integer weights, exactly.

    The generating polynomial is packed into one integer, whose power is that of the polynomial.
    """
    total = sum(weights)
    bits = copies * total.bit_length() + 8
    packed = sum(weight << (bits * j) for j, weight in enumerate(weights)) ** copies
    mean = 0
    for j in range(copies * (len(weights) - 1) + 1):
        mass = packed & ((1 << bits) - 1)
        packed >>= bits
        mean += max(copies * lowest + j, 0) * mass
    with mp.workdps(DIGITS):
        return mp.log(mean) - copies * mp.log(total) if mean else mp.ninf


def assert_holds(bracket, truth, rtol=None):
    """The bracket holds the truth, and is no wider than rtol and the rounding it adds."""
    assert not math.isnan(bracket.lower)
    assert not math.isnan(bracket.upper)
    if truth == mp.ninf:
        assert bracket == Bracket(-math.inf, -math.inf)
        return
    # masses given as doubles sum to 1 but for rounding
    slack = 1e-12
    assert bracket.lower <= truth + slack
    assert bracket.upper >= truth - slack
    if rtol is not None:
        width = rtol + 2.0 * BRACKET_ROUNDING + 1e-14 * abs(float(truth))
        assert bracket.upper - bracket.lower <= width


class TestKnownSums:
    @pytest.mark.parametrize("rtol", [1e-3, 1e-6])
    @pytest.mark.parametrize(
        "groups",
        [
            [(1, (-1.0, 2.0), (0.75, 0.25))],
            [(2, (-1.0, 2.0), (0.75, 0.25))],
            [(300, (-1.0, 1.5), (0.75, 0.25))],
            [(40, (-1.0, 0.0, 3.0), (0.5, 0.375, 0.125))],
            [(40, (-1.0, -0.7, 0.0, 3.0), (0.25, 0.25, 0.375, 0.125))],
            [(25, (-1.0, 2.0), (0.75, 0.25)), (3, (-5.0, 4.0), (0.5, 0.5))],
            [(9, (-2.0, 0.3, 1.0), (0.5, 0.25, 0.25)), (7, (-1.0, 0.9), (0.5, 0.5))],
            [(6, (-1.0, 1.0), (0.5, 0.5)), (5, (-3.0, 2.0), (0.5, 0.5)), (4, (-9.0, 5.0),
             (0.75, 0.25))],
            [(30, (-1.0, 2.0), (0.75, 0.25)), (4, (-3.0,), (1.0,))],
        ],
        ids=str,
    )  # fmt: skip
    def test_enumerated(self, groups, rtol):
        assert_holds(bracket_of(*groups, rtol=rtol), enumerated(*groups), rtol)

    @pytest.mark.parametrize("rtol", [1e-3, 1e-6])
    @pytest.mark.parametrize("copies", [1, 10, 400])
    def test_commensurate_values(self, copies, rtol):
        """All values are multiples of one step, where a grid sits on them or just beside."""
        truth = of_integers(copies, -1, [9, 0, 1])
        exact = [(copies, (-1.0, 1.0), (0.9, 0.1))]
        assert_holds(bracket_of(*exact, rtol=rtol), truth, rtol)

    @pytest.mark.parametrize("rtol", [1e-3, 1e-4])
    @pytest.mark.parametrize("shift", [0, 2, 5])
    def test_many_values(self, shift, rtol):
        """21 values: too many to enumerate, so that the grid has to do it."""
        weights = [1 + (7 * j) % 13 for j in range(21)]
        total = sum(weights)
        lowest = -10 - shift
        values = [float(lowest + j) for j in range(21)]
        group = (60, values, [w / total for w in weights])
        assert math.isnan(log_nested([t.merged() for t in terms_of(group)], 0.1, 1.0, 3e7))
        assert_holds(bracket_of(group, rtol=rtol), of_integers(60, lowest, weights), rtol)

    def test_many_rare_values(self):
        """As of a large alphabet: one value nearly sure, twenty that hardly occur."""
        weights = [2**24, *([0] * 40), *(1 + j for j in range(20))]
        total = sum(weights)
        values = [float(j - 1) for j, w in enumerate(weights) if w]
        group = (12, values, [w / total for w in weights if w])
        assert_holds(bracket_of(group), of_integers(12, -1, weights), 1e-3)

    @pytest.mark.parametrize("exponent", [-280, -100, -40, -20, -5])
    def test_tiny_probabilities(self, exponent):
        mass = 10.0**exponent
        for copies in (1, 3, 20):
            group = (copies, (-1.0, 0.5 + copies), (1.0 - mass, mass))
            assert_holds(bracket_of(group), enumerated(group), 1e-3)

    def test_a_mean_of_1e_minus_200(self):
        group = (200, (-1.0, 0.25, 2.0), (0.9375, 0.046875, 0.015625))
        truth = enumerated(group)
        assert truth < -100
        assert_holds(bracket_of(group), truth, 1e-3)
        steep = (100, (-1.0, 1.0), (1.0 - 2.0**-20, 2.0**-20))
        assert enumerated(steep) < -460
        assert_holds(bracket_of(steep), enumerated(steep), 1e-3)

    @pytest.mark.parametrize(
        "group",
        [
            (100, (0.59375, 0.046875), (0.984375, 0.015625)),
            (60, (0.0, 2.0), (0.0001912739729962474, 0.9998087260270038)),
            (100, (-1.7273207373830306, 0.8756571088851453), (1.0, 7.058853778198644e-31)),
        ],
        ids=str,
    )
    def test_hardly_ever_or_nearly_always_positive(self, group):
        assert_holds(bracket_of(group), enumerated(group), 1e-3)


class TestEnds:
    def test_one_value(self):
        for value, copies in ((2.0, 7), (1e-9, 3), (1e100, 2)):
            bracket = bracket_of((copies, (value,), (1.0,)))
            assert_holds(bracket, mp.log(copies * mpf(value)), 1e-9)
        for value in (-2.0, 0.0):
            assert bracket_of((5, (value,), (1.0,))) == Bracket(-math.inf, -math.inf)

    def test_never_positive(self):
        for groups in (
            [(9, (-1.0, 0.0), (0.5, 0.5))],
            [(9, (-1.0, -0.5), (0.5, 0.5))],
            [(2, (-3.0, 1.0), (0.5, 0.5)), (1, (-2.0,), (1.0,))],
        ):
            assert bracket_of(*groups) == Bracket(-math.inf, -math.inf)

    def test_impossible_values_do_not_matter(self):
        group = (9, (-1.0, 2.0, 1e9), (0.75, 0.25, 0.0))
        assert_holds(bracket_of(group), enumerated((9, (-1.0, 2.0), (0.75, 0.25))), 1e-3)

    def test_repeated_values_are_one(self):
        split = (9, (-1.0, 2.0, -1.0, 2.0), (0.5, 0.125, 0.25, 0.125))
        assert_holds(bracket_of(split), enumerated((9, (-1.0, 2.0), (0.75, 0.25))), 1e-3)

    def test_positive_only_where_all_copies_are(self):
        group = (12, (-11.5, 1.0), (0.5, 0.5))
        assert_holds(bracket_of(group), enumerated(group), 1e-3)


class TestStructure:
    GROUP = (80, (-1.0, 0.3, 1.7), (0.6875, 0.1875, 0.125))

    def test_two_methods_hold_one_number(self):
        terms = [t.merged() for t in terms_of(self.GROUP)]
        s = tilt_to_zero(terms)
        nested = Bracket(log_nested(terms, s, -1.0, 3e7), log_nested(terms, s, 1.0, 3e7))
        grid = refined_on_grid(terms, terms, s, 1e-5)
        truth = enumerated(self.GROUP)
        assert_holds(nested, truth, 0.0)
        assert_holds(grid, truth, 1e-5)

    @pytest.mark.parametrize("rtol", [0.5, 0.1, 1e-2, 1e-4])
    def test_the_grid_is_as_fine_as_asked(self, rtol):
        terms = [t.merged() for t in terms_of(self.GROUP)]
        assert_holds(
            refined_on_grid(terms, terms, tilt_to_zero(terms), rtol), enumerated(self.GROUP), rtol
        )

    @pytest.mark.parametrize("scale", [-400, -40, 60, 400])
    def test_scale(self, scale):
        copies, values, masses = self.GROUP
        scaled = (copies, [math.ldexp(v, scale) for v in values], masses)
        with mp.workdps(DIGITS):
            truth = enumerated(self.GROUP) + scale * mp.log(2)
        assert_holds(bracket_of(scaled), truth, 1e-3)

    def test_groups_of_one_law_are_one_group(self):
        copies, values, masses = self.GROUP
        parts = [(n, values, masses) for n in (50, 29, 1)]
        assert sum(n for n, _, _ in parts) == copies
        assert_holds(bracket_of(*parts), enumerated(self.GROUP), 1e-3)

    def test_the_order_of_groups_and_values_does_not_matter(self):
        first = (25, (-1.0, 2.0), (0.75, 0.25))
        second = (3, (-5.0, 4.0, 1.0), (0.5, 0.25, 0.25))
        swapped = ((3, (1.0, -5.0, 4.0), (0.25, 0.5, 0.25)), (25, (2.0, -1.0), (0.25, 0.75)))
        truth = enumerated(first, second)
        assert_holds(bracket_of(first, second), truth, 1e-3)
        assert_holds(bracket_of(*swapped), truth, 1e-3)

    def test_low_and_high_enclose_what_is_between(self):
        copies, values, masses = self.GROUP
        truth = enumerated(self.GROUP)
        for spread in (1e-9, 1e-3):
            low, high = (
                terms_of((copies, [v + sign * spread for v in values], masses))
                for sign in (-1.0, 1.0)
            )
            bracket = log_mean_positive_part(low, high, 1e-6)
            assert_holds(bracket, truth)
            assert bracket.upper - bracket.lower >= spread

    def test_the_exponential_bound_is_above(self):
        for group in (self.GROUP, (1, (-1.0, 2.0), (0.75, 0.25)), (300, (-1.0, 2.0), (0.9, 0.1))):
            bound = log_smallest_exponential_bound(terms_of(group))
            truth = float(enumerated(group))
            assert truth <= bound <= truth + 8.0
        assert log_smallest_exponential_bound(terms_of((3, (-1.0, 0.0), (0.5, 0.5)))) == -math.inf


# ---- Adversarial sums -------------------------------------------------------------------------


@st.composite
def groups_of(draw, sizes, spread):
    """One to three groups; values over many orders of magnitude, some 0, some in a ratio of 2."""
    found, work = [], 1
    for _ in range(draw(st.integers(1, 3))):
        d = draw(st.integers(1, 4))
        copies = draw(st.sampled_from(sizes))
        work *= math.comb(copies + d - 1, d - 1)
        value = st.one_of(
            st.floats(-spread, spread).map(lambda e: 10.0**e),
            st.floats(-spread, spread).map(lambda e: -(10.0**e)),
            st.sampled_from([-2.0, -1.0, 0.0, 0.5, 1.0, 2.0]),
        )
        values = draw(st.lists(value, min_size=d, max_size=d))
        weights = draw(st.lists(st.floats(-12.0, 0.0), min_size=d, max_size=d))
        masses = np.array([10.0**w for w in weights])
        found.append((copies, values, (masses / masses.sum()).tolist()))
    assume(work <= 4000)
    return found


@given(groups_of([1, 2, 3, 7, 20, 60], 1.0), st.sampled_from([1e-3, 1e-6]))
@settings(max_examples=80)
def test_any_sum_of_moderate_spread(groups, rtol):
    mean = sum(
        n * math.fsum(v * p for v, p in zip(values, masses, strict=True))
        for n, values, masses in groups
    )
    bracket = bracket_of(*groups, rtol=rtol)
    # a mean far above 0 is not what the tilt is for
    assert_holds(bracket, enumerated(*groups), rtol if mean <= 0.0 else None)
