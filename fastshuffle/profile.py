"""The privacy profile: what every method returns, and the word that says what its numbers are."""

import abc
import enum
import json
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fastshuffle._typing import Direction, FloatArray
from fastshuffle._validation import (
    NONNEGATIVE,
    PROBABILITY,
    Interval,
    check_direction,
    check_reals,
)

__all__ = ["DeltaWarning", "PrivacyProfile", "Validity"]

RELATION = "replace-one, n known"

# Two units in the last place of a logarithm.
_LOG_STEP = 2.0 * float(np.finfo(np.float64).eps)


class DeltaWarning(UserWarning):
    """A delta of 1/n or more was asked for: it allows publishing some user's value outright."""


class Validity(enum.StrEnum):
    """What the numbers of a profile are.

    EXACT is the quantity itself to the stated relative accuracy; UPPER_BOUND and LOWER_BOUND are
    proved, with rounding on the safe side; APPROXIMATION is proved on neither side; ESTIMATE
    comes from a simulation. Only EXACT and UPPER_BOUND may be quoted as a guarantee.
    """

    EXACT = "EXACT"
    UPPER_BOUND = "UPPER_BOUND"
    LOWER_BOUND = "LOWER_BOUND"
    APPROXIMATION = "APPROXIMATION"
    ESTIMATE = "ESTIMATE"


