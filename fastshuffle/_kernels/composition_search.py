"""The worst composition of the other users, certified by branch and bound.

The other ``rest = n - 1`` users hold one of two inputs, k of them the second. Two upper bounds
hold for all k in a block [k_low, k_high] at once.

Revealing: post-processing cannot raise a hockey-stick divergence, and adding the messages of
independent users is post-processing; so dropping the ``k_high - k_low`` users who may hold
either input gives an upper bound. It loses the share of the dropped users.

Envelope: at fixed epsilon the tilt ``s = log c`` is the same for every k, and with
``d = x - m - 1/2``

    delta_k = alpha c exp(-KL_k) V(k, d),
    V(k, d) = (1/pi) int_0^pi Re[ exp(H_k(theta)) 2 i sin(theta/2) exp(-(s + i theta) d - s/2)
                                  / (1 - exp(-s - i theta)) ] d theta,

where KL_k and H_k are linear in k. The cut lies one above a mode of the tilted sum, and a mode
is within 1 of the mean (Darroch 1964), so -1/2 < d < 3/2; and d + m + 1/2 is an integer, which
leaves short intervals of d where m moves little over the block. V is therefore bounded over the
block by its values at the middle k on a grid of those d, plus remainders from the integrals of the
absolute values of dV/dk and of the second derivative in d, each an upper Riemann sum of monotone
factors. It loses only what the shapes of the two inputs differ by, next to nothing where all k
nearly tie.

References
----------
.. [1] J. N. Darroch, "On the Distribution of the Number of Successes in Independent Trials",
   Annals of Mathematical Statistics 35, 1964, the theorem on the mode.
"""

import math

import numpy as np

from fastshuffle._kernels._jit import kernel
from fastshuffle._kernels.binomial_groups import copy_row, count_trials, drop_certain_groups
from fastshuffle._kernels.group_contour import contour_nodes, odd_exponent, series_terms
from fastshuffle._kernels.group_tilt import tilt_groups
from fastshuffle._kernels.hockey_stick import crossing_tilt, hockey_stick, smallest_epsilon

# From here on the contour of the envelope's remainder ends before tan(theta / 2) = 1.
_ENVELOPE_VARIANCE = 110.0
_N_CELLS = 64
# Splits after which the search returns the bracket it has reached.
_MOST_SPLITS = 400_000


@kernel("(float64, float64, float64[:, ::1], float64[:, ::1])")
def compose_groups(zeros, ones, inputs, groups):
    """Write the groups of users at the two inputs into ``groups``."""
    copy_row(inputs[0], groups[0])
    copy_row(inputs[1], groups[1])
    groups[0, 0] = zeros
    groups[1, 0] = ones


@kernel("(float64, float64, float64, float64[:, ::1], float64[::1])")
def log_delta_of_counts(epsilon, zeros, ones, inputs, pair):
    """Return log delta when ``zeros`` and ``ones`` of the other users hold the two inputs."""
    composed = np.empty((2, 5))
    kept = np.empty((2, 5))
    compose_groups(zeros, ones, inputs, composed)
    n_kept, _ = drop_certain_groups(composed, kept)
    groups = kept[:n_kept]
    result = np.empty(3)
    hockey_stick(
        epsilon, count_trials(groups), groups, pair, np.empty((2, 4)), np.empty(6), np.empty(4),
        result,
    )  # fmt: skip
    return result[0]


@kernel("(float64, float64, float64, float64[:, ::1], float64[::1])")
def epsilon_of_counts(log_delta, zeros, ones, inputs, pair):
    """Return the inverse of `log_delta_of_counts` on its safe side."""
    composed = np.empty((2, 5))
    kept = np.empty((2, 5))
    compose_groups(zeros, ones, inputs, composed)
    n_kept, _ = drop_certain_groups(composed, kept)
    return smallest_epsilon(log_delta, kept[:n_kept], pair)


