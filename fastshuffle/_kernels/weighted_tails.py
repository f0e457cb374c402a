"""Weighted samples of the privacy loss, summed so that delta is known at every epsilon of a grid.

A sample of the histogram has a loss L and a weight w, that of P against a mixture of exponential
tilts: ``log w = -log sum_j exp(theta_j s_j . N - K_j)``. It enters the cell of the largest grid
epsilon e below L, with ``a = 1 - exp(e - L)`` and ``b = exp(e - L)``, and w in the unit of that
cell. At any smaller epsilon, with q = 1 - exp(epsilon - e), its term of delta is ``w (a + q b)``:
the sums of w a and w b, and of the squares, are enough for mean and variance at every epsilon of
the grid, in sums of positive terms.
"""

import math

from fastshuffle._kernels._jit import kernel


@kernel("(float64[::1], float64[:, ::1])")
def log_weight(counts, tilts):
    """Return the log weight of a histogram; a row of tilts is ``theta s`` and last -K."""
    n_outputs = counts.shape[0]
    largest = -math.inf
    total = 0.0
    for j in range(tilts.shape[0]):
        exponent = tilts[j, n_outputs]
        for y in range(n_outputs):
            exponent += tilts[j, y] * counts[y]
        if exponent > largest:
            total = total * math.exp(largest - exponent) + 1.0
            largest = exponent
        else:
            total += math.exp(exponent - largest)
    return -largest - math.log(total)


@kernel(
    "(float64[:, ::1], float64[::1], float64[::1], float64[:, ::1], float64[::1], float64[::1],"
    " float64[:, ::1])"
)
def add_to_cells(histograms, losses, scales, tilts, epsilons, log_units, sums):
    """Add samples to ``sums``, whose rows are the cells, and return the largest term of its cell.

    ``scales`` are factors of the weights. The columns are the sums of w a, w b, (w a)**2, w a w b
    and (w b)**2.
    """
    largest = 0.0
    last = epsilons.shape[0] - 1
    for h in range(histograms.shape[0]):
        loss = losses[h]
        if not loss > epsilons[0]:
            continue
        low = 0
        high = last + 1
        while high - low > 1:
            middle = (low + high) // 2
            if loss > epsilons[middle]:
                low = middle
            else:
                high = middle
        gap = loss - epsilons[low]
        weight = scales[h] * math.exp(log_weight(histograms[h], tilts) - log_units[low])
        near = -weight * math.expm1(-gap)
        far = weight * math.exp(-gap)
        largest = max(largest, near)
        sums[low, 0] += near
        sums[low, 1] += far
        sums[low, 2] += near * near
        sums[low, 3] += near * far
        sums[low, 4] += far * far
    return largest
