"""The result of every method for personal budgets: the worst user's curve, and each user's own."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from fastshuffle._typing import Direction, FloatArray, IntArray
from fastshuffle._validation import PROBABILITY, check_direction, check_real
from fastshuffle.personalized.budgets import Budgets
from fastshuffle.profile import PrivacyProfile, Validity


class PersonalizedProfile(PrivacyProfile):
    """The worst user's curve; `user` has that of each user and `epsilons` one number for each.

    A guarantee for everybody is that of the worst user. Users with the same budget (and, where it
    is known, the same bit) have the same curve, which is made once.
    """

    _most_inverted = 64
    """So many curves are inverted by `epsilons`; the others take the next one above."""

    def __init__(self, budgets: Budgets, worst: Sequence[PrivacyProfile]) -> None:
        self._budgets = budgets
        self._worst = list(worst)
        self._of_class: Callable[[int], PrivacyProfile] = cache(self._make_curve)

    @abstractmethod
    def _class_of(self, user: int) -> int:
        """Return the class of a user, all of whom have the same curve."""

    @abstractmethod
    def _classes(self) -> IntArray:
        """Return the class of every user."""

    @abstractmethod
    def _chains(self) -> list[IntArray]:
        """Return all classes, in lists along each of which the curves rise."""

    @abstractmethod
    def _make_curve(self, place: int) -> PrivacyProfile:
        """Return the curve of the users of one class."""

    @property
    def n(self) -> int:
        """Number of users."""
        return self._budgets.n

    @property
    def validity(self) -> Validity:
        """What the numbers are."""
        return self._worst[0].validity

    @property
    def method(self) -> str:
        """How the numbers are computed, in a few words."""
        return f"the worst of {self.n} users: {self._worst[0].method}"

    @property
    def source(self) -> str:
        """The definition or theorem, with its version, that the numbers rest on."""
        return self._worst[0].source

    def user(self, user: int) -> PrivacyProfile:
        """Return the profile of one user: the datasets differ in what this user holds.

        Parameters
        ----------
        user : int
            From 0 to n - 1, in the order of the budgets.

        Returns
        -------
        PrivacyProfile
            Of the same validity.

        Raises
        ------
        TypeError, ValueError
            If there is no such user.
        """
        return self._of_class(self._class_of(user))

    def epsilons(self, delta: float, *, direction: Direction = "both") -> FloatArray:
        """Return for each user the smallest epsilon that goes with delta, on the safe side.

        Parameters
        ----------
        delta : float
            Privacy parameter in [0, 1], the same for all users.
        direction : {"both", "forward", "reverse"}
            Which divergence; both is the larger.

        Returns
        -------
        numpy.ndarray of float, shape (n,)
            ``user(i).epsilon(delta)``, computed once for each budget. Of more than 64 different
            budgets (16 for k-ary response), so many are computed and each of the others has the
            epsilon of the next one above: a user with a larger budget has a larger curve.

        Raises
        ------
        TypeError, ValueError
            If the delta is no real number in [0, 1], or the direction is unknown.

        Warns
        -----
        DeltaWarning
            If delta is 1/n or more.
        """
        target = check_real("delta", delta, PROBABILITY)
        which = check_direction(direction)
        classes = self._classes()
        values = np.empty(int(classes.max()) + 1)
        chains = self._chains()
        most = max(2, self._most_inverted // len(chains))
        for chain in chains:
            last = chain.size - 1
            inverted = np.unique(np.linspace(0, last, min(last + 1, most)).astype(int))
            found = np.array(
                [self._of_class(int(c)).epsilon(target, direction=which) for c in chain[inverted]]
            )
            values[chain] = found[np.searchsorted(inverted, np.arange(chain.size))]
        return values[classes]

    def _log_delta(self, epsilons: FloatArray, direction: Direction) -> FloatArray:
        return np.array([p._log_delta(epsilons, direction) for p in self._worst]).max(axis=0)

    def _log_bounds(
        self, epsilons: FloatArray, direction: Direction
    ) -> tuple[FloatArray, FloatArray]:
        bounds = np.array([p._log_bounds(epsilons, direction) for p in self._worst])
        lower, upper = bounds.max(axis=0)
        return lower, upper

    def _epsilon(self, log_deltas: FloatArray, direction: Direction) -> FloatArray:
        return np.array([p._epsilon(log_deltas, direction) for p in self._worst]).max(axis=0)

    def _trade_off(self, alphas: FloatArray, direction: Direction) -> FloatArray:
        return np.array([p._trade_off(alphas, direction) for p in self._worst]).min(axis=0)

    def _setting(self) -> dict[str, Any]:
        return self._budgets.describe()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}, {self.validity}, n = {self.n}>"
