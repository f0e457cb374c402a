"""Compound Poisson limit: rare errors of several kinds, on any finite alphabet."""

import math
from typing import NamedTuple, final

import numpy as np

from fastshuffle._kernels.poisson_shift import log_poisson_mass, mixed_shift_log_delta_array
from fastshuffle._typing import FloatArray, Side
from fastshuffle._validation import UnsupportedSettingError
from fastshuffle.experiment import ShuffleExperiment, check_experiment
from fastshuffle.limits._jumps import Jumps, shift_law
from fastshuffle.limits.poisson import JumpProfile

__all__ = ["CompoundPoissonProfile", "compound_poisson_profile"]

# More combinations of known counts than this would take a second a delta.
_MOST_COUNTS = 200_000
# A Poisson count of mean m is above m + 14 + sqrt(196 + 84 m) with probability below exp(-42).
_BERNSTEIN_EXPONENT = 42.0
_SAME_SHARE = 1e-12


class _KnownCount(NamedTuple):
    """A Poisson number of errors that is seen, each from one of two sides, which is not."""

    mean: float
    share: float
    other_share: float


@final
class CompoundPoissonProfile(JumpProfile):
    """The curve of a field of independent jumps, moved by one message.

    `compound_poisson_profile` returns it.
    """

    def __init__(
        self,
        experiment: ShuffleExperiment,
        jumps: Jumps,
        *,
        up: float,
        down: float,
        known: list[_KnownCount],
    ) -> None:
        method = (
            "independent Poisson counts of errors; a contour sum for each value of those that are "
            "seen"
        )
        super().__init__(
            experiment, jumps, method=method, source="A. Shvets, arXiv:2603.10073v1, section 5"
        )
        self._counts, self._log_weights = _possible_counts([count.mean for count in known])
        coins = np.array([count[1:] for count in known]).reshape(-1, 2)
        self._laws = {
            "forward": shift_law(up, down, coins),
            "reverse": shift_law(down, up, coins[:, ::-1]),
        }

    def _log_curve(self, epsilons: FloatArray, side: Side) -> FloatArray:
        log_deltas = np.empty_like(epsilons)
        law = self._laws[side].copy()  # the kernel sets its numbers of trials
        mixed_shift_log_delta_array(epsilons, self._log_weights, self._counts, law, log_deltas)
        return np.minimum(log_deltas, 0.0)


def compound_poisson_profile(experiment: ShuffleExperiment) -> CompoundPoissonProfile:
    """Return the compound Poisson limit of an experiment: sparse errors on a finite alphabet.

    Parameters
    ----------
    experiment : ShuffleExperiment
        Every input that occurs has an output of probability above 1/2, its home; the homes of a
        and b differ, and those of all other users are among these two, or all are one third home.

    Returns
    -------
    CompoundPoissonProfile
        APPROXIMATION. Under both laws the other users make independent Poisson numbers of errors,
        one for each home and each other output; the differing user adds a message at the home of
        a under Q and at that of b under P.

    Raises
    ------
    TypeError
        If ``experiment`` is no ShuffleExperiment.
    UnsupportedSettingError
        If it is not of this kind, or has so many errors of different kinds that more than 200,000
        combinations of counts would be summed.

    See Also
    --------
    poisson_profile, skellam_profile : what it is where no error of another kind matters.

    Notes
    -----
    With the others at the homes A of a and B of b, the errors between A and B are a Skellam count.
    Every other output collects a number of errors that is seen; how many of them came from B is
    binomial given that number, and adds to what hides the differing user. With the others at a
    third home, the errors that reach A or B are seen in total, and each reached B with a fixed
    probability. So given the counts that are seen, Q is a log-concave law on the integers and P is
    the same shifted by one; delta is the mean of theirs.

    **Meant for** sparse errors: error probabilities of order 1/n and n large; the total variation
    error is then of order 1/n, with the explicit bound of `poisson_profile` in ``law_errors``, and
    ``bounds`` is the bracket that follows.

    **Accuracy** of the limit curve itself: relative error of delta below 1e-12 down to 1e-300
    (``tests/test_limits_compound.py``); the sum over counts is cut where at most a relative 1e-18
    remains, as delta falls in each count. **Cost**: some microseconds for each combination of
    counts, tens to thousands, and each delta.

    References
    ----------
    .. [1] A. Shvets, "Universal Shuffle Asymptotics, Part II: Non-Gaussian Limits for Shuffle
       Privacy -- Poisson, Skellam, and Compound-Poisson Regimes", arXiv:2603.10073v1, section 5.

    Examples
    --------
    >>> import math
    >>> import fastshuffle as fs
    >>> krr = fs.k_randomized_response(math.log(1000.0), k=3)
    >>> experiment = fs.ShuffleExperiment(krr, n=4000, others={2: 3999})
    >>> limit = fs.compound_poisson_profile(experiment)
    >>> print(f"{limit.delta(1.0):.4f} {fs.exact_profile(experiment).delta(1.0):.4f}")
    0.0603 0.0596
    """
    jumps = Jumps.of(check_experiment(experiment))
    a, b, rates = jumps.home_a, jumps.home_b, jumps.rates
    if jumps.homes <= {a, b}:
        others = [y for y in range(len(rates)) if y not in (a, b)]
        return CompoundPoissonProfile(
            experiment,
            jumps,
            up=float(rates[a, b]),
            down=float(rates[b, a]),
            known=_merged_counts([(float(rates[a, y]), float(rates[b, y])) for y in others]),
        )
    if len(jumps.homes) > 1:
        raise UnsupportedSettingError(
            "the other users must have the homes of the pair or all one third home, got "
            f"{len(jumps.homes)} homes, one of them a third"
        )
    (home,) = jumps.homes
    known = _merged_counts([(float(rates[home, b]), float(rates[home, a]))])
    return CompoundPoissonProfile(experiment, jumps, up=0.0, down=0.0, known=known)


def _merged_counts(sides: list[tuple[float, float]]) -> list[_KnownCount]:
    """Return the known counts, those with equal shares added up, without those of no use."""
    useful = [(one + other, one, other) for one, other in sides if one > 0.0 and other > 0.0]
    counts = sorted((one / mean, other / mean, mean) for mean, one, other in useful)
    merged: list[_KnownCount] = []
    for share, other_share, mean in counts:
        if merged and share - merged[-1].share <= _SAME_SHARE * share:
            merged[-1] = merged[-1]._replace(mean=merged[-1].mean + mean)
        else:
            merged.append(_KnownCount(mean, share, other_share))
    return merged


def _possible_counts(means: list[float]) -> tuple[FloatArray, FloatArray]:
    """Return all combinations of values of independent Poisson counts, and their log masses."""
    third = _BERNSTEIN_EXPONENT / 3.0
    limits = [
        m + third + math.sqrt(third * third + 2.0 * _BERNSTEIN_EXPONENT * m) + 1.0 for m in means
    ]
    if math.prod(limits) > _MOST_COUNTS:
        raise UnsupportedSettingError(
            f"the mean numbers of errors must give at most {_MOST_COUNTS} combinations of counts, "
            f"got means {means}"
        )
    grids = np.meshgrid(*(np.arange(math.floor(limit) + 1.0) for limit in limits), indexing="ij")
    counts = np.column_stack([grid.ravel() for grid in grids]) if means else np.empty((1, 0))
    log_weights = np.zeros(len(counts))
    for column, mean in zip(counts.T, means, strict=True):
        log_weights += [log_poisson_mass(x, mean) for x in column.tolist()]
    return np.ascontiguousarray(counts), log_weights
