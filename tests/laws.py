"""Binary laws in the forms that the tests need: as the kernels and as the references take them.

A law is the probability of output 1: a float, taken exactly, or the reference's ``Complement(q)``
for the probability 1 - q with a q too small to be told from 0 there.
"""

import math

import numpy as np
from mpmath import mp, mpf
from numpy.testing import assert_allclose

from fastshuffle import Randomizer, ShuffleExperiment, exact_profile
from tests.tolerances import LOG_PER_UNIT, STATED
from validation.reference.mp import Complement

# Enough for the complement of 1e-300 to be told from 1.
EXTREME_DIGITS = 330


def ones_and_zeros(law):
    """Return the probabilities of outputs 1 and 0, the smaller one exact."""
    if isinstance(law, Complement):
        return 1.0 - law.q, float(law.q)
    return float(law), 1.0 - law


def _logs(p, q):
    if p <= q:
        return (math.log(p) if p > 0.0 else -math.inf), math.log1p(-p)
    log_q, log_p = _logs(q, p)
    return log_p, log_q


def group_rows(groups):
    """Return the kernels' rows ``(count, p, q, log p, log q)`` of ``(count, law)`` pairs."""
    rows = np.empty((len(groups), 5))
    for row, (count, law) in zip(rows, groups, strict=True):
        p, q = ones_and_zeros(law)
        row[:] = count, p, q, *_logs(p, q)
    return rows


def hockey_stick_pair(law_a, law_b):
    """Return the kernels' ``(p1, log p1, log q0, loss, reverse loss)``, law_b the larger."""
    (p0, q0), (p1, q1) = ones_and_zeros(law_a), ones_and_zeros(law_b)
    with mp.workdps(EXTREME_DIGITS):
        # both members of a law from its smaller one, which is exact
        p0, q0 = (mpf(p0), 1 - mpf(p0)) if p0 <= q0 else (1 - mpf(q0), mpf(q0))
        p1, q1 = (mpf(p1), 1 - mpf(p1)) if p1 <= q1 else (1 - mpf(q1), mpf(q1))
        loss = mp.log(p1 / p0) if p0 > 0 else mp.inf
        reverse_loss = mp.log(q0 / q1) if q1 > 0 else mp.inf
        log_p1 = mp.log(p1) if p1 > 0 else mp.ninf
        log_q0 = mp.log(q0) if q0 > 0 else mp.ninf
        return np.array([float(v) for v in (p1, log_p1, log_q0, loss, reverse_loss)])


def randomizer(*laws):
    """Return the randomizer with one input a law."""
    return Randomizer([list(reversed(ones_and_zeros(law))) for law in laws])


def profile(laws, others, pair=(0, 1)):
    """Return the exact profile of the inputs with these laws; ``others`` counts each input."""
    n = 1 + sum(others)
    experiment = ShuffleExperiment(randomizer(*laws), n, others=dict(enumerate(others)), pair=pair)
    return exact_profile(experiment)


def assert_log_close(log_value, truth):
    """Compare a log mass with a reference mass: to `STATED`, and per unit of the log beyond."""
    if truth == 0:
        assert log_value == -math.inf
        return
    with mp.workdps(60):
        log_truth = mp.log(truth)
        if log_truth > -700:
            ratio = float(mp.exp(mpf(float(log_value)) - log_truth))
            assert_allclose(ratio, 1.0, rtol=STATED, atol=0)
        else:
            assert_allclose(log_value, float(log_truth), rtol=LOG_PER_UNIT, atol=0)
