"""Expansions of divergences: coefficients, and remainders of the stated order."""

import math
from math import comb

import numpy as np
import pytest
from mpmath import mp, mpf
from numpy.testing import assert_allclose

import fastshuffle as fs
from tests.tolerances import DOZEN_ROUNDINGS

W = fs.Randomizer([[0.8, 0.2], [0.4, 0.6]])
WIDE = fs.Randomizer([[0.5, 0.3, 0.2], [0.2, 0.35, 0.45]])
N = 2000


def exact_values(experiment):
    """Return the exact divergences that have an expansion, by name and direction."""
    profile = fs.exact_profile(experiment)
    values = {("jensen_shannon", "forward"): profile.jensen_shannon()}
    for direction in ("forward", "reverse"):
        values["kl", direction] = profile.kl(direction=direction)
        values["chi_square", direction] = profile.chi_square(direction=direction)
        for order in (0.5, 2.0, 3.5):
            values[order, direction] = profile.renyi(order, direction=direction)
    # 1 - sum sqrt(P Q), from the Renyi divergence of order 1/2
    values["hellinger", "forward"] = -math.expm1(-0.5 * values[0.5, "forward"])
    return values


def expansion(name, experiment, direction):
    if name == "jensen_shannon":
        return fs.jensen_shannon_expansion(experiment)
    if name == "hellinger":
        return fs.hellinger_expansion(experiment)
    if name == "kl":
        return fs.kl_expansion(experiment, direction=direction)
    if name == "chi_square":
        return fs.chi_square_expansion(experiment, direction=direction)
    return fs.renyi_expansion(experiment, name, direction=direction)


def relative_remainders(n, k):
    """Return the remainders as fractions of the leading terms."""
    experiment = fs.ShuffleExperiment(W, n, k=k)
    return {
        key: (value - expansion(key[0], experiment, key[1]).value)
        / expansion(key[0], experiment, key[1]).terms[0]
        for key, value in exact_values(experiment).items()
    }


@pytest.mark.parametrize("zeros_or_ones", [0, 1])
def test_second_order_where_the_others_agree(zeros_or_ones):
    """The remainder falls as n**-3: relative to the leading term, by 4 from n to 2 n."""
    once, twice = (relative_remainders(n, zeros_or_ones * (n - 1)) for n in (N, 2 * N))
    exact = ("chi_square", ("forward", "reverse")[zeros_or_ones])
    for key, remainder in once.items():
        if key == exact:
            assert abs(remainder) < 1e-13
        else:
            assert 3.8 < remainder / twice[key] < 4.2, key


