"""The published Gaussian approximation for personal budgets, which is no bound."""

import math
from typing import Any, final

import numpy as np
import numpy.typing as npt

from fastshuffle._validation import UnsupportedSettingError
from fastshuffle.limits.gaussian import GaussianCurve
from fastshuffle.personalized.budgets import Budgets

_SOURCE = (
    "E Chen, Y. Cao, Y. Ge, AAAI 2024, arXiv:2312.14388v3, abstract; curve of J. Dong, A. Roth, "
    "W. Su, arXiv:1905.02383 (mu-GDP)"
)


def _mu(budgets: Budgets) -> float:
    shares = (1.0 - budgets.deltas) * np.exp(-np.logaddexp(0.0, budgets.epsilons))
    counts = budgets.counts.copy()
    counts[shares.argmax()] -= 1.0
    total = float(counts @ shares)
    return math.sqrt(2.0 / total) if total > 0.0 else math.inf


def personalized_gdp_mu(epsilons: npt.ArrayLike, deltas: npt.ArrayLike | None = None) -> float:
    """Return the mu of the published Gaussian approximation for personal budgets.

    Parameters
    ----------
    epsilons : array_like of float, shape (n,)
        Each user's own local budget, from 0 to 1e6.
    deltas : array_like of float, shape (n,), or float, optional
        Each user's delta_i, in [0, 1]; by default 0.

    Returns
    -------
    float
        ``sqrt(2 / (sum_i c_i - max_i c_i))`` with ``c_i = (1 - delta_i) / (1 + exp(epsilon_i))``.
        It is inf for a single user, and where all others have delta_i = 1.

    Raises
    ------
    TypeError, ValueError
        If an argument is outside its domain.

    Notes
    -----
    The paper says that shuffled personal local privacy is *approximately* mu-GDP. **It is no
    bound**; see `personalized_gdp_profile`. The sum has ``1 / (1 + exp(epsilon_i))``: with twice
    that, mu would be too small by another factor of ``sqrt(2)``.

    References
    ----------
    .. [1] E Chen, Y. Cao, Y. Ge, "A Generalized Shuffle Framework for Privacy Amplification:
       Strengthening Privacy Guarantees and Enhancing Utility", AAAI 2024, arXiv:2312.14388v3,
       abstract.

    Examples
    --------
    >>> import fastshuffle as fs
    >>> print(f"{fs.personalized_gdp_mu([1.0] * 500 + [3.0] * 500):.6f}")
    0.112539
    """
    return _mu(Budgets(epsilons, deltas))


@final
class PersonalizedGaussianProfile(GaussianCurve):
    """The mu-GDP curve of personal budgets: an APPROXIMATION; see `personalized_gdp_profile`."""

    def __init__(self, budgets: Budgets, mu: float) -> None:
        self._mu = mu
        self._budgets = budgets
        super().__init__(
            method=f"curve of N(mu, 1) against N(0, 1), mu = {mu:.6g}",
            source=_SOURCE,
            region="many users of similar, small budgets, near epsilon = mu. No bound anywhere",
        )

    @property
    def n(self) -> int:
        """Number of users, including the one who differs."""
        return self._budgets.n

    def _setting(self) -> dict[str, Any]:
        return self._budgets.describe()

    def __repr__(self) -> str:
        return f"<PersonalizedGaussianProfile, APPROXIMATION, n = {self.n}, mu = {self._mu:.6g}>"


def personalized_gdp_profile(
    epsilons: npt.ArrayLike, deltas: npt.ArrayLike | None = None
) -> PersonalizedGaussianProfile:
    """Return the published Gaussian approximation for personal budgets: no bound.

    Parameters
    ----------
    epsilons : array_like of float, shape (n,)
        Each user's own local budget, from 0 to 1e6.
    deltas : array_like of float, shape (n,), or float, optional
        Each user's delta_i, in [0, 1]; by default 0.

    Returns
    -------
    PersonalizedGaussianProfile
        APPROXIMATION, the same in both directions and for all users. ``bounds`` is (0, 1), since
        nothing is proved.

    Raises
    ------
    TypeError, ValueError
        If an argument is outside its domain; `UnsupportedSettingError` if mu is infinite.

    See Also
    --------
    personalized_exact_profile, personalized_k_rr_profile, personalized_clone_profile

    Notes
    -----
    **Not a bound.** For binary randomized response, n = 100 users of epsilon_i = 5 have
    delta(2) = 0.4855 where the curve says 0.2284; one user of epsilon_i = 8 among nine of 1 has
    delta(3) = 0.0592 where it says 0.0010. And a user whose message is in the clear with
    probability delta_i loses delta_i at every epsilon, where the curve goes to 0.

    References
    ----------
    .. [1] E Chen, Y. Cao, Y. Ge, "A Generalized Shuffle Framework for Privacy Amplification:
       Strengthening Privacy Guarantees and Enhancing Utility", AAAI 2024, arXiv:2312.14388v3,
       abstract.

    Examples
    --------
    >>> import fastshuffle as fs
    >>> formula = fs.personalized_gdp_profile([5.0] * 100)
    >>> print(formula.validity, f"{formula.delta(2.0):.4f}")
    APPROXIMATION 0.2284
    >>> exact = fs.personalized_exact_profile([5.0] * 100, bits=[0] * 100)
    >>> print(f"{exact.delta(2.0):.4f}")
    0.4855
    """
    budgets = Budgets(epsilons, deltas)
    mu = _mu(budgets)
    if mu == math.inf:
        raise UnsupportedSettingError(
            "epsilons must have at least 2 users with delta_i < 1 and epsilon_i up to some 700 for "
            "a finite mu, got mu = inf"
        )
    return PersonalizedGaussianProfile(budgets, mu)
