"""Half-spaces that contain all large losses, and the tilts that they prove weights of.

A half-space ``{N : s . N >= c}`` contains all histograms of privacy loss above epsilon. Tilting the
law of every message by ``exp(theta s)`` makes the likelihood ratio of P against the tilted law a
function of s . N alone, ``exp(K - theta s . N)``, so that a weight is at most ``exp(K - theta c)``
wherever it counts: it has the size of the probability itself. With f = 1 - exp(epsilon - L), the
half-spaces found here satisfy even

    s . N >= c + g f(N)    for all N with L(N) > epsilon,

and so the term ``exp(K - theta s . N) f`` of delta is at most ``exp(K - theta c) / (e theta g)``,
or less where the largest f is below ``1 / (theta g)``. That is within a small factor of delta, and
the tilt that makes it smallest is the one to use.

If the others hold a single input z, all n messages are drawn from W_z, and P is the mean A of the
ratios W_b / W_z of the messages times that law. Then f stands for A f, which is exactly s . N / n:

- ``s = (W_b - exp(epsilon) W_a) / W_z, c = 0, g = n``.

For k of the others at b and j = n - 1 - k at a, write x for the ratios w = W_b / W_a of the
messages, e_k for their elementary symmetric polynomials, e_k^i for those without message i, and
r_k = e_k / e_{k-1}. Then exp(L) is ``r_{k+1} (k + 1) / (j + 1)``, and

    (k + 1) r_{k+1} = sum_i x_i (1 - p_i),    p_i = x_i / (x_i + e_k^i / e_{k-1}^i).

- ``s = w rho / (rho + w), c = (j + 1) exp(epsilon)``, ``rho = (c + max w) / k``. For e_k^i /
  e_{k-1}^i is at most r_k, and k r_k at most (k + 1) r_{k+1} + max w, since the p_i of k - 1 are
  smaller and sum to one less. s is concave in rho, which gives ``g = c min rho / (rho + w)``.
- ``s = -v rho / (rho + v), c = -(n - j) exp(-epsilon)``, with v = 1 / w, in whose terms exp(-L) is
  the same ratio for j. There Newton's inequality bounds the ratio without a message from below: by
  the root rho of ``rho (kappa rho + v) = r (rho + v)``, r = exp(-epsilon) (n - j) / (j + 1),
  ``kappa = j (n - 1 - j) / ((j + 1) (n - j))``. As rho is convex in r, the gain is
  ``g = -c min kappa rho / (kappa rho + v)``.
- ``s = w / (C + w), c = k + 1 / (k + 2)`` with ``C = exp(epsilon) (j + 1) / (k + 1)``, also where a
  ratio is infinite: r_{k+1} is C times the ratio of the masses of k + 1 and k of independent trials
  of probabilities s, so L > epsilon if and only if the mass of k + 1 is the larger; then the mode,
  which by Darroch [1]_ is near the mean, is above k. Raising epsilon to L lowers each s by
  f s (1 - s) at least.

The first two are sharp at every k and j from 1 on.

For any other composition none is known, nor for several messages a user. There the score is that of
the regression of the loss on the counts, ``Sigma^+ (W_b - W_a)`` with Sigma the mean covariance of
a message of the others: the half-space is likely, up to terms of the order 1 / n, and bounds
nothing.

References
----------
.. [1] J. N. Darroch, "On the distribution of the number of successes in independent trials",
   Annals of Mathematical Statistics 35 (1964) 1317-1321.
"""

import math
from typing import NamedTuple

import numpy as np

from fastshuffle._typing import FloatArray
from fastshuffle.exact._scores import regression_scores
from fastshuffle.monte_carlo.pair import PairLaws

_LARGEST_EXPONENT = 600.0
_BISECTIONS = 24


class HalfSpace(NamedTuple):
    """Scores, threshold and gain of a half-space, and the largest f; see the head of the module."""

    scores: FloatArray
    threshold: float
    gain: float
    largest: float


class Tilt(NamedTuple):
    """An exponential tilt: ``theta s`` for each output, K, and the log of the largest term."""

    exponents: FloatArray
    log_normalizer: float
    log_bound: float


