"""Masses and privacy losses along a line of the lattice of histograms, a block at one tilt.

All masses of `fastshuffle._kernels.lattice_laws` are one contour sum, as in
`fastshuffle._kernels.group_contour`: without one message y the characteristic function is divided
by ``1 + t_y (exp(i theta) - 1)``. A step along a line of the lattice, one message moved from output
j to output i, multiplies it by ``(1 + t_i z) / (1 + t_j z)`` and adds a constant to the weights of
the second sum. So the nodes of a block of points are set up once, at one tilt, and a point costs a
complex product a node.
"""

import math

import numpy as np

from fastshuffle._kernels._jit import kernel
from fastshuffle._kernels.group_contour import (
    NEGLIGIBLE_EXPONENT,
    contour_nodes,
    odd_exponent,
    series_terms,
)
from fastshuffle._kernels.group_tilt import saddle_point, tilt_groups
from fastshuffle._kernels.lattice_laws import (
    AT_K,
    AT_LOG_LABELS,
    CERTAIN,
    EXCESS,
    LOG_MEAN,
    MEAN,
    SHARE,
    log_multinomial,
)

# A tilted mean half a standard deviation off leaves the masses at k large.
_DEVIATIONS_A_BLOCK = 1.0
# The weight of a point relative to the first of its block stays within exp of this.
_LARGEST_EXPONENT = 600.0
# There are never more nodes: those of half a period for the variance where a cut begins.
MOST_NODES = 64

# Rows of ``nodes``: characteristic function, its factor a step less 1 (the rounding of a factor
# near 1 would add up), weights, their change a step; each as a real and an imaginary part.
_WAVE, _TURN, _WEIGHT, _CHANGE = 0, 2, 4, 6


@kernel("(float64, float64[::1], float64[::1])")
def log_normalizer(s, output, tilted):
    """Return ``log(1 - t + t exp(s))`` of one output."""
    if output[CERTAIN] != 0.0:
        return s if output[CERTAIN] > 0.0 else 0.0
    if tilted[0] <= tilted[1]:
        return output[4] - math.log(tilted[1])
    return output[3] + s - math.log(tilted[0])


@kernel("(int64, int64, float64, float64[::1], float64[:, ::1], float64[::1], float64[:, ::1])")
def fill_groups(i, j, shift, counts, outputs, law, groups):
    """Fill ``groups`` for the histogram N + shift (e_i - e_j) and return what they sum to.

    That is the number of b-messages from outputs that both send, and the number of all messages
    from these. An output that only one sends has an empty group of probability 1/2 in its place.
    """
    target = law[AT_K]
    trials = 0.0
    for y in range(counts.shape[0]):
        count = counts[y]
        if shift != 0.0:
            if y == i:
                count += shift
            if y == j:
                count -= shift
        groups[y, 0] = 0.0
        if outputs[y, CERTAIN] == 0.0:
            groups[y, 0] = count
            trials += count
        elif outputs[y, CERTAIN] > 0.0:
            target -= count
        for column in range(1, 5):
            groups[y, column] = outputs[y, column]
    return target, trials


@kernel("(float64, float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[::1])")
def tilt_outputs(s, outputs, groups, tilted, moments):
    """Tilt all outputs, those that only one sends included, which stay certain."""
    tilt_groups(s, groups, tilted, moments)
    for y in range(outputs.shape[0]):
        if outputs[y, CERTAIN] != 0.0:
            tilted[y, 0] = 1.0 if outputs[y, CERTAIN] > 0.0 else 0.0
            tilted[y, 1] = 1.0 - tilted[y, 0]


@kernel("(float64, float64, float64, float64)")
def block_contour(lowest, highest, reach, trials):
    """Return the transform length and the number of nodes besides 0 for a range of variances.

    ``reach`` is the largest distance of a tilted mean from k.
    """
    length, _ = contour_nodes(highest)
    length += reach
    n_nodes = MOST_NODES
    if lowest > 0.5 * NEGLIGIBLE_EXPONENT:
        widest = 2.0 * math.asin(math.sqrt(0.5 * NEGLIGIBLE_EXPONENT / lowest))
        n_nodes = int(widest * length / (2.0 * math.pi)) + 1
    most = min(length, trials + 2.0)
    if 2 * n_nodes + 1 >= most:
        # the whole period, an odd number of nodes, no more than the support needs
        n_nodes = int(0.5 * most) + 1
        length = 2.0 * n_nodes + 1.0
    return length, n_nodes


