"""The numbers of a curve: each with the datasets and the direction that it is about."""

import math
from collections.abc import Iterator
from typing import NamedTuple, get_args

from fastshuffle._typing import Direction
from fastshuffle.exact import WorstCaseProfile, WorstDataset, exact_profile
from fastshuffle.experiment import ShuffleExperiment
from fastshuffle.profile import PrivacyProfile


class Quote(NamedTuple):
    """A pair of epsilon and delta, and the datasets and the direction that it is about."""

    computed: str  # which of the two
    epsilon: float
    delta: float  # 0 only for a delta that is exactly 0
    log_delta: float
    lower_delta: float  # what is proved from below at epsilon, for the datasets named here
    direction: Direction
    experiment: ShuffleExperiment


def lower_delta(dataset: WorstDataset, epsilon: float) -> float:
    """Return what is proved of delta at epsilon from below, by a dataset in its direction."""
    profile = exact_profile(dataset.experiment)
    lower, _ = profile.bounds(epsilon, direction=dataset.direction)
    return float(lower)


class _Point(NamedTuple):
    """The first four fields of a quote."""

    computed: str
    epsilon: float
    delta: float
    log_delta: float


def worst_case_quotes(
    profile: WorstCaseProfile, deltas: list[float], epsilons: list[float]
) -> list[Quote]:
    """Return a quote for each delta and each epsilon, with the worst dataset found."""
    quotes = []
    for point in _points(profile, deltas, epsilons, "both"):
        worst = profile.argmax(point.epsilon)
        quotes.append(
            Quote(*point, lower_delta(worst, point.epsilon), worst.direction, worst.experiment)
        )
    return quotes


def experiment_quotes(
    profile: PrivacyProfile,
    experiment: ShuffleExperiment,
    deltas: list[float],
    epsilons: list[float],
) -> list[Quote]:
    """Return quotes for each delta and each epsilon: both directions, then either alone."""
    columns = [
        [
            Quote(
                *point,
                profile.bounds(point.epsilon, direction=direction)[0],
                direction,
                experiment,
            )
            for point in _points(profile, deltas, epsilons, direction)
        ]
        for direction in get_args(Direction)
    ]
    return [quote for row in zip(*columns, strict=True) for quote in row]


def _points(
    profile: PrivacyProfile, deltas: list[float], epsilons: list[float], direction: Direction
) -> Iterator[_Point]:
    for delta in deltas:
        epsilon = profile.epsilon(delta, direction=direction)
        yield _Point("epsilon", epsilon, delta, math.log(delta) if delta > 0.0 else -math.inf)
    for epsilon in epsilons:
        log_delta = profile.log_delta(epsilon, direction=direction)
        smallest = 0.0 if log_delta == -math.inf else math.ulp(0.0)
        yield _Point("delta", epsilon, max(math.exp(log_delta), smallest), log_delta)
