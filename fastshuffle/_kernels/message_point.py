"""Masses of a pair whose differing user sends several messages, and their ratio, at one point.

Let ``P = R * Bin(m, p1)`` and ``Q = R * Bin(m, p0)``. With ``A = q1 + p1 z`` and ``B = q0 + p0 z``
the generating function of P - Q is that of R times

    A**m - B**m = B**m expm1(m log1p((p1 - p0)(z - 1) / B)),

which has its relative accuracy where the two laws nearly agree. So P, Q and P - Q are sums over the
same nodes (`fastshuffle._kernels.group_contour`), tilted to the point for messages of which one
half is sent under either law. Where the two laws are so far apart that this tilt suits neither,
both masses are sums of their own, and they do not cancel.
"""

import math

import numpy as np

from fastshuffle._kernels._jit import kernel
from fastshuffle._kernels.binomial_groups import copy_row, log_mass, log_upper_tail
from fastshuffle._kernels.group_contour import contour_nodes, odd_exponent, series_terms
from fastshuffle._kernels.group_tilt import saddle_point, tilt_group, tilt_groups

# Distance of the two laws, in standard deviations, up to which they share their nodes.
_NEAR = 2.0


@kernel("(float64, float64[:, ::1], float64[:, ::1], float64[:, :, ::1])")
def message_rows(messages, groups, pair, rows):
    """Write the groups of Q, of P and of half the messages of either into ``rows``.

    ``pair`` has the rows of Q and of P, ``(p, q, log p, log q, p of this row minus the other)``.
    What is certain, or unused, has no trials in the last.
    """
    n_others = groups.shape[0]
    for law in range(3):
        for g in range(n_others):
            copy_row(groups[g], rows[law, g])
        for own in range(2):
            row = rows[law, n_others + own]
            for column in range(4):
                row[column + 1] = pair[own, column]
            row[0] = 0.0
            if law == own:
                row[0] = messages
            elif law == 2 and pair[own, 2] > -math.inf and pair[own, 3] > -math.inf:
                row[0] = 0.5 * messages


@kernel("(float64, float64, float64[:, ::1], float64, float64[::1])")
def end_point(x, messages, pair, log_others, point):
    """Write ``(log P, log Q, u)`` where no message counts, x = 0, or where all of them do."""
    column = 3 if x == 0.0 else 2
    for law in range(2):
        point[1 - law] = messages * pair[law, column] + log_others
    null = pair[0, column - 2]
    change = pair[0, 4] if x == 0.0 else pair[1, 4]
    point[2] = math.inf
    if null > 0.0:
        ratio = change / null
        point[2] = -1.0
        if ratio > -1.0:
            point[2] = math.expm1(messages * math.log1p(ratio))


