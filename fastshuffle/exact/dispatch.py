"""Which method fits an experiment, or a randomizer: the public functions of exact profiles."""

import numpy as np

from fastshuffle._validation import (
    LARGEST_COUNT,
    RELATIVE_TOLERANCE,
    UnsupportedSettingError,
    check_count,
    check_real,
)
from fastshuffle.bounds.common import check_randomizer
from fastshuffle.bracket import BracketProfile
from fastshuffle.exact._dense_points import DensePoints, is_dense
from fastshuffle.exact.binary import ExactProfile
from fastshuffle.exact.binary_worst_case import BinaryWorstCase
from fastshuffle.exact.general_worst_case import GeneralWorstCase
from fastshuffle.exact.homogeneous import homogeneous_profile, require_no_underflow
from fastshuffle.exact.lattice import LatticeProfile, lattice_profile
from fastshuffle.exact.revealing import bracket_profile
from fastshuffle.exact.unbundled import UnbundledProfile
from fastshuffle.exact.unbundled_general_worst_case import UnbundledGeneralWorstCase
from fastshuffle.exact.unbundled_worst_case import UnbundledWorstCase
from fastshuffle.exact.worst_case import WorstCaseProfile
from fastshuffle.experiment import ShuffleExperiment
from fastshuffle.randomizers import LocalRandomizer, MergedRows
from fastshuffle.randomizers.continuous import ContinuousNoise

_MOST_LATTICE_OUTPUTS = 4


