"""k-ary randomized response over many users: the bounds, the worst dataset, and other ways to them.

The worst dataset known has all others at a third input. A method is a function of epsilon0 and n
that returns a call and, from it, the number that it finds; those of other packages need them to be
installed and raise NotImplementedError otherwise, which asv takes as a combination to skip.
"""

import math
import warnings

import numpy as np
from scipy.stats import binom

import fastshuffle as fs

from .timing import least_processor_seconds

K = 10
DELTA = 1e-8
EPSILONS0 = (1.0, 2.0, 4.0)
USERS = (10**3, 10**5, 10**6, 10**8)


def blanket(epsilon0, users):
    """The privacy blanket, an upper bound over all datasets."""
    randomizer = fs.k_randomized_response(epsilon0, K)
    return lambda: fs.blanket_profile(randomizer, users).epsilon(DELTA)


def third_input(epsilon0, users):
    """The dataset whose other users all hold a third input."""
    profile = _third_input_profile(epsilon0, users)
    return lambda: profile().epsilon(DELTA)


def clones(epsilon0, users):
    """The bound for any randomizer of this epsilon0."""
    return lambda: fs.clone_profile(epsilon0, users).epsilon(DELTA)


OURS = {"blanket": blanket, "third input": third_input, "clones": clones}


def _third_input_profile(epsilon0, users):
    randomizer = fs.k_randomized_response(epsilon0, K)
    experiment = fs.ShuffleExperiment(randomizer, users, others={2: users - 1}, pair=(0, 1))
    return lambda: fs.exact_profile(experiment)


# ---- Other ways ------------------------------------------------------------------------------


def peer_clones(epsilon0, users):
    """The clones by the code of their authors, as in their example: 10 halvings, steps of 100."""
    try:
        from random_allocation.external_sources.shuffle_external import (  # noqa: PLC0415
            numericalanalysis,
        )
    except ImportError as error:
        raise NotImplementedError(str(error)) from error

    def call():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return numericalanalysis(users, epsilon0, DELTA, 10, 100, upperbound=True)

    return call


def naive_sum(epsilon0, users):
    """Delta of the third input by a sum over two counts with numpy and scipy.stats.binom."""
    epsilon = third_input(epsilon0, users)()
    return lambda: _sum_over_counts(epsilon0, users, epsilon)


def our_delta(epsilon0, users):
    """Delta of the third input by this library, where `naive_sum` computes it."""
    epsilon = third_input(epsilon0, users)()
    profile = _third_input_profile(epsilon0, users)
    return lambda: profile().delta(epsilon)


def _probabilities(epsilon0):
    total = math.exp(epsilon0) + K - 1.0
    return math.exp(epsilon0) / total, 1.0 / total


def _window(count, p):
    """Return the numbers within 9 standard deviations of the mean of Bin(count, p)."""
    reach = 9.0 * math.sqrt(count * p * (1.0 - p))
    low, high = max(0, math.floor(count * p - reach)), min(count, math.ceil(count * p + reach))
    return np.arange(low, high + 1)


def _sum_over_counts(epsilon0, users, epsilon):
    """Sum the positive parts over the counts of the pair's two symbols.

    All messages are of the third input, under which the likelihood ratio of a histogram is the mean
    of those of its messages. Given the two counts, the third symbol's is binomial and the ratio
    linear in it: two of its tails give the mean of the positive part.
    """
    p, q = _probabilities(epsilon0)
    growth = math.exp(epsilon)
    zeros, ones = _window(users, q)[:, None], _window(users, q)[None, :]
    weight = binom.pmf(zeros, users, q) * binom.pmf(ones, users - zeros, q / (1.0 - q))
    left, third = users - zeros - ones, p / (1.0 - 2.0 * q)
    start = zeros * (1.0 - growth * p / q) + ones * (p / q - growth) + (1.0 - growth) * left
    slope = (growth - 1.0) * (1.0 - q / p)
    least = np.ceil(np.maximum(-start / slope, 0.0))
    tail, mean = binom.sf(least - 1, left, third), left * third
    positive = start * tail + slope * mean * binom.sf(least - 2, left - 1, third)
    return float((weight * positive).sum()) / users


def loss_distribution(epsilon0, users):
    """The third input by dp-accounting, pessimistic, from the two laws of the histogram."""
    from dp_accounting.pld import privacy_loss_distribution  # noqa: PLC0415

    p, q = _probabilities(epsilon0)

    def call():
        zeros, ones = _window(users, q)[:, None, None], _window(users, q)[None, :, None]
        third = _window(users, p)[None, None, :]
        left = users - zeros - ones
        weights = binom.logpmf(zeros, users, q) + binom.logpmf(ones, users - zeros, q / (1.0 - q))
        weights = weights + binom.logpmf(third, left, p / (1.0 - 2.0 * q)) - math.log(users)
        rest = third * q / p + (left - third)
        first = weights + np.log(zeros * p / q + ones + rest)
        second = weights + np.log(zeros + ones * p / q + rest)
        possible = weights > -math.inf
        return privacy_loss_distribution.from_two_probability_mass_functions(
            *(dict(enumerate(law[possible].tolist())) for law in (first, second)),
            pessimistic_estimate=True,
            symmetric=False,
        ).get_epsilon_for_delta(DELTA)

    return call


# Each beside the method of ours for the same number, at the n it can handle.
PEERS = {
    "clones of random-allocation": (peer_clones, clones, "epsilon", USERS),
    "numpy sum": (naive_sum, our_delta, "delta", (10**3, 10**5)),
    "dp-accounting": (loss_distribution, third_input, "epsilon", (10**3,)),
}


class Ours:
    """Epsilon at delta = 1e-8, k = 10."""

    params = (tuple(OURS), EPSILONS0, USERS)
    param_names = ("method", "epsilon0", "n")

    def setup(self, method, epsilon0, users):
        warnings.simplefilter("ignore", fs.DeltaWarning)
        self.call = OURS[method](epsilon0, users)
        self.call()

    def time_epsilon(self, *_):
        self.call()

    def peakmem_epsilon(self, *_):
        self.call()


class TimesFaster:
    """Time of another way over ours, epsilon0 = 2, at the largest n that it can handle."""

    params = (tuple(PEERS),)
    param_names = ("peer",)
    timeout = 300.0

    def track_ratio(self, peer):
        theirs, ours, _, users = PEERS[peer]
        calls = (find(2.0, users[-1]) for find in (theirs, ours))
        their_seconds, our_seconds = (least_processor_seconds(call) for call in calls)
        return their_seconds / our_seconds

    track_ratio.unit = "times"
