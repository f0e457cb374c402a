"""The privacy loss of single histograms, for any composition of the others over some inputs.

The others hold input j = 0, ..., m with known numbers c_j, n - 1 in all, and one message of a
histogram N is that of the user who differs. There are two ways to the loss, each a ratio of sums of
coefficients of a product of powers of linear forms (`fastshuffle._kernels.form_nodes`).

*By labels.* Let m_y be the mean of the rows of the others, ``t_yj`` the share of input j in it, and
give every message a label, j with probability t_yj. With S_N the law of the numbers of labels among
the messages N,

    P(N) / Q(N) = sum_y N_y beta_y S_{N - e_y}(c) / sum_y N_y alpha_y S_{N - e_y}(c),

``beta = W_b / m`` and ``alpha = W_a / m``: the labels of the others have to be c, which is the
coefficient of ``prod_j x_j**c_j`` in ``prod_y (sum_j t_yj x_j)**N_y`` over one of the forms. With
one input there are no labels, and the closed form of a homogeneous background remains.

*By outputs.* With R_N the law of the histogram of the others,

    P(N) / Q(N) = sum_y W_b(y) R_{N - e_y} / sum_y W_a(y) R_{N - e_y},

R_N being the coefficient of ``prod_y z_y**N_y`` in ``prod_j (sum_y W_j(y) z_y)**c_j``.

The first takes a transform in a variable for every input but one, the second in one for every
output but one, whatever the counts.
"""

import math

import numpy as np

from fastshuffle._kernels._jit import kernel
from fastshuffle._kernels.form_nodes import sum_over_nodes
from fastshuffle._kernels.form_tilt import find_tilt

# Relative to the sum of the sizes of its terms, a sum below this is rounding: it is exactly 0.
_ROUNDING = 1e-13
# A weighted sum below this, which has lost digits, is added up anew from its terms.
_PRECISE = 1e-5


@kernel("(float64, float64, float64)")
def loss_of_sums(beta, alpha, gap):
    """Return the privacy loss from the weighted sums for P and Q and their difference."""
    if alpha <= 0.0:
        return math.inf
    if beta <= 0.0:
        return -math.inf
    excess = gap / alpha
    return math.log1p(excess) if excess > -0.5 else math.log(beta / alpha)


@kernel("(float64[::1], float64[:, ::1])")
def are_precise(sums, weights):
    """Return whether the weighted sums of `sum_over_nodes` are no small difference of its nodes."""
    total_beta = 0.0
    total_alpha = 0.0
    for y in range(weights.shape[0]):
        total_beta += weights[y, 0]
        total_alpha += weights[y, 1]
    scale = _PRECISE * sums[3]
    return sums[0] >= scale * total_beta and sums[1] >= scale * total_alpha


@kernel("(float64[::1], float64[:, ::1], float64[::1], float64)")
def log_coefficient(powers, shares, target, exponent):
    """Return the log of the coefficient of ``prod_j x_j**target_j``, with a tilt of its own.

    Products of linear forms have no small coefficients next to their value at the right tilt
    (L. Gurvits, Electronic Journal of Combinatorics 15, 2008, R66), so that no digits are lost.
    """
    rows = np.flatnonzero(powers)
    labels = np.flatnonzero(target)
    kept = np.empty((rows.shape[0], labels.shape[0]))
    for i in range(rows.shape[0]):
        total = 0.0
        for j in range(labels.shape[0]):
            kept[i, j] = shares[rows[i], labels[j]]
            total += kept[i, j]
        if total == 0.0:
            return -math.inf
    log_scale = 0.0
    if labels.shape[0] == 1:
        for i in range(rows.shape[0]):
            log_scale += powers[rows[i]] * math.log(kept[i, 0])
        return log_scale
    kept_powers = powers[rows]
    kept_target = target[labels]
    size = labels.shape[0] - 1
    tilt = np.empty(size + 1)
    factors = np.empty(rows.shape[0])
    tilted = np.empty((rows.shape[0], size + 1))
    covariance = np.empty((size, size))
    unit = np.zeros((1, 3))
    unit[0, 0] = 1.0
    sums = np.empty(4)
    find_tilt(kept_powers, kept_target, kept, tilt, factors, tilted, covariance)
    cell = sum_over_nodes(
        kept_powers, kept_target, tilted, covariance, exponent, np.empty((0, 3)), unit, sums
    )
    if not sums[0] > _ROUNDING * sums[3]:
        return -math.inf
    for i in range(rows.shape[0]):
        log_scale += kept_powers[i] * math.log(factors[i])
    for j in range(size + 1):
        log_scale -= kept_target[j] * tilt[j]
    return log_scale + math.log(sums[0] * cell)


