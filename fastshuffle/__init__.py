"""Exact finite-n privacy of the shuffle model of differential privacy."""

from fastshuffle.exact import (
    ExactProfile,
    WorstCaseProfile,
    WorstDataset,
    exact_profile,
    worst_case_profile,
)
from fastshuffle.experiment import ShuffleExperiment
from fastshuffle.profile import DeltaWarning, PrivacyProfile, Validity
from fastshuffle.randomizers import Randomizer, binary_randomized_response

__all__ = [
    "DeltaWarning",
    "ExactProfile",
    "PrivacyProfile",
    "Randomizer",
    "ShuffleExperiment",
    "Validity",
    "WorstCaseProfile",
    "WorstDataset",
    "binary_randomized_response",
    "exact_profile",
    "worst_case_profile",
]

__version__ = "0.1.0"
