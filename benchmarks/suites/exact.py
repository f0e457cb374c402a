"""delta and epsilon of an exact profile: kernels, calls, arrays, and growth with n."""

import numpy as np

from fastshuffle._kernels.hockey_stick import epsilon_array, log_delta_array

from .settings import DELTA, ONES, USERS, profile
from .timing import seconds_a_call

_BOTH = 2  # directions


class _EveryN:
    params = (USERS, ONES)
    param_names = ("n", "others")

    def setup(self, users, ones):
        self.profile = profile(users, ones)
        self.epsilon = self.profile.epsilon(DELTA)


class Kernel(_EveryN):
    """1000 numbers of the array kernels, one direction."""

    def setup(self, users, ones):
        super().setup(users, ones)
        self.epsilons = np.linspace(0.0, 2.0 * self.epsilon, 1000)
        self.log_deltas = np.linspace(-700.0, -20.0, 1000)
        self.results = np.empty(1000)
        self.time_1000_deltas()
        self.time_1000_epsilons()

    def time_1000_deltas(self, *_):
        arrays = self.profile._groups, self.profile._pairs
        log_delta_array(self.epsilons, 0, *arrays, self.results)

    def time_1000_epsilons(self, *_):
        arrays = self.profile._groups, self.profile._pairs
        epsilon_array(self.log_deltas, 0, *arrays, self.results)


class Call(_EveryN):
    """One number through the public interface, both directions."""

    def setup(self, users, ones):
        super().setup(users, ones)
        self.time_delta()
        self.time_trade_off()
        self.time_bounds()

    def time_delta(self, *_):
        self.profile.delta(self.epsilon)

    def time_epsilon(self, *_):
        self.profile.epsilon(DELTA)

    def time_bounds(self, *_):
        self.profile.bounds(self.epsilon)

    def time_trade_off(self, *_):
        self.profile.trade_off(0.01)


class Million(_EveryN):
    """An array of a million epsilons, both directions, on one thread."""

    number = 1
    repeat = (1, 3, 30.0)
    warmup_time = 0.0
    timeout = 120.0

    def setup(self, users, ones):
        super().setup(users, ones)
        self.epsilons = np.linspace(0.0, 2.0 * self.epsilon, 10**6)
        self.profile.delta(self.epsilons[:10])

    def time_deltas(self, *_):
        self.profile.delta(self.epsilons)

    def peakmem_deltas(self, *_):
        self.profile.delta(self.epsilons)


class Growth:
    """Time at n = 1e15 over time at n = 1e4: 1.5 is the most that is allowed."""

    params = (ONES,)
    param_names = ("others",)

    def setup(self, ones):
        self.profiles = [profile(users, ones) for users in (USERS[-1], USERS[0])]

    def track_delta(self, *_):
        return _ratio(_delta_seconds(p) for p in self.profiles)

    def track_epsilon(self, *_):
        return _ratio(seconds_a_call(lambda p=p: p.epsilon(DELTA)) for p in self.profiles)

    track_delta.unit = track_epsilon.unit = "ratio"


def _delta_seconds(exact):
    epsilon = exact.epsilon(DELTA)
    return seconds_a_call(lambda: exact.delta(epsilon))


def _ratio(pair):
    numerator, denominator = pair
    return numerator / denominator
