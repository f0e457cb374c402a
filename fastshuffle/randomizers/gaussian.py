"""Discretized Gaussian noise on a bounded interval."""

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from fastshuffle._typing import FloatArray, IntArray
from fastshuffle._validation import Interval, check_real
from fastshuffle.randomizers.base import LocalRandomizer, pairs_up_to_reflection
from fastshuffle.randomizers.laplace import check_ladder, distances_of_bins
from fastshuffle.randomizers.merging import MergedRows, merge_log_columns

__all__ = ["discretized_gaussian"]

_MOST_BINS = 2**16
_SIGMA = Interval(1e-100, 1e100, "in [1e-100, 1e100]")

# Fejer's quadrature on [0, 1], whose weights are a closed form: numpy's Gauss-Legendre weights are
# off by 1e-14.
_N_NODES = 48
_ANGLES = (np.arange(_N_NODES) + 0.5) * (math.pi / _N_NODES)
_ORDERS = np.arange(1, _N_NODES // 2 + 1)[:, np.newaxis]
_NODES = np.sin(0.5 * _ANGLES) ** 2
_WEIGHTS = (
    1.0 - 2.0 * (np.cos(2.0 * _ORDERS * _ANGLES) / (4.0 * _ORDERS**2 - 1.0)).sum(axis=0)
) / _N_NODES

# Beyond where the Gaussian density has fallen by exp(-40), its mass is below rounding.
_FALL = 40.0


@final
@dataclass(frozen=True, eq=False, repr=False)
class DiscretizedGaussian(LocalRandomizer):
    """See `discretized_gaussian`.

    The mass from z to z + h standard deviations, z >= 0, is the density at z times the integral of
    ``exp(-z t - t**2 / 2)`` for t from 0 to h: a smooth positive integrand, however far the tail.
    """

    _sigma: float
    _n_inputs: int
    _stride: int

    @property
    def n_inputs(self) -> int:
        """Number of inputs, which are 0, 1, ..., n_inputs - 1."""
        return self._n_inputs

    @property
    def epsilon0(self) -> float:
        """Local privacy parameter: the log ratio of the two ends of the interval in an outer bin.

        The likelihood ratio of two Gaussians is monotone, so no other pair or bin exceeds it.
        """
        near, far = np.zeros(1), np.array([float(self._n_bins)])
        return -float(self._log_ratios(far, near, outer=True)[0])

    def representative_pairs(self) -> tuple[tuple[int, int], ...]:
        """Return ordered pairs of inputs, one of each that a reflection of the interval joins."""
        return pairs_up_to_reflection(self._n_inputs)

    @property
    def _n_bins(self) -> int:
        return (self._n_inputs - 1) * self._stride

    @property
    def _bin_width(self) -> float:
        """Width of a bin in standard deviations."""
        return 1.0 / (self._n_bins * self._sigma)

    def _reach(self, z: FloatArray, *, outer: bool) -> FloatArray:
        fallen = 2.0 * _FALL / (z + np.sqrt(z * z + 2.0 * _FALL))
        return fallen if outer else np.minimum(fallen, self._bin_width)

    def _log_masses(self, distances: FloatArray, *, outer: bool) -> FloatArray:
        z = distances * self._bin_width
        log_integral = _log_integral(z, self._reach(z, outer=outer))
        return -0.5 * z * z - 0.5 * math.log(2.0 * math.pi) + log_integral

    def _log_ratios(self, high: FloatArray, low: FloatArray, *, outer: bool) -> FloatArray:
        """Return the log ratio of masses at distances ``high`` to those at distances ``low``."""
        z_high, z_low = high * self._bin_width, low * self._bin_width
        gap = (high - low) * self._bin_width
        reach = self._reach(np.minimum(z_high, z_low), outer=outer)
        near = np.abs(gap) * reach < 1.0
        steps = np.multiply.outer(reach, _NODES)
        integrand = np.exp(-z_low[:, np.newaxis] * steps - 0.5 * steps * steps)
        change = np.expm1(-np.where(near, gap, 0.0)[:, np.newaxis] * steps)
        log_near = np.log1p((integrand * change) @ _WEIGHTS / (integrand @ _WEIGHTS))
        log_far = _log_integral(z_high, self._reach(z_high, outer=outer)) - _log_integral(
            z_low, self._reach(z_low, outer=outer)
        )
        # both terms have the sign of -gap
        return np.where(near, log_near, log_far) - 0.5 * gap * (z_high + z_low)

    def columns(self, inputs: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
        """Return log masses and their log ratios to the first input, from below to above."""
        places = np.array(inputs)[:, np.newaxis] * self._stride
        inner = distances_of_bins(0, self._n_bins, places).astype(np.float64)
        outer = np.hstack((places, self._n_bins - places)).astype(np.float64)
        log_columns, log_ratios = [], []
        for near, far in zip(inner, outer, strict=True):
            below, above = self._log_masses(far, outer=True)
            log_columns.append(np.hstack((below, self._log_masses(near, outer=False), above)))
            below, above = self._log_ratios(far, outer[0], outer=True)
            ratios = self._log_ratios(near, inner[0], outer=False)
            log_ratios.append(np.hstack((below, ratios, above)))
        return np.array(log_columns), np.array(log_ratios) + 0.0

    def _merged(self, inputs: tuple[int, ...]) -> MergedRows:
        return merge_log_columns(*self.columns(inputs), np.arange(self._n_bins + 2))

    def _shared(self, inputs: tuple[int, ...]) -> FloatArray:
        # a message is least likely from the input farthest off, one of the two ends
        rows = self.merged((*inputs, 0, self.n_inputs - 1)).rows
        return np.vstack((rows[:-2], rows[-2:].min(axis=0)))

    def _sample(self, inputs: IntArray, rng: np.random.Generator) -> IntArray:
        noise = rng.standard_normal(inputs.size) / self._bin_width
        bins = np.floor(inputs * self._stride + noise)
        return np.clip(bins + 1.0, 0.0, self._n_bins + 1.0).astype(np.int64)

    def to_dict(self) -> dict[str, Any]:
        """Return the name of the factory and its arguments."""
        return {
            "mechanism": "discretized_gaussian",
            "sigma": self._sigma,
            "n_inputs": self._n_inputs,
            "bins_per_step": self._stride,
        }


def _log_integral(z: FloatArray, reach: FloatArray) -> FloatArray:
    steps = np.multiply.outer(reach, _NODES)
    integrand = np.exp(-z[:, np.newaxis] * steps - 0.5 * steps * steps)
    return np.log(reach * (integrand @ _WEIGHTS))


def discretized_gaussian(
    sigma: float, n_inputs: int, *, bins_per_step: int = 1
) -> DiscretizedGaussian:
    """Return Gaussian noise on the unit interval, of which the analyst sees a bin.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise, in [1e-100, 1e100]; the interval has length 1.
    n_inputs : int
        Number of inputs, >= 2: input i stands for ``i / (n_inputs - 1)``.
    bins_per_step : int, default 1
        Number of equal bins between two neighbouring inputs, >= 1. There may be 2**16 bins.

    Returns
    -------
    LocalRandomizer
        The mechanism. Messages are integers; those of n users have shape (n,). With ``m =
        (n_inputs - 1) * bins_per_step``, message 0 is a noisy value below 0, message j from 1 to
        m one between ``(j - 1) / m`` and ``j / m``, message m + 1 one above 1.

    Raises
    ------
    TypeError, ValueError
        If an argument is outside its domain.

    See Also
    --------
    discretized_laplace : with Laplace noise.

    Notes
    -----
    **Probabilities.** The user adds N(0, sigma**2). A bin from l to r has probability
    ``Phi((r - x) / sigma) - Phi((l - x) / sigma)`` for a user at x, with Phi the standard normal
    distribution function; the outer bins reach to infinity. No bin holds an input in its interior.

    **Privacy.** Gaussian noise alone has no finite local privacy parameter, the bins have:
    `epsilon0` is ``log(1/2) - log Phi(-1 / sigma)``, the log ratio of the two ends of the interval
    in an outer bin, whatever the number of inputs and bins.

    **Decoder.** None: the outer bins hide how far a value lies outside.

    **Accuracy.** Probabilities and log ratios are integrals of positive smooth functions by
    Fejer's quadrature with 48 nodes, good to a few units of rounding in bins of any width
    and in tails of any depth, where differences of Phi would vanish.

    **Cost.** Merged rows have ``m + 2`` groups, since no two bins have equal ratios.

    References
    ----------
    .. [1] C. Dwork, A. Roth, "The Algorithmic Foundations of Differential Privacy", 2014, appendix
       A, the Gaussian mechanism.

    Examples
    --------
    >>> noise = discretized_gaussian(0.5, 3)
    >>> noise
    <discretized_gaussian: sigma = 0.5, n_inputs = 3, bins_per_step = 1>
    >>> print(f"{noise.epsilon0:.9f}")
    3.090037153
    >>> noise.merged_rows((0, 2)).round(6)
    array([[0.5     , 0.341345, 0.135905, 0.02275 ],
           [0.02275 , 0.135905, 0.341345, 0.5     ]])
    """
    size, stride = check_ladder(n_inputs, bins_per_step, _MOST_BINS)
    return DiscretizedGaussian(check_real("sigma", sigma, _SIGMA), size, stride)
