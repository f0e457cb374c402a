"""The settings that the suites and the README tables time."""

import fastshuffle as fs

# The accuracy and the scaling in n: any n, and the others at one input or at both.
USERS = (10**4, 10**8, 10**12, 10**15)
ONES = ("k = 0", "k = n // 3")

# A delta below 1/n for every n, and one that the baselines can tell from their rounding.
DELTA = 1e-20
BASELINE_DELTA = 1e-10

RR = fs.binary_randomized_response(1.0)
P0, P1 = RR.matrix[:, 1].tolist()


def profile(users, ones):
    """Return the exact profile of randomized response, epsilon0 = 1."""
    k = 0 if ones == ONES[0] else users // 3
    return fs.exact_profile(fs.ShuffleExperiment(RR, users, k=k))