def test_leading_order_inside():
    """The remainder falls as n**-2: relative to the leading term, by 2 from n to 2 n."""
    once, twice = (relative_remainders(n, 3 * n // 10) for n in (N, 2 * N))
    for key, remainder in once.items():
        assert 1.9 < remainder / twice[key] < 2.1, key
        assert abs(remainder) < 10 / N


def test_the_corrected_coefficient():
    expansion = fs.jensen_shannon_expansion(fs.ShuffleExperiment(W, 1000, k=0))
    assert_allclose(expansion.terms, (1.0 / 8000, 0.015625e-6), rtol=DOZEN_ROUNDINGS, atol=0)
    assert expansion.remainder == "O(n^-3)"
    # chi2 = 1, mu3 = 1.5
    values = {n: fs.exact_profile(fs.ShuffleExperiment(W, n, k=0)) for n in (10**4, 10**5)}
    for n, profile in values.items():
        second = (profile.jensen_shannon() - 0.125 / n) * n * n
        assert abs(second - 0.015625) < 20.0 / n + 1e-14 * n


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_three_outputs(direction):
    """Against the sum over all histograms, with the ratio as a mean over the messages."""

    def f(t):  # neither symmetric nor a divergence of its own
        return mp.exp(2 * (t - 1)) if direction == "forward" else t * mp.exp(2 * (1 / t - 1))

    base, moved = WIDE.matrix.tolist()
    ratios = [mpf(b) / mpf(a) for a, b in zip(base, moved, strict=True)]

    def divergence(n):
        powers = [[mpf(p) ** i for i in range(n + 1)] for p in base]
        return mp.fsum(
            comb(n, i)
            * comb(n - i, j)
            * (powers[0][i] * powers[1][j] * powers[2][n - i - j])
            * (f((i * ratios[0] + j * ratios[1] + (n - i - j) * ratios[2]) / n) - 1)
            for i in range(n + 1)
            for j in range(n - i + 1)
        )

    def remainder(n):
        experiment = fs.ShuffleExperiment(WIDE, n, k=0)
        expansion = fs.f_divergence_expansion(experiment, [4, 8, 16], direction=direction)
        return float(divergence(n) - expansion.value)

    assert 6.5 < remainder(30) / remainder(60) < 9.5


def test_both_is_the_larger_direction():
    experiment = fs.ShuffleExperiment(W, 50, k=0)
    forward, reverse, both = (
        fs.kl_expansion(experiment, direction=d).value for d in ("forward", "reverse", "both")
    )
    assert forward != reverse
    assert both == max(forward, reverse)


def test_conjugate_twice():
    """Exchanging the pair exchanges the directions."""
    there = fs.ShuffleExperiment(WIDE, 50, others={0: 49})
    back = fs.ShuffleExperiment(WIDE, 50, others={0: 49}, pair=(1, 0))
    for direction, other in (("forward", "reverse"), ("reverse", "forward")):
        assert_allclose(
            fs.renyi_expansion(there, 1.7, direction=direction).terms,
            fs.renyi_expansion(back, 1.7, direction=other).terms,
            rtol=1e-13,
            atol=0,
        )


def test_leading_terms_of_any_composition():
    krr = fs.k_randomized_response(1.0, k=5)
    experiment = fs.ShuffleExperiment(krr, 1000, others={2: 999})
    constant = fs.worst_fisher_constant(krr, pair=(0, 1)).constant
    leading = fs.f_divergence_expansion(experiment, [3.0])
    assert_allclose(leading.value, 1.5 * constant / 1000, rtol=DOZEN_ROUNDINGS, atol=0)
    assert leading.remainder == "O(n^-2)"
    second = fs.f_divergence_expansion(experiment, np.array([3.0, 1.0, 1.0]))
    assert_allclose(second.terms, leading.terms, rtol=DOZEN_ROUNDINGS, atol=0)


def test_says_what_it_is():
    expansion = fs.kl_expansion(fs.ShuffleExperiment(W, 100, k=0))
    assert expansion.validity is fs.Validity.APPROXIMATION
    assert "APPROXIMATION" in str(expansion)
    assert float(expansion) == expansion.value == math.fsum(expansion.terms)


def test_refusals():
    experiment = fs.ShuffleExperiment(W, 100, k=0)
    with pytest.raises(ValueError, match="derivatives must be one or three numbers"):
        fs.f_divergence_expansion(experiment, [1.0, 2.0])
    with pytest.raises(ValueError, match=r"derivatives\[0\] must be finite, got nan"):
        fs.f_divergence_expansion(experiment, [math.nan])
    with pytest.raises(ValueError, match="order must be > 0 and finite, got inf"):
        fs.renyi_expansion(experiment, math.inf)
    with pytest.raises(ValueError, match="direction must be"):
        fs.kl_expansion(experiment, direction="up")
    with pytest.raises(fs.UnsupportedSettingError, match="n must be >= 2"):
        fs.kl_expansion(fs.ShuffleExperiment(W, 1, k=0))
    partial = fs.Randomizer([[1.0, 0.0], [0.5, 0.5]])
    for others in ({0: 9}, {0: 9, 1: 0}):
        with pytest.raises(fs.UnsupportedSettingError, match="Fisher constant must be finite"):
            fs.kl_expansion(fs.ShuffleExperiment(partial, 10, others=others))
    with pytest.raises(TypeError, match="experiment must be a ShuffleExperiment"):
        fs.jensen_shannon_expansion(W)
