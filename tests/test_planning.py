"""The largest local budget: safe, tight, and found wherever it is."""

import math

import pytest

import fastshuffle as fs


def worst_case(n):
    return lambda epsilon0: fs.worst_case_profile(fs.binary_randomized_response(epsilon0), n)


def clones(n):
    return lambda epsilon0: fs.clone_profile(epsilon0, n)


def gaussian(n):
    """At one dataset, closed and fast."""

    def profile_of(epsilon0):
        rr = fs.binary_randomized_response(epsilon0)
        return fs.gaussian_profile(fs.ShuffleExperiment(rr, n, k=0))

    return profile_of


@pytest.mark.parametrize(
    ("family", "epsilon", "delta"),
    [
        (worst_case(10**4), 0.1, 1e-8),
        (worst_case(10**4), 1.0, 1e-6),
        (worst_case(10**9), 1.0, 1e-10),  # beyond 10
        (worst_case(100), 1e-3, 1e-9),  # below the first step but above epsilon
        (clones(10**4), 0.1, 1e-8),
        (gaussian(10**5), 0.05, 1e-200),
    ],
)
def test_safe_and_tight(family, epsilon, delta):
    local = fs.largest_epsilon0(family, epsilon=epsilon, delta=delta)
    assert local >= epsilon
    assert family(local).delta(epsilon) <= delta
    # the profile itself is certified to a relative 1e-6, its slope in epsilon0 well above 1
    assert family(local * (1.0 + 3e-6)).delta(epsilon) > delta


def test_one_user_has_the_local_budget():
    assert fs.largest_epsilon0(worst_case(1), epsilon=0.7, delta=0.0) == 0.7


def test_nothing_will_do_at_epsilon_and_delta_zero():
    assert fs.largest_epsilon0(worst_case(1), epsilon=0.0, delta=0.0) == 0.0


def test_a_delta_that_underflows_is_not_zero():
    """Just above 0.7 delta(0.7) is far below the smallest double; only up to 0.7 is it 0."""
    family = worst_case(10**6)
    assert family(0.8).delta(0.7) == 0.0 > family(0.8).log_delta(0.7) > -math.inf
    assert fs.largest_epsilon0(family, epsilon=0.7, delta=0.0) == 0.7
    assert fs.largest_epsilon0(family, epsilon=0.7, delta=1e-300) > 1.0


def test_the_binary_limit_at_epsilon_zero():
    """Delta(0) of one user is tanh(epsilon0 / 2)."""
    local = fs.largest_epsilon0(worst_case(1), epsilon=0.0, delta=1e-7, rtol=1e-9)
    assert 2e-7 * (1.0 - 3e-6) <= local <= 2e-7


def test_everything_will_do():
    with pytest.raises(ArithmeticError, match="for a largest one to exist, got 1.0 at"):
        fs.largest_epsilon0(clones(10), epsilon=1.0, delta=1.0)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"epsilon": -1.0}, ValueError, "epsilon must be >= 0 and finite, got -1.0"),
        ({"epsilon": math.inf}, ValueError, "epsilon must be >= 0 and finite, got inf"),
        ({"delta": 2.0}, ValueError, r"delta must be in \[0, 1\], got 2.0"),
        ({"rtol": 0.0}, ValueError, "rtol must be in"),
        ({"profile_of": 3}, TypeError, "profile_of must be callable, got 3"),
        ({"profile_of": lambda _: 3}, TypeError, "must return a PrivacyProfile, got 3"),
    ],
)
def test_arguments_outside_their_domain(arguments, error, words):
    arguments = {"profile_of": clones(10), "epsilon": 1.0, "delta": 1e-6, **arguments}
    with pytest.raises(error, match=words):
        fs.largest_epsilon0(arguments.pop("profile_of"), **arguments)
