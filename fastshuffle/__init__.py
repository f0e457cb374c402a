"""Exact finite-n privacy of the shuffle model of differential privacy."""

from fastshuffle.bounds import (
    blanket_profile,
    chernoff_profile,
    clone_profile,
    stronger_clone_profile,
    variation_ratio_profile,
)
from fastshuffle.bracket import BracketProfile
from fastshuffle.exact import (
    ExactProfile,
    WorstCaseProfile,
    WorstDataset,
    exact_profile,
    worst_case_profile,
)
from fastshuffle.experiment import ShuffleExperiment
from fastshuffle.limits import (
    LimitProfile,
    WorstFisherConstant,
    chi_square,
    fisher_constant,
    mixture_fisher_constant,
    worst_fisher_constant,
)
from fastshuffle.profile import DeltaWarning, PrivacyProfile, Validity
from fastshuffle.randomizers import (
    FrequencyRandomizer,
    LocalRandomizer,
    MergedRows,
    Randomizer,
    asymmetric_randomized_response,
    binary_local_hashing,
    binary_randomized_response,
    discrete_laplace,
    discretized_gaussian,
    discretized_laplace,
    hadamard_response,
    k_randomized_response,
    optimized_local_hashing,
    optimized_unary_encoding,
    rappor,
    subset_selection,
    symmetric_unary_encoding,
)

__all__ = [
    "BracketProfile",
    "DeltaWarning",
    "ExactProfile",
    "FrequencyRandomizer",
    "LimitProfile",
    "LocalRandomizer",
    "MergedRows",
    "PrivacyProfile",
    "Randomizer",
    "ShuffleExperiment",
    "Validity",
    "WorstCaseProfile",
    "WorstDataset",
    "WorstFisherConstant",
    "asymmetric_randomized_response",
    "binary_local_hashing",
    "binary_randomized_response",
    "blanket_profile",
    "chernoff_profile",
    "chi_square",
    "clone_profile",
    "discrete_laplace",
    "discretized_gaussian",
    "discretized_laplace",
    "exact_profile",
    "fisher_constant",
    "hadamard_response",
    "k_randomized_response",
    "mixture_fisher_constant",
    "optimized_local_hashing",
    "optimized_unary_encoding",
    "rappor",
    "stronger_clone_profile",
    "subset_selection",
    "symmetric_unary_encoding",
    "variation_ratio_profile",
    "worst_case_profile",
    "worst_fisher_constant",
]

__version__ = "0.1.0"
