"""Two neighbouring histogram laws on a window of the lattice, along its lines.

k of n users hold b under Q and k + 1 under P, the others hold a. Let ``pi = (k + 1/2) / n``,
``m = (1 - pi) W_a + pi W_b`` and ``t = pi W_b / m``, output by output. If n messages of law m had
labels, each b with its probability t, then Q would be their law given that k labels are b. With
S_N the sum of the binomial groups ``(N_y, t_y)`` it is

    Q(N) = Multinomial(N; n, m) S_N(k) / Bin(k; n, pi),
    P(N) / Q(N) - 1 = (1 - pi) / (n - k) sum_y N_y c_y S_{N - e_y}(k) / S_N(k),

with ``c = (W_b - W_a) / m``; with ``W_b / m`` for c the sum is P / Q itself, without cancellation.

All of these masses are one contour sum (`fastshuffle._kernels.binomial_groups`): without one
message y the characteristic function is divided by ``1 + t_y (exp(i theta) - 1)``. A step along a
line of the lattice, one message moved from output j to output i, multiplies it by
``(1 + t_i z) / (1 + t_j z)`` and adds a constant to the weights of the second sum. So the nodes of
a block of points are set up once, at one tilt, and a point costs a complex product a node.

Outputs that only b sends (t = 1) or only a sends (t = 0) shift S_N or leave it. Where they settle
all labels the laws are products, in closed form.

Along a line both laws are log-concave: their generating polynomial is a product of linear forms
with non-negative coefficients, hence stable, so the line is the coefficient sequence of a
real-rooted polynomial. A geometric series bounds what is left of a line, at either end.
"""

import math

import numpy as np

from fastshuffle._kernels._jit import kernel
from fastshuffle._kernels.binomial_groups import (
    contour_nodes,
    odd_exponent,
    saddle_point,
    tilt_groups,
)
from fastshuffle._kernels.deviance import deviance, stirling_error
from fastshuffle._kernels.divergence import jensen_shannon_term, renyi_term

_HALF_LOG_TWO_PI = 0.9189385332046727418
_NEGLIGIBLE_EXPONENT = 42.0
# Rounding grows with the length of a block; at this length the set-up no longer matters.
_LONGEST_BLOCK = 128
# A tilted mean half a standard deviation off leaves the masses at k large.
_DEVIATIONS_A_BLOCK = 1.0
# The weight of a point relative to the first of its block stays within exp of this.
_LARGEST_EXPONENT = 600.0
# There are never more nodes: those of half a period for the variance where a cut begins.
_MOST_NODES = 64
# Points whose tail sums are kept together; between them a tail is summed point by point.
POINTS_A_STRIDE = 256

# What the labels of a possible histogram are: free, all b-messages at outputs that only b sends,
# one more than that (Q = 0), all a-messages at outputs that only a sends (P = 0).
_FREE, _SETTLED, _NO_Q, _NO_P = range(4)

# Columns of ``outputs`` after the group (count unused, t, 1 - t, log t, log(1 - t)): the mean n m
# and its rounding error, log(n m), (W_b - W_a) / m, W_b / m, W_b / W_a - 1, W_b / W_a, and 1, -1
# or 0 for an output that only b, only a or both send.
_MEAN, _MEAN_ERROR, _LOG_MEAN, _EXCESS, _SHARE, _RATIO_EXCESS, _RATIO, _CERTAIN = range(5, 13)

# Places of ``law``: n, k, a constant of the multinomial mass, log Bin(k; n, pi), log Bin(k + 1;
# n, pi), (1 - pi) / (n - k), the log of what may be left out of a line and of the whole window.
_N, _K, _CONSTANT, _LOG_LABELS, _LOG_MORE_LABELS, _SCALE, _LOG_LINE, _LOG_WINDOW = range(8)

# Rows of ``nodes``: characteristic function, its factor a step less 1 (the rounding of a factor
# near 1 would add up), weights, their change a step; each as a real and an imaginary part.
_WAVE, _TURN, _WEIGHT, _CHANGE = 0, 2, 4, 6


