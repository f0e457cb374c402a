"""What a protocol returns: the estimate and the guarantee under which it was made."""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from fastshuffle._typing import FloatArray
from fastshuffle.protocols.guarantee import Guarantee

__all__ = ["EstimateResult", "ProtocolResult"]


@dataclass(frozen=True, eq=False)
class ProtocolResult:
    """The outcome of a protocol and the guarantee under which it was made.

    Attributes
    ----------
    protocol : str
        What the users and the analyst did, in words.
    estimate : float or numpy.ndarray
        What the analyst computes from the shuffled messages.
    clipped : int
        How many values lay outside their range and were moved to its end before use.
    guarantee : Guarantee
        The privacy of every user, before and after the shuffle.
    """

    protocol: str
    estimate: float | FloatArray
    clipped: int
    guarantee: Guarantee

    @property
    def n(self) -> int:
        """Number of users."""
        return self.guarantee.n

    def to_dict(self, *, delta: float) -> dict[str, Any]:
        """Return the result in plain Python values, ready for JSON.

        Parameters
        ----------
        delta : float
            Privacy parameter in [0, 1], at which the guarantee states epsilon.

        Returns
        -------
        dict
            The estimate, what it is, and ``"guarantee"``.

        Raises
        ------
        TypeError, ValueError
            If delta is no real number in [0, 1].
        """
        return {
            "protocol": self.protocol,
            "n": self.n,
            "clipped": self.clipped,
            "estimate": plain(self.estimate),
            "guarantee": self.guarantee.to_dict(delta=delta),
        }

    def to_json(self, *, delta: float) -> str:
        """Return `to_dict` as JSON text, to keep beside a release.

        Parameters
        ----------
        delta : float
            Privacy parameter in [0, 1], at which the guarantee states epsilon.

        Returns
        -------
        str
            Valid JSON, without infinities or nan.

        Raises
        ------
        TypeError, ValueError
            If delta is no real number in [0, 1].
        """
        return json.dumps(self.to_dict(delta=delta), indent=2, allow_nan=False)


@dataclass(frozen=True, eq=False)
class EstimateResult(ProtocolResult):
    """An unbiased estimate with its variance and its confidence interval.

    Attributes
    ----------
    target : str
        What the estimate is unbiased for.
    variance : float or numpy.ndarray
        An estimate, from the messages, of the variance of ``estimate`` over the randomness of the
        users, their values being fixed.
    lower, upper : float or numpy.ndarray
        The ends of a confidence interval for the target; of an array, for each entry alone.
    confidence : float
        The probability with which an interval holds.
    interval : str
        How the interval is made: whether its confidence holds at every n or in the limit.
    """

    target: str
    variance: float | FloatArray
    lower: float | FloatArray
    upper: float | FloatArray
    confidence: float
    interval: str

    def to_dict(self, *, delta: float) -> dict[str, Any]:
        """Return the result in plain Python values, ready for JSON.

        Parameters
        ----------
        delta : float
            Privacy parameter in [0, 1], at which the guarantee states epsilon.

        Returns
        -------
        dict
            The estimate with its interval, what they are, and ``"guarantee"``.

        Raises
        ------
        TypeError, ValueError
            If delta is no real number in [0, 1].
        """
        content = super().to_dict(delta=delta)
        guarantee = content.pop("guarantee")
        return {
            **content,
            "target": self.target,
            "variance": plain(self.variance),
            "lower": plain(self.lower),
            "upper": plain(self.upper),
            "confidence": self.confidence,
            "interval": self.interval,
            "guarantee": guarantee,
        }


def plain(value: float | FloatArray) -> Any:
    """Return a number or an array as plain Python values."""
    return value.tolist() if isinstance(value, np.ndarray) else value
