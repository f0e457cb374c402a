"""Two neighbouring histogram laws, at one histogram.

k of n users hold b under Q and k + 1 under P, the others hold a. Let ``pi = (k + 1/2) / n``,
``m = (1 - pi) W_a + pi W_b`` and ``t = pi W_b / m``, output by output. If n messages of law m had
labels, each b with its probability t, then Q would be their law given that k labels are b. With
S_N the sum of the binomial groups ``(N_y, t_y)`` it is

    Q(N) = Multinomial(N; n, m) S_N(k) / Bin(k; n, pi),
    P(N) / Q(N) - 1 = (1 - pi) / (n - k) sum_y N_y c_y S_{N - e_y}(k) / S_N(k),

with ``c = (W_b - W_a) / m``; with ``W_b / m`` for c the sum is P / Q itself, without cancellation.

Outputs that only b sends (t = 1) or only a sends (t = 0) shift S_N or leave it. Where they settle
all labels the laws are products, in closed form.
"""

import math

from fastshuffle._kernels._jit import kernel
from fastshuffle._kernels.deviance import deviance, stirling_error

_HALF_LOG_TWO_PI = 0.9189385332046727418

# What the labels of a possible histogram are: free, all b-messages at outputs that only b sends,
# one more than that (Q = 0), all a-messages at outputs that only a sends (P = 0).
FREE, SETTLED, NO_Q, NO_P = range(4)

# Columns of ``outputs`` after the group (count unused, t, 1 - t, log t, log(1 - t)): the mean n m
# and its rounding error, log(n m), (W_b - W_a) / m, W_b / m, W_b / W_a - 1, W_b / W_a, and 1, -1
# or 0 for an output that only b, only a or both send.
MEAN, MEAN_ERROR, LOG_MEAN, EXCESS, SHARE, RATIO_EXCESS, RATIO, CERTAIN = range(5, 13)

# Places of ``law``: n, k, a constant of the multinomial mass, log Bin(k; n, pi), log Bin(k + 1;
# n, pi), (1 - pi) / (n - k), the log of what may be left out of a line and of the whole window.
AT_N, AT_K, AT_CONSTANT, AT_LOG_LABELS, AT_LOG_MORE_LABELS = range(5)
AT_SCALE, AT_LOG_LINE, AT_LOG_WINDOW = range(5, 8)


@kernel("(float64[::1], float64[:, ::1], float64[::1])")
def log_multinomial(counts, outputs, law):
    """Return log Multinomial(N; n, m) in Loader's form."""
    total = law[AT_CONSTANT]
    for y in range(counts.shape[0]):
        count, mean = counts[y], outputs[y, MEAN]
        if count == 0.0:
            total -= mean
            continue
        excess = (count - mean) - outputs[y, MEAN_ERROR]
        if count > 4.0 * mean:  # also where the mean underflows and only its logarithm is known
            total -= count * (math.log(count) - outputs[y, LOG_MEAN]) - excess
        else:
            total -= mean * deviance(excess / mean)
        total -= stirling_error(count) + _HALF_LOG_TWO_PI + 0.5 * math.log(count)
    return total


@kernel("(float64[::1], float64[:, ::1], float64[::1])")
def label_kind(counts, outputs, law):
    """Return what the labels of a histogram are, and how many are certainly b and certainly a."""
    only_b = 0.0
    only_a = 0.0
    for y in range(counts.shape[0]):
        if outputs[y, CERTAIN] > 0.0:
            only_b += counts[y]
        elif outputs[y, CERTAIN] < 0.0:
            only_a += counts[y]
    n, k = law[AT_N], law[AT_K]
    if only_b == k + 1.0:
        return NO_Q, only_b, only_a
    if only_a == n - k:
        return NO_P, only_b, only_a
    return (SETTLED if only_b == k else FREE), only_b, only_a


@kernel("(int64, float64[::1], float64[:, ::1], float64[::1])")
def settled_point(kind, counts, outputs, law):
    """Return log Q, log P and the privacy loss where the labels are settled."""
    column = 3 if kind == NO_P else 4
    log_mass = log_multinomial(counts, outputs, law)
    for y in range(counts.shape[0]):
        if outputs[y, CERTAIN] == 0.0:
            log_mass += counts[y] * outputs[y, column]
    if kind == NO_Q:
        return -math.inf, log_mass - law[AT_LOG_MORE_LABELS], math.inf
    log_mass -= law[AT_LOG_LABELS]
    if kind == NO_P:
        return log_mass, -math.inf, -math.inf
    # each of the n - k messages of a may be the one that becomes b
    n, k = law[AT_N], law[AT_K]
    excess = 0.0
    ratio = 0.0
    for y in range(counts.shape[0]):
        if outputs[y, CERTAIN] <= 0.0:
            excess += counts[y] * ((k + 1.0) * outputs[y, RATIO_EXCESS] + k)
            ratio += counts[y] * (k + 1.0) * outputs[y, RATIO]
    excess /= n - k
    loss = math.log1p(excess) if excess > -0.5 else math.log(ratio / (n - k))
    return log_mass, log_mass + loss, loss