@kernel("(float64, float64, float64[::1])")
def _offset_grid(highest_mean, length, offsets):
    """Write a grid of the possible d into ``offsets``; return its size and its spacing.

    ``highest_mean`` is the largest mean over the block, up to an integer, and ``length`` by how
    much the mean moves: d lies at most ``length`` above an integer minus the highest mean and 1/2.
    """
    if length >= 0.5:
        for i in range(9):
            offsets[i] = 0.25 * i - 0.5
        return 9, 0.25
    start = -0.5 - highest_mean
    start -= math.floor(start) + 1.0
    size = 0
    for _ in range(3):
        if start + length > -0.5 and start < 1.5:
            lowest = max(start, -0.5)
            highest = min(start + length, 1.5)
            for i in range(3):
                offsets[size] = lowest + 0.5 * (highest - lowest) * i
                size += 1
        start += 1.0
    return size, 0.5 * length


@kernel("(float64, float64, float64[:, ::1], float64, float64)")
def _envelope_remainder(s, variance, tilted, half_width, spacing):
    # Upper Riemann sums of |d2V/dd2| and of |dV/dk|: on each cell the decreasing factor is taken
    # at its left end and the increasing ones at its right end.
    t0, u0, t1, u1 = tilted[0, 0], tilted[0, 1], tilted[1, 0], tilted[1, 1]
    b0, b1 = t0 - u0, t1 - u1
    variance_gap = abs(t1 * u1 - t0 * u0)
    odd_gap = abs(4.0 * t1 * u1 * b1 - 4.0 * t0 * u0 * b0)
    fall = -math.expm1(-s)
    decay = 1.0 - fall
    step = 2.0 * math.asin(math.sqrt(50.0 / variance)) / _N_CELLS
    curvature = 0.0
    slope = 0.0
    left = 0.0
    for j in range(1, _N_CELLS + 1):
        theta = j * step
        sine = math.sin(0.5 * theta)
        square = sine * sine
        cosine_square = 1.0 - square
        tangent = sine / math.sqrt(cosine_square)
        tangent_square = tangent * tangent
        size = math.exp(-2.0 * variance * left) * 2.0 * sine
        size /= math.sqrt(fall * fall + 4.0 * decay * square)
        curvature += size * (s * s + theta * theta)
        change = 2.0 * variance_gap * square / cosine_square
        change += (
            tangent
            * tangent_square
            * (odd_gap / 3.0 + abs(b1 - b0) * tangent_square / (1.0 - tangent_square))
        )
        slope += size * change
        left = square
    # what is cut off has |phi| <= exp(-100)
    unseen = 1e-40 * (1.0 + half_width)
    return (step / math.pi) * (0.125 * spacing * spacing * curvature + half_width * slope) + unseen


