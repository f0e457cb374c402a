"""The privacy loss of single histograms where the rows of the others share a common part.

Every other user sends, with probability ``1 - b``, a message of a common law a, and otherwise the
one output of the user's own input: so it is in k-ary randomized response. Let c_y of the others
have y as their own output, ``X_y ~ Bin(c_y, b)`` the number of those who send it so, and M the
number of common messages. Given all X the common messages are multinomial, M! in their law being
the one factor in which the outputs hang together; and since ``M! = int lam**M exp(-lam) d lam``,

    R_N = Pr[the histogram of the others is N] = int_0^inf prod_y h_y(N_y; lam) d lam,

h_y the law of ``Bin(c_y, b) + Poisson(lam a_y)``. The integrand is positive, and nearly that of a
gamma law: in w = log lam the trapezoid rule converges geometrically. Every h_y is found by a
contour as in `fastshuffle._kernels.group_contour`, and with it ``h_y(N_y - 1)``, so that

    P(N) / Q(N) = sum_y W_b(y) R_{N - e_y} / sum_y W_a(y) R_{N - e_y}

costs some 30 contours an output, whatever the counts and however many inputs and outputs.
"""

import math

import numpy as np

from fastshuffle._kernels._jit import kernel
from fastshuffle._kernels.form_nodes import grid_of_variable
from fastshuffle._kernels.form_tilt import arc, log_one_plus
from fastshuffle._kernels.label_ratio import loss_of_sums

_NEGLIGIBLE_EXPONENT = 34.0
_MOST_STEPS = 100
# A mass below this, next to one that is tilted to be of the order of 1, has lost digits.
_PRECISE = 1e-5


@kernel("(float64,)")
def step_of_logs(rate):
    """Return a step in log lam whose error is below exp(-34), for a peak at this rate.

    The error is ``|Gamma(a + i t)| / Gamma(a)``, t = 2 pi / step and a = M + 1, which is below
    ``exp(-36)`` from about ``t**2 = 600 + 76 a`` on; a stands eight deviations above the peak.
    """
    highest = rate + 8.0 * math.sqrt(rate) + 10.0
    return 2.0 * math.pi / math.sqrt(600.0 + 76.0 * highest)


@kernel("(float64, float64, float64, float64, float64)")
def tilt_to(count, holders, own, other, rate):
    """Return a tilt s with which Bin(holders, own) + Poisson(rate) has a mean of about count.

    Within a tenth of a deviation, by Newton's method on the logarithm of the mean. ``other`` is
    1 - own.
    """
    s = math.log(count / (holders * own + rate))
    for _ in range(_MOST_STEPS):
        growth = math.exp(s)
        share = own * growth / (other + own * growth)
        mean = holders * share + rate * growth
        variance = holders * share * other / (other + own * growth) + rate * growth
        gap = count - mean
        if gap * gap <= 0.01 * variance:
            break
        s += min(max(math.log(count / mean) * mean / variance, -2.0), 2.0)
    return s


@kernel("(float64, float64, float64, float64, float64)")
def masses_by_contour(count, holders, own, other, rate):
    """Return log h(count), and h(count - 1) / h(count) and that of the tilted law; count >= 1."""
    s = tilt_to(count, holders, own, other, rate)
    growth = math.exp(s)
    share = own * growth / (other + own * growth)
    tilted_rate = rate * growth
    variance = holders * share * other / (other + own * growth) + tilted_rate
    length, n_nodes = grid_of_variable(variance, variance, math.inf, _NEGLIGIBLE_EXPONENT)
    offset = (holders * share - count) + tilted_rate
    step = 2.0 * math.pi / length
    mass = 0.5
    before = 0.5
    for m in range(1, n_nodes + 1):
        angle = m * step
        half_sine = math.sin(0.5 * angle)
        fall = 2.0 * half_sine * half_sine
        wave = math.sin(angle)
        defect = share * fall
        sine = share * wave
        excess = (defect * defect + sine * sine) - 2.0 * defect
        square = max(1.0 + excess, 1e-280)
        log_size = 0.5 * holders * (log_one_plus(excess) if excess > -0.5 else math.log(square))
        log_size -= tilted_rate * fall
        phase = holders * (arc(sine, 1.0 - defect) - share * angle)
        phase += tilted_rate * (wave - angle) + offset * angle
        size = math.exp(log_size)
        mass += size * math.cos(phase)
        before += size * math.cos(phase + angle)
    log_mass = holders * math.log(other + own * growth) + rate * math.expm1(s) - s * count
    return log_mass + math.log(2.0 * mass / length), growth * before / mass, before / mass