@kernel("(float64[::1], float64[:, ::1], float64[::1])")
def log_multinomial(counts, outputs, law):
    """Return log Multinomial(N; n, m) in Loader's form."""
    total = law[_CONSTANT]
    for y in range(counts.shape[0]):
        count, mean = counts[y], outputs[y, _MEAN]
        if count == 0.0:
            total -= mean
            continue
        excess = (count - mean) - outputs[y, _MEAN_ERROR]
        if count > 4.0 * mean:  # also where the mean underflows and only its logarithm is known
            total -= count * (math.log(count) - outputs[y, _LOG_MEAN]) - excess
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
        if outputs[y, _CERTAIN] > 0.0:
            only_b += counts[y]
        elif outputs[y, _CERTAIN] < 0.0:
            only_a += counts[y]
    n, k = law[_N], law[_K]
    if only_b == k + 1.0:
        return _NO_Q, only_b, only_a
    if only_a == n - k:
        return _NO_P, only_b, only_a
    return (_SETTLED if only_b == k else _FREE), only_b, only_a


@kernel("(int64, float64[::1], float64[:, ::1], float64[::1])")
def settled_point(kind, counts, outputs, law):
    """Return log Q, log P and the privacy loss where the labels are settled."""
    column = 3 if kind == _NO_P else 4
    log_mass = log_multinomial(counts, outputs, law)
    for y in range(counts.shape[0]):
        if outputs[y, _CERTAIN] == 0.0:
            log_mass += counts[y] * outputs[y, column]
    if kind == _NO_Q:
        return -math.inf, log_mass - law[_LOG_MORE_LABELS], math.inf
    log_mass -= law[_LOG_LABELS]
    if kind == _NO_P:
        return log_mass, -math.inf, -math.inf
    # each of the n - k messages of a may be the one that becomes b
    n, k = law[_N], law[_K]
    excess = 0.0
    ratio = 0.0
    for y in range(counts.shape[0]):
        if outputs[y, _CERTAIN] <= 0.0:
            excess += counts[y] * ((k + 1.0) * outputs[y, _RATIO_EXCESS] + k)
            ratio += counts[y] * (k + 1.0) * outputs[y, _RATIO]
    excess /= n - k
    loss = math.log1p(excess) if excess > -0.5 else math.log(ratio / (n - k))
    return log_mass, log_mass + loss, loss


@kernel("(float64, float64[::1], float64[::1])")
def log_normalizer(s, output, tilted):
    """Return ``log(1 - t + t exp(s))`` of one output."""
    if output[_CERTAIN] != 0.0:
        return s if output[_CERTAIN] > 0.0 else 0.0
    if tilted[0] <= tilted[1]:
        return output[4] - math.log(tilted[1])
    return output[3] + s - math.log(tilted[0])


@kernel("(int64, int64, float64, float64[::1], float64[:, ::1], float64[::1], float64[:, ::1])")
def fill_groups(i, j, shift, counts, outputs, law, groups):
    """Fill ``groups`` for the histogram N + shift (e_i - e_j) and return what they sum to.

    That is the number of b-messages from outputs that both send, and the number of all messages
    from these. An output that only one sends has an empty group of probability 1/2 in its place.
    """
    target = law[_K]
    trials = 0.0
    for y in range(counts.shape[0]):
        count = counts[y]
        if shift != 0.0:
            if y == i:
                count += shift
            if y == j:
                count -= shift
        groups[y, 0] = 0.0
        if outputs[y, _CERTAIN] == 0.0:
            groups[y, 0] = count
            trials += count
        elif outputs[y, _CERTAIN] > 0.0:
            target -= count
        for column in range(1, 5):
            groups[y, column] = outputs[y, column]
    return target, trials


