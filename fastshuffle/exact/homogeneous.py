"""Certified profiles of experiments whose other users all hold the same input."""

import math

import numpy as np

from fastshuffle._background import BackgroundPair
from fastshuffle._validation import UnsupportedSettingError
from fastshuffle.bracket import BracketProfile
from fastshuffle.experiment import ShuffleExperiment
from fastshuffle.profile import Validity
from fastshuffle.randomizers import LocalRandomizer, MergedRows

_SMALLEST_PROBABILITY = float(np.finfo(np.float64).tiny)


def underflows(merged: MergedRows) -> bool:
    """Whether a probability is so small that its double is 0 or has lost digits."""
    small = (merged.rows < _SMALLEST_PROBABILITY) & (merged.log_rows > -math.inf)
    with np.errstate(divide="ignore"):
        lost = np.log(merged.rows[small]) - merged.log_rows[small]
    return bool((np.abs(lost) > 1e-12).any())


def require_no_underflow(randomizer: LocalRandomizer, merged: MergedRows) -> None:
    """Raise an error if a probability is positive but too small for a double."""
    if underflows(merged):
        smallest = float(merged.log_rows[merged.log_rows > -math.inf].min())
        raise UnsupportedSettingError(
            "probabilities must be at least 1e-308 where the outputs form more than 2 groups, got "
            f"exp({smallest!r}) for {randomizer!r}"
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
    forward = BackgroundPair(others, second, first, n=experiment.n, losses=losses)
    reverse = BackgroundPair(others, first, second, n=experiment.n, losses=-losses)
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
