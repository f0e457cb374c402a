"""The clone bound with personal budgets: how many of the others hide the one who differs."""

import math
from functools import lru_cache
from typing import Literal, TypeAlias, final, get_args

import numpy as np
import numpy.typing as npt

from fastshuffle._kernels.hockey_stick import crossing_tilt
from fastshuffle._kernels.poisson_binomial import log_delta_by_clones
from fastshuffle._positive_part import Bracket
from fastshuffle._typing import FloatArray, IntArray
from fastshuffle.bracket import BracketProfile, Curve
from fastshuffle.personalized.budgets import Budgets
from fastshuffle.personalized.count_law import CountLaw
from fastshuffle.personalized.result import PersonalizedProfile
from fastshuffle.personalized.user import response_pair
from fastshuffle.profile import PrivacyProfile, Validity

Family: TypeAlias = Literal["nested", "containing"]

# Counts of clones at which the divergence is evaluated, at most.
_POINTS = 512
# More different deltas than this are rounded up to so many levels.
_MOST_DELTAS = 8
_RTOL = 1e-4
# Shares of the bound: a cost that matters, and one that does not.
_LOG_SHARE, _LOG_NOTHING = math.log(0.1), math.log(1e-4)
# The least of a bound that falls and rises is located to this power of 0.6.
_TURN_STEPS = 12
_SOURCE = (
    "clones of V. Feldman, A. McMillan, K. Talwar, arXiv:2012.12803v3; personal budgets and "
    "deltas as derived in the documentation of personalized_clone_profile"
)


class UserClones:
    """The bound for one user as a function of epsilon."""

    def __init__(
        self, budget: tuple[float, float], others: tuple[FloatArray, FloatArray, FloatArray]
    ) -> None:
        """Take (epsilon_j, delta_j), and the clone exponents, deltas and counts of the others.

        Another user sends a clone with probability ``exp(-exponent)``, up to its delta.
        """
        self._epsilon, self._delta = budget
        self._pair = response_pair(self._epsilon)
        self._exponents, self._deltas, self._counts = others
        self._thresholds: list[float] = np.unique(self._deltas).tolist()
        self._laws: dict[float, CountLaw] = {}
        self._masses: dict[float, float] = {}
        self._turns: dict[float, float] = {}

    def _law(self, most: float) -> CountLaw:
        """Return the law of the number of clones among the users with a delta of at most this."""
        if most not in self._laws:
            kept = self._deltas <= most
            with np.errstate(divide="ignore"):
                log_chance = np.log1p(-self._delta) - self._exponents[kept]
                log_odds = log_chance - np.log(-np.expm1(log_chance))
            self._laws[most] = CountLaw(log_odds, self._counts[kept])
        return self._laws[most]

    def __call__(self, epsilon: float) -> Bracket:
        """Return the bound on log delta; nothing is claimed from below."""
        with np.errstate(divide="ignore"):
            log_floor, log_rest = np.log(self._delta), np.log1p(-self._delta)
        inside = self._log_inside(epsilon) if self._delta < 1.0 else -math.inf
        upper = float(np.logaddexp(log_floor, log_rest + inside)) + 1e-15
        return Bracket(-math.inf, min(upper, 0.0))

    def _log_inside(self, epsilon: float) -> float:
        if epsilon >= self._epsilon:
            return -math.inf
        best = float(self._log_hidden(epsilon, np.zeros(1))[0])
        # with fewer clones less is hidden, so once the cost is nothing, no fewer will do
        for most in reversed(self._thresholds):
            cost = self._log_cost(epsilon, most)
            if cost < best:
                best = min(best, self._log_bound(epsilon, most))
            if cost > best + _LOG_SHARE:  # the curve falls with epsilon, but the cost rises
                turn = self._turn(most)
                if turn < epsilon and self._log_cost(turn, most) < best:
                    best = min(best, self._log_bound(turn, most))
            if cost <= best + _LOG_NOTHING:
                break
        return best

    def _log_hidden(self, epsilon: float, clones: FloatArray) -> FloatArray:
        """Return log delta of the user's bit among so many clones."""
        log_deltas = np.empty_like(clones)
        log_delta_by_clones(epsilon, clones, self._pair, log_deltas)
        return log_deltas

    def _log_cost(self, epsilon: float, most: float) -> float:
        """Return the log of what the deltas of the clones used add to delta."""
        total = self._exchanged(most)
        return math.log(total) + float(np.logaddexp(0.0, epsilon)) if total > 0.0 else -math.inf

    def _exchanged(self, most: float) -> float:
        """Return the mass that is exchanged to make whole clones of those of a delta up to this."""
        if most not in self._masses:
            kept = self._deltas <= most
            self._masses[most] = float(
                (self._counts[kept] * self._deltas[kept]) @ np.exp(-self._exponents[kept])
            )
        return self._masses[most]

    def _log_bound(self, epsilon: float, most: float) -> float:
        """Return the bound with the clones of a delta of at most ``most``."""
        _, _, log_scale, s = crossing_tilt(epsilon, self._pair)
        t, u = 1.0 / (1.0 + math.exp(-s)), 1.0 / (1.0 + math.exp(min(s, 700.0)))
        rate = math.log(2.0) + t * math.log(t) + (u * math.log(u) if u > 0.0 else 0.0)
        hidden = self._law(most).log_mean_above(
            lambda clones: self._log_hidden(epsilon, clones),
            rate=max(rate, 0.0),
            log_scale=log_scale,
            points=_POINTS,
        )
        return float(np.logaddexp(hidden, self._log_cost(epsilon, most)))

    def _turn(self, most: float) -> float:
        """Return about where the bound is least, if the deltas add to it."""
        if most not in self._turns:
            # from where the deltas alone add up to 1, the bound tells nothing
            low, high = 0.0, min(self._epsilon, max(0.0, -math.log(self._exchanged(most))))
            for _ in range(_TURN_STEPS):
                left, right = (low + share * (high - low) for share in (0.4, 0.6))
                if self._log_bound(left, most) <= self._log_bound(right, most):
                    high = right
                else:
                    low = left
            self._turns[most] = low
        return self._turns[most]


