"""How often the intervals of simulations and audits hold, counted over many repeats.

An interval said to hold with probability 0.95 should do so in at least 94 percent of 2,000 repeats,
which leaves two standard deviations to chance, and one that holds in more than 99 percent gives
samples away. Intervals that hold together at many epsilons, and those of identical laws, hold more
often by their nature.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fastshuffle import Randomizer, ShuffleExperiment, Simulation, audit, exact_profile
from fastshuffle.monte_carlo.intervals import probability_bounds

CONFIDENCE = 0.95
REPEATS = 2000
LOWEST, HIGHEST = 0.94, 0.99
_QUICK_REPEATS = 100
_SEED = 20261130
_SAMPLES = 8000
_TARGET = 1e-6

_ROWS = [[0.5, 0.3, 0.2], [0.2, 0.35, 0.45], [0.3, 0.3, 0.4]]
_BINARY = [[0.75, 0.25], [0.5, 0.5], [0.4, 0.6], [0.625, 0.375]]
_SAME = [[0.5, 0.25, 0.25], [0.5, 0.25, 0.25], [0.25, 0.25, 0.5]]
_DIRECTIONS: tuple[Literal["forward", "reverse"], ...] = ("forward", "reverse")


@dataclass(frozen=True)
class CoverageRow:
    """How often an interval held.

    Attributes
    ----------
    interval : str
        What it is for.
    setting : str
        In which experiment.
    repeats : int
        How often it was formed.
    held : int
        How often it held.
    least, most : float
        Between which shares of the repeats it should.
    width : float
        Its width relative to the true value, on average.
    """

    interval: str
    setting: str
    repeats: int
    held: int
    least: float
    most: float
    width: float

    @property
    def passed(self) -> bool:
        """Whether it held as often as it should; few repeats leave more to chance."""
        chance = 0.0 if self.repeats >= REPEATS else 3.0 * math.sqrt(0.05 * 0.95 / self.repeats)
        return self.least - chance <= self.held / self.repeats <= self.most + chance


def _simulated(
    experiment: ShuffleExperiment,
    setting: str,
    *,
    epsilons: Sequence[float] | None,
    samples: int,
    repeats: int,
) -> CoverageRow:
    """Count how often the intervals of both directions hold at all epsilons of the grid."""
    exact = exact_profile(experiment)
    empty = Simulation(experiment, epsilons=epsilons)
    grid = empty.epsilons
    truth = {name: exact.bounds(grid, direction=name) for name in _DIRECTIONS}
    rng = np.random.default_rng(_SEED)
    held, width = 0, 0.0
    for _ in range(repeats):
        simulation = copy.copy(empty)
        simulation.run(samples, rng, workers=1)
        profile = simulation.profile(confidence=CONFIDENCE)
        found = {name: profile.bounds(grid, direction=name) for name in _DIRECTIONS}
        held += all(
            bool(
                (found[name][0] <= truth[name][1]).all()
                and (truth[name][0] <= found[name][1]).all()
            )
            for name in _DIRECTIONS
        )
        lower, upper = found["forward"]
        if truth["forward"][1][0] > 0.0:
            width += float((upper[0] - lower[0]) / truth["forward"][1][0]) / repeats
    single = len(grid) == 1 and truth["forward"][1][0] > 0.0
    return CoverageRow(
        f"delta at {len(grid)} epsilon{'s'[: len(grid) - 1]}, both directions",
        setting,
        repeats,
        held,
        LOWEST,
        HIGHEST if single else 1.0,
        width,
    )


def _targeted(experiment: ShuffleExperiment, setting: str, repeats: int) -> CoverageRow:
    """Count how often the intervals of both directions hold for the epsilon of the target."""
    exact = exact_profile(experiment, rtol=1e-6)
    empty = Simulation(experiment, target_delta=_TARGET)
    truth = {name: float(exact.epsilon(_TARGET, direction=name)) for name in _DIRECTIONS}
    rng = np.random.default_rng(_SEED + 3)
    held, width = 0, 0.0
    for _ in range(repeats):
        simulation = copy.copy(empty)
        simulation.run(_SAMPLES, rng, workers=1)
        profile = simulation.profile(confidence=CONFIDENCE)
        found = {name: profile.epsilon_bounds(_TARGET, direction=name) for name in _DIRECTIONS}
        held += all(found[name][0] <= truth[name] <= found[name][1] for name in _DIRECTIONS)
        lower, upper = found["forward"]
        width += float(upper - lower) / truth["forward"] / repeats
    name = f"epsilon at delta = {_TARGET:g}, both directions"
    return CoverageRow(name, setting, repeats, held, LOWEST, 1.0, width)


def _audited(repeats: int) -> CoverageRow:
    """Count how often an audit of two samples of one law proves nothing, as it should."""
    rng = np.random.default_rng(_SEED + 1)
    held = 0
    for _ in range(repeats):
        p, q = (rng.multinomial(20, _ROWS[0], size=100) for _ in range(2))
        held += audit(p, q, delta=0.0, rng=rng, confidence=CONFIDENCE).epsilon_lower == 0.0
    setting = "two samples of 100 runs of one law"
    return CoverageRow("epsilon of an audit", setting, repeats, held, LOWEST, 1.0, 0.0)


def _counted(repeats: int) -> CoverageRow:
    """Count how often the Clopper-Pearson interval holds."""
    rng = np.random.default_rng(_SEED + 2)
    trials, probability = 1000, 0.1
    held, width = 0, 0.0
    for seen in rng.binomial(trials, probability, size=repeats).tolist():
        lower, upper = probability_bounds(seen, trials, 0.5 * (1.0 - CONFIDENCE))
        held += lower <= probability <= upper
        width += (upper - lower) / probability / repeats
    setting = f"probability {probability:g}, {trials} trials"
    return CoverageRow("a probability", setting, repeats, held, LOWEST, HIGHEST, width)


def check_coverage(*, quick: bool, progress: Callable[[str], None]) -> list[CoverageRow]:
    """Count how often intervals of 95 percent hold.

    Parameters
    ----------
    quick : bool
        Fewer repeats.
    progress : callable
        Called with a line of text before each kind of interval.

    Returns
    -------
    list of CoverageRow
        One for each kind.
    """
    repeats = _QUICK_REPEATS if quick else REPEATS
    rows = Randomizer(_ROWS)
    settings: list[tuple[str, ShuffleExperiment, list[float] | None]] = [
        ("n = 1000, the others all at a third input, epsilon = 0.1", _third(rows), [0.1]),
        ("n = 100, k = 50, epsilon = 0.1", ShuffleExperiment(rows, 100, k=50), [0.1]),
        ("n = 50, k = 1, epsilon = 0.4", ShuffleExperiment(rows, 50, k=1), [0.4]),
        ("n = 100, the others at four inputs, epsilon = 0", _four(), [0.0]),
        ("n = 1000, the others all at a third input", _third(rows), None),
        ("n = 100, k = 50, identical rows", ShuffleExperiment(Randomizer(_SAME), 100, k=50), [0.0]),
    ]
    found = []
    for setting, experiment, epsilons in settings:
        progress(f"coverage: {setting}")
        found.append(
            _simulated(experiment, setting, epsilons=epsilons, samples=_SAMPLES, repeats=repeats)
        )
    setting, experiment, _ = settings[4]
    progress(f"coverage: {setting}, at a target")
    found.append(_targeted(experiment, setting, repeats))
    progress("coverage: audits and probabilities")
    return [*found, _audited(repeats), _counted(repeats)]


def _third(rows: Randomizer) -> ShuffleExperiment:
    return ShuffleExperiment(rows, 1000, others={2: 999})


def _four() -> ShuffleExperiment:
    return ShuffleExperiment(Randomizer(_BINARY), 100, others={0: 30, 1: 30, 2: 20, 3: 19})