@kernel("(float64, float64, float64, float64, float64[:, ::1], float64[::1])")
def log_envelope(epsilon, k_low, k_high, rest, inputs, pair):
    """Return the log of the envelope bound on delta over a block, inf where it is not defined."""
    if inputs[0, 3] == -math.inf or inputs[1, 4] == -math.inf or epsilon >= pair[3]:
        return math.inf
    _, _, log_scaled_alpha, s = crossing_tilt(epsilon, pair)
    middle = np.floor(0.5 * (k_low + k_high))
    half_width = max(middle - k_low, k_high - middle)
    groups = np.empty((2, 5))
    compose_groups(rest - middle, middle, inputs, groups)
    tilted = np.empty((2, 4))
    moments = np.empty(6)
    tilt_groups(s, groups, tilted, moments)
    variance_slope = tilted[1, 0] * tilted[1, 1] - tilted[0, 0] * tilted[0, 1]
    least_variance = moments[3] - half_width * abs(variance_slope)
    if least_variance < _ENVELOPE_VARIANCE:
        return math.inf

    # the mean at the two ends of the block, relative to an integer; widened for rounding
    mean_slope = tilted[1, 0] - tilted[0, 0]
    if mean_slope > 0.5:  # one step of k moves the mean by almost an integer
        mean_slope = -(tilted[1, 1] + tilted[0, 0])
    elif mean_slope < -0.5:
        mean_slope = tilted[1, 0] + tilted[0, 1]
    mean = (moments[0] - math.floor(moments[0])) + moments[1]
    slack = 1e-9 + 1e-15 * half_width
    highest_mean = slack + mean + max((k_low - middle) * mean_slope, (k_high - middle) * mean_slope)
    offsets = np.empty(9)
    n_offsets, spacing = _offset_grid(
        highest_mean, (k_high - k_low) * abs(mean_slope) + 2.0 * slack, offsets
    )

    length, n_nodes = contour_nodes(moments[3])
    step = 2.0 * math.pi / length
    n_terms = series_terms(math.tan(0.5 * n_nodes * step))
    fall = -math.expm1(-s)
    decay = 1.0 - fall
    values = np.zeros(n_offsets)
    for j in range(1, n_nodes + 1):
        theta = j * step
        sine = math.sin(0.5 * theta)
        cosine = math.cos(0.5 * theta)
        square = sine * sine
        real = 0.0
        imaginary = 0.0
        for g in range(2):
            t, u = tilted[g, 0], tilted[g, 1]
            real += 0.5 * groups[g, 0] * math.log1p(-4.0 * t * u * square)
            imaginary += groups[g, 0] * odd_exponent(t, u, sine / cosine, n_terms)
        near = fall + 2.0 * decay * square
        far = 2.0 * decay * sine * cosine
        size = 2.0 * sine * math.exp(real) / (fall * fall + 4.0 * decay * square)
        for i in range(n_offsets):
            phase = imaginary - offsets[i] * theta
            values[i] += size * (math.cos(phase) * far - math.sin(phase) * near)
    largest = 0.0
    for i in range(n_offsets):
        largest = max(largest, math.exp(-s * (offsets[i] + 0.5)) * values[i])
    largest *= 2.0 / length
    if moments[2] < length:
        if s < 1e-200:
            largest += math.exp(moments[5]) / length
        else:
            largest += math.exp(moments[5] - s * length) * fall / -math.expm1(-s * length)
    largest += _envelope_remainder(s, least_variance, tilted, half_width, spacing)
    exponent_slope = tilted[1, 3] - tilted[0, 3]
    least_exponent = moments[5] + min(
        (k_low - middle) * exponent_slope, (k_high - middle) * exponent_slope
    )
    return log_scaled_alpha - least_exponent + math.log(largest)


@kernel("(float64, float64, float64, float64, float64[:, ::1], float64[::1])")
def log_block_bound(epsilon, k_low, k_high, rest, inputs, pair):
    """Return an upper bound on log delta over a block; for a single k it is log delta."""
    revealed = log_delta_of_counts(epsilon, rest - k_high, k_low, inputs, pair)
    if k_low == k_high:
        return revealed
    return min(revealed, log_envelope(epsilon, k_low, k_high, rest, inputs, pair))


@kernel("(float64[:, ::1], int64, float64[::1])")
def _push_block(heap, size, block):
    # a binary heap of rows (bound, direction, k_low, k_high), the largest bound at the root
    place = size
    while place > 0:
        parent = (place - 1) // 2
        if heap[parent, 0] >= block[0]:
            break
        copy_row(heap[parent], heap[place])
        place = parent
    copy_row(block, heap[place])


@kernel("(float64[:, ::1], int64, float64[::1])")
def _pop_block(heap, size, block):
    copy_row(heap[0], block)
    last = heap[size - 1]
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size - 1:
            break
        if child + 1 < size - 1 and heap[child + 1, 0] > heap[child, 0]:
            child += 1
        if heap[child, 0] <= last[0]:
            break
        copy_row(heap[child], heap[place])
        place = child
    copy_row(last, heap[place])