@final
class ClonesProfile(PersonalizedProfile):
    """The clone bounds of all users; see `personalized_clone_profile`."""

    def __init__(self, budgets: Budgets, family: Family) -> None:
        self._family = family
        super().__init__(budgets, [])
        # with deltas, one clone less makes the bound of a user that of all with smaller parameters
        spare = bool(budgets.deltas.any())
        self._worst = [self._bound(place, spare=spare) for place in budgets.maximal()]

    def _class_of(self, user: int) -> int:
        return self._budgets.place_of(user)

    def _classes(self) -> IntArray:
        return self._budgets.place

    def _chains(self) -> list[IntArray]:
        deltas = self._budgets.deltas
        return [np.flatnonzero(deltas == value) for value in np.unique(deltas)]

    def _make_curve(self, place: int) -> PrivacyProfile:
        return self._bound(place, spare=False)

    def _bound(self, place: int, *, spare: bool) -> BracketProfile:
        budgets = self._budgets
        epsilon, delta = float(budgets.epsilons[place]), float(budgets.deltas[place])
        counts = budgets.counts.copy()
        counts[place] -= 1.0
        if spare and counts.any():
            counts[counts.nonzero()[0][0]] -= 1.0
        if self._family == "nested":
            others = np.maximum(budgets.epsilons, epsilon), np.maximum(budgets.deltas, delta)
        else:
            others = budgets.epsilons, budgets.deltas
        bound = lru_cache(maxsize=256)(UserClones((epsilon, delta), (*others, counts)))
        curve = Curve(bound, math.inf if delta > 0.0 else epsilon, _RTOL)
        return BracketProfile(
            {"forward": curve, "reverse": curve},
            n=budgets.n,
            validity=Validity.UPPER_BOUND,
            method=f"clones, their number Poisson-binomial, of {self._family} randomizers",
            source=_SOURCE,
            setting={
                **budgets.describe(),
                "epsilon_i": epsilon,
                "delta_i": delta,
                "family": self._family,
            },
        )


def _few_levels(deltas: FloatArray) -> FloatArray:
    """Return deltas rounded up to a few levels, if they are many."""
    positive = deltas > 0.0
    if np.unique(deltas[positive]).size <= _MOST_DELTAS:
        return deltas
    largest = float(deltas.max())
    levels = np.geomspace(float(deltas[positive].min()), largest, _MOST_DELTAS)
    levels[-1] = largest
    rounded = deltas.copy()
    rounded[positive] = levels[np.searchsorted(levels, deltas[positive])]
    return np.maximum(rounded, deltas)


