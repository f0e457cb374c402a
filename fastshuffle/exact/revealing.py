"""The bracket of an experiment with any composition: messages revealed above, merged below."""

import math
from typing import Literal

import numpy as np

from fastshuffle._positive_part import Bracket
from fastshuffle._validation import RELATIVE_TOLERANCE, check_real
from fastshuffle.bounds.blanket import BLANKET_SOURCE
from fastshuffle.bounds.largest import HomogeneousLaw
from fastshuffle.bracket import BracketProfile, Curve
from fastshuffle.exact.binary import ExactProfile
from fastshuffle.exact.homogeneous import homogeneous_law
from fastshuffle.experiment import ShuffleExperiment, check_experiment
from fastshuffle.profile import Validity
from fastshuffle.randomizers import Randomizer
from fastshuffle.randomizers.continuous import ContinuousNoise

_MOST_CUTS = 16
# Rounding of the rows of the merged outputs.
_MERGING_ROUNDING = 1e-9


def revealing_profile(experiment: ShuffleExperiment, *, rtol: float = 1e-3) -> BracketProfile:
    """Return a bracket of the profile of an experiment, whatever its composition and alphabet.

    Parameters
    ----------
    experiment : ShuffleExperiment
        Any randomizer, any others, any n up to 2**53.
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
    who differs, whose own row need not share it: for a single input of m holders, m + 1 users
    against a background of that input alone; for all inputs the privacy blanket of those that
    occur. Single inputs and the most frequent 2, 3, ... of them are tried, and the smallest bound
    is taken.

    *Below.* Merging the outputs into two groups is a post-processing, and the profile of two
    groups is exact at any composition. Groups of the outputs with the largest losses are tried, 16
    at most. Continuous noise has no such list of outputs: its lower end is 0.

    **Cost**: that of `exact_profile` with the others at one input, twice for each input that
    occurs.

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
    2e-07 2e-05
    """
    check_experiment(experiment)
    tolerance = check_real("rtol", rtol, RELATIVE_TOLERANCE)
    below = _merged_profiles(experiment)
    a, b = experiment.pair
    return BracketProfile(
        {
            "forward": _curve(experiment, (a, b), below, "forward", tolerance),
            "reverse": _curve(experiment, (b, a), below, "reverse", tolerance),
        },
        n=experiment.n,
        validity=Validity.UPPER_BOUND,
        method=(
            "messages outside the common part of some of the others' rows revealed above, outputs "
            "merged into two groups below"
        ),
        source=(
            "post-processing of the hockey-stick divergence: B. Balle, G. Barthe, M. Gaboardi, "
            f"arXiv:1807.01647v2; {BLANKET_SOURCE}"
        ),
        setting=experiment.to_dict(),
    )


def _curve(
    experiment: ShuffleExperiment,
    pair: tuple[int, int],
    below: list[ExactProfile],
    direction: Literal["forward", "reverse"],
    rtol: float,
) -> Curve:
    laws = hidden_curves(experiment, pair, rtol)

    def log_bracket(epsilon: float) -> Bracket:
        upper = min(law.at(epsilon).upper for law in laws)
        lower = -math.inf
        for profile in below:
            bound, _ = profile.log_bounds(epsilon, direction=direction)
            lower = max(lower, bound - _MERGING_ROUNDING)
        return Bracket(lower, upper)

    return Curve(log_bracket, max(law.loss for law in laws), rtol)


def hidden_curves(experiment: ShuffleExperiment, pair: tuple[int, int], rtol: float) -> list[Curve]:
    """Return upper bounds on the divergence of P from Q: each hides the messages of some others.

    The differing user holds a under Q and b under P for the pair (a, b).
    """
    randomizer = experiment.randomizer
    others = experiment.others or {pair[0]: 0}
    curves = [
        homogeneous_law(randomizer, *pair, z).among(count + 1).curve(rtol)
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
        curves.append(law.among(hidden + 1).curve(rtol))
    return curves


def _merged_profiles(experiment: ShuffleExperiment) -> list[ExactProfile]:
    """Return exact profiles of the experiment with its outputs merged into two groups."""
    randomizer = experiment.randomizer
    if isinstance(randomizer, ContinuousNoise):
        return []
    held = tuple(experiment.others)
    merged = randomizer.merged((*experiment.pair, *held))
    order = np.argsort(merged.log_ratios[1], kind="stable")
    n_cuts = order.size - 1
    cuts = np.unique(np.linspace(1, n_cuts, min(n_cuts, _MOST_CUTS)).astype(np.int64))
    counts = dict(enumerate(experiment.others.values(), start=2))
    found = []
    for cut in cuts.tolist() if n_cuts else []:
        upper = merged.rows[:, order[cut:]].sum(axis=1)
        lower = merged.rows[:, order[:cut]].sum(axis=1)
        two = Randomizer(np.column_stack((lower, upper)))
        merged_experiment = ShuffleExperiment(two, experiment.n, others=counts, pair=(0, 1))
        rows = two.merged((0, 1, *counts))
        if rows.rows.shape[1] == 2:
            found.append(ExactProfile(merged_experiment, rows))
    return found
