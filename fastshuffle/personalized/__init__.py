"""Users with their own (epsilon_i, delta_i): exact curves, bounds, and the published formula."""

from fastshuffle.personalized.clones import ClonesProfile, personalized_clone_profile
from fastshuffle.personalized.exact import (
    KnownBitsProfile,
    WorstBitsProfile,
    personalized_exact_profile,
)
from fastshuffle.personalized.gdp import (
    PersonalizedGaussianProfile,
    personalized_gdp_mu,
    personalized_gdp_profile,
)
from fastshuffle.personalized.k_ary import KaryProfile, personalized_k_rr_profile
from fastshuffle.personalized.result import PersonalizedProfile

__all__ = [
    "ClonesProfile",
    "KaryProfile",
    "KnownBitsProfile",
    "PersonalizedGaussianProfile",
    "PersonalizedProfile",
    "WorstBitsProfile",
    "personalized_clone_profile",
    "personalized_exact_profile",
    "personalized_gdp_mu",
    "personalized_gdp_profile",
    "personalized_k_rr_profile",
]
