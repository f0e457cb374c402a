"""Composition in the Gaussian limit: the squares of mu add up. An approximation, no bound."""

import math
from collections.abc import Sequence
from typing import Any, final

from fastshuffle._validation import check_count
from fastshuffle.limits.gaussian import GaussianCurve

__all__ = ["ComposedGaussianProfile", "composed_gaussian_profile"]


@final
class ComposedGaussianProfile(GaussianCurve):
    """The limit of several rounds: an APPROXIMATION; see `composed_gaussian_profile`."""

    def __init__(self, profiles: Sequence[GaussianCurve], rounds: int) -> None:
        self._profiles = tuple(profiles)
        self._repeated = rounds
        self._mu = math.sqrt(rounds * math.fsum(profile.mu**2 for profile in profiles))
        source = "; ".join(dict.fromkeys(profile.source for profile in profiles))
        super().__init__(
            method=(
                f"curve of N(mu, 1) against N(0, 1), mu = {self._mu:.6g} = sqrt(sum of mu^2) over "
                f"{self.rounds} rounds"
            ),
            source=f"J. Dong, A. Roth, W. Su, arXiv:1905.02383 (composition). A round: {source}",
            region=(
                "many rounds with many users each, delta not far below the error of the limit of "
                "a round. No bound anywhere: `composed_profile` is"
            ),
        )

    @property
    def n(self) -> int:
        """Number of users, including the one who differs."""
        return self._profiles[0].n

    @property
    def rounds(self) -> int:
        """The number of rounds."""
        return len(self._profiles) * self._repeated

    def _setting(self) -> dict[str, Any]:
        return {
            "repeated": self._repeated,
            "rounds": [profile.to_dict()["setting"] for profile in self._profiles],
        }

    def __repr__(self) -> str:
        return f"<ComposedGaussianProfile, APPROXIMATION: {self.rounds} rounds, mu = {self._mu:g}>"


def composed_gaussian_profile(
    profile: GaussianCurve | Sequence[GaussianCurve], rounds: float = 1
) -> ComposedGaussianProfile:
    """Return the Gaussian limit of several rounds, ``mu = sqrt(sum of mu^2)``.

    Parameters
    ----------
    profile : profile of a Gaussian limit, or sequence of them
        That of one round, or of several with the same n: from `gaussian_profile`,
        `personalized_gdp_profile` or this function.
    rounds : int, default 1
        How often they are repeated.

    Returns
    -------
    ComposedGaussianProfile
        APPROXIMATION, the same in both directions. ``bounds`` is (0, 1), since nothing is proved.

    Raises
    ------
    TypeError, ValueError
        If an argument is outside its domain, there is no profile, or the n differ.

    Notes
    -----
    The product of normal laws is one normal law, so that nothing is lost by composing; what is not
    proved is that a round is what its limit says. **Not a bound**: randomized response with
    epsilon0 = 4, n = 10,000, k = 0 and ten rounds has delta(1) = 1.06e-6 at least, and this curve
    5.14e-7.

    References
    ----------
    .. [1] J. Dong, A. Roth, W. Su, "Gaussian Differential Privacy", arXiv:1905.02383.

    Examples
    --------
    >>> import fastshuffle as fs
    >>> experiment = fs.ShuffleExperiment(fs.binary_randomized_response(4.0), n=10_000, k=0)
    >>> limit = fs.composed_gaussian_profile(fs.gaussian_profile(experiment), 10)
    >>> bound = fs.composed_profile(fs.exact_profile(experiment), 10)
    >>> print(f"{limit.delta(1.0):.2e} {bound.bounds(1.0)[0]:.2e}", limit.validity)
    5.14e-07 1.06e-06 APPROXIMATION
    """
    several = [profile] if isinstance(profile, GaussianCurve) else profile
    if not isinstance(several, Sequence) or not all(isinstance(p, GaussianCurve) for p in several):
        raise TypeError(
            f"profile must be that of a Gaussian limit or a sequence of them, got {profile!r}"
        )
    if not several:
        raise ValueError("profile must be one or more profiles, got none")
    users = {p.n for p in several}
    if len(users) > 1:
        raise ValueError(f"the profiles must have the same n, got {sorted(users)}")
    return ComposedGaussianProfile(several, check_count("rounds", rounds, minimum=1))
