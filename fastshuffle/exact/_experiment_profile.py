"""What the exact profiles of an experiment share."""

import math
from abc import abstractmethod
from typing import Any

from fastshuffle._typing import Direction
from fastshuffle.experiment import ShuffleExperiment
from fastshuffle.profile import PrivacyProfile


class ExperimentProfile(PrivacyProfile):
    """A profile of two known datasets that knows their Renyi divergences."""

    def __init__(self, experiment: ShuffleExperiment) -> None:
        self._experiment = experiment

    @property
    def experiment(self) -> ShuffleExperiment:
        """The experiment the profile belongs to."""
        return self._experiment

    @property
    def n(self) -> int:
        """Number of users, including the one who differs."""
        return self._experiment.n

    def _setting(self) -> dict[str, Any]:
        return self._experiment.to_dict()

    @abstractmethod
    def renyi(self, order: float, *, direction: Direction = "both") -> float:
        """Return the Renyi divergence of the given order > 0, in nats."""

    def kl(self, *, direction: Direction = "both") -> float:
        """Return the Kullback-Leibler divergence in nats, the Renyi divergence of order 1.

        Parameters
        ----------
        direction : {"both", "forward", "reverse"}
            Forward is the divergence of P from Q, both the larger of the two.

        Returns
        -------
        float
            The divergence, which may be inf. Accuracy and cost as for `renyi`.
        """
        return self.renyi(1.0, direction=direction)

    def chi_square(self, *, direction: Direction = "both") -> float:
        """Return the chi-square divergence, ``sum (P - Q)**2 / Q`` in the forward direction.

        Parameters
        ----------
        direction : {"both", "forward", "reverse"}
            Forward divides by Q, reverse by P, both is the larger of the two.

        Returns
        -------
        float
            The divergence, which may be inf. Accuracy and cost as for `renyi`.
        """
        log_moment = self.renyi(2.0, direction=direction)
        return math.expm1(log_moment) if log_moment < 709.0 else math.inf

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._experiment!r}>"
