"""A lower bound for k-ary randomized response by hypothesis testing: one dataset and one test.

The others all hold a third input z and user j holds a or b. The test rejects a where the
difference Z of the counts of b and a is at least x. Each other user sends either with probability
f_i, so Z is a sum of independent steps, and for every x

    delta >= Pr[Z >= x | b] - exp(epsilon) Pr[Z >= x | a]
          = sum_{z >= x} (A R(z - 1) + B R(z) + C R(z + 1)),

R the law of the others' part, ``A = keep - e flip``, ``B = (1 - e)(k - 2) flip``,
``C = flip - e keep``. After a tilt by tau it is a sum over the circle with the factor
``(A w**2 + B w + C) / (w - 1)``, ``w = exp(tau + i theta)``. At the tilt where the numerator
vanishes at theta = 0, the terms do not cancel, and deltas of 1e-200 keep their digits. The mass
that the sum folds back from below x is negative: a lower bound stays one.
"""

import math

import numpy as np

from fastshuffle._kernels.group_contour import contour_nodes
from fastshuffle._typing import FloatArray

# Integers around the tilted mean among which the best cut is chosen.
_CUTS = np.arange(-2.0, 4.0)
_POLE_EXPONENT = 45.0
_MOST_NODES = 20_000
# Beyond it, and where doubles end, nothing is claimed.
_LARGEST_EPSILON = 700.0
_ROUNDING = 1e-10
_SUM_ROUNDING = 1e-13
_ROUNDING_PER_UNIT = 1e-13


def log_test_power(
    epsilon: float, budget: float, others: tuple[FloatArray, FloatArray], k: int
) -> float:
    """Return a lower bound on log delta of the worst dataset, for user j of the given budget.

    ``others`` are the budgets of the other users and how many have each; k >= 3.
    """
    if epsilon >= budget or epsilon > _LARGEST_EPSILON:
        return -math.inf
    log_flip = -float(np.logaddexp(budget, math.log(k - 1.0)))
    flip, keep = math.exp(log_flip), math.exp(budget + log_flip)
    excess = math.expm1(epsilon)
    first = -keep * math.expm1(epsilon - budget)
    # keep - flip, without cancellation
    gap = -keep * math.expm1(-budget)
    middle, last = -excess * (k - 2.0) * flip, -keep * excess - gap
    # the root above 1 of first w**2 + middle w + last, in a form that does not cancel
    larger = 0.5 * (-middle + math.sqrt(middle * middle - 4.0 * first * last))
    if not first > 1e-290 * larger > 0.0:  # a loss so near the largest, or so small
        return -math.inf
    root, other_root = larger / first, last / larger
    # root - 1, from the value -excess of the polynomial at 1
    tilt = math.log1p(excess / (first * (1.0 - other_root)))
    budgets, counts = others
    share = 1.0 / (np.exp(np.minimum(budgets, 700.0)) + (k - 1.0))
    up, down = share * math.exp(tilt), share * math.exp(-tilt)
    norm = 1.0 + share * (math.expm1(tilt) + math.expm1(-tilt))
    means = (up - down) / norm
    variance = float(counts @ ((up + down) / norm - means * means))
    length, n_nodes = contour_nodes(variance)
    longer = 2.0
    if 0.0 < tilt * length * longer < _POLE_EXPONENT:
        longer = min(_POLE_EXPONENT / (tilt * length), _MOST_NODES / n_nodes)
    length, n_nodes = length * longer, int(n_nodes * longer) + 1
    if 2 * n_nodes + 1 >= length:
        n_nodes = int(0.5 * length) + 1
        length = 2.0 * n_nodes + 1.0
    theta = 2.0 * math.pi / length * np.arange(n_nodes + 1)
    turn = np.expm1(1j * theta)
    steps = (np.multiply.outer(turn, up) + np.multiply.outer(np.conj(turn), down)) / norm
    # where a characteristic function vanishes, the number next to 0 changes no more than rounding
    logs = np.log1p(np.where(steps == -1.0, np.nextafter(-1.0, 0.0), steps)) @ counts
    mean = float(counts @ means)
    w = root * np.exp(1j * theta)
    factor = np.full_like(w, first) * (w - other_root)
    if excess > 0.0:
        factor *= root * turn / np.expm1(tilt + 1j * theta)
    cuts = math.floor(mean) + _CUTS
    waves = np.exp(logs - 1j * np.multiply.outer(cuts, theta)) * factor
    sums = (2.0 * waves.real.sum(axis=1) - waves.real[:, 0]) / length
    # far below the tilted mean the sum is rounding alone, and would be scaled up
    sums -= _SUM_ROUNDING * 2.0 * np.abs(waves).sum(axis=1) / length
    log_moment = float(counts @ np.log(norm))
    kept = sums > 0.0
    if not kept.any():
        return -math.inf
    largest = float((np.log(sums[kept]) + log_moment - tilt * cuts[kept]).max())
    units = abs(log_moment) + tilt * abs(mean)
    return min(largest - _ROUNDING - _ROUNDING_PER_UNIT * units, 0.0)
