"""The worst bits of the other users, of which there are too many to try."""

import math
from collections.abc import Callable
from functools import lru_cache
from itertools import product

import numpy as np

from fastshuffle._kernels.composition_search import search_compositions
from fastshuffle._positive_part import Bracket
from fastshuffle._typing import FloatArray
from fastshuffle.bracket import BracketProfile, Curve
from fastshuffle.exact._pair import rounding
from fastshuffle.personalized.budgets import Budgets
from fastshuffle.personalized.clones import UserClones
from fastshuffle.personalized.envelope import log_envelope
from fastshuffle.personalized.grouping import compressed, group_rows
from fastshuffle.personalized.user import UserProfile, response_pair
from fastshuffle.profile import Validity

# Up to so many compositions of the others are tried one by one.
_MOST_COMPOSITIONS = 4096
# Where the envelope is no wider than this, the blanket is not looked at.
_WIDE = 0.02
_SOURCE = (
    "definition of the hockey-stick divergence of the laws of the number of ones, a sum of "
    "independent bits; its joint convexity"
)


def worst_bits_profile(budgets: Budgets, place: int, rtol: float) -> BracketProfile:
    """Return the bracket of the worst curve of a user over what everybody holds."""
    epsilon = float(budgets.epsilons[place])
    counts = budgets.counts.copy()
    counts[place] -= 1.0
    others = budgets.epsilons[counts > 0.0]
    counts = counts[counts > 0.0]
    validity = Validity.UPPER_BOUND
    bracket: Callable[[float], Bracket]
    if math.prod(counts[:20] + 1.0) <= _MOST_COMPOSITIONS and counts.size <= 20:
        bracket, method = _Enumeration(epsilon, others, counts, budgets.n), "all bits tried"
        validity = Validity.EXACT
    elif counts.size == 1:
        bracket = _Search(epsilon, float(others[0]), float(counts[0]), rtol)
        method = f"branch and bound over the bits of the others, certified to a relative {rtol:g}"
    else:
        bracket = _Envelope(epsilon, others, counts, budgets.n)
        method = "equal bits below; above, an envelope of the curves of all bits, or the blanket"
    curve = Curve(lru_cache(maxsize=256)(bracket), epsilon, rtol)
    return BracketProfile(
        {"forward": curve, "reverse": curve},
        n=budgets.n,
        validity=validity,
        method=method,
        source=_SOURCE,
        setting={**budgets.describe(), "epsilon_i": epsilon, "bits": "all datasets"},
    )


def _rounded(lower: float, upper: float, epsilon: float) -> Bracket:
    slack = rounding(np.array([lower, upper]), np.array(epsilon))
    return Bracket(lower - float(slack[0]), min(upper + float(slack[1]), 0.0))


class _Enumeration:
    """All compositions, in one direction: exchanging all bits gives the other."""

    def __init__(self, epsilon: float, others: FloatArray, counts: FloatArray, n: int) -> None:
        log_odds = np.concatenate((-others, others))
        self._profiles = [
            UserProfile(epsilon, group_rows(log_odds, np.concatenate((counts - ones, ones))), 0, n)
            for ones in map(np.array, product(*(range(int(a) + 1) for a in counts)))
        ]

    def __call__(self, epsilon: float) -> Bracket:
        at = np.array([epsilon])
        largest = max(float(p._log_delta(at, "forward")[0]) for p in self._profiles)
        return _rounded(largest, largest, epsilon)


class _Search:
    """The certified search over compositions, for others who all have the same budget."""

    def __init__(self, epsilon: float, other: float, count: float, rtol: float) -> None:
        self._tolerance = 0.5 * math.log1p(rtol)
        self._count = count
        rows = group_rows(np.array([-other, other]), np.ones(2))
        self._inputs = np.array([rows, rows[:, [0, 2, 1, 4, 3]]])
        self._pairs = np.tile(response_pair(epsilon), (2, 1))

    def __call__(self, epsilon: float) -> Bracket:
        best = np.empty(3)
        limits = np.array([self._tolerance, -math.inf, math.inf])
        upper = search_compositions(epsilon, self._count, limits, self._inputs, self._pairs, best)
        return _rounded(float(best[0]), upper, epsilon)


class _Envelope:
    """The bits all equal, and two upper bounds for any bits.

    The blanket is the sharper one of few users at a large epsilon: another user sends a fair coin
    with chance ``2 / (1 + exp(epsilon_i))`` whatever the bit, and else is revealed.
    """

    def __init__(self, epsilon: float, others: FloatArray, counts: FloatArray, n: int) -> None:
        nodes, weights = compressed(others, counts)
        self._zeros, self._ones = group_rows(-nodes, weights), group_rows(nodes, weights)
        self._pair = response_pair(epsilon)
        self._equal = UserProfile(epsilon, self._zeros, 0, n)
        exponents = np.logaddexp(0.0, others) - math.log(2.0)
        self._blanket = UserClones((epsilon, 0.0), (exponents, np.zeros_like(others), counts))

    def __call__(self, epsilon: float) -> Bracket:
        lower, _ = self._equal._log_bounds(np.array([epsilon]), "both")
        upper = log_envelope(epsilon, self._zeros, self._ones, self._pair)
        if upper - float(lower[0]) > _WIDE:
            upper = min(upper, self._blanket(epsilon).upper)
        return Bracket(float(lower[0]), min(max(upper, float(lower[0])), 0.0))
