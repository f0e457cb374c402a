"""Sums of coefficients of a product of powers of linear forms, by the inversion of a transform.

After the tilt of `fastshuffle._kernels.form_tilt` the transform of the numbers of labels is
``prod_i phi_i**c_i``, ``phi_i = sum_j t_ij exp(i theta_j)`` with theta_0 = 0, and a coefficient is
its mean over a grid of the torus against ``exp(-i theta . target)``. Lengths and cuts of the grid
are those of `fastshuffle._kernels.group_contour`, variable by variable: what is left out is below
``exp(-exponent)``. Nodes are visited variable by variable, and none beyond where

    -log prod_i |phi_i|**c_i >= sum_i c_i sum_{j < l} t_ij t_il (1 - cos(theta_j - theta_l)),

whose terms so far are a bound for all that follow, exceeds the exponent: what remains is a ball,
not a box, of a few times (2 exponent)**dimension / (2 pi)**dimension nodes for all numbers of
messages. Every tilt gives the same sum, so that the saddle point need not be exact; where the
labels are settled it lies at infinity, and the tilt stops at exp(200).
"""

import math

import numpy as np

from fastshuffle._kernels._jit import kernel
from fastshuffle._kernels.form_tilt import arc, log_one_plus, solve_positive

# What a factor left out adds to the exponent, 1/2 at most, and the weights.
_MARGIN = 3.0
# A form this small counts as no smaller, so that the product without it is not lost.
_ZERO = 1e-15


@kernel("(float64, float64, float64, float64)")
def grid_of_variable(variance, free_variance, messages, exponent):
    """Return the transform length in one variable and its nodes besides 0 on either side.

    ``variance`` is that of a label's number, ``free_variance`` that given all other numbers.
    """
    third = exponent / 3.0
    length = third + math.sqrt(third * third + 2.0 * exponent * variance)
    length = min(length, messages + 1.0)
    n_nodes = int(length)
    if free_variance > 0.5 * exponent:
        widest = 2.0 * math.asin(math.sqrt(0.5 * exponent / free_variance))
        n_nodes = int(widest * length / (2.0 * math.pi)) + 1
    if 2 * n_nodes + 1 >= length:  # the whole period, an odd number of nodes
        n_nodes = math.ceil(0.5 * (length - 1.0))
        length = 2.0 * n_nodes + 1.0
    return length, n_nodes


@kernel("(float64[:, ::1], float64, float64, float64[::1], float64[::1])")
def set_up_grid(covariance, messages, exponent, steps, numbers):
    """Fill the angle between nodes and the number of nodes on either side of 0, a variable each."""
    size = covariance.shape[0]
    unit = np.zeros(size)
    column = np.empty(size)
    factor = np.empty((size, size))
    for i in range(size):
        for p in range(size):
            unit[p] = 1.0 if p == i else 0.0
            for q in range(size):
                factor[p, q] = covariance[p, q]
        solve_positive(factor, unit, column)
        length, n_nodes = grid_of_variable(
            covariance[i, i], 1.0 / max(column[i], 1e-300), messages, exponent
        )
        steps[i] = 2.0 * math.pi / length
        numbers[i] = n_nodes


@kernel("(float64[::1], float64[:, ::1], float64[:, ::1], float64[::1], float64[:, ::1])")
def product_at_node(powers, tilted, waves, offsets, forms):
    """Return log size and phase of the product at a node, and the log size of its smallest form.

    ``waves`` has rows (1 - cos theta, sin theta, theta), a variable each; ``offsets`` is the
    distance of the mean numbers of labels from those wanted; ``forms`` is filled with the forms.
    """
    size = waves.shape[0]
    log_size = 0.0
    smallest = 0.0
    phase = 0.0
    for i in range(size):
        phase += offsets[i] * waves[i, 2]
    for y in range(powers.shape[0]):
        power = powers[y]
        if power == 0.0:
            continue
        defect = 0.0
        sine = 0.0
        mean = 0.0
        for i in range(size):
            share = tilted[y, i + 1]
            defect += share * waves[i, 0]
            sine += share * waves[i, 1]
            mean += share * waves[i, 2]
        real = 1.0 - defect
        excess = (defect * defect + sine * sine) - 2.0 * defect
        if excess > -0.5:
            log_square = log_one_plus(excess)
        else:
            square = real * real + sine * sine
            if square < _ZERO * _ZERO:
                real, sine, square = _ZERO, 0.0, _ZERO * _ZERO
            log_square = math.log(square)
        log_size += 0.5 * power * log_square
        smallest = min(smallest, 0.5 * log_square)
        phase += power * (arc(sine, real) - mean)
        forms[y, 0] = real
        forms[y, 1] = sine
    return log_size, phase, smallest


