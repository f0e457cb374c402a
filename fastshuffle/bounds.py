"""Universal bounds: privacy profiles that hold for all datasets, from how W is composed.

All of them are the law of one homogeneous background: each of the other n - 1 users sends a
message of the law ``background``, and the two laws of the differing user are ``alternative`` and
``null``. Then, with Y_i independent of law ``background``,

    delta(epsilon) <= (1/n) E[ (sum_{i=1}^n r(Y_i))_+ ] + the mass outside the background,
    r(y) = (alternative(y) - exp(epsilon) null(y)) / background(y),

which `fastshuffle._positive_part` brackets.
"""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from fastshuffle._background import BackgroundPair
from fastshuffle._positive_part import Bracket
from fastshuffle._validation import NONNEGATIVE_FINITE, Interval, check_count, check_real
from fastshuffle.bracket import BracketProfile, Curve
from fastshuffle.profile import Validity
from fastshuffle.randomizers import LocalRandomizer

__all__ = [
    "blanket_profile",
    "chernoff_profile",
    "clone_profile",
    "stronger_clone_profile",
    "variation_ratio_profile",
]

BLANKET_SOURCE = "B. Balle, J. Bell, A. Gascon, K. Nissim, arXiv:1903.02837v2, privacy blanket"

_RTOL = Interval(1e-9, 0.5, "in [1e-9, 0.5]")
_AT_LEAST_ONE = Interval(1.0, math.inf, ">= 1")
# A bound over all pairs of more inputs than this would take minutes.
_MOST_INPUTS = 64


def _upper_bound(
    forward: list[Curve], reverse: list[Curve], n: int, method: str, source: str,
    setting: dict[str, Any],
) -> BracketProfile:  # fmt: skip
    """Return the pointwise largest of the curves of each direction as an UPPER_BOUND."""
    return BracketProfile(
        {"forward": _largest(forward), "reverse": _largest(reverse)},
        n=n,
        validity=Validity.UPPER_BOUND,
        method=method,
        source=source,
        setting=setting,
    )


def _largest(curves: list[Curve]) -> Curve:
    def log_bracket(epsilon: float) -> Bracket:
        # the true delta of the datasets may be anything from 0 up to the bound
        return Bracket(-math.inf, max(curve.at(epsilon).upper for curve in curves))

    return Curve(log_bracket, max(c.loss for c in curves), max(c.rtol for c in curves))


def check_randomizer(randomizer: Any) -> LocalRandomizer:
    """Return a randomizer with at least two inputs."""
    if not isinstance(randomizer, LocalRandomizer):
        raise TypeError(f"randomizer must be a Randomizer, got {type(randomizer).__name__}")
    if randomizer.n_inputs < 2:
        raise ValueError(f"randomizer must have at least 2 inputs, got {randomizer.n_inputs}")
    return randomizer


def _pairs(randomizer: LocalRandomizer, pair: Sequence[int] | None) -> list[tuple[int, int]]:
    if pair is not None:
        if not isinstance(pair, Sequence) or len(pair) != 2:
            raise TypeError(f"pair must be two inputs (a, b), got {pair!r}")
        a, b = (
            check_count("input in pair", x, minimum=0, maximum=randomizer.n_inputs - 1)
            for x in pair
        )
        if a == b:
            raise ValueError(f"pair must be two different inputs, got {(a, b)}")
        return [(a, b)]
    inputs = randomizer.representative_inputs()
    if len(inputs) > _MOST_INPUTS:
        raise ValueError(
            f"randomizer must have at most {_MOST_INPUTS} inputs unless a pair is given, got "
            f"{randomizer.n_inputs}"
        )
    return list(combinations(inputs, 2))


class BlanketPair(NamedTuple):
    """The blanket's laws for one pair of inputs, in either direction."""

    pair: tuple[int, int]
    forward: BackgroundPair
    reverse: BackgroundPair