def exact_profile(
    experiment: ShuffleExperiment, *, rtol: float = 1e-3
) -> ExactProfile | BracketProfile | LatticeProfile | UnbundledProfile:
    """Return the finite-n privacy profile of an experiment, exact or bracketed as tightly as asked.

    Parameters
    ----------
    experiment : ShuffleExperiment
        Any n up to 2**53, in one of these cases: the messages of all inputs that occur fall into 2
        groups, with any composition of the other users; the other users all hold one input, with
        any outputs; the other users hold the inputs of the pair, with 3 or 4 groups of outputs
        and n up to 6e5 or 2,300; users send several messages, all shuffled, and either those of all
        inputs that occur fall into 2 groups, with any composition of the other users, or the other
        users all hold one input, or those of the pair with 3 or 4 groups and as few messages in all
        as there may be users with one. And wherever there are few messages in all, at most 700 in
        3 groups of outputs, 140 in 4 and 50 in 5, and no histogram has a mass below 1e-286.
    rtol : float, default 1e-3
        Relative width of the bracket for others at one input, from 1e-9 to 0.5.

    Returns
    -------
    ExactProfile
        EXACT, in the first case.
    BracketProfile
        UPPER_BOUND, in the second: ``bounds`` is the bracket of the exact delta and ``delta`` its
        upper end. For several messages too, with others at one input or those of the pair; there
        the width is not up to rtol: see `revealing_profile`.
    LatticeProfile
        In the third: EXACT where all histograms are summed, UPPER_BOUND with its bracket otherwise.
        EXACT, for few messages in all.
    UnbundledProfile
        EXACT, for several messages that fall into 2 groups.

        Each is a guarantee for the two datasets of the experiment alone; `worst_case_profile`
        covers all datasets.

    Raises
    ------
    TypeError
        If ``experiment`` is no ShuffleExperiment.
    ValueError
        If rtol is outside its domain, or no case applies: then `revealing_profile` brackets
        delta and `monte_carlo_profile` estimates it.

    Notes
    -----
    *Two groups.* Outputs on which all rows that occur have equal ratios are merged first. The
    other users' histogram R is then a sum of binomial groups, hence log-concave, and the privacy
    loss increases in it: the hockey-stick divergence is a sum over a half-line. It is evaluated as
    one contour integral, about 15 terms whatever n, on the contour where the two laws cross, so
    that the terms have one sign.

    *One input.* If the others all hold z, the likelihood ratio of the histogram against n messages
    of z is the mean of the ratios of the messages, and delta is the mean of the positive part of
    a sum of n independent variables (`fastshuffle._positive_part`).

    *Several messages.* ``P - e**epsilon Q`` is then a sum of m such differences, whose tilted laws
    have equal mass where the two laws cross: a geometric sum under the same contour integral. With
    more groups, and the others at z, the likelihood ratio against nm messages of z is the mean over
    all choices of m of the nm messages Y_i of products of their ratios, a U-statistic:

        delta(epsilon) = E[ (e_m(w_b(Y_1), ..) - e**epsilon e_m(w_a(Y_1), ..))_+ ] / C(nm, m),

    e_m the elementary symmetric polynomial and w_x = W_x / W_z (and what W_z lacks the support of).
    It is no sum over messages unless m = 1, so it is bracketed as `revealing_profile` describes;
    few messages are summed histogram by histogram, by convolution with one message after another.

    **Accuracy**, two groups: relative error of delta below 1e-12 for 1 <= n <= 1e15 and delta down
    to 1e-300, below ``5e-15 (|log delta| + epsilon)`` beyond, plus ``1e-15`` times the condition
    number ``|epsilon delta'(epsilon) / delta|``, by which the last bit of epsilon alone moves
    delta. The relative error of epsilon is below 1e-12, plus ``1e-15`` times the inverse of that
    number, which is large as delta approaches delta(0) (``tests/test_precision.py``,
    ``validation/``). Several messages: the same for n to 1e12 (``tests/test_messages.py``, with m
    to 1e4). Otherwise: as stated by ``bounds``; rounding is on the safe side.

    **Cost**, two groups: one to two microseconds a delta and direction, about ten an epsilon,
    independent of n; proportional to the number of different inputs that the others hold. Several
    messages: seven to twenty a delta and direction, about fifty an epsilon, independent of m. One
    input: one to some tens of milliseconds a delta, at any n, and up to some seconds for continuous
    noise, for a million outputs and far beyond delta = 1e-300. Lattice: some seconds once, at
    n = 1e5 for 3 groups and n = 500 for 4, then under a millisecond a delta.

    References
    ----------
    .. [1] A. Shvets, "Universal Shuffle Asymptotics: Sharp Privacy Analysis in the Gaussian
       Regime", arXiv:2602.09029v3, section 3 (exact likelihood ratio) and section 8 (exact
       finite-n curves).

    Examples
    --------
    >>> import fastshuffle as fs
    >>> rr = fs.binary_randomized_response(epsilon0=1.0)
    >>> profile = fs.exact_profile(fs.ShuffleExperiment(rr, n=1000, k=0))
    >>> print(f"{profile.epsilon(1e-8):.9f}")
    0.162844223
    >>> print(f"{profile.delta(0.2):.7e}")
    3.9215624e-11
    >>> str(profile.validity)
    'EXACT'
    >>> several = fs.exact_profile(fs.ShuffleExperiment(rr, n=1000, k=0, messages=4))
    >>> print(f"{several.epsilon(1e-8):.9f}")
    0.327578515
    >>> w = fs.Randomizer([[0.5, 0.3, 0.2], [0.2, 0.35, 0.45]])
    >>> lower, upper = fs.exact_profile(fs.ShuffleExperiment(w, n=10**6, k=0)).bounds(0.003)
    >>> print(f"{lower:.2e} {upper:.2e}")
    1.74e-09 1.74e-09
    """
    if not isinstance(experiment, ShuffleExperiment):
        raise TypeError(f"experiment must be a ShuffleExperiment, got {type(experiment).__name__}")
    tolerance = check_real("rtol", rtol, RELATIVE_TOLERANCE)
    held = list(experiment.others)
    if experiment.messages > 1:
        return _several_messages(experiment, tolerance)
    if isinstance(experiment.randomizer, ContinuousNoise) and len(held) <= 1:
        return homogeneous_profile(experiment, tolerance)
    merged = experiment.randomizer.merged((*experiment.pair, *held))
    if merged.rows.shape[1] <= 2:
        return ExactProfile(experiment, merged)
    if len(held) <= 1:
        return homogeneous_profile(experiment, tolerance)
    if set(held) <= set(experiment.pair) and merged.rows.shape[1] <= _MOST_LATTICE_OUTPUTS:
        return lattice_profile(experiment)
    if not isinstance(experiment.randomizer, ContinuousNoise) and is_dense(merged, experiment):
        return _dense_profile(experiment, merged)
    raise UnsupportedSettingError(
        "the other users must all hold one input, or the inputs of the pair with at most 4 groups "
        "of outputs, or the messages of all inputs that occur fall "
        f"into 2 groups, got {len(held)} inputs and {merged.rows.shape[1]} groups; "
        "revealing_profile brackets delta, monte_carlo_profile estimates it"
    )


