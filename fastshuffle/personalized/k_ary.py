"""k-ary randomized response with personal budgets: a certified bracket."""

import math
from functools import lru_cache
from typing import final

import numpy as np
import numpy.typing as npt

from fastshuffle._background import BackgroundPair
from fastshuffle._positive_part import Bracket
from fastshuffle._typing import FloatArray, IntArray
from fastshuffle._validation import RELATIVE_TOLERANCE, check_count, check_real
from fastshuffle.bracket import BracketProfile, Curve
from fastshuffle.personalized.budgets import Budgets
from fastshuffle.personalized.count_law import CountLaw
from fastshuffle.personalized.difference import log_test_power
from fastshuffle.personalized.exact import WorstBitsProfile
from fastshuffle.personalized.grouping import compressed
from fastshuffle.personalized.result import PersonalizedProfile
from fastshuffle.profile import PrivacyProfile, Validity

# Numbers of blanket messages at which the divergence is evaluated.
_POINTS = 24
# Tilts tried for the exponential bound that says where the mean over their number matters.
_TILTS = 60
_LARGEST_EPSILON = 700.0
_SOURCE = (
    "privacy blanket of B. Balle, J. Bell, A. Gascon, K. Nissim, arXiv:1903.02837v2, with personal "
    "budgets as derived in the documentation of personalized_k_rr_profile"
)


class _UserBracket:
    """The bracket of one user's worst curve as a function of epsilon."""

    def __init__(
        self, budget: float, others: tuple[FloatArray, FloatArray], k: int, rtol: float
    ) -> None:
        self._budget, self._k, self._rtol = budget, k, rtol
        budgets, counts = others
        with np.errstate(divide="ignore", over="ignore"):
            log_odds = math.log(k) - np.where(
                budgets > 1.0, budgets + np.log1p(-np.exp(-budgets)), np.log(np.expm1(budgets))
            )
        self._law = CountLaw(log_odds, counts)
        self._n = int(counts.sum()) + 1
        self._equal = counts.size == 1
        self._shared = (
            k / (math.exp(min(float(budgets[0]), 700.0)) + k - 1.0) if counts.size else 1.0
        )
        self._others = compressed(budgets, counts)
        log_flip = -float(np.logaddexp(budget, math.log(k - 1.0)))
        flip, keep = math.exp(log_flip), math.exp(budget + log_flip)
        self._background = np.array([1.0, 1.0, k - 2.0]) / k
        self._null = np.array([keep, flip, (k - 2.0) * flip])
        self._alternative = self._null[[1, 0, 2]]
        self._losses = np.array([-budget, budget, 0.0])

    def __call__(self, epsilon: float) -> Bracket:
        lower = log_test_power(epsilon, self._budget, self._others, self._k)
        return Bracket(lower, min(max(self._log_upper(epsilon), lower), 0.0))

    def _log_upper(self, epsilon: float) -> float:
        if self._equal:  # their number is binomial, and part of the homogeneous sum
            return self._log_divergence(epsilon, self._n, self._shared)
        rate, log_scale = self._exponential_bound(epsilon)
        return self._law.log_mean_above(
            lambda messages: np.array(
                [self._log_divergence(epsilon, int(m) + 1, 1.0) for m in messages.tolist()]
            ),
            rate=rate,
            log_scale=log_scale,
            points=_POINTS,
        )

    def _log_divergence(self, epsilon: float, n: int, shared: float) -> float:
        """Return an upper bound on log delta among n - 1 messages, each uniform or revealed."""
        pair = BackgroundPair(
            shared * self._background,
            self._alternative,
            self._null,
            n=n,
            losses=self._losses,
            revealed=1.0 - shared,
            loss=self._budget,
        )
        return pair.log_bracket(epsilon, self._rtol).upper

    def _exponential_bound(self, epsilon: float) -> tuple[float, float]:
        """Return rate and log scale of ``delta <= exp(log_scale - rate m)`` for m messages.

        It is ``E exp(s S - 1) / (s (m + 1))``, S the sum of m + 1 ratios.
        """
        # delta falls, so that a smaller epsilon, at which the ratios are doubles, bounds it too
        capped = min(epsilon, _LARGEST_EPSILON - math.log(self._k))
        values = (self._alternative - math.exp(capped) * self._null) / self._background
        widest = float(np.abs(values).max())
        if widest == 0.0:
            return 0.0, 0.0
        tilts = np.geomspace(1e-9, 1e3, _TILTS) / widest
        growth = np.expm1(np.minimum(np.multiply.outer(tilts, values), _LARGEST_EPSILON))
        log_moments = np.log1p(growth @ self._background)
        rates = -log_moments
        bounds = self._law.log_moment(np.maximum(rates, 0.0)) - np.log(tilts)
        best = int(np.where(rates > 0.0, bounds, math.inf).argmin())
        if not rates[best] > 0.0:
            return 0.0, 0.0
        return float(rates[best]), float(-rates[best] - 1.0 - math.log(tilts[best])) + 1e-9


