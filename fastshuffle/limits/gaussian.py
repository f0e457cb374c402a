"""The Gaussian limit: its privacy curve at any epsilon, and its tangent near epsilon = 0."""

import math
from statistics import NormalDist
from typing import final

import numpy as np

from fastshuffle._typing import Direction, FloatArray, Side
from fastshuffle._validation import UnsupportedSettingError
from fastshuffle.experiment import ShuffleExperiment, check_experiment
from fastshuffle.limits._normal import log_gaussian_delta, log_mean_excess, log_upper_tail
from fastshuffle.limits._profile import ApproximateProfile, LimitProfile
from fastshuffle.limits.fisher import experiment_constant

__all__ = ["GaussianProfile", "TangentProfile", "gaussian_profile", "tangent_profile"]

_SOURCE_OF_CONSTANT = "Fisher constant of A. Shvets, arXiv:2602.09029v5"
# Beyond it the tangent curve exceeds 1 at epsilon = 0.
_LARGEST_TANGENT_MU = math.sqrt(2.0 * math.pi)


def _mu(experiment: ShuffleExperiment) -> float:
    """Return ``sqrt(m I / n)`` for the composition of the others and m messages a user."""
    if experiment.n == 1:
        raise UnsupportedSettingError(
            "n must be >= 2, since the limit is in the number of other users, got 1"
        )
    constant = experiment_constant(experiment)
    if constant == math.inf:
        raise UnsupportedSettingError(
            "the Fisher constant must be finite for a Gaussian limit, got inf: the differing "
            "user's messages are not all among those of the others"
        )
    return math.sqrt(constant / experiment.n * experiment.messages)


class GaussianCurve(ApproximateProfile):
    """The privacy curve of N(mu, 1) against N(0, 1); derived classes set ``_mu``."""

    _mu: float

    @property
    def mu(self) -> float:
        """The separation of the two normal laws."""
        return self._mu

    def _log_curve(self, epsilons: FloatArray, side: Side) -> FloatArray:  # noqa: ARG002 - symmetric
        if self._mu == 0.0:
            return np.full_like(epsilons, -math.inf)
        return log_gaussian_delta(epsilons, np.full_like(epsilons, self._mu))

    def _trade_off(self, alphas: FloatArray, direction: Direction) -> FloatArray:  # noqa: ARG002
        errors = 1.0 - alphas
        if self._mu == 0.0:
            return errors
        quantile = NormalDist().inv_cdf
        inside = (alphas > 0.0) & (alphas < 1.0)
        shifts = np.array([quantile(alpha) for alpha in alphas[inside].tolist()])
        errors[inside] = np.exp(log_upper_tail(self._mu + shifts))
        return errors


@final
class GaussianProfile(GaussianCurve, LimitProfile):
    """The privacy curve of N(mu, 1) against N(0, 1): an APPROXIMATION; see `gaussian_profile`."""

    def __init__(self, experiment: ShuffleExperiment, mu: float) -> None:
        self._mu = mu
        super().__init__(
            experiment,
            method=f"curve of N(mu, 1) against N(0, 1), mu = {mu:.6g}",
            source=(f"J. Dong, A. Roth, W. Su, arXiv:1905.02383 (mu-GDP); {_SOURCE_OF_CONSTANT}"),
            region=(
                "a fixed randomizer, n large, epsilon of a few mu: the error of delta is O(1/n), "
                "absolutely. No bound anywhere: in the tail the exact delta may be many times as "
                "large"
            ),
        )

    @property
    def mu(self) -> float:
        """The separation of the two normal laws, ``sqrt(m I / n)`` for m messages a user."""
        return self._mu


@final
class TangentProfile(LimitProfile):
    """The local curve of the Gaussian limit: an APPROXIMATION; see `tangent_profile`."""

    def __init__(self, experiment: ShuffleExperiment, mu: float) -> None:
        self._mu = mu
        super().__init__(
            experiment,
            method=f"mu (phi(t) - t Phi(-t)) at t = epsilon / mu, mu = {mu:.6g}",
            source=f"A. Shvets, arXiv:2602.09029v5 (local curve); {_SOURCE_OF_CONSTANT}",
            region=(
                "a fixed randomizer, n large, epsilon = t mu with t bounded: the error of delta is "
                "O(1/n), absolutely. Useless where delta itself is far below 1/n"
            ),
        )

    @property
    def mu(self) -> float:
        """The scale of epsilon, ``sqrt(I / n)``."""
        return self._mu

    def _log_curve(self, epsilons: FloatArray, side: Side) -> FloatArray:  # noqa: ARG002 - symmetric
        log_delta = np.full_like(epsilons, -math.inf)
        if self._mu > 0.0:
            with np.errstate(over="ignore"):
                t = epsilons / self._mu
            known = t < 1e154
            log_delta[known] = math.log(self._mu) + log_mean_excess(t[known])
        return log_delta


