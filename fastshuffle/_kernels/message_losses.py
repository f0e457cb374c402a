"""The privacy loss of single histograms where every user sends several messages.

With T_c the law of the histogram N of messages of which c_j are those of law j, W the mean of the
laws with weights pi, and t_yj the share of law j in output y of W,

    T_c(N) = Multinomial(N; W) S_N(c) / Multinomial(c; pi),

S_N(c) the probability that the messages N have so many labels of each law, j with probability t_yj.
For two laws it is the mass of a sum of binomial groups (N_y, t_y). So the loss of P from Q is a
difference of two such masses, at one or at two means W. For more laws it is a coefficient of a
product of powers of linear forms (`fastshuffle._kernels.label_ratio`); and so is T_c(N) itself, of
``prod_y z_y**N_y`` in ``prod_j (sum_y W_j(y) z_y)**c_j``, which takes fewer variables where there
are fewer outputs than laws.
"""

import numpy as np

from fastshuffle._kernels._jit import kernel
from fastshuffle._kernels.binomial_groups import log_mass
from fastshuffle._kernels.label_ratio import log_coefficient


@kernel("(float64[:, ::1], float64[:, :, ::1], float64[::1], float64[::1], float64[::1])")
def fill_message_losses(histograms, shares, targets, weights, losses):
    """Fill the privacy losses of histograms, one a row.

    ``shares`` has for P and for Q a row ``(unused, t, 1 - t, log t, log(1 - t))`` an output,
    ``targets`` the numbers of labels, and ``weights`` the log of the mean of P over that of Q for
    each output, and last a constant.
    """
    n_outputs = shares.shape[1]
    groups = np.empty((n_outputs, 5))
    for h in range(histograms.shape[0]):
        loss = weights[n_outputs]
        for y in range(n_outputs):
            loss += histograms[h, y] * weights[y]
        for law in range(2):
            for y in range(n_outputs):
                groups[y, 0] = histograms[h, y]
                for column in range(1, 5):
                    groups[y, column] = shares[law, y, column]
            value = log_mass(targets[law], groups)
            loss += value if law == 0 else -value
        losses[h] = loss


@kernel("(float64[:, ::1], float64[:, :, ::1], float64[::1], float64[::1], float64, float64[::1])")
def fill_losses_by_labels_of_messages(histograms, shares, targets, weights, exponent, losses):
    """Fill the privacy losses of histograms, one a row, for any number of laws.

    ``shares`` has for P and for Q the rows t_y, ``targets`` the numbers of labels, and ``weights``
    the log of the mean of P over that of Q for each output.
    """
    for h in range(histograms.shape[0]):
        loss = 0.0
        for y in range(weights.shape[0]):
            loss += histograms[h, y] * weights[y]
        loss += log_coefficient(histograms[h], shares[0], targets, exponent)
        losses[h] = loss - log_coefficient(histograms[h], shares[1], targets, exponent)


@kernel("(float64[:, ::1], float64[:, :, ::1], float64[::1], float64, float64[::1])")
def fill_losses_by_outputs_of_messages(histograms, rows, senders, exponent, losses):
    """Fill the privacy losses of histograms, one a row, for any number of laws.

    ``rows`` are the laws of the messages under P and under Q, ``senders`` the numbers of each.
    """
    for h in range(histograms.shape[0]):
        losses[h] = log_coefficient(senders, rows[0], histograms[h], exponent)
        losses[h] -= log_coefficient(senders, rows[1], histograms[h], exponent)