@kernel("(float64, float64, float64[::1], float64[:, :, ::1], float64[:, ::1], float64[::1])")
def search_compositions(epsilon, rest, limits, inputs, pairs, best):
    """Bracket the largest log delta over both directions and all k in 0..rest.

    ``limits`` holds the log tolerance, a floor (blocks with a bound below it need not be split)
    and a ceiling (the search may stop once a composition above it is known). ``best`` becomes the
    largest log delta found with its direction and k. Returns the upper end of the bracket.
    """
    tolerance, floor, ceiling = limits[0], limits[1], limits[2]
    best[0], best[1], best[2] = -math.inf, -1.0, -1.0
    heap = np.empty((256, 4))
    size = np.int64(0)
    block = np.empty(4)
    child = np.empty(4)
    for direction in range(2):
        for end in range(2):
            k = rest * end
            found = log_delta_of_counts(epsilon, rest - k, k, inputs[direction], pairs[direction])
            if found > best[0] or best[2] < 0.0:
                best[0], best[1], best[2] = found, direction, k
        child[0], child[1], child[2], child[3] = math.inf, direction, 0.0, rest
        _push_block(heap, size, child)
        size += 1
    for _ in range(_MOST_SPLITS):
        if size == 0:
            return best[0]
        upper = heap[0, 0]
        if upper <= max(best[0] + tolerance, floor) or best[0] > ceiling:
            return max(upper, best[0])
        _pop_block(heap, size, block)
        size -= 1
        direction = int(block[1])
        middle = np.floor(0.5 * (block[2] + block[3]))
        for half in range(2):
            k_low = block[2] if half == 0 else middle + 1.0
            k_high = middle if half == 0 else block[3]
            if k_low > k_high:
                continue
            bound = log_block_bound(
                epsilon, k_low, k_high, rest, inputs[direction], pairs[direction]
            )
            found = bound
            k = k_high if half == 0 else k_low
            if k_low < k_high:
                found = log_delta_of_counts(
                    epsilon, rest - k, k, inputs[direction], pairs[direction]
                )
                bound = min(bound, block[0])
            if found > best[0]:
                best[0], best[1], best[2] = found, direction, k
            if k_low == k_high:
                continue
            child[0], child[1], child[2], child[3] = bound, direction, k_low, k_high
            if size == heap.shape[0]:
                grown = np.empty((2 * size, 4))
                for i in range(size):
                    copy_row(heap[i], grown[i])
                heap = grown
            _push_block(heap, size, child)
            size += 1
    return max(heap[0, 0], best[0])


@kernel("(float64, float64, float64, float64[:, :, ::1], float64[:, ::1], float64[::1])")
def certified_epsilon(log_delta, rest, tolerance, inputs, pairs, best):
    """Return an epsilon at which every composition is certified to stay below log_delta.

    It is the exact epsilon of the worst composition found for a delta smaller by the tolerance,
    so it exceeds the worst-case epsilon by no more than that. Every composition is certified to
    stay half a tolerance below, so that a bracket of half a tolerance around the worst case does
    too. Returns -1 where the search could not certify it; ``best`` as in `search_compositions`.
    """
    limits = np.empty(3)
    target = log_delta - tolerance
    epsilon = 0.0
    for direction in range(2):
        for end in range(2):
            k = rest * end
            found = epsilon_of_counts(target, rest - k, k, inputs[direction], pairs[direction])
            epsilon = max(epsilon, found)
    while epsilon < math.inf:
        limits[0] = 0.0
        limits[1] = log_delta - 0.5 * tolerance
        limits[2] = log_delta - 0.75 * tolerance
        upper = search_compositions(epsilon, rest, limits, inputs, pairs, best)
        if best[0] <= limits[2]:
            return epsilon if upper <= limits[1] else -1.0
        direction = int(best[1])
        k = best[2]
        found = epsilon_of_counts(target, rest - k, k, inputs[direction], pairs[direction])
        if found <= epsilon:
            return -1.0
        epsilon = found
    return epsilon
