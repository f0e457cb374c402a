"""Rounds in which a random sample of the users takes part."""

import math
from typing import Any, final

import numpy as np

from fastshuffle._supporting_lines import trade_off_below
from fastshuffle._typing import Direction, FloatArray
from fastshuffle._validation import UnsupportedSettingError, check_count
from fastshuffle.composition._checks import check_guarantee, is_of_users_alike
from fastshuffle.profile import PrivacyProfile, Validity

__all__ = ["SubsampledProfile", "subsampled_profile"]

# Some units in the last place of an epsilon, and of a log delta.
_STEP = 1e-15


@final
class SubsampledProfile(PrivacyProfile):
    """The profile of a round with a random sample: an UPPER_BOUND; see `subsampled_profile`."""

    def __init__(self, profile: PrivacyProfile, n: int) -> None:
        self._profile = profile
        self._n = n
        self._rate = profile.n / n

    @property
    def profile(self) -> PrivacyProfile:
        """The profile of the users who take part, were they known."""
        return self._profile

    @property
    def rate(self) -> float:
        """The probability with which a user takes part."""
        return self._rate

    @property
    def n(self) -> int:
        """Number of users from whom the sample is drawn, including the one who differs."""
        return self._n

    @property
    def validity(self) -> Validity:
        """UPPER_BOUND."""
        return Validity.UPPER_BOUND

    @property
    def method(self) -> str:
        """How the numbers are computed, in a few words."""
        return (
            f"{self._profile.n} of {self._n} users drawn without replacement; "
            f"{self._profile.method}"
        )

    @property
    def source(self) -> str:
        """The definition or theorem, with its version, that the numbers rest on."""
        return (
            "B. Balle, G. Barthe, M. Gaboardi, arXiv:1807.01647v2 (sampling without replacement, "
            f"replace-one). The users who take part: {self._profile.source}"
        )

    def _setting(self) -> dict[str, Any]:
        return {
            "sampling": "fixed size, without replacement",
            "n": self._n,
            "sampled": self._profile.n,
            "profile": self._profile.to_dict()["setting"],
        }

    def _log_delta(self, epsilons: FloatArray, direction: Direction) -> FloatArray:  # noqa: ARG002 - one curve for both
        rate = self._rate
        with np.errstate(over="ignore"):
            # log(1 + expm1(epsilon) / rate), without overflow, and rather too small
            inner = np.where(
                epsilons < 1.0,
                np.log1p(np.expm1(np.minimum(epsilons, 1.0)) / rate),
                epsilons + np.log1p((rate - 1.0) * np.exp(-epsilons)) - math.log(rate),
            )
        inner = np.maximum(inner * (1.0 - 8.0 * _STEP), 0.0)
        log_delta = self._profile._log_delta(inner, "both") + math.log(rate)
        log_delta[log_delta > -math.inf] += _STEP * (1.0 - log_delta[log_delta > -math.inf])
        return np.minimum(log_delta, math.log(rate))

    def _log_bounds(
        self, epsilons: FloatArray, direction: Direction
    ) -> tuple[FloatArray, FloatArray]:
        return np.full_like(epsilons, -math.inf), self._log_delta(epsilons, direction)

    def _epsilon(self, log_deltas: FloatArray, direction: Direction) -> FloatArray:  # noqa: ARG002
        rate = self._rate
        targets = log_deltas - math.log(rate)
        targets -= np.where(log_deltas > -math.inf, 8.0 * _STEP * (1.0 + np.abs(log_deltas)), 0.0)
        inner = self._profile._epsilon(np.minimum(targets, 0.0), "both") * (1.0 + 16.0 * _STEP)
        with np.errstate(over="ignore"):
            # log(1 + rate expm1(inner))
            epsilons = np.where(
                inner < 1.0,
                np.log1p(rate * np.expm1(np.minimum(inner, 1.0))),
                inner + math.log(rate) + np.log1p((1.0 / rate - 1.0) * np.exp(-inner)),
            )
        return epsilons * (1.0 + 8.0 * _STEP)

    def _trade_off(self, alphas: FloatArray, direction: Direction) -> FloatArray:
        loss = float(self._epsilon(np.array([-math.inf]), "both")[0])
        return trade_off_below(self, alphas, direction, loss)

    def __repr__(self) -> str:
        return f"<SubsampledProfile: {self._profile.n} of {self._n} users, {self._profile!r}>"


def subsampled_profile(profile: PrivacyProfile, n: float) -> SubsampledProfile:
    """Return what a round reveals in which a random sample of fixed size takes part.

    Parameters
    ----------
    profile : PrivacyProfile
        What the round reveals when it is known who takes part: EXACT or an UPPER_BOUND over *all*
        neighbouring datasets of the ``profile.n`` users who do, as `worst_case_profile` or
        `clone_profile` give it.
    n : int
        Number of users from whom these are drawn, including the one who differs; at least
        ``profile.n``, and at most 2**53.

    Returns
    -------
    SubsampledProfile
        UPPER_BOUND for replace-one neighbours with n known, for a sample of exactly ``profile.n``
        users, every such set with the same chance, which is kept secret.

    Raises
    ------
    TypeError, ValueError
        If an argument is outside its domain.
    UnsupportedSettingError
        If the profile is no guarantee, or is that of two given datasets or of personal budgets:
        without the differing user another user takes part, and the datasets to compare are others.

    Notes
    -----
    With the rate ``q = profile.n / n``,

        delta'(log(1 + q (exp(epsilon) - 1))) <= q delta(epsilon)

    in both directions. *Why*: the outcome has the law ``M0`` if the differing user is left out, and
    ``M1`` or ``M1'`` if not; with ``a = exp(epsilon)`` and ``a' = 1 + q (a - 1)`` the divergence of
    ``(1 - q) M0 + q M1`` from ``(1 - q) M0 + q M1'`` at a' is q times that at a of M1 from a
    mixture of M0 and M1'. Both are outcomes of neighbouring samples: M1' by definition, and M0
    since a set without the user comes from one with him when another replaces him.

    *Poisson sampling* is not covered: each user takes part with chance q, so the number of those
    who do is random, and visible. Given that number the sample is one of fixed size, and delta is
    the mean over the number.

    **Cost and accuracy** are those of the given profile.

    References
    ----------
    .. [1] B. Balle, G. Barthe, M. Gaboardi, "Privacy Amplification by Subsampling: Tight Analyses
       via Couplings and Divergences", NeurIPS 2018, arXiv:1807.01647v2.

    Examples
    --------
    >>> import fastshuffle as fs
    >>> sample = fs.clone_profile(1.0, 1_000)
    >>> round_ = fs.subsampled_profile(sample, 100_000)
    >>> print(f"{sample.epsilon(1e-6):.5f} {round_.epsilon(1e-8):.5f} {round_.rate}")
    0.18241 0.00200 0.01
    """
    checked = check_guarantee("profile", profile)
    if not is_of_users_alike(checked):
        raise UnsupportedSettingError(
            "profile must hold for all neighbouring datasets of users with one randomizer, got "
            f"{checked!r}"
        )
    return SubsampledProfile(checked, check_count("n", n, minimum=checked.n))
