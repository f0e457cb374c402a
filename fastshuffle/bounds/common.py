"""What the universal bounds share."""

from typing import Any

from fastshuffle._validation import UnsupportedSettingError
from fastshuffle.bracket import BracketProfile, Curve
from fastshuffle.profile import Validity
from fastshuffle.randomizers import LocalRandomizer

# A bound over all pairs of more inputs than this would take minutes.
_MOST_INPUTS = 64


def check_randomizer(randomizer: Any) -> LocalRandomizer:
    """Return a randomizer with at least two inputs."""
    if not isinstance(randomizer, LocalRandomizer):
        raise TypeError(f"randomizer must be a Randomizer, got {type(randomizer).__name__}")
    if randomizer.n_inputs < 2:
        raise ValueError(f"randomizer must have at least 2 inputs, got {randomizer.n_inputs}")
    return randomizer


def all_pairs(randomizer: LocalRandomizer) -> tuple[tuple[int, int], ...]:
    """Return an ordered pair of every kind, if they are not too many."""
    if len(randomizer.representative_inputs()) > _MOST_INPUTS:
        raise UnsupportedSettingError(
            f"randomizer must have at most {_MOST_INPUTS} inputs unless a pair is given, got "
            f"{randomizer.n_inputs}"
        )
    return randomizer.representative_pairs()


def unordered_pairs(randomizer: LocalRandomizer) -> list[tuple[int, int]]:
    """Return a pair (a, b), a < b, of every kind, for what is the same for (a, b) and (b, a)."""
    return list(dict.fromkeys((min(pair), max(pair)) for pair in all_pairs(randomizer)))


def upper_bound(
    forward: Curve, reverse: Curve, n: int, method: str, source: str, setting: dict[str, Any]
) -> BracketProfile:
    """Return the upper ends of two curves as an UPPER_BOUND."""
    return BracketProfile(
        {"forward": forward, "reverse": reverse},
        n=n,
        validity=Validity.UPPER_BOUND,
        method=method,
        source=source,
        setting=setting,
    )
