"""Laplace and Gaussian noise whose value the analyst sees, not a bin of it."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn, final

import numpy as np

from fastshuffle._typing import BoolArray, FloatArray, IntArray
from fastshuffle._validation import (
    NONNEGATIVE_FINITE,
    Interval,
    UnsupportedSettingError,
    check_count,
    check_real,
)
from fastshuffle.randomizers.base import LocalRandomizer, pairs_up_to_reflection
from fastshuffle.randomizers.gaussian import DiscretizedGaussian
from fastshuffle.randomizers.laplace import DiscretizedLaplace

__all__ = ["Cells", "ContinuousNoise", "gaussian", "laplace"]

_MOST_INPUTS = 2**10
_SIGMA = Interval(0.05, 1000.0, "in [0.05, 1000]")


class Cells(NamedTuple):
    """The laws of some inputs over cells of the line, from below to above.

    In a cell the ratio of any two densities is monotone, so it lies between its values at the two
    ends. All arrays have one row for each input and one column for each cell.

    Attributes
    ----------
    log_masses, log_ratios : array of float
        The log mass of each cell, and the log ratio of it to that of the first row.
    left, right : array of float
        The log density at the two ends of the cell, up to a constant of the noise. In a cell that
        reaches to infinity they are only defined if the ratios are constant there.
    open : array of bool, shape (n_cells,)
        Whether the ratios in the cell are unbounded.
    """

    log_masses: FloatArray
    log_ratios: FloatArray
    left: FloatArray
    right: FloatArray
    open: BoolArray

    def with_least(self, n_rows: int) -> "Cells":
        """Return the first rows, and below them the least of the other rows in each cell."""
        rest = self.log_masses[n_rows:]
        least = n_rows + rest.argmin(axis=0)
        every = np.arange(rest.shape[1])
        log_masses, log_ratios, left, right = (
            np.vstack((x[:n_rows], x[least, every])) for x in self[:-1]
        )
        return Cells(log_masses, log_ratios, left, right, self.open)


@dataclass(frozen=True, eq=False, repr=False)
class ContinuousNoise(LocalRandomizer):
    """Noise added to inputs on the unit interval; input i stands for ``i / (n_inputs - 1)``."""

    _n_inputs: int

    @property
    def n_inputs(self) -> int:
        """Number of inputs, which are 0, 1, ..., n_inputs - 1."""
        return self._n_inputs

    def representative_pairs(self) -> tuple[tuple[int, int], ...]:
        """Return ordered pairs of inputs, one of each that a reflection of the interval joins."""
        return pairs_up_to_reflection(self._n_inputs)

    @abstractmethod
    def cells(self, inputs: tuple[int, ...], fineness: int, reach: float) -> Cells:
        """Return the laws of some inputs over cells of a width of about ``1 / fineness``.

        The unit is the interval or a standard deviation, whichever is shorter. 0, 1/2 and 1 are
        ends of cells. Where the ratios are unbounded, the cells end ``reach``
        standard deviations outside the unit interval.
        """

    def shared_cells(self, inputs: tuple[int, ...], fineness: int, reach: float) -> Cells:
        """Return the laws of some inputs and, last, the least density of all inputs.

        It is that of the input farthest off, one of the ends of the interval, of any value there.
        """
        ends = (0, self._n_inputs - 1)
        return self.cells((*inputs, *ends), fineness, reach).with_least(len(inputs))

    def largest_loss(self, a: int, b: int) -> float:
        """Return the largest log ratio of the densities of two inputs."""
        return self.epsilon0 * abs(b - a) / (self._n_inputs - 1)

    def _places(self) -> FloatArray:
        return np.arange(self._n_inputs) / (self._n_inputs - 1)

    def _merged(self, inputs: tuple[int, ...]) -> NoReturn:
        raise UnsupportedSettingError(
            f"randomizer must have finitely many outputs, got {self!r} and inputs {inputs}; "
            "exact_profile with the other users at one input, blanket_profile and "
            "worst_case_profile bracket it, discretized noise has bins"
        )

    _shared = _merged


@final
@dataclass(frozen=True, eq=False, repr=False)
class Laplace(ContinuousNoise):
    """See `laplace`."""

    _epsilon0: float

    @property
    def epsilon0(self) -> float:
        """Local privacy parameter: the log ratio of the two ends of the interval outside it."""
        return self._epsilon0

    def cells(self, inputs: tuple[int, ...], fineness: int, reach: float) -> Cells:
        """Return the laws of some inputs over cells; outside of them the ratios are constant."""
        del reach
        stride = 2 * math.ceil(0.5 * fineness / (self._n_inputs - 1))
        bins = DiscretizedLaplace(self._epsilon0, self._n_inputs, stride)
        log_masses, log_ratios = bins.columns(inputs)
        held = np.array(inputs)[:, np.newaxis] * stride
        edges = np.arange(held.min(), held.max() + 1)
        decay = self._epsilon0 / ((self._n_inputs - 1) * stride)
        log_densities = -decay * np.abs(edges - held)
        left = np.hstack((log_densities[:, :1], log_densities))
        right = np.hstack((log_densities, log_densities[:, -1:]))
        return Cells(log_masses, log_ratios, left, right, np.zeros(edges.size + 1, dtype=bool))

    def _sample(self, inputs: IntArray, rng: np.random.Generator) -> FloatArray:
        if self._epsilon0 == 0.0:
            raise ValueError("epsilon0 must be > 0 for a sample, got 0.0: the noise has no bounds")
        return self._places()[inputs] + rng.laplace(0.0, 1.0 / self._epsilon0, inputs.size)

    def to_dict(self) -> dict[str, Any]:
        """Return the name of the factory and its arguments."""
        return {"mechanism": "laplace", "epsilon0": self._epsilon0, "n_inputs": self._n_inputs}


@final
@dataclass(frozen=True, eq=False, repr=False)
class Gaussian(ContinuousNoise):
    """See `gaussian`."""

    _sigma: float

    @property
    def epsilon0(self) -> float:
        """Local privacy parameter: inf, since the ratio of two Gaussian densities is unbounded."""
        return math.inf

    def cells(self, inputs: tuple[int, ...], fineness: int, reach: float) -> Cells:
        """Return the laws of some inputs over cells; the two outer ones have no bounded ratios."""
        sigma = self._sigma
        stride = 2 * math.ceil(0.5 * fineness / min(sigma, 1.0) / (self._n_inputs - 1))
        width = 1.0 / (stride * (self._n_inputs - 1))
        beyond = math.ceil(reach * sigma / width)
        n_bins = stride * (self._n_inputs - 1) + 2 * beyond
        bins = DiscretizedGaussian(sigma / (width * n_bins), n_bins + 1, 1)
        log_masses, log_ratios = bins.columns(tuple(beyond + x * stride for x in inputs))
        edges = (np.arange(n_bins + 1) - beyond) * width
        z = (edges - np.array(inputs)[:, np.newaxis] / (self._n_inputs - 1)) / sigma
        log_densities = -0.5 * z * z
        left = np.hstack((log_densities[:, :1], log_densities))
        right = np.hstack((log_densities, log_densities[:, -1:]))
        outer = np.zeros(n_bins + 2, dtype=bool)
        outer[[0, -1]] = True
        return Cells(log_masses, log_ratios, left, right, outer)

    def _sample(self, inputs: IntArray, rng: np.random.Generator) -> FloatArray:
        return self._places()[inputs] + rng.normal(0.0, self._sigma, inputs.size)

    def to_dict(self) -> dict[str, Any]:
        """Return the name of the factory and its arguments."""
        return {"mechanism": "gaussian", "sigma": self._sigma, "n_inputs": self._n_inputs}


def laplace(epsilon0: float, n_inputs: int = 2) -> Laplace:
    """Return Laplace noise on the unit interval, of which the analyst sees the value.

    Parameters
    ----------
    epsilon0 : float
        Local privacy parameter of the two ends of the interval, >= 0 and finite.
    n_inputs : int, default 2
        Number of inputs, from 2 to 1024: input i stands for ``i / (n_inputs - 1)``.

    Returns
    -------
    LocalRandomizer
        The mechanism. Messages are real numbers; those of n users have shape (n,).

    Raises
    ------
    TypeError, ValueError
        If an argument is outside its domain; or from methods that need finitely many outputs.

    See Also
    --------
    discretized_laplace : the analyst sees a bin.
    gaussian : Gaussian noise.

    Notes
    -----
    The user adds noise of density ``epsilon0 / 2 exp(-epsilon0 |x|)``. `exact_profile` (the other
    users at one input), `blanket_profile` and `worst_case_profile` bracket its profile: cells of
    the line are a post-processing of the value, hence a lower bound; and in each cell the
    likelihood ratio is split onto the two ends of its range with its mean kept, which is larger in
    the convex order, hence an upper bound. Cells are made finer until the two agree to rtol, or as
    long as that helps: ``bounds`` shows what was reached.

    A sample is a simulation and no defence against attacks on floating-point noise.

    References
    ----------
    .. [1] C. Dwork, F. McSherry, K. Nissim, A. Smith, "Calibrating Noise to Sensitivity in
       Private Data Analysis", TCC 2006, the Laplace mechanism.

    Examples
    --------
    >>> import fastshuffle as fs
    >>> noise = fs.laplace(1.0)
    >>> e = fs.ShuffleExperiment(noise, 10_000, others={0: 9_999})
    >>> lower, upper = fs.exact_profile(e).bounds(0.03)
    >>> print(f"{lower:.2e} {upper:.2e}")
    1.68e-06 1.68e-06
    """
    return Laplace(
        check_count("n_inputs", n_inputs, minimum=2, maximum=_MOST_INPUTS),
        check_real("epsilon0", epsilon0, NONNEGATIVE_FINITE),
    )


def gaussian(sigma: float, n_inputs: int = 2) -> Gaussian:
    """Return Gaussian noise on the unit interval, of which the analyst sees the value.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise, in [0.05, 1000]; the interval has length 1.
    n_inputs : int, default 2
        Number of inputs, from 2 to 1024: input i stands for ``i / (n_inputs - 1)``.

    Returns
    -------
    LocalRandomizer
        The mechanism. Messages are real numbers; those of n users have shape (n,).

    Raises
    ------
    TypeError, ValueError
        If an argument is outside its domain; or from methods that need finitely many outputs.

    See Also
    --------
    discretized_gaussian : the analyst sees a bin.
    laplace : Laplace noise.

    Notes
    -----
    The bracket is that of `laplace`. The likelihood ratio has no upper bound: values farther than
    some standard deviations outside the interval are revealed in the upper bound, which costs
    their probability, and count for nothing in the lower one. Where a few such values decide, with
    n below some thousands and delta far below 1/n, the bracket is wide: ``bounds`` shows it.

    A sample is a simulation and no defence against attacks on floating-point noise.

    References
    ----------
    .. [1] C. Dwork, A. Roth, "The Algorithmic Foundations of Differential Privacy", 2014, appendix
       A, the Gaussian mechanism.

    Examples
    --------
    >>> import fastshuffle as fs
    >>> noise = fs.gaussian(1.0)
    >>> e = fs.ShuffleExperiment(noise, 10_000, others={0: 9_999})
    >>> lower, upper = fs.exact_profile(e).bounds(0.03)
    >>> print(f"{lower:.2e} {upper:.2e}")
    5.40e-05 5.40e-05
    """
    return Gaussian(
        check_count("n_inputs", n_inputs, minimum=2, maximum=_MOST_INPUTS),
        check_real("sigma", sigma, _SIGMA),
    )
