"""Protocols: reports a second, what the guarantee takes, and plain numpy beside them."""

import math

import numpy as np

from fastshuffle.protocols import estimate_frequencies, estimate_mean, fit_sgd

from .timing import seconds_a_call

USERS = (10**4, 10**6)
BUDGETS = ("one budget", "three budgets")
EPSILON0 = 1.0
CATEGORIES = 100
FEATURES = 6
ROUNDS = 10
DELTA = 1e-8

# ---- Ours ----------------------------------------------------------------------------------------


def local_budgets(users, budgets):
    """One budget for all, or three in turn."""
    return EPSILON0 if budgets == BUDGETS[0] else np.resize([0.5, 1.0, 2.0], users)


def mean(users, budgets, mechanism):
    """The mean of numbers of [0, 1]."""
    rng = np.random.default_rng(users)
    values, epsilon0 = rng.random(users), local_budgets(users, budgets)
    return lambda: estimate_mean(values, epsilon0, low=0, high=1, rng=rng, mechanism=mechanism)


def frequency(users, budgets, mechanism):
    """The frequencies of 100 categories, the first ones more often held."""
    rng = np.random.default_rng(users)
    values, epsilon0 = skewed(rng, users), local_budgets(users, budgets)
    return lambda: estimate_frequencies(
        values, epsilon0, domain=CATEGORIES, rng=rng, mechanism=mechanism
    )


def sgd(users, budgets, mechanism):
    """Logistic regression of 6 coefficients, 10 rounds."""
    rng = np.random.default_rng(users)
    x, y = labelled(rng, users)
    epsilon0 = local_budgets(users, budgets)
    return lambda: fit_sgd(
        x, y, epsilon0, model="logistic", rounds=ROUNDS, step=1, clip=1, rng=rng,
        mechanism=mechanism,
    )  # fmt: skip


def skewed(rng, users):
    """Categories of which a few are frequent."""
    return np.floor(CATEGORIES * rng.random(users) ** 3).astype(np.int64)


def labelled(rng, users):
    """Features in [-1, 1] and a label that depends on them."""
    x = rng.uniform(-1.0, 1.0, (users, FEATURES))
    chance = 1.0 / (1.0 + np.exp(-x @ np.linspace(-2.0, 2.0, FEATURES)))
    return x, (rng.random(users) < chance).astype(np.float64)


# What is run, the name of its mechanism, and the reports of one user.
PROTOCOLS = {
    "mean, rr": (mean, "rr", 1),
    "mean, laplace": (mean, "laplace", 1),
    "mean, piecewise": (mean, "piecewise", 1),
    "frequency, krr": (frequency, "krr", 1),
    "frequency, oue": (frequency, "oue", 1),
    "frequency, olh": (frequency, "olh", 1),
    "frequency, hadamard": (frequency, "hadamard", 1),
    "frequency, subset": (frequency, "subset", 1),
    "sgd, coordinate": (sgd, "coordinate", ROUNDS),
    "sgd, sphere": (sgd, "sphere", ROUNDS),
}

# ---- Plain numpy, without checks, intervals, losses and guarantees -------------------------------


def naive_mean(values, rng):
    """The mean by randomized response of rounded bits."""
    flip = 1.0 / (1.0 + math.exp(EPSILON0))
    bits = rng.random(values.size) < values
    sent = rng.permutation(bits ^ (rng.random(values.size) < flip))
    return (sent.mean() - flip) / (1.0 - 2.0 * flip)


def naive_frequencies(values, rng):
    """The frequencies by k-ary randomized response."""
    q = 1.0 / (math.exp(EPSILON0) + CATEGORIES - 1.0)
    p = math.exp(EPSILON0) * q
    others = (values + rng.integers(1, CATEGORIES, values.size)) % CATEGORIES
    sent = rng.permutation(np.where(rng.random(values.size) < p, values, others))
    return (np.bincount(sent, minlength=CATEGORIES) / values.size - q) / (p - q)


