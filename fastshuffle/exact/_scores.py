"""Lower bounds of delta from a sum of scores, for any composition and any alphabet.

Give every output an integer score. That the sum of the scores of all messages exceeds x is an
event A, and ``P(A) - exp(epsilon) Q(A)`` is a lower bound of delta, whatever the scores and x:
rounding them to integers costs sharpness alone, and nothing of that is needed to be known.

*Which scores.* With R the others' histogram, d = W_b - e**step W_a and step = epsilon / m, one
message more makes ``P - e**step Q = sum_y d_y R(N - e_y)``. By the saddle-point approximation
``R(N - e_y) / R(N)`` is about z_y, where z tilts the messages so that their mean is N. The border
of the best event is the surface ``sum_y d_y z_y(N) = 0``, and its normal where it is met most
likely, at ``z = exp(theta s)``, is ``s = Sigma**+ (d z)`` with Sigma the covariance of a tilted
message: a few steps of iteration. For others at one input it is the surface of the exact event, a
plane; in general it is curved, and what is lost of the exponent is of the order 1 / n.

*What is summed.* Replace the differing user's messages one by one, T_j with j of them from W_a:

    P(A) - e**epsilon Q(A) = sum_{j < m} e**(j step) (T_j(A) - e**step T_{j+1}(A)),

each the truncated mean of d over the law of the message replaced, a sum of like signs on the
contour (`fastshuffle._positive_part.lattice`). Where the messages of the user move the sum by some
deviations or more, P(A) and Q(A) do not cancel so far, and are summed as they are.
"""

import math
from typing import NamedTuple

import numpy as np

from fastshuffle._positive_part import Terms
from fastshuffle._positive_part.lattice import Lattice, log_truncated_mean
from fastshuffle._positive_part.terms import tilted
from fastshuffle._typing import FloatArray

_ITERATIONS = 6
_MOST_STEPS = 100
# Scores are rounded to so many units a standard deviation of the score of a message.
_UNITS = 64.0
# Where there are few messages, the sum has few values, and finer units take longer alone.
_FEW_MESSAGES, _COARSE_UNITS = 1e4, 16.0
# No score is further out than this many deviations of the whole sum.
_FARTHEST = 50.0
# With fewer messages, or more of a user, the two tails are summed as they are: what cancels is the
# inverse of their distance in deviations.
_MANY_MESSAGES = 1e6
_MOST_REPLACED = 128
_LARGEST_EXPONENT = 600.0
_ULP = 4.5e-16
# Below this step of the tilted sum it makes no difference between which sums the border is.
_COARSE = 0.02
# Rounding of a difference of two rows and of what a tail does with it, some 20 times what is found.
_ROW_ROUNDING = 1e-13


class Users(NamedTuple):
    """The others' messages and those of the differing user, over the same outputs.

    Attributes
    ----------
    counts : array, shape (n_groups,)
        How many messages the other users send from each of ``rows``.
    rows : array, shape (n_groups, n_outputs)
    null, alternative : array, shape (n_outputs,)
        The law of a message of the differing user under Q and under P.
    losses : array, shape (n_outputs,)
        ``log(alternative / null)``.
    messages : int
        How many messages the differing user sends.
    parts : tuple of tuple of int, array and array
        Where the user's messages differ in kind: how many there are of each, and their laws under Q
        and under P, of which ``null`` and ``alternative`` then are the means.
    """

    counts: FloatArray
    rows: FloatArray
    null: FloatArray
    alternative: FloatArray
    losses: FloatArray
    messages: int
    parts: tuple[tuple[int, FloatArray, FloatArray], ...] = ()


def numerators(users: Users, step: float) -> FloatArray:
    """Return ``alternative - exp(step) null``, without cancellation."""
    above = users.losses - step
    return np.where(
        above > 0.0,
        -users.alternative * np.expm1(-np.maximum(above, 0.0)),
        users.null * math.exp(step) * np.expm1(np.minimum(above, 0.0)),
    )


def regression_scores(counts: FloatArray, rows: FloatArray, gap: FloatArray) -> FloatArray:
    """Return ``Sigma**+ gap``, Sigma the sum of the covariances of single messages.

    ``gap`` sums to 0. Every output has mass in some row.
    """
    root = np.sqrt(counts @ rows)
    # Sigma is root (1 - B B^T) root, B of as many columns as there are rows
    columns = (np.sqrt(counts)[:, np.newaxis] * rows / root).T
    vectors, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    squares = np.minimum(sizes**2, 1.0)
    inside = squares < 1.0 - 1e-9  # 1 belongs to the number of messages, which is known
    stretch = np.where(inside, squares / np.where(inside, 1.0 - squares, 1.0), -1.0)
    scaled = gap / root
    return (scaled + vectors @ (stretch * (vectors.T @ scaled))) / root


def _tilted_rows(rows: FloatArray, exponents: FloatArray) -> FloatArray:
    weights = rows * np.exp(exponents - exponents.max())
    return weights / weights.sum(axis=1, keepdims=True)


def _balancing(d: FloatArray, scores: FloatArray) -> float:
    """Return theta > 0 with ``sum d exp(theta scores) = 0``, or 0 where there is none."""
    spread = float(scores.max() - scores.min())
    if spread == 0.0:
        return 0.0
    shifted = scores - scores.max()

    def excess(theta: float) -> float:
        return float(d @ np.exp(theta * shifted))

    low, high = 0.0, 1e-12 / spread
    while excess(high) < 0.0:
        low, high = high, 4.0 * high
        if high * spread > _LARGEST_EXPONENT:
            return _LARGEST_EXPONENT / spread
    for _ in range(_MOST_STEPS):
        middle = 0.5 * (low + high)
        if not low < middle < high or high - low <= 1e-6 * high:
            break
        if excess(middle) < 0.0:
            low = middle
        else:
            high = middle
    return high