@final
class KaryProfile(PersonalizedProfile):
    """The brackets of all users; see `personalized_k_rr_profile`."""

    _most_inverted = 16

    def __init__(self, budgets: Budgets, k: int, rtol: float) -> None:
        self._k, self._rtol = k, rtol
        super().__init__(budgets, [])
        self._worst = [self._of_class(budgets.epsilons.size - 1)]

    def _class_of(self, user: int) -> int:
        return self._budgets.place_of(user)

    def _classes(self) -> IntArray:
        return self._budgets.place

    def _chains(self) -> list[IntArray]:
        return [np.arange(self._budgets.epsilons.size)]

    def _make_curve(self, place: int) -> PrivacyProfile:
        budgets = self._budgets
        epsilon = float(budgets.epsilons[place])
        counts = budgets.counts.copy()
        counts[place] -= 1.0
        kept = counts > 0.0
        others = budgets.epsilons[kept], counts[kept]
        bracket = lru_cache(maxsize=256)(_UserBracket(epsilon, others, self._k, self._rtol))
        curve = Curve(bracket, epsilon, self._rtol)
        return BracketProfile(
            {"forward": curve, "reverse": curve},
            n=budgets.n,
            validity=Validity.UPPER_BOUND,
            method="privacy blanket above, a test of one dataset below",
            source=_SOURCE,
            setting={**budgets.describe(), "epsilon_i": epsilon, "k": self._k},
        )


def personalized_k_rr_profile(
    epsilons: npt.ArrayLike, k: int, *, rtol: float = 1e-3
) -> KaryProfile | WorstBitsProfile:
    """Return a certified bracket for k-ary randomized response with personal budgets.

    Parameters
    ----------
    epsilons : array_like of float, shape (n,)
        Each user's own local budget, from 0 to 1e6: user i keeps the input with probability
        ``exp(epsilons[i]) / (exp(epsilons[i]) + k - 1)`` and else sends another at random.
    k : int
        Size of the alphabet, >= 2. For 2 it is `personalized_exact_profile` over all bits.
    rtol : float, default 1e-3
        Relative width to which the divergence among a given number of messages is bracketed.

    Returns
    -------
    KaryProfile or WorstBitsProfile
        UPPER_BOUND for replace-one neighbours with n known, whatever the users hold, for the worst
        user; ``bounds`` also has a lower end. ``user(i)`` has each user's own bracket and
        ``epsilons(delta)`` one epsilon for each.

    Raises
    ------
    TypeError, ValueError
        If an argument is outside its domain.

    Notes
    -----
    *Upper end.* User i sends a uniform symbol, whatever the input, with probability
    ``gamma_i = k / (exp(epsilon_i) + k - 1)``. Revealing the messages of the others who did not
    leaves M uniform ones, M Poisson-binomial. Among M uniform messages the divergence is the mean
    of the positive part of a sum of M + 1 ratios, bracketed on a lattice; it falls with M, since
    more messages are post-processing. So the mean over M is at most the sum over blocks of M, each
    at its lower end.

    *Lower end.* The others all hold a third input; the test compares the counts of the two symbols
    in question (``fastshuffle/personalized/difference.py``).

    *The worst user* has the largest budget. Write h(M) for the bound of user j, and let user i have
    ``gamma_i >= gamma_j``. The response of i is that of j with probability
    ``lambda = (1 - gamma_i) / (1 - gamma_j)`` and else uniform, so among M messages i loses at most
    ``lambda h(M)``. With c messages of third users, j's bound is ``gamma_i h(c + 1) + (1 - gamma_i)
    h(c)``, and i's at most ``lambda (gamma_j h(c + 1) + (1 - gamma_j) h(c))``, which is smaller by
    ``(gamma_i - lambda gamma_j) h(c + 1)``.

    **Accuracy**: the upper end is within some percent of the mean over M; the two ends differ by
    what the blanket and the third input lose, a few percent of epsilon. **Cost**: 24 homogeneous
    brackets an epsilon, some tenths of a second, whatever the number of different budgets.

    References
    ----------
    .. [1] B. Balle, J. Bell, A. Gascon, K. Nissim, "The Privacy Blanket of the Shuffle Model",
       CRYPTO 2019, arXiv:1903.02837v2.

    Examples
    --------
    >>> import fastshuffle as fs
    >>> profile = fs.personalized_k_rr_profile([1.0] * 900 + [2.0] * 100, 10)
    >>> low, high = profile.bounds(0.2)
    >>> print(profile.validity, f"{low:.1e} {high:.1e}")
    UPPER_BOUND 7.7e-06 8.3e-06
    """
    budgets = Budgets(epsilons)
    size = check_count("k", k, minimum=2)
    tolerance = check_real("rtol", rtol, RELATIVE_TOLERANCE)
    if size == 2:
        return WorstBitsProfile(budgets, tolerance)
    return KaryProfile(budgets, size, tolerance)
