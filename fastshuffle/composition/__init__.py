"""Several rounds about the same users: certified composition, and rounds with a sample of them."""

from fastshuffle.composition.composed import ComposedProfile, composed_profile
from fastshuffle.composition.gaussian import ComposedGaussianProfile, composed_gaussian_profile
from fastshuffle.composition.subsampling import SubsampledProfile, subsampled_profile

__all__ = [
    "ComposedGaussianProfile",
    "ComposedProfile",
    "SubsampledProfile",
    "composed_gaussian_profile",
    "composed_profile",
    "subsampled_profile",
]
