"""The simultaneous band of one direction: an estimate of delta between two curves that hold."""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from fastshuffle._typing import FloatArray
from fastshuffle._validation import NONNEGATIVE_FINITE, Interval, check_real
from fastshuffle.monte_carlo.chunks import Pilot, Sums, Task, moments
from fastshuffle.monte_carlo.intervals import (
    bets_on_less,
    bets_on_more,
    least_wealth,
    lower_mean,
    upper_mean,
)
from fastshuffle.monte_carlo.pair import PairLaws

TARGET_DELTA = Interval(1e-300, 1.0, "in [1e-300, 1]")

# An estimate between two epsilons of the grid is given as long as so many samples bear it.
_LEAST_EFFECTIVE = 10.0
_BISECTIONS = 80
# What part of the error of a lower bound goes to the tangent.
_TANGENT_PART = 0.25


def _log(values: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.log(values)


class Target(NamedTuple):
    """Where intervals are to be sharpest: at an epsilon, or where delta comes down to a number."""

    kind: Literal["epsilon", "delta"]
    value: float

    @classmethod
    def of(cls, *, epsilon: float | None, delta: float | None) -> Self | None:
        """Return the target that is given, if one is."""
        if epsilon is not None:
            return cls("epsilon", check_real("target_epsilon", epsilon, NONNEGATIVE_FINITE))
        if delta is not None:
            return cls("delta", check_real("target_delta", delta, TARGET_DELTA))
        return None

    def place(self, task: Task, pilot: Pilot) -> int:
        """Return about the place of the target in the grid."""
        laws, aim = task
        if self.kind == "epsilon":
            return int(np.abs(aim.epsilons - self.value).argmin())
        sampled = aim.log_units + math.log(laws.share) + _log(pilot.means)
        low_enough = np.logaddexp(sampled, _log(laws.clear(aim.epsilons))) <= math.log(self.value)
        return int(low_enough.argmax()) if low_enough.any() else len(low_enough) - 1


def _weights(size: int, center: int | None) -> FloatArray:
    """Return the parts of the error that may be made at each epsilon."""
    even = np.full(size, 1.0 / size)
    if center is None:
        return even
    near = 1.0 / (1.0 + (np.arange(size) - center) ** 2.0)
    return 0.5 * (even + near / near.sum())


@dataclass(frozen=True)
class Band:
    """Estimates of delta and bounds on it that hold at all epsilons at once.

    Attributes
    ----------
    laws : PairLaws
        The direction; the part of delta that needs no sample comes from it.
    epsilons : array
        The grid.
    log_estimate, log_lower, log_upper, log_error : array
        Of the part that is sampled, at the grid: the estimate, the bounds, made monotone, and the
        standard error.
    log_tangent : array
        Lower bounds at the grid on the tangents of delta at the next epsilon, but at the last.
    effective : array
        Effective sample size at the grid, ``(sum x)**2 / sum x**2`` over the weighted terms x.
    reach : float
        Up to where an estimate is given.

    Notes
    -----
    Delta decreases in epsilon and is convex in exp(epsilon). So between two epsilons of the grid
    the upper bound is the chord in exp(epsilon). The lower one is that at the second epsilon, or
    the chord to it from a lower bound on its tangent: of what samples of larger loss than the
    second epsilon contribute at the first, which is below delta and linear in exp(epsilon).
    """

    laws: PairLaws
    epsilons: FloatArray
    log_estimate: FloatArray
    log_lower: FloatArray
    log_tangent: FloatArray
    log_upper: FloatArray
    log_error: FloatArray
    effective: FloatArray
    reach: float

    @classmethod
    def of(
        cls,
        task: Task,
        sums: Sums,
        pilot: Pilot,
        *,
        alpha: float,
        target: Target | None,
        uniform: float,
    ) -> Self:
        """Return the band that holds with probability 1 - alpha.

        The error is split evenly over the two ends and over the epsilons, but for one half of it
        that is spent near a target; that of the lower end goes to the tangents in part. ``uniform``
        is a random number of [0, 1] apart from the samples.
        """
        laws, aim = task
        size = sums.size
        if laws.trivial:
            zero = np.full(len(aim.epsilons), -math.inf)
            return cls(laws, aim.epsilons, zero, zero, zero, zero, zero, -zero, math.inf)
        found = moments(aim, sums.array())
        terms, squares = found.terms, found.squares
        units = aim.log_units + math.log(laws.share)
        mean = terms / size
        error = np.sqrt(np.maximum(squares / size - mean * mean, 0.0) / size)
        center = None if target is None else target.place(task, pilot)
        shares = 0.5 * alpha * _weights(len(aim.epsilons), center)
        part = np.full(len(shares), _TANGENT_PART)
        part[-1] = 0.0  # no epsilon follows

        def below(terms: FloatArray, squares: FloatArray, errors: FloatArray) -> FloatArray:
            # terms are never negative, which is enough for a bound from below
            roughly = pilot.means[: len(terms)], pilot.deviations[: len(terms)]
            bets = bets_on_more(size, *roughly, errors)
            return lower_mean(size, terms, squares, bets, least_wealth(errors, uniform))

        lower = below(terms, squares, (1.0 - part) * shares)
        tangents = found.tangent_terms[:-1], found.tangent_squares[:-1]
        tangent = below(*tangents, (part * shares)[:-1])
        scale = np.exp(aim.log_units - aim.log_limits)
        bets = bets_on_less(size, scale * pilot.deviations, shares)
        wealth = least_wealth(shares, uniform)
        upper = upper_mean(size, scale * terms, scale**2 * squares, bets, wealth)
        limits = aim.log_limits + math.log(laws.share)
        effective = np.where(squares > 0.0, terms**2 / np.where(squares > 0.0, squares, 1.0), 0.0)
        borne = effective >= _LEAST_EFFECTIVE
        reach = float(aim.epsilons[borne].max()) if borne.any() else -math.inf
        return cls(
            laws,
            aim.epsilons,
            units + _log(mean),
            np.maximum.accumulate((units + _log(lower))[::-1])[::-1],
            units[:-1] + _log(tangent),
            np.minimum.accumulate(np.minimum(limits + _log(upper), aim.log_ceilings)),
            units + _log(error),
            effective,
            reach,
        )

    def _total(self, epsilons: FloatArray, log_sampled: FloatArray) -> FloatArray:
        """Return the log of the sampled part and the known one together, 0 beyond the loss."""
        sampled = np.where(epsilons >= self.laws.drawn_loss, -math.inf, log_sampled)
        total = np.minimum(np.logaddexp(sampled, _log(self.laws.clear(epsilons))), 0.0)
        return np.where(epsilons >= self.laws.loss, -math.inf, total)

    def _cell(self, epsilons: FloatArray) -> tuple[npt.NDArray[np.intp], FloatArray]:
        """Return the index of the grid epsilon at or after each, and the share of the one before.

        The share is that of the chord in exp(epsilon).
        """
        after = np.clip(np.searchsorted(self.epsilons, epsilons), 1, len(self.epsilons) - 1)
        low, high = self.epsilons[after - 1], self.epsilons[after]
        with np.errstate(over="ignore", invalid="ignore"):
            share = -np.expm1(epsilons - high) / -np.expm1(low - high)
        return after, np.clip(np.nan_to_num(share), 0.0, 1.0)

    def estimate(self, epsilons: FloatArray) -> FloatArray:
        """Return the log of the estimate; refuse where too few samples bear it.

        Raises
        ------
        ValueError
            If an epsilon is beyond the reach, and not where delta is known without samples.
        """
        known = self.laws.drawn_loss
        first = float(self.epsilons[0])
        if (epsilons < min(first, known)).any():
            raise ValueError(
                f"epsilon must be >= {first!r}, the first that is summed, got "
                f"{float(epsilons.min())!r}"
            )
        beyond = (epsilons > self.reach) & (epsilons < known)
        if beyond.any():
            raise ValueError(
                f"epsilon must be <= {max(self.reach, 0.0)!r} or >= {known!r} for an "
                f"estimate, got {float(epsilons[beyond].max())!r}: too "
                "few samples lie beyond; bounds, more samples or a target further out will do"
            )
        return self._total(epsilons, self._between(epsilons, self.log_estimate))

    def _between(self, epsilons: FloatArray, logs: FloatArray) -> FloatArray:
        """Interpolate, geometrically in epsilon where both neighbours are positive."""
        if len(self.epsilons) == 1:
            return np.full(len(epsilons), float(logs[0]))
        after, share = self._cell(epsilons)
        low, high = logs[after - 1], logs[after]
        width = self.epsilons[after] - self.epsilons[after - 1]
        with np.errstate(invalid="ignore"):
            geometric = high + (low - high) * (self.epsilons[after] - epsilons) / width
        straight = np.logaddexp(_log(share) + low, _log(1.0 - share) + high)
        return np.where(high > -math.inf, geometric, straight)

    def lower(self, epsilons: FloatArray) -> FloatArray:
        """Return the log of the lower bound."""
        at = np.searchsorted(self.epsilons, epsilons)
        inside = np.append(self.log_lower, -math.inf)[at]
        if len(self.epsilons) > 1:
            after, share = self._cell(epsilons)
            low, high = self.log_tangent[after - 1], self.log_lower[after]
            chord = np.logaddexp(_log(share) + low, _log(1.0 - share) + high)
            inside = np.where(at == after, np.maximum(inside, chord), inside)
        return self._total(epsilons, inside)

    def upper(self, epsilons: FloatArray) -> FloatArray:
        """Return the log of the upper bound."""
        inside = np.full(len(epsilons), float(self.log_upper[-1]))
        if len(self.epsilons) > 1:
            after, share = self._cell(epsilons)
            low, high = self.log_upper[after - 1], self.log_upper[after]
            inside = np.logaddexp(_log(share) + low, _log(1.0 - share) + high)
        inside = np.where(epsilons >= self.epsilons[-1], self.log_upper[-1], inside)
        inside = np.where(
            epsilons < self.epsilons[0], math.log(max(self.laws.share, 1e-300)), inside
        )
        return self._total(epsilons, inside)

    def effective_samples(self, epsilon: float) -> float:
        """Return the effective sample size at the next epsilon of the grid, or at the last."""
        at = min(int(np.searchsorted(self.epsilons, epsilon)), len(self.epsilons) - 1)
        return float(self.effective[at])

    def standard_error(self, epsilons: FloatArray) -> FloatArray:
        """Return the log of the standard error of the estimate."""
        within = np.where(epsilons <= self.reach, self._between(epsilons, self.log_error), math.nan)
        return np.where(epsilons >= self.laws.drawn_loss, -math.inf, within)

    def inverse(self, curve: str, log_delta: float) -> float:
        """Return where a curve comes down to log_delta: the first epsilon there, or the loss.

        ``curve`` is ``"estimate"``, ``"lower"`` or ``"upper"``; for the lower one it is the last
        epsilon before. For the estimate a delta that is not reached is refused with a ValueError.
        """
        function = {"estimate": self.estimate, "lower": self.lower, "upper": self.upper}[curve]
        if log_delta == -math.inf:
            return self.laws.loss
        grid = self.epsilons
        if curve == "estimate":
            grid = grid[grid <= self.reach]
            if len(grid) == 0:
                return self._refuse(log_delta)
        low_enough = np.flatnonzero(function(grid) <= log_delta)
        if len(low_enough) == 0:
            if curve == "lower":
                return float(grid[-1])
            return (
                self.laws.loss if curve == "upper" or self.laws.trivial else self._refuse(log_delta)
            )
        first = int(low_enough[0])
        if first == 0:
            return 0.0
        low, high = float(grid[first - 1]), float(grid[first])
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            if function(np.array([middle]))[0] <= log_delta:
                high = middle
            else:
                low = middle
        return low if curve == "lower" else high

    def _refuse(self, log_delta: float) -> float:
        raise ValueError(
            f"delta must be larger for an estimate of epsilon, got {math.exp(log_delta)!r}: too "
            "few samples lie beyond; epsilon_bounds, more samples or a smaller target_delta will do"
        )
