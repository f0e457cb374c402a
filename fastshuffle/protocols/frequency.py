"""The frequencies of categories, one message a user, shuffled."""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from fastshuffle._typing import FloatArray, IntArray
from fastshuffle._validation import (
    PROBABILITY,
    Interval,
    check_count,
    check_generator,
    check_real,
)
from fastshuffle.exact import worst_case_profile
from fastshuffle.protocols._intervals import (
    EXACT,
    NORMAL,
    check_confidence,
    normal_quantile,
    share_bounds,
    shares_bounds,
)
from fastshuffle.protocols._weights import Weights, budget_shares, check_weights, target
from fastshuffle.protocols.guarantee import check_budgets, tagged_guarantee
from fastshuffle.protocols.projections import Projection, project
from fastshuffle.protocols.result import EstimateResult
from fastshuffle.randomizers import (
    FrequencyRandomizer,
    hadamard_response,
    k_randomized_response,
    optimized_local_hashing,
    optimized_unary_encoding,
    subset_selection,
)
from fastshuffle.randomizers.frequency import PureProtocol

__all__ = ["FrequencyResult", "HeavyHitter", "estimate_frequencies"]

FrequencyName: TypeAlias = Literal["krr", "oue", "olh", "hadamard", "subset"]

MECHANISMS: dict[str, Callable[[float, int], FrequencyRandomizer]] = {
    "krr": k_randomized_response,
    "oue": optimized_unary_encoding,
    "olh": optimized_local_hashing,
    "hadamard": hadamard_response,
    "subset": subset_selection,
}

_LEVEL = Interval(1e-9, 0.5, "in [1e-9, 0.5]")
_MOST_CATEGORIES = 2**24


class SupportCounts(NamedTuple):
    """How many of n messages support each category.

    A category not held is supported with chance ``q``, the one held with ``q + difference``.
    """

    counts: IntArray
    n: int
    q: float
    difference: float

    def frequencies(self, shares: FloatArray) -> FloatArray:
        """Return the frequencies for which these are the expected shares of the messages."""
        return (shares - self.q) / self.difference


class HeavyHitter(NamedTuple):
    """A category that is found to be more frequent than a threshold.

    Attributes
    ----------
    category : hashable
        As the domain names it.
    estimate : float
        The unbiased estimate of its frequency.
    lower : float
        The bound from below that exceeds the threshold.
    """

    category: Hashable
    estimate: float
    lower: float


@dataclass(frozen=True, eq=False)
class FrequencyResult(EstimateResult):
    """Estimates of frequencies; see `estimate_frequencies`.

    Attributes
    ----------
    domain : tuple
        The categories, in the order of the estimates.
    weights : tuple of float
        How much the frequencies among the users of each budget count, in the order of
        ``guarantee.groups``.
    support : SupportCounts or None
        The counts of the messages, where exact intervals rest on them.
    """

    domain: tuple[Hashable, ...]
    weights: tuple[float, ...]
    support: SupportCounts | None

    def projected(self, projection: Projection) -> FloatArray:
        """Return the estimates made a distribution; ``estimate`` keeps the unbiased ones.

        Parameters
        ----------
        projection : {"base-pos", "norm-mul", "norm-sub"}
            Negative estimates become 0; the same, divided by their sum; or the distribution
            nearest to the estimates in Euclidean distance, by subtracting one number from all and
            replacing negative results by 0.

        Returns
        -------
        numpy.ndarray of float64, shape (k,)
            No longer unbiased: intervals and variance are not about them.

        Raises
        ------
        ValueError
            If the projection is unknown, or no estimate is positive for ``"norm-mul"``.

        References
        ----------
        .. [1] T. Wang et al., "Locally Differentially Private Frequency Estimation with
           Consistency", NDSS 2020 (arXiv:1905.08320), for the names and a comparison.
        """
        return project(np.asarray(self.estimate), projection)

    def heavy_hitters(self, threshold: float, *, level: float = 0.05) -> list[HeavyHitter]:
        """Return the categories that are more frequent than a threshold, beyond doubt.

        Parameters
        ----------
        threshold : float
            A frequency in [0, 1].
        level : float, default 0.05
            The family-wise level, in [1e-9, 0.5]: the probability that any category at or below
            the threshold is returned is at most this, exactly or in the limit as ``interval``
            says.

        Returns
        -------
        list of HeavyHitter
            By decreasing estimate.

        Raises
        ------
        TypeError, ValueError
            If an argument is outside its domain.

        Notes
        -----
        Each category is tested by its bound from below at ``level / k`` (Bonferroni), so that
        nothing is assumed about how the estimates depend on each other. A category above the
        threshold may be missed.
        """
        limit = check_real("threshold", threshold, PROBABILITY)
        error = check_real("level", level, _LEVEL) / len(self.domain)
        estimates = np.asarray(self.estimate)
        found = []
        for i in np.flatnonzero(estimates > limit).tolist():
            lower = self._lower_at(i, error)
            if lower > limit:
                found.append(HeavyHitter(self.domain[i], float(estimates[i]), lower))
        return sorted(found, key=lambda hitter: -hitter.estimate)

    def _lower_at(self, i: int, error: float) -> float:
        if self.support is None:
            deviation = math.sqrt(float(np.asarray(self.variance)[i]))
            return float(np.asarray(self.estimate)[i]) - normal_quantile(error) * deviation
        lower, _ = share_bounds(int(self.support.counts[i]), self.support.n, error)
        return float(self.support.frequencies(np.array([lower]))[0])

    def to_dict(self, *, delta: float) -> dict[str, Any]:
        """Return the result in plain Python values, ready for JSON if the categories are.

        Parameters
        ----------
        delta : float
            Privacy parameter in [0, 1], at which the guarantee states epsilon.

        Returns
        -------
        dict
            The estimates with their intervals, what they are, and ``"guarantee"``.

        Raises
        ------
        TypeError, ValueError
            If delta is no real number in [0, 1].
        """
        return {
            "domain": list(self.domain),
            "weights": list(self.weights),
            **super().to_dict(delta=delta),
        }


