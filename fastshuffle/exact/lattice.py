"""Exact profiles with three or four outputs, summed over the lattice of histograms."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Literal, NamedTuple, final

import numpy as np

from fastshuffle._kernels.binomial_groups import log_lower_tail, log_upper_tail
from fastshuffle._kernels.deviance import log_binomial_mass, stirling_error
from fastshuffle._kernels.lattice_pair import (
    POINTS_A_STRIDE,
    add_to_divergence,
    add_to_tail,
    fill_points,
    fill_tail_sums,
)
from fastshuffle._typing import Direction, FloatArray
from fastshuffle._validation import POSITIVE, Interval, check_direction, check_real
from fastshuffle.experiment import ShuffleExperiment
from fastshuffle.profile import PrivacyProfile, Validity
from fastshuffle.randomizers import MergedRows

_MOST_OUTPUTS = 4
# 16 bytes each: just under a gigabyte.
_MOST_POINTS = 60_000_000
# The window is widened up to this many points, one or two seconds of work.
_CHEAP_POINTS = 5_000_000
_POINTS_A_CHUNK = 2**20

_LOG_TRUNCATION = Interval(-700.0, -30.0, "in [-700, -30]")
_DEFAULT_LOG_TRUNCATION = -80.0
# Share of the window's volume in that of its box: the disc in a square, the ball in a cube.
_ROUNDNESS = {2: 1.0, 3: math.pi / 4.0, 4: math.pi / 6.0}

# Rounding of a mass and of a privacy loss, some ten times what the tests find. Outputs whose ratios
# differ by up to 8 units of rounding are merged, which moves a loss by less than is allowed here.
_MASS_ROUNDING = 1e-12
_MASS_ROUNDING_PER_USER = 2e-16
_LOSS_ROUNDING = 4e-15
_DIVERGENCE_TRUNCATION = 1e-13
_MOST_STEPS = 200

_ELSEWHERE = (
    "homogeneous backgrounds, where the others all hold one input, have a bracket at any n, and "
    "worst_case_profile bounds all datasets"
)

_Side = Literal["forward", "reverse"]
_OTHER_SIDE: dict[_Side, _Side] = {"forward": "reverse", "reverse": "forward"}
_SIGN = {"forward": 1.0, "reverse": -1.0}


class _Chunk(NamedTuple):
    """Points ``(loss, log mass)`` in the order of their losses, and the tails of the strides."""

    points: FloatArray
    sums: FloatArray


class _Tail(NamedTuple):
    """The sums of ``M (1 - exp(epsilon - L))`` and of ``M exp(epsilon - L)`` over L > epsilon."""

    log_scale: float
    excess: float
    slope: float


def _group(count: float, p: float, log_p: float) -> list[float]:
    return [count, p, 1.0 - p, log_p, math.log1p(-p) if p < 1.0 else -math.inf]


def _output_rows(merged: MergedRows, n: int, k: int) -> tuple[FloatArray, float]:
    """Return the kernels' row of each output, and n minus the sum of their means."""
    rest, share = Fraction(2 * (n - k) - 1, 2), Fraction(2 * k + 1, 2)
    pi, rho = float(share / n), float(rest / n)
    table = np.zeros((merged.rows.shape[1], 13))
    defect = Fraction(n)
    for row, (a, b), (log_a, log_b), loss in zip(
        table, merged.rows.T, merged.log_rows.T, merged.log_ratios[1].tolist(), strict=True
    ):
        mean = rest * Fraction(float(a)) + share * Fraction(float(b))
        defect -= mean
        row[5] = float(mean)
        row[6] = float(mean - Fraction(float(mean)))
        row[7] = np.logaddexp(math.log(rest) + log_a, math.log(share) + log_b)
        # with numerator and denominator divided by the larger of 1 and exp(loss)
        fade = math.exp(-abs(loss))
        near, far = (fade, 1.0) if loss > 0.0 else (1.0, fade)
        row[8] = math.copysign(-math.expm1(-abs(loss)), loss) / (rho * near + pi * far)
        row[9] = far / (rho * near + pi * far)
        row[10] = math.expm1(loss) if loss < 700.0 else math.inf
        row[11] = math.exp(loss) if loss < 700.0 else math.inf
        row[12] = math.copysign(1.0, loss) if math.isinf(loss) else 0.0
        odds = math.log(share / rest) + loss if math.isfinite(loss) else 0.0
        log_t, log_u = (-float(np.logaddexp(0.0, sign * odds)) for sign in (-1.0, 1.0))
        row[:5] = 0.0, math.exp(log_t), math.exp(log_u), log_t, log_u
        if math.isfinite(loss):
            row[1], row[2] = pi * row[9], rho * near / (rho * near + pi * far)
    return table, float(defect)


