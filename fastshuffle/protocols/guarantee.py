"""Who is protected how well: the users by their local budget, and the profile of each."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastshuffle._typing import FloatArray, IntArray
from fastshuffle._validation import (
    NONNEGATIVE,
    PROBABILITY,
    Interval,
    check_count,
    check_real,
    check_reals,
)
from fastshuffle.profile import PrivacyProfile, Validity

__all__ = ["BudgetGroup", "Guarantee", "LocalBudgets", "check_budgets", "tagged_guarantee"]

TAGGED = (
    "every message shows the budget of its sender: a user hides among the users of the same budget"
)
ONE_BUDGET = "all users have one budget: a user hides among all"
# Below, the variance of a message is no double.
_BUDGET = Interval(1e-100, 1e100, "in [1e-100, 1e100]")
# From the strongest statement to the weakest.
_STRENGTH = (
    Validity.EXACT,
    Validity.UPPER_BOUND,
    Validity.LOWER_BOUND,
    Validity.APPROXIMATION,
    Validity.ESTIMATE,
)


class LocalBudgets(NamedTuple):
    """The local budgets of n users, by value.

    Attributes
    ----------
    values : numpy.ndarray of float64
        The different epsilon0, increasing.
    group_of : numpy.ndarray of int64, shape (n,)
        For each user the place of the budget in ``values``.
    """

    values: FloatArray
    group_of: IntArray

    @property
    def sizes(self) -> IntArray:
        """How many users have each budget."""
        return np.bincount(self.group_of, minlength=self.values.size)

    def members(self) -> list[npt.NDArray[np.intp]]:
        """Return the places of the users of each budget."""
        order = np.argsort(self.group_of, kind="stable")
        return np.split(order, np.cumsum(self.sizes)[:-1])


def check_budgets(epsilon0: npt.ArrayLike, n: int) -> LocalBudgets:
    """Return the budgets of n users, one for all or one each, in [1e-100, 1e100]."""
    values, shape = check_reals("epsilon0", epsilon0, _BUDGET)
    if shape not in ((), (n,)):
        raise ValueError(f"epsilon0 must be one number, or one for each of {n} users, got {shape}")
    if not shape:
        return LocalBudgets(values, np.zeros(n, dtype=np.int64))
    different, group_of = np.unique(values, return_inverse=True)
    return LocalBudgets(different, group_of.astype(np.int64))


class BudgetGroup(NamedTuple):
    """The users of one local budget.

    Attributes
    ----------
    epsilon0 : float
        Local privacy parameter of all that a user of the group sends: what holds without a
        shuffler.
    users : int
        How many users have it.
    profile : PrivacyProfile
        What the analyst's view reveals of one of them.
    delta0 : float
        The local delta that goes with epsilon0.
    """

    epsilon0: float
    users: int
    profile: PrivacyProfile
    delta0: float = 0.0


class Guarantee:
    """The privacy of every user of a protocol, before and after the shuffle.

    The neighbouring relation is replace-one: one user's value changes, while n and everybody's
    budget are public and stay.

    Parameters
    ----------
    groups : iterable of BudgetGroup
        One or more; each has at least one user.
    group_of : array_like of int, shape (n,)
        For each user the place of the group.
    view : str
        What the analyst sees, in words.

    Raises
    ------
    TypeError, ValueError
        If there is no group, or the groups do not have the users that ``group_of`` says.

    Examples
    --------
    >>> import fastshuffle as fs
    >>> from fastshuffle.protocols import BudgetGroup, Guarantee
    >>> profile = fs.worst_case_profile(fs.binary_randomized_response(1.0), 10_000)
    >>> guarantee = Guarantee([BudgetGroup(1.0, 10_000, profile)], [0] * 10_000, view="bits")
    >>> print(f"{guarantee.epsilon0:g} alone, {guarantee.epsilon(1e-8):.4f} shuffled")
    1 alone, 0.0470 shuffled
    """

    def __init__(
        self, groups: Iterable[BudgetGroup], group_of: npt.ArrayLike, *, view: str
    ) -> None:
        self._groups = tuple(groups)
        self._group_of = np.asarray(group_of, dtype=np.int64)
        self._view = view
        if not self._groups:
            raise ValueError("groups must be one or more, got none")
        found = np.bincount(self._group_of, minlength=len(self._groups)).tolist()
        said = [group.users for group in self._groups]
        if found != said or min(said) < 1:
            raise ValueError(f"groups must have the users of group_of, {found}, got {said}")

    @property
    def groups(self) -> tuple[BudgetGroup, ...]:
        """The users by budget."""
        return self._groups

    @property
    def n(self) -> int:
        """Number of users."""
        return self._group_of.size

    @property
    def view(self) -> str:
        """What the analyst sees."""
        return self._view

    @property
    def epsilon0(self) -> float:
        """The largest local privacy parameter: what holds for everybody without a shuffler."""
        return max(group.epsilon0 for group in self._groups)

    @property
    def delta0(self) -> float:
        """The largest local delta."""
        return max(group.delta0 for group in self._groups)

    @property
    def validity(self) -> Validity:
        """The weakest of what the profiles are."""
        return max((group.profile.validity for group in self._groups), key=_STRENGTH.index)

    def user(self, i: float) -> PrivacyProfile:
        """Return the profile of user i.

        Parameters
        ----------
        i : int
            From 0 to n - 1.

        Returns
        -------
        PrivacyProfile
            What the analyst's view reveals of the user.

        Raises
        ------
        TypeError, ValueError
            If there is no such user.
        """
        place = check_count("i", i, minimum=0, maximum=self.n - 1)
        return self._groups[int(self._group_of[place])].profile

    def epsilon(self, delta: float) -> float:
        """Return the epsilon that holds for every user at delta; see `PrivacyProfile.epsilon`."""
        target = check_real("delta", delta, PROBABILITY)
        return max(self._each(lambda profile: float(profile.epsilon(target))))

    def delta(self, epsilon: float) -> float:
        """Return the delta that holds for every user at epsilon; see `PrivacyProfile.delta`."""
        target = check_real("epsilon", epsilon, NONNEGATIVE)
        return max(self._each(lambda profile: float(profile.delta(target))))

    def epsilons(self, delta: float) -> FloatArray:
        """Return the epsilon of each user at one delta.

        Parameters
        ----------
        delta : float
            Privacy parameter in [0, 1].

        Returns
        -------
        numpy.ndarray of float64, shape (n,)
            On the safe side, each.

        Raises
        ------
        TypeError, ValueError
            If delta is no real number in [0, 1].
        """
        target = check_real("delta", delta, PROBABILITY)
        return np.array(self._each(lambda profile: float(profile.epsilon(target))))[self._group_of]

    def _each(self, value_of: Callable[[PrivacyProfile], float]) -> list[float]:
        return [value_of(group.profile) for group in self._groups]

    def to_dict(self, *, delta: float) -> dict[str, Any]:
        """Return the guarantee in plain Python values, ready for JSON; inf is the string "inf".

        Parameters
        ----------
        delta : float
            Privacy parameter in [0, 1], at which epsilon is stated.

        Returns
        -------
        dict
            The worst user, and the users of each budget with their profile.

        Raises
        ------
        TypeError, ValueError
            If delta is no real number in [0, 1].
        """
        target = check_real("delta", delta, PROBABILITY)
        rows = [
            {
                "epsilon0": group.epsilon0,
                "delta0": group.delta0,
                "users": group.users,
                **group.profile.to_dict(delta=target),
            }
            for group in self._groups
        ]
        worst = self.epsilon(target)
        return {
            "view": self._view,
            "validity": str(self.validity),
            "relation": self._groups[0].profile.relation,
            "local": {"epsilon": self.epsilon0, "delta": self.delta0},
            "central": {"epsilon": worst if np.isfinite(worst) else "inf", "delta": target},
            "groups": rows,
        }

    def __repr__(self) -> str:
        return (
            f"<Guarantee, {self.validity}: {self.n} users, {len(self._groups)} budgets up to "
            f"{self.epsilon0:g}>"
        )


def tagged_guarantee(
    budgets: LocalBudgets, profile_of: Callable[[float, int], PrivacyProfile]
) -> Guarantee:
    """Return the guarantee of messages that show the budget of their sender, if there are several.

    Parameters
    ----------
    budgets : LocalBudgets
        The users' budgets.
    profile_of : callable
        From epsilon0 and a number of users who all have it to the profile of one of them, over
        all that they may hold.

    Returns
    -------
    Guarantee
        A user hides among those of the same budget: the messages of the others, which are told
        apart, hide nothing. It holds as well where the budgets are not shown, since forgetting
        them is a post-processing.
    """
    groups = [
        BudgetGroup(epsilon0, size, profile_of(epsilon0, size))
        for epsilon0, size in zip(budgets.values.tolist(), budgets.sizes.tolist(), strict=True)
    ]
    return Guarantee(groups, budgets.group_of, view=TAGGED if len(groups) > 1 else ONE_BUDGET)