def estimate_frequencies(
    values: npt.ArrayLike,
    epsilon0: npt.ArrayLike,
    *,
    domain: int | Sequence[Hashable],
    rng: np.random.Generator,
    mechanism: FrequencyName = "krr",
    weights: Weights = "users",
    confidence: float = 0.95,
) -> FrequencyResult:
    """Estimate how frequent each category is from one shuffled message of each user.

    Parameters
    ----------
    values : array_like, shape (n,)
        The category of each user, one or more users.
    epsilon0 : float or array_like of float
        Local privacy parameter, in [1e-100, 1e100]: one for all, or one for each user.
    domain : int or sequence of hashable
        The categories, public and chosen without looking at the values: how many, which then are
        0, 1, ..., or their different names. At least 2.
    rng : numpy.random.Generator
        The randomness of the users and of the shuffler.
    mechanism : {"krr", "oue", "olh", "hadamard", "subset"}
        What a user applies: `k_randomized_response`, `optimized_unary_encoding`,
        `optimized_local_hashing`, `hadamard_response` or `subset_selection`.
    weights : {"users", "precision"}
        How the frequencies among the users of different budgets are combined: in proportion to
        their number, which is unbiased for the frequencies among all users; or in proportion to
        the inverse variance of a category that nobody holds, which has the least noise and is
        unbiased for the frequencies with these weights.
    confidence : float, default 0.95
        The probability with which each interval holds, in [0.5, 1 - 1e-9].

    Returns
    -------
    FrequencyResult
        The unbiased estimates, which may be negative or exceed 1, their intervals, and the
        guarantee of every user. `FrequencyResult.projected` makes a distribution of them,
        `FrequencyResult.heavy_hitters` finds the frequent categories.

    Raises
    ------
    TypeError, ValueError
        If an argument is outside its domain, or a user holds what is not in the domain.

    Notes
    -----
    *What the analyst sees.* The messages of each budget in random order, since a message can only
    be decoded by one who knows its budget. Which user has which budget is public. So the users of
    one budget hide among themselves: `Guarantee`.

    *Variance.* The formula of the mechanism at the estimate, cut to [0, 1], for each budget; for
    Hadamard response the largest that it can be for the frequency.

    *Intervals.* With one budget and any mechanism but Hadamard response by Clopper and Pearson,
    valid at every n whatever the users hold. Otherwise normal, valid in the limit. Each holds
    alone: that all do is less likely.

    **Cost**: O(n) messages, of k bits for ``"oue"`` and up to k numbers for ``"subset"``, all held
    in memory; O(n k) time for ``"olh"``. An exact interval takes about a millisecond for each
    count that differs from the others.

    A sample is a simulation and no defence against attacks on floating-point noise.

    References
    ----------
    .. [1] T. Wang, J. Blocki, N. Li, S. Jha, "Locally Differentially Private Protocols for
       Frequency Estimation", USENIX Security 2017 (arXiv:1705.04421), the unbiased estimator and
       its variance.

    Examples
    --------
    >>> import numpy as np
    >>> from fastshuffle.protocols import estimate_frequencies
    >>> rng = np.random.default_rng(7)
    >>> colours = rng.choice(["red", "green", "blue"], size=100_000, p=[0.7, 0.25, 0.05])
    >>> result = estimate_frequencies(colours, 2.0, domain=["red", "green", "blue"], rng=rng)
    >>> result.estimate.round(2).tolist()
    [0.7, 0.25, 0.05]
    >>> [hitter.category for hitter in result.heavy_hitters(0.1)]
    ['red', 'green']
    >>> print(f"epsilon = {result.guarantee.epsilon(1e-8):.4f}")
    epsilon = 0.0412
    """
    inputs, labels = _checked_inputs(values, domain)
    budgets = check_budgets(epsilon0, inputs.size)
    check_generator(rng)
    if mechanism not in MECHANISMS:
        raise ValueError(f"mechanism must be one of {', '.join(MECHANISMS)}, got {mechanism!r}")
    combination = check_weights(weights)
    level = check_confidence(confidence)

    factory, k = MECHANISMS[mechanism], len(labels)
    randomizers = [factory(value, k) for value in budgets.values.tolist()]
    shuffled = [
        rng.permutation(randomizer.sample(inputs[members], rng))
        for randomizer, members in zip(randomizers, budgets.members(), strict=True)
    ]
    shares = budget_shares(
        combination,
        budgets,
        [float(randomizer.frequency_variance(1, 0.0)) for randomizer in randomizers],
    )
    estimates = np.array(
        [
            randomizer.estimate_frequencies(messages)
            for randomizer, messages in zip(randomizers, shuffled, strict=True)
        ]
    )
    estimate = shares @ estimates
    near = np.clip(estimate, 0.0, 1.0)
    variance = shares**2 @ np.array(
        [
            randomizer.frequency_variance(size, near)
            for randomizer, size in zip(randomizers, budgets.sizes.tolist(), strict=True)
        ]
    )
    error = 0.5 * (1.0 - level)
    support = _support_counts(randomizers, shuffled)
    if support is not None:
        ends = shares_bounds(support.counts, support.n, error)
        lower, upper = (support.frequencies(end) for end in ends)
    else:
        half = normal_quantile(error) * np.sqrt(variance)
        lower, upper = estimate - half, estimate + half
    return FrequencyResult(
        protocol=f"frequency: {factory.__name__}; messages shuffled within each budget",
        estimate=estimate,
        clipped=0,
        guarantee=tagged_guarantee(
            budgets, lambda value, n: worst_case_profile(factory(value, k), n)
        ),
        target=target("the frequency", combination, budgets),
        variance=variance,
        lower=lower,
        upper=upper,
        confidence=level,
        interval=NORMAL if support is None else EXACT,
        domain=labels,
        weights=tuple(shares.tolist()),
        support=support,
    )


