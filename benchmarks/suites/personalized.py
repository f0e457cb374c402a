"""Personal budgets: 1,000 to 1e6 users, all with different ones, against plain numpy."""

import math

import numpy as np

import fastshuffle as fs

from .timing import seconds_a_call

DELTA = 1e-8
USERS = (10**3, 10**5, 10**6)
# A convolution of n laws grows as n**2.
NAIVE_USERS = (10**3, 10**4)
LOW, HIGH = 0.2, 4.0


def budgets_and_bits(users):
    """Different budgets for all, and their bits."""
    rng = np.random.default_rng(users)
    return rng.uniform(LOW, HIGH, users), rng.integers(0, 2, users)


def known_bits(users):
    """The worst user of one dataset, exactly."""
    budgets, bits = budgets_and_bits(users)
    return lambda: fs.personalized_exact_profile(budgets, bits=bits).epsilon(DELTA)


def all_bits(users):
    """The worst user over all datasets, certified."""
    budgets, _ = budgets_and_bits(users)
    return lambda: fs.personalized_exact_profile(budgets).epsilon(DELTA)


def each_user(users):
    """One epsilon for every user, at one dataset."""
    budgets, bits = budgets_and_bits(users)
    return lambda: fs.personalized_exact_profile(budgets, bits=bits).epsilons(DELTA)


def clones(users):
    """The clones, Poisson-binomial."""
    budgets, _ = budgets_and_bits(users)
    return lambda: fs.personalized_clone_profile(budgets, family="containing").epsilon(DELTA)


def k_ary(users):
    """The bracket of 10-ary randomized response."""
    budgets, _ = budgets_and_bits(users)
    return lambda: fs.personalized_k_rr_profile(budgets, 10).epsilon(DELTA)


METHODS = {
    "known bits": known_bits,
    "all bits": all_bits,
    "each user": each_user,
    "clones": clones,
    "k-ary": k_ary,
}


def count_of_ones(budgets, bits):
    """The law of the number of ones, by one convolution for each user."""
    keep = 1.0 / (1.0 + np.exp(-budgets))
    law = np.zeros(budgets.size + 1)
    law[0] = 1.0
    for i, p in enumerate(np.where(bits == 1, keep, 1.0 - keep).tolist()):
        law[1 : i + 2] = (1.0 - p) * law[1 : i + 2] + p * law[: i + 1]
        law[0] *= 1.0 - p
    return law


def naive_delta(budgets, bits, epsilon):
    """The larger delta of the user with the largest budget, from the two laws in numpy."""
    worst = int(budgets.argmax())
    other = bits.copy()
    other[worst] = 1 - other[worst]
    first, second = count_of_ones(budgets, bits), count_of_ones(budgets, other)
    growth = math.exp(epsilon)
    return max(
        np.maximum(second - growth * first, 0.0).sum(),
        np.maximum(first - growth * second, 0.0).sum(),
    )


class FromScratch:
    """epsilon at delta = 1e-8, the budgets as an array."""

    params = (tuple(METHODS), USERS)
    param_names = ("method", "n")
    timeout = 120

    def setup(self, method, users):
        self.call = METHODS[method](users)
        self.call()

    def time_epsilon(self, method, users):  # noqa: ARG002 - asv passes the parameters
        self.call()

    def peakmem_epsilon(self, method, users):  # noqa: ARG002
        self.call()


class Again:
    """One more number of a profile that has its groups."""

    params = (USERS,)
    param_names = ("n",)

    def setup(self, users):
        budgets, bits = budgets_and_bits(users)
        self.profile = fs.personalized_exact_profile(budgets, bits=bits)
        self.epsilon = self.profile.epsilon(DELTA)

    def time_delta(self, users):  # noqa: ARG002
        self.profile.delta(self.epsilon)

    def time_epsilon(self, users):  # noqa: ARG002
        self.profile.epsilon(DELTA)


class AgainstNumpy:
    """delta of one user: the contour of few groups against the convolution of all laws."""

    params = (NAIVE_USERS,)
    param_names = ("n",)
    timeout = 120

    def setup(self, users):
        self.budgets, self.bits = budgets_and_bits(users)
        self.worst = int(self.budgets.argmax())
        self.epsilon = self._profile().epsilon(1e-6)

    def _profile(self):
        return fs.personalized_exact_profile(self.budgets, bits=self.bits).user(self.worst)

    def _ours(self):
        return self._profile().delta(self.epsilon)

    def _naive(self):
        return naive_delta(self.budgets, self.bits, self.epsilon)

    def track_times_faster(self, users):  # noqa: ARG002
        """The time of numpy over ours, both from the budgets."""
        return seconds_a_call(self._naive, repeats=3) / seconds_a_call(self._ours)

    def track_relative_difference(self, users):  # noqa: ARG002
        """|ours / numpy - 1|; numpy's own rounding at a delta of 1e-6."""
        return abs(self._ours() / self._naive() - 1.0)