def blanket_pairs(
    randomizer: LocalRandomizer, n: int, pair: Sequence[int] | None = None
) -> list[BlanketPair]:
    """Return the blanket's laws for one pair of inputs, or for one of each kind of pair."""
    found = []
    for a, b in _pairs(randomizer, pair):
        w_a, w_b, blanket = randomizer.shared_rows((a, b))
        losses = randomizer.merged((a, b)).log_ratios[1]
        revealed = float((w_a - blanket).sum())  # of terms >= 0: one minus their sum would cancel
        forward, reverse = (
            BackgroundPair(blanket, *laws, n=n, revealed=revealed, loss=float(loss))
            for laws, loss in (((w_b, w_a), losses.max()), ((w_a, w_b), -losses.min()))
        )
        found.append(BlanketPair((a, b), forward, reverse))
    return found


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
        worst over all ordered pairs.
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
    background. **Cost**: milliseconds an ordered pair and epsilon, independent of n.

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
    tolerance = check_real("rtol", rtol, _RTOL)
    laws = blanket_pairs(checked, users, pair)
    return _upper_bound(
        [law.forward.curve(tolerance) for law in laws],
        [law.reverse.curve(tolerance) for law in laws],
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
    laws = blanket_pairs(checked, users, pair)
    return _upper_bound(
        [law.forward.chernoff_curve() for law in laws],
        [law.reverse.chernoff_curve() for law in laws],
        users,
        "Chernoff bound of the privacy blanket",
        f"{BLANKET_SOURCE}, with (x)_+ <= exp(s x - 1) / s",
        {"randomizer": checked.to_dict(), "n": users, "pair": None if pair is None else list(pair)},
    )


def _two_clones(
    shares: tuple[float, float], revealed: float, n: int, *, clone: float, loss: float, rtol: float
) -> tuple[list[Curve], list[Curve]]:
    """Return the curves when each other user sends either of two messages with chance ``clone``.

    ``revealed`` is ``1 - 2 clone``, which that difference would not give when it is small.
    """
    background = np.array([clone, clone])
    larger, smaller = np.array(shares), np.array(shares[::-1])
    losses = np.array([loss, -loss])
    forward = BackgroundPair(background, larger, smaller, n=n, losses=losses, revealed=revealed)
    reverse = BackgroundPair(background, smaller, larger, n=n, losses=-losses, revealed=revealed)
    return [forward.curve(rtol)], [reverse.curve(rtol)]


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
    tolerance = check_real("rtol", rtol, _RTOL)
    forward, reverse = _two_clones(
        _flip(local),
        -math.expm1(-local),
        users,
        clone=0.5 * math.exp(-local),
        loss=local,
        rtol=tolerance,
    )
    return _upper_bound(
        forward,
        reverse,
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
    ValueError
        If the randomizer is not of the class: its authors withdrew the bound for general
        randomizers. The message names a and b.

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
    tolerance = check_real("rtol", rtol, _RTOL)
    local = checked.epsilon0
    if local == math.inf:
        raise ValueError("randomizer must have a finite epsilon0, got inf")
    keep, flip = _flip(local)
    _require_clones(checked, flip)
    forward, reverse = _two_clones(
        (keep, flip), math.tanh(0.5 * local), users, clone=flip, loss=local, rtol=tolerance
    )
    return _upper_bound(
        forward,
        reverse,
        users,
        "stronger clones, their expectation bracketed on a lattice",
        "V. Feldman, A. McMillan, K. Talwar, arXiv:2208.04591, for randomizers that contain both "
        "kinds of clones",
        {"randomizer": checked.to_dict(), "n": users},
    )


def _require_clones(randomizer: LocalRandomizer, flip: float) -> None:
    for a, b in _pairs(randomizer, None):
        w_a, w_b, shared = randomizer.shared_rows((a, b))
        lacking = shared < (w_a + w_b) * flip * (1.0 - 1e-12)
        if lacking.any():
            group = int(lacking.argmax())
            raise ValueError(
                "randomizer must satisfy W_z(y) >= (W_a(y) + W_b(y)) / (exp(epsilon0) + 1), got "
                f"{float(shared[group])!r} < {float((w_a + w_b)[group] * flip)!r} for some z and "
                f"some outputs y at a = {a}, b = {b}"
            )


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

    For k-ary randomized response p = q = e and ``beta = (e - 1) / (e + k - 1)``, e = exp(epsilon0).
    The published row for any epsilon0-private randomizer, ``beta = (e - 1) / (e + 1)``, is not
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
    tolerance = check_real("rtol", rtol, _RTOL)
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
    forward, reverse = _two_clones(
        shares,
        (background_ratio - 2.0 * shares[0]) / background_ratio,
        users,
        clone=clone,
        loss=math.log(ratio),
        rtol=tolerance,
    )
    return _upper_bound(
        forward,
        reverse,
        users,
        "variation-ratio reduction with the common part revealed",
        "S. Wang et al., arXiv:2304.05007v5, with the correction stated in the documentation",
        {"p": ratio if ratio < math.inf else "inf", "beta": distance, "q": background_ratio,
         "n": users},
    )  # fmt: skip
