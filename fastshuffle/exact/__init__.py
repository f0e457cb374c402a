"""Exact profiles of an experiment, and the certified worst case over all datasets."""

from fastshuffle.exact.binary import ExactProfile
from fastshuffle.exact.dispatch import exact_profile, worst_case_profile
from fastshuffle.exact.revealing import revealing_profile
from fastshuffle.exact.shared_channel import shared_channel_profile
from fastshuffle.exact.unbundled import UnbundledProfile
from fastshuffle.exact.worst_case import WorstCaseProfile, WorstDataset

__all__ = [
    "ExactProfile",
    "UnbundledProfile",
    "WorstCaseProfile",
    "WorstDataset",
    "exact_profile",
    "revealing_profile",
    "shared_channel_profile",
    "worst_case_profile",
]
