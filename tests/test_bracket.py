"""Curves that are known between two numbers: their inverse, and lines below a trade-off."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastshuffle import DeltaWarning, Validity
from fastshuffle._positive_part import Bracket
from fastshuffle._supporting_lines import highest_supporting_line
from fastshuffle.bracket import BracketProfile, Curve
from tests.tolerances import FEW_ROUNDINGS

RTOL = 1e-3


def gaussian_log_delta(mu):
    """Return the profile of a unit shift in units of 1 / mu, smooth and without an end."""

    def log_delta(epsilon):
        upper = math.erfc((epsilon / mu - 0.5 * mu) / math.sqrt(2.0)) / 2.0
        lower = math.erfc((epsilon / mu + 0.5 * mu) / math.sqrt(2.0)) / 2.0
        value = upper - math.exp(epsilon) * lower if epsilon < 600.0 else 0.0
        return math.log(value) if value > 0.0 else -math.inf

    return log_delta


def pure_log_delta(loss):
    """Return the profile of binary randomized response of one user."""

    def log_delta(epsilon):
        value = -math.expm1(epsilon - loss) / (1.0 + math.exp(-loss))
        return math.log(value) if value > 0.0 else -math.inf

    return log_delta


def approximate_log_delta(loss, clear):
    """Return the profile of a pair with a mass that only one of the laws has."""

    def log_delta(epsilon):
        inside = (1.0 - clear) * max(0.0, -math.expm1(epsilon - loss))
        return math.log(clear + inside)

    return log_delta


def curve_of(log_delta, loss, noise=0.0, rtol=RTOL):
    """Return the curve with an upper end that wavers by up to ``noise``, as a bracket's does."""

    def log_bracket(epsilon):
        value = log_delta(epsilon)
        wave = 0.5 * noise * (1.0 + math.sin(1e4 * min(epsilon, 1e6)))
        return Bracket(value - noise, value + wave)

    return Curve(log_bracket, loss, rtol)


CURVES = {
    "gaussian": (gaussian_log_delta(0.7), math.inf),
    "narrow": (gaussian_log_delta(1e-4), math.inf),
    "wide": (gaussian_log_delta(6.0), math.inf),
    "pure": (pure_log_delta(2.0), 2.0),
    "nearly nothing": (pure_log_delta(1e-9), 1e-9),
    "large": (pure_log_delta(500.0), 500.0),
    "clear": (approximate_log_delta(3.0, 1e-6), math.inf),
}


@pytest.mark.parametrize("noise", [0.0, 0.9 * RTOL])
@pytest.mark.parametrize("name", CURVES)
class TestInverse:
    def test_it_is_safe_and_tight(self, name, noise):
        log_delta, loss = CURVES[name]
        curve = curve_of(log_delta, loss, noise)
        start = log_delta(0.0)
        for drop in (1e-6, 0.1, 1.0, 5.0, 20.0):
            target = start - drop
            epsilon = curve.epsilon(target)
            assert 0.0 <= epsilon <= loss
            if epsilon == math.inf:
                assert curve.at(math.inf).upper > target
                continue
            assert curve.at(epsilon).upper <= target
            # a little lower, by the tolerance of the search, the curve without noise is above
            before = epsilon * (1.0 - 1e-9)
            assert epsilon == 0.0 or log_delta(before) >= target - 1.2 * RTOL - noise

    def test_ends(self, name, noise):
        log_delta, loss = CURVES[name]
        curve = curve_of(log_delta, loss, noise)
        assert curve.epsilon(-math.inf) == loss
        assert curve.epsilon(log_delta(0.0) + RTOL) == 0.0
        if loss < math.inf:
            for epsilon in (loss, 2.0 * loss, math.inf):
                assert curve.at(epsilon) == Bracket(-math.inf, -math.inf)


def test_a_mass_that_no_epsilon_removes():
    log_delta = approximate_log_delta(3.0, 1e-6)
    curve = curve_of(log_delta, math.inf)
    assert curve.epsilon(math.log(0.9e-6)) == math.inf
    epsilon = curve.epsilon(math.log(1.1e-6))
    assert curve.at(epsilon).upper <= math.log(1.1e-6)
    assert epsilon <= 3.0


