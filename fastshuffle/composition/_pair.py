"""Two laws on finitely many privacy losses, from a privacy curve known at some nodes.

In ``a = exp(epsilon) - 1`` a privacy curve is convex, falls, and is 0 or a constant in the end. A
convex curve that falls from ``h(0)`` in straight pieces *is* the forward curve of a pair of laws on
the vertices' losses: the vertex at ``a`` has the mass Q by which the steepness falls there, and
``P = (1 + a) Q``; what the curve ends at is the mass of P where Q has none. The other direction
gives the losses below 0 in the same way with the roles of P and Q exchanged, and what is left of
the total is the mass of both at loss 0.

*Above.* The straight pieces between nodes lie above a convex curve (V. Doroshenko, B. Ghazi, P.
Kamath, R. Kumar, P. Manurangsi, "Connect the Dots", arXiv:2207.04380, who prove them the best
choice for given nodes). Values known from above only need not be convex: their lower convex hull
still is above every convex curve below them.

*Below.* Between two nodes a convex curve lies above the straight continuations of the pieces on
either side. The lower convex hull of these is below it, and a convex curve.

Both errors are of second order in the distance of nodes. Masses are sums and differences of the
given values relative to their own size, so that curves of 1e-200 and losses of 1e-8 keep their
digits.
"""

from typing import NamedTuple

import numpy as np

from fastshuffle._typing import FloatArray

# Some dozen roundings of a value, its place, and the steepness and mass that come of them.
ROUNDING = 2e-14
# exp of the largest loss; that of a step more is a double too.
_LARGEST_PLACE = 2e304


class Nodes(NamedTuple):
    """One direction of a curve at losses 0 = x[0] < x[1] < ..., between two values, and at inf."""

    losses: FloatArray
    lower: FloatArray
    upper: FloatArray
    floor: float
    """A lower bound of the curve at inf; its upper one is that at the last node."""


class Atoms(NamedTuple):
    """A pair of laws on finitely many losses: the losses, P, Q, and P where Q has no mass."""

    losses: FloatArray
    p: FloatArray
    q: FloatArray
    infinite: float


def atoms_above(forward: Nodes, reverse: Nodes) -> Atoms:
    """Return a pair whose curve is at least the given one at all epsilon, losses at nodes only."""
    sides = [
        (np.expm1(side.losses[1:]), np.minimum.accumulate(side.upper * (1.0 + ROUNDING))[1:])
        for side in (forward, reverse)
    ]
    start = min(float(side.upper[0]) for side in (forward, reverse)) * (1.0 + ROUNDING)
    return _atoms(sides, min(start, 1.0), above=True)


def atoms_below(forward: Nodes, reverse: Nodes) -> Atoms:
    """Return a pair whose curve is at most the given one at all epsilon."""
    start = max(float(side.lower[0]) for side in (forward, reverse)) * (1.0 - ROUNDING)
    sides = [_continued(forward, reverse), _continued(reverse, forward)]
    return _atoms(sides, max(start, 0.0), above=False)


def _continued(side: Nodes, opposite: Nodes) -> tuple[FloatArray, FloatArray]:
    """Return the nodes after the first, and where the continuations of the pieces meet."""
    a = np.expm1(side.losses)
    low, high = side.lower * (1.0 - ROUNDING), side.upper * (1.0 + ROUNDING)
    width = np.diff(a)
    # the steepness of the piece before, at most; in this direction that at losses below 0 is
    # 1 - h(0) less the steepness in the other
    other = np.expm1(opposite.losses[1]), opposite.upper[1] * (1.0 + ROUNDING)
    first = 1.0 - low[0] - max(low[0] - other[1], 0.0) / other[0] + ROUNDING
    before = np.concatenate(([first], (high[:-2] - low[1:-1]) / width[:-1]))
    # that of the piece behind, at least
    behind = np.append(np.maximum(low[1:-1] - high[2:], 0.0) / width[1:], 0.0)
    turn = before - behind
    with np.errstate(divide="ignore", invalid="ignore"):
        step = np.clip((low[:-1] - low[1:] - behind * width) / turn, 0.0, width)
    met = turn > 0.0
    step = np.where(met, step, 0.0)
    value = np.maximum(low[:-1] - before * step, low[1:] + behind * (width - step))
    last = (high[-2] - low[-1]) / width[-1]
    ends, floors = a[1:], low[1:]
    floor = side.floor * (1.0 - ROUNDING)
    if last > 0.0:
        with np.errstate(over="ignore"):
            zero = a[-1] + (low[-1] - floor) / last
        # an end before that is below too
        ends = np.append(ends, min(zero, _LARGEST_PLACE))
        floors = np.append(floors, floor)
    places = np.concatenate(((a[:-1] + step)[met], ends))
    values = np.concatenate((value[met], floors))
    kept = places > 0.0
    order = np.lexsort((values[kept], places[kept]))
    places, values = places[kept][order], np.maximum(values[kept][order], 0.0)
    distinct = np.diff(places, prepend=0.0) > 0.0
    return places[distinct], values[distinct]


def _atoms(sides: list[tuple[FloatArray, FloatArray]], start: float, *, above: bool) -> Atoms:
    start = _highest_start(sides, start, above=above)
    steepness = 0.0
    parts: list[tuple[FloatArray, FloatArray]] = []
    ends = []
    for places, values in sides:
        vertices, slopes, end = _lower_hull(places, values, start)
        parts.append((vertices, slopes - np.append(slopes[1:], 0.0)))
        steepness += float(slopes[0]) if slopes.size else 0.0
        ends.append(end)
    zero = np.array([max(1.0 - start - steepness, 0.0)])
    (right, q_right), (left, p_left) = parts
    losses = np.concatenate((-np.log1p(left)[::-1], [0.0], np.log1p(right)))
    p = np.concatenate((p_left[::-1], zero, q_right * (1.0 + right)))
    q = np.concatenate(((p_left * (1.0 + left))[::-1], zero, q_right))
    return Atoms(losses, p, q, ends[0])


def _highest_start(
    sides: list[tuple[FloatArray, FloatArray]], start: float, *, above: bool
) -> float:
    """Return the largest h(0) up to ``start`` with which the curve is convex across loss 0."""

    def excess(value: float) -> float:
        steepest = (float(((value - h) / a).max(initial=0.0)) for a, h in sides)
        return value + sum(steepest) - 1.0

    if excess(start) <= 0.0:
        return start
    low, high = 0.0, start
    while high - low > 1e-15 * high:
        middle = 0.5 * (low + high)
        if excess(middle) > 0.0:
            high = middle
        else:
            low = middle
    return high if above else low


def _lower_hull(
    places: FloatArray, values: FloatArray, start: float
) -> tuple[FloatArray, FloatArray, float]:
    """Return the vertices after the first of the falling hull from (0, start), and its slopes.

    Slopes are how fast the curve falls towards each vertex; the last number is where it ends.
    """
    xs, ys = [0.0], [start]
    slopes: list[float] = []
    lowest = start
    for x, y in zip(places.tolist(), values.tolist(), strict=True):
        if not y < lowest:
            continue
        lowest = y
        slope = (ys[-1] - y) / (x - xs[-1])
        while slopes and slope >= slopes[-1]:
            xs.pop()
            ys.pop()
            slopes.pop()
            slope = (ys[-1] - y) / (x - xs[-1])
        xs.append(x)
        ys.append(y)
        slopes.append(slope)
    return np.array(xs[1:]), np.array(slopes), ys[-1]