def gaussian_profile(experiment: ShuffleExperiment) -> GaussianProfile:
    """Return the Gaussian limit of an experiment, mu-GDP with ``mu = sqrt(I / n)``.

    Parameters
    ----------
    experiment : ShuffleExperiment
        Any randomizer and any composition of the other users, n >= 2. The fractions of the n - 1
        others who hold each input give the Fisher constant I. Users may send several messages.

    Returns
    -------
    GaussianProfile
        APPROXIMATION, the same in both directions. ``bounds`` is (0, 1), since nothing is proved.

    Raises
    ------
    TypeError
        If ``experiment`` is no ShuffleExperiment.
    ValueError
        If n is 1, the Fisher constant is infinite, or a probability underflows to 0.
    OverflowError
        If the constant is finite but larger than the largest double.

    See Also
    --------
    berry_esseen_profile : what can be proved about the curve from its limit.
    gdp_mu : the smallest mu whose curve does dominate an exact profile.

    Notes
    -----
    ``delta(epsilon) = Phi(-epsilon / mu + mu / 2) - exp(epsilon) Phi(-epsilon / mu - mu / 2)``.

    *Several messages*, shuffled one by one: m messages move the mean of the histogram m times as
    far and have the variance of m n, so that ``mu = sqrt(m I / n)``.

    **Not a bound.** Randomized response with epsilon0 = 4, n = 10,000, k = 0 has delta(0.363) =
    9.0e-8 and its limit 4.5e-9, 20 times too small; at epsilon = 0.7 it is 1.1e-16 against 2.6e-24.
    At delta = 1e-8 the limit says epsilon = 0.352 where 0.404 is right.

    **Accuracy** of the curve for the mu that is held: relative error of delta below 1e-12 for mu
    from 1e-9 to 1e3 and delta down to 1e-300, plus 1e-15 times the condition numbers by which the
    last bits of epsilon and mu move it (``tests/test_limits_gaussian.py``). **Cost**: about 50
    microseconds a call, 3 microseconds an element of an array, and 60 such calls an epsilon.

    References
    ----------
    .. [1] J. Dong, A. Roth, W. Su, "Gaussian Differential Privacy", arXiv:1905.02383.
    .. [2] A. Shvets, "Universal Shuffle Asymptotics", arXiv:2602.09029v5, which claims the limit
       for epsilon of the order of mu only; v3 claimed more.

    Examples
    --------
    >>> import fastshuffle as fs
    >>> experiment = fs.ShuffleExperiment(fs.binary_randomized_response(4.0), n=10_000, k=0)
    >>> limit, exact = fs.gaussian_profile(experiment), fs.exact_profile(experiment)
    >>> print(f"{limit.delta(0.363):.2e} {exact.delta(0.363):.2e}")
    4.54e-09 8.96e-08
    >>> print(limit.validity, limit.bounds(0.363))
    APPROXIMATION (0.0, 1.0)
    """
    checked = check_experiment(experiment, several=True)
    return GaussianProfile(checked, _mu(checked))


def tangent_profile(experiment: ShuffleExperiment) -> TangentProfile:
    """Return the local curve of an experiment, ``mu (phi(t) - t Phi(-t))`` at ``epsilon = t mu``.

    Parameters
    ----------
    experiment : ShuffleExperiment
        Any randomizer and any composition of the other users, with n large enough that
        ``mu = sqrt(I / n)`` is at most ``sqrt(2 pi)``.

    Returns
    -------
    TangentProfile
        APPROXIMATION, the same in both directions. ``bounds`` is (0, 1), since nothing is proved.

    Raises
    ------
    TypeError
        If ``experiment`` is no ShuffleExperiment.
    ValueError, OverflowError
        As for `gaussian_profile`, and if mu is so large that the curve would exceed 1.

    Notes
    -----
    It is the mean of ``(mu Z - epsilon)_+``: the positive part of a likelihood ratio that is
    linear in a normal variable. It is neither above nor below the exact curve.

    **Not a bound.** Randomized response with epsilon0 = 4, n = 10,000, k = 0 has delta(0.1) =
    0.00334 in reverse and its tangent 0.00279; at epsilon = 0.363 it is 9.0e-8 against 3.8e-9.

    References
    ----------
    .. [1] A. Shvets, "Universal Shuffle Asymptotics", arXiv:2602.09029v5.

    Examples
    --------
    >>> import fastshuffle as fs
    >>> experiment = fs.ShuffleExperiment(fs.binary_randomized_response(1.0), n=10**6, k=0)
    >>> tangent, exact = fs.tangent_profile(experiment), fs.exact_profile(experiment)
    >>> print(f"{tangent.delta(0.001):.4e} {exact.delta(0.001):.4e}")
    9.3734e-05 9.3868e-05
    """
    checked = check_experiment(experiment)
    mu = _mu(checked)
    if mu > _LARGEST_TANGENT_MU:
        raise UnsupportedSettingError(
            f"mu = sqrt(I / n) must be <= sqrt(2 pi) for a tangent curve below 1, got {mu:g}"
        )
    return TangentProfile(checked, mu)