@kernel("(float64, float64, float64, float64, float64)")
def own_and_common(count, holders, own, other, rate):
    """Return the log of h(count) but for a constant in rate, and h(count - 1) / h(count)."""
    if count == 0.0:
        return -rate, 0.0
    if holders == 0.0 or own == 0.0:
        return count * math.log(rate) - rate, count / rate
    log_mass, ratio, tilted_ratio = masses_by_contour(count, holders, own, other, rate)
    if tilted_ratio < _PRECISE:  # it has lost digits, and takes a tilt of its own
        log_before = holders * math.log(other) - rate
        if count > 1.0:
            log_before, _, _ = masses_by_contour(count - 1.0, holders, own, other, rate)
        ratio = math.exp(log_before - log_mass)
    return log_mass, ratio


@kernel("(float64[::1], float64[::1], float64, float64, float64[::1], float64)")
def slope(counts, holders, own, other, common, log_rate):
    """Return about the derivative of the log of the integrand in log lam."""
    rate = math.exp(log_rate)
    total = 1.0
    for y in range(counts.shape[0]):
        if counts[y] == 0.0:
            total -= rate * common[y]
        else:
            tilt = tilt_to(counts[y], holders[y], own, other, rate * common[y])
            total += rate * common[y] * math.expm1(tilt)
    return total


@kernel("(float64[::1], float64[::1], float64, float64, float64[::1])")
def peak(counts, holders, own, other, common):
    """Return about where the integrand is largest in log lam, to a fifth of a deviation."""
    low = -10.0
    high = math.log(counts.sum() + 2.0)
    while high - low > 0.2 / math.sqrt(1.0 + math.exp(low)):
        middle = 0.5 * (low + high)
        if slope(counts, holders, own, other, common, middle) > 0.0:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


@kernel("(float64[:, ::1], float64[::1], float64, float64[::1], float64[:, ::1], float64[::1])")
def fill_losses_by_common_part(histograms, holders, own, common, ratios, losses):
    """Fill the privacy losses log(P / Q) of histograms, one a row.

    ``common`` is (1 - b) a, which is positive, ``own`` is b, and ``ratios`` has a row
    (W_b(y), W_a(y), W_b(y) - W_a(y)) an output.
    """
    other = common.sum()
    law = common / other
    sums = np.empty(3)
    for h in range(histograms.shape[0]):
        counts = histograms[h]
        center = peak(counts, holders, own, other, law)
        step = step_of_logs(math.exp(center))
        top = -math.inf
        for w in range(3):
            sums[w] = 0.0
        for direction in (1.0, -1.0):
            place = 0.0 if direction > 0.0 else -1.0
            while True:
                log_rate = center + place * step
                rate = math.exp(log_rate)
                log_product = log_rate
                beta = alpha = gap = 0.0
                without_one = 0.0
                for y in range(counts.shape[0]):
                    log_mass, ratio = own_and_common(
                        counts[y], holders[y], own, other, rate * law[y]
                    )
                    log_product += log_mass
                    without_one += ratio
                    beta += ratios[y, 0] * ratio
                    alpha += ratios[y, 1] * ratio
                    gap += ratios[y, 2] * ratio
                log_size = log_product + math.log(without_one)
                if place == 0.0:
                    top = log_size
                weight = math.exp(log_product - top)
                sums[0] += weight * beta
                sums[1] += weight * alpha
                sums[2] += weight * gap
                if log_size - top < -_NEGLIGIBLE_EXPONENT:
                    break
                place += direction
        losses[h] = loss_of_sums(sums[0], sums[1], sums[2])