def _dense_profile(experiment: ShuffleExperiment, merged: MergedRows) -> LatticeProfile:
    require_no_underflow(experiment.randomizer, merged)
    return LatticeProfile(experiment, merged, DensePoints(merged, experiment))


def _several_messages(
    experiment: ShuffleExperiment, rtol: float
) -> BracketProfile | LatticeProfile | UnbundledProfile:
    if not isinstance(experiment.randomizer, ContinuousNoise):
        merged = experiment.randomizer.merged((*experiment.pair, *experiment.others))
        if merged.rows.shape[1] <= 2:
            return UnbundledProfile(experiment, merged)
        if is_dense(merged, experiment):
            return _dense_profile(experiment, merged)
        if (
            len(experiment.others) == 2
            and set(experiment.others) == set(experiment.pair)
            and merged.rows.shape[1] <= _MOST_LATTICE_OUTPUTS
            and np.isfinite(merged.log_ratios[1]).all()
        ):
            return bracket_profile(experiment, rtol, _one_message(experiment))
    if len(experiment.others) <= 1:
        return bracket_profile(experiment, rtol)
    raise UnsupportedSettingError(
        "the other users must all hold one input, or the inputs of the pair with 3 or 4 groups of "
        "outputs, or the messages of all inputs that occur fall into 2 groups, or be few, where "
        f"users send several, got {experiment!r}; "
        "revealing_profile brackets delta"
    )


def _one_message(experiment: ShuffleExperiment) -> LatticeProfile:
    """Return the profile of one message of the differing user among those of the others."""
    messages = experiment.messages
    return lattice_profile(
        ShuffleExperiment(
            experiment.randomizer,
            (experiment.n - 1) * messages + 1,
            others={x: count * messages for x, count in experiment.others.items()},
            pair=experiment.pair,
        )
    )