def best_scores(users: Users, step: float) -> FloatArray:
    """Return the scores whose border is met most likely where the best event has its own."""
    # the user's own messages count too, so that no output has mass 0
    own = 0.5 * users.messages
    counts = np.append(users.counts, [own, own])
    rows = np.vstack((users.rows, users.null, users.alternative))
    d = numerators(users, step)
    first = users.alternative - users.null
    scores = regression_scores(counts, rows, first - first.sum() * (counts @ rows) / counts.sum())
    for _ in range(_ITERATIONS):
        theta = _balancing(d, scores)
        exponents = theta * scores
        gap = d * np.exp(exponents - exponents.max())
        tilted_rows = _tilted_rows(rows, exponents)
        gap -= gap.sum() * (counts @ tilted_rows) / counts.sum()
        scores = regression_scores(counts, tilted_rows, gap)
        scores /= max(float(np.abs(scores).max()), 1e-300)
    return scores


def log_lower_delta(users: Users, epsilon: float) -> float:
    """Return a lower bound of log delta at a finite epsilon, -inf where none is found."""
    step = epsilon / users.messages
    if step > _LARGEST_EXPONENT:
        return -math.inf
    scores = best_scores(users, step)
    own = 0.5 * users.messages
    counts = np.append(users.counts, [own, own])
    rows = np.vstack((users.rows, users.null, users.alternative))
    total = float(counts.sum())
    scores = scores - float(counts @ (rows @ scores)) / total
    means = rows @ scores
    variance = float(counts @ ((rows * (scores - means[:, np.newaxis]) ** 2).sum(axis=1)))
    if variance == 0.0:
        return -math.inf
    deviation = math.sqrt(variance)
    units = _UNITS if total > _FEW_MESSAGES else _COARSE_UNITS
    unit = deviation / math.sqrt(total) / units
    positions = np.rint(np.clip(scores, -_FARTHEST * deviation, _FARTHEST * deviation) / unit)
    theta = _balancing(numerators(users, step), positions)
    tilt = max(theta, unit / deviation)
    # the mean of the sum where the border is met
    at = sum(
        count * tilted(Terms(count, positions, row), theta).mean
        for count, row in zip(counts.tolist(), rows, strict=True)
        if count > 0.0
    )
    gap = float(np.diff(np.unique(positions)).max())
    offsets = (0.0, -0.5 * gap, 0.5 * gap) if tilt * gap > _COARSE else (0.0,)
    return max(
        _log_excess(users, epsilon, positions, float(math.floor(at + offset)), tilt)
        for offset in offsets
    )


def _lattice(count: float, row: FloatArray, positions: FloatArray, values: FloatArray) -> Lattice:
    kept = row > 0.0
    return Lattice(count, positions[kept], row[kept], values[kept])


def _log_excess(
    users: Users, epsilon: float, positions: FloatArray, at: float, tilt: float
) -> float:
    """Return a lower bound of the log of ``P(A) - exp(epsilon) Q(A)``, A that the sum exceeds x."""
    m = users.messages
    nothing = np.zeros_like(positions)
    # the threshold apart from the messages, so that no exponent of the tilt is large
    threshold = np.array([-at]), np.ones(1)
    background = [
        _lattice(count, row, positions, nothing)
        for count, row in zip(users.counts.tolist(), users.rows, strict=True)
        if count > 0.0
    ]

    def messages_of(*parts: tuple[int, FloatArray]) -> list[Lattice]:
        return [_lattice(float(count), row, positions, nothing) for count, row in parts if count]

    def log_mass(*parts: tuple[int, FloatArray]) -> tuple[float, float]:
        above = Lattice(1.0, *threshold, np.ones(1))
        return log_truncated_mean([above, *background, *messages_of(*parts)], 1.0, tilt)

    parts = users.parts or ((m, users.null, users.alternative),)
    log_p, rounding_p = log_mass(*((count, alternative) for count, _, alternative in parts))
    if math.isnan(log_p):
        return -math.inf
    many = float(users.counts.sum()) > _MANY_MESSAGES
    if many and m <= _MOST_REPLACED and len(parts) == 1:
        # no smaller than the quotient: a larger step is valid too
        step = epsilon / m * (1.0 + _ULP)
        own = 0.5 * (users.null + users.alternative)
        values = numerators(users, step) / np.where(own > 0.0, own, 1.0)
        replaced = _lattice(1.0, own, positions, values)
        below = Lattice(1.0, *threshold, np.zeros(1))
        total = -math.inf
        for j in range(m):
            rest = messages_of((j, users.null), (m - 1 - j, users.alternative))
            groups = [below, replaced, *background, *rest]
            value, rounding = log_truncated_mean(groups, 1.0, tilt)
            if math.isnan(value):
                break
            total = float(np.logaddexp(total, j * step + value - rounding))
        else:
            # the rounding of the rows, each of which counts with a mass of at most P(A)
            return _log_less(total, math.log(_ROW_ROUNDING * m) + log_p + rounding_p)
    log_q, rounding_q = log_mass(*((count, null) for count, null, _ in parts))
    if math.isnan(log_q):
        return -math.inf
    return _log_less(log_p - rounding_p, log_q + rounding_q + epsilon)


def _log_less(log_a: float, log_b: float) -> float:
    """Return ``log(a - b)``, -inf where that is not positive."""
    return log_a + math.log(-math.expm1(log_b - log_a)) if log_b < log_a else -math.inf
