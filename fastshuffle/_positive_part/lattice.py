"""E[S_+] on a grid: certified from both sides, for sums of many values.

*Upper.* Every value is split onto its two neighbours on the grid with its mean kept. That is
larger in the convex order, so the mean of the positive part of the sum can only rise.

*Lower.* ``E[S 1{A}] <= E[S_+]`` for every event A. The event is that the sum on the grid, of the
same split, is positive: only the event is rounded, not the values.

Either side is one sum over the unit circle (`fastshuffle._kernels.lattice_sum`) after an
exponential tilt, which keeps the relative accuracy of a mean of 1e-200. Both errors are of second
order in the grid step, which is refined until the two agree to the requested tolerance.
"""

import math
from typing import NamedTuple, TypeAlias

import numpy as np

from fastshuffle._kernels.lattice_sum import tilted_truncated_mean
from fastshuffle._positive_part.terms import (
    Bracket,
    Terms,
    largest_sum,
    tilted,
)
from fastshuffle._typing import FloatArray

# Exponent of the tilted mass that may fold back, and of the same on the far side.
_ALIAS_EXPONENT = 42.0
_FAR_ALIAS_EXPONENT = 45.0
_LARGEST_POSITION = 2.0**50
_MOST_GRIDS = 8
_FARTHEST_MEAN = 10.0
_FIRST_AIM = 3e-7
_FEW_COPIES = 1e4
# Over fewer positions than this, atoms are gathered without sorting them.
_DENSE = 1e5
_RELATIVE_ROUNDING = 1e-11
# A sum that cancels to less than this share of its terms is not trusted.
_LEAST_SHARE = 1e-5
# With more atoms than this, or so few copies that no node is negligible, a transform of up to so
# many nodes is quicker than the direct sum.
_FEW_ATOMS = 48
_LONGEST_TRANSFORM = 2.0**23


class Lattice(NamedTuple):
    """One group on the grid: positions, probabilities and the values that are summed."""

    copies: float
    positions: FloatArray
    probabilities: FloatArray
    values: FloatArray


# First atom, number of atoms, copies, tilted mean and variance.
_Group: TypeAlias = tuple[int, int, float, float, float]


def refined_on_grid(low: list[Terms], high: list[Terms], s: float, rtol: float) -> Bracket:
    """Refine the grid until the bracket is narrow enough or a sum tells nothing more.

    ``low`` and ``high`` are sums below and above the one in question, in the convex order; s is
    a tilt that centres them near 0, or above.
    """
    largest = largest_sum(high)
    n = sum(t.copies for t in high)
    deviation = math.sqrt(sum(t.copies * tilted(t, s).variance for t in high))
    # not finer than helps to see how fine it must be
    aim = max(rtol, _FIRST_AIM)
    step = min(deviation, largest) * math.sqrt(2.0 * aim / n) / max(1.0, s * deviation)
    reach = max(float(np.abs(t.values).max()) for t in high)
    first = sharpest = step
    bracket = Bracket(-math.inf, math.inf)
    finest = 0.0
    idle = 0
    for _ in range(_MOST_GRIDS):
        if not reach < step * _LARGEST_POSITION:
            break
        lower = log_truncated_mean([_on_grid(t, step, exact=True) for t in low], step, s)
        upper = log_truncated_mean([_on_grid(t, step, exact=False) for t in high], step, s)
        if math.isnan(lower[0]) or math.isnan(upper[0]):
            # too long a sum, or one that cannot be told from rounding: a coarser grid may do
            finest = step
            if bracket.lower > -math.inf:
                if step > 0.3 * sharpest:
                    break
                step = math.sqrt(step * sharpest)
            elif step > first:
                break
            else:
                step *= 8.0
            continue
        sharpest = step
        last_gap = bracket.upper - bracket.lower
        bracket = Bracket(
            max(bracket.lower, lower[0] - lower[1]), min(bracket.upper, upper[0] + upper[1])
        )
        gap = bracket.upper - bracket.lower
        # few multiples of one number let the gap fall in jumps, as the grid meets them
        idle = idle + 1 if gap > 0.9 * last_gap else 0
        if gap <= rtol or idle > (2 if n < _FEW_COPIES else 0):
            break
        step *= min(0.7, 0.8 * math.sqrt(rtol / gap))
        if step <= 1.5 * finest:
            break
    return bracket


def _gathered(count: float, positions: FloatArray, p: FloatArray, values: FloatArray) -> Lattice:
    """Return the atoms with each position once, and the mean value there."""
    lowest = float(positions.min())
    if float(positions.max()) - lowest < _DENSE:
        where = (positions - lowest).astype(np.int64)
        grid = lowest + np.arange(int(where.max()) + 1, dtype=np.float64)
    else:
        grid, where = np.unique(positions, return_inverse=True)
    mass = np.bincount(where, p).astype(np.float64, copy=False)
    total = np.bincount(where, p * values).astype(np.float64, copy=False)
    kept = mass > 0.0
    return Lattice(count, grid[kept], mass[kept], total[kept] / mass[kept])


def _on_grid(term: Terms, step: float, *, exact: bool) -> Lattice:
    """Return the split onto the grid; the values summed are the exact ones or those of the grid."""
    below = np.floor(term.values / step)
    share = np.clip(term.values / step - below, 0.0, 1.0)
    positions = np.concatenate((below, below + 1.0))
    p = np.concatenate((term.probabilities * (1.0 - share), term.probabilities * share))
    values = np.tile(term.values, 2) if exact else positions * step
    return _gathered(term.copies, positions, p, values)


