"""Exact profiles with three or four outputs, summed over the lattice of histograms."""

import math
from collections.abc import Callable
from typing import final

import numpy as np

from fastshuffle._typing import OPPOSITE, Direction, FloatArray, Side
from fastshuffle._validation import POSITIVE, UnsupportedSettingError, check_direction, check_real
from fastshuffle.exact._experiment_profile import ExperimentProfile
from fastshuffle.exact._lattice_points import ELSEWHERE, LatticePoints, Tail
from fastshuffle.exact._lattice_window import LOG_TRUNCATION
from fastshuffle.exact.homogeneous import require_no_underflow
from fastshuffle.experiment import ShuffleExperiment, check_experiment
from fastshuffle.profile import Validity
from fastshuffle.randomizers import MergedRows

_MOST_OUTPUTS = 4

# Rounding of a mass, some ten times what the tests find.
_MASS_ROUNDING = 1e-12
_MASS_ROUNDING_PER_USER = 2e-16
_DIVERGENCE_TRUNCATION = 1e-13
_MOST_STEPS = 200


@final
class LatticeProfile(ExperimentProfile):
    """The profile of an experiment with up to four outputs; see `lattice_profile`."""

    def __init__(
        self, experiment: ShuffleExperiment, merged: MergedRows, points: LatticePoints
    ) -> None:
        super().__init__(experiment)
        self._points = points
        messages = experiment.messages
        self._losses: dict[Side, float] = {
            "forward": messages * float(merged.log_ratios[1].max()),
            "reverse": messages * float((-merged.log_ratios[1]).max()),
        }

    @property
    def n_points(self) -> int:
        """Number of histograms that are stored, 16 bytes each."""
        return self._points.n_points

    @property
    def validity(self) -> Validity:
        """EXACT if no histogram was left out, else UPPER_BOUND."""
        return Validity.EXACT if self._points.complete else Validity.UPPER_BOUND

    @property
    def method(self) -> str:
        """How the numbers are computed, in a few words."""
        left_out = max(self._points.log_outside.values())
        window = "all" if self._points.complete else f"all but exp({left_out:.0f})"
        points = self._points
        return f"sum over {points.n_points} histograms, {window} of the mass, by {points.how}"

    @property
    def source(self) -> str:
        """The definition that the numbers rest on."""
        return (
            "definition of the hockey-stick divergence of the two histogram laws; exact likelihood "
            "ratio of A. Shvets, arXiv:2602.09029v3, section 3"
        )

    @staticmethod
    def _sides(direction: Direction) -> tuple[Side, ...]:
        return ("forward", "reverse") if direction == "both" else (direction,)

    def _rounding(self, epsilon: float, tail: Tail) -> float:
        """Return how far rounding may have moved the excess of a tail."""
        mass = _MASS_ROUNDING + _MASS_ROUNDING_PER_USER * self._points.n_messages
        if math.isfinite(tail.log_scale):
            mass += 4.0 * np.finfo(np.float64).eps * abs(tail.log_scale)
        loss = self._points.loss_rounding + 4.0 * np.finfo(np.float64).eps * min(epsilon, 1e3)
        return mass * tail.excess + loss * tail.slope

    def _log_sides(self, epsilon: float, side: Side) -> tuple[float, float, float]:
        """Return the lower bound, the sum inside and the upper bound of log delta."""
        if epsilon >= self._losses[side] < math.inf:
            return -math.inf, -math.inf, -math.inf
        tail = self._points.tail(epsilon, side)
        rounding = self._rounding(epsilon, tail)
        with np.errstate(divide="ignore"):
            inside = np.array(
                [max(tail.excess - rounding, 0.0), tail.excess, tail.excess + rounding]
            )
            lower, value, upper = (tail.log_scale + np.log(inside)).tolist()
        return lower, value, float(np.logaddexp(upper, self._points.log_outside[side]))

    def _safe_log_delta(self, epsilon: float, side: Side) -> float:
        _, value, upper = self._log_sides(epsilon, side)
        return min(value if self.validity is Validity.EXACT else upper, 0.0)

    def _log_delta(self, epsilons: FloatArray, direction: Direction) -> FloatArray:
        return np.array(
            [
                max(self._safe_log_delta(epsilon, side) for side in self._sides(direction))
                for epsilon in epsilons.tolist()
            ]
        )

    def _log_bounds(
        self, epsilons: FloatArray, direction: Direction
    ) -> tuple[FloatArray, FloatArray]:
        found = np.array(
            [
                [self._log_sides(epsilon, side) for epsilon in epsilons.tolist()]
                for side in self._sides(direction)
            ]
        )
        lower, _, upper = found.max(axis=0).T
        return lower, np.minimum(upper, 0.0)

    def _epsilon(self, log_deltas: FloatArray, direction: Direction) -> FloatArray:
        return np.array(
            [
                max(self._safe_epsilon(log_delta, side) for side in self._sides(direction))
                for log_delta in log_deltas.tolist()
            ]
        )

    def _safe_epsilon(self, log_delta: float, side: Side) -> float:
        """Return the smallest epsilon up to a few units whose log delta is at most ``log_delta``.

        Delta is convex and piecewise linear in exp(epsilon), so a Newton step from where it is too
        large stays below the solution, and meets it on the last piece. The logarithm is near
        concave: its secants find that piece.
        """
        low, value = 0.0, self._safe_log_delta(0.0, side) - log_delta
        if value <= 0.0:
            return 0.0
        if log_delta == -math.inf:
            return self._losses[side]
        high, high_value = self._losses[side], -math.inf
        if high == math.inf and self._safe_log_delta(math.inf, side) > log_delta:
            return math.inf
        for _ in range(_MOST_STEPS):
            if high < math.inf and high - low <= 1e-14 * high:
                break
            tail = self._points.tail(low, side)
            if tail.slope == 0.0:  # only what was left out remains
                break
            ratio = math.exp(min(value + log_delta - tail.log_scale, 700.0)) / tail.slope
            newton = (low + math.log1p(-math.expm1(-value) * ratio)) * (1.0 + 4e-15)
            for trial in ("newton", "tangent", "chord"):
                if trial == "newton":
                    epsilon = newton
                elif trial == "tangent":
                    epsilon = low + value * ratio
                elif high_value > -math.inf:
                    epsilon = low + (high - low) * value / (value - high_value)
                else:
                    epsilon = 0.5 * (low + high) if high < math.inf else 2.0 * low + 1.0
                if not low < epsilon < high:
                    continue
                trial_value = self._safe_log_delta(epsilon, side) - log_delta
                if trial_value > 0.0:
                    low, value = epsilon, trial_value
                elif trial == "newton":
                    return epsilon
                else:
                    high, high_value = epsilon, trial_value
        return high

    def _trade_off(self, alphas: FloatArray, direction: Direction) -> FloatArray:
        return np.array(
            [
                min(self._type_two_error(alpha, side) for side in self._sides(direction))
                for alpha in alphas.tolist()
            ]
        )

    def _type_two_error(self, alpha: float, side: Side) -> float:
        """Return the highest of the lines below the trade-off function, at level alpha.

        Every epsilon gives two lines, ``1 - delta - exp(epsilon) alpha`` and ``exp(-epsilon)
        (1 - reverse delta - alpha)``; the highest has the slope of the most powerful test. Each is
        valid, so the result is on the safe side whatever the search does.
        """

        def null_mass(epsilon: float) -> float:
            tail = self._points.tail(epsilon, side)
            return tail.slope * math.exp(tail.log_scale - epsilon)

        def other_mass(epsilon: float) -> float:
            tail = self._points.tail(epsilon, OPPOSITE[side])
            return (tail.excess + tail.slope) * math.exp(tail.log_scale)

        steep = self._crossing(null_mass, alpha, side)
        flat = self._crossing(other_mass, 1.0 - alpha, OPPOSITE[side])
        line = 1.0 - math.exp(self._safe_log_delta(steep, side)) - math.exp(steep) * alpha
        other = 1.0 - math.exp(self._safe_log_delta(flat, OPPOSITE[side])) - alpha
        return max(line, math.exp(-flat) * other, 0.0)

    def _crossing(self, mass: Callable[[float], float], level: float, side: Side) -> float:
        """Return the least epsilon, a finite loss or 0, with no more than ``level`` beyond it."""
        if mass(0.0) <= level:
            return 0.0
        low = 0.0
        high = self._points.largest_finite_loss(side)
        while low < (middle := 0.5 * (low + high)) < high:
            if mass(middle) <= level:
                high = middle
            else:
                low = middle
        return high

    def _renyi(self, order: float, side: Side) -> float:
        loss = self._losses[side]
        if loss == 0.0:
            return 0.0
        if order < 0.5:
            return order / (1.0 - order) * self._renyi(1.0 - order, OPPOSITE[side])
        if order == math.inf or (loss == math.inf and order >= 1.0):
            return loss
        value, total = self._points.divergence(order - 1.0, side)
        # outside the window the likelihood ratio may be as large as anywhere
        log_outside = self._points.log_outside[side]
        if order > 1.0 and log_outside > -math.inf:
            slack = math.log(_DIVERGENCE_TRUNCATION * total) - math.log1p(loss) - log_outside
            if (order - 1.0) * loss > slack:
                largest = 1.0 + max(slack, 0.0) / loss
                raise ValueError(
                    f"order must be <= {largest:g} or inf with this window at n = {self.n}, got "
                    f"{order!r}; a smaller log_truncation allows more"
                )
        return value

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
            If the order is no real number > 0, or so large that the histograms left out of the
            window could matter; the message then names the largest order.

        Notes
        -----
        A sum of non-negative terms over the histograms of the profile, so it is never above the
        divergence but for rounding; what is left out is below a relative 1e-13. **Accuracy**:
        relative error as for delta, below ``1e-12 + 2e-16 n`` (``tests/test_lattice.py``).
        **Cost**: O(`n_points`), some 0.1 microseconds each.
        """
        value = check_real("order", order, POSITIVE)
        which = check_direction(direction)
        return max(self._renyi(value, side) for side in self._sides(which))

    def jensen_shannon(self) -> float:
        """Return the Jensen-Shannon divergence in nats, which is symmetric and at most log 2.

        Returns
        -------
        float
            The divergence (not its square root). Accuracy and cost as for `renyi`.
        """
        return self._points.divergence(math.nan, "forward")[0]


def lattice_profile(
    experiment: ShuffleExperiment, *, log_truncation: float | None = None
) -> LatticeProfile:
    """Return the profile of an experiment with up to four outputs, summed over all histograms.

    Parameters
    ----------
    experiment : ShuffleExperiment
        The others hold the two inputs of the pair only, in any composition, and the outputs form
        at most 4 groups of equal likelihood ratio. At most 60,000,000 histograms in the window,
        which with 3 groups is n up to about 500,000 and with 4 groups up to about 2,000.
    log_truncation : float, optional
        Natural logarithm of the mass that may be left out, in [-700, -30]. By default nothing is
        left out where there are at most 5,000,000 histograms; otherwise as little as so many
        histograms allow, and at most exp(-80) = 2e-35.

    Returns
    -------
    LatticeProfile
        EXACT where no histogram is left out. Otherwise UPPER_BOUND: ``delta`` counts all mass of
        the first law that was left out as if the second law had none, and ``bounds`` shows the
        bracket. It is a guarantee for the two datasets of the experiment alone.

    Raises
    ------
    TypeError
        If ``experiment`` is no ShuffleExperiment.
    ValueError
        If the others hold another input, the outputs form more than 4 groups, a probability is
        below 1e-308, or the window has too many histograms.

    Notes
    -----
    The likelihood ratio of a histogram is that of the number of users who hold b given the
    messages, a sum of binomial groups, one an output [1]_. Masses and ratios are contour sums,
    which are carried along the lines of the lattice from point to point
    (`fastshuffle._kernels.lattice_block`). The histograms are summed once; their masses and losses
    are kept in the order of the losses, so that delta at any epsilon costs a search.

    *What is left out* is bounded by the exact binomial tails of single outputs, by the exact mass
    of whole lines, and on a line, where both laws are log-concave, by a geometric series. Deltas
    near the truncation have a wide bracket: ask for a smaller one.

    **Accuracy**: relative error of delta below ``1e-12 + 2e-16 n``, plus ``4e-15`` times the
    condition number ``|delta'(epsilon) / delta|``; rounding is included in ``bounds`` and, for an
    UPPER_BOUND, in ``delta``. The epsilon returned is at most a relative 1e-13 above the smallest
    (``tests/test_lattice.py``).

    **Cost**: 0.3 to 0.5 microseconds and 16 bytes a histogram, of which there are about
    ``6.3 L n sqrt(p_1 p_2 p_3)`` with 3 groups of probabilities p and ``log_truncation = -L``, so
    1e7 at most for n = 1e5; then less than a millisecond a delta and a few an epsilon.

    References
    ----------
    .. [1] A. Shvets, "Universal Shuffle Asymptotics: Sharp Privacy Analysis in the Gaussian
       Regime", arXiv:2602.09029v3, section 3 (exact likelihood ratio identities).

    Examples
    --------
    >>> import fastshuffle as fs
    >>> from fastshuffle.exact.lattice import lattice_profile
    >>> w = fs.Randomizer([[0.5, 0.3, 0.2], [0.2, 0.35, 0.45]])
    >>> profile = lattice_profile(fs.ShuffleExperiment(w, n=1000, k=400))
    >>> print(f"{profile.delta(0.1):.9e} {profile.epsilon(1e-8):.9f} {profile.validity}")
    2.888318859e-08 0.105007309 EXACT
    """
    checked = check_experiment(experiment)
    if log_truncation is not None:
        log_truncation = check_real("log_truncation", log_truncation, LOG_TRUNCATION)
    a, b = checked.pair
    foreign = sorted(set(checked.others) - {a, b})
    if foreign:
        raise UnsupportedSettingError(
            f"others must hold inputs {a} and {b} only, got {foreign}; {ELSEWHERE}"
        )
    merged = checked.randomizer.merged((a, b))
    outputs = merged.rows.shape[1]
    if outputs > _MOST_OUTPUTS:
        raise UnsupportedSettingError(
            f"outputs must form at most {_MOST_OUTPUTS} groups of equal ratio, got {outputs}; "
            f"{ELSEWHERE}"
        )
    if outputs > 1:
        require_no_underflow(checked.randomizer, merged)
    points = LatticePoints(merged, checked.n, checked.others.get(b, 0), log_truncation)
    return LatticeProfile(checked, merged, points)
