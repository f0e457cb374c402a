"""Composition of rounds: growth with the rounds and n, and against the plain ways."""

import numpy as np

import fastshuffle as fs

from . import baselines
from .settings import P0, P1, profile
from .timing import seconds_a_call

_DELTA = 1e-8
_USERS, _ROUNDS = (10**3, 10**5, 10**8, 10**12), (10, 1000, 10**5)


def epsilon(users, rounds):
    """Return the certified epsilon of some rounds, the default."""
    return fs.composed_profile(profile(users, "k = 0"), rounds).epsilon(_DELTA)


def one_order_epsilon(users, rounds):
    """Return the larger epsilon of rounds that are all in one order, as the other ways have it."""
    together = fs.composed_profile(profile(users, "k = 0"), rounds)
    return max(together.epsilon(_DELTA, direction=side) for side in ("forward", "reverse"))


def accounting_epsilon(users, rounds, interval):
    """Return epsilon by dp-accounting, pessimistic, with a given interval of losses."""
    one = baselines.loss_distribution(users, P0, P1, deviations=12, interval=interval)
    return one.self_compose(rounds).get_epsilon_for_delta(_DELTA)


def naive_delta(users, rounds, at):
    """Return delta by convolving, again and again, losses rounded to 1e-4: no bound."""
    x = np.arange(users + 1)
    others = baselines.binomial_masses(users - 1, P0)
    p = (1.0 - P1) * np.append(others, 0.0) + P1 * np.insert(others, 0, 0.0)
    losses = np.log((x / users) * P1 / P0 + (1.0 - x / users) * (1.0 - P1) / (1.0 - P0))
    places = np.rint(losses / 1e-4).astype(int)
    low = places.min()
    one = np.bincount(places - low, p)
    law = one
    for _ in range(rounds - 1):
        law = np.convolve(law, one)
    sums = 1e-4 * (rounds * low + np.arange(law.size))
    return float(law @ np.maximum(-np.expm1(at - sums), 0.0))


class Composed:
    """epsilon at delta = 1e-8 from scratch, the profile of the round included."""

    params = (_USERS, _ROUNDS)
    param_names = ("n", "rounds")

    def setup(self, users, rounds):
        epsilon(users, rounds)

    def time_epsilon(self, users, rounds):
        epsilon(users, rounds)

    def peakmem_epsilon(self, users, rounds):
        epsilon(users, rounds)

    def track_width(self, users, rounds):
        """log(upper / lower) of delta at that epsilon, in one direction."""
        one = fs.composed_profile(profile(users, "k = 0"), rounds)
        lower, upper = one.log_bounds(epsilon(users, rounds), direction="forward")
        return upper - lower


class AgainstPlainWays:
    """How many times faster, and by how much the other's epsilon is above ours."""

    params = ((10**3, 10**5, 10**8), (10, 100), (1e-4, 1e-5))
    param_names = ("n", "rounds", "interval")
    timeout = 120.0

    def track_times_faster_than_accounting(self, users, rounds, interval):
        theirs = seconds_a_call(lambda: accounting_epsilon(users, rounds, interval), repeats=3)
        return theirs / seconds_a_call(lambda: one_order_epsilon(users, rounds), repeats=3)

    def track_excess_of_accounting(self, users, rounds, interval):
        return accounting_epsilon(users, rounds, interval) / one_order_epsilon(users, rounds) - 1.0

    def track_times_faster_than_convolution(self, users, rounds, interval):
        if users > 10**3 or rounds > 10 or interval < 1e-4:
            return float("nan")
        at = one_order_epsilon(users, rounds)
        theirs = seconds_a_call(lambda: naive_delta(users, rounds, at), repeats=3)
        return theirs / seconds_a_call(lambda: one_order_epsilon(users, rounds), repeats=3)
