"""A lower bound on a trade-off function from an upper bound on the privacy profile."""

import math
from collections.abc import Callable

import numpy as np

from fastshuffle._typing import OPPOSITE, Direction, FloatArray, Side
from fastshuffle.profile import PrivacyProfile

_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)


def trade_off_below(
    profile: PrivacyProfile, alphas: FloatArray, direction: Direction, largest_loss: float
) -> FloatArray:
    """Return lower bounds on the type II errors at levels alpha, from the deltas of a profile."""
    if direction == "both":
        forward, reverse = (
            trade_off_below(profile, alphas, side, largest_loss) for side in OPPOSITE
        )
        return np.minimum(forward, reverse)

    def delta_of(side: Side) -> Callable[[float], float]:
        return lambda epsilon: float(profile.delta(epsilon, direction=side))

    sides = delta_of(direction), delta_of(OPPOSITE[direction])
    return np.array(
        [highest_supporting_line(alpha, *sides, largest_loss) for alpha in alphas.tolist()]
    )


def highest_supporting_line(
    alpha: float,
    delta: Callable[[float], float],
    opposite_delta: Callable[[float], float],
    largest_loss: float,
) -> float:
    """Return the largest lower bound on the type II error at level alpha among supporting lines.

    Every epsilon gives two lines below the trade-off function of a null and an alternative law:
    ``1 - delta - exp(epsilon) alpha`` with delta that of the alternative from the null, and
    ``exp(-epsilon) (1 - delta - alpha)`` with that of the null from the alternative. For a profile
    they are concave in exp(epsilon) and in exp(-epsilon), so a golden-section search finds the
    highest. Every line it visits is valid, so the result is on the safe side whatever the search
    does.
    """
    if alpha == 1.0:
        return 0.0
    if alpha == 0.0:  # the steep lines rise with epsilon
        return 1.0 - delta(math.inf)
    # delta(0) is about 0.4 standard deviations of the privacy loss; beyond 40 no line matters
    reach = min(largest_loss, 100.0 * delta(0.0))

    def steep(epsilon: float) -> float:
        return 1.0 - delta(epsilon) - math.exp(epsilon) * alpha

    def flat(epsilon: float) -> float:
        return math.exp(-epsilon) * (1.0 - opposite_delta(epsilon) - alpha)

    return max(0.0, *(_largest_value(line, reach) for line in (steep, flat)))


def _largest_value(function: Callable[[float], float], high: float) -> float:
    low = 0.0
    inner = [high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)]
    values = [function(x) for x in inner]
    largest = max(function(low), function(high), *values)
    for _ in range(40):
        if values[0] >= values[1]:
            high = inner[1]
            inner = [high - _GOLDEN * (high - low), inner[0]]
            values = [function(inner[0]), values[0]]
        else:
            low = inner[0]
            inner = [inner[1], low + _GOLDEN * (high - low)]
            values = [values[1], function(inner[1])]
        largest = max(largest, *values)
    return largest
