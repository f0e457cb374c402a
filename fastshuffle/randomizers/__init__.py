"""Local randomizers: what one user sends, by its matrix or as a named mechanism."""

from fastshuffle.randomizers.base import LocalRandomizer
from fastshuffle.randomizers.binary import (
    asymmetric_randomized_response,
    binary_randomized_response,
)
from fastshuffle.randomizers.bundle import bundle
from fastshuffle.randomizers.continuous import gaussian, laplace
from fastshuffle.randomizers.frequency import FrequencyRandomizer
from fastshuffle.randomizers.gaussian import discretized_gaussian
from fastshuffle.randomizers.hadamard import hadamard_response
from fastshuffle.randomizers.hashing import binary_local_hashing, optimized_local_hashing
from fastshuffle.randomizers.k_ary import k_randomized_response
from fastshuffle.randomizers.laplace import discrete_laplace, discretized_laplace
from fastshuffle.randomizers.matrix import Randomizer
from fastshuffle.randomizers.merging import MergedRows
from fastshuffle.randomizers.permanent import rappor
from fastshuffle.randomizers.subset import subset_selection
from fastshuffle.randomizers.unary import optimized_unary_encoding, symmetric_unary_encoding

__all__ = [
    "FrequencyRandomizer",
    "LocalRandomizer",
    "MergedRows",
    "Randomizer",
    "asymmetric_randomized_response",
    "binary_local_hashing",
    "binary_randomized_response",
    "bundle",
    "discrete_laplace",
    "discretized_gaussian",
    "discretized_laplace",
    "gaussian",
    "hadamard_response",
    "k_randomized_response",
    "laplace",
    "optimized_local_hashing",
    "optimized_unary_encoding",
    "rappor",
    "subset_selection",
    "symmetric_unary_encoding",
]
