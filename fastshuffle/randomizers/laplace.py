"""Discrete and discretized Laplace noise on a bounded range."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from fastshuffle._typing import FloatArray, IntArray
from fastshuffle._validation import NONNEGATIVE_FINITE, check_count, check_real
from fastshuffle.randomizers.base import LocalRandomizer, pairs_up_to_reflection
from fastshuffle.randomizers.merging import MergedRows, merge_log_columns

__all__ = ["discrete_laplace", "discretized_laplace"]

_MOST_STEPS = 2**20


@dataclass(frozen=True, eq=False, repr=False)
class ClampedLaplace(LocalRandomizer):
    """Noise whose log density falls by `epsilon0` over the whole range, clamped to the range.

    Inputs are places on a ladder of ``_n_steps`` steps, apart by ``_stride`` steps.
    """

    _name: ClassVar[str]
    _epsilon0: float
    _n_inputs: int
    _stride: int

    @property
    def n_inputs(self) -> int:
        """Number of inputs, which are 0, 1, ..., n_inputs - 1."""
        return self._n_inputs

    @property
    def epsilon0(self) -> float:
        """Local privacy parameter: the largest log ratio, between the two ends of the range."""
        return self._epsilon0

    def representative_pairs(self) -> tuple[tuple[int, int], ...]:
        """Return ordered pairs of inputs, one of each that a reflection of the interval joins."""
        return pairs_up_to_reflection(self._n_inputs)

    @property
    def _n_steps(self) -> int:
        return (self._n_inputs - 1) * self._stride

    @property
    def _decay(self) -> float:
        """How much the log density falls in one step."""
        return self._epsilon0 / self._n_steps

    @abstractmethod
    def _cells_between(self, low: int, high: int, places: IntArray) -> IntArray:
        """Return the distance of each place from the cells strictly between two places."""

    @abstractmethod
    def _log_masses(self) -> tuple[float, float]:
        """Return the log mass of a cell and of all from a place outward, at distance 0."""

    def columns(self, inputs: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
        """Return log masses and their log ratios to the first input, from below to above.

        Everything up to the lowest of the inputs is one column, and from the highest one on.
        """
        places = np.array(inputs)[:, np.newaxis] * self._stride
        low, high = int(places.min()), int(places.max())
        # what lies beyond all places tells them apart no more than their distances do
        distances = np.hstack((places - low, self._cells_between(low, high, places), high - places))
        log_cell, log_tail = self._log_masses()
        log_mass = np.full(distances.shape[1], log_cell)
        log_mass[[0, -1]] = log_tail
        log_columns = log_mass - self._epsilon0 * (distances / self._n_steps)
        log_ratios = self._epsilon0 * ((distances[0] - distances) / self._n_steps)
        return log_columns, log_ratios

    def _merged(self, inputs: tuple[int, ...]) -> MergedRows:
        log_columns, log_ratios = self.columns(inputs)
        n_columns = log_columns.shape[1]
        groups = np.arange(n_columns) if self._epsilon0 > 0.0 else np.zeros(n_columns, int)
        return merge_log_columns(log_columns, log_ratios, groups)

    def _shared(self, inputs: tuple[int, ...]) -> FloatArray:
        # a message is least likely from the input farthest off, one of the two ends
        rows = self.merged((*inputs, 0, self.n_inputs - 1)).rows
        return np.vstack((rows[:-2], rows[-2:].min(axis=0)))

    def _exponential_steps(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n exponential distances in steps, cut where the range certainly ends."""
        reach = float(self._n_steps + 1)
        if self._decay == 0.0:
            return np.full(n, reach)
        with np.errstate(over="ignore"):
            return np.minimum(rng.standard_exponential(n) / self._decay, reach)