@kernel("(float64, float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[::1])")
def tilt_outputs(s, outputs, groups, tilted, moments):
    """Tilt all outputs, those that only one sends included, which stay certain."""
    tilt_groups(s, groups, tilted, moments)
    for y in range(outputs.shape[0]):
        if outputs[y, _CERTAIN] != 0.0:
            tilted[y, 0] = 1.0 if outputs[y, _CERTAIN] > 0.0 else 0.0
            tilted[y, 1] = 1.0 - tilted[y, 0]


@kernel("(float64, float64, float64, float64)")
def block_contour(lowest, highest, reach, trials):
    """Return the transform length and the number of nodes besides 0 for a range of variances.

    ``reach`` is the largest distance of a tilted mean from k.
    """
    length, _ = contour_nodes(highest)
    length += reach
    n_nodes = _MOST_NODES
    if lowest > 0.5 * _NEGLIGIBLE_EXPONENT:
        widest = 2.0 * math.asin(math.sqrt(0.5 * _NEGLIGIBLE_EXPONENT / lowest))
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
        scales[y] = outputs[y, _SHARE if s > 0.7 else _EXCESS] * math.exp(-log_norms[y])
    log_step = log_norms[i] - log_norms[j]
    if min(outputs[i, _MEAN], outputs[j, _MEAN]) > 0.0:
        # a factor applied many times is formed without the rounding of two large logarithms
        block[1] = math.exp(log_step) * (outputs[i, _MEAN] / outputs[j, _MEAN])
    else:
        block[1] = math.exp(log_step + (outputs[i, _LOG_MEAN] - outputs[j, _LOG_MEAN]))
    if size > 1:
        log_step += outputs[i, _LOG_MEAN] - outputs[j, _LOG_MEAN]
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
    block[0] = log_multinomial(counts, outputs, law) - law[_LOG_LABELS]
    block[0] -= moments[5] + s * offset

    angle = 2.0 * math.pi / length
    widest = math.tan(0.5 * n_nodes * angle)
    n_terms = 0
    if abs(widest) < 0.2:
        ratio = widest * widest
        n_terms = 2
        while ratio > 1e-17:
            ratio *= widest * widest
            n_terms += 1
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


@kernel("(float64, float64)")
def log_rest_of_line(log_mass, previous):
    """Bound the log of what a log-concave sequence has beyond its last two values.

    Inf where it does not fall yet, or is 0 yet.
    """
    if not log_mass < previous:
        return math.inf
    fall = log_mass - previous
    return log_mass + fall - math.log(-math.expm1(fall))


@kernel(
    "(int64, int64, float64[::1], float64[:, ::1], float64[::1], float64[:, ::1], float64[:, ::1])"
)
def scan_line(i, j, counts, outputs, law, nodes, points):
    """Fill ``points`` with N, N + e_i - e_j, ... as far as there is room or mass of either law.

    All of these are possible. A point is its loss and the log of the larger of P and Q. Returns
    the number of points and bounds on the log of what is left of Q and of P. ``counts`` is changed.
    """
    block = np.empty(3)
    log_limit = law[_LOG_LINE]
    log_q = log_p = -math.inf
    size = 16
    p = 0
    while p < points.shape[0]:
        kind, only_b, only_a = label_kind(counts, outputs, law)
        n_nodes = 0
        end = p + 1
        weight = 1.0
        if kind == _FREE:
            # a block ends before the labels are settled
            room = 1.0 * (points.shape[0] - p)
            if outputs[i, _CERTAIN] > 0.0 and outputs[j, _CERTAIN] <= 0.0:
                room = min(room, law[_K] - only_b)
            if outputs[i, _CERTAIN] < 0.0 and outputs[j, _CERTAIN] >= 0.0:
                room = min(room, law[_N] - law[_K] - only_a)
            size = int(min(room, 2.0 * size, 1.0 * _LONGEST_BLOCK))
            size, n_nodes = start_block(i, j, size, counts, outputs, law, nodes, block)
            end = p + size
        while p < end:
            previous_q, previous_p = log_q, log_p
            if kind == _FREE:
                mass, weighted = next_sums(n_nodes, nodes)
                log_q = block[0] + math.log(weight * mass)
                excess = law[_SCALE] * weighted / mass
                loss = math.log(excess) if block[2] > 0.0 else math.log1p(excess)
                log_p = log_q + loss
                weight *= block[1] * (counts[j] / (counts[i] + 1.0))
            else:
                log_q, log_p, loss = settled_point(kind, counts, outputs, law)
            points[p, 0] = loss
            points[p, 1] = max(log_q, log_p)
            p += 1
            if log_q < log_limit and log_p < log_limit:
                rest_q = log_rest_of_line(log_q, previous_q)
                rest_p = log_rest_of_line(log_p, previous_p)
                if rest_q < log_limit and rest_p < log_limit:
                    return p, rest_q, rest_p
            counts[i] += 1.0
            counts[j] -= 1.0
    return p, -math.inf, -math.inf