@given(st.floats(0.01, 5.0), st.floats(-200.0, -0.01))
@settings(max_examples=60)
def test_inverse_of_any_gaussian(mu, drop):
    log_delta = gaussian_log_delta(mu)
    curve = curve_of(log_delta, math.inf)
    target = log_delta(0.0) + max(drop, -25.0)
    epsilon = curve.epsilon(target)
    assert curve.at(epsilon).upper <= target
    assert log_delta(epsilon * (1.0 - 1e-9)) >= target - 1.2 * RTOL


class TestSupportingLines:
    ALPHAS = (0.0, 1e-9, 0.01, 0.2, 0.5, 0.9, 1.0)

    @pytest.mark.parametrize("loss", [1e-3, 1.0, 8.0])
    def test_randomized_response(self, loss):
        """Its trade-off function has two lines, through (flip, flip)."""

        def delta(epsilon):
            return max(0.0, math.exp(pure_log_delta(loss)(epsilon)))

        for alpha in self.ALPHAS:
            truth = max(1.0 - math.exp(loss) * alpha, math.exp(-loss) * (1.0 - alpha))
            value = highest_supporting_line(alpha, delta, delta, loss)
            assert value <= truth + FEW_ROUNDINGS
            assert value >= truth - 1e-6

    @pytest.mark.parametrize("mu", [0.01, 1.0, 4.0])
    def test_gaussian(self, mu):
        def delta(epsilon):
            return math.exp(gaussian_log_delta(mu)(epsilon))

        for alpha in (0.01, 0.2, 0.5, 0.9):
            # 1 - Phi(z + mu) with alpha = Phi(-z)
            low, high = -10.0, 10.0
            for _ in range(200):
                middle = 0.5 * (low + high)
                below = math.erfc(middle / math.sqrt(2.0)) / 2.0 > alpha
                low, high = (middle, high) if below else (low, middle)
            truth = 1.0 - math.erfc((low - mu) / math.sqrt(2.0)) / 2.0
            value = highest_supporting_line(alpha, delta, delta, math.inf)
            assert value <= truth + 1e-14
            assert value >= truth - 1e-6

    def test_two_directions_are_not_exchanged(self):
        """One law has an output that the other lacks: only one kind of error can be 0."""
        clear = 0.25

        def delta(epsilon):
            return math.exp(approximate_log_delta(1e-12, clear)(epsilon))

        def opposite(epsilon):
            return max(0.0, 1.0 - math.exp(epsilon) * (1.0 - clear))

        assert highest_supporting_line(0.0, delta, opposite, math.inf) == pytest.approx(
            1.0 - clear, rel=1e-6
        )
        assert highest_supporting_line(0.0, opposite, delta, math.log(4.0 / 3.0)) == pytest.approx(
            1.0, rel=1e-6
        )


def test_the_profile_is_the_larger_direction():
    curves = {
        "forward": curve_of(gaussian_log_delta(0.5), math.inf),
        "reverse": curve_of(gaussian_log_delta(0.6), math.inf),
    }
    profile = BracketProfile(
        curves,
        n=1000,
        validity=Validity.UPPER_BOUND,
        method="of a test",
        source="none",
        setting={},
    )
    epsilons = np.array([0.0, 0.5, 2.0])
    assert profile.delta(epsilons).tolist() == profile.delta(epsilons, direction="reverse").tolist()
    assert (profile.delta(epsilons) > profile.delta(epsilons, direction="forward")).all()
    assert profile.epsilon(1e-5) == profile.epsilon(1e-5, direction="reverse")
    assert profile.epsilon(1e-5) > profile.epsilon(1e-5, direction="forward")
    assert profile.trade_off(0.1) <= profile.trade_off(0.1, direction="forward")
    assert repr(profile) == "<BracketProfile, UPPER_BOUND, n = 1000: of a test>"


def test_a_bound_above_one_is_one():
    curve = Curve(lambda epsilon: Bracket(-1.0 - epsilon, 3.0 - epsilon), math.inf, RTOL)
    profile = BracketProfile(
        {"forward": curve, "reverse": curve},
        n=10**6,
        validity=Validity.UPPER_BOUND,
        method="of a test",
        source="none",
        setting={},
    )
    assert profile.delta([0.0, 2.0, 3.5]).tolist() == [1.0, 1.0, math.exp(-0.5)]
    assert profile.bounds(0.0) == (math.exp(-1.0), 1.0)
    with pytest.warns(DeltaWarning):
        assert profile.epsilon(1.0) == 0.0
    epsilon = profile.epsilon(1e-7)
    assert profile.delta(epsilon) <= 1e-7
