"""The bracket of an experiment with any composition: messages revealed above, scored below."""

import math

import numpy as np

from fastshuffle._positive_part import Bracket
from fastshuffle._typing import Side
from fastshuffle._validation import RELATIVE_TOLERANCE, check_real
from fastshuffle.bounds.blanket import BLANKET_SOURCE
from fastshuffle.bounds.largest import HomogeneousLaw
from fastshuffle.bracket import BracketProfile, Curve
from fastshuffle.exact._below import Below
from fastshuffle.exact._replacing import TAIL_ROUNDING, curve_of_single, replaced_curve
from fastshuffle.exact._scores import Users
from fastshuffle.exact.homogeneous import homogeneous_law, require_no_underflow
from fastshuffle.experiment import ShuffleExperiment, check_experiment
from fastshuffle.profile import PrivacyProfile, Validity
from fastshuffle.randomizers.continuous import ContinuousNoise


def revealing_profile(experiment: ShuffleExperiment, *, rtol: float = 1e-3) -> BracketProfile:
    """Return a bracket of the profile of an experiment, whatever its composition and alphabet.

    Parameters
    ----------
    experiment : ShuffleExperiment
        Any randomizer, any others, any n up to 2**53, any number of messages a user.
    rtol : float, default 1e-3
        How far the computed upper end may lie above the bound itself, relatively, from 1e-9 to 0.5.

    Returns
    -------
    BracketProfile
        UPPER_BOUND for the two datasets of the experiment alone. ``bounds`` shows the gap, which
        may be wide: `exact_profile` is sharp where it applies.

    Raises
    ------
    TypeError
        If ``experiment`` is no ShuffleExperiment.
    ValueError
        If rtol is outside its domain, or a probability underflows.

    Notes
    -----
    *Above.* Revealing users' messages is the reverse of post-processing, so it only raises delta.
    With the holders of some inputs S hidden, and of their messages those that are drawn from the
    common part ``min_{z in S} W_z`` of their rows, a homogeneous background is left for the user
    who differs, whose own row need not share it: for a single input of c holders, c + 1 users
    against a background of that input alone; for all inputs the privacy blanket of those that
    occur. Single inputs and the most frequent 2, 3, ... of them are tried, and the smallest bound
    is taken.

    *Below.* For any scores of the outputs, whether the scores of all messages sum to more than x is
    an event, and ``P(A) - exp(epsilon) Q(A)`` a lower bound. The scores are those of the half-space
    that touches the best event where it is most likely: the bound is sharp where the others hold
    one input, and its exponent is off by the order 1 / n elsewhere. For few users and next to the
    largest loss, merging the outputs into two groups may be better: a post-processing whose profile
    is exact. Continuous noise has no list of outputs: its lower end is 0.

    *Several messages.* Replace the m messages of the differing user one by one, T_j with j of them
    from W_a. With ``step = epsilon / m``,

        P - e**epsilon Q = sum_{j < m} e**(j step) (T_j - e**step T_{j+1}),

    so that delta is at most ``(e**epsilon - 1) / (e**step - 1)`` times a delta of the one message
    in which two neighbours differ, at ``step``, among the messages of the others that are hidden.
    What is lost vanishes as n grows: for others at one input the bracket is a relative 1e-3 at
    n = 1e6, some 1e-2 at n = 1e4 and some 1e-1 at n = 1,000, more for more messages and smaller
    deltas. Where the messages of the user move the histogram by more than its deviation, and
    epsilon is beyond 2 or so, it is wide: epsilon may be a third too large. m = 1 is the bound for
    one message.

    **Cost**: that of `exact_profile` with the others at one input, twice for each input that
    occurs, and some milliseconds an epsilon for each message of a user, up to 128.

    References
    ----------
    .. [1] B. Balle, G. Barthe, M. Gaboardi, "Privacy Amplification by Subsampling: Tight Analyses
       via Couplings and Divergences", arXiv:1807.01647v2 (post-processing of the hockey-stick
       divergence).
    .. [2] B. Balle, J. Bell, A. Gascon, K. Nissim, "The Privacy Blanket of the Shuffle Model",
       CRYPTO 2019, arXiv:1903.02837v2 (messages outside the blanket revealed).

    Examples
    --------
    >>> import fastshuffle as fs
    >>> krr = fs.k_randomized_response(epsilon0=2.0, k=8)
    >>> e = fs.ShuffleExperiment(krr, 10**6, others={x: 125_000 - (x == 7) for x in range(8)})
    >>> lower, upper = fs.revealing_profile(e).bounds(0.005)
    >>> print(f"{lower:.0e} {upper:.0e}")
    4e-06 2e-05
    """
    check_experiment(experiment, several=True)
    return bracket_profile(experiment, check_real("rtol", rtol, RELATIVE_TOLERANCE))


