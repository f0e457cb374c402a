"""Certified adaptive composition: what several rounds about the same users reveal together."""

import math
from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

from fastshuffle._positive_part import Bracket
from fastshuffle._supporting_lines import highest_supporting_line
from fastshuffle._typing import OPPOSITE, Direction, FloatArray, Side
from fastshuffle._validation import RELATIVE_TOLERANCE, check_count, check_real
from fastshuffle.bracket import Curve
from fastshuffle.composition._checks import check_guarantee, is_of_one_pair
from fastshuffle.composition._curve import ComposedCurve, Source
from fastshuffle.profile import PrivacyProfile, Validity

__all__ = ["ComposedProfile", "composed_profile"]

_MOST_ROUNDS = 10**12
# Points of a trade-off function: how many, and up to how many times delta(0), where delta is 1e-10.
_CHORDS = 32
_MOST_DEVIATIONS = 16.0


@final
class ComposedProfile(PrivacyProfile):
    """The profile of several rounds together: an UPPER_BOUND; see `composed_profile`."""

    def __init__(self, sources: Sequence[Source], *, one_pair: bool, rtol: float) -> None:
        self._sources = tuple(sources)
        self._one_pair = one_pair
        self._rtol = rtol
        either = self._inverted(ComposedCurve(sources, "both", "both", rtol))
        self._either = either
        self._sides: dict[Direction, Curve] = {"forward": either, "reverse": either}
        if one_pair:
            self._sides = {
                "forward": self._inverted(ComposedCurve(sources, "forward", "reverse", rtol)),
                "reverse": self._inverted(ComposedCurve(sources, "reverse", "forward", rtol)),
            }

    def _inverted(self, composed: ComposedCurve) -> Curve:
        return Curve(composed.at, composed.loss, self._rtol)

    @property
    def rounds(self) -> int:
        """The number of rounds."""
        return int(sum(source.copies for source in self._sources))

    @property
    def n(self) -> int:
        """Number of users, including the one who differs."""
        return self._sources[0].profile.n

    @property
    def validity(self) -> Validity:
        """UPPER_BOUND."""
        return Validity.UPPER_BOUND

    @property
    def method(self) -> str:
        """How the numbers are computed, in a few words."""
        of = "for the two datasets of the profiles, " if self._one_pair else ""
        return (
            f"adaptive composition of {self.rounds} rounds, {of}each dominated by a pair of laws "
            "of losses on a grid; tilted Fourier sums with their errors added"
        )

    @property
    def source(self) -> str:
        """The definition or theorem, with its version, that the numbers rest on."""
        rounds = "; ".join(dict.fromkeys(source.profile.source for source in self._sources))
        return (
            "Y. Zhu, J. Dong, Y.-X. Wang, arXiv:2106.08567 (dominating pairs compose); V. "
            "Doroshenko, B. Ghazi, P. Kamath, R. Kumar, P. Manurangsi, arXiv:2207.04380 (the pair "
            f"of a curve known at some points). A round: {rounds}"
        )

    def _setting(self) -> dict[str, Any]:
        return {
            "rtol": self._rtol,
            "rounds": [
                {
                    "count": int(count),
                    "validity": str(profile.validity),
                    "method": profile.method,
                    "source": profile.source,
                    "setting": profile.to_dict()["setting"],
                }
                for profile, count, _ in self._sources
            ],
        }

    def _bracket(self, epsilon: float, direction: Direction) -> Bracket:
        if not self._one_pair:
            return Bracket(-math.inf, self._either.at(epsilon).upper)
        if direction != "both":
            return self._sides[direction].at(epsilon)
        lower = max(curve.at(epsilon).lower for curve in self._sides.values())
        return Bracket(lower, self._either.at(epsilon).upper)

    def _log_bounds(
        self, epsilons: FloatArray, direction: Direction
    ) -> tuple[FloatArray, FloatArray]:
        brackets = [self._bracket(epsilon, direction) for epsilon in epsilons.tolist()]
        lower, upper = np.array(brackets).reshape(-1, 2).T
        return lower, np.minimum(upper, 0.0)

    def _log_delta(self, epsilons: FloatArray, direction: Direction) -> FloatArray:
        curve = self._either if direction == "both" else self._sides[direction]
        return np.array([min(curve.at(epsilon).upper, 0.0) for epsilon in epsilons.tolist()])

    def _epsilon(self, log_deltas: FloatArray, direction: Direction) -> FloatArray:
        curve = self._either if direction == "both" else self._sides[direction]
        return np.array([curve.epsilon(log_delta) for log_delta in log_deltas.tolist()])

    def _trade_off(self, alphas: FloatArray, direction: Direction) -> FloatArray:
        if direction == "both" and self._one_pair:
            return np.minimum(*(self._trade_off(alphas, side) for side in OPPOSITE))
        side: Side = "forward" if direction == "both" else direction
        own, opposite = (self._chords(s) for s in (side, OPPOSITE[side]))
        reach = self._reach()
        return np.array(
            [highest_supporting_line(alpha, own, opposite, reach) for alpha in alphas.tolist()]
        )

    def _reach(self) -> float:
        # delta(0) is about 0.4 standard deviations of the privacy loss
        return min(self._either.loss, _MOST_DEVIATIONS * math.exp(self._either.at(0.0).upper))

    def _chords(self, side: Side) -> Callable[[float], float]:
        """Return delta between some points by straight pieces in exp(epsilon), which are above."""
        reach = self._reach()
        epsilons = reach * np.linspace(0.0, 1.0, _CHORDS) ** 2
        deltas = np.exp(self._log_delta(epsilons, side))
        infinite = math.exp(self._log_delta(np.array([math.inf]), side)[0])
        places = np.exp(epsilons - reach)

        def above(epsilon: float) -> float:
            if epsilon == math.inf:
                return infinite
            return float(np.interp(math.exp(epsilon - reach), places, deltas))

        return above

    def __repr__(self) -> str:
        return f"<ComposedProfile, {self.validity}, n = {self.n}: {self.rounds} rounds>"


