"""Many different probabilities as few binomial groups, to rounding.

Every sum over users that the contour kernels form is one of a smooth function of the log odds of
the user's probability: the log characteristic function, the mean and the divergence of the tilted
bit have their nearest singularities at a distance of pi from the real line. So within a bin of
width 1 the users are replaced by the nodes of the Gauss rule of their own log odds. With m nodes it
is exact for polynomials up to degree ``2 m - 1``, and the analytic functions in question are
polynomials to within ``9**-(2 m - 1)``, 1e-21 of themselves: far below rounding. The weights are
positive and add up to the number of users, which need not be whole for each group.
"""

import math
from itertools import pairwise

import numpy as np

from fastshuffle._typing import FloatArray

_NODES = 12
# Bins with fewer different log odds are left as they are.
_MANY = 32
# Longer bins are first reduced in pieces, which fit into the cache.
_PIECE = 4096


def group_rows(log_odds: FloatArray, counts: FloatArray) -> FloatArray:
    """Return the rows ``(a, p, q, log p, log q)`` of binomial groups with given log odds."""
    rows = np.empty((log_odds.size, 5))
    rows[:, 0] = counts
    rows[:, 3] = -np.logaddexp(0.0, -log_odds)
    rows[:, 4] = -np.logaddexp(0.0, log_odds)
    rows[:, 1] = np.exp(rows[:, 3])
    rows[:, 2] = np.exp(rows[:, 4])
    return rows


def compressed(log_odds: FloatArray, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return few log odds and weights in place of many, all finite and in ascending order."""
    if log_odds.size <= 4 * _MANY:
        return log_odds, counts
    bins = np.floor(log_odds)
    edges = np.append(np.flatnonzero(np.diff(bins, prepend=-math.inf)), log_odds.size)
    unit = math.ulp(float(counts.sum()))
    parts = []
    for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        part = log_odds[first:last], counts[first:last]
        if last - first > _PIECE:
            pieces = [
                _gauss_rule(log_odds[i:j], counts[i:j], unit)
                for i, j in pairwise([*range(first, last, _PIECE), last])
            ]
            part = np.concatenate([x for x, _ in pieces]), np.concatenate([a for _, a in pieces])
        parts.append(_gauss_rule(*part, unit) if last - first > _MANY else part)
    nodes, weights = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return nodes, weights


def _gauss_rule(x: FloatArray, counts: FloatArray, unit: float) -> tuple[FloatArray, FloatArray]:
    """Return the nodes and weights of the Gauss rule of a discrete measure, by Lanczos' method.

    The weights are whole multiples of ``unit``, so that their sum is exact in any order.
    """
    total = float(counts.sum())
    center = math.floor(float(x[0])) + 0.5
    basis = np.empty((_NODES, x.size))
    basis[0] = np.sqrt(counts / total)
    diagonal, beside = np.zeros(_NODES), np.zeros(_NODES)
    size = _NODES
    for k in range(_NODES):
        vector = (x - center) * basis[k]
        diagonal[k] = vector @ basis[k]
        for _ in range(2):  # orthogonal to rounding
            vector -= (basis[: k + 1] @ vector) @ basis[: k + 1]
        beside[k] = math.sqrt(float(vector @ vector))
        if beside[k] < 1e-13:  # so few different values that the rule is exact
            size = k + 1
            break
        if k + 1 < _NODES:
            basis[k + 1] = vector / beside[k]
    jacobi = np.diag(diagonal[:size])
    jacobi += np.diag(beside[: size - 1], 1) + np.diag(beside[: size - 1], -1)
    nodes, vectors = np.linalg.eigh(jacobi)
    weights = np.rint(total * vectors[0] ** 2 / unit) * unit
    weights[weights.argmax()] += total - math.fsum(weights)
    kept = weights > 0.0
    return center + nodes[kept], weights[kept]
