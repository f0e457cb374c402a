"""Expansions of divergences in 1/n, each named for what it is."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from fastshuffle._typing import Direction
from fastshuffle._validation import (
    POSITIVE,
    Interval,
    UnsupportedSettingError,
    check_direction,
    check_real,
)
from fastshuffle.experiment import ShuffleExperiment, check_experiment
from fastshuffle.limits.fisher import difference, experiment_constant, merged_rows
from fastshuffle.profile import Validity

__all__ = [
    "DivergenceExpansion",
    "chi_square_expansion",
    "f_divergence_expansion",
    "hellinger_expansion",
    "jensen_shannon_expansion",
    "kl_expansion",
    "renyi_expansion",
]

_FINITE_ORDER = Interval(POSITIVE.low, 1e300, "> 0 and finite")
_FINITE = Interval(-1e300, 1e300, "finite")
_SOURCE = (
    "Taylor expansion of f at 1 and the regression of the likelihood ratio on the histogram, "
    "A. Shvets, arXiv:2602.09029"
)
_SECOND_SOURCE = (
    "moments of a mean of n independent likelihood ratios, the exact ratio of A. Shvets, "
    "arXiv:2602.09029v3, section 3; derived here"
)


@dataclass(frozen=True)
class DivergenceExpansion:
    """The first terms of a divergence in powers of 1/n: an APPROXIMATION, no bound.

    Attributes
    ----------
    terms : tuple of float
        The term of order 1/n and, where it is known, that of order 1/n**2.
    remainder : str
        The order of what is left out, such as ``"O(n^-3)"``.
    source : str
        Where the terms are from.
    """

    terms: tuple[float, ...]
    remainder: str
    source: str

    @property
    def value(self) -> float:
        """The sum of the terms."""
        return math.fsum(self.terms)

    @property
    def validity(self) -> Validity:
        """APPROXIMATION."""
        return Validity.APPROXIMATION

    def __float__(self) -> float:
        """Return the value."""
        return self.value

    def __str__(self) -> str:
        return f"{self.value:.6g} + {self.remainder} ({self.validity})"


class _Derivatives(NamedTuple):
    """Second, third and fourth derivative of f at 1, and what a logarithm adds to the square."""

    second: float
    third: float
    fourth: float
    squared: float = 0.0

    def conjugate(self) -> Self:
        """Return those of ``t f(1/t)``, whose divergence is that of f with P and Q exchanged."""
        return self._replace(
            third=-self.third - 3.0 * self.second,
            fourth=self.fourth + 8.0 * self.third + 12.0 * self.second,
        )


def f_divergence_expansion(
    experiment: ShuffleExperiment,
    derivatives: Sequence[float],
    *,
    direction: Direction = "both",
) -> DivergenceExpansion:
    """Return the expansion of an f-divergence ``sum Q f(P / Q)`` with f smooth at 1.

    Parameters
    ----------
    experiment : ShuffleExperiment
        Any randomizer and composition of the other users, n >= 2, with a finite Fisher constant.
    derivatives : sequence of one or three floats
        ``f''(1)``, which gives the leading term, or ``f''(1), f'''(1), f''''(1)`` for the second
        order where it is known.
    direction : {"both", "forward", "reverse"}
        Forward is the divergence of P from Q, both the larger of the two.

    Returns
    -------
    DivergenceExpansion
        APPROXIMATION. In general ``f''(1) I / (2 n)`` with a remainder of order ``n**-2``, where I
        is the Fisher constant of the composition. If all other users hold an input of the pair
        and three derivatives are given, the second order as well.

    Raises
    ------
    TypeError, ValueError
        If an argument is outside its domain.
    UnsupportedSettingError
        If n = 1 or the Fisher constant is infinite: then the divergence is not of order 1/n.

    Notes
    -----
    If all others hold a, the likelihood ratio of the histogram is exactly the mean of n
    independent copies of ``w = W_b / W_a`` under W_a. With ``chi2 = E(w-1)**2`` and
    ``mu3 = E(w-1)**3`` its moments give

        f'' chi2 / (2 n) + (f''' mu3 / 6 + f'''' chi2**2 / 8) / n**2 + O(n**-3).

    **Meant for** a fixed randomizer with a finite number of outputs, n large; the terms say
    nothing where a probability is of order 1/n. **Accuracy**: of the terms, relative 1e-13; of
    the sum, the stated order (``tests/test_limits_expansions.py``). **Cost**: proportional to the
    number of outputs.

    References
    ----------
    .. [1] A. Shvets, "Universal Shuffle Asymptotics: Sharp Privacy Analysis in the Gaussian
       Regime", arXiv:2602.09029 (Jensen-Shannon); v3, section 3 (exact likelihood ratio).

    Examples
    --------
    The triangular discrimination, ``sum (P - Q)**2 / (P + Q)``, has ``f''(1) = 1``:

    >>> import fastshuffle as fs
    >>> experiment = fs.ShuffleExperiment(fs.binary_randomized_response(1.0), 1000, k=500)
    >>> print(fs.f_divergence_expansion(experiment, [1.0]))
    0.000543081 + O(n^-2) (APPROXIMATION)
    """
    if not isinstance(derivatives, (Sequence, np.ndarray)) or len(derivatives) not in (1, 3):
        raise ValueError(f"derivatives must be one or three numbers, got {derivatives!r}")
    values = [check_real(f"derivatives[{i}]", f, _FINITE) for i, f in enumerate(derivatives)]
    if len(values) == 1:
        return _leading(check_experiment(experiment), values[0])
    return _expansion(experiment, _Derivatives(*values), direction)


def jensen_shannon_expansion(experiment: ShuffleExperiment) -> DivergenceExpansion:
    """Return the expansion of the Jensen-Shannon divergence, in nats.

    Parameters
    ----------
    experiment : ShuffleExperiment
        As for `f_divergence_expansion`.

    Returns
    -------
    DivergenceExpansion
        APPROXIMATION: ``I / (8 n) + O(n**-2)`` and, if all other users hold an input of the pair,
        ``chi2 / (8 n) + (7 chi2**2 / 64 - mu3 / 16) / n**2 + O(n**-3)``.

    Raises
    ------
    TypeError, ValueError, UnsupportedSettingError
        As for `f_divergence_expansion`.

    Notes
    -----
    A summary of arXiv:2602.09029 prints ``-mu3 / 16`` alone as the second coefficient. That
    leaves out ``7 chi2**2 / 64``, which is of the same order: for output probabilities .2 and .6
    the coefficient is .015625 and not -.09375, as exact values show. See `f_divergence_expansion`
    for the derivation.

    Examples
    --------
    >>> import fastshuffle as fs
    >>> w = fs.Randomizer([[0.8, 0.2], [0.4, 0.6]])
    >>> experiment = fs.ShuffleExperiment(w, 100, k=0)
    >>> expansion = fs.jensen_shannon_expansion(experiment)
    >>> print(f"{expansion.terms[1] * 100**2:.6f}")
    0.015625
    >>> print(f"{expansion.value:.9f} {fs.exact_profile(experiment).jensen_shannon():.9f}")
    0.001251562 0.001251459
    """
    return _expansion(experiment, _Derivatives(0.25, -0.375, 0.875), "forward")


def kl_expansion(
    experiment: ShuffleExperiment, *, direction: Direction = "both"
) -> DivergenceExpansion:
    """Return the expansion of the Kullback-Leibler divergence, in nats.

    Parameters
    ----------
    experiment, direction
        As for `f_divergence_expansion`.

    Returns
    -------
    DivergenceExpansion
        APPROXIMATION: ``I / (2 n) + O(n**-2)`` and, if all others hold a, forward
        ``chi2 / (2 n) + (chi2**2 / 4 - mu3 / 6) / n**2``, reverse
        ``chi2 / (2 n) + (3 chi2**2 / 4 - mu3 / 3) / n**2``, each up to O(n**-3).

    Raises
    ------
    TypeError, ValueError, UnsupportedSettingError
        As for `f_divergence_expansion`.
    """
    return renyi_expansion(experiment, 1.0, direction=direction)


def chi_square_expansion(
    experiment: ShuffleExperiment, *, direction: Direction = "both"
) -> DivergenceExpansion:
    """Return the expansion of the chi-square divergence, ``sum (P - Q)**2 / Q`` forward.

    Parameters
    ----------
    experiment, direction
        As for `f_divergence_expansion`.

    Returns
    -------
    DivergenceExpansion
        APPROXIMATION: ``I / n + O(n**-2)``. If all others hold a the forward divergence is
        exactly ``chi2 / n``.

    Raises
    ------
    TypeError, ValueError, UnsupportedSettingError
        As for `f_divergence_expansion`.
    """
    return _expansion(experiment, _Derivatives(2.0, 0.0, 0.0), direction)


def hellinger_expansion(experiment: ShuffleExperiment) -> DivergenceExpansion:
    """Return the expansion of the squared Hellinger distance ``1 - sum sqrt(P Q)``.

    Parameters
    ----------
    experiment : ShuffleExperiment
        As for `f_divergence_expansion`.

    Returns
    -------
    DivergenceExpansion
        APPROXIMATION: ``I / (8 n) + O(n**-2)`` and, if all other users hold an input of the pair,
        ``chi2 / (8 n) + (15 chi2**2 / 128 - mu3 / 16) / n**2 + O(n**-3)``.

    Raises
    ------
    TypeError, ValueError, UnsupportedSettingError
        As for `f_divergence_expansion`.
    """
    return _expansion(experiment, _Derivatives(0.25, -0.375, 0.9375), "forward")


def renyi_expansion(
    experiment: ShuffleExperiment, order: float, *, direction: Direction = "both"
) -> DivergenceExpansion:
    """Return the expansion of the Renyi divergence of a fixed order, in nats.

    Parameters
    ----------
    experiment, direction
        As for `f_divergence_expansion`.
    order : float
        Order > 0, finite; 1 is the Kullback-Leibler divergence.

    Returns
    -------
    DivergenceExpansion
        APPROXIMATION: ``order I / (2 n) + O(n**-2)`` and, if all others hold a, forward
        ``order chi2 / (2 n) + order ((order - 2) mu3 / 6 + (3 - 2 order) chi2**2 / 4) / n**2``
        up to O(n**-3).

    Raises
    ------
    TypeError, ValueError, UnsupportedSettingError
        As for `f_divergence_expansion`.

    Notes
    -----
    It is ``log E L**order / (order - 1)``, with f the power of that order and the square of its
    leading term taken off by the logarithm. The order is fixed while n grows: with the order the
    remainder grows too, and the terms are meant for orders well below ``sqrt(n / I)``.

    Examples
    --------
    >>> import fastshuffle as fs
    >>> experiment = fs.ShuffleExperiment(fs.binary_randomized_response(1.0), 1000, k=0)
    >>> expansion = fs.renyi_expansion(experiment, 2.0, direction="forward")
    >>> exact = fs.exact_profile(experiment).renyi(2.0, direction="forward")
    >>> print(f"{expansion.value:.10f} {exact:.10f}")
    0.0010855714 0.0010855718
    """
    r = check_real("order", order, _FINITE_ORDER)
    squared = (r - 1.0) * r * r
    # the derivatives of t**order, divided by order - 1
    power = _Derivatives(r, r * (r - 2.0), r * (r - 2.0) * (r - 3.0), squared)
    return _expansion(experiment, power, direction)


def _expansion(
    experiment: ShuffleExperiment, f: _Derivatives, direction: Direction
) -> DivergenceExpansion:
    """Return the second order where the others all hold an input of the pair, else the first."""
    a, b = check_experiment(experiment).pair
    which = check_direction(direction)
    held = set(experiment.others)
    if held not in ({a}, {b}):
        return _leading(experiment, f.second)
    common, own = (a, b) if held == {a} else (b, a)
    merged = merged_rows(experiment.randomizer, (common, own))
    gap, mean = difference(merged), merged.rows[0]
    if ((mean == 0.0) & (gap != 0.0)).any():
        raise UnsupportedSettingError(_INFINITE)
    excess = gap[mean > 0.0] / mean[mean > 0.0]
    chi_square = float((gap[mean > 0.0] * excess).sum())
    third_moment = float((gap[mean > 0.0] * excess * excess).sum())
    n = experiment.n
    # with the others at b it is Q that has the ratio to a homogeneous P
    forms = {"forward": f, "reverse": f.conjugate()}
    if held == {b}:
        forms = {"forward": f.conjugate(), "reverse": f}
    candidates = [
        (
            form.second * chi_square / 2.0 / n,
            (form.third * third_moment / 6.0 + (form.fourth - form.squared) * chi_square**2 / 8.0)
            / n
            / n,
        )
        for side, form in forms.items()
        if which in (side, "both")
    ]
    return DivergenceExpansion(max(candidates, key=sum), "O(n^-3)", _SECOND_SOURCE)


_INFINITE = (
    "the Fisher constant must be finite for an expansion in 1/n, got inf: the differing user's "
    "messages are not all among those of the others"
)


def _leading(experiment: ShuffleExperiment, curvature: float) -> DivergenceExpansion:
    if experiment.n == 1:
        raise UnsupportedSettingError(
            "n must be >= 2, since the expansion is in the other users, got 1"
        )
    constant = experiment_constant(experiment)
    if constant == math.inf:
        raise UnsupportedSettingError(_INFINITE)
    return DivergenceExpansion((0.5 * curvature * constant / experiment.n,), "O(n^-2)", _SOURCE)