def composed_profile(
    profile: PrivacyProfile | Sequence[PrivacyProfile], rounds: float = 1, *, rtol: float = 1e-2
) -> ComposedProfile:
    """Return what several rounds about the same users reveal together, adaptive or not.

    Parameters
    ----------
    profile : PrivacyProfile or sequence of PrivacyProfile
        What one round reveals, EXACT or an UPPER_BOUND, or the profiles of several rounds with the
        same n. Anything else is refused: an approximation or an estimate gives no guarantee.
    rounds : int, default 1
        How often they are repeated; from 1 to 1e12 rounds in all.
    rtol : float, default 1e-2
        How far delta may lie above that of the composed curves, relatively. Where this would need
        too fine a grid, for some hundred thousand rounds or an epsilon beyond some 15 standard
        deviations, the bound is as close as the finest grid allows; it is valid in either case.

    Returns
    -------
    ComposedProfile
        UPPER_BOUND for replace-one neighbours with n known. Users draw anew in every round: answers
        that are kept and sent again are no rounds. Each round may depend on the outcomes
        of those before, as long as its profile is bounded by the given one whatever these were.
        Direction ``"both"``, the default, covers rounds in which either dataset may be the first,
        as it is where a user's input changes from round to round. If all profiles are of two given
        datasets (`exact_profile`), the bound is for these two datasets in every round,
        ``"forward"`` and ``"reverse"`` are those of rounds with the datasets in this order, and
        ``bounds`` has a lower end for independent rounds with the same two datasets.

    Raises
    ------
    TypeError
        If an argument is of a wrong type.
    ValueError
        If a number is outside its domain, there is no profile, or the n differ.
    UnsupportedSettingError
        If a profile is no guarantee, or for another neighbouring relation.

    See Also
    --------
    subsampled_profile : a round in which only some users take part, drawn at random.
    composed_gaussian_profile : the same in the Gaussian limit, which is no bound.

    Notes
    -----
    A pair of laws whose curve is above that of a round at all epsilon, those below 0 included,
    *dominates* it, and a product of dominating pairs dominates an adaptive composition [1]_. Below
    0 a curve follows from the other direction, ``h(epsilon) = 1 - exp(epsilon) + exp(epsilon)
    h'(-epsilon)``. Straight pieces in exp(epsilon) between the values at multiples of a step are
    above the curve and are the curve of a pair with losses at these multiples only [2]_. The step
    follows the scale of the losses, whatever n is. Mass of P where Q has none is carried as such.

    **Accuracy**: the error is of second order in the step, which is refined until what is computed
    in the same way from below agrees to rtol; deltas of 1e-200 are as right as those of 0.1
    (``tests/test_composition.py``). Rounding and truncation are bounded and added. Losses beyond
    690 count as infinite. **Cost**: some hundred values of the profile, which take minutes if each
    takes a tenth of a second (`revealing_profile`, continuous noise); then some milliseconds for
    each delta, seconds from some hundred thousand rounds on, and ten times as much for an epsilon.

    References
    ----------
    .. [1] Y. Zhu, J. Dong, Y.-X. Wang, "Optimal Accounting of Differential Privacy via
       Characteristic Function", arXiv:2106.08567.
    .. [2] V. Doroshenko, B. Ghazi, P. Kamath, R. Kumar, P. Manurangsi, "Connect the Dots: Tighter
       Discrete Approximations of Privacy Loss Distributions", arXiv:2207.04380.

    Examples
    --------
    >>> import fastshuffle as fs
    >>> week = fs.worst_case_profile(fs.binary_randomized_response(1.0), 100_000)
    >>> year = fs.composed_profile(week, 52)
    >>> print(f"{week.epsilon(1e-8):.4f} {year.epsilon(1e-8):.4f}", year.validity)
    0.0139 0.1097 UPPER_BOUND
    """
    several = [profile] if isinstance(profile, PrivacyProfile) else profile
    if not isinstance(several, Sequence) or isinstance(several, str):
        raise TypeError(
            f"profile must be a PrivacyProfile or a sequence of them, got {type(profile).__name__}"
        )
    if not several:
        raise ValueError("profile must be one or more profiles, got none")
    names = (
        ["profile"] if several is not profile else [f"profile[{i}]" for i in range(len(several))]
    )
    checked = [check_guarantee(name, p) for name, p in zip(names, several, strict=True)]
    users = {p.n for p in checked}
    if len(users) > 1:
        raise ValueError(f"the profiles must have the same n, got {sorted(users)}")
    repeated = check_count("rounds", rounds, minimum=1, maximum=_MOST_ROUNDS // len(checked))
    tolerance = check_real("rtol", rtol, RELATIVE_TOLERANCE)
    one_pair = all(is_of_one_pair(p) for p in checked)
    counts: dict[int, int] = {}
    for p in checked:
        counts[id(p)] = counts.get(id(p), 0) + repeated
    different = {id(p): p for p in checked}
    sources = [Source(different[key], float(count), one_pair) for key, count in counts.items()]
    return ComposedProfile(sources, one_pair=one_pair, rtol=tolerance)
