"""Which limit describes a deployment: the regime, and the measured error of each limit."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from fastshuffle._validation import PROBABILITY, UnsupportedSettingError, check_real
from fastshuffle.exact import exact_profile, worst_case_profile
from fastshuffle.experiment import ShuffleExperiment
from fastshuffle.limits._profile import LimitProfile
from fastshuffle.limits.compound_poisson import compound_poisson_profile
from fastshuffle.limits.edgeworth import edgeworth_profile
from fastshuffle.limits.gaussian import gaussian_profile
from fastshuffle.limits.hybrid import hybrid_profile
from fastshuffle.limits.poisson import poisson_profile, skellam_profile
from fastshuffle.profile import PrivacyProfile
from fastshuffle.randomizers import LocalRandomizer

__all__ = ["LimitError", "Regime", "regime"]

_Limit: TypeAlias = Callable[[ShuffleExperiment], LimitProfile]

_LIMITS: dict[str, _Limit] = {
    "gaussian": gaussian_profile,
    "edgeworth": edgeworth_profile,
    "hybrid": hybrid_profile,
}
# Each is a special case of the next; the first that applies is measured.
_RARE_ERROR_LIMITS: dict[str, _Limit] = {
    "poisson": poisson_profile,
    "skellam": skellam_profile,
    "compound poisson": compound_poisson_profile,
}
# The Gaussian limit errs by about sqrt(exp(epsilon0) / n): below 0.1 it is called sub-critical.
_CRITICAL_FROM = 0.01
# The chance that no other user's error hides the input is about exp(-n / exp(epsilon0)) = 0.9.
_CRITICAL_UNTIL = 10.0
_N_POINTS = 33
_RTOL = 1e-6

_MEANING = {
    "sub-critical": (
        "other users' errors are many beside any one message: the Gaussian limit is the right "
        "kind, and its error shrinks as the square root of that number"
    ),
    "critical": (
        "other users' errors that hide a message are few, so that they must be counted one by "
        "one: the Poisson kind of limit is the right one"
    ),
    "super-critical": (
        "other users hardly ever err: shuffling hides next to nothing, and no limit is needed to "
        "say so"
    ),
}


@dataclass(frozen=True)
class LimitError:
    """How far a limit is off at this n, measured against the exact curve.

    Attributes
    ----------
    name : str
        The limit.
    largest_error : float
        Largest difference of delta from the exact one, on 33 epsilons from 0 to the exact epsilon.
    epsilon : float
        What the limit gives as epsilon, a wrong one.
    reason : str
        Why the limit does not apply, and then the two numbers are nan; else empty.
    """

    name: str
    largest_error: float
    epsilon: float
    reason: str = ""


@dataclass(frozen=True)
class Regime:
    """Where a randomizer and n stand between the limits, in numbers; ``str`` gives words.

    Attributes
    ----------
    kind : {"sub-critical", "critical", "super-critical"}
        The regime.
    ratio : float
        ``exp(epsilon0) / n``, the number that decides.
    delta : float
        Where epsilons are compared.
    epsilon : float
        The exact epsilon of the dataset at delta, or its bracket's safe side.
    experiment : ShuffleExperiment
        The dataset on which the errors were measured.
    errors : tuple of LimitError
        Gaussian, Edgeworth and hybrid limit, and the simplest limit of rare errors that applies.
    closest : str
        The limit whose epsilon is nearest in ratio to the exact one, or an empty string.
    """

    kind: str
    ratio: float
    delta: float
    epsilon: float
    experiment: ShuffleExperiment
    errors: tuple[LimitError, ...]
    closest: str

    def __str__(self) -> str:
        others = ", ".join(f"{c:,} at input {x}" for x, c in self.experiment.others.items())
        lines = [
            f"n = {self.experiment.n:,} and exp(epsilon0) / n = {self.ratio:.4g}: {self.kind}.",
            f"That means: {_MEANING[self.kind]}.",
            f"Measured with the other users {others}, at delta = {self.delta:.3g}:",
            f"the exact epsilon is {self.epsilon:.6g}.",
            f"{'limit':<18}{'its epsilon':>12}   error of delta",
        ]
        for error in self.errors:
            if error.reason:
                lines.append(f"{error.name:<18}{'-':>12}   does not apply: {error.reason}")
                continue
            side = "   promises too much" if error.epsilon < self.epsilon else ""
            lines.append(
                f"{error.name:<18}{error.epsilon:>12.6g}   {error.largest_error:<10.2e}{side}"
            )
        if self.closest:
            lines.append(f"As a formula use the {self.closest} limit, the nearest here.")
        lines.append(
            "No limit is a guarantee: quote worst_case_profile, or exact_profile for known data."
        )
        return "\n".join(lines)


def regime(
    randomizer: LocalRandomizer, n: float, *, k: float | None = None, delta: float | None = None
) -> Regime:
    """Return the regime of a randomizer among n users, with the error of every limit at this n.

    Parameters
    ----------
    randomizer : LocalRandomizer
        What every user applies to the input held; at least 2 inputs.
    n : int
        Number of users, including the one who differs; from 2 to 2**53.
    k : int, optional
        How many of the other users hold input 1, the rest input 0; by default the limits are
        measured on the dataset that `worst_case_profile` names as the worst at ``delta``.
    delta : float, optional
        Where epsilons are compared, in [0, 1]; by default ``0.1 / n``.

    Returns
    -------
    Regime
        Print it for words. ``kind`` is "sub-critical" if ``a = exp(epsilon0) / n`` is below 0.01,
        "super-critical" above 10 and "critical" between. The errors are measured, not estimated:
        each limit is compared with `exact_profile`, whose bracket, where it has one, is 1e-6 wide.

    Raises
    ------
    TypeError, ValueError
        If an argument is outside its domain, or the dataset is none that `exact_profile` takes.

    Notes
    -----
    The theory speaks of sequences: ``a -> 0`` has a Gaussian limit with an error of order
    ``sqrt(a)``, ``a -> c**2`` a limit of Poisson kind, and ``a -> inf`` none but full disclosure.
    A single n has no limit, so the two borders are conventions: below 0.01 the Gaussian error is
    of order 0.1 at most, and above 10 a count of errors that could hide the input is 0 with
    probability of about 0.9 or more. For randomizers with zeros epsilon0 is infinite and so is a,
    whatever the dataset; the measured errors tell more.

    **Cost**: that of the worst case, the exact profile and the limits, milliseconds to seconds.

    References
    ----------
    .. [1] A. Shvets, "Universal Shuffle Asymptotics, Part II: Non-Gaussian Limits for Shuffle
       Privacy -- Poisson, Skellam, and Compound-Poisson Regimes", arXiv:2603.10073v1 (the three
       regimes).

    Examples
    --------
    >>> import math
    >>> import fastshuffle as fs
    >>> found = fs.regime(fs.binary_randomized_response(math.log(1000.0)), 4000, k=2000)
    >>> found.kind, found.closest
    ('critical', 'skellam')
    >>> print(str(found).splitlines()[0])
    n = 4,000 and exp(epsilon0) / n = 0.25: critical.
    """
    if delta is not None:
        target = check_real("delta", delta, PROBABILITY)
    worst = worst_case_profile(randomizer, n)
    if worst.n < 2:
        raise ValueError(f"n must be >= 2, got {worst.n}")
    if delta is None:
        target = 0.1 / worst.n
    if k is None:
        experiment = worst.argmax(worst.epsilon(target)).experiment
    else:
        experiment = ShuffleExperiment(randomizer, n, k=k)
    exact = exact_profile(experiment, rtol=_RTOL)
    epsilon = float(exact.epsilon(target))

    def measured(name: str, limit: _Limit) -> LimitError:
        return _measured(name, limit, experiment, exact, epsilon, target)

    rare = [measured(name, limit) for name, limit in _RARE_ERROR_LIMITS.items()]
    applicable = [error for error in rare if not error.reason]
    errors = (
        *(measured(name, limit) for name, limit in _LIMITS.items()),
        applicable[0] if applicable else rare[-1],
    )
    log_ratio = randomizer.epsilon0 - math.log(worst.n)
    ratio = math.exp(log_ratio) if log_ratio < 709.0 else math.inf
    if ratio < _CRITICAL_FROM:
        kind = "sub-critical"
    else:
        kind = "super-critical" if ratio > _CRITICAL_UNTIL else "critical"
    return Regime(kind, ratio, target, epsilon, experiment, errors, _closest(errors, epsilon))


def _measured(
    name: str,
    limit_of: _Limit,
    experiment: ShuffleExperiment,
    exact: PrivacyProfile,
    epsilon: float,
    delta: float,
) -> LimitError:
    """Return the error of a limit; an UnsupportedSettingError says why it does not apply."""
    top = epsilon if 0.0 < epsilon < math.inf else 1.0
    epsilons = np.linspace(0.0, top, _N_POINTS)
    try:
        limit = limit_of(experiment)
        gaps = np.abs(limit.delta(epsilons) - exact.delta(epsilons))
        return LimitError(name, float(gaps.max()), float(limit.epsilon(delta)))
    except UnsupportedSettingError as error:
        return LimitError(name, math.nan, math.nan, str(error))


def _closest(errors: tuple[LimitError, ...], epsilon: float) -> str:
    """Return the name of the limit nearest in the ratio of epsilons, then in delta."""

    def distance(error: LimitError) -> tuple[float, float]:
        if error.epsilon == epsilon:
            return 0.0, error.largest_error
        if 0.0 < error.epsilon < math.inf and 0.0 < epsilon < math.inf:
            return abs(math.log(error.epsilon / epsilon)), error.largest_error
        return math.inf, error.largest_error

    known = [error for error in errors if not error.reason]
    return min(known, key=distance).name if known else ""