def _checked_inputs(
    values: npt.ArrayLike, domain: int | Sequence[Hashable]
) -> tuple[IntArray, tuple[Hashable, ...]]:
    """Return the place of each user's category in the domain, and the categories."""
    held = np.asarray(values) if hasattr(values, "__array__") else np.array(values, dtype=object)
    if held.ndim != 1 or held.size == 0:
        raise ValueError(f"values must be 1-D, of one or more users, got shape {held.shape}")
    labels = _labels(domain)
    place_of = {label: place for place, label in enumerate(labels)}
    places = [place_of.get(value, -1) for value in held.tolist()]
    inputs = np.array(places, dtype=np.int64)
    unseen = np.flatnonzero(inputs < 0)
    if unseen.size > 0:
        first = int(unseen[0])
        raise ValueError(
            f"values must be in the domain, got {held.tolist()[first]!r} at index {first}, "
            f"{unseen.size} outside in all"
        )
    return inputs, labels


def _labels(domain: int | Sequence[Hashable]) -> tuple[Hashable, ...]:
    if isinstance(domain, (int, np.integer)):
        return tuple(range(check_count("domain", domain, minimum=2, maximum=_MOST_CATEGORIES)))
    if isinstance(domain, str) or not isinstance(domain, (Sequence, np.ndarray)):
        raise TypeError(f"domain must be a number or a sequence of categories, got {domain!r}")
    labels = tuple(domain.tolist() if isinstance(domain, np.ndarray) else domain)
    if len(labels) < 2 or len(set(labels)) < len(labels):
        raise ValueError(
            f"domain must have at least 2 categories, all different, got {len(labels)} of which "
            f"{len(set(labels))} differ"
        )
    return labels


def _support_counts(
    randomizers: list[FrequencyRandomizer], shuffled: list[npt.NDArray[Any]]
) -> SupportCounts | None:
    """Return the counts of a single budget if its messages support categories one by one."""
    randomizer, messages = randomizers[0], shuffled[0]
    if len(randomizers) > 1 or not isinstance(randomizer, PureProtocol):
        return None
    counts, n = randomizer._support_counts(messages)
    support = randomizer._support()
    return SupportCounts(counts, n, support.q, support.difference)
