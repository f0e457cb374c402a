"""Bounds by clones: the others send the differing user's messages by chance, and hide which."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fastshuffle._validation import (
    NONNEGATIVE_FINITE,
    RELATIVE_TOLERANCE,
    Interval,
    UnsupportedSettingError,
    check_count,
    check_pair,
    check_real,
)
from fastshuffle.bounds.common import check_randomizer, unordered_pairs, upper_bound
from fastshuffle.bounds.largest import HomogeneousLaw, LargestCurve
from fastshuffle.bracket import BracketProfile, Curve
from fastshuffle.randomizers import LocalRandomizer

_AT_LEAST_ONE = Interval(1.0, math.inf, ">= 1")
# Rounding of a ratio of two probabilities.
_RATIO_ROUNDING = 1e-14


class OutsideClassError(UnsupportedSettingError):
    """A randomizer that is not of the class for which a bound holds."""


def _two_clones(
    shares: tuple[float, float], revealed: float, n: int, *, clone: float, loss: float, rtol: float
) -> Curve:
    """Return the curve when each other user sends either of two messages with chance ``clone``.

    ``revealed`` is ``1 - 2 clone``, which that difference would not give when it is small. The two
    messages have the same chance: exchanging them exchanges the two laws of the differing user, so
    the curve is that of either direction.
    """
    background = np.array([clone, clone])
    losses = np.array([loss, -loss])
    law = HomogeneousLaw(
        background, np.array(shares), np.array(shares[::-1]), revealed, loss, losses
    )
    return LargestCurve([law], n, lambda law: law.curve(rtol)).curve()


def _flip(epsilon0: float) -> tuple[float, float]:
    """Return the keep and the flip probability of binary randomized response."""
    flip = math.exp(-epsilon0) / (1.0 + math.exp(-epsilon0))
    return 1.0 / (1.0 + math.exp(-epsilon0)), flip


def clone_profile(epsilon0: float, n: float, *, rtol: float = 1e-6) -> BracketProfile:
    """Return the clone bound for any epsilon0-locally private randomizers, adaptive or not.

    Parameters
    ----------
    epsilon0 : float
        Local privacy parameter of every user's randomizer, >= 0 and finite.
    n : int
        Number of users, including the one who differs; from 1 to 2**53.
    rtol : float, default 1e-6
        How far the computed bound may lie above the bound itself, relatively.

    Returns
    -------
    BracketProfile
        UPPER_BOUND for replace-one neighbours with n known. The users' randomizers may differ and
        may depend on earlier messages.

    Raises
    ------
    TypeError, ValueError
        If an argument is outside its domain.

    Notes
    -----
    Every other user sends a clone of the differing user's message with probability
    ``exp(-epsilon0)``, of either kind with the same chance; the rest is revealed.

    References
    ----------
    .. [1] V. Feldman, A. McMillan, K. Talwar, "Hiding Among the Clones", FOCS 2021,
       arXiv:2012.12803v3, the reduction to clones of adaptive pure local randomizers.

    Examples
    --------
    >>> import fastshuffle as fs
    >>> print(f"{fs.clone_profile(1.0, 50).epsilon(1e-5):.6f}")
    0.824601
    """
    local = check_real("epsilon0", epsilon0, NONNEGATIVE_FINITE)
    users = check_count("n", n, minimum=1)
    tolerance = check_real("rtol", rtol, RELATIVE_TOLERANCE)
    curve = _two_clones(
        _flip(local),
        -math.expm1(-local),
        users,
        clone=0.5 * math.exp(-local),
        loss=local,
        rtol=tolerance,
    )
    return upper_bound(
        curve,
        curve,
        users,
        "clones, their expectation bracketed on a lattice",
        "V. Feldman, A. McMillan, K. Talwar, arXiv:2012.12803v3",
        {"epsilon0": local, "n": users},
    )


def stronger_clone_profile(
    randomizer: LocalRandomizer, n: float, *, rtol: float = 1e-6
) -> BracketProfile:
    """Return the stronger clone bound for a randomizer of the class for which it holds.

    Parameters
    ----------
    randomizer : LocalRandomizer
        A randomizer with finite epsilon0 for which, at all inputs a, b, z and outputs y,
        ``W_z(y) >= (W_a(y) + W_b(y)) / (exp(epsilon0) + 1)``. k-ary randomized response is one.
    n : int
        Number of users, including the one who differs; from 1 to 2**53.
    rtol : float, default 1e-6
        How far the computed bound may lie above the bound itself, relatively.

    Returns
    -------
    BracketProfile
        UPPER_BOUND for replace-one neighbours with n known, for users who all apply this W to
        inputs chosen in advance.

    Raises
    ------
    TypeError
        If an argument is of a wrong type.
    OutsideClassError
        If the randomizer is not of the class: its authors withdrew the bound for general
        randomizers. It is a ValueError, and the message names a and b.
    UnsupportedSettingError
        If epsilon0 is infinite, or the randomizer has more than 64 inputs that it treats
        differently.

    Notes
    -----
    Write ``W_b = keep Q1 + flip Q0`` and ``W_a = flip Q1 + keep Q0`` with the keep and flip
    probability of binary randomized response; Q0 and Q1 are laws because no ratio exceeds
    exp(epsilon0), and ``Q0 + Q1 = W_a + W_b``. The condition says that every W_z contains
    ``(Q0 + Q1) / (exp(epsilon0) + 1)``: every other user sends a clone of either kind with that
    chance each, and revealing the rest gives the bound.

    References
    ----------
    .. [1] V. Feldman, A. McMillan, K. Talwar, "Stronger Privacy Amplification by Shuffling for
       Renyi and Approximate Differential Privacy", SODA 2023, arXiv:2208.04591. Its errata take
       Theorems 3.1 and 3.2 back for general randomizers and keep them for a restricted class; the
       condition above is the property that the argument here uses.
    """
    checked = check_randomizer(randomizer)
    users = check_count("n", n, minimum=1)
    tolerance = check_real("rtol", rtol, RELATIVE_TOLERANCE)
    local = checked.epsilon0
    if local == math.inf:
        raise UnsupportedSettingError("randomizer must have a finite epsilon0, got inf")
    keep, flip = _flip(local)
    _require_clones(checked, flip)
    curve = _two_clones(
        (keep, flip), math.tanh(0.5 * local), users, clone=flip, loss=local, rtol=tolerance
    )
    return upper_bound(
        curve,
        curve,
        users,
        "stronger clones, their expectation bracketed on a lattice",
        "V. Feldman, A. McMillan, K. Talwar, arXiv:2208.04591, for randomizers that contain both "
        "kinds of clones",
        {"randomizer": checked.to_dict(), "n": users},
    )


def _require_clones(randomizer: LocalRandomizer, flip: float) -> None:
    for a, b in unordered_pairs(randomizer):
        w_a, w_b, shared = randomizer.shared_rows((a, b))
        lacking = shared < (w_a + w_b) * flip * (1.0 - 1e-12)
        if lacking.any():
            group = int(lacking.argmax())
            raise OutsideClassError(
                "randomizer must satisfy W_z(y) >= (W_a(y) + W_b(y)) / (exp(epsilon0) + 1), got "
                f"{float(shared[group])!r} < {float((w_a + w_b)[group] * flip)!r} for some z and "
                f"some outputs y at a = {a}, b = {b}"
            )


class VariationRatio(NamedTuple):
    """The parameters of `variation_ratio_profile` for one pair of inputs."""

    p: float
    beta: float
    q: float


def variation_ratio_parameters(
    randomizer: LocalRandomizer, *, pair: Sequence[int] = (0, 1)
) -> VariationRatio:
    """Return the parameters of the variation-ratio bound of a pair of inputs of a randomizer.

    Parameters
    ----------
    randomizer : LocalRandomizer
        What every user applies; at least 2 inputs.
    pair : tuple of two ints, default (0, 1)
        The inputs of the differing user, in any order.

    Returns
    -------
    VariationRatio
        ``p``, ``beta`` and ``q``, ready for ``variation_ratio_profile(*parameters, n)``. The
        ratios are rounded up, which is the safe side. If ``q`` is inf, or ``p`` is beyond the
        largest double, the bound does not cover the randomizer.

    Raises
    ------
    TypeError, ValueError
        If an argument is outside its domain.

    Notes
    -----
    With e = exp(epsilon0) and the others at any input:

    =============================  ==========  ==================================  =====
    mechanism                      p           beta                                q
    =============================  ==========  ==================================  =====
    k-ary randomized response      e           (e - 1) / (e + k - 1)               e
    symmetric unary encoding       e           (sqrt(e) - 1) / (sqrt(e) + 1)       e
    optimised unary encoding       e           (e - 1) / (2 (e + 1))               e
    subset selection, d inputs     e           (e - 1) C(d-2, w-1) / (e C(d-1,     e
                                               w-1) + C(d-1, w))
    =============================  ==========  ==================================  =====

    They are computed here from the laws of the messages, for any randomizer.

    Examples
    --------
    >>> import fastshuffle as fs
    >>> p, beta, q = fs.variation_ratio_parameters(fs.k_randomized_response(2.0, 5))
    >>> print(f"{p:.6f} {beta:.6f} {q:.6f}")
    7.389056 0.560982 7.389056
    """
    checked = check_randomizer(randomizer)
    a, b = check_pair(pair, checked.n_inputs)
    merged = checked.merged((a, b))
    w_a, w_b, shared = checked.shared_rows((a, b))
    either = np.maximum(w_a, w_b)
    seen = either > 0.0
    with np.errstate(divide="ignore", over="ignore"):
        ratio = float(np.exp(np.abs(merged.log_ratios[1]).max())) * (1.0 + _RATIO_ROUNDING)
        most = float((either[seen] / shared[seen]).max()) * (1.0 + _RATIO_ROUNDING)
    beta = float(np.maximum(merged.rows[1] - merged.rows[0], 0.0).sum())
    return VariationRatio(ratio, beta, most)


def variation_ratio_profile(
    p: float, beta: float, q: float, n: float, *, rtol: float = 1e-6
) -> BracketProfile:
    """Return the variation-ratio bound, with the common part of the two laws revealed.

    Parameters
    ----------
    p : float
        Largest ratio ``W_b(y) / W_a(y)`` over the pair, either way round, >= 1; inf is allowed.
    beta : float
        The total variation distance of W_a and W_b itself, from 0 to ``(p - 1) / (p + 1)``. A
        larger number is no safer: it also stands for more clones.
    q : float
        Largest ratio ``W_a(y) / W_z(y)`` and ``W_b(y) / W_z(y)`` over all z and y, >= 1 and
        finite.
    n : int
        Number of users, including the one who differs; from 1 to 2**53.
    rtol : float, default 1e-6
        How far the computed bound may lie above the bound itself, relatively.

    Returns
    -------
    BracketProfile
        UPPER_BOUND for replace-one neighbours with n known, for every pair of inputs of these
        parameters and whatever the others hold. For all pairs of a randomizer, take the largest
        over its values of beta.

    Raises
    ------
    TypeError, ValueError
        If an argument is outside its domain.

    Notes
    -----
    With ``alpha = beta / (p - 1)``, the laws ``Q1 = (W_b - W_a)_+ / beta`` and
    ``Q0 = (W_a - W_b)_+ / beta`` do not overlap, and ``W_b = p alpha Q1 + alpha Q0 + C``,
    ``W_a = alpha Q1 + p alpha Q0 + C`` with the same remainder C >= 0. Every W_z contains
    ``(p alpha / q) (Q0 + Q1)``. Revealing whether the differing user drew from C, and the messages
    of the others outside their clones, leaves a background of clones.

    The published reduction does not reveal C. It is no bound then: for 5-ary randomized response,
    n = 8, epsilon0 = 2, epsilon = 1 and the others all at a third input it gives 0.0948147, below
    the true 0.1019404, since how often that input is reported tells something about C too.

    `variation_ratio_parameters` has the parameters of the mechanisms. The published row for any
    epsilon0-private randomizer, ``beta = (e - 1) / (e + 1)`` with e = exp(epsilon0), is not
    offered: it takes the largest distance for the distance, and gives the stronger clone bound,
    which its authors withdrew for general randomizers.

    References
    ----------
    .. [1] S. Wang et al., "Privacy Amplification via Shuffling: Unified, Simplified, and
       Tightened", arXiv:2304.05007v5 (the parameters; the reduction is changed as above).
    """
    ratio = check_real("p", p, _AT_LEAST_ONE)
    largest = 1.0 if ratio == math.inf else (ratio - 1.0) / (ratio + 1.0)
    interval = Interval(0.0, largest, f"in [0, (p - 1) / (p + 1) = {largest!r}]")
    distance = check_real("beta", beta, interval)
    background_ratio = check_real("q", q, _AT_LEAST_ONE)
    users = check_count("n", n, minimum=1)
    tolerance = check_real("rtol", rtol, RELATIVE_TOLERANCE)
    if background_ratio == math.inf:
        raise ValueError("q must be finite, got inf")
    if ratio == 1.0:
        shares = (0.0, 0.0)
    elif ratio == math.inf:
        shares = (distance, 0.0)
    else:
        shares = (ratio * distance / (ratio - 1.0), distance / (ratio - 1.0))
    clone = shares[0] / background_ratio
    if clone > 0.5:
        raise ValueError(
            f"q must be at least 2 p beta / (p - 1) = {2.0 * shares[0]!r}, got {background_ratio!r}"
        )
    curve = _two_clones(
        shares,
        (background_ratio - 2.0 * shares[0]) / background_ratio,
        users,
        clone=clone,
        loss=math.log(ratio),
        rtol=tolerance,
    )
    return upper_bound(
        curve,
        curve,
        users,
        "variation-ratio reduction with the common part revealed",
        "S. Wang et al., arXiv:2304.05007v5, with the correction stated in the documentation",
        {"p": ratio if ratio < math.inf else "inf", "beta": distance, "q": background_ratio,
         "n": users},
    )  # fmt: skip
