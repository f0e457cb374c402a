"""The privacy blanket: what all inputs share hides the one that differs."""

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from fastshuffle._background import LEAST_MASS
from fastshuffle._continuous import ContinuousLaw
from fastshuffle._typing import FloatArray
from fastshuffle._validation import RELATIVE_TOLERANCE, check_count, check_pair, check_real
from fastshuffle.bounds.common import all_pairs, check_randomizer, upper_bound
from fastshuffle.bounds.largest import HomogeneousLaw, LargestCurve, Law, Pair
from fastshuffle.bracket import BracketProfile, Curve
from fastshuffle.randomizers import LocalRandomizer
from fastshuffle.randomizers.continuous import ContinuousNoise

# Rounding of a log ratio of two rounded probabilities, for each unit of their logarithms.
_LOG_ROUNDING = 2e-14
BLANKET_SOURCE = "B. Balle, J. Bell, A. Gascon, K. Nissim, arXiv:1903.02837v2, privacy blanket"


def blanket_laws(randomizer: LocalRandomizer, pairs: Iterable[tuple[int, int]]) -> Sequence[Law]:
    """Return the privacy blanket and the laws of the differing user, for ordered pairs of inputs.

    The differing user holds a under Q and b under P for the pair (a, b).
    """
    if isinstance(randomizer, ContinuousNoise):
        return [ContinuousLaw(randomizer, a, b, None) for a, b in pairs]
    known: dict[tuple[int, int], HomogeneousLaw] = {}
    found = []
    for a, b in pairs:
        if (a, b) not in known:
            w_a, w_b, blanket = randomizer.shared_rows((a, b))
            losses = randomizer.merged((a, b)).log_ratios[1]
            # of terms >= 0, where 1 - blanket.sum() cancels; either row may be rounded
            revealed = float(max((w_a - blanket).sum(), (w_b - blanket).sum()))
            for pair, alternative, null, ratios in (
                ((a, b), w_b, w_a, losses),
                ((b, a), w_a, w_b, -losses),
            ):
                known[pair] = HomogeneousLaw(
                    blanket,
                    alternative,
                    null,
                    revealed,
                    float(ratios.max()),
                    _losses_of_columns(alternative, null, ratios),
                )
        found.append(known[a, b])
    return found


