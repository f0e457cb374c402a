"""An upper bound on the curve of a user that holds whatever bits the others hold.

At a given epsilon the tilt ``s`` that names the cut is the same for all bits b of the others
(`fastshuffle._kernels.hockey_stick`), and

    delta_b = alpha c exp(-D_b) max_o V_b(o),
    V_b(o) = exp(-s o) (1/2 pi) int phi_b(theta) exp(-i o theta) K(theta) d theta,
    K(theta) = (exp(i theta) - 1) / (1 - exp(-s - i theta)),

with D_b the sum of the divergences of the tilted bits from the bits, phi_b their centred
characteristic function and o the cut less the tilted mean. D_b and log phi_b are sums over users.
A user's divergence is smallest at bit 1, and so is the variance, so that D_1 of all ones is the
least D; write ``d = D_b - D_1 >= 0``. The differences of log phi of the users with bit 0 are to
their differences of D in a ratio that hardly depends on the user: for d in a block, log phi_b lies
in a narrow rectangle at each theta, and so V_b near that of its centre. The bound is the largest
over blocks of d and a grid of o, with remainders for both; 0 <= o < 2 since the cut lies one above
a mode, and a mode is within 1 of the mean (J. N. Darroch, Annals of Mathematical Statistics 35,
1964). Another, ``|V_b| <= (1/2 pi) int |phi_1| |K|``, is the sharper one near epsilon = 0.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fastshuffle._kernels.group_contour import contour_nodes
from fastshuffle._kernels.group_tilt import tilt_groups
from fastshuffle._kernels.hockey_stick import crossing_tilt
from fastshuffle._typing import FloatArray

_BLOCKS = 40
_OFFSETS = np.linspace(0.0, 2.0, 65)
# Aliases across the pole of K at theta = i s are exp(-45) at this many times 1 / s.
_POLE_EXPONENT = 45.0
_MOST_NODES = 4096
# Rounding of the sums, and of the divergences that are added up.
_ROUNDING = 1e-10
_ROUNDING_PER_UNIT = 1e-13


class _Side(NamedTuple):
    """The others tilted, all at one bit: per user, and the sums over all."""

    logs: npt.NDArray[np.complex128]
    divergences: FloatArray
    total: npt.NDArray[np.complex128]
    divergence: float


def _tilted(s: float, groups: FloatArray) -> tuple[FloatArray, FloatArray]:
    tilted, moments = np.empty((len(groups), 4)), np.empty(6)
    tilt_groups(s, groups, tilted, moments)
    return tilted, moments


def _side(tilted: FloatArray, divergence: float, weights: FloatArray, half: FloatArray) -> _Side:
    t, u, _, divergences = tilted.T
    sine, tangent = np.sin(half)[:, np.newaxis], np.tan(half)[:, np.newaxis]
    real = 0.5 * np.log1p(-4.0 * t * u * sine * sine)
    imaginary = np.arctan((t - u) * tangent) - (t - u) * half[:, np.newaxis]
    logs = real + 1j * imaginary
    return _Side(logs, divergences, logs @ weights, divergence)


def log_envelope(epsilon: float, zeros: FloatArray, ones: FloatArray, pair: FloatArray) -> float:
    """Return an upper bound on the log of the forward delta for any bits of the others.

    ``zeros`` and ``ones`` are the rows of all others at either bit, in the same order. The user
    counted forward sends a one with the larger probability under the alternative.
    """
    if epsilon >= pair[3]:
        return -math.inf
    _, _, log_scale, s = crossing_tilt(epsilon, pair)
    low, low_moments = _tilted(s, zeros)
    high, high_moments = _tilted(s, ones)
    variance = float(high_moments[3])
    length, n_nodes = contour_nodes(variance)
    if s * length < _POLE_EXPONENT and s > 0.0:
        length, n_nodes = (x * _POLE_EXPONENT / (s * length) for x in (length, n_nodes))
    if not n_nodes < _MOST_NODES:
        length, n_nodes = contour_nodes(variance)
    n_nodes = int(n_nodes) + 1
    if 2 * n_nodes + 1 >= length:  # the whole period, an odd number of nodes
        n_nodes = math.ceil(0.5 * (length - 1.0))
        length = 2.0 * n_nodes + 1.0
    half = math.pi / length * np.arange(1.0, n_nodes + 1.0)
    weights = np.ascontiguousarray(ones[:, 0])
    at_one = _side(high, float(high_moments[5]), weights, half)
    kernel = 2j * np.sin(half) * np.exp(1j * half)
    kernel /= -math.expm1(-s) + math.exp(-s) * -np.expm1(-2j * half)
    sizes = np.exp(at_one.total.real)
    # |K| is at most exp(s / 2)
    largest = math.exp(min(0.5 * s, 300.0)) * (1.0 + 2.0 * float(sizes.sum())) / length
    if s * length >= 0.999 * _POLE_EXPONENT:
        # the kink of |K| at 0 puts the trapezoid rule below the integral
        sharper = 2.0 * float(sizes @ np.abs(kernel)) / length
        sharper += 2.0 * (2.0 * half[0]) ** 2 / (12.0 * math.pi * s)
        largest = min(largest, sharper)
        at_zero = _side(low, float(low_moments[5]), weights, half)
        largest = min(largest, _largest_value(s, length, half, kernel, at_one, at_zero, largest))
    slack = _ROUNDING + _ROUNDING_PER_UNIT * (at_one.divergence + abs(log_scale))
    return log_scale - at_one.divergence + math.log(largest) + slack


def _largest_value(
    s: float,
    length: float,
    half: FloatArray,
    kernel: npt.NDArray[np.complex128],
    at_one: _Side,
    at_zero: _Side,
    absolute: float,
) -> float:
    """Return the largest ``exp(-d) V_b`` over all b, by blocks of d."""
    gaps = at_zero.divergences - at_one.divergences
    # the others are the same at either bit, or next to certain
    told = gaps > np.maximum(1e-14 * at_one.divergences, 1e-280)
    changes = (at_zero.logs - at_one.logs)[:, told] / gaps[told]
    farthest = at_zero.divergence - at_one.divergence
    shifts = np.multiply.outer(_OFFSETS, s + 2j * half)
    waves = 2.0 / length * kernel * np.exp(-shifts)
    first = float((waves @ np.exp(at_one.total)).real.max())
    if not changes.size or not first > 0.0:
        return absolute
    # beyond this the other bound is enough
    near = min(farthest, math.log(absolute / first) + 0.7)
    edges = near * np.linspace(0.0, 1.0, _BLOCKS + 1) ** 1.5
    low, high = edges[:-1, np.newaxis], edges[1:, np.newaxis]
    lowest = _corner(low, high, changes, np.minimum)
    highest = _corner(low, high, changes, np.maximum)
    width = highest - lowest
    center = at_one.total + 0.5 * (lowest + highest)
    sizes = np.exp(center.real)
    values = (waves @ np.exp(center).T).real.max(axis=0)
    slopes = sizes @ (np.abs(kernel) * np.hypot(s, 2.0 * half))
    off = np.minimum(0.5 * (width.real + width.imag), 2.0)
    off *= np.exp(np.minimum(0.5 * width.real, 300.0))  # where the other bound is the least
    remainders = (sizes * off) @ np.abs(kernel)
    remainders *= 1.001  # of the trapezoid rule
    bounds = values + 2.0 / length * (remainders + 0.5 * (_OFFSETS[1] - _OFFSETS[0]) * slopes)
    largest = float((np.exp(-edges[:-1]) * bounds).max())
    return max(largest, math.exp(-near) * absolute if near < farthest else 0.0)


def _corner(
    low: FloatArray, high: FloatArray, changes: npt.NDArray[np.complex128], side: np.ufunc
) -> npt.NDArray[np.complex128]:
    """Return the least or the largest sums of log phi, relative to all ones, over each block."""
    real, imaginary = (side.reduce(part, axis=1) for part in (changes.real, changes.imag))
    return side(low * real, high * real) + 1j * side(low * imaginary, high * imaginary)
