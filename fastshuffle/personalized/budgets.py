"""The privacy parameters of all users: checked, and each different pair once."""

from typing import Any

import numpy as np

from fastshuffle._typing import FloatArray, IntArray
from fastshuffle._validation import PROBABILITY, Interval, check_count, check_reals

# Far beyond any use, and logarithms of chances still add up.
_BUDGET = Interval(0.0, 1e6, ">= 0 and at most 1e6")


class Budgets:
    """The (epsilon_i, delta_i) of n users, in ascending order and each different pair once.

    Attributes
    ----------
    n : int
        Number of users.
    epsilons, deltas, counts : array of float, shape (m,)
        The different pairs and how many users have each.
    place : array of int, shape (n,)
        For each user the place of the pair.
    """

    def __init__(self, epsilons: Any, deltas: Any = None) -> None:
        budgets, shape = check_reals("epsilons", epsilons, _BUDGET)
        if len(shape) != 1:
            raise ValueError(f"epsilons must be 1-D, one a user, got {len(shape)}-D")
        if not budgets.size:
            raise ValueError("epsilons must have at least one user, got none")
        keys = budgets.astype(np.complex128)
        if deltas is not None:
            floors, floors_shape = check_reals("deltas", deltas, PROBABILITY)
            if floors_shape not in (shape, ()):
                raise ValueError(
                    f"deltas must be one number or as many as epsilons, {shape[0]}, got shape "
                    f"{floors_shape}"
                )
            keys.imag = floors
        self.n = int(shape[0])
        distinct, place, counts = np.unique(keys, return_inverse=True, return_counts=True)
        self.epsilons: FloatArray = np.ascontiguousarray(distinct.real)
        self.deltas: FloatArray = np.ascontiguousarray(distinct.imag)
        self.counts: FloatArray = counts.astype(np.float64)
        self.place: IntArray = place.astype(np.int64)

    def place_of(self, user: Any) -> int:
        """Return the place of the pair of one user, the argument ``user``."""
        return int(self.place[check_count("user", user, minimum=0, maximum=self.n - 1)])

    def maximal(self) -> list[int]:
        """Return the places of the pairs that no other pair exceeds in both parameters."""
        found: list[int] = []
        largest = -1.0
        for place in range(self.epsilons.size - 1, -1, -1):
            if self.deltas[place] > largest:
                found.append(place)
                largest = float(self.deltas[place])
        return found

    def describe(self) -> dict[str, Any]:
        """Return a summary in plain values, for JSON."""
        return {
            "n": self.n,
            "budgets": int(self.epsilons.size),
            "epsilons": [float(self.epsilons[0]), float(self.epsilons[-1])],
            "deltas": [float(self.deltas.min()), float(self.deltas.max())],
        }