def _losses_of_columns(
    alternative: FloatArray, null: FloatArray, log_ratios: FloatArray
) -> FloatArray:
    """Return for each column the log ratio that it must have, among the exact ones of the pair.

    The two laws are rounded, which would move a loss of 1e-9 by 1e-7 of itself. Where several log
    ratios are as close as that, the largest is on the safe side.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(alternative), np.log(null)
        rounded = logs[0] - logs[1]
        sizes = np.abs(logs[0]) + np.abs(logs[1])
    told = (alternative > 0.0) | (null > 0.0)
    slack = _LOG_ROUNDING * (1.0 + np.where(np.isfinite(sizes), sizes, 0.0))
    # a number so small has lost its digits, all but the factor of two that it is rounded within
    slack = np.where(np.minimum(alternative, null) < LEAST_MASS, 1.0, slack)
    exact = np.sort(log_ratios)
    place = np.searchsorted(exact, rounded + slack, side="right") - 1
    nearest = exact[np.maximum(place, 0)]
    close = (nearest >= rounded - slack) | (rounded == math.inf)
    return np.where(told, np.where(close, nearest, rounded + slack), 0.0)


def _largest_over_pairs(
    randomizer: LocalRandomizer,
    pair: Sequence[int] | None,
    n: int,
    curve_of: Callable[[Pair], Curve],
) -> tuple[Curve, Curve]:
    """Return the curves of a pair, or that of the worst ordered pair for both directions."""
    if pair is None:
        laws = blanket_laws(randomizer, all_pairs(randomizer))
        curve = LargestCurve(laws, n, curve_of).curve()
        return curve, curve
    a, b = check_pair(pair, randomizer.n_inputs)
    forward, reverse = (
        LargestCurve([law], n, curve_of).curve()
        for law in blanket_laws(randomizer, [(a, b), (b, a)])
    )
    return forward, reverse


def blanket_profile(
    randomizer: LocalRandomizer, n: float, *, pair: Sequence[int] | None = None, rtol: float = 1e-3
) -> BracketProfile:
    """Return the privacy-blanket bound over all datasets, without any further inequality.

    Parameters
    ----------
    randomizer : LocalRandomizer
        What every user applies to the input held; at least 2 inputs, any number of outputs.
    n : int
        Number of users, including the one who differs; from 1 to 2**53.
    pair : tuple of two ints, optional
        The inputs of the differing user in the first and in the second dataset; by default the
        worst over all ordered pairs, which makes forward and reverse the same number.
    rtol : float, default 1e-3
        How far the computed bound may lie above the bound itself, relatively.

    Returns
    -------
    BracketProfile
        UPPER_BOUND for replace-one neighbours with n known, whatever the others hold, for users
        who all apply the same W to inputs chosen in advance.

    Raises
    ------
    TypeError, ValueError
        If an argument is outside its domain.

    Notes
    -----
    ``min_x W_x(y)`` is the part of the law that all inputs share. Revealing the messages of users
    who did not draw from it is the reverse of post-processing; the rest is a homogeneous
    background.

    *All pairs.* One pair of each kind is enough (`LocalRandomizer.representative_pairs`), and a
    pair whose Chernoff bound is below the largest so far is not looked at further. **Cost**:
    milliseconds an epsilon and pair that is, independent of n; as for `exact_profile` with the
    others at one input.

    References
    ----------
    .. [1] B. Balle, J. Bell, A. Gascon, K. Nissim, "The Privacy Blanket of the Shuffle Model",
       CRYPTO 2019, arXiv:1903.02837v2, the bound of the divergence by an expectation under the
       blanket.

    Examples
    --------
    >>> import fastshuffle as fs
    >>> w = fs.Randomizer([[0.5, 0.3, 0.2], [0.2, 0.35, 0.45]])
    >>> print(f"{fs.blanket_profile(w, 10_000).epsilon(1e-8):.3f}")
    0.039
    """
    checked = check_randomizer(randomizer)
    users = check_count("n", n, minimum=1)
    tolerance = check_real("rtol", rtol, RELATIVE_TOLERANCE)
    forward, reverse = _largest_over_pairs(checked, pair, users, lambda law: law.curve(tolerance))
    return upper_bound(
        forward,
        reverse,
        users,
        "privacy blanket, its expectation bracketed on a lattice",
        BLANKET_SOURCE,
        {"randomizer": checked.to_dict(), "n": users, "pair": None if pair is None else list(pair)},
    )


def chernoff_profile(
    randomizer: LocalRandomizer, n: float, *, pair: Sequence[int] | None = None
) -> BracketProfile:
    """Return the Chernoff form of the privacy blanket: closed but for one minimisation.

    Parameters
    ----------
    randomizer : LocalRandomizer
        What every user applies to the input held; at least 2 inputs, any number of outputs.
    n : int
        Number of users, including the one who differs; from 1 to 2**53.
    pair : tuple of two ints, optional
        As for `blanket_profile`.

    Returns
    -------
    BracketProfile
        UPPER_BOUND, in the same setting as `blanket_profile` and never below it. It is loose by a
        factor of about the number of standard deviations squared.

    Raises
    ------
    TypeError, ValueError
        If an argument is outside its domain.

    Notes
    -----
    From ``(x)_+ <= exp(s x - 1) / s``: ``delta <= min_s (E exp(s r))**n / (e s n)``.

    References
    ----------
    .. [1] B. Balle, J. Bell, A. Gascon, K. Nissim, "The Privacy Blanket of the Shuffle Model",
       CRYPTO 2019, arXiv:1903.02837v2, the bound of the divergence by an expectation under the
       blanket; the exponential inequality is added here.
    """
    checked = check_randomizer(randomizer)
    users = check_count("n", n, minimum=1)
    forward, reverse = _largest_over_pairs(checked, pair, users, lambda law: law.chernoff_curve())
    return upper_bound(
        forward,
        reverse,
        users,
        "Chernoff bound of the privacy blanket",
        f"{BLANKET_SOURCE}, with (x)_+ <= exp(s x - 1) / s",
        {"randomizer": checked.to_dict(), "n": users, "pair": None if pair is None else list(pair)},
    )