class _Window:
    """Ranges of the outputs after the first, and what they leave out of Q and of P."""

    def __init__(self, merged: MergedRows, n: int, k: int, log_truncation: float) -> None:
        self.log_truncation = log_truncation
        self.outside = np.zeros(2)  # in units of exp(log_truncation), which is 1 for no truncation
        self._n = n
        outputs = merged.rows.shape[1]
        if log_truncation == -math.inf:
            self.box = np.tile([0.0, n + 1.0], (outputs - 1, 1))
            self.n_points = float(math.comb(n + outputs - 1, outputs - 1))
            return
        # an eighth for either end of at most 3 ranges; the lines have the quarter that is left
        limit = log_truncation - math.log(8.0)
        box = []
        for y in range(1, outputs):
            a, b = (_group(0.0, merged.rows[x, y], merged.log_rows[x, y]) for x in (0, 1))
            laws = [np.array([a, b]) for _ in range(2)]
            laws[0][:, 0] = n - k, k
            laws[1][:, 0] = n - k - 1, k + 1
            low, high = self._range(laws, limit)
            for law, groups in enumerate(laws):
                for log_left in (log_lower_tail(low - 1, groups), log_upper_tail(high + 1, groups)):
                    self.outside[law] += math.exp(log_left - log_truncation)
            box.append((low, high - low + 1.0))
        self.box = np.array(box)
        correlation = self._correlation(merged, k)
        self.n_points = float(self.box[:, 1].prod()) * _ROUNDNESS[outputs] * correlation

    def _range(self, laws: list[FloatArray], limit: float) -> tuple[float, float]:
        """Return the ends of the counts outside which each law has at most exp(limit) a side."""
        low, high = 0, self._n
        while low < high:  # what lies below ``low`` is negligible
            middle = (low + high + 1) // 2
            if all(log_lower_tail(middle - 1.0, groups) <= limit for groups in laws):
                low = middle
            else:
                high = middle - 1
        first, low, high = low, 0, self._n
        while low < high:  # what lies above ``high`` is negligible
            middle = (low + high) // 2
            if all(log_upper_tail(middle + 1.0, groups) <= limit for groups in laws):
                high = middle
            else:
                low = middle + 1
        return float(first), float(high)

    def _correlation(self, merged: MergedRows, k: int) -> float:
        """Return the root of the determinant of the correlations of the outputs but the first."""
        covariance = np.zeros((len(self.box), len(self.box)))
        for row, count in zip(merged.rows[:, 1:], (self._n - k, k), strict=True):
            covariance += count * (np.diag(row) - np.outer(row, row))
        deviations = np.sqrt(np.diag(covariance))
        if not deviations.min() > 0.0:
            return 1.0
        correlations = covariance / np.outer(deviations, deviations)
        return math.sqrt(max(float(np.linalg.det(correlations)), 1e-4))