def personalized_clone_profile(
    epsilons: npt.ArrayLike,
    deltas: npt.ArrayLike | None = None,
    *,
    family: Family = "nested",
) -> ClonesProfile:
    """Return the clone bound for users with personal budgets.

    Parameters
    ----------
    epsilons : array_like of float, shape (n,)
        Each user's own local budget, from 0 to 1e6; 0 hides its own user perfectly.
    deltas : array_like of float, shape (n,), or float, optional
        Each user's delta_i, in [0, 1]; by default 0. More than 8 different ones are rounded up
        to 8 levels. A user with delta_i = 1 has no protection and is no clone.
    family : {"nested", "containing"}
        How the users' randomizers are related; see Notes. Without a relation there is no bound.

    Returns
    -------
    ClonesProfile
        UPPER_BOUND for replace-one neighbours with n known, for the worst user; ``user(i)`` has
        each user's own bound and ``epsilons(delta)`` one epsilon for each. A user with delta_i > 0
        has ``delta >= delta_i`` at every epsilon.

    Raises
    ------
    TypeError, ValueError
        If an argument is outside its domain.

    Notes
    -----
    **Validity.** Messages are shuffled, randomizers belong to users: what another user sends hides
    user j only if it may be what j sends. That all are eps_i-LDP is not enough: a user with
    epsilon_i = 0 who sends something j never sends hides nobody. Write ``W^i_z`` for the law of
    user i's message at input z, and (a, b) for the inputs of the differing user j.

    - *nested*: of any two users' randomizers, each row of the one with the smaller budget is a
      mixture of rows of the other, as where the more careful user replaces the input at random
      first. Binary and k-ary randomized response are nested, and so are equal randomizers.
      Then ``W^i_z >= exp(-e_ij) W^j_x`` with ``e_ij = max(epsilon_i, epsilon_j)``.
    - *containing*: ``W^i_z >= exp(-epsilon_i) (W^j_a + W^j_b) / 2`` for all i and j, up to delta_i
      for every set of messages, which is ``e_ij = epsilon_i``. Binary randomized response is one.
      k-ary response is not: the user of epsilon_i = 4 among 5 of 0.1 at a third input, k = 4, has
      delta(1) = 0.2245 where this bound would be 0.1069.
      The bound also covers pure randomizers that share a law of weight ``exp(-epsilon_i)`` among
      whose draws user j hides no worse than a bit among fair bits (`fastshuffle.protocols.vectors`
      has such).

    Input-dependent budgets, adaptive randomizers and unrelated mechanisms are not covered.

    **Derivation.** delta_j = 0 first. With keep = e / (1 + e), e = exp(epsilon_j), the laws
    ``Q_1 = (keep W_b - flip W_a) / (keep - flip)`` and ``Q_0`` likewise give ``W_b = keep Q_1 +
    flip Q_0``, ``W_a = keep Q_0 + flip Q_1`` and ``Q_0 + Q_1 = W_a + W_b``. So each other user
    sends a draw from Q_0 or Q_1 with chance ``exp(-e_ij) / 2`` each. Revealing all else, C of them
    hide a bit of randomized response with budget epsilon_j among C fair bits; C is
    Poisson-binomial, and the bound is the mean over C.

    *delta_j* adds to delta: an (epsilon, delta)-indistinguishable pair is ``W = delta U + (1 -
    delta) V`` with a pair V of pure epsilon (Kairouz, Oh, Viswanath). Revealing which of the two
    was drawn gives ``delta_j + (1 - delta_j) h``; since ``V_a + V_b <= (W_a + W_b) / (1 -
    delta_j)``, the chance of a clone in h has another factor ``1 - delta_j``. There is no factor
    ``1 + exp(epsilon)``.

    *delta_i* of another user: from ``W^j_x(S) <= exp(e) W^i_z(S) + delta_i`` for all S, the part of
    ``exp(-e) (W^j_a + W^j_b) / 2`` above W^i_z has at most the mass ``exp(-e) delta_i``; so W^i_z
    is within that total variation of a law that contains the whole clone. Exchanging one for the
    other in both datasets costs ``(1 + exp(epsilon)) exp(-e) delta_i``, once for each user who is
    used as a clone; or the user is not used, at no cost. The bound is the least over the users with
    a delta_i of at most a threshold. With *nested*, delta_i here is the larger of the two users'. A
    clone that is merely rarer by ``1 - delta_i``, with nothing to add, would not do: a fair coin
    that may be off by delta_i, one of probability ``1/2 + delta_i``, leaves ``(1/2 + delta_i)
    (keep - flip)`` of user j's bit at epsilon = 0, not ``(1/2 + delta_i / 2) (keep - flip)``.

    *The worst user* is one whom nobody exceeds in both parameters; a larger budget has fewer
    clones and hides less in them. For several such users the largest bound is taken, with one clone
    less.

    **Accuracy**: the mean over C is bounded from above, within a relative 1e-4, at deltas of 1e-200
    too. **Cost**: about 5 milliseconds an epsilon; some tenths of a second more, once for each
    user, with 1e6 different budgets.

    References
    ----------
    .. [1] V. Feldman, A. McMillan, K. Talwar, "Hiding Among the Clones", FOCS 2021,
       arXiv:2012.12803v3: there the data are shuffled before the randomizers are applied, so that
       budgets belong to places, not to users.
    .. [2] P. Kairouz, S. Oh, P. Viswanath, "The Composition Theorem for Differential Privacy",
       arXiv:1311.0776.

    Examples
    --------
    >>> import fastshuffle as fs
    >>> profile = fs.personalized_clone_profile([1.0] * 900 + [2.0] * 100, family="containing")
    >>> print(profile.validity, f"{profile.epsilon(1e-6):.4f} {profile.user(0).epsilon(1e-6):.4f}")
    UPPER_BOUND 0.3242 0.1889
    """
    if family not in get_args(Family):
        raise ValueError(f"family must be 'nested' or 'containing', got {family!r}")
    budgets = Budgets(epsilons, deltas)
    few = _few_levels(budgets.deltas)
    if few is not budgets.deltas:
        budgets = Budgets(epsilons, few[budgets.place])
    return ClonesProfile(budgets, family)
