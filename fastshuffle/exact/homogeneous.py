"""Certified profiles of experiments whose other users all hold the same input."""

import math

import numpy as np

from fastshuffle._background import LEAST_MASS
from fastshuffle._continuous import ContinuousLaw
from fastshuffle._validation import UnsupportedSettingError
from fastshuffle.bounds.largest import HomogeneousLaw
from fastshuffle.bracket import BracketProfile
from fastshuffle.experiment import ShuffleExperiment
from fastshuffle.profile import Validity
from fastshuffle.randomizers import LocalRandomizer, MergedRows
from fastshuffle.randomizers.continuous import ContinuousNoise

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
            f"probabilities must be at least 1e-308 here, got exp({smallest!r}) for {randomizer!r}"
        )


def _require_digits(randomizer: LocalRandomizer, merged: MergedRows) -> None:
    """Raise an error if a probability is positive but too small to be multiplied."""
    require_no_underflow(randomizer, merged)
    small = merged.rows[(merged.rows > 0.0) & (merged.rows < LEAST_MASS)]
    if small.size:
        raise UnsupportedSettingError(
            f"probabilities must be 0 or at least {LEAST_MASS:g} for a bracket, got "
            f"{float(small.min())!r}"
        )


def homogeneous_law(
    randomizer: LocalRandomizer, a: int, b: int, others: int
) -> HomogeneousLaw | ContinuousLaw:
    """Return the law of a differing user who holds a under Q and b under P, and of the others."""
    if isinstance(randomizer, ContinuousNoise):
        return ContinuousLaw(randomizer, a, b, others)
    merged = randomizer.merged((a, b, others))
    _require_digits(randomizer, merged)
    null, alternative, background = merged.rows
    losses = merged.log_ratios[1]
    return HomogeneousLaw(background, alternative, null, 0.0, float(losses.max()), losses)


def homogeneous_profile(experiment: ShuffleExperiment, rtol: float) -> BracketProfile:
    """Return the bracketed profile of an experiment whose others all hold one input."""
    a, b = experiment.pair
    # if there are no others, any background will do
    held = next(iter(experiment.others), a)
    forward, reverse = (
        homogeneous_law(experiment.randomizer, *pair, held).among(experiment.n).curve(rtol)
        for pair in ((a, b), (b, a))
    )
    return BracketProfile(
        {"forward": forward, "reverse": reverse},
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