@final
@dataclass(frozen=True, eq=False, repr=False)
class DiscreteLaplace(ClampedLaplace):
    """See `discrete_laplace`."""

    _name = "discrete_laplace"

    def _cells_between(self, low: int, high: int, places: IntArray) -> IntArray:
        return np.abs(np.arange(low + 1, high) - places)

    def _log_masses(self) -> tuple[float, float]:
        log_tail = -math.log1p(math.exp(-self._decay))
        if self._decay == 0.0:
            return -math.inf, log_tail
        return log_tail + _log1mexp(self._decay), log_tail

    def _sample(self, inputs: IntArray, rng: np.random.Generator) -> IntArray:
        tail = math.exp(self._log_masses()[1])  # of noise <= 0
        uniform = rng.random(inputs.size)
        sign = (uniform >= tail).astype(np.int64) - (uniform < 1.0 - tail)
        size = 1 + np.floor(self._exponential_steps(inputs.size, rng)).astype(np.int64)
        return np.clip(inputs + sign * size, 0, self._n_steps)

    def to_dict(self) -> dict[str, Any]:
        """Return the name of the factory and its arguments."""
        return {
            "mechanism": self._name,
            "epsilon0": self._epsilon0,
            "n_levels": self._n_inputs,
        }


@final
@dataclass(frozen=True, eq=False, repr=False)
class DiscretizedLaplace(ClampedLaplace):
    """See `discretized_laplace`."""

    _name = "discretized_laplace"

    def _cells_between(self, low: int, high: int, places: IntArray) -> IntArray:
        return distances_of_bins(low, high, places)

    def _log_masses(self) -> tuple[float, float]:
        log_cell = math.log(0.5) + _log1mexp(self._decay) if self._decay > 0.0 else -math.inf
        return log_cell, math.log(0.5)

    def _sample(self, inputs: IntArray, rng: np.random.Generator) -> IntArray:
        right = rng.random(inputs.size) < 0.5
        steps = np.floor(self._exponential_steps(inputs.size, rng)).astype(np.int64)
        places = inputs * self._stride
        bins = np.where(right, places + steps, places - 1 - steps)
        return np.clip(bins + 1, 0, self._n_steps + 1)

    def to_dict(self) -> dict[str, Any]:
        """Return the name of the factory and its arguments."""
        return {
            "mechanism": self._name,
            "epsilon0": self._epsilon0,
            "n_inputs": self._n_inputs,
            "bins_per_step": self._stride,
        }


def check_ladder(n_inputs: float, bins_per_step: float, most_bins: int) -> tuple[int, int]:
    """Return the number of inputs and of bins between two of them, after checks."""
    size = check_count("n_inputs", n_inputs, minimum=2, maximum=most_bins + 1)
    most = most_bins // (size - 1)
    return size, check_count("bins_per_step", bins_per_step, minimum=1, maximum=most)


def distances_of_bins(low: int, high: int, places: IntArray) -> IntArray:
    """Return the distance of each place from the bins between two places, one step wide each."""
    left_edges = np.arange(low, high)
    return np.where(left_edges >= places, left_edges - places, places - left_edges - 1)


def _log1mexp(x: float) -> float:
    """Return ``log(1 - exp(-x))`` for x > 0."""
    return math.log(-math.expm1(-x)) if x < math.log(2.0) else math.log1p(-math.exp(-x))


