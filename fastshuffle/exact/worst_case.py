"""What every certified worst case over all datasets is, and the dataset it names."""

import abc
from dataclasses import dataclass
from typing import Any

from fastshuffle._typing import Direction
from fastshuffle._validation import NONNEGATIVE, check_real
from fastshuffle.experiment import ShuffleExperiment
from fastshuffle.profile import PrivacyProfile, Validity
from fastshuffle.randomizers import LocalRandomizer


@dataclass(frozen=True)
class WorstDataset:
    """A pair of neighbouring datasets, and the direction in which it loses most.

    Attributes
    ----------
    experiment : ShuffleExperiment
        The two datasets: what the others hold and the pair of the differing user.
    direction : {"forward", "reverse"}
        The direction of the larger divergence.
    """

    experiment: ShuffleExperiment
    direction: Direction


class WorstCaseProfile(PrivacyProfile):
    """A bracket of the worst case over all datasets; see `worst_case_profile`."""

    def __init__(self, randomizer: LocalRandomizer, n: int, rtol: float) -> None:
        self._randomizer = randomizer
        self._n = n
        self._rtol = rtol

    @property
    def randomizer(self) -> LocalRandomizer:
        """What every user applies to the input held."""
        return self._randomizer

    @property
    def n(self) -> int:
        """Number of users, including the one who differs."""
        return self._n

    @property
    def validity(self) -> Validity:
        """UPPER_BOUND; ``bounds`` shows how far it may lie above the exact worst case."""
        return Validity.UPPER_BOUND

    def _setting(self) -> dict[str, Any]:
        return {
            "randomizer": self._randomizer.to_dict(),
            "n": self._n,
            "datasets": "all pairs of neighbouring datasets",
            "rtol": self._rtol,
        }

    def _directions(self) -> dict[str, Direction]:
        # the set of ordered neighbouring pairs is symmetric
        return {"": "both"}

    @abc.abstractmethod
    def _worst(self, epsilon: float) -> WorstDataset: ...

    def argmax(self, epsilon: float) -> WorstDataset:
        """Return the worst pair of neighbouring datasets found at epsilon.

        Parameters
        ----------
        epsilon : float
            Privacy parameter, >= 0; inf is allowed.

        Returns
        -------
        WorstDataset
            Its profile, in its direction, is the lower end of ``bounds(epsilon)``.

        Raises
        ------
        TypeError, ValueError
            If epsilon is no real number >= 0.
        """
        return self._worst(check_real("epsilon", epsilon, NONNEGATIVE))

    def __repr__(self) -> str:
        return f"<WorstCaseProfile of {self._randomizer!r}, n = {self._n}>"
