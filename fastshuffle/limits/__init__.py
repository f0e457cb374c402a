"""The limits of the theory: Fisher constants and approximate profiles, each named for what it is.

An approximation is proved on neither side. Every profile here says so in its ``validity``, and
states in ``region`` where it is meant.
"""

from fastshuffle.limits._profile import LimitProfile
from fastshuffle.limits.berry_esseen import BerryEsseenBound, berry_esseen_bound
from fastshuffle.limits.compound_poisson import CompoundPoissonProfile, compound_poisson_profile
from fastshuffle.limits.domination import gdp_mu
from fastshuffle.limits.edgeworth import EdgeworthProfile, edgeworth_profile
from fastshuffle.limits.expansions import (
    DivergenceExpansion,
    chi_square_expansion,
    f_divergence_expansion,
    hellinger_expansion,
    jensen_shannon_expansion,
    kl_expansion,
    renyi_expansion,
)
from fastshuffle.limits.fisher import (
    WorstFisherConstant,
    chi_square,
    fisher_constant,
    mixture_fisher_constant,
    worst_fisher_constant,
)
from fastshuffle.limits.gaussian import (
    GaussianProfile,
    TangentProfile,
    gaussian_profile,
    tangent_profile,
)
from fastshuffle.limits.hybrid import HybridProfile, hybrid_profile
from fastshuffle.limits.messages import MessageConstants, message_constants
from fastshuffle.limits.poisson import ShiftProfile, poisson_profile, skellam_profile
from fastshuffle.limits.proved import berry_esseen_profile
from fastshuffle.limits.regime import LimitError, Regime, regime

__all__ = [
    "BerryEsseenBound",
    "CompoundPoissonProfile",
    "DivergenceExpansion",
    "EdgeworthProfile",
    "GaussianProfile",
    "HybridProfile",
    "LimitError",
    "LimitProfile",
    "MessageConstants",
    "Regime",
    "ShiftProfile",
    "TangentProfile",
    "WorstFisherConstant",
    "berry_esseen_bound",
    "berry_esseen_profile",
    "chi_square",
    "chi_square_expansion",
    "compound_poisson_profile",
    "edgeworth_profile",
    "f_divergence_expansion",
    "fisher_constant",
    "gaussian_profile",
    "gdp_mu",
    "hellinger_expansion",
    "hybrid_profile",
    "jensen_shannon_expansion",
    "kl_expansion",
    "message_constants",
    "mixture_fisher_constant",
    "poisson_profile",
    "regime",
    "renyi_expansion",
    "skellam_profile",
    "tangent_profile",
    "worst_fisher_constant",
]