@kernel(
    "(float64, float64, float64, float64[:, ::1], float64[:, :, ::1], float64[:, ::1],"
    " float64[::1])"
)
def near_point(x, s, messages, pair, rows, tilted, point):
    """Write ``(log P, log Q, u)`` at x from the nodes of a tilt by s."""
    n_others = rows.shape[1] - 2
    moments = np.empty(6)
    tilt_groups(s, rows[0], tilted, moments)
    own = np.empty(4)
    tilt_group(s, rows[1, n_others + 1], own)
    t0, u0 = tilted[n_others, 0], tilted[n_others, 1]
    t1, u1 = own[0], own[1]
    offset = (x - moments[0]) - moments[1]
    rest = moments[3] - messages * t0 * u0
    least = rest + messages * min(t0 * u0, t1 * u1)
    most = rest + messages * max(t0 * u0, t1 * u1)
    width = messages * abs(t1 - t0)
    short, n_short = contour_nodes(least)
    length, _ = contour_nodes(most)
    length += 2.0 * (width + abs(offset))
    n_nodes = int(n_short * (length / short)) + 1
    trials = 0.0
    for g in range(n_others + 1):
        trials += rows[0, g, 0]
    if 2 * n_nodes + 1 >= length:
        # the whole period, an odd number of nodes, no more than the support needs
        n_nodes = int(0.5 * min(length, trials + 2.0)) + 1
        length = 2.0 * n_nodes + 1.0
    step = 2.0 * math.pi / length
    n_terms = series_terms(math.tan(0.5 * n_nodes * step))
    difference = pair[1, 4]
    p0, q0 = pair[0, 0], pair[0, 1]
    # all relative to the tilted B at theta = 0; e**s and e**s - 1 over the larger of 1 and e**s
    fade = math.exp(-abs(s))
    grow, one, rise = (1.0, fade, -math.expm1(-s)) if s >= 0.0 else (fade, 1.0, math.expm1(s))
    null = q0 * one + p0 * grow
    log_ratio = messages * math.log1p(difference * rise / null)
    sum_p = 0.5 * math.exp(log_ratio)
    sum_q = 0.5
    sum_u = 0.5 * math.expm1(log_ratio)
    for j in range(1, n_nodes + 1):
        theta = j * step
        half = 0.5 * theta
        sine = math.sin(half)
        cosine = math.cos(half)
        tangent = sine / cosine
        square = sine * sine
        real = 0.0
        imaginary = 0.0
        for g in range(n_others):
            t, u = tilted[g, 0], tilted[g, 1]
            real += 0.5 * rows[0, g, 0] * math.log1p(-4.0 * t * u * square)
            imaginary += rows[0, g, 0] * odd_exponent(t, u, tangent, n_terms)
        phase = imaginary - offset * theta
        real_q = real + 0.5 * messages * math.log1p(-4.0 * t0 * u0 * square)
        real_p = real + 0.5 * messages * math.log1p(-4.0 * t1 * u1 * square) + log_ratio
        phase_q = phase + messages * odd_exponent(t0, u0, tangent, n_terms)
        phase_p = phase + messages * (odd_exponent(t1, u1, tangent, n_terms) + (t1 - t0) * theta)
        wave_q = math.exp(real_q) * math.cos(phase_q)
        wave_p = math.exp(real_p) * math.cos(phase_p)
        sum_q += wave_q
        sum_p += wave_p
        # the argument of log1p, a quotient of complex numbers
        sine_full = 2.0 * sine * cosine
        top_real = difference * (rise - 2.0 * grow * square)
        top_imaginary = difference * grow * sine_full
        below_real = null - 2.0 * p0 * grow * square
        below_imaginary = p0 * grow * sine_full
        size = below_real * below_real + below_imaginary * below_imaginary
        if not top_real * top_real + top_imaginary * top_imaginary < 0.25 * size:
            sum_u += wave_p - wave_q
            continue
        w_real = (top_real * below_real + top_imaginary * below_imaginary) / size
        w_imaginary = (top_imaginary * below_real - top_real * below_imaginary) / size
        gain = (
            0.5
            * messages
            * math.log1p(2.0 * w_real + (w_real * w_real + w_imaginary * w_imaginary))
        )
        turn = messages * math.atan2(w_imaginary, 1.0 + w_real)
        # exp(gain + i turn) - 1
        sine = math.sin(0.5 * turn)
        excess_real = math.expm1(gain) * math.cos(turn) - 2.0 * sine * sine
        excess_imaginary = math.exp(gain) * math.sin(turn)
        sum_u += math.exp(real_q) * (
            math.cos(phase_q) * excess_real - math.sin(phase_q) * excess_imaginary
        )
    log_scale = math.log(2.0 / length) - (moments[5] + s * offset)
    point[0] = log_scale + math.log(sum_p) if sum_p > 0.0 else -math.inf
    point[1] = log_scale + math.log(sum_q) if sum_q > 0.0 else -math.inf
    point[2] = sum_u / sum_q


@kernel("(float64, float64, float64[:, ::1], float64[:, :, ::1], float64[:, ::1], float64[::1])")
def message_point(x, messages, pair, rows, tilted, point):
    """Write ``(log P, log Q, u, log tail)`` at x into ``point``, u = P / Q - 1.

    The tail bounds Pr[X >= x] under both from above; it is 1 unless x lies above the mean.
    """
    n_others = rows.shape[1] - 2
    others = 0.0
    mean = 0.0
    log_others = 0.0
    for g in range(n_others):
        others += rows[0, g, 0]
        mean += rows[0, g, 0] * rows[0, g, 1]
        log_others += rows[0, g, 0] * rows[0, g, 4 if x == 0.0 else 3]
    larger = max(pair[0, 0], pair[1, 0])
    law = 1 if pair[1, 0] >= pair[0, 0] else 0
    point[3] = log_upper_tail(x, rows[law]) if x > mean + messages * larger else 0.0
    if x == 0.0 or x == others + messages:
        end_point(x, messages, pair, log_others, point)
        return
    # the tilt of half the messages under either law, of which those that are certain do not count
    trials = others
    target = x
    n_free = 0
    for own in range(2):
        row = rows[2, n_others + own]
        trials += row[0]
        if row[0] == 0.0:
            target -= 0.5 * messages * pair[own, 0]
        else:
            n_free += 1
    if 0.0 < target < trials:
        free = rows[2]
        if n_free < 2:
            free = np.empty((n_others + n_free, 5))
            kept = 0
            for g in range(n_others + 2):
                if g < n_others or rows[2, g, 0] > 0.0:
                    copy_row(rows[2, g], free[kept])
                    kept += 1
        s = saddle_point(target, trials, free, tilted)
        variance = 0.0
        shares = np.empty((2, 4))
        for own in range(2):
            tilt_group(s, rows[own, n_others + own], shares[own])
        for g in range(n_others):
            tilt_group(s, rows[0, g], tilted[g])
            variance += rows[0, g, 0] * tilted[g, 0] * tilted[g, 1]
        variance += messages * min(shares[0, 0] * shares[0, 1], shares[1, 0] * shares[1, 1])
        width = messages * (shares[1, 0] - shares[0, 0])
        if width * width <= _NEAR * _NEAR * variance:
            near_point(x, s, messages, pair, rows, tilted, point)
            return
    point[0] = log_mass(x, rows[1])
    point[1] = log_mass(x, rows[0])
    point[2] = math.inf
    if point[1] > -math.inf:
        point[2] = math.expm1(point[0] - point[1])
