"""Which profiles may be composed, and of what they are profiles."""

from typing import Any

from fastshuffle._validation import UnsupportedSettingError
from fastshuffle.profile import RELATION, PrivacyProfile, Validity


def check_guarantee(name: str, profile: Any) -> PrivacyProfile:
    """Return a profile that may be quoted as a guarantee."""
    if not isinstance(profile, PrivacyProfile):
        raise TypeError(f"{name} must be a PrivacyProfile, got {type(profile).__name__}")
    if profile.validity not in {Validity.EXACT, Validity.UPPER_BOUND}:
        raise UnsupportedSettingError(
            f"{name} must be EXACT or an UPPER_BOUND to give a guarantee, got {profile.validity}"
        )
    if profile.relation != RELATION:
        raise UnsupportedSettingError(
            f"{name} must be for the neighbours {RELATION!r}, got {profile.relation!r}"
        )
    return profile


def is_of_one_pair(profile: PrivacyProfile) -> bool:
    """Whether a profile is that of two given datasets, and not of all neighbouring ones."""
    return "others" in profile.to_dict()["setting"]


def is_of_users_alike(profile: PrivacyProfile) -> bool:
    """Whether a profile holds for all neighbouring datasets of users with one randomizer."""
    return {"others", "epsilon_i", "budgets"}.isdisjoint(profile.to_dict()["setting"])
