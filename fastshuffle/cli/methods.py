"""Every method for the worst case over all datasets, and how it fares in one setting."""

import math
import time
from collections.abc import Callable
from typing import NamedTuple

from fastshuffle._validation import UnsupportedSettingError
from fastshuffle.bounds import (
    blanket_profile,
    chernoff_profile,
    clone_profile,
    stronger_clone_profile,
    variation_ratio_parameters,
    variation_ratio_profile,
)
from fastshuffle.bounds.clones import OutsideClassError
from fastshuffle.bounds.common import all_pairs
from fastshuffle.exact import WorstCaseProfile, exact_profile, worst_case_profile
from fastshuffle.experiment import ShuffleExperiment
from fastshuffle.limits import gaussian_profile, worst_fisher_constant
from fastshuffle.profile import PrivacyProfile, Validity
from fastshuffle.randomizers import (
    LocalRandomizer,
    binary_randomized_response,
    k_randomized_response,
)

# With them every method runs once before any is timed, so that its kernels are loaded.
_SMALL = (binary_randomized_response(1.0), k_randomized_response(1.0, 3))


class Outcome(NamedTuple):
    """What a method says of epsilon at one delta, or why it says nothing."""

    method: str
    epsilon: float | None
    validity: Validity | None
    source: str | None
    seconds: float | None
    refusal: str | None


class _Answer(NamedTuple):
    epsilon: float
    validity: Validity
    source: str


class Setting(NamedTuple):
    """What the methods are compared at."""

    randomizer: LocalRandomizer
    n: int
    messages: int = 1  # of every user, shuffled one by one


_Method = Callable[[Setting, float], _Answer]
_ProfileOf = Callable[[LocalRandomizer, int], PrivacyProfile]


def _answer(profile: PrivacyProfile, delta: float) -> _Answer:
    return _Answer(profile.epsilon(delta), profile.validity, profile.source)


def _of_single_messages(profile_of: _ProfileOf) -> _Method:
    def answer(setting: Setting, delta: float) -> _Answer:
        if setting.messages > 1:
            # what bounds bundles bounds their messages one by one as well
            raise UnsupportedSettingError("for one message a user, or --bundled")
        return _answer(profile_of(setting.randomizer, setting.n), delta)

    return answer


def _worst_case_profile(setting: Setting) -> WorstCaseProfile:
    return worst_case_profile(setting.randomizer, setting.n, messages=setting.messages)


def _worst_case(setting: Setting, delta: float) -> _Answer:
    return _answer(_worst_case_profile(setting), delta)


def _worst_dataset(setting: Setting, delta: float) -> _Answer:
    """Bound the worst case from below: by an epsilon at which the dataset exceeds delta."""
    worst_case = _worst_case_profile(setting)
    upper = worst_case.epsilon(delta)
    # from the largest loss on delta is 0 for every dataset
    loss = setting.messages * setting.randomizer.epsilon0
    worst = worst_case.argmax(min(upper, loss * (1.0 - 1e-9)))
    profile = exact_profile(worst.experiment)

    def exceeds(epsilon: float) -> bool:
        lower, _ = profile.bounds(epsilon, direction=worst.direction)
        return bool(lower > delta)

    return _Answer(_last(exceeds, upper), Validity.LOWER_BOUND, profile.source)


def _last(holds: Callable[[float], bool], high: float) -> float:
    """Return, to 10 digits, up to where a condition holds that fails from some number on."""
    if not holds(0.0):
        return 0.0
    if high == math.inf:
        if holds(math.inf):
            return math.inf
        high = 1.0
        while holds(high):
            high *= 2.0
    low = 0.0
    while high - low > 1e-10 * high:
        middle = 0.5 * (low + high)
        if holds(middle):
            low = middle
        else:
            high = middle
    return low


def _clones(randomizer: LocalRandomizer, n: int) -> PrivacyProfile:
    if randomizer.epsilon0 == math.inf:
        raise UnsupportedSettingError("randomizer must have a finite epsilon0")
    return clone_profile(randomizer.epsilon0, n)


def _stronger_clones(randomizer: LocalRandomizer, n: int) -> PrivacyProfile:
    try:
        return stronger_clone_profile(randomizer, n)
    except OutsideClassError as error:
        raise UnsupportedSettingError("not of its class") from error


def _variation_ratio(randomizer: LocalRandomizer, n: int) -> PrivacyProfile:
    pairs = {tuple(sorted(pair)) for pair in all_pairs(randomizer)}
    if len(pairs) > 1:
        raise UnsupportedSettingError("its pairs of inputs differ in kind")
    parameters = variation_ratio_parameters(randomizer)
    if not all(map(math.isfinite, parameters)):
        raise UnsupportedSettingError("epsilon0 must be finite and at most 709")
    return variation_ratio_profile(*parameters, n)


def _gaussian_limit(setting: Setting, delta: float) -> _Answer:
    """Return the limit at the dataset that is the worst in the limit."""
    randomizer, n, messages = setting
    _, pair, z = worst_fisher_constant(randomizer)
    experiment = ShuffleExperiment(randomizer, n, others={z: n - 1}, pair=pair, messages=messages)
    return _answer(gaussian_profile(experiment), delta)


_METHODS: dict[str, _Method] = {
    "worst case": _worst_case,
    "worst dataset found": _worst_dataset,
    "privacy blanket": _of_single_messages(blanket_profile),
    "stronger clones": _of_single_messages(_stronger_clones),
    "clones": _of_single_messages(_clones),
    "variation ratio": _of_single_messages(_variation_ratio),
    "Chernoff": _of_single_messages(chernoff_profile),
    "Gaussian limit": _gaussian_limit,
}


def load_kernels(messages: int) -> None:
    """Run every method once in a small setting, so that no time includes loading kernels."""
    for randomizer in _SMALL:
        outcomes(Setting(randomizer, 10, min(messages, 2)), 1e-3)


def outcomes(setting: Setting, delta: float) -> list[Outcome]:
    """Return what every method says, the smallest epsilon first and refusals last."""
    found = [_outcome(name, method, setting, delta) for name, method in _METHODS.items()]
    return sorted(found, key=lambda o: (o.epsilon is None, o.epsilon or 0.0))


def _outcome(name: str, method: _Method, setting: Setting, delta: float) -> Outcome:
    start = time.perf_counter()
    try:
        answer = method(setting, delta)
    except (UnsupportedSettingError, ArithmeticError, RuntimeError) as error:
        reason, _, _ = str(error).partition(", got")
        return Outcome(name, None, None, None, None, reason)
    return Outcome(name, *answer, time.perf_counter() - start, None)