@kernel("(float64[::1], float64[:, ::1])")
def loss_of_terms(log_terms, weights):
    """Return the privacy loss from the logs of the terms that the weights belong to."""
    top = -math.inf
    for y in range(log_terms.shape[0]):
        top = max(top, log_terms[y])
    beta = alpha = gap = 0.0
    for y in range(log_terms.shape[0]):
        if log_terms[y] > -math.inf:
            term = math.exp(log_terms[y] - top)
            beta += weights[y, 0] * term
            alpha += weights[y, 1] * term
            gap += weights[y, 2] * term
    return loss_of_sums(beta, alpha, gap)


@kernel("(float64[:, ::1], float64[:, ::1], float64[::1], float64[:, ::1], float64, float64[::1])")
def fill_losses_by_labels(histograms, shares, labels, ratios, exponent, losses):
    """Fill the privacy losses log(P / Q) of histograms, one a row.

    ``shares`` has a row of t_y and ``ratios`` a row (beta_y, alpha_y, beta_y - alpha_y) for each
    output; the histograms have messages at these outputs alone.
    """
    size = labels.shape[0] - 1
    n_outputs = shares.shape[0]
    tilt = np.empty(size + 1)
    factors = np.empty(n_outputs)
    tilted = np.empty((n_outputs, size + 1))
    covariance = np.empty((size, size))
    weights = np.empty((n_outputs, 3))
    terms = np.empty(n_outputs)
    none = np.empty((0, 3))
    sums = np.empty(4)
    for h in range(histograms.shape[0]):
        counts = histograms[h]
        if size == 0:
            for w in range(3):
                sums[w] = 0.0
                for y in range(n_outputs):
                    sums[w] += counts[y] * ratios[y, w]
            losses[h] = loss_of_sums(sums[0], sums[1], sums[2])
            continue
        find_tilt(counts, labels, shares, tilt, factors, tilted, covariance)
        for y in range(n_outputs):
            for w in range(3):
                weights[y, w] = counts[y] * ratios[y, w] / factors[y]
        sum_over_nodes(counts, labels, tilted, covariance, exponent, weights, none, sums)
        if are_precise(sums, weights):
            losses[h] = loss_of_sums(sums[0], sums[1], sums[2])
            continue
        for y in range(n_outputs):
            terms[y] = -math.inf
            for w in range(3):
                weights[y, w] = counts[y] * ratios[y, w]
            if weights[y, 0] > 0.0 or weights[y, 1] > 0.0:
                without = counts.copy()
                without[y] -= 1.0
                terms[y] = log_coefficient(without, shares, labels, exponent)
        losses[h] = loss_of_terms(terms, weights)


@kernel("(float64[:, ::1], float64[:, ::1], float64[::1], float64[:, ::1], float64, float64[::1])")
def fill_losses_by_outputs(histograms, rows, holders, ratios, exponent, losses):
    """Fill the privacy losses log(P / Q) of histograms, one a row.

    ``rows`` are those of the others, ``holders`` how many have each, and ``ratios`` has a row
    (W_b(y), W_a(y), W_b(y) - W_a(y)) an output. Outputs without a message drop out of all forms.
    """
    n_rows = rows.shape[0]
    factors = np.empty(n_rows)
    none = np.empty((0, 3))
    sums = np.empty(4)
    for h in range(histograms.shape[0]):
        order = np.argsort(-histograms[h])
        n_sent = 0
        for y in range(rows.shape[1]):
            n_sent += 1 if histograms[h, y] > 0.0 else 0
        if n_sent == 1:
            y = order[0]
            losses[h] = loss_of_sums(ratios[y, 0], ratios[y, 1], ratios[y, 2])
            continue
        target = np.empty(n_sent)
        shares = np.empty((n_rows, n_sent))
        for y in range(n_sent):
            target[y] = histograms[h, order[y]]
            for j in range(n_rows):
                shares[j, y] = rows[j, order[y]]
        tilt = np.empty(n_sent)
        tilted = np.empty((n_rows, n_sent))
        covariance = np.empty((n_sent - 1, n_sent - 1))
        weights = np.empty((n_sent, 3))
        find_tilt(holders, target, shares, tilt, factors, tilted, covariance)
        for y in range(n_sent):
            for w in range(3):
                weights[y, w] = ratios[order[y], w] * math.exp(tilt[y])
        sum_over_nodes(holders, target, tilted, covariance, exponent, none, weights, sums)
        if are_precise(sums, weights):
            losses[h] = loss_of_sums(sums[0], sums[1], sums[2])
            continue
        terms = np.full(n_sent, -math.inf)
        for y in range(n_sent):
            for w in range(3):
                weights[y, w] = ratios[order[y], w]
            if weights[y, 0] > 0.0 or weights[y, 1] > 0.0:
                without = target.copy()
                without[y] -= 1.0
                terms[y] = log_coefficient(holders, shares, without, exponent)
        losses[h] = loss_of_terms(terms, weights)
