"""One user of binary randomized response among others whose bits are known."""

import math
from typing import Any, final

import numpy as np

from fastshuffle._kernels.binomial_groups import drop_certain_groups, mirror_groups
from fastshuffle._typing import FloatArray
from fastshuffle.exact._group_curves import GroupCurves
from fastshuffle.exact._pair import FORWARD, REVERSE
from fastshuffle.personalized.grouping import group_rows
from fastshuffle.profile import Validity

_SOURCE = (
    "definition of the hockey-stick divergence of the laws of the number of ones, a sum of "
    "independent bits"
)


def response_pair(epsilon: float) -> FloatArray:
    """Return the pair of `fastshuffle._kernels.hockey_stick` of binary randomized response."""
    log_keep = -math.log1p(math.exp(-epsilon))
    return np.array([math.exp(log_keep), log_keep, log_keep, epsilon, epsilon])


@final
class UserProfile(GroupCurves):
    """The exact curve of one user among others whose bits are known."""

    def __init__(self, epsilon: float, others: FloatArray, bit: int, n: int) -> None:
        """Take the groups of the others' ones; the user holds ``bit`` in the first dataset."""
        kept = np.empty_like(others)
        n_kept, _ = drop_certain_groups(others, kept)
        self._n = n
        self._budget = epsilon
        self._bit = bit
        self._groups = np.empty((2, n_kept, 5))
        ones, zeros = (FORWARD, REVERSE) if bit == 0 else (REVERSE, FORWARD)
        self._groups[ones] = kept[:n_kept]
        mirror_groups(self._groups[ones], self._groups[zeros])
        self._pairs = np.tile(response_pair(epsilon), (2, 1))
        keep, flip = group_rows(np.array([epsilon, -epsilon]), np.ones(2))
        self._own = np.array([[flip, keep], [keep, flip]])

    @property
    def n(self) -> int:
        """Number of users, including the one who differs."""
        return self._n

    @property
    def validity(self) -> Validity:
        """EXACT."""
        return Validity.EXACT

    @property
    def method(self) -> str:
        """How the numbers are computed, in a few words."""
        return "contour sum over the groups of the other users; closed-form inverse"

    @property
    def source(self) -> str:
        """The definition that the numbers rest on."""
        return _SOURCE

    def _setting(self) -> dict[str, Any]:
        return {"n": self._n, "epsilon_i": self._budget, "bit": self._bit}

    def __repr__(self) -> str:
        return f"<UserProfile, EXACT, epsilon_i = {self._budget!r}, n = {self._n}>"


def without_one(rows: FloatArray, log_odds: float) -> FloatArray:
    """Return groups with one user less.

    Where users were gathered, the user is taken off as a group of -1: all that is summed over the
    groups is additive.
    """
    own = group_rows(np.array([log_odds]), np.array([-1.0]))
    same = np.flatnonzero((rows[:, 3] == own[0, 3]) & (rows[:, 4] == own[0, 4]))
    if not same.size or rows[same[0], 0] < 1.0:
        return np.vstack((rows, own))
    rows = rows.copy()
    rows[same[0], 0] -= 1.0
    return rows
