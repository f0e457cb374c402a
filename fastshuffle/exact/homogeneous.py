"""Certified profiles of experiments whose other users all hold the same input."""

from fastshuffle._background import BackgroundPair
from fastshuffle.bracket import BracketProfile
from fastshuffle.experiment import ShuffleExperiment
from fastshuffle.profile import Validity
from fastshuffle.randomizers import MergedRows


def homogeneous_profile(
    experiment: ShuffleExperiment, merged: MergedRows, rtol: float
) -> BracketProfile:
    """Return the bracketed profile of an experiment whose others all hold one input.

    ``merged`` has the rows of the differing user in the first and in the second dataset and of
    the others, in this order.
    """
    first, second, others = merged.rows
    lost = (merged.rows == 0.0) & (merged.log_rows > -float("inf"))
    if lost.any():
        smallest = float(merged.log_rows[lost].min())
        raise ValueError(
            "probabilities must be at least 1e-308 where the outputs form more than 2 groups, got "
            f"exp({smallest!r}) for {experiment.randomizer!r}"
        )
    losses = merged.log_ratios[1]
    forward = BackgroundPair(others, second, first, experiment.n)
    reverse = BackgroundPair(others, first, second, experiment.n)
    return BracketProfile(
        {
            "forward": forward.curve(rtol, loss=float(losses.max())),
            "reverse": reverse.curve(rtol, loss=float((-losses).max())),
        },
        n=experiment.n,
        validity=Validity.UPPER_BOUND,
        method=(
            "mean of the positive part of a sum of likelihood ratios, bracketed on a lattice to a "
            f"relative {rtol:g}"
        ),
        source=(
            "definition of the hockey-stick divergence; exact likelihood ratio of A. Shvets, "
            "arXiv:2602.09029v3, section 3"
        ),
        setting=experiment.to_dict(),
    )
