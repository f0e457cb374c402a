"""Exact profiles of an experiment, and the certified worst case over all datasets."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from fastshuffle._kernels.binomial_groups import drop_certain_groups, mirror_groups
from fastshuffle._kernels.composition_search import certified_epsilon, search_compositions
from fastshuffle._kernels.divergence import window_divergence
from fastshuffle._kernels.hockey_stick import epsilon_array, log_delta_array
from fastshuffle._kernels.trade_off import type_two_error_array
from fastshuffle._typing import Direction, FloatArray
from fastshuffle._validation import (
    NONNEGATIVE,
    POSITIVE,
    Interval,
    check_count,
    check_direction,
    check_real,
)
from fastshuffle.experiment import ShuffleExperiment
from fastshuffle.profile import PrivacyProfile, Validity
from fastshuffle.randomizers import Randomizer

__all__ = [
    "ExactProfile",
    "WorstCaseProfile",
    "WorstDataset",
    "exact_profile",
    "worst_case_profile",
]

_FORWARD, _REVERSE = 0, 1
_DIRECTION_CODE = {"forward": _FORWARD, "reverse": _REVERSE, "both": 2}

# Rounding of log delta, from the survey in validation/: about 1e-13 plus a unit in the last place
# of log delta itself; stated ten times wider.
_LOG_ROUNDING = 1e-12
_LOG_ROUNDING_PER_UNIT = 2e-15
# An epsilon is the double nearest to what the caller means, and so is the largest loss.
_EPSILON_ROUNDING = 4.0 * float(np.finfo(np.float64).eps)

# Window sums that would visit more points than this, some seconds of work, are refused.
_MOST_POINTS = 5_000_000

_RTOL = Interval(1e-9, 0.5, "in [1e-9, 0.5]")


def _binary_rows(randomizer: Randomizer, output: int) -> FloatArray:
    """Return ``(1, p, q, log p, log q)`` for each input, p the probability of ``output``."""
    rows = np.ones((randomizer.n_inputs, 5))
    for column, y in enumerate((output, 1 - output)):
        rows[:, 1 + column] = randomizer.matrix[:, y]
        rows[:, 3 + column] = randomizer.log_matrix[:, y]
    return rows


def _pair_arrays(randomizer: Randomizer, pair: tuple[int, int]) -> tuple[FloatArray, FloatArray]:
    """Return the rows of all inputs and the pair of the hockey-stick kernels, for each direction.

    Forward counts the output that input b of the pair sends more often than input a does; reverse
    counts the other output, with the two inputs exchanged.
    """
    a, b = pair
    output = 1 if randomizer.probability_difference(b, a, 1) >= 0.0 else 0
    rows = np.array([_binary_rows(randomizer, output), _binary_rows(randomizer, 1 - output)])
    loss = randomizer.log_ratio(b, a, output)
    reverse_loss = randomizer.log_ratio(a, b, 1 - output)
    p1, log_p1 = rows[_FORWARD, b, 1], rows[_FORWARD, b, 3]
    q0, log_q0 = rows[_FORWARD, a, 2], rows[_FORWARD, a, 4]
    pairs = np.array(
        [
            [p1, log_p1, log_q0, loss, reverse_loss],
            [q0, log_q0, log_p1, reverse_loss, loss],
        ]
    )
    return rows, pairs


def _rounding(log_delta: FloatArray) -> FloatArray:
    finite = np.where(np.isfinite(log_delta), log_delta, 0.0)
    return _LOG_ROUNDING + _LOG_ROUNDING_PER_UNIT * np.abs(finite)


def _require_binary_output(randomizer: Randomizer) -> None:
    if randomizer.n_outputs != 2:
        raise ValueError(f"randomizer must have 2 outputs, got {randomizer.n_outputs}")


@final
class ExactProfile(PrivacyProfile):
    """The exact finite-n profile of an experiment with binary output; see `exact_profile`."""

    def __init__(self, experiment: ShuffleExperiment) -> None:
        _require_binary_output(experiment.randomizer)
        self._experiment = experiment
        a, b = experiment.pair
        rows, self._pairs = _pair_arrays(experiment.randomizer, experiment.pair)
        groups = rows[_FORWARD, list(experiment.others)].reshape(-1, 5)
        groups[:, 0] = list(experiment.others.values())
        kept = np.empty_like(groups)
        n_kept, _ = drop_certain_groups(groups, kept)
        self._groups = np.empty((2, n_kept, 5))
        self._groups[_FORWARD] = kept[:n_kept]
        mirror_groups(self._groups[_FORWARD], self._groups[_REVERSE])
        # the differing user's row in the first and in the second dataset, for each direction
        self._own = rows[:, [a, b]]
        self._difference = abs(experiment.randomizer.probability_difference(b, a, 1))

    @property
    def experiment(self) -> ShuffleExperiment:
        """The experiment the profile belongs to."""
        return self._experiment

    @property
    def n(self) -> int:
        """Number of users, including the one who differs."""
        return self._experiment.n

    @property
    def validity(self) -> Validity:
        """EXACT."""
        return Validity.EXACT

    @property
    def method(self) -> str:
        """How the numbers are computed, in a few words."""
        return "contour sum over the binomial groups of the other users; closed-form inverse"

    @property
    def source(self) -> str:
        """The definition that the numbers rest on."""
        return (
            "definition of the hockey-stick divergence of the two histogram laws; exact likelihood "
            "ratio of A. Shvets, arXiv:2602.09029v3, sections 3 and 8"
        )

    def _setting(self) -> dict[str, Any]:
        return self._experiment.to_dict()

    def _log_delta(self, epsilons: FloatArray, direction: Direction) -> FloatArray:
        log_deltas = np.empty_like(epsilons)
        code = _DIRECTION_CODE[direction]
        log_delta_array(epsilons, code, self._groups, self._pairs, log_deltas)
        return log_deltas

    def _log_bounds(
        self, epsilons: FloatArray, direction: Direction
    ) -> tuple[FloatArray, FloatArray]:
        log_delta = self._log_delta(epsilons, direction)
        margin = _rounding(log_delta)
        lower = self._log_delta(epsilons * (1.0 + _EPSILON_ROUNDING), direction) - margin
        upper = self._log_delta(epsilons * (1.0 - _EPSILON_ROUNDING), direction) + margin
        vanishes = log_delta == -math.inf
        return np.where(vanishes, log_delta, lower), np.where(vanishes, log_delta, upper)

    def _epsilon(self, log_deltas: FloatArray, direction: Direction) -> FloatArray:
        epsilons = np.empty_like(log_deltas)
        code = _DIRECTION_CODE[direction]
        epsilon_array(log_deltas, code, self._groups, self._pairs, epsilons)
        return epsilons

    def _trade_off(self, alphas: FloatArray, direction: Direction) -> FloatArray:
        least = np.ones_like(alphas)
        for code in self._codes(direction):
            null, alternative = (
                np.vstack((self._groups[code], self._own[code, user])) for user in (code, 1 - code)
            )
            errors = np.empty_like(alphas)
            type_two_error_array(alphas, null, alternative, errors)
            least = np.minimum(least, errors)
        return least

    @staticmethod
    def _codes(direction: Direction) -> tuple[int, ...]:
        return (_FORWARD, _REVERSE) if direction == "both" else (_DIRECTION_CODE[direction],)

    def _renyi(self, order: float, code: int) -> float:
        loss = float(self._pairs[code, 3])
        if loss == 0.0:
            return 0.0
        if order < 0.5:
            return order / (1.0 - order) * self._renyi(1.0 - order, 1 - code)
        if order == math.inf or (loss == math.inf and order >= 1.0):
            return loss
        self._require_feasible(order, loss)
        return self._window_divergence(order - 1.0, code)

    def _window_divergence(self, order_excess: float, code: int) -> float:
        null, alternative = self._own[code, code], self._own[code, 1 - code]
        pair = np.array([null[[1, 2, 3, 4, 0]], alternative[[1, 2, 3, 4, 0]]])
        pair[:, 4] = -self._difference, self._difference
        loss = float(self._pairs[code, 3])
        value = window_divergence(order_excess, loss, self._groups[code], pair)
        if not value >= 0.0:
            raise ArithmeticError(f"a divergence came out as {value!r} for {self!r}")
        return value

    def _require_feasible(self, order: float, loss: float) -> None:
        counts, p, q = self._groups[_FORWARD, :, :3].T
        variance = float((counts * p * q).sum())
        reach = math.sqrt(2.0 * variance * (80.0 + (order - 1.0) * loss))
        if order - 1.0 > 0.05 * variance and min(reach, self.n) > _MOST_POINTS:
            largest = 1.0 + 0.05 * variance
            raise ValueError(f"order must be <= {largest:g} or inf at n = {self.n}, got {order!r}")

    def renyi(self, order: float, *, direction: Direction = "both") -> float:
        """Return the Renyi divergence of the given order, in nats.

        Parameters
        ----------
        order : float
            Order > 0. Order 1 is the Kullback-Leibler divergence, inf the largest privacy loss.
        direction : {"both", "forward", "reverse"}
            Forward is the divergence of P from Q, both the larger of the two.

        Returns
        -------
        float
            The divergence; inf for orders of 1 and more where P has mass that Q has not.

        Raises
        ------
        TypeError, ValueError
            If the order is no real number > 0, or so large that the sum would visit more than
            5,000,000 points; the message then names the largest order.

        Notes
        -----
        A sum of non-negative terms over a window with a proved relative truncation of 1e-17 a
        side. **Accuracy**: relative error below 1e-13 (``tests/test_exact.py``). **Cost**: about
        600 contour sums, a millisecond, at any n; more for orders near ``n / 20`` and beyond.
        """
        value = check_real("order", order, POSITIVE)
        which = check_direction(direction)
        return max(self._renyi(value, code) for code in self._codes(which))

    def kl(self, *, direction: Direction = "both") -> float:
        """Return the Kullback-Leibler divergence in nats, the Renyi divergence of order 1.

        Parameters
        ----------
        direction : {"both", "forward", "reverse"}
            Forward is the divergence of P from Q, both the larger of the two.

        Returns
        -------
        float
            The divergence, which may be inf. Accuracy and cost as for `renyi`.
        """
        return self.renyi(1.0, direction=direction)

    def chi_square(self, *, direction: Direction = "both") -> float:
        """Return the chi-square divergence, ``sum (P - Q)**2 / Q`` in the forward direction.

        Parameters
        ----------
        direction : {"both", "forward", "reverse"}
            Forward divides by Q, reverse by P, both is the larger of the two.

        Returns
        -------
        float
            The divergence, which may be inf. Accuracy and cost as for `renyi`.
        """
        log_moment = self.renyi(2.0, direction=direction)
        return math.expm1(log_moment) if log_moment < 709.0 else math.inf

    def jensen_shannon(self) -> float:
        """Return the Jensen-Shannon divergence in nats, which is symmetric and at most log 2.

        Returns
        -------
        float
            The divergence (not its square root). Accuracy and cost as for `renyi`.
        """
        if self._pairs[_FORWARD, 3] == 0.0:
            return 0.0
        return self._window_divergence(math.nan, _FORWARD)

    def __repr__(self) -> str:
        return f"<ExactProfile of {self._experiment!r}>"


def exact_profile(experiment: ShuffleExperiment) -> ExactProfile:
    """Return the exact finite-n privacy profile of an experiment with binary output.

    Parameters
    ----------
    experiment : ShuffleExperiment
        Any n up to 2**53 and any composition of the other users, over any number of inputs; the
        randomizer has 2 outputs.

    Returns
    -------
    ExactProfile
        EXACT, for the two neighbouring datasets of the experiment. It is a guarantee for these
        datasets alone; `worst_case_profile` covers all of them.

    Raises
    ------
    TypeError
        If ``experiment`` is no ShuffleExperiment.
    ValueError
        If the randomizer does not have 2 outputs.

    Notes
    -----
    The other users' histogram R is a sum of binomial groups, hence log-concave, and the privacy
    loss increases in it: the hockey-stick divergence is a sum over a half-line. It is evaluated as
    one contour integral, about 15 terms whatever n, on the contour where the two laws cross, so
    that the terms have one sign.

    **Accuracy**: relative error of delta below 1e-12 for 1 <= n <= 1e15 and delta down to 1e-300,
    below ``2e-15 |log delta|`` beyond, plus ``1e-15`` times the condition number
    ``|epsilon delta'(epsilon) / delta|``, which is large only where epsilon is within 0.1 percent
    of the largest loss: there the last bit of epsilon itself decides. The relative error of
    epsilon is below 1e-12 (``tests/test_precision.py``, ``validation/``).

    **Cost**: one to two microseconds a delta and direction, about ten an epsilon, independent of
    n; proportional to the number of different inputs that the others hold.

    References
    ----------
    .. [1] A. Shvets, "Universal Shuffle Asymptotics: Sharp Privacy Analysis in the Gaussian
       Regime", arXiv:2602.09029v3, section 3 (exact likelihood ratio) and section 8 (exact
       finite-n curves).

    Examples
    --------
    >>> import fastshuffle as fs
    >>> rr = fs.binary_randomized_response(epsilon0=1.0)
    >>> profile = fs.exact_profile(fs.ShuffleExperiment(rr, n=1000, k=0))
    >>> print(f"{profile.epsilon(1e-8):.9f}")
    0.162844223
    >>> print(f"{profile.delta(0.2, direction='forward'):.7e}")
    3.9215624e-11
    >>> str(profile.validity)
    'EXACT'
    """
    if not isinstance(experiment, ShuffleExperiment):
        raise TypeError(f"experiment must be a ShuffleExperiment, got {type(experiment).__name__}")
    return ExactProfile(experiment)


@dataclass(frozen=True)
class WorstDataset:
    """A pair of neighbouring datasets, and the direction in which it loses most.

    Attributes
    ----------
    experiment : ShuffleExperiment
        The two datasets: what the others hold and the pair of the differing user.
    direction : {"forward", "reverse"}
        The direction of the larger divergence.
    """

    experiment: ShuffleExperiment
    direction: Direction


@final
class WorstCaseProfile(PrivacyProfile):
    """The certified worst case over all datasets; see `worst_case_profile`."""

    def __init__(self, randomizer: Randomizer, n: int, rtol: float) -> None:
        _require_binary_output(randomizer)
        self._randomizer = randomizer
        self._n = n
        self._tolerance = math.log1p(rtol)
        self._rtol = rtol
        self._extremes = self._extreme_inputs()
        rows, self._pairs = _pair_arrays(randomizer, self._extremes)
        self._inputs = np.ascontiguousarray(rows[:, list(self._extremes)])

    def _extreme_inputs(self) -> tuple[int, int]:
        lowest = highest = 0
        for x in range(1, self._randomizer.n_inputs):
            if self._randomizer.probability_difference(x, lowest, 1) < 0.0:
                lowest = x
            if self._randomizer.probability_difference(x, highest, 1) > 0.0:
                highest = x
        if lowest == highest:  # all rows are equal
            return 0, 1
        return lowest, highest

    @property
    def n(self) -> int:
        """Number of users, including the one who differs."""
        return self._n

    @property
    def validity(self) -> Validity:
        """UPPER_BOUND, within ``rtol`` of the exact worst case."""
        return Validity.UPPER_BOUND

    @property
    def method(self) -> str:
        """How the numbers are computed, in a few words."""
        return (
            "branch and bound over the compositions of the other users with exact profiles; "
            f"certified within a relative {self._rtol:g} of the worst delta"
        )

    @property
    def source(self) -> str:
        """The facts that the numbers rest on."""
        return (
            "definition of the hockey-stick divergence; its joint convexity and the post-processing "
            "inequality (B. Balle, G. Barthe, M. Gaboardi, arXiv:1807.01647v2)"
        )

    def _setting(self) -> dict[str, Any]:
        return {
            "randomizer": self._randomizer.to_dict(),
            "n": self._n,
            "datasets": "all pairs of neighbouring datasets",
            "rtol": self._rtol,
        }

    def _search(self, epsilon: float) -> tuple[float, FloatArray]:
        best = np.empty(3)
        limits = np.array([0.5 * self._tolerance, -math.inf, math.inf])
        upper = search_compositions(
            epsilon, float(self._n - 1), limits, self._inputs, self._pairs, best
        )
        if not upper <= best[0] + limits[0]:
            raise RuntimeError(
                f"the search at epsilon = {epsilon!r} stopped with log delta between {best[0]!r} "
                f"and {upper!r}, wider than rtol = {self._rtol!r}; a larger rtol will do"
            )
        return upper, best

    def _log_bounds(
        self, epsilons: FloatArray, direction: Direction
    ) -> tuple[FloatArray, FloatArray]:
        del direction  # the set of ordered neighbouring pairs is symmetric
        found = [self._search(epsilon) for epsilon in epsilons.tolist()]
        lower = np.array([best[0] for _, best in found])
        upper = np.array([value for value, _ in found])
        return lower - _rounding(lower), np.minimum(upper + _rounding(upper), 0.0)

    def _log_delta(self, epsilons: FloatArray, direction: Direction) -> FloatArray:
        return self._log_bounds(epsilons, direction)[1]

    def _epsilon(self, log_deltas: FloatArray, direction: Direction) -> FloatArray:
        del direction
        return np.array([self._certified_epsilon(value) for value in log_deltas.tolist()])

    def _certified_epsilon(self, log_delta: float) -> float:
        if log_delta >= 0.0:
            return 0.0
        if log_delta == -math.inf:
            return float(self._pairs[:, 3].max())
        target = log_delta - 2.0 * float(_rounding(np.array([log_delta]))[0])
        epsilon = certified_epsilon(
            target, float(self._n - 1), self._tolerance, self._inputs, self._pairs, np.empty(3)
        )
        if epsilon < 0.0:
            raise RuntimeError(
                f"no epsilon could be certified at log delta = {log_delta!r} with rtol = "
                f"{self._rtol!r}; a larger rtol will do"
            )
        return epsilon

    def _trade_off(self, alphas: FloatArray, direction: Direction) -> FloatArray:
        del direction
        return np.array([self._highest_support(alpha) for alpha in alphas.tolist()])

    def _highest_support(self, alpha: float) -> float:
        """Return the largest lower bound on the type II error among the supporting lines.

        Every epsilon gives two lines below the trade-off function. Both are concave in e**epsilon
        or e**-epsilon, so a golden-section search finds the highest.
        """
        # 40 standard deviations of the privacy loss, beyond which no line matters
        reach = min(float(self._pairs[:, 3].max()), 100.0 * self.total_variation())

        def steep(epsilon: float) -> float:
            return 1.0 - float(self.delta(epsilon)) - math.exp(epsilon) * alpha

        def flat(epsilon: float) -> float:
            return math.exp(-epsilon) * (1.0 - float(self.delta(epsilon)) - alpha)

        return max(0.0, *(_golden_section_maximum(line, reach) for line in (steep, flat)))

    def argmax(self, epsilon: float) -> WorstDataset:
        """Return the worst pair of neighbouring datasets found at epsilon.

        Parameters
        ----------
        epsilon : float
            Privacy parameter, >= 0; inf is allowed.

        Returns
        -------
        WorstDataset
            Its exact profile, in its direction, is the lower end of ``bounds(epsilon)``; no
            dataset exceeds it by more than ``rtol``.

        Raises
        ------
        TypeError, ValueError
            If epsilon is no real number >= 0.
        """
        _, best = self._search(check_real("epsilon", epsilon, NONNEGATIVE))
        low, high = self._extremes
        k = int(best[2])
        experiment = ShuffleExperiment(
            self._randomizer,
            self._n,
            others={low: self._n - 1 - k, high: k},
            pair=self._extremes,
        )
        return WorstDataset(experiment, "forward" if best[1] == _FORWARD else "reverse")

    def __repr__(self) -> str:
        return f"<WorstCaseProfile of {self._randomizer!r}, n = {self._n}>"


def _golden_section_maximum(function: Callable[[float], float], high: float) -> float:
    low = 0.0
    ratio = 0.5 * (math.sqrt(5.0) - 1.0)
    inner = [high - ratio * (high - low), low + ratio * (high - low)]
    values = [function(x) for x in inner]
    largest = max(function(low), function(high), *values)
    for _ in range(40):
        if values[0] >= values[1]:
            high = inner[1]
            inner = [high - ratio * (high - low), inner[0]]
            values = [function(inner[0]), values[0]]
        else:
            low = inner[0]
            inner = [inner[1], low + ratio * (high - low)]
            values = [values[1], function(inner[1])]
        largest = max(largest, *values)
    return largest


def worst_case_profile(randomizer: Randomizer, n: float, *, rtol: float = 1e-6) -> WorstCaseProfile:
    """Return the worst-case profile over all datasets: the number a deployment may quote.

    Parameters
    ----------
    randomizer : Randomizer
        What every user applies to the input held; 2 outputs and at least 2 inputs.
    n : int
        Number of users, including the one who differs; from 1 to 2**53.
    rtol : float, default 1e-6
        Relative width of the bracket around the worst delta, from 1e-9 to 0.5.

    Returns
    -------
    WorstCaseProfile
        UPPER_BOUND for replace-one neighbours with n known: ``delta`` is the upper end of a
        bracket no wider than rtol, ``epsilon`` the safe side, ``argmax`` the worst dataset.
        Forward and reverse are the same number here, since the ordered pairs of neighbouring
        datasets are a symmetric set.

    Raises
    ------
    TypeError, ValueError
        If an argument is outside its domain, or the randomizer does not have 2 outputs and 2 or
        more inputs.
    RuntimeError
        From the methods of the profile, if a bracket of width rtol is not reached within 400,000
        splits: for rtol well below the default.

    Notes
    -----
    *Two inputs suffice.* Every row of W is a mixture of the rows with the smallest and the largest
    probability of output 1. The hockey-stick divergence is jointly convex, so replacing a user's
    input by such a mixture cannot exceed the larger of the two replacements: for the others, and
    for either input of the differing user, the worst case is at the extreme rows.

    *Compositions.* The number k of others at the upper row is searched by branch and bound. For a
    block of values, dropping the users who may hold either row bounds all of it, by
    post-processing; a second bound, from the contour integral, is sharp where all k nearly tie.

    The bound holds for users who choose their inputs in advance and all apply the same W with
    independent randomness.

    **Accuracy**: as stated by ``bounds``; rounding is on the safe side. **Cost**: under a
    millisecond for most epsilons, up to a second near epsilon = 0 for n between 1e5 and 1e7, where
    many compositions nearly tie; it does not grow with n.

    References
    ----------
    .. [1] B. Balle, G. Barthe, M. Gaboardi, "Privacy Amplification by Subsampling: Tight Analyses
       via Couplings and Divergences", arXiv:1807.01647v2, section 2 (joint convexity and
       post-processing of the hockey-stick divergence).

    Examples
    --------
    >>> import fastshuffle as fs
    >>> worst = fs.worst_case_profile(fs.binary_randomized_response(epsilon0=2.0), n=336776)
    >>> print(f"{worst.epsilon(1e-8):.5f}")
    """
    if not isinstance(randomizer, Randomizer):
        raise TypeError(f"randomizer must be a Randomizer, got {type(randomizer).__name__}")
    if randomizer.n_inputs < 2:
        raise ValueError(f"randomizer must have at least 2 inputs, got {randomizer.n_inputs}")
    return WorstCaseProfile(
        randomizer, check_count("n", n, minimum=1), check_real("rtol", rtol, _RTOL)
    )
