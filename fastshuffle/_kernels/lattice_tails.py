"""Sums over the points of a lattice, a point its privacy loss and the log of its larger mass.

Where only losses above epsilon count, the points lie in the order of their losses and the sums of
whole strides are kept.
"""

import math

import numpy as np

from fastshuffle._kernels._jit import kernel
from fastshuffle._kernels.divergence import jensen_shannon_term, renyi_term

# Points whose tail sums are kept together; between them a tail is summed point by point.
POINTS_A_STRIDE = 256


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
