"""The best lower bound of delta that is known for any composition and any alphabet."""

import math

import numpy as np

from fastshuffle.exact._replacing import log_clear_mass
from fastshuffle.exact._scores import Users, log_lower_delta
from fastshuffle.exact.binary import ExactProfile
from fastshuffle.exact.unbundled import UnbundledProfile
from fastshuffle.experiment import ShuffleExperiment
from fastshuffle.randomizers import Randomizer

_MOST_CUTS = 16
# Rounding of a clear mass, and of the rows of merged outputs.
_CLEAR_ROUNDING = 1e-13
_MERGING_ROUNDING = 1e-9


class Below:
    """Lower bounds of log delta, each by an event or by a post-processing of the histogram.

    What is sent under P alone; whether a sum of scores is large (`fastshuffle.exact._scores`),
    sharp for many users; and the exact profile with the outputs merged into two groups, those of
    the largest losses and the rest, 16 at most, which is better for few users, for rare outputs and
    next to the largest loss.
    """

    def __init__(self, users: Users) -> None:
        self._users = users
        alone = (users.null == 0.0) & ~users.rows.any(axis=0)
        clear = float(users.alternative[alone].sum())
        self._clear = log_clear_mass(clear, users.messages) - _CLEAR_ROUNDING
        self._merged = _merged_profiles(users)

    def log_delta(self, epsilon: float) -> float:
        """Return a lower bound of log delta, -inf where none is found."""
        found = [self._clear]
        for profile in self._merged:
            bound, _ = profile.log_bounds(epsilon, direction="forward")
            found.append(bound - _MERGING_ROUNDING)
        if epsilon < math.inf:
            found.append(log_lower_delta(self._users, epsilon))
        return max(found)


def _merged_profiles(users: Users) -> list[ExactProfile | UnbundledProfile]:
    """Return exact profiles with the outputs merged into two groups."""
    matrix = np.vstack((users.null, users.alternative, users.rows))
    order = np.argsort(users.losses, kind="stable")
    n_cuts = order.size - 1
    if n_cuts == 0:
        return []
    cuts = np.unique(np.linspace(1, n_cuts, min(n_cuts, _MOST_CUTS)).astype(np.int64))
    held = {x: int(count) // users.messages for x, count in enumerate(users.counts.tolist(), 2)}
    found: list[ExactProfile | UnbundledProfile] = []
    for cut in cuts.tolist():
        below, above = (matrix[:, part].sum(axis=1) for part in (order[:cut], order[cut:]))
        two = Randomizer(np.column_stack((below, above)))
        experiment = ShuffleExperiment(
            two, 1 + sum(held.values()), others=held, messages=users.messages
        )
        rows = two.merged((0, 1, *experiment.others))
        if rows.rows.shape[1] == 2:
            kind = ExactProfile if users.messages == 1 else UnbundledProfile
            found.append(kind(experiment, rows))
    return found