def log_truncated_mean(lattice: list[Lattice], step: float, s: float) -> tuple[float, float]:
    """Return log E[V 1{S > 0}] and its rounding; nan where it cannot be told from rounding.

    V is the sum of the values and S that of the positions.
    """
    atoms: list[FloatArray] = []
    groups: list[_Group] = []
    log_scale = magnitude = 0.0
    first = 0
    for count, positions, p, values in lattice:
        law = tilted(Terms(count, positions, p), s * step)
        offsets = positions - law.mean
        atoms.append(np.column_stack((offsets, law.probabilities, values)))
        groups.append((first, len(p), count, law.mean, law.variance))
        first += len(p)
        log_scale += count * law.log_moment
        magnitude += count * s * step * float(p @ np.abs(positions))
    mean, variance = (sum(group[2] * group[i] for group in groups) for i in (3, 4))
    if abs(mean) > _FARTHEST_MEAN * math.sqrt(variance):
        return math.nan, 0.0  # the grid is so coarse that the tilt no longer centres the sum
    length = 2.0 * max(_tail_reach(atoms, groups, side) for side in (-1.0, 1.0))
    length += 2.0 * abs(mean)
    length = max(length, (_FAR_ALIAS_EXPONENT - min(log_scale, 0.0)) / (s * step))
    length = 2.0 * math.ceil(0.5 * length) + 1.0
    error = 0.0
    many = len(lattice[0].positions) > _FEW_ATOMS or lattice[0].copies < _FEW_COPIES
    if len(lattice) == 1 and many and length < _LONGEST_TRANSFORM:
        weights = atoms[0][:, 1]
        total, size, error = _transformed_mean(s * step, length, lattice[0], weights)
    else:
        total, size = tilted_truncated_mean(
            s * step, length, np.concatenate(atoms), np.array(groups)
        )
    if not total > _LEAST_SHARE * size:  # also where the sum was too long to do
        return math.nan, 0.0
    n = sum(group.copies for group in lattice)
    rounding = _RELATIVE_ROUNDING * (1.0 + size / total) + error / total
    rounding += 1e-15 * (magnitude + abs(log_scale) + math.sqrt(n) * size / total)
    return log_scale + math.log(total), rounding


def _tail_reach(atoms: list[FloatArray], groups: list[_Group], side: float) -> float:
    """Return how far from its mean the tilted sum goes before a tail is below exp(-42).

    By Chernoff's bound at some exponents, around that which a normal sum would have.
    """
    variance = sum(count * spread for _, _, count, _, spread in groups)
    if variance == 0.0:
        return 0.0
    exponents = np.geomspace(1e-3, 4.0, 25) * math.sqrt(2.0 * _ALIAS_EXPONENT / variance)
    cumulant = np.zeros_like(exponents)
    for group, (_, _, count, _, _) in zip(atoms, groups, strict=True):
        offsets, weights, _ = group[group[:, 1] > 0.0].T
        terms = np.multiply.outer(exponents, side * offsets) + np.log(weights)
        largest = terms.max(axis=1)
        cumulant += count * (largest + np.log(np.exp(terms - largest[:, np.newaxis]).sum(axis=1)))
    return float(((_ALIAS_EXPONENT + np.maximum(cumulant, 0.0)) / exponents).min())


def _transformed_mean(
    s: float, length: float, lattice: Lattice, weights: FloatArray
) -> tuple[float, float, float]:
    """Return what `tilted_truncated_mean` does, and its rounding, by fast Fourier transforms.

    With phi and psi the transforms of the tilted weights and of the same times the values,
    ``n psi phi**(n - 1)`` is that of the sum's values. It is the quicker way where the atoms are
    many: the transform has the characteristic function at all nodes at once.
    """
    n, positions = lattice.copies, lattice.positions.astype(np.int64)
    size = 1 << math.ceil(math.log2(length))
    center = int(np.rint(weights @ lattice.positions))
    places = (positions - center) % size
    phi = np.conj(np.fft.rfft(np.bincount(places, weights, size)))
    psi = np.conj(np.fft.rfft(np.bincount(places, weights * lattice.values, size)))
    share = np.full(phi.size, 2.0 / size)
    share[[0, -1]] = 1.0 / size
    # what psi is multiplied with, and not only phi**n, is negligible at the other nodes
    least = math.exp(-_ALIAS_EXPONENT / (n - 1.0)) if n > 1.0 else 0.0
    nodes = np.flatnonzero(np.abs(phi) >= least)
    phi, psi, share = phi[nodes], psi[nodes], share[nodes]
    turns = int(n) * center % size * nodes % size  # the phase of the centre, exactly
    angles = (2.0 * math.pi / size) * np.stack((turns, nodes))
    ratio = np.exp(-s - 1j * angles[1])
    half = np.sin(0.5 * angles[1])
    fall = -math.expm1(-s)
    decay = 1.0 - fall
    tail = ratio / (fall + 2.0 * decay * half * half + 1j * decay * np.sin(angles[1]))
    power = phi ** (n - 2.0) if n >= 2.0 else np.zeros_like(phi)
    last = power * phi if n >= 2.0 else np.ones_like(phi)
    terms = share * (n * psi * last * np.exp(1j * angles[0]) * tail).real
    # errors of the two transforms, and of the power, through the derivative of the product
    unit = 1e-15 * math.log2(size)
    largest_psi = float(weights @ np.abs(lattice.values))
    errors = unit * (largest_psi * np.abs(last) + (n - 1.0) * np.abs(psi) * np.abs(power))
    error = n * float(share @ (np.abs(tail) * errors))
    # and the nodes left out: the mean of |tail| over the circle is below 1 + asinh(2 / fall)
    error += n * largest_psi * math.exp(-_ALIAS_EXPONENT) * (1.0 + math.asinh(2.0 / fall))
    return float(terms.sum()), float(np.abs(terms).sum()), error
