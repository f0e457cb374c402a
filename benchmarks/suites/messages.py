"""Several messages a user: shuffled one by one, at any n and m, and kept together, as one."""

import math

import numpy as np

import fastshuffle as fs

from .baselines import binomial_masses
from .settings import BASELINE_DELTA, DELTA, ONES, P0, P1, RR
from .timing import seconds_a_call

USERS = (10**4, 10**8, 10**12)
MESSAGES = (1, 2, 10, 100)
# Each n with what the naive sum can handle of it.
NAIVE = ((10**3, 2), (10**3, 100), (10**4, 10), (10**5, 2), (10**5, 10))
TOGETHER = (2, 10, 30, 100)

_W0, _W1 = 0.2, 0.6

# (n, others, m): (epsilon, forward delta at it) for W(1) = 0.2 and 0.6, by
# validation/reference/messages.py.
VALUES = {
    (10**4, "k = 0", 2): (0.12, 5.7268222063467687945e-21),
    (10**4, "k = 0", 100): (0.88, 9.8357322554155559624e-21),
    (10**4, "k = n // 3", 2): (0.11, 3.8801340555891600187e-20),
    (10**4, "k = n // 3", 100): (0.82, 6.4523842115402751084e-21),
    (10**8, "k = 0", 2): (0.0011, 6.4313910091907895357e-20),
    (10**8, "k = 0", 100): (0.0082, 1.4289027289494760945e-20),
    (10**8, "k = n // 3", 2): (0.001, 1.8394029329358125078e-19),
    (10**8, "k = n // 3", 100): (0.0076, 1.2284297292678356855e-20),
    (10**12, "k = 0", 2): (1.1e-05, 6.4836371038569365427e-22),
    (10**12, "k = 0", 100): (7.7e-05, 8.5600756527998941896e-21),
    (10**12, "k = n // 3", 2): (9.7e-06, 1.090963421901874396e-20),
    (10**12, "k = n // 3", 100): (7.1e-05, 1.0144602310199062985e-20),
}


def _profile(users, ones, messages, randomizer=RR):
    k = 0 if ones == ONES[0] else users // 3
    return fs.exact_profile(fs.ShuffleExperiment(randomizer, users, k=k, messages=messages))


def naive_delta(users, messages, p0, p1, epsilon):
    """Delta at k = 0 by summing over the whole support with numpy."""
    others = binomial_masses((users - 1) * messages, p0)
    q, p = (np.convolve(others, binomial_masses(messages, own)) for own in (p0, p1))
    ratio = math.exp(epsilon)
    return max(np.maximum(p - ratio * q, 0.0).sum(), np.maximum(q - ratio * p, 0.0).sum())


class OneByOne:
    """One number through the public interface, both directions."""

    params = (USERS, ONES, MESSAGES)
    param_names = ("n", "others", "messages")

    def setup(self, users, ones, messages):
        self.profile = _profile(users, ones, messages)
        self.epsilon = self.profile.epsilon(DELTA)
        self.time_delta()

    def time_profile(self, users, ones, messages):
        _profile(users, ones, messages)

    def time_delta(self, *_):
        self.profile.delta(self.epsilon)

    def time_epsilon(self, *_):
        self.profile.epsilon(DELTA)


def _delta_seconds(profile):
    epsilon = profile.epsilon(DELTA)
    return seconds_a_call(lambda: profile.delta(epsilon))


class OneByOneGrowth:
    """Time at the largest n or m over that at the smallest: it should be about 1."""

    def track_delta_over_n(self):
        return self._growth([_profile(n, ONES[0], 10) for n in (USERS[-1], USERS[0])])

    def track_delta_over_messages(self):
        return self._growth([_profile(10**8, ONES[0], m) for m in (10**4, 10)])

    @staticmethod
    def _growth(profiles):
        slow, fast = map(_delta_seconds, profiles)
        return slow / fast

    track_delta_over_n.unit = track_delta_over_messages.unit = "ratio"


class AgainstNaiveSum:
    """The same delta, k = 0, by a numpy sum: how many times faster ours is, and how close."""

    params = (NAIVE,)
    param_names = ("n and messages",)
    timeout = 120.0

    def setup(self, sizes):
        users, messages = sizes
        self.profile = _profile(users, ONES[0], messages)
        self.epsilon = self.profile.epsilon(BASELINE_DELTA)

    def track_times_faster(self, sizes):
        ours = seconds_a_call(lambda: self.profile.delta(self.epsilon))
        naive = seconds_a_call(lambda: naive_delta(*sizes, P0, P1, self.epsilon), repeats=3)
        return naive / ours

    def track_relative_difference(self, sizes):
        return abs(naive_delta(*sizes, P0, P1, self.epsilon) / BASELINE_DELTA - 1.0)

    track_times_faster.unit = "times"
    track_relative_difference.unit = "relative difference"


class Together:
    """Bundles: their types of messages, and epsilon where the others all hold one input."""

    params = (TOGETHER,)
    param_names = ("messages",)
    timeout = 120.0

    def setup(self, messages):
        self.time_types(messages)
        self.time_epsilon(messages)

    def time_types(self, messages):
        fs.bundle(RR, messages).merged_rows((0, 1))

    def time_types_of_three_groups(self, messages):
        fs.bundle(fs.Randomizer([[0.5, 0.3, 0.2], [0.2, 0.35, 0.45]]), messages).merged_rows((0, 1))

    def time_epsilon(self, messages):
        # at about the same accuracy
        together = fs.bundle(fs.binary_randomized_response(1.0 / math.sqrt(messages)), messages)
        fs.exact_profile(fs.ShuffleExperiment(together, 10**6, k=0)).epsilon(1e-8)


class WorstCase:
    """epsilon at delta = 1e-8 over all datasets, shuffled one by one."""

    params = ((10**3, 10**6, 10**9), (2, 10, 100))
    param_names = ("n", "messages")
    timeout = 120.0

    def setup(self, users, messages):
        self.time_epsilon(users, messages)

    def time_epsilon(self, users, messages):
        fs.worst_case_profile(RR, users, messages=messages).epsilon(1e-8 / users)


class MaxRelativeError:
    """Forward delta for W(1) = 0.2 and 0.6."""

    params = (tuple(VALUES),)
    param_names = ("n, others and messages",)

    def setup(self, case):
        randomizer = fs.Randomizer.from_probabilities([_W0, _W1])
        self.profile = _profile(*case, randomizer=randomizer)

    def track_relative_error(self, case):
        epsilon, delta = VALUES[case]
        return abs(self.profile.delta(epsilon, direction="forward") / delta - 1.0)

    track_relative_error.unit = "relative error"
