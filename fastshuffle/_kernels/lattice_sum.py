"""The positive part of a sum of independent lattice variables, as one sum over the unit circle.

``S = sum_g (n_g independent copies of A_g)``, A_g with atoms at integer positions. After the tilt
by s > 0 per step, with r = exp(-s - i theta), the truncated mean of values V attached to the
atoms, summed like S, is

    E[ V 1{S > 0} ] = exp(sum_g n_g K_g) (1/M) sum_j
        sum_g n_g (psi_g / phi_g) prod_h phi_h**n_h  r / (1 - r),

where K is the cumulant generating function at s, phi the tilted characteristic function, psi the
same sum weighted with the values, and theta_j = 2 pi j / M. With the positions as values it is
E[S_+]. The second derivative of |phi|**2 is at most twice the variance, so
from a node where ``|phi|**n`` is negligible, the first node where it may not be is known. The steps
between nodes double on the way out of a peak and halve on the way into one: the nodes visited grow
with the logarithm of n.
"""

import math

from fastshuffle._kernels._jit import kernel

_NEGLIGIBLE_EXPONENT = 42.0
# Atoms times nodes, some tenths of a second of work.
_MOST_VISITS = 5e6


@kernel("(float64, float64, float64[:, ::1], float64[:, ::1])")
def tilted_truncated_mean(s, length, atoms, groups):
    """Return ``E[V 1{S > 0}] exp(-sum n K)`` and the sum of its |terms|.

    ``length``, the number of nodes of a whole turn, is odd. ``atoms`` has rows (position minus the
    tilted mean of its group, tilted weight, value), group after group; ``groups`` has rows (first
    atom, number of atoms, n, tilted mean, tilted variance). A characteristic function is taken
    relative to its mean and as one minus a sum of positive terms, so that its n-th power keeps its
    relative accuracy. Nan stands for a sum too long to do.
    """
    step = 2.0 * math.pi / length
    fall = -math.expm1(-s)
    decay = 1.0 - fall
    total = 0.0
    size = 0.0
    visits_left = _MOST_VISITS / atoms.shape[0]
    j = 0.0
    while 2.0 * j < length:
        visits_left -= 1.0
        if visits_left < 0.0:
            return math.nan, math.nan
        theta = step * j
        log_size = 0.0
        phase = 0.0
        mean_real = 0.0
        mean_imaginary = 0.0
        negligible = False
        skipped = 0.0
        for g in range(groups.shape[0]):
            first = int(groups[g, 0])
            count = groups[g, 2]
            defect = 0.0
            sine_sum = 0.0
            value_cosine = 0.0
            value_sine = 0.0
            real_slope = 0.0
            imaginary_slope = 0.0
            for k in range(first, first + int(groups[g, 1])):
                half = 0.5 * atoms[k, 0] * theta
                half_sine = math.sin(half)
                versine = 2.0 * half_sine * half_sine
                sine = 2.0 * half_sine * math.cos(half)
                defect += atoms[k, 1] * versine
                sine_sum += atoms[k, 1] * sine
                real_slope -= atoms[k, 1] * atoms[k, 0] * sine
                imaginary_slope += atoms[k, 1] * atoms[k, 0] * (1.0 - versine)
                value_cosine += atoms[k, 1] * atoms[k, 2] * (1.0 - versine)
                value_sine += atoms[k, 1] * atoms[k, 2] * sine
            # phi = (1 - defect) + i sine_sum; then log |phi| and psi / phi
            real = 1.0 - defect
            excess = (defect * defect + sine_sum * sine_sum) - 2.0 * defect
            square = max(real * real + sine_sum * sine_sum, 1e-280)
            log_size += 0.5 * count * (math.log1p(excess) if excess > -0.5 else math.log(square))
            phase += count * (math.atan2(sine_sum, real) + groups[g, 3] * theta)
            mean_real += count * (value_cosine * real + value_sine * sine_sum) / square
            mean_imaginary += count * (value_sine * real - value_cosine * sine_sum) / square
            # |phi|**2 may rise to the negligible level no sooner than this quadratic does
            # of n factors psi / phi takes one away
            room = -excess - 1.0
            if count > 1.0:
                room = -excess + math.expm1(-2.0 * _NEGLIGIBLE_EXPONENT / (count - 1.0))
            if room > 0.0:
                negligible = True
                slope = 2.0 * (real * real_slope + sine_sum * imaginary_slope)
                root = math.sqrt(slope * slope + 4.0 * groups[g, 4] * room)
                reach = 2.0 * room / (slope + root)
                if slope < 0.0:
                    reach = 0.5 * (root - slope) / groups[g, 4]
                skipped = max(skipped, math.floor(reach / step))
        if not negligible:
            half_sine = math.sin(0.5 * theta)
            sine = math.sin(theta)
            near = fall + 2.0 * decay * half_sine * half_sine
            far = decay * sine
            # r / (1 - r) = exp(-s) exp(-i theta) (near - i far) / |1 - r|**2
            scale = math.exp(log_size - s) / (near * near + far * far)
            cosine = 1.0 - 2.0 * half_sine * half_sine
            tail_real = cosine * near - sine * far
            tail_imaginary = -sine * near - cosine * far
            wave_real = math.cos(phase) * mean_real - math.sin(phase) * mean_imaginary
            wave_imaginary = math.cos(phase) * mean_imaginary + math.sin(phase) * mean_real
            term = scale * (wave_real * tail_real - wave_imaginary * tail_imaginary)
            if j > 0.0:
                term *= 2.0
            total += term
            size += abs(term)
        j += 1.0 + skipped
    return total / length, size / length