def half_spaces(laws: PairLaws, epsilon: float) -> list[HalfSpace]:
    """Return half-spaces that contain every drawn histogram of loss above epsilon, if any."""
    if laws.messages > 1:
        return []
    n = laws.n
    factor = math.exp(epsilon)
    largest = -math.expm1(epsilon - laws.drawn_loss)
    own, opposite = laws.own, laws.opposite
    if len(laws.held) == 1:
        beta, alpha = laws.ratios.T
        scores = beta - factor * alpha
        return [HalfSpace(scores, 0.0, float(n), float(scores.max()))]
    at = {
        name: [count for count, held in laws.held if (held == row).all()]
        for name, row in (("own", own), ("opposite", opposite))
    }
    if len(laws.held) != 2 or not at["own"] or not at["opposite"]:
        return []
    k, j = at["own"][0], at["opposite"][0]
    found = []
    if opposite.all():
        ratio = own / opposite
        threshold = (j + 1.0) * factor
        rho = (threshold + float(ratio.max())) / k
        gain = threshold * float((rho / (rho + ratio)).min())
        found.append(HalfSpace(ratio * (rho / (rho + ratio)), threshold, gain, largest))
    if own.all():
        inverse = opposite / own
        threshold = (n - j) / factor
        r = threshold / (j + 1.0)
        kappa = j * (n - 1.0 - j) / ((j + 1.0) * (n - j))
        root = _positive_root(inverse - r, kappa, r * inverse)
        gain = threshold * float((kappa * root / (kappa * root + inverse)).min())
        found.append(HalfSpace(-inverse * (root / (root + inverse)), -threshold, gain, largest))
    # w / (C + w) without the ratio itself, which may be infinite
    ones = (k + 1.0) * own
    zeros = factor * (j + 1.0) * opposite
    scores = ones / (ones + zeros)
    spread = float((scores * (zeros / (ones + zeros))).min())
    found.append(HalfSpace(scores, k + 1.0 / (k + 2.0), n * spread, largest))
    return found


def _positive_root(b: FloatArray, a: float, c: FloatArray) -> FloatArray:
    """Return the positive root of ``a x**2 + b x - c``, a and c > 0, without cancellation."""
    size = np.hypot(b, 2.0 * np.sqrt(a * c))
    return np.where(b > 0.0, 2.0 * c / (size + np.abs(b)), (size - b) / (2.0 * a))


def _tilted_sums(
    theta: float, scores: FloatArray, groups: list[tuple[int, FloatArray]]
) -> tuple[float, float]:
    """Return K, the log of the mean of exp(theta s . N), and its derivative."""
    total, slope = 0.0, 0.0
    growth, factors = np.expm1(theta * scores), np.exp(theta * scores)
    for count, row in groups:
        excess = float(row @ growth)
        mean = float(row @ factors)
        total += count * (math.log1p(excess) if excess > -0.5 else math.log(mean))
        slope += count * float(row @ (scores * factors)) / mean
    return total, slope


def best_tilt(laws: PairLaws, half_space: HalfSpace) -> Tilt:
    """Return the tilt along a half-space whose largest term is smallest."""
    scores, threshold, gain, largest = half_space
    mean = float(sum(count * (row @ scores) for count, row in laws.groups)) / laws.n
    scores = scores - mean
    threshold -= laws.n * mean
    spread = float(np.abs(scores).max())
    if spread == 0.0:
        return Tilt(scores, 0.0, math.log(largest))
    # in these units no product overflows
    scores, threshold, gain = scores / spread, threshold / spread, gain / spread

    def largest_term(theta: float) -> tuple[float, float]:
        # of exp(-theta g f) f for f up to the largest: the log and its derivative
        if theta * gain * largest >= 1.0:
            return -1.0 - math.log(theta * gain), -1.0 / theta
        return math.log(largest) - theta * gain * largest, -gain * largest

    low, high = math.log(1e-14), math.log(_LARGEST_EXPONENT)
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        theta = math.exp(middle)
        slope = _tilted_sums(theta, scores, laws.groups)[1] - threshold
        if slope + largest_term(theta)[1] < 0.0:
            low = middle
        else:
            high = middle
    theta = math.exp(0.5 * (low + high))
    log_normalizer = _tilted_sums(theta, scores, laws.groups)[0]
    log_bound = log_normalizer - theta * threshold + largest_term(theta)[0]
    return Tilt(theta * scores, log_normalizer, log_bound)


def likely_half_space(laws: PairLaws, epsilon: float) -> HalfSpace:
    """Return a half-space in which most histograms of loss above epsilon lie."""
    others = laws.n - laws.messages
    shares = np.array([count / others for count, _ in laws.held])
    rows = np.array([row for _, row in laws.held])
    scores = regression_scores(shares, rows, laws.own - laws.opposite)
    mean = others * (shares @ rows) + 0.5 * laws.messages * (laws.own + laws.opposite)
    users = laws.n / laws.messages
    threshold = float(mean @ scores) + users * epsilon
    return HalfSpace(scores, threshold, users, -math.expm1(epsilon - laws.drawn_loss))


def tilt_at(laws: PairLaws, epsilon: float) -> Tilt:
    """Return the tilt for the losses above epsilon with the smallest bound, or a likely one."""
    spaces = half_spaces(laws, epsilon) or [likely_half_space(laws, epsilon)]
    tilts = [best_tilt(laws, half_space) for half_space in spaces]
    return min(tilts, key=lambda tilt: tilt.log_bound)