def _chosen_window(merged: MergedRows, n: int, k: int, log_truncation: float | None) -> _Window:
    if log_truncation is not None:
        return _Window(merged, n, k, log_truncation)
    outputs = merged.rows.shape[1]
    if math.comb(n + outputs - 1, outputs - 1) <= _CHEAP_POINTS:
        return _Window(merged, n, k, -math.inf)
    window = _Window(merged, n, k, _DEFAULT_LOG_TRUNCATION)
    deeper = _DEFAULT_LOG_TRUNCATION * (_CHEAP_POINTS / window.n_points) ** (2.0 / (outputs - 1))
    if deeper < _DEFAULT_LOG_TRUNCATION:
        window = _Window(merged, n, k, max(deeper, _LOG_TRUNCATION.low))
    return window


@final
class LatticeProfile(PrivacyProfile):
    """The profile of an experiment with up to four outputs; see `lattice_profile`."""

    def __init__(self, experiment: ShuffleExperiment, log_truncation: float | None) -> None:
        a, b = experiment.pair
        foreign = sorted(set(experiment.others) - {a, b})
        if foreign:
            raise ValueError(
                f"others must hold inputs {a} and {b} only, got {foreign}; {_ELSEWHERE}"
            )
        merged = experiment.randomizer.merged((a, b))
        outputs = merged.rows.shape[1]
        if outputs > _MOST_OUTPUTS:
            raise ValueError(
                f"outputs must form at most {_MOST_OUTPUTS} groups of equal ratio, got {outputs}; "
                f"{_ELSEWHERE}"
            )
        self._experiment = experiment
        self._losses: dict[_Side, float] = {
            "forward": float(merged.log_ratios[1].max()),
            "reverse": float((-merged.log_ratios[1]).max()),
        }
        self._chunks: dict[_Side, list[_Chunk]] = {"forward": [], "reverse": []}
        self._log_outside: dict[_Side, float] = {"forward": -math.inf, "reverse": -math.inf}
        self._n_points = 0
        if outputs > 1:
            self._sum_lattice(merged, log_truncation)

    def _sum_lattice(self, merged: MergedRows, log_truncation: float | None) -> None:
        lost = (merged.rows == 0.0) & (merged.log_rows > -math.inf)
        if lost.any():
            smallest = float(merged.log_rows[lost].min())
            raise ValueError(
                f"probabilities must be at least 1e-308, got exp({smallest!r}) for "
                f"{self._experiment.randomizer!r}"
            )
        n, k = self.n, self._experiment.others.get(self._experiment.pair[1], 0)
        # lines of points run between the two outputs that vary most
        rows = merged.rows
        order = np.argsort(-((n - k) * rows[0] * (1.0 - rows[0]) + k * rows[1] * (1.0 - rows[1])))
        merged = MergedRows(*(np.ascontiguousarray(part[:, order]) for part in merged))
        window = _chosen_window(merged, n, k, log_truncation)
        self._require_storage(window.n_points)

        outputs, defect = _output_rows(merged, n, k)
        pi, rho = (k + 0.5) / n, (n - k - 0.5) / n
        labels = np.array([n, pi, rho, math.log(pi), math.log(rho)])
        truncated = window.log_truncation > -math.inf
        # two ends a line, a quarter of the truncation in all
        log_line = window.log_truncation - math.log(8.0 * float(window.box[1:, 1].prod()))
        law = np.array(
            [
                n,
                k,
                stirling_error(float(n)) + 0.5 * math.log(2.0 * math.pi * n) - defect,
                log_binomial_mass(float(k), labels),
                log_binomial_mass(k + 1.0, labels),
                rho / (n - k),
                log_line,
                window.log_truncation if truncated else 0.0,
            ]
        )
        longest_line = int(window.box[0, 1])
        buffer = np.empty((max(_POINTS_A_CHUNK, longest_line), 2))
        line = 0
        while True:
            line, count = fill_points(line, window.box, outputs, law, buffer, window.outside)
            self._store(buffer[:count])
            self._require_storage(self._n_points)
            if line == 0:
                break
        if truncated:
            # an underflow is no proof that nothing was left out; tails are rounded
            mass_q, mass_p = np.log(1.000001 * np.maximum(window.outside, 1e-300)).tolist()
            self._log_outside["forward"] = window.log_truncation + mass_p
            self._log_outside["reverse"] = window.log_truncation + mass_q

    def _require_storage(self, n_points: float) -> None:
        if n_points > _MOST_POINTS:
            raise ValueError(
                f"the histograms must be at most {_MOST_POINTS}, got about {n_points:.2g} at n = "
                f"{self.n}; {_ELSEWHERE}"
            )

    def _store(self, points: FloatArray) -> None:
        self._n_points += len(points)
        for side in self._chunks:
            kept = points[points[:, 0] >= 0.0 if side == "forward" else points[:, 0] < 0.0]
            if len(kept) == 0:
                continue
            kept[:, 0] = np.abs(kept[:, 0])
            # as complex numbers the pairs are sorted in place
            kept.view(np.complex128).sort(axis=0)
            sums = np.empty((-(-len(kept) // POINTS_A_STRIDE), 4))
            fill_tail_sums(kept, sums)
            self._chunks[side].append(_Chunk(kept, sums))

    @property
    def experiment(self) -> ShuffleExperiment:
        """The experiment the profile belongs to."""
        return self._experiment

    @property
    def n(self) -> int:
        """Number of users, including the one who differs."""
        return self._experiment.n

    @property
    def n_points(self) -> int:
        """Number of histograms that are stored, 16 bytes each."""
        return self._n_points

    @property
    def validity(self) -> Validity:
        """EXACT if no histogram was left out, else UPPER_BOUND."""
        complete = max(self._log_outside.values()) == -math.inf
        return Validity.EXACT if complete else Validity.UPPER_BOUND

    @property
    def method(self) -> str:
        """How the numbers are computed, in a few words."""
        left_out = max(self._log_outside.values())
        window = "all" if left_out == -math.inf else f"all but exp({left_out:.0f})"
        return f"sum over {self._n_points} histograms, {window} of the mass, by contour sums"

    @property
    def source(self) -> str:
        """The definition that the numbers rest on."""
        return (
            "definition of the hockey-stick divergence of the two histogram laws; exact likelihood "
            "ratio of A. Shvets, arXiv:2602.09029v3, section 3"
        )

    def _setting(self) -> dict[str, Any]:
        return self._experiment.to_dict()

    @staticmethod
    def _sides(direction: Direction) -> tuple[_Side, ...]:
        return ("forward", "reverse") if direction == "both" else (direction,)

    def _tail(self, epsilon: float, side: _Side) -> _Tail:
        # below inf, so that an infinite loss exceeds it
        finite = min(epsilon, float(np.finfo(np.float64).max))
        sums = np.array([-math.inf, 0.0, 0.0])
        for chunk in self._chunks[side]:
            add_to_tail(finite, chunk.points, chunk.sums, sums)
        return _Tail(*sums.tolist())

    def _rounding(self, epsilon: float, tail: _Tail) -> float:
        """Return how far rounding may have moved the excess of a tail."""
        mass = _MASS_ROUNDING + _MASS_ROUNDING_PER_USER * self.n
        if math.isfinite(tail.log_scale):
            mass += 4.0 * np.finfo(np.float64).eps * abs(tail.log_scale)
        loss = _LOSS_ROUNDING + 4.0 * np.finfo(np.float64).eps * min(epsilon, 1e3)
        return mass * tail.excess + loss * tail.slope

    def _log_sides(self, epsilon: float, side: _Side) -> tuple[float, float, float]:
        """Return the lower bound, the sum inside and the upper bound of log delta."""
        if epsilon >= self._losses[side] < math.inf:
            return -math.inf, -math.inf, -math.inf
        tail = self._tail(epsilon, side)
        rounding = self._rounding(epsilon, tail)
        with np.errstate(divide="ignore"):
            inside = np.array(
                [max(tail.excess - rounding, 0.0), tail.excess, tail.excess + rounding]
            )
            lower, value, upper = (tail.log_scale + np.log(inside)).tolist()
        return lower, value, float(np.logaddexp(upper, self._log_outside[side]))

    def _safe_log_delta(self, epsilon: float, side: _Side) -> float:
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

    def _safe_epsilon(self, log_delta: float, side: _Side) -> float:
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
            tail = self._tail(low, side)
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

    def _type_two_error(self, alpha: float, side: _Side) -> float:
        """Return the highest of the lines below the trade-off function, at level alpha.

        Every epsilon gives two lines, ``1 - delta - exp(epsilon) alpha`` and ``exp(-epsilon)
        (1 - reverse delta - alpha)``; the highest has the slope of the most powerful test. Each is
        valid, so the result is on the safe side whatever the search does.
        """

        def null_mass(epsilon: float) -> float:
            tail = self._tail(epsilon, side)
            return tail.slope * math.exp(tail.log_scale - epsilon)

        def other_mass(epsilon: float) -> float:
            tail = self._tail(epsilon, _OTHER_SIDE[side])
            return (tail.excess + tail.slope) * math.exp(tail.log_scale)

        steep = self._crossing(null_mass, alpha, side)
        flat = self._crossing(other_mass, 1.0 - alpha, _OTHER_SIDE[side])
        line = 1.0 - math.exp(self._safe_log_delta(steep, side)) - math.exp(steep) * alpha
        other = 1.0 - math.exp(self._safe_log_delta(flat, _OTHER_SIDE[side])) - alpha
        return max(line, math.exp(-flat) * other, 0.0)

    def _crossing(self, mass: Callable[[float], float], level: float, side: _Side) -> float:
        """Return the least epsilon, a finite loss or 0, with no more than ``level`` beyond it."""
        if mass(0.0) <= level:
            return 0.0
        low = 0.0
        high = max(
            float(np.max(chunk.points[:, 0], initial=0.0, where=chunk.points[:, 0] < math.inf))
            for chunk in self._chunks[side]
        )
        while low < (middle := 0.5 * (low + high)) < high:
            if mass(middle) <= level:
                high = middle
            else:
                low = middle
        return high

    def _divergence(self, order_excess: float, side: _Side) -> tuple[float, float]:
        """Return a Renyi divergence, or Jensen-Shannon for nan, and the sum it is formed from."""
        partial = np.array([0.0, -math.inf, 0.0])
        for half, chunks in self._chunks.items():
            sign = _SIGN[half] * _SIGN[side]
            for chunk in chunks:
                add_to_divergence(order_excess, sign, chunk.points, partial)
        total, largest, scaled = partial.tolist()
        if math.isnan(order_excess) or order_excess == 0.0:
            return total, total
        if -0.5 < order_excess * total < math.inf:
            return math.log1p(order_excess * total) / order_excess, total
        # the sum is not near 1, so its terms are added as they are
        log_moment = largest + math.log(scaled) if scaled > 0.0 else -math.inf
        return log_moment / order_excess, total

    def _renyi(self, order: float, side: _Side) -> float:
        loss = self._losses[side]
        if loss == 0.0:
            return 0.0
        if order < 0.5:
            return order / (1.0 - order) * self._renyi(1.0 - order, _OTHER_SIDE[side])
        if order == math.inf or (loss == math.inf and order >= 1.0):
            return loss
        value, total = self._divergence(order - 1.0, side)
        # outside the window the likelihood ratio may be as large as anywhere
        log_outside = self._log_outside[side]
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
        return self._divergence(math.nan, "forward")[0]

    def __repr__(self) -> str:
        return f"<LatticeProfile of {self._experiment!r}>"


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
    (`fastshuffle._kernels.lattice_pair`). The histograms are summed once; their masses and losses
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
    if not isinstance(experiment, ShuffleExperiment):
        raise TypeError(f"experiment must be a ShuffleExperiment, got {type(experiment).__name__}")
    if log_truncation is not None:
        log_truncation = check_real("log_truncation", log_truncation, _LOG_TRUNCATION)
    return LatticeProfile(experiment, log_truncation)
