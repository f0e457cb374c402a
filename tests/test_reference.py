"""The references agree with each other, with the stored values, and with twice the digits."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from mpmath import mp as mpmath
from mpmath import mpf

from validation.reference import exact
from validation.reference import mp as reference

STORED = json.loads((Path(__file__).parent / "data" / "finite_n_binary.json").read_text())
AGREED_DIGITS = 45
STORED_DIGITS = 28
MIXED = [(170, 0.2), (29, 0.6)]


def assert_agree(actual: Any, expected: Any, digits: int = AGREED_DIGITS) -> None:
    """Relative agreement; an expected 0 or inf has to be met exactly, and a nan fails."""
    with mpmath.workdps(200):
        value, truth = mpmath.convert(actual), mpmath.convert(expected)
        if mpmath.isinf(truth):
            assert value == truth
        else:
            assert abs(value - truth) <= abs(truth) * mpf(10) ** -digits


def stored_id(entry: dict[str, Any]) -> str:
    """Name a stored entry by its experiment."""
    return f"n={entry['n']}-k={entry['k']}-p0={entry['p0']:.3g}-p1={entry['p1']:.3g}"


def upper_tail_euler_maclaurin(count: int, p: float, x: int) -> mpf:
    """Binomial tail from the integral of the gamma-function mass, and its corrections at x.

    Shares nothing with the inversion integral. The Taylor series of the mass at x is the
    exponential of the series of its logarithm, whose coefficients are polygammas.
    """
    with mpmath.workdps(60 + 3 * len(str(count)) + 40):
        odds = mpf(p) / (1 - mpf(p))

        def log_mass(y: mpf) -> mpf:
            log_comb = (
                mpmath.loggamma(count + 1) - mpmath.loggamma(y + 1) - mpmath.loggamma(count - y + 1)
            )
            return log_comb + y * mpmath.log(odds) + count * mpmath.log(1 - mpf(p))

        terms = 24
        slopes = [
            -mpmath.polygamma(k - 1, x + 1) - (-1) ** k * mpmath.polygamma(k - 1, count - x + 1)
            for k in range(1, 2 * terms)
        ]
        slopes[0] += mpmath.log(odds)
        # k times the k-th coefficient of the log series is slope / (k - 1)!.
        scaled = [slope / mpmath.factorial(k) for k, slope in enumerate(slopes)]
        taylor = [mpmath.exp(log_mass(mpf(x)))]
        for m in range(1, 2 * terms):
            taylor.append(mpmath.fdot(zip(scaled[:m], reversed(taylor), strict=True)) / m)

        sigma = mpmath.sqrt(count * mpf(p) * (1 - mpf(p)))
        points = [x + 2 * j * sigma for j in range(12)]
        integral = mpmath.quad(
            lambda y: mpmath.exp(log_mass(y)), points, method="gauss-legendre", maxdegree=6
        )
        corrections = mpmath.fsum(
            mpmath.bernoulli(2 * k) / (2 * k) * taylor[2 * k - 1] for k in range(1, terms + 1)
        )
        return integral + taylor[0] / 2 - corrections


class TestExact:
    """Enumeration against itself and against the direct high-precision sums."""

    ROWS = ((Fraction(4, 5), Fraction(1, 5)), (Fraction(2, 7), Fraction(5, 7)))

    @pytest.mark.parametrize("ones", range(6))
    def test_histograms_are_binomial_groups(self, ones: int) -> None:
        q, p = exact.histogram_pair(self.ROWS, {0: 5 - ones, 1: ones}, (0, 1))
        groups = [(5 - ones, Fraction(1, 5)), (ones, Fraction(5, 7))]
        q_counts, p_counts = exact.binary_pair(groups, Fraction(1, 5), Fraction(5, 7))
        assert [q[6 - x, x] for x in range(7)] == q_counts
        assert [p[6 - x, x] for x in range(7)] == p_counts

    @pytest.mark.parametrize("n", range(1, 7))
    @pytest.mark.parametrize("p_a", [Fraction(0), Fraction(1, 5), Fraction(8, 9)])
    def test_mp_agrees(self, n: int, p_a: Fraction) -> None:
        p_b = Fraction(5, 7)
        groups = [(n - 1 - n // 2, p_a), (n // 2, p_b)]
        q, p = exact.binary_pair(groups, p_a, p_b)
        assert_agree(reference.total_variation(groups, p_a, p_b), exact.total_variation(p, q))
        for ratio in (Fraction(1), Fraction(21, 20), Fraction(19, 10), Fraction(9)):
            with mpmath.workdps(100):
                epsilon = mpmath.log(mpf(ratio.numerator) / ratio.denominator)
            forward = exact.hockey_stick(p, q, ratio)
            reverse = exact.hockey_stick(q, p, ratio)
            assert_agree(reference.delta(groups, p_a, p_b, epsilon, "forward"), forward)
            assert_agree(reference.delta(groups, p_a, p_b, epsilon, "reverse"), reverse)
        for alpha in (Fraction(0), Fraction(1, 50), Fraction(1, 2)):
            beta = exact.trade_off(p, q, alpha)
            assert_agree(reference.trade_off(groups, p_a, p_b, alpha), beta)

    def test_worst_composition(self) -> None:
        rows = [*self.ROWS, (Fraction(1, 2), Fraction(1, 2))]
        ratio = Fraction(11, 10)
        value, dataset = exact.worst_composition(rows, 4, ratio)
        q, p = exact.histogram_pair(rows, dataset.others, dataset.pair)
        assert value == exact.hockey_stick(p, q, ratio)
        for others in ({0: 3}, {1: 3}, {2: 3}, {0: 1, 1: 1, 2: 1}):
            for pair in ((0, 1), (1, 0), (2, 0)):
                q, p = exact.histogram_pair(rows, others, pair)
                assert exact.hockey_stick(p, q, ratio) <= value

    def test_more_than_two_outputs(self) -> None:
        third = Fraction(1, 3)
        rows = ((third, third, third), (Fraction(1, 2), Fraction(1, 2), Fraction(0)))
        value, dataset = exact.worst_composition(rows, 3, Fraction(2))
        q, p = exact.histogram_pair(rows, dataset.others, dataset.pair)
        assert sum(p.values()) == sum(q.values()) == 1
        assert value == exact.hockey_stick(p, q, Fraction(2)) > 0


@pytest.mark.parametrize("entry", STORED["binary"], ids=stored_id)
def test_stored_values(entry: dict[str, Any]) -> None:
    """Every stored value, by the direct sums."""
    p0, p1 = entry["p0"], entry["p1"]
    pair = ([(entry["n"] - 1 - entry["k"], p0), (entry["k"], p1)], p0, p1)
    stored = {
        "delta_forward": lambda epsilon: reference.delta(*pair, epsilon, "forward"),
        "delta_reverse": lambda epsilon: reference.delta(*pair, epsilon, "reverse"),
        "epsilon": lambda delta: reference.epsilon(*pair, delta),
        "beta": lambda alpha: reference.trade_off(*pair, alpha),
        "renyi_forward": lambda order: reference.renyi(*pair, order),
        "jsd": lambda: reference.jensen_shannon(*pair),
        "kl_forward": lambda: reference.kl(*pair),
        "kl_reverse": lambda: reference.kl(*pair, "reverse"),
        "tv": lambda: reference.total_variation(*pair),
    }
    assert set(entry) == {"n", "k", "p0", "p1", *stored}
    for name, function in stored.items():
        values = entry[name]
        for *argument, expected in values if isinstance(values, list) else [[values]]:
            assert_agree(function(*argument), expected, STORED_DIGITS)


class TestLargeAgreesWithDirect:
    """The two families on experiments within reach of both."""

    @pytest.mark.parametrize(
        ("groups", "points"),
        [
            ([(49, 0.2)], (0, 1, 10, 30, 49)),
            ([(1999, 0.3)], (1, 500, 600, 601, 1500)),
            (MIXED, (0, 20, 51, 52, 150, 199)),
            ([(300, 1e-6), (3, 1.0), (5, 0.0)], (2, 3, 4, 6)),
            ([(60, reference.Complement(1e-40)), (20, 1e-30)], (58, 60, 61)),
        ],
    )
    def test_mass_and_tails(self, groups: list[tuple[int, Any]], points: tuple[int, ...]) -> None:
        for x in points:
            assert_agree(reference.mass_large(groups, x), reference.mass(groups, x))
            assert_agree(reference.upper_tail_large(groups, x), reference.upper_tail(groups, x))
            assert_agree(reference.lower_tail_large(groups, x), reference.lower_tail(groups, x))

    @pytest.mark.parametrize(
        ("groups", "p_a", "p_b"),
        [
            ([(499, 0.2)], 0.2, 0.5),
            ([(199, 0.5)], 0.5, 0.2),
            ([(99, 1e-3)], 1e-3, 0.999),
            ([(30, 0.0), (19, 0.3)], 0.0, 0.3),
        ],
    )
    @pytest.mark.parametrize("direction", ["forward", "reverse"])
    def test_delta_and_epsilon(
        self, groups: list[tuple[int, float]], p_a: float, p_b: float, direction: Any
    ) -> None:
        for epsilon in (0, 0.1, 3, mpmath.inf):
            expected = reference.delta(groups, p_a, p_b, epsilon, direction)
            actual = reference.delta_large(groups, p_a, p_b, epsilon, direction)
            assert_agree(actual, expected)
        for delta in (0.5, 1e-9, 0):
            expected = reference.epsilon(groups, p_a, p_b, delta, direction)
            actual = reference.epsilon_large(groups, p_a, p_b, delta, direction)
            assert_agree(actual, expected)

    def test_delta_of_several_groups(self) -> None:
        pair = (MIXED, 0.2, 0.6)
        assert_agree(reference.delta_large(*pair, 0.1), reference.delta(*pair, 0.1))
        assert_agree(reference.log_delta_large(*pair, 0.7), reference.log_delta(*pair, 0.7))

    @pytest.mark.parametrize("direction", ["forward", "reverse"])
    def test_divergences_of_a_narrow_law(self, direction: Any) -> None:
        pair = ([(400, 1e-3)], 1e-3, 0.9)
        assert_agree(reference.kl_large(*pair, direction), reference.kl(*pair, direction))
        expected = reference.chi_square(*pair, direction)
        assert_agree(reference.chi_square_large(*pair, direction), expected)
        for order in (0.5, 2, 30):
            expected = reference.renyi(*pair, order, direction)
            assert_agree(reference.renyi_large(*pair, order, direction), expected)
        assert_agree(reference.jensen_shannon_large(*pair), reference.jensen_shannon(*pair))
        expected = reference.total_variation(*pair)
        assert_agree(reference.total_variation_large(*pair), expected)

    def test_divergences_by_strides(self) -> None:
        # A standard deviation just above 40: one outcome in 10 is visited.
        pair = ([(6500, 0.5)], 0.5, 0.1)
        assert_agree(reference.kl_large(*pair), reference.kl(*pair))
        assert_agree(reference.jensen_shannon_large(*pair), reference.jensen_shannon(*pair))
        assert_agree(reference.renyi_large(*pair, 40), reference.renyi(*pair, 40))


class TestTwoMethods:
    """Independent routes to one number where no direct sum is possible."""

    @pytest.mark.parametrize("count", [10**6, 10**9, 10**15])
    def test_binomial(self, count: int) -> None:
        # The same binomial as one group (log-gamma) and as two (inversion integral).
        split = [(count // 3, 0.2), (count - count // 3, 0.2)]
        sigma = int(0.4 * count**0.5)
        mean = count // 5
        for x in (mean - 3 * sigma, count // 4, count - 2):
            whole = reference.mass_large([(count, 0.2)], x)
            assert_agree(reference.mass_large(split, x), whole)
        for x in (mean + sigma // 2, mean + 9 * sigma):
            expected = upper_tail_euler_maclaurin(count, 0.2, x)
            assert_agree(reference.upper_tail_large([(count, 0.2)], x), expected)

    def test_tails_add_up_to_the_mass(self) -> None:
        groups = [(10**9, 0.2), (10**8, 0.7)]
        x = 2 * 10**8 + 7 * 10**7 + 10**5
        upper = reference.upper_tail_large(groups, x, 80)
        above = reference.upper_tail_large(groups, x + 1, 80)
        with mpmath.workdps(100):
            assert_agree(upper - above, reference.mass_large(groups, x))

    def test_delta_of_a_split_group(self) -> None:
        whole = reference.delta_large([(10**12, 0.2)], 0.2, 0.5, 1e-6, "forward")
        split = [(10**12 - 10**5, 0.2), (10**5, 0.2)]
        assert_agree(reference.delta_large(split, 0.2, 0.5, 1e-6, "forward"), whole)

    def test_round_trip(self) -> None:
        pair = ([(10**15, 0.2)], 0.2, 0.6)
        epsilon = reference.epsilon_large(*pair, 1e-20, "reverse")
        assert_agree(reference.delta_large(*pair, epsilon, "reverse"), 1e-20)


class TestTwiceTheDigits:
    """A value at 60 digits is right to 60 digits when 120 say so."""

    def test_direct(self) -> None:
        for function, argument in (
            (reference.delta, 0.9),
            (reference.epsilon, 1e-9),
            (reference.trade_off, 0.1),
            (reference.renyi, 8),
            (reference.renyi, mpmath.inf),
        ):
            function_of: Any = function
            expected = function_of(MIXED, 0.2, 0.6, argument, digits=120)
            assert_agree(function_of(MIXED, 0.2, 0.6, argument), expected, 60)

    def test_large(self) -> None:
        pair = ([(10**15, 0.2)], 0.2, 0.6)
        for function, argument in (
            (reference.delta_large, 1e-7),
            (reference.log_delta_large, 1e-4),
            (reference.log_delta_large, 0.5),
            (reference.renyi_large, 8),
        ):
            function_of: Any = function
            expected = function_of(*pair, argument, "forward", digits=120)
            assert_agree(function_of(*pair, argument, "forward"), expected, 60)
        assert_agree(reference.kl_large(*pair), reference.kl_large(*pair, digits=120), 60)


def test_complement_is_the_relabelled_probability() -> None:
    """Tiny flip probabilities next to 1 keep full relative precision."""
    near_one, twice = reference.Complement(1e-200), reference.Complement(2e-200)
    for function in (reference.delta, reference.delta_large):
        relabelled = function([(500, near_one)], near_one, twice, 0.1, "forward")
        assert_agree(relabelled, function([(500, 1e-200)], 1e-200, 2e-200, 0.1, "forward"))
        assert relabelled > 0