class PrivacyProfile(abc.ABC):
    """The curve delta(epsilon) of one setting, both directions, with what it is.

    A profile comes from a function such as `exact_profile` or `worst_case_profile`. Wherever a
    method takes ``direction``, forward is the hockey-stick divergence of P from Q (P the law when
    the differing user holds the second input of the pair), reverse that of Q from P, and both,
    the default, the larger of the two: what a guarantee needs.

    Notes
    -----
    Edge values are conventions:

    ===============================  ======================================================
    ``delta(inf)``                   the mass that P puts where Q has none
    ``delta(e)`` above the loss      exactly 0 for a pure randomizer
    ``epsilon(0)``                   the largest privacy loss, which may be inf
    ``epsilon(d)``, d >= delta(0)    exactly 0
    ``epsilon(d)``, d < delta(inf)   inf
    ===============================  ======================================================
    """

    @property
    @abc.abstractmethod
    def n(self) -> int:
        """Number of users, including the one who differs."""

    @property
    @abc.abstractmethod
    def validity(self) -> Validity:
        """What the numbers are."""

    @property
    @abc.abstractmethod
    def method(self) -> str:
        """How the numbers are computed, in a few words."""

    @property
    @abc.abstractmethod
    def source(self) -> str:
        """The definition or theorem, with its version, that the numbers rest on."""

    @property
    def relation(self) -> str:
        """The neighbouring relation."""
        return RELATION

    @abc.abstractmethod
    def _log_delta(self, epsilons: FloatArray, direction: Direction) -> FloatArray: ...

    @abc.abstractmethod
    def _log_bounds(
        self, epsilons: FloatArray, direction: Direction
    ) -> tuple[FloatArray, FloatArray]: ...

    @abc.abstractmethod
    def _epsilon(self, log_deltas: FloatArray, direction: Direction) -> FloatArray: ...

    @abc.abstractmethod
    def _trade_off(self, alphas: FloatArray, direction: Direction) -> FloatArray: ...

    @abc.abstractmethod
    def _setting(self) -> dict[str, Any]:
        """Return the setting the profile belongs to, ready for JSON."""

    def _log_total(self, direction: Direction) -> float:
        """Return log delta(0), computed once."""
        totals: dict[Direction, float] = self.__dict__.setdefault("_log_totals", {})
        if direction not in totals:
            totals[direction] = float(self._log_delta(np.zeros(1), direction)[0])
        return totals[direction]

    def log_delta(self, epsilon: npt.ArrayLike, *, direction: Direction = "both") -> Any:
        """Return the natural logarithm of `delta`, where delta itself would underflow too.

        Parameters
        ----------
        epsilon : float or array_like of float
            Privacy parameter, >= 0; inf is allowed.
        direction : {"both", "forward", "reverse"}
            Which divergence; both is the larger.

        Returns
        -------
        float or numpy.ndarray
            In the shape of ``epsilon``; -inf where delta is exactly 0.

        Raises
        ------
        TypeError, ValueError
            If an epsilon is no real number >= 0, or the direction is unknown.
        """
        which = check_direction(direction)
        return _elementwise("epsilon", epsilon, NONNEGATIVE, lambda e: self._log_delta(e, which))

    def delta(self, epsilon: npt.ArrayLike, *, direction: Direction = "both") -> Any:
        """Return the smallest delta that goes with epsilon; for a bound, its safe side.

        Parameters
        ----------
        epsilon : float or array_like of float
            Privacy parameter, >= 0; inf is allowed.
        direction : {"both", "forward", "reverse"}
            Which divergence; both is the larger.

        Returns
        -------
        float or numpy.ndarray
            In the shape of ``epsilon``. Below 1e-308 it underflows: use `log_delta`.

        Raises
        ------
        TypeError, ValueError
            If an epsilon is no real number >= 0, or the direction is unknown.
        """
        which = check_direction(direction)
        return _elementwise(
            "epsilon", epsilon, NONNEGATIVE, lambda e: np.exp(self._log_delta(e, which))
        )

    def epsilon(self, delta: npt.ArrayLike, *, direction: Direction = "both") -> Any:
        """Return the smallest epsilon that goes with delta, on the safe side.

        The returned number is checked: ``delta(epsilon) <= delta``.

        Parameters
        ----------
        delta : float or array_like of float
            Privacy parameter in [0, 1].
        direction : {"both", "forward", "reverse"}
            Which divergence; both is the larger.

        Returns
        -------
        float or numpy.ndarray
            In the shape of ``delta``; inf where no epsilon will do.

        Raises
        ------
        TypeError, ValueError
            If a delta is no real number in [0, 1], or the direction is unknown.

        Warns
        -----
        DeltaWarning
            If a delta is 1/n or more.
        """
        which = check_direction(direction)

        def inverse(deltas: FloatArray) -> FloatArray:
            largest = float(deltas.max(initial=0.0))
            if largest * self.n >= 1.0:
                warnings.warn(
                    f"delta = {largest:g} is not below 1/n = {1.0 / self.n:g}: it would allow "
                    "a mechanism that publishes one user's value in the clear",
                    DeltaWarning,
                    stacklevel=4,
                )
            with np.errstate(divide="ignore"):
                targets = np.log(deltas)
            # a little lower, so that delta itself, and not only its logarithm, is not exceeded
            targets -= np.where(deltas > 0.0, _LOG_STEP * (1.0 - targets), 0.0)
            clear = deltas >= np.exp(self._log_total(which))
            return np.where(clear, 0.0, self._epsilon(targets, which))

        return _elementwise("delta", delta, PROBABILITY, inverse)

    def bounds(self, epsilon: npt.ArrayLike, *, direction: Direction = "both") -> tuple[Any, Any]:
        """Return numbers between which the true delta lies, rounding included.

        Parameters
        ----------
        epsilon : float or array_like of float
            Privacy parameter, >= 0; inf is allowed.
        direction : {"both", "forward", "reverse"}
            Which divergence; both is the larger.

        Returns
        -------
        lower, upper : float or numpy.ndarray
            Each in the shape of ``epsilon``.

        Raises
        ------
        TypeError, ValueError
            If an epsilon is no real number >= 0, or the direction is unknown.
        """
        lower, upper = self.log_bounds(epsilon, direction=direction)
        low, high = np.exp(lower), np.minimum(np.exp(upper), 1.0)
        return (low, high) if isinstance(lower, np.ndarray) else (float(low), float(high))

    def log_bounds(
        self, epsilon: npt.ArrayLike, *, direction: Direction = "both"
    ) -> tuple[Any, Any]:
        """Return the natural logarithms of `bounds`, where deltas underflow too.

        Parameters
        ----------
        epsilon : float or array_like of float
            Privacy parameter, >= 0; inf is allowed.
        direction : {"both", "forward", "reverse"}
            Which divergence; both is the larger.

        Returns
        -------
        lower, upper : float or numpy.ndarray
            Each in the shape of ``epsilon``; -inf where a bound is 0.

        Raises
        ------
        TypeError, ValueError
            If an epsilon is no real number >= 0, or the direction is unknown.
        """
        which = check_direction(direction)
        epsilons, shape = check_reals("epsilon", epsilon, NONNEGATIVE)
        lower, upper = self._log_bounds(epsilons, which)
        if not (lower <= upper).all():
            raise ArithmeticError(f"the bounds came out in the wrong order: {lower!r}, {upper!r}")
        return _shaped(lower, shape), _shaped(upper, shape)

    def trade_off(self, alpha: npt.ArrayLike, *, direction: Direction = "both") -> Any:
        """Return the least type II error of a test of level alpha between the two datasets.

        Parameters
        ----------
        alpha : float or array_like of float
            Level of the test, in [0, 1].
        direction : {"both", "forward", "reverse"}
            Forward tests Q as the null hypothesis against P, reverse P against Q; both is the
            smaller error.

        Returns
        -------
        float or numpy.ndarray
            In the shape of ``alpha``.

        Raises
        ------
        TypeError, ValueError
            If a level is no real number in [0, 1], or the direction is unknown.
        """
        which = check_direction(direction)
        return _elementwise("alpha", alpha, PROBABILITY, lambda a: self._trade_off(a, which))

    def total_variation(self) -> float:
        """Return the total variation distance, which is delta(0); for a bound, its safe side."""
        return float(self.delta(0.0))

    def to_dict(
        self, *, epsilon: npt.ArrayLike | None = None, delta: npt.ArrayLike | None = None
    ) -> dict[str, Any]:
        """Return the profile in plain Python values, to keep beside a release.

        Parameters
        ----------
        epsilon : float or array_like of float, optional
            Where to tabulate delta and log delta, each direction apart and both.
        delta : float or array_like of float, optional
            Where to tabulate epsilon.

        Returns
        -------
        dict
            The setting, the validity, relation, method and source, and the tables asked for. An
            infinite number is the string ``"inf"`` or ``"-inf"``, since JSON has none.

        Raises
        ------
        TypeError, ValueError
            If an argument is outside its domain.
        """
        content: dict[str, Any] = {
            "validity": str(self.validity),
            "relation": self.relation,
            "method": self.method,
            "source": self.source,
            "setting": self._setting(),
        }
        if epsilon is not None:
            epsilons, _ = check_reals("epsilon", epsilon, NONNEGATIVE)
            content["curve"] = self._curve(epsilons)
        if delta is not None:
            deltas, _ = check_reals("delta", delta, PROBABILITY)
            content["guarantees"] = self._guarantees(deltas)
        return content

    def _directions(self) -> dict[str, Direction]:
        """Return the directions that are tabulated, by the suffix of their columns."""
        return {"": "both", "_forward": "forward", "_reverse": "reverse"}

    def _curve(self, epsilons: FloatArray) -> list[dict[str, Any]]:
        columns = {"epsilon": epsilons}
        for suffix, direction in self._directions().items():
            log_delta = self._log_delta(epsilons, direction)
            columns[f"delta{suffix}"] = np.exp(log_delta)
            columns[f"log_delta{suffix}"] = log_delta
        return _rows(columns)

    def _guarantees(self, deltas: FloatArray) -> list[dict[str, Any]]:
        columns = {"delta": deltas}
        for suffix, direction in self._directions().items():
            columns[f"epsilon{suffix}"] = self.epsilon(deltas, direction=direction)
        return _rows(columns)

    def to_json(
        self, *, epsilon: npt.ArrayLike | None = None, delta: npt.ArrayLike | None = None
    ) -> str:
        """Return `to_dict` as JSON text.

        Parameters
        ----------
        epsilon, delta : float or array_like of float, optional
            As for `to_dict`.

        Returns
        -------
        str
            Valid JSON, without infinities or nan.
        """
        return json.dumps(self.to_dict(epsilon=epsilon, delta=delta), indent=2, allow_nan=False)

    def describe(self) -> str:
        """Return what the profile is, in a few lines for a person."""
        rows = {
            "users": f"{self.n:,} (including the one who differs)",
            "validity": str(self.validity),
            "relation": self.relation,
            "method": self.method,
            "source": self.source,
        }
        return "\n".join(f"{name + ':':<10} {text}" for name, text in rows.items())


def _rows(columns: dict[str, FloatArray]) -> list[dict[str, Any]]:
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [
        {
            name: value if math.isfinite(value) else str(value)
            for name, value in zip(columns, row, strict=True)
        }
        for row in rows
    ]


def _shaped(values: FloatArray, shape: tuple[int, ...]) -> Any:
    return values.reshape(shape) if shape else float(values[0])


def _elementwise(
    name: str,
    value: npt.ArrayLike,
    interval: Interval,
    function: Callable[[FloatArray], FloatArray],
) -> Any:
    values, shape = check_reals(name, value, interval)
    return _shaped(function(values), shape)
