"""The mean of bounded values, one message a user, shuffled."""

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from fastshuffle._typing import FloatArray
from fastshuffle._validation import Interval, check_generator, check_real, check_reals
from fastshuffle.protocols._intervals import (
    EXACT,
    NORMAL,
    check_confidence,
    normal_quantile,
    share_bounds,
)
from fastshuffle.protocols._weights import Weights, budget_shares, check_weights, target
from fastshuffle.protocols.guarantee import check_budgets, tagged_guarantee
from fastshuffle.protocols.numeric import MECHANISMS, NumericMechanism, RoundedResponse
from fastshuffle.protocols.result import EstimateResult

__all__ = ["MeanResult", "estimate_mean"]

NumericName: TypeAlias = Literal["rr", "laplace", "piecewise"]

_REAL = Interval(-math.inf, math.inf, "other than nan")
_FINITE = Interval(-1e300, 1e300, "in [-1e300, 1e300]")


@dataclass(frozen=True, eq=False)
class MeanResult(EstimateResult):
    """The estimate of a mean; see `estimate_mean`.

    Attributes
    ----------
    weights : tuple of float
        How much the mean of the users of each budget counts, in the order of
        ``guarantee.groups``.
    """

    weights: tuple[float, ...]

    def to_dict(self, *, delta: float) -> dict[str, Any]:
        """Return the result in plain Python values, ready for JSON.

        Parameters
        ----------
        delta : float
            Privacy parameter in [0, 1], at which the guarantee states epsilon.

        Returns
        -------
        dict
            The estimate with its interval, what they are, and ``"guarantee"``.

        Raises
        ------
        TypeError, ValueError
            If delta is no real number in [0, 1].
        """
        return {"weights": list(self.weights), **super().to_dict(delta=delta)}


class _Part(NamedTuple):
    """What the messages of one budget say of the mean of the numbers in [0, 1] behind them."""

    mean: float
    variance: float
    n_ones: int  # of bits


