"""The same numbers by this library and by the plain ways, at k = 0."""

from . import baselines
from .settings import BASELINE_DELTA, ONES, P0, P1, profile
from .timing import seconds_a_call

OURS = "fastshuffle"

# Each baseline at the n it can handle, given n, epsilon and delta.
DELTAS = {
    "numpy sum": (10**4, 10**5, 10**6),
    "scipy tails": (10**4, 10**5, 10**6, 10**8),
    "dp-accounting, 12 sigma": (10**5,),
    "dp-accounting, full": (10**5,),
}
EPSILONS = {name: users for name, users in DELTAS.items() if name != "numpy sum"}
_USERS = (10**4, 10**5, 10**6, 10**8)


def delta_call(method, users):
    """Return a call that computes delta from scratch, or raise NotImplementedError."""
    exact = profile(users, ONES[0])
    epsilon = exact.epsilon(BASELINE_DELTA)
    if method == OURS:
        return lambda: exact.delta(epsilon)
    _require(method, users, DELTAS)
    return {
        "numpy sum": lambda: baselines.sum_delta(users, P0, P1, epsilon),
        "scipy tails": lambda: baselines.tails_delta(users, P0, P1, epsilon),
        "dp-accounting, 12 sigma": lambda: baselines.loss_distribution(
            users, P0, P1, deviations=12
        ).get_delta_for_epsilon(epsilon),
        "dp-accounting, full": lambda: baselines.loss_distribution(
            users, P0, P1
        ).get_delta_for_epsilon(epsilon),
    }[method]


def epsilon_call(method, users):
    """Return a call that computes epsilon from scratch, or raise NotImplementedError."""
    exact = profile(users, ONES[0])
    if method == OURS:
        return lambda: exact.epsilon(BASELINE_DELTA)
    _require(method, users, EPSILONS)
    return {
        "scipy tails": lambda: baselines.tails_epsilon(users, P0, P1, BASELINE_DELTA),
        "dp-accounting, 12 sigma": lambda: baselines.loss_distribution(
            users, P0, P1, deviations=12
        ).get_epsilon_for_delta(BASELINE_DELTA),
        "dp-accounting, full": lambda: baselines.loss_distribution(
            users, P0, P1
        ).get_epsilon_for_delta(BASELINE_DELTA),
    }[method]


def _require(method, users, able):
    if users not in able.get(method, ()):
        raise NotImplementedError  # asv skips the combination


class _Against:
    params = ((OURS, *DELTAS), _USERS)
    param_names = ("method", "n")
    timeout = 120.0

    def setup(self, method, users):
        self.call = self.find(method, users)
        self.call()

    def time_call(self, *_):
        self.call()


class Delta(_Against):
    """delta(epsilon)."""

    find = staticmethod(delta_call)


class Epsilon(_Against):
    """epsilon(delta)."""

    find = staticmethod(epsilon_call)


class TimesFaster:
    """Time of the baseline over ours, at the largest n the baseline can handle."""

    params = (tuple(DELTAS),)
    param_names = ("baseline",)
    timeout = 120.0

    def track_delta(self, baseline):
        return self._ratio(delta_call, baseline, DELTAS)

    def track_epsilon(self, baseline):
        return self._ratio(epsilon_call, baseline, EPSILONS)

    @staticmethod
    def _ratio(find, baseline, able):
        if baseline not in able:
            return float("nan")
        users = able[baseline][-1]
        ours = seconds_a_call(find(OURS, users))
        return seconds_a_call(find(baseline, users), repeats=3) / ours

    track_delta.unit = track_epsilon.unit = "times"
