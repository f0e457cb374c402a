"""The privacy loss of single histograms where every user sends several messages.

With T_c the law of the histogram N of messages of which c_j are those of law j, W the mean of the
laws with weights pi, and t_yj the share of law j in output y of W,

    T_c(N) = Multinomial(N; W) S_N(c) / Multinomial(c; pi),

S_N(c) the probability that the messages N have so many labels of each law, j with probability t_yj.
For two laws it is the mass of a sum of binomial groups (N_y, t_y). So the loss of P from Q is a
difference of two such masses, at one or at two means W.
"""

import numpy as np

from fastshuffle._kernels._jit import kernel
from fastshuffle._kernels.binomial_groups import log_mass


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