def worst_case_profile(
    randomizer: LocalRandomizer, n: float, *, rtol: float | None = None, messages: float = 1
) -> WorstCaseProfile:
    """Return the worst-case profile over all datasets: the number a deployment may quote.

    Parameters
    ----------
    randomizer : LocalRandomizer
        What every user applies to the input held; at least 2 inputs.
    n : int
        Number of users, including the one who differs; from 1 to 2**53.
    rtol : float, optional
        Relative accuracy, from 1e-9 to 0.5; by default 1e-6 for two outputs and 1e-3 otherwise.
    messages : int, default 1
        How many messages of every user are shuffled one by one. Messages of a user that stay
        together are one message of a `bundle`.

    Returns
    -------
    WorstCaseProfile
        UPPER_BOUND for replace-one neighbours with n known: ``delta`` is the upper end of
        ``bounds``, ``epsilon`` the safe side, ``argmax`` the worst dataset found. With two outputs
        the bracket is no wider than rtol, several messages and more than two inputs excepted.
        Otherwise its upper end is the privacy blanket and its lower end the delta of the worst
        dataset found; the gap shows what is not known. Forward and reverse are the same number
        here, since the ordered pairs of neighbouring datasets are a symmetric set.

    Raises
    ------
    TypeError, ValueError
        If an argument is outside its domain, the randomizer has a single input, or it has more
        than 2 outputs and more than 64 inputs that it treats differently.
    RuntimeError
        From the methods of the profile, if a bracket of width rtol is not reached within 400,000
        splits: for two outputs and rtol well below the default.

    Notes
    -----
    *Two outputs: two inputs suffice.* Every row of W is a mixture of the rows with the smallest
    and the largest probability of output 1. The hockey-stick divergence is jointly convex, so
    replacing a user's input by such a mixture cannot exceed the larger of the two replacements:
    for the others, and for either input of the differing user, the worst case is at the extreme
    rows.

    *Two outputs: compositions.* The number k of others at the upper row is searched by branch and
    bound. For a block of values, dropping the users who may hold either row bounds all of it, by
    post-processing; a second bound, from the contour integral, is sharp where all k nearly tie.

    *Several messages.* For two inputs and two outputs the same search by the first bound. Otherwise
    two datasets in which one message of a user is replaced are neighbours of nm users who send one
    each. So delta is at most ``(e**epsilon - 1) / (e**step - 1)`` times the blanket's among nm
    users at ``step = epsilon / m``, by `revealing_profile`'s argument. The lower end is a sum of
    scores. For k-ary randomized response the gap is a relative 1e-2 at n = 1e4, 1e-3 at n = 1e6.

    *More outputs.* See `blanket_profile` for the upper end. The datasets tried for the lower end
    are those whose other users all hold one input, any input: for k-ary randomized response a
    third one is the worst, and the gap closes as n grows.

    The bound holds for users who choose their inputs in advance and all apply the same W with
    independent randomness.

    **Accuracy**: as stated by ``bounds``; rounding is on the safe side. **Cost**: with two outputs
    under a millisecond for most epsilons, up to 0.2 seconds for n near 1e4 and up to some seconds
    for rare outputs near epsilon = 0, where many compositions nearly tie; with several messages
    some tenths of a second a delta and some seconds an epsilon, which is then up to a relative
    1e-4 above the smallest that could be certified; otherwise milliseconds
    for each pair of inputs that differ in kind. It does not grow with n.

    References
    ----------
    .. [1] B. Balle, G. Barthe, M. Gaboardi, "Privacy Amplification by Subsampling: Tight Analyses
       via Couplings and Divergences", arXiv:1807.01647v2 (joint convexity and post-processing
       of the hockey-stick divergence).

    Examples
    --------
    >>> import fastshuffle as fs
    >>> worst = fs.worst_case_profile(fs.binary_randomized_response(epsilon0=2.0), n=336776)
    >>> print(f"{worst.epsilon(1e-8):.5f}")
    0.01726
    >>> krr = fs.k_randomized_response(epsilon0=2.0, k=16)
    >>> lower, upper = fs.worst_case_profile(krr, n=10**6).bounds(0.01)
    >>> print(f"{lower:.2e} {upper:.2e}")
    2.81e-11 2.81e-11
    """
    checked = check_randomizer(randomizer)
    users = check_count("n", n, minimum=1)
    apart = check_count("messages", messages, minimum=1, maximum=LARGEST_COUNT // users)
    if apart > 1:
        if (
            not isinstance(checked, ContinuousNoise)
            and checked.n_inputs == 2
            and checked.merged((0, 1)).rows.shape[1] <= 2
        ):
            return UnbundledWorstCase(checked, users, _check_rtol(rtol, 1e-3), apart)
        return UnbundledGeneralWorstCase(checked, users, _check_rtol(rtol, 1e-3), apart)
    inputs = checked.representative_inputs()
    finite = not isinstance(checked, ContinuousNoise)
    if finite and len(inputs) == checked.n_inputs and checked.merged(inputs).rows.shape[1] <= 2:
        return BinaryWorstCase(checked, users, _check_rtol(rtol, 1e-6))
    return GeneralWorstCase(checked, users, _check_rtol(rtol, 1e-3))


def _check_rtol(rtol: float | None, default: float) -> float:
    return default if rtol is None else check_real("rtol", rtol, RELATIVE_TOLERANCE)