@kernel("(float64, float64[::1], float64[:, ::1], float64[::1])")
def line_ends(total, counts, outputs, law):
    """Return the smallest and the largest count of output 0 at which a line has mass.

    The counts of outputs 0 and 1 sum to ``total``, the others are those of ``counts``.
    """
    low = 0.0
    high = total
    for sign, limit in ((1.0, law[_K] + 1.0), (-1.0, law[_N] - law[_K])):
        # messages that only one input sends are no more than the users who hold it
        room = limit
        for y in range(2, counts.shape[0]):
            if outputs[y, _CERTAIN] == sign:
                room -= counts[y]
        first = outputs[0, _CERTAIN] == sign
        second = outputs[1, _CERTAIN] == sign
        if room < 0.0 or (first and second and room < total):
            return 0.0, -1.0
        if first:
            high = min(high, room)
        if second:
            low = max(low, total - room)
    return low, high


@kernel("(int64, float64[:, ::1], float64[:, ::1], float64[::1], float64[:, ::1], float64[::1])")
def fill_points(first_line, box, outputs, law, points, outside):
    """Fill ``points`` with the points of whole lines, from the line of the given number on.

    The outputs from 1 on have the ranges ``(first, number)`` of the rows of ``box``; a line leaves
    those from 2 on as they are. What it leaves out of Q and of P within the box is added to
    ``outside``, in units of ``exp(law[_LOG_WINDOW])``. Returns the number of the next line, 0 at
    the end, and of points.
    """
    n_outputs = outputs.shape[0]
    counts = np.empty(n_outputs)
    nodes = np.empty((8, _MOST_NODES + 1))
    n_lines = 1
    for y in range(1, box.shape[0]):
        n_lines *= int(box[y, 1])
    share = outputs[0, _MEAN] / (outputs[0, _MEAN] + outputs[1, _MEAN])
    cursor = 0
    for line in range(first_line, n_lines):
        rest = line
        total = law[_N]
        for y in range(2, n_outputs):
            width = int(box[y - 1, 1])
            counts[y] = box[y - 1, 0] + rest % width
            rest //= width
            total -= counts[y]
        if total < 0.0:
            continue
        low, high = line_ends(total, counts, outputs, law)
        low = max(low, total - box[0, 0] - box[0, 1] + 1.0)
        high = min(high, total - box[0, 0])
        if low > high:
            continue
        if cursor + int(high - low) + 1 > points.shape[0]:
            return line, cursor
        center = min(max(math.floor(total * share + 0.5), low), high)
        for side in range(2):
            # the right half of the line, then the left one
            counts[0] = center - side
            counts[1] = total - counts[0]
            room = int(center - low if side == 1 else high - center + 1.0)
            n_points, rest_q, rest_p = scan_line(
                side, 1 - side, counts, outputs, law, nodes, points[cursor : cursor + room]
            )
            cursor += n_points
            outside[0] += math.exp(rest_q - law[_LOG_WINDOW])
            outside[1] += math.exp(rest_p - law[_LOG_WINDOW])
    return 0, cursor