def naive_sgd(x, y, rng):
    """The coefficients by a random coordinate of each gradient, a bit of it each."""
    users = np.arange(len(y))
    difference = math.tanh(0.5 * EPSILON0)
    path = [np.zeros(FEATURES)]
    for t in range(1, ROUNDS + 1):
        slopes = 1.0 / (1.0 + np.exp(-x @ path[-1])) - y
        gradients = np.clip(slopes[:, np.newaxis] * x, -1.0, 1.0)
        places = rng.integers(0, FEATURES, len(y))
        held = gradients[users, places]
        signs = np.where(rng.random(len(y)) < 0.5 * (1.0 + difference * held), 1.0, -1.0)
        order = rng.permutation(len(y))
        sums = np.bincount(places[order], weights=signs[order], minlength=FEATURES)
        path.append(path[-1] - FEATURES * sums / (difference * len(y) * math.sqrt(t)))
    return np.mean(path[1 + ROUNDS // 2 :], axis=0)


def numpy_mean(users):
    """The mean of the same numbers."""
    rng = np.random.default_rng(users)
    values = rng.random(users)
    return lambda: naive_mean(values, rng)


def numpy_frequencies(users):
    """The frequencies of the same categories."""
    rng = np.random.default_rng(users)
    values = skewed(rng, users)
    return lambda: naive_frequencies(values, rng)


def numpy_sgd(users):
    """The regression of the same labels."""
    rng = np.random.default_rng(users)
    x, y = labelled(rng, users)
    return lambda: naive_sgd(x, y, rng)


NAIVE = {
    "mean, rr": numpy_mean,
    "frequency, krr": numpy_frequencies,
    "sgd, coordinate": numpy_sgd,
}


def protocol(name, users, budgets):
    """Return what runs a protocol once."""
    make, mechanism, _ = PROTOCOLS[name]
    return make(users, budgets, mechanism)


class Reports:
    """Reports a second, from the users' values to the estimate with its interval."""

    params = (tuple(PROTOCOLS), USERS, BUDGETS)
    param_names = ("protocol", "n", "budgets")
    timeout = 300

    def setup(self, name, users, budgets):
        self.call = protocol(name, users, budgets)

    def track_reports_per_second(self, name, users, budgets):  # noqa: ARG002
        return users * PROTOCOLS[name][2] / seconds_a_call(self.call, repeats=3)

    track_reports_per_second.unit = "reports/s"

    def peakmem_estimate(self, name, users, budgets):  # noqa: ARG002
        self.call()


class Guarantees:
    """epsilon at delta = 1e-8 for all users, from the result of a protocol."""

    # once for each result: what is computed is kept in its profiles
    number = repeat = rounds = min_run_count = 1
    warmup_time = 0.0
    params = (("mean, rr", "mean, piecewise", "frequency, krr", "sgd, coordinate"), USERS, BUDGETS)
    param_names = ("protocol", "n", "budgets")
    timeout = 300

    def setup(self, name, users, budgets):
        self.call = protocol(name, users, budgets)
        self.call().guarantee.epsilon(DELTA)
        self.guarantee = self.call().guarantee

    def time_epsilon(self, name, users, budgets):  # noqa: ARG002
        self.guarantee.epsilon(DELTA)


class AgainstNumpy:
    """The time with one budget over that of plain numpy, which has no interval."""

    params = (tuple(NAIVE), USERS)
    param_names = ("protocol", "n")
    timeout = 300

    def setup(self, name, users):
        self.ours = protocol(name, users, BUDGETS[0])
        self.naive = NAIVE[name](users)

    def track_time_over_numpy(self, name, users):  # noqa: ARG002
        return seconds_a_call(self.ours, repeats=3) / seconds_a_call(self.naive, repeats=3)

    track_time_over_numpy.unit = "ratio"


class Difference:
    """The largest difference between the means of ten estimates and of ten by plain numpy."""

    params = (tuple(NAIVE),)
    param_names = ("protocol",)

    def setup(self, name):
        self.ours = protocol(name, USERS[0], BUDGETS[0])
        self.naive = NAIVE[name](USERS[0])

    def track_difference(self, name):  # noqa: ARG002
        ours, naive = (
            np.mean([value() for _ in range(10)], axis=0)
            for value in (lambda: self.ours().estimate, self.naive)
        )
        return float(np.abs(ours - naive).max())

    track_difference.unit = "difference"