@kernel("(float64, float64, float64[:, ::1], float64[:, ::1], float64[::1])")
def add_without_a_factor(wave, phase, weights, forms, sums):
    """Add the product times ``sum_y weights_y / phi_y``: one factor is left out."""
    wave_real = wave * math.cos(phase)
    wave_imaginary = wave * math.sin(phase)
    for y in range(weights.shape[0]):
        if weights[y, 0] == 0.0 and weights[y, 1] == 0.0:
            continue
        real, sine = forms[y, 0], forms[y, 1]
        part = (wave_real * real + wave_imaginary * sine) / (real * real + sine * sine)
        for w in range(3):
            sums[w] += weights[y, w] * part


@kernel("(float64, float64, float64[:, ::1], float64[:, ::1], float64[::1])")
def add_with_a_label(wave, phase, weights, waves, sums):
    """Add the product times ``sum_j weights_j exp(i theta_j)``: one label is put in."""
    wave_real = wave * math.cos(phase)
    wave_imaginary = wave * math.sin(phase)
    for j in range(weights.shape[0]):
        part = wave_real
        if j > 0:
            part -= wave_real * waves[j - 1, 0] + wave_imaginary * waves[j - 1, 1]
        for w in range(3):
            sums[w] += weights[j, w] * part


@kernel(
    "(float64[::1], float64[::1], float64[:, ::1], float64[:, ::1], float64, float64[:, ::1],"
    " float64[:, ::1], float64[::1])"
)
def sum_over_nodes(powers, target, tilted, covariance, exponent, form_weights, label_weights, sums):
    """Fill three weighted sums of coefficients and the sum of the sizes of the nodes.

    Weights have a row (beta, alpha, beta - alpha): one for each form, where one factor of it is to
    be left out, or for each label, where one is to be put in; and none of the other kind. Label 0
    adds nothing, so that its weight alone gives the coefficient itself. The sums are over nodes:
    returned is the reciprocal of their number, which makes them means.
    """
    size = covariance.shape[0]
    n_forms = powers.shape[0]
    messages = 1.0
    for y in range(n_forms):
        messages += powers[y]
    steps = np.empty(size)
    numbers = np.empty(size)
    place = np.empty(size)
    bounds = np.zeros(size + 1)
    offsets = np.empty(size)
    waves = np.empty((size, 3))
    forms = np.empty((n_forms, 2))
    set_up_grid(covariance, messages, exponent, steps, numbers)
    for i in range(size):
        offsets[i] = -target[i + 1]
        for y in range(n_forms):
            offsets[i] += powers[y] * tilted[y, i + 1]
    for w in range(4):
        sums[w] = 0.0
    i = 0
    place[0] = 0.0
    while i >= 0:
        angle = place[i] * steps[i]
        half_sine = math.sin(0.5 * angle)
        waves[i, 0] = 2.0 * half_sine * half_sine
        waves[i, 1] = math.sin(angle)
        waves[i, 2] = angle
        total = bounds[i] + covariance[i, i] * waves[i, 0]
        for j in range(i):
            # of the pair (0, i) the weight is the row sum of the covariance
            far = waves[j, 0] - waves[j, 0] * waves[i, 0] - waves[j, 1] * waves[i, 1]
            total -= covariance[i, j] * far
        for j in range(i + 1, size):
            total += covariance[i, j] * waves[i, 0]
        if total <= exponent + _MARGIN:
            if i + 1 < size:
                bounds[i + 1] = total
                i += 1
                place[i] = -numbers[i]
                continue
            log_size, phase, smallest = product_at_node(powers, tilted, waves, offsets, forms)
            if log_size - smallest >= -exponent - _MARGIN:
                # nodes come in conjugate pairs, of which one is visited
                wave = math.exp(log_size) * (1.0 if place[0] == 0.0 else 2.0)
                add_without_a_factor(wave, phase, form_weights, forms, sums)
                add_with_a_label(wave, phase, label_weights, waves, sums)
                sums[3] += wave
        place[i] += 1.0
        while i >= 0 and place[i] > numbers[i]:
            i -= 1
            if i >= 0:
                place[i] += 1.0
    cell = 1.0
    for v in range(size):
        cell *= steps[v] / (2.0 * math.pi)
    return cell
