"""Probabilities of the types of several independent messages: how many fall into each group.

A multinomial probability is a product of binomial ones, each group against all after it, so that
no factorial is formed.
"""

import math

import numpy as np

from fastshuffle._kernels._jit import kernel
from fastshuffle._kernels.deviance import log_binomial_mass


@kernel("(float64[:, ::1], float64[:, ::1], float64[::1])")
def log_type_masses(types, conditional, log_masses):
    """Fill ``log_masses``; a row of types counts the messages of each group.

    The row y of ``conditional`` is ``(0, p, q, log p, log q)`` with p the probability of group y
    among the groups from y on.
    """
    last = types.shape[1] - 1
    group = np.empty(5)
    for i in range(types.shape[0]):
        rest = 0.0
        for y in range(last + 1):
            rest += types[i, y]
        total = 0.0
        for y in range(last):
            count = types[i, y]
            for column in range(5):
                group[column] = conditional[y, column]
            group[0] = rest
            if (count > 0.0 and group[3] == -math.inf) or (count < rest and group[4] == -math.inf):
                total = -math.inf
                break
            if count > 0.0 and count < rest:
                total += log_binomial_mass(count, group)
            elif count > 0.0:
                total += rest * group[3]
            elif rest > 0.0:
                total += rest * group[4]
            rest -= count
        log_masses[i] = total
