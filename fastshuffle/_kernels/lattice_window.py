"""Two neighbouring histogram laws on a window of the lattice, line by line.

Along a line both laws are log-concave: their generating polynomial is a product of linear forms
with non-negative coefficients, hence stable, so the line is the coefficient sequence of a
real-rooted polynomial. A geometric series bounds what is left of a line, at either end.
"""

import math

import numpy as np

from fastshuffle._kernels._jit import kernel
from fastshuffle._kernels.lattice_block import MOST_NODES, next_sums, start_block
from fastshuffle._kernels.lattice_laws import (
    AT_K,
    AT_LOG_LINE,
    AT_LOG_WINDOW,
    AT_N,
    AT_SCALE,
    CERTAIN,
    FREE,
    MEAN,
    label_kind,
    settled_point,
)

# Rounding grows with the length of a block; at this length the set-up no longer matters.
_LONGEST_BLOCK = 128


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
    log_limit = law[AT_LOG_LINE]
    log_q = log_p = -math.inf
    size = 16
    p = 0
    while p < points.shape[0]:
        kind, only_b, only_a = label_kind(counts, outputs, law)
        n_nodes = 0
        end = p + 1
        weight = 1.0
        if kind == FREE:
            # a block ends before the labels are settled
            room = 1.0 * (points.shape[0] - p)
            if outputs[i, CERTAIN] > 0.0 and outputs[j, CERTAIN] <= 0.0:
                room = min(room, law[AT_K] - only_b)
            if outputs[i, CERTAIN] < 0.0 and outputs[j, CERTAIN] >= 0.0:
                room = min(room, law[AT_N] - law[AT_K] - only_a)
            size = int(min(room, 2.0 * size, 1.0 * _LONGEST_BLOCK))
            size, n_nodes = start_block(i, j, size, counts, outputs, law, nodes, block)
            end = p + size
        while p < end:
            previous_q, previous_p = log_q, log_p
            if kind == FREE:
                mass, weighted = next_sums(n_nodes, nodes)
                log_q = block[0] + math.log(weight * mass)
                excess = law[AT_SCALE] * weighted / mass
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
    for sign, limit in ((1.0, law[AT_K] + 1.0), (-1.0, law[AT_N] - law[AT_K])):
        # messages that only one input sends are no more than the users who hold it
        room = limit
        for y in range(2, counts.shape[0]):
            if outputs[y, CERTAIN] == sign:
                room -= counts[y]
        first = outputs[0, CERTAIN] == sign
        second = outputs[1, CERTAIN] == sign
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
    ``outside``, in units of ``exp(law[AT_LOG_WINDOW])``. Returns the number of the next line, 0 at
    the end, and of points.
    """
    n_outputs = outputs.shape[0]
    counts = np.empty(n_outputs)
    nodes = np.empty((8, MOST_NODES + 1))
    n_lines = 1
    for y in range(1, box.shape[0]):
        n_lines *= int(box[y, 1])
    share = outputs[0, MEAN] / (outputs[0, MEAN] + outputs[1, MEAN])
    cursor = 0
    for line in range(first_line, n_lines):
        rest = line
        total = law[AT_N]
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
            outside[0] += math.exp(rest_q - law[AT_LOG_WINDOW])
            outside[1] += math.exp(rest_p - law[AT_LOG_WINDOW])
    return 0, cursor
