"""The profile that a simulation estimates, with intervals that hold all at once."""

import math
from collections.abc import Callable
from typing import Any, final

import numpy as np
import numpy.typing as npt

from fastshuffle._typing import OPPOSITE, Direction, FloatArray, Side
from fastshuffle._validation import NONNEGATIVE, PROBABILITY, check_direction, check_reals
from fastshuffle.experiment import ShuffleExperiment
from fastshuffle.monte_carlo.band import Band
from fastshuffle.monte_carlo.pair import SIDES
from fastshuffle.profile import PrivacyProfile, Validity

# Gauss points in a cell of the grid, and cells of the tail beyond the grid.
_NODES = np.array(
    [-0.8611363115940526, -0.3399810435848563, 0.3399810435848563, 0.8611363115940526]
)
_WEIGHTS = np.array(
    [0.3478548451374538, 0.6521451548625461, 0.6521451548625461, 0.3478548451374538]
)
_TAIL_CELLS = 64
_LONGEST_CELL = 0.25
# Beyond this the weights of the Jensen-Shannon integral are below 1e-17.
_FARTHEST = 40.0

_Curve = Callable[[Band, FloatArray], FloatArray]
_Weight = Callable[[FloatArray], FloatArray]


@final
class MonteCarloProfile(PrivacyProfile):
    """The estimated profile of an experiment; see `monte_carlo_profile`.

    ``delta``, ``epsilon``, ``trade_off``, ``kl`` and ``jensen_shannon`` are estimates; ``bounds``,
    ``epsilon_bounds``, ``trade_off_bounds``, ``kl_bounds`` and ``jensen_shannon_bounds`` are
    intervals. With probability ``confidence`` all intervals of a profile hold, in both directions
    and at all arguments: the ones of delta at a grid of epsilons do, and all others follow.
    """

    def __init__(
        self,
        experiment: ShuffleExperiment,
        bands: dict[Side, Band],
        *,
        confidence: float,
        n_samples: int,
    ) -> None:
        self._experiment = experiment
        self._bands = bands
        self._confidence = confidence
        self._n_samples = n_samples

    @property
    def experiment(self) -> ShuffleExperiment:
        """The experiment the profile belongs to."""
        return self._experiment

    @property
    def n(self) -> int:
        """Number of users, including the one who differs."""
        return self._experiment.n

    @property
    def confidence(self) -> float:
        """The probability that all intervals hold."""
        return self._confidence

    @property
    def n_samples(self) -> int:
        """Number of histograms drawn, half of them for either direction."""
        return self._n_samples

    @property
    def epsilons(self) -> dict[Side, FloatArray]:
        """The epsilons of the grid of each direction; between them values are interpolated."""
        return {side: band.epsilons.copy() for side, band in self._bands.items()}

    @property
    def reach(self) -> float:
        """The epsilon up to which enough samples bear an estimate in both directions."""
        return max(0.0, min(band.reach for band in self._bands.values()))

    @property
    def validity(self) -> Validity:
        """ESTIMATE."""
        return Validity.ESTIMATE

    @property
    def method(self) -> str:
        """How the numbers are computed, in a few words."""
        return (
            f"{self._n_samples} histograms drawn from exponential tilts; exact likelihood ratios; "
            f"intervals hold together with probability {self._confidence:g}"
        )

    @property
    def source(self) -> str:
        """The definition that the numbers rest on."""
        return (
            "definition of the hockey-stick divergence of the two histogram laws; exact likelihood "
            "ratio of A. Shvets, arXiv:2602.09029v3, section 3"
        )

    def _setting(self) -> dict[str, Any]:
        return {
            **self._experiment.to_dict(),
            "n_samples": self._n_samples,
            "confidence": self._confidence,
        }

    def _chosen(self, direction: Direction) -> list[Band]:
        return list(self._bands.values()) if direction == "both" else [self._bands[direction]]

    def _log_delta(self, epsilons: FloatArray, direction: Direction) -> FloatArray:
        return np.max([band.estimate(epsilons) for band in self._chosen(direction)], axis=0)

    def _log_bounds(
        self, epsilons: FloatArray, direction: Direction
    ) -> tuple[FloatArray, FloatArray]:
        bands = self._chosen(direction)
        lower = np.max([band.lower(epsilons) for band in bands], axis=0)
        return lower, np.max([band.upper(epsilons) for band in bands], axis=0)

    def _epsilon(self, log_deltas: FloatArray, direction: Direction) -> FloatArray:
        return self._inverse("estimate", log_deltas, direction)

    def _inverse(self, curve: str, log_deltas: FloatArray, direction: Direction) -> FloatArray:
        bands = self._chosen(direction)
        return np.array(
            [max(band.inverse(curve, value) for band in bands) for value in log_deltas.tolist()]
        )

    def standard_error(self, epsilon: npt.ArrayLike, *, direction: Direction = "both") -> Any:
        """Return the standard error of the estimate of delta.

        Parameters
        ----------
        epsilon : float or array_like of float
            Privacy parameter, >= 0.
        direction : {"both", "forward", "reverse"}
            Which divergence; both is that of the direction with the larger estimate.

        Returns
        -------
        float or numpy.ndarray
            In the shape of ``epsilon``; nan where there is no estimate.

        Raises
        ------
        TypeError, ValueError
            If an epsilon is no real number >= 0, or the direction is unknown.
        """
        bands = self._chosen(check_direction(direction))
        values, shape = check_reals("epsilon", epsilon, NONNEGATIVE)
        errors = np.exp([band.standard_error(values) for band in bands])
        if len(bands) > 1:
            larger = np.argmax([band.lower(values) for band in bands], axis=0)
            errors = np.take_along_axis(errors, larger[np.newaxis], axis=0)
        return errors[0].reshape(shape) if shape else float(errors[0][0])

    def effective_samples(self, epsilon: float, *, direction: Direction = "both") -> float:
        """Return how many samples of equal weight the estimate of delta is worth.

        Parameters
        ----------
        epsilon : float
            Privacy parameter, >= 0.
        direction : {"both", "forward", "reverse"}
            Which divergence; both is the smaller number.

        Returns
        -------
        float
            ``(sum x)**2 / sum x**2`` over the weighted terms at the next epsilon of the grid; inf
            where delta is known without samples.

        Raises
        ------
        TypeError, ValueError
            If epsilon is no real number >= 0, or the direction is unknown.
        """
        bands = self._chosen(check_direction(direction))
        values, _ = check_reals("epsilon", epsilon, NONNEGATIVE)
        return min(band.effective_samples(float(values[0])) for band in bands)

    def epsilon_bounds(
        self, delta: npt.ArrayLike, *, direction: Direction = "both"
    ) -> tuple[Any, Any]:
        """Return an interval for the smallest epsilon that goes with delta.

        Parameters
        ----------
        delta : float or array_like of float
            Privacy parameter in [0, 1].
        direction : {"both", "forward", "reverse"}
            Which divergence; both is the larger.

        Returns
        -------
        lower, upper : float or numpy.ndarray
            Each in the shape of ``delta``. The upper end is the largest privacy loss where no
            sample is left to bound epsilon.

        Raises
        ------
        TypeError, ValueError
            If a delta is no real number in [0, 1], or the direction is unknown.
        """
        which = check_direction(direction)
        deltas, shape = check_reals("delta", delta, PROBABILITY)
        with np.errstate(divide="ignore"):
            logs = np.log(deltas)
        ends = [self._inverse(curve, logs, which) for curve in ("lower", "upper")]
        low, high = (end.reshape(shape) if shape else float(end[0]) for end in ends)
        return low, high

    def _trade_off(self, alphas: FloatArray, direction: Direction) -> FloatArray:
        return self._best_lines(alphas, direction, lambda band, e: band.estimate(e))

    def _best_lines(self, alphas: FloatArray, direction: Direction, curve: _Curve) -> FloatArray:
        """Return the largest of the lines below the trade-off function, at the grid epsilons."""
        found = [self._lines(alphas, side, curve) for side in self._sides(direction)]
        return np.min(found, axis=0)

    @staticmethod
    def _sides(direction: Direction) -> tuple[Side, ...]:
        return SIDES if direction == "both" else (direction,)

    def _lines(self, alphas: FloatArray, side: Side, curve: _Curve) -> FloatArray:
        steep, flat = self._bands[side], self._bands[OPPOSITE[side]]
        found = np.zeros_like(alphas)
        for band, steeper in ((steep, True), (flat, False)):
            grid = band.epsilons[band.epsilons <= max(band.reach, 0.0)]
            delta = np.exp(curve(band, grid))[:, np.newaxis]
            factor = np.exp(grid)[:, np.newaxis]
            lines = 1.0 - delta - factor * alphas if steeper else (1.0 - delta - alphas) / factor
            found = np.maximum(found, lines.max(axis=0))
        return found

    def trade_off_bounds(
        self, alpha: npt.ArrayLike, *, direction: Direction = "both"
    ) -> tuple[Any, Any]:
        """Return an interval for the least type II error of a test of level alpha.

        Parameters
        ----------
        alpha : float or array_like of float
            Level of the test, in [0, 1].
        direction : {"both", "forward", "reverse"}
            As for `trade_off`.

        Returns
        -------
        lower, upper : float or numpy.ndarray
            Each in the shape of ``alpha``.

        Raises
        ------
        TypeError, ValueError
            If a level is no real number in [0, 1], or the direction is unknown.
        """
        which = check_direction(direction)
        alphas, shape = check_reals("alpha", alpha, PROBABILITY)
        low = self._best_lines(alphas, which, lambda band, e: band.upper(e))
        high = np.min([self._above_lines(alphas, side) for side in self._sides(which)], axis=0)
        if not shape:
            return float(low[0]), float(high[0])
        return low.reshape(shape), high.reshape(shape)

    def _above_lines(self, alphas: FloatArray, side: Side) -> FloatArray:
        """Bound the largest of the lines at all epsilons: over a cell each term at its best end."""
        found = np.zeros_like(alphas)
        for band, steeper in ((self._bands[side], True), (self._bands[OPPOSITE[side]], False)):
            least = np.append(np.exp(band.lower(band.epsilons[1:])), 0.0)[:, np.newaxis]
            factor = np.exp(band.epsilons)[:, np.newaxis]
            lines = 1.0 - least - factor * alphas if steeper else (1.0 - least - alphas) / factor
            found = np.maximum(found, lines.max(axis=0))
        return found

    def _integral(self, side: Side, curve: _Curve, weight: _Weight, *, tail: bool) -> float:
        """Return the integral of weight times a curve of delta over all epsilons.

        Beyond the grid, or beyond the reach of an estimate, only what is known without samples is
        counted, and for ``tail`` also the last value of the curve up to the largest loss.
        """
        band = self._bands[side]
        end = float(band.epsilons[band.epsilons <= max(band.reach, 0.0)].max())
        last = float(band.epsilons[-1]) if tail else end
        edges = np.append(band.epsilons[band.epsilons <= last], last)
        farthest = min(band.laws.loss, last + _FARTHEST)
        total = _gauss(lambda e: np.exp(curve(band, e)) * weight(e), _refined(edges))
        known = _cells(last, farthest)
        total += _gauss(lambda e: band.laws.clear(e) * weight(e), known)
        if tail:
            left = float(np.exp(band.log_upper[-1]))
            total += left * _gauss(weight, known)
        return total

    def _divergence(self, weights: dict[Side, _Weight], curve: _Curve, *, tail: bool) -> float:
        return sum(
            self._integral(side, curve, weight, tail=tail) for side, weight in weights.items()
        )

    def _kl(self, side: Side, curve: _Curve, *, tail: bool) -> float:
        if self._bands[side].laws.loss == math.inf:
            return math.inf
        weights: dict[Side, _Weight] = {
            side: np.ones_like,
            OPPOSITE[side]: lambda e: np.exp(-e),
        }
        return self._divergence(weights, curve, tail=tail)

    def kl(self, *, direction: Direction = "both") -> float:
        """Return an estimate of the Kullback-Leibler divergence in nats.

        Parameters
        ----------
        direction : {"both", "forward", "reverse"}
            Forward is the divergence of P from Q, both the larger of the two.

        Returns
        -------
        float
            The integral of the estimated profile, ``delta_forward(e) + exp(-e) delta_reverse(e)``
            over e >= 0 for forward; inf exactly if the largest loss is.

        Raises
        ------
        ValueError
            If the direction is unknown.
        """
        sides = self._sides(check_direction(direction))
        return max(self._kl(side, lambda band, e: band.estimate(e), tail=False) for side in sides)

    def kl_bounds(self, *, direction: Direction = "both") -> tuple[float, float]:
        """Return an interval for the Kullback-Leibler divergence in nats.

        Parameters
        ----------
        direction : {"both", "forward", "reverse"}
            As for `kl`.

        Returns
        -------
        lower, upper : float
            The integrals of the bounds of the profile.

        Raises
        ------
        ValueError
            If the direction is unknown.
        """
        sides = self._sides(check_direction(direction))
        return (
            max(self._kl(side, lambda band, e: band.lower(e), tail=False) for side in sides),
            max(self._kl(side, lambda band, e: band.upper(e), tail=True) for side in sides),
        )

    def jensen_shannon(self) -> float:
        """Return an estimate of the Jensen-Shannon divergence in nats.

        Returns
        -------
        float
            The integral of ``(delta_forward(e) + delta_reverse(e)) / (2 (1 + exp(e)))`` over the
            estimated profile.
        """
        return self._divergence(_JENSEN_SHANNON, lambda band, e: band.estimate(e), tail=False)

    def jensen_shannon_bounds(self) -> tuple[float, float]:
        """Return an interval for the Jensen-Shannon divergence in nats.

        Returns
        -------
        lower, upper : float
            The integrals of the bounds of the profile.
        """
        return (
            self._divergence(_JENSEN_SHANNON, lambda band, e: band.lower(e), tail=False),
            self._divergence(_JENSEN_SHANNON, lambda band, e: band.upper(e), tail=True),
        )

    def _curve(self, epsilons: FloatArray) -> list[dict[str, Any]]:
        rows = super()._curve(epsilons)
        for row, epsilon in zip(rows, epsilons.tolist(), strict=True):
            for suffix, direction in self._directions().items():
                lower, upper = self.bounds(epsilon, direction=direction)
                row[f"lower{suffix}"], row[f"upper{suffix}"] = lower, upper
        return rows

    def _guarantees(self, deltas: FloatArray) -> list[dict[str, Any]]:
        rows = super()._guarantees(deltas)
        for row, delta in zip(rows, deltas.tolist(), strict=True):
            for suffix, direction in self._directions().items():
                ends = self.epsilon_bounds(delta, direction=direction)
                for name, end in zip(("lower", "upper"), ends, strict=True):
                    row[f"{name}{suffix}"] = end if end < math.inf else str(end)
        return rows

    def __repr__(self) -> str:
        return f"<MonteCarloProfile: {self._n_samples} samples of {self._experiment!r}>"


def _jensen_shannon_weight(epsilons: FloatArray) -> FloatArray:
    return 0.5 / (1.0 + np.exp(epsilons))


_JENSEN_SHANNON: dict[Side, _Weight] = dict.fromkeys(SIDES, _jensen_shannon_weight)


def _cells(low: float, high: float) -> FloatArray:
    return np.linspace(low, high, _TAIL_CELLS + 1) if high > low else np.full(1, low)


def _refined(edges: FloatArray) -> FloatArray:
    """Return edges of cells in which a weight hardly changes, as far as any is not negligible."""
    within = np.arange(0.0, _FARTHEST, _LONGEST_CELL)
    within = within[(within > edges[0]) & (within < edges[-1])]
    return np.unique(np.concatenate((edges, within)))


def _gauss(function: Callable[[FloatArray], FloatArray], edges: FloatArray) -> float:
    """Return the integral of a function, by Gauss's rule in each cell."""
    half = 0.5 * np.diff(edges)
    centers = edges[:-1] + half
    nodes = (centers[:, np.newaxis] + half[:, np.newaxis] * _NODES).ravel()
    values = np.asarray(function(nodes)).reshape(-1, len(_NODES))
    return float((half * (values @ _WEIGHTS)).sum())