def bracket_profile(
    experiment: ShuffleExperiment, rtol: float, single: PrivacyProfile | None = None
) -> BracketProfile:
    """Return the bracket of `revealing_profile`.

    ``single`` is a profile of one message of the differing user among all those of the others, of
    finite losses, which then is the only one that is replaced.
    """
    a, b = experiment.pair
    several = " one of a user's messages replaced at a time," if experiment.messages > 1 else ""
    revealed = (
        "messages outside the common part of some of the others' rows"
        if single is None
        else "the user's other messages"
    )
    return BracketProfile(
        {side: _curve(experiment, side, pair, rtol, single) for side, pair in _pairs(a, b).items()},
        n=experiment.n,
        validity=Validity.UPPER_BOUND,
        method=(
            f"{revealed} revealed above,"
            f"{several} a sum of scores, or outputs merged into two groups, below"
        ),
        source=(
            "post-processing of the hockey-stick divergence: B. Balle, G. Barthe, M. Gaboardi, "
            f"arXiv:1807.01647v2; {BLANKET_SOURCE}"
        ),
        setting=experiment.to_dict(),
    )


def _pairs(a: int, b: int) -> dict[Side, tuple[int, int]]:
    return {"forward": (a, b), "reverse": (b, a)}


def _curve(
    experiment: ShuffleExperiment,
    side: Side,
    pair: tuple[int, int],
    rtol: float,
    single: PrivacyProfile | None,
) -> Curve:
    """Return the bracket of the divergence of holding b from holding a, for ``pair`` (a, b)."""
    if single is None:
        above = hidden_curves(experiment, pair, rtol)
    else:
        above = [curve_of_single(single, side, experiment.messages, rtol)]
    known = None
    if not isinstance(experiment.randomizer, ContinuousNoise):
        known = Below(users_of(experiment, pair))

    def below(epsilon: float, upper: float) -> float:
        if known is None:
            return -math.inf
        if epsilon == math.inf and len(experiment.others) <= 1 and experiment.messages > 1:
            return upper - 2.0 * TAIL_ROUNDING  # both ends are the mass of the infinite losses
        return known.log_delta(epsilon)

    def log_upper(epsilon: float) -> float:
        return min(curve.at(epsilon).upper for curve in above)

    def log_bracket(epsilon: float) -> Bracket:
        upper = log_upper(epsilon)
        lower = below(epsilon, upper)
        if not lower <= upper + 1e-9:
            raise ArithmeticError(f"a bracket came out as {(lower, upper)!r} for {experiment!r}")
        return Bracket(min(lower, upper), upper)

    return Curve(log_bracket, min(curve.loss for curve in above), rtol, log_upper)


def hidden_curves(experiment: ShuffleExperiment, pair: tuple[int, int], rtol: float) -> list[Curve]:
    """Return upper bounds on the divergence of P from Q: each hides the messages of some others.

    The differing user holds a under Q and b under P for the pair (a, b).
    """
    randomizer, messages = experiment.randomizer, experiment.messages
    others = experiment.others or {pair[0]: 0}
    curves = [
        replaced_curve(homogeneous_law(randomizer, *pair, z), count * messages, messages, rtol)
        for z, count in others.items()
    ]
    if len(others) == 1 or isinstance(randomizer, ContinuousNoise):
        return curves
    frequent = sorted(others, key=lambda z: -others[z])
    merged = randomizer.merged((*pair, *frequent))
    null, alternative, *rows = merged.rows
    losses, loss = merged.log_ratios[1], float(merged.log_ratios[1].max())
    background, hidden = rows[0], others[frequent[0]]
    for first, (z, row) in enumerate(zip(frequent[1:], rows[1:], strict=True), start=1):
        background, hidden = np.minimum(background, row), hidden + others[z]
        # of terms >= 0, where 1 - background.sum() cancels
        revealed = max(float((held - background).sum()) for held in rows[: first + 1])
        law = HomogeneousLaw(background, alternative, null, revealed, loss, losses)
        curves.append(replaced_curve(law, hidden * messages, messages, rtol))
    return curves


def users_of(experiment: ShuffleExperiment, pair: tuple[int, int]) -> Users:
    """Return the messages of all users, for the pair (a, b) of the differing one."""
    merged = experiment.randomizer.merged((*pair, *experiment.others))
    require_no_underflow(experiment.randomizer, merged)
    counts = [float(experiment.messages * count) for count in experiment.others.values()]
    rows = merged.rows
    return Users(
        np.array(counts), rows[2:], rows[0], rows[1], merged.log_ratios[1], experiment.messages
    )
