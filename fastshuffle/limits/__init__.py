"""The limits of the theory: Fisher constants and approximate profiles, each named for what it is.

An approximation is proved on neither side. Every profile here says so in its ``validity``, and
states in ``region`` where it is meant.
"""

from fastshuffle.limits._profile import LimitProfile
from fastshuffle.limits.fisher import (
    WorstFisherConstant,
    chi_square,
    fisher_constant,
    mixture_fisher_constant,
    worst_fisher_constant,
)

__all__ = [
    "LimitProfile",
    "WorstFisherConstant",
    "chi_square",
    "fisher_constant",
    "mixture_fisher_constant",
    "worst_fisher_constant",
]