@kernel("(float64, float64, float64, float64[::1])")
def add_scaled(log_scale, excess, slope, tail):
    """Add ``exp(log_scale) (excess, slope)`` to ``tail``: a log scale and sums relative to it."""
    if log_scale > tail[0]:
        fade = math.exp(tail[0] - log_scale)
        tail[0] = log_scale
        tail[1] = fade * tail[1] + excess
        tail[2] = fade * tail[2] + slope
    elif log_scale > -math.inf:
        grow = math.exp(log_scale - tail[0])
        tail[1] += grow * excess
        tail[2] += grow * slope


@kernel("(float64[:, ::1], float64[:, ::1])")
def fill_tail_sums(points, sums):
    """Fill ``sums`` with the tails of points in the order of their losses, a row a stride.

    A row is the first loss e of the stride, and `add_to_tail` of all from it on at epsilon = e.
    """
    tail = np.array([-math.inf, 0.0, 0.0])
    for stride in range(sums.shape[0] - 1, -1, -1):
        first = stride * POINTS_A_STRIDE
        loss = points[first, 0]
        if stride < sums.shape[0] - 1:
            following = sums[stride + 1, 0]
            gap = following - loss if loss < following else 0.0  # also for two infinite losses
            tail[1] -= math.expm1(-gap) * tail[2]
            tail[2] *= math.exp(-gap)
        for p in range(first, min(first + POINTS_A_STRIDE, points.shape[0])):
            gap = points[p, 0] - loss if loss < points[p, 0] else 0.0
            add_scaled(points[p, 1], -math.expm1(-gap), math.exp(-gap), tail)
        sums[stride, 0] = loss
        sums[stride, 1] = tail[0]
        sums[stride, 2] = tail[1]
        sums[stride, 3] = tail[2]


@kernel("(float64, float64[:, ::1], float64[:, ::1], float64[::1])")
def add_to_tail(epsilon, points, sums, tail):
    """Add the points of losses L > epsilon, of masses M, to ``tail``, in O(log) of their number.

    ``tail`` holds a log scale and, relative to it, the sums of ``M (1 - exp(epsilon - L))`` and of
    ``M exp(epsilon - L)``. All terms are positive: nothing cancels.
    """
    low = -1
    high = sums.shape[0]
    while high - low > 1:
        middle = (low + high) // 2
        if sums[middle, 0] > epsilon:
            high = middle
        else:
            low = middle
    if low >= 0:
        first = low * POINTS_A_STRIDE
        for p in range(first, min(first + POINTS_A_STRIDE, points.shape[0])):
            gap = points[p, 0] - epsilon
            if gap > 0.0:
                add_scaled(points[p, 1], -math.expm1(-gap), math.exp(-gap), tail)
    if high < sums.shape[0]:
        gap = sums[high, 0] - epsilon
        fade = math.exp(-gap)
        excess = sums[high, 2] - math.expm1(-gap) * sums[high, 3]
        add_scaled(sums[high, 1], excess, fade * sums[high, 3], tail)


@kernel("(float64, float64, float64[:, ::1], float64[::1])")
def add_to_divergence(order_excess, sign, points, partial):
    """Add the points of one sign of the loss to ``partial``; a nan order asks for Jensen-Shannon.

    ``partial`` holds the sum of the terms of `fastshuffle._kernels.divergence.renyi_term`, and the
    sum of ``P (P / Q)**order_excess`` as a log scale and a number relative to it.
    """
    point = np.empty(4)
    for p in range(points.shape[0]):
        larger, loss = points[p, 1], points[p, 0]
        point[0] = larger if sign > 0.0 else larger - loss
        point[1] = larger - loss if sign > 0.0 else larger
        point[2] = math.expm1(sign * loss)
        if math.isnan(order_excess):
            partial[0] += jensen_shannon_term(point)
            continue
        partial[0] += renyi_term(order_excess, point)
        power = point[0]
        if power > -math.inf and order_excess != 0.0:
            power += order_excess * sign * loss
        if power > partial[1]:
            partial[2] *= math.exp(partial[1] - power)
            partial[1] = power
        if power > -math.inf:
            partial[2] += math.exp(power - partial[1])
