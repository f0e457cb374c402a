"""Certified profiles of experiments whose other users all hold the same input."""

import math

from fastshuffle._background import BackgroundPair
from fastshuffle.bracket import BracketProfile
from fastshuffle.experiment import ShuffleExperiment
from fastshuffle.profile import Validity
from fastshuffle.randomizers import LocalRandomizer, MergedRows


def require_no_underflow(randomizer: LocalRandomizer, merged: MergedRows) -> None:
    """Raise a ValueError if a probability is positive but 0 as a double."""
    lost = (merged.rows == 0.0) & (merged.log_rows > -math.inf)
    if lost.any():
        raise ValueError(
            "probabilities must be at least 1e-308 where the outputs form more than 2 groups, got "
            f"exp({float(merged.log_rows[lost].min())!r}) for {randomizer!r}"
        )


def homogeneous_profile(
    experiment: ShuffleExperiment, merged: MergedRows, rtol: float
) -> BracketProfile:
    """Return the bracketed profile of an experiment whose others all hold one input.

    ``merged`` has the rows of the differing user in the first and in the second dataset and of
    the others, in this order.
    """
    first, second, others = merged.rows
    require_no_underflow(experiment.randomizer, merged)
    losses = merged.log_ratios[1]
    forward = BackgroundPair(others, second, first, n=experiment.n, loss=float(losses.max()))
    reverse = BackgroundPair(others, first, second, n=experiment.n, loss=float(-losses.min()))
    return BracketProfile(
        {"forward": forward.curve(rtol), "reverse": reverse.curve(rtol)},
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
