"""E[S_+] on a grid: certified from both sides, for sums of many values.

*Upper.* Every value is split onto its two neighbours on the grid with its mean kept. That is
larger in the convex order, so the mean of the positive part of the sum can only rise.

*Lower.* ``E[S 1{A}] <= E[S_+]`` for every event A. The event is that the sum of the values rounded
to the grid exceeds a threshold, so that only the event is rounded, not the values.

Either side is one sum over the unit circle (`fastshuffle._kernels.lattice_sum`) after an
exponential tilt, which keeps the relative accuracy of a mean of 1e-200. Both errors are of second
order in the grid step, which is refined until the two agree to the requested tolerance.
"""

import math
from typing import NamedTuple

import numpy as np

from fastshuffle._kernels.lattice_sum import tilted_truncated_mean
from fastshuffle._positive_part.terms import (
    Bracket,
    Terms,
    largest_sum,
    tilted,
)
from fastshuffle._typing import FloatArray

# Bernstein's exponent of the tilted mass that may fold back, and the same for the far side.
_ALIAS_EXPONENT = 42.0
_FAR_ALIAS_EXPONENT = 45.0
_LARGEST_POSITION = 2.0**50
_MOST_REFINEMENTS = 20
_RELATIVE_ROUNDING = 1e-11
# A sum that cancels to less than this share of its terms is not trusted.
_LEAST_SHARE = 1e-4
# With more atoms than this, a transform of up to so many nodes is quicker than the direct sum.
_FEW_ATOMS = 48
_LONGEST_TRANSFORM = 2.0**19


class _Lattice(NamedTuple):
    """One group on the grid: positions, probabilities and the values that are summed."""

    copies: float
    positions: FloatArray
    probabilities: FloatArray
    values: FloatArray


def refined_on_grid(low: list[Terms], high: list[Terms], s: float, rtol: float) -> Bracket:
    """Refine the grid until the bracket is narrow enough or a sum tells nothing more.

    ``low`` and ``high`` are sums below and above the one in question, in the convex order; s is
    a tilt that centres them near 0, or above.
    """
    largest = largest_sum(high)
    n = sum(t.copies for t in high)
    deviation = math.sqrt(sum(t.copies * tilted(t, s).variance for t in high))
    step = min(deviation, largest) * math.sqrt(2.0 * rtol / n) / max(1.0, s * deviation)
    reach = max(float(np.abs(t.values).max()) for t in high)
    bracket = Bracket(-math.inf, math.inf)
    finest = 0.0
    idle = 0
    for _ in range(_MOST_REFINEMENTS):
        if not reach < step * _LARGEST_POSITION:
            break
        lower = _log_truncated_mean([_round_to_grid(t, step) for t in low], low, step, s)
        upper = _log_truncated_mean([_split_onto_grid(t, step) for t in high], None, step, s)
        if math.isnan(lower[0]) or math.isnan(upper[0]):
            # too long a sum, or one that cannot be told from rounding: a coarser grid may do
            if bracket.lower > -math.inf:
                break
            finest = step
            step *= 4.0
            continue
        last_gap = bracket.upper - bracket.lower
        bracket = Bracket(
            max(bracket.lower, lower[0] - lower[1]), min(bracket.upper, upper[0] + upper[1])
        )
        gap = bracket.upper - bracket.lower
        # on multiples of one number the gap falls in jumps, as the grid meets them
        idle = idle + 1 if gap > 0.9 * last_gap else 0
        if gap <= rtol or idle == 2:
            break
        step *= min(0.7, 0.8 * math.sqrt(rtol / gap))
        if step <= 1.5 * finest:
            break
    return bracket


def _gathered(count: float, positions: FloatArray, p: FloatArray, values: FloatArray) -> _Lattice:
    grid, where = np.unique(positions, return_inverse=True)
    mass = np.bincount(where, p).astype(np.float64, copy=False)
    total = np.bincount(where, p * values).astype(np.float64, copy=False)
    kept = mass > 0.0
    return _Lattice(count, grid[kept], mass[kept], total[kept] / mass[kept])