def discrete_laplace(epsilon0: float, n_levels: int) -> DiscreteLaplace:
    """Return discrete Laplace noise on 0, ..., n_levels - 1: the truncated geometric mechanism.

    Parameters
    ----------
    epsilon0 : float
        Local privacy parameter of the two ends of the range, >= 0 and finite.
    n_levels : int
        Number of inputs and of outputs, from 2 to 2**20 + 1.

    Returns
    -------
    LocalRandomizer
        The mechanism. Messages are integers from 0 to n_levels - 1; those of n users have
        shape (n,).

    Raises
    ------
    TypeError, ValueError
        If an argument is outside its domain.

    Notes
    -----
    **Probabilities.** The user adds two-sided geometric noise, which is d with probability ``(1 -
    a) / (1 + a) a**|d|``, ``a = exp(-epsilon0 / (n_levels - 1))``, and *clamps* the sum: values
    below 0 are sent as 0, values above ``n_levels - 1`` as that [1]_. So an inner output y is sent
    for input x with probability ``(1 - a) / (1 + a) a**|x - y|``, and an end of the range at
    distance d from x with ``a**d / (1 + a)``. For epsilon0 = 0 it is a fair coin between the ends.

    **Privacy.** The log ratio of inputs x and x' is at most ``epsilon0 |x - x'| / (n_levels -
    1)``, and both ends of the range reach it: `epsilon0` is exact. Clamping is a function of the
    noisy value and so costs no privacy; noise renormalised to the range instead would have a
    normalisation that depends on the input and cost neighbouring inputs more than their share.

    **Decoder.** None: clamping draws the mean towards the middle of the range.

    **Cost.** Merged rows of inputs between a and b have ``b - a + 1`` groups.

    References
    ----------
    .. [1] A. Ghosh, T. Roughgarden, M. Sundararajan, "Universally Utility-Maximizing Privacy
       Mechanisms", STOC 2009 (arXiv:0811.2841), the geometric mechanism and its truncation.

    Examples
    --------
    >>> discrete_laplace(2.0, 3).merged_rows((0, 1, 2))
    array([[0.73105858, 0.1700034 , 0.09893802],
           [0.26894142, 0.46211716, 0.26894142],
           [0.09893802, 0.1700034 , 0.73105858]])
    """
    return DiscreteLaplace(
        check_real("epsilon0", epsilon0, NONNEGATIVE_FINITE),
        check_count("n_levels", n_levels, minimum=2, maximum=_MOST_STEPS + 1),
        1,
    )


def discretized_laplace(
    epsilon0: float, n_inputs: int, *, bins_per_step: int = 1
) -> DiscretizedLaplace:
    """Return Laplace noise on the unit interval, of which the analyst sees a bin.

    Parameters
    ----------
    epsilon0 : float
        Local privacy parameter of the two ends of the interval, >= 0 and finite.
    n_inputs : int
        Number of inputs, >= 2: input i stands for ``i / (n_inputs - 1)``.
    bins_per_step : int, default 1
        Number of equal bins between two neighbouring inputs, >= 1. There may be 2**20 bins.

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
    discrete_laplace : noise on integers.
    discretized_gaussian : with Gaussian noise.

    Notes
    -----
    **Probabilities.** The user adds Laplace noise of scale ``1 / epsilon0``. A bin of width w at
    distance d has probability ``(1 - exp(-epsilon0 w)) exp(-epsilon0 d) / 2``, and an outer one
    ``exp(-epsilon0 d) / 2`` [1]_. No bin holds an input in its interior. For epsilon0 = 0 it is a
    fair coin between the outer bins.

    **Privacy.** The log ratio of two inputs is at most epsilon0 times their distance, and both
    outer bins reach it: `epsilon0` is exact, and equals that of the noisy value itself.

    **Decoder.** None: the outer bins hide how far a value lies outside.

    **Cost.** Merged rows of inputs a < b have ``(b - a) * bins_per_step + 2`` groups.

    References
    ----------
    .. [1] C. Dwork, F. McSherry, K. Nissim, A. Smith, "Calibrating Noise to Sensitivity in
       Private Data Analysis", TCC 2006, the Laplace mechanism.

    Examples
    --------
    >>> discretized_laplace(2.0, 3).merged((0, 2)).log_ratios
    array([[ 0.,  0.,  0.,  0.],
           [-2., -1.,  1.,  2.]])
    """
    size, stride = check_ladder(n_inputs, bins_per_step, _MOST_STEPS)
    return DiscretizedLaplace(check_real("epsilon0", epsilon0, NONNEGATIVE_FINITE), size, stride)