@kernel(
    "(int64, int64, int64, float64[::1], float64[:, ::1], float64[::1], float64[:, ::1],"
    " float64[::1])"
)
def start_block(i, j, size, counts, outputs, law, nodes, block):
    """Set up the nodes for at most ``size`` free points, N, N + e_i - e_j, and so on.

    Returns the size, which is reduced until one tilt does for all points, and the number of nodes.
    ``block`` becomes the log mass of Q that goes with a contour sum of 1, its factor a step apart
    from that of the counts, and 1 if the weights are those of P / Q rather than P / Q - 1.
    """
    n_outputs = counts.shape[0]
    groups = np.empty((n_outputs, 5))
    tilted = np.empty((n_outputs, 4))
    moments = np.empty(6)
    s = 0.0
    drift = 0.0
    middle = 0.0
    searching = True
    while True:
        # one tilt, for the middle of the block
        shift = 0.5 * (size - 1.0) if searching else 0.0
        target, trials = fill_groups(i, j, shift, counts, outputs, law, groups)
        if searching:
            # between k and k + 1, so that S_N(k) stays large without any one of the messages
            s = saddle_point(target + 0.5, trials, groups, tilted)
        tilt_outputs(s, outputs, groups, tilted, moments)
        if not searching:
            break
        drift = tilted[i, 0] - tilted[j, 0]
        if tilted[i, 0] > 0.5:
            drift = tilted[j, 1] - tilted[i, 1]
        middle = moments[3]
        reach = _DEVIATIONS_A_BLOCK * math.sqrt(middle)
        searching = abs(drift) * size > reach
        if searching:
            longest = 1 + int(reach / abs(drift))
            searching = longest < size
            size = longest

    # where P / Q is small the weights are those of the sum itself, without cancellation
    block[2] = 1.0 if s > 0.7 else 0.0
    log_norms = np.empty(n_outputs)
    scales = np.empty(n_outputs)
    for y in range(n_outputs):
        log_norms[y] = log_normalizer(s, outputs[y], tilted[y])
        scales[y] = outputs[y, SHARE if s > 0.7 else EXCESS] * math.exp(-log_norms[y])
    log_step = log_norms[i] - log_norms[j]
    if min(outputs[i, MEAN], outputs[j, MEAN]) > 0.0:
        # a factor applied many times is formed without the rounding of two large logarithms
        block[1] = math.exp(log_step) * (outputs[i, MEAN] / outputs[j, MEAN])
    else:
        block[1] = math.exp(log_step + (outputs[i, LOG_MEAN] - outputs[j, LOG_MEAN]))
    if size > 1:
        log_step += outputs[i, LOG_MEAN] - outputs[j, LOG_MEAN]
        first = log_step + math.log(counts[j] / (counts[i] + 1.0))
        last = log_step + math.log((counts[j] - size + 2.0) / (counts[i] + size - 1.0))
        size = min(size, 1 + int(_LARGEST_EXPONENT / max(abs(first), abs(last), 1.0)))
    steps = size - 1.0

    offset = (target - moments[0]) - moments[1]
    end = moments[3] + steps * (tilted[i, 0] * tilted[i, 1] - tilted[j, 0] * tilted[j, 1])
    length, n_nodes = block_contour(
        min(moments[3], end),
        max(moments[3], end, middle),
        max(abs(offset), abs(offset - steps * drift)),
        trials + steps,
    )
    block[0] = log_multinomial(counts, outputs, law) - law[AT_LOG_LABELS]
    block[0] -= moments[5] + s * offset

    angle = 2.0 * math.pi / length
    n_terms = series_terms(math.tan(0.5 * n_nodes * angle))
    for q in range(n_nodes + 1):
        sine = math.sin(0.5 * q * angle)
        cosine = math.cos(0.5 * q * angle)
        square = sine * sine
        rise = 2.0 * sine * cosine
        log_size = 0.0
        phase = -offset * q * angle
        for row in range(8):
            nodes[row, q] = 0.0
        for y in range(n_outputs):
            t, u = tilted[y, 0], tilted[y, 1]
            if groups[y, 0] > 0.0:
                log_size += 0.5 * groups[y, 0] * math.log1p(-4.0 * t * u * square)
                phase += groups[y, 0] * odd_exponent(t, u, sine / cosine, n_terms)
            # 1 + t (exp(i theta) - 1), and the weight over it
            real = 1.0 - 2.0 * t * square
            imaginary = t * rise
            norm = real * real + imaginary * imaginary
            weight_real = scales[y] * real / norm
            weight_imaginary = -scales[y] * imaginary / norm
            nodes[_WEIGHT, q] += counts[y] * weight_real
            nodes[_WEIGHT + 1, q] += counts[y] * weight_imaginary
            if y == i:
                nodes[_CHANGE, q] += weight_real
                nodes[_CHANGE + 1, q] += weight_imaginary
            if y == j:
                nodes[_CHANGE, q] -= weight_real
                nodes[_CHANGE + 1, q] -= weight_imaginary
                nodes[_TURN, q] = drift * (rise * imaginary - 2.0 * square * real) / norm
                nodes[_TURN + 1, q] = drift * (rise * real + 2.0 * square * imaginary) / norm
        size_here = math.exp(log_size) * ((1.0 if q == 0 else 2.0) / length)
        nodes[_WAVE, q] = size_here * math.cos(phase)
        nodes[_WAVE + 1, q] = size_here * math.sin(phase)
    return size, n_nodes + 1


@kernel("(int64, float64[:, ::1])")
def next_sums(n_nodes, nodes):
    """Return the contour sums of a point, of S and of the weighted S, and move to the next."""
    mass = 0.0
    weighted = 0.0
    for q in range(n_nodes):
        real, imaginary = nodes[_WAVE, q], nodes[_WAVE + 1, q]
        mass += real
        weighted += real * nodes[_WEIGHT, q] - imaginary * nodes[_WEIGHT + 1, q]
        nodes[_WAVE, q] += real * nodes[_TURN, q] - imaginary * nodes[_TURN + 1, q]
        nodes[_WAVE + 1, q] += real * nodes[_TURN + 1, q] + imaginary * nodes[_TURN, q]
        nodes[_WEIGHT, q] += nodes[_CHANGE, q]
        nodes[_WEIGHT + 1, q] += nodes[_CHANGE + 1, q]
    return mass, weighted
