"""The certified worst case over all datasets of users with binary output."""

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from fastshuffle._kernels.composition_search import certified_epsilon, search_compositions
from fastshuffle._supporting_lines import highest_supporting_line
from fastshuffle._typing import Direction, FloatArray
from fastshuffle._validation import NONNEGATIVE, Interval, check_count, check_real
from fastshuffle.exact._pair import FORWARD, pair_arrays, rounding
from fastshuffle.experiment import ShuffleExperiment
from fastshuffle.profile import PrivacyProfile, Validity
from fastshuffle.randomizers import Randomizer

_RTOL = Interval(1e-9, 0.5, "in [1e-9, 0.5]")


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
        self._randomizer = randomizer
        self._n = n
        self._tolerance = math.log1p(rtol)
        self._rtol = rtol
        self._extremes = self._extreme_inputs()
        self._inputs, self._pairs = pair_arrays(randomizer.merged(self._extremes))

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
    def randomizer(self) -> Randomizer:
        """What every user applies to the input held."""
        return self._randomizer

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
            "definition of the hockey-stick divergence; its joint convexity and the "
            "post-processing inequality (B. Balle, G. Barthe, M. Gaboardi, arXiv:1807.01647v2)"
        )

    def _setting(self) -> dict[str, Any]:
        return {
            "randomizer": self._randomizer.to_dict(),
            "n": self._n,
            "datasets": "all pairs of neighbouring datasets",
            "rtol": self._rtol,
        }

    def _directions(self) -> dict[str, Direction]:
        return {"": "both"}

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
        return lower - rounding(lower), np.minimum(upper + rounding(upper), 0.0)

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
        target = log_delta - 2.0 * float(rounding(np.array([log_delta]))[0])
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
        loss = float(self._pairs[:, 3].max())
        return np.array(
            [highest_supporting_line(alpha, self.delta, loss) for alpha in alphas.tolist()]
        )

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
        return WorstDataset(experiment, "forward" if best[1] == FORWARD else "reverse")

    def __repr__(self) -> str:
        return f"<WorstCaseProfile of {self._randomizer!r}, n = {self._n}>"


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
    0.01726
    """
    if not isinstance(randomizer, Randomizer):
        raise TypeError(f"randomizer must be a Randomizer, got {type(randomizer).__name__}")
    if randomizer.n_inputs < 2:
        raise ValueError(f"randomizer must have at least 2 inputs, got {randomizer.n_inputs}")
    if randomizer.n_outputs != 2:
        raise ValueError(f"randomizer must have 2 outputs, got {randomizer.n_outputs}")
    return WorstCaseProfile(
        randomizer, check_count("n", n, minimum=1), check_real("rtol", rtol, _RTOL)
    )