def estimate_mean(  # noqa: PLR0913 - each is a choice of the deployment
    values: npt.ArrayLike,
    epsilon0: npt.ArrayLike,
    *,
    low: float,
    high: float,
    rng: np.random.Generator,
    mechanism: NumericName = "rr",
    weights: Weights = "users",
    clip: bool = False,
    confidence: float = 0.95,
) -> MeanResult:
    """Estimate the mean of the users' values from one shuffled message each.

    Parameters
    ----------
    values : array_like of float, shape (n,)
        The value of each user, one or more.
    epsilon0 : float or array_like of float
        Local privacy parameter, in [1e-100, 1e100]: one for all, or one for each user.
    low, high : float
        The public range of the values, low < high, in [-1e300, 1e300].
    rng : numpy.random.Generator
        The randomness of the users and of the shuffler.
    mechanism : {"rr", "laplace", "piecewise"}
        What a user applies: stochastic rounding to a bit and binary randomized response, which
        has the smallest largest variance of the three for epsilon0 up to 1.29; stochastic rounding
        to 9 levels and Laplace noise; or the piecewise mechanism, which has it beyond.
    weights : {"users", "precision"}
        How the means of the users of different budgets are combined: in proportion to their
        number, which is unbiased for the mean of all users; or in proportion to the number over
        the largest variance of a message, which has the least noise and is unbiased for the mean
        with these weights.
    clip : bool, default False
        Whether a value outside [low, high] is moved to its end, and counted in ``clipped``.
        Otherwise it is refused.
    confidence : float, default 0.95
        The probability with which the interval holds, in [0.5, 1 - 1e-9].

    Returns
    -------
    MeanResult
        The unbiased estimate, its interval, and the guarantee of every user.

    Raises
    ------
    TypeError, ValueError
        If an argument is outside its domain, or a value is outside the range and not clipped.

    Notes
    -----
    *What the analyst sees.* The messages of each budget in random order, since a message can only
    be weighted by one who knows its budget. Which user has which budget is public. So the users
    of one budget hide among themselves: `Guarantee`.

    *Estimate.* The mean of the decoded messages of each budget, combined by the weights. It is
    unbiased for values in the range, whatever they are; the clipped values are what it estimates
    otherwise. It may lie outside [low, high].

    *Variance.* The sample variance of the decoded messages over their number. Its expectation is
    the variance of the mean, the values being fixed, plus the variance of the values over n - 1:
    it errs upwards. Where the messages of a budget are one, or all agree, it is the largest that
    a message can have.

    *Interval.* With ``"rr"`` and one budget by Clopper and Pearson, valid at every n whatever the
    users hold. Otherwise normal, valid in the limit. It is not cut to the range.

    **Cost**: O(n), 20 to 80 nanoseconds a user. The guarantee is computed with it only for what
    is asked of it.

    A sample is a simulation and no defence against attacks on floating-point noise.

    References
    ----------
    .. [1] N. Wang et al., "Collecting and Analyzing Multidimensional Data with Local Differential
       Privacy", ICDE 2019 (arXiv:1907.00782), the piecewise mechanism, and the comparison with
       randomized response of a rounded value and with Laplace noise.

    Examples
    --------
    >>> import numpy as np
    >>> from fastshuffle.protocols import estimate_mean
    >>> rng = np.random.default_rng(7)
    >>> ages = rng.integers(18, 80, size=100_000)
    >>> result = estimate_mean(ages, 1.0, low=0, high=100, rng=rng)
    >>> print(f"{ages.mean():.2f} in {result.lower:.2f} to {result.upper:.2f}")
    48.56 in 47.73 to 49.07
    >>> guarantee = result.guarantee
    >>> print(f"epsilon = {guarantee.epsilon(1e-8):.4f} for {guarantee.epsilon0:g} alone")
    epsilon = 0.0139 for 1 alone
    """
    bottom, top = check_real("low", low, _FINITE), check_real("high", high, _FINITE)
    if not bottom < top:
        raise ValueError(f"low must be < high, got {bottom!r} and {top!r}")
    if not isinstance(clip, bool):
        raise TypeError(f"clip must be True or False, got {clip!r}")
    units, clipped = _checked_values(values, bottom, top, clip=clip)
    budgets = check_budgets(epsilon0, units.size)
    check_generator(rng)
    if mechanism not in MECHANISMS:
        raise ValueError(f"mechanism must be one of {', '.join(MECHANISMS)}, got {mechanism!r}")
    combination = check_weights(weights)
    level = check_confidence(confidence)

    kind = MECHANISMS[mechanism]
    randomizers = [kind(value) for value in budgets.values.tolist()]
    parts = [
        _read(randomizer, rng.permutation(randomizer.report(units[members], rng)))
        for randomizer, members in zip(randomizers, budgets.members(), strict=True)
    ]
    shares = budget_shares(
        combination, budgets, [randomizer.largest_variance for randomizer in randomizers]
    )
    estimate = float(shares @ [part.mean for part in parts])
    variance = float(shares**2 @ [part.variance for part in parts])
    error = 0.5 * (1.0 - level)
    exact = len(parts) == 1 and isinstance(randomizers[0], RoundedResponse)
    if exact:
        ends = np.array(share_bounds(parts[0].n_ones, units.size, error))
        lower, upper = randomizers[0].decode(ends).tolist()
    else:
        half = normal_quantile(error) * math.sqrt(variance)
        lower, upper = estimate - half, estimate + half
    width = top - bottom
    return MeanResult(
        protocol=f"mean: {kind.words}; messages shuffled within each budget",
        estimate=bottom + width * estimate,
        clipped=clipped,
        guarantee=tagged_guarantee(budgets, lambda value, n: kind(value).profile(n)),
        target=target("the mean", combination, budgets),
        variance=width**2 * variance,
        lower=bottom + width * lower,
        upper=bottom + width * upper,
        confidence=level,
        interval=EXACT if exact else NORMAL,
        weights=tuple(shares.tolist()),
    )


def _checked_values(
    values: npt.ArrayLike, low: float, high: float, *, clip: bool
) -> tuple[FloatArray, int]:
    """Return the values on the scale of [0, 1], and how many were clipped."""
    numbers, shape = check_reals("values", values, _REAL)
    if len(shape) != 1 or numbers.size == 0:
        raise ValueError(f"values must be 1-D, of one or more users, got shape {shape}")
    outside = (numbers < low) | (numbers > high)
    n_outside = int(outside.sum())
    if n_outside > 0 and not clip:
        first = int(outside.argmax())
        raise ValueError(
            f"values must be in [low, high] = [{low!r}, {high!r}] unless clip is True, got "
            f"{float(numbers[first])!r} at index {first}, {n_outside} outside in all"
        )
    units = (np.clip(numbers, low, high) - low) / (high - low)
    return np.clip(units, 0.0, 1.0), n_outside  # of the quotient, only rounding


def _read(randomizer: NumericMechanism, messages: FloatArray) -> _Part:
    """Return what shuffled messages say, of which the order is of no use."""
    decoded = randomizer.decode(messages)
    spread = float(decoded.var(ddof=1)) if decoded.size > 1 else 0.0
    if spread == 0.0:  # messages that all agree do not tell how much they vary
        spread = randomizer.largest_variance
    return _Part(float(decoded.mean()), spread / decoded.size, int(np.count_nonzero(messages)))