def _split_onto_grid(term: Terms, step: float) -> _Lattice:
    below = np.floor(term.values / step)
    share = np.clip(term.values / step - below, 0.0, 1.0)
    positions = np.concatenate((below, below + 1.0))
    p = np.concatenate((term.probabilities * (1.0 - share), term.probabilities * share))
    return _gathered(term.copies, positions, p, positions * step)


def _round_to_grid(term: Terms, step: float) -> _Lattice:
    return _gathered(term.copies, np.rint(term.values / step), term.probabilities, term.values)


def _log_truncated_mean(
    lattice: list[_Lattice], exact_terms: list[Terms] | None, step: float, s: float
) -> tuple[float, float]:
    """Return log E[V 1{S > t}] and its rounding; nan where it cannot be told from rounding.

    V is the sum of the values and S that of the positions. Given ``exact_terms``, t is where S
    stands when their sum is 0 under the tilt; otherwise t = 0.
    """
    atoms, groups = [], []
    log_scale = variance = drift = reach = magnitude = 0.0
    first = 0
    for g, (count, positions, p, values) in enumerate(lattice):
        law = tilted(Terms(count, positions, p), s * step)
        offsets = positions - law.mean
        atoms.append(np.column_stack((offsets, law.probabilities, values)))
        groups.append((first, len(p), count, law.mean, law.variance))
        first += len(p)
        log_scale += count * law.log_moment
        magnitude += count * s * step * float(p @ np.abs(positions))
        variance += count * law.variance
        reach = max(reach, float(np.abs(offsets).max()))
        if exact_terms is not None:
            drift += count * (law.mean - tilted(exact_terms[g], s).mean / step)
    threshold = float(np.rint(drift))
    jumps = reach * _ALIAS_EXPONENT / 3.0
    length = 2.0 * (jumps + math.sqrt(jumps**2 + 2.0 * _ALIAS_EXPONENT * variance))
    length = max(length, (_FAR_ALIAS_EXPONENT - min(log_scale, 0.0)) / (s * step))
    length = 2.0 * math.ceil(0.5 * length) + 1.0
    error = 0.0
    if len(lattice) == 1 and len(lattice[0].positions) > _FEW_ATOMS and length < _LONGEST_TRANSFORM:
        weights = atoms[0][:, 1]
        total, size, error = _transformed_mean(s * step, threshold, length, lattice[0], weights)
    else:
        total, size = tilted_truncated_mean(
            s * step, threshold, length, np.concatenate(atoms), np.array(groups)
        )
    if not total > _LEAST_SHARE * size:  # also where the sum was too long to do
        return math.nan, 0.0
    n = sum(group.copies for group in lattice)
    rounding = _RELATIVE_ROUNDING * (1.0 + size / total) + error / total
    rounding += 1e-15 * (magnitude + abs(log_scale) + math.sqrt(n) * size / total)
    return log_scale - s * step * threshold + math.log(total), rounding


def _transformed_mean(
    s: float, threshold: float, length: float, lattice: _Lattice, weights: FloatArray
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
    nodes = np.arange(phi.size)
    # the phase of the centre and of the threshold, exactly
    turns = (int(n) * center - int(threshold)) % size * nodes % size
    angles = (2.0 * math.pi / size) * np.stack((turns, nodes))
    ratio = np.exp(-s - 1j * angles[1])
    half = np.sin(0.5 * angles[1])
    fall = -math.expm1(-s)
    decay = 1.0 - fall
    tail = ratio / (fall + 2.0 * decay * half * half + 1j * decay * np.sin(angles[1]))
    share = np.full(phi.size, 2.0 / size)
    share[[0, -1]] = 1.0 / size
    power = phi ** (n - 2.0) if n >= 2.0 else np.zeros_like(phi)
    last = power * phi if n >= 2.0 else np.ones_like(phi)
    terms = share * (n * psi * last * np.exp(1j * angles[0]) * tail).real
    # errors of the two transforms, and of the power, through the derivative of the product
    unit = 1e-15 * math.log2(size)
    of_psi = unit * float(weights @ np.abs(lattice.values))
    errors = of_psi * np.abs(last) + (n - 1.0) * unit * np.abs(psi) * np.abs(power)
    error = n * float(share @ (np.abs(tail) * errors))
    return float(terms.sum()), float(np.abs(terms).sum()), error
