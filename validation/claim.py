"""A claim of a paper, what was measured about it, and the verdict that follows from the numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from validation.rates import Estimate

# A fitted exponent within this of the claimed one agrees; one less certain than that decides
# nothing when it agrees.
_EXPONENT_TOLERANCE = 0.03
_LEAST_CERTAIN_EXPONENT = 0.1
_LEAST_CERTAIN_CONSTANT = 0.05


class Verdict(StrEnum):
    """What the numbers say about a claim."""

    HOLDS = "holds"
    HOLDS_ONLY = "holds only"
    CORRECTED = "corrected to"
    FALSE = "false"
    UNDECIDED = "cannot be decided numerically"


@dataclass(frozen=True)
class Claim:
    """A statement to be held against numbers.

    Attributes
    ----------
    statement : str
        What is claimed, in a sentence or a formula.
    source : str
        The paper and its version, and the section where it is visible.
    expected : Verdict
        The recorded verdict; a run that comes to another one fails.
    """

    statement: str
    source: str
    expected: Verdict


@dataclass(frozen=True)
class Check:
    """One number held against what is claimed of it.

    Attributes
    ----------
    kind : str
        ``"rate"``, ``"constant"`` or ``"fact"``.
    name, found, claimed : str
        What is compared, as text.
    passed : bool or None
        None where the measurement is too uncertain to tell.
    """

    kind: str
    name: str
    found: str
    claimed: str
    passed: bool | None


@dataclass(frozen=True)
class Curve:
    """Points of a figure, and the exponent of the line drawn through the last of them.

    Attributes
    ----------
    label : str
        Name in the legend.
    x, y : tuple of float
        The points.
    slope : float, optional
        Exponent of the straight line to draw, in log-log axes.
    line : bool
        Whether the points are joined.
    """

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    slope: float | None = None
    line: bool = False

    @classmethod
    def of(
        cls,
        label: str,
        x: Iterable[float],
        y: Iterable[float],
        *,
        slope: float | None = None,
        line: bool = False,
    ) -> Curve:
        """Return a curve from any numbers."""
        return cls(label, tuple(map(float, x)), tuple(map(float, y)), slope, line)


@dataclass(frozen=True)
class Figure:
    """A figure: named axes and curves.

    Attributes
    ----------
    title, x_label, y_label : str
        As drawn.
    curves : tuple of Curve
        What is drawn.
    log_x, log_y : bool
        Whether an axis is logarithmic.
    """

    title: str
    x_label: str
    y_label: str
    curves: tuple[Curve, ...]
    log_x: bool = True
    log_y: bool = True


@dataclass(frozen=True)
class Finding:
    """What was measured about one claim.

    Attributes
    ----------
    quantity, grid : str
        What was computed, and for which n or cases.
    checks : tuple of Check
        The claim as it is stated, each part against its number.
    otherwise : str
        What is true where a check fails: the correction, the region or the counterexample.
    amended : tuple of Check
        The corrected or narrower claim against its numbers, if there is one.
    amendment : Verdict
        The verdict if the claim fails and the amended one holds.
    figure : Figure, optional
        The measurements, drawn.
    """

    quantity: str
    grid: str
    checks: tuple[Check, ...]
    otherwise: str = ""
    amended: tuple[Check, ...] = ()
    amendment: Verdict = Verdict.FALSE
    figure: Figure | None = None

    @property
    def verdict(self) -> Verdict:
        """The verdict, from the checks alone."""
        outcome = _outcome(self.checks)
        if outcome is None:
            return Verdict.UNDECIDED
        if outcome:
            return Verdict.HOLDS
        return self.amendment if self.amended and _outcome(self.amended) else Verdict.FALSE

    @property
    def verdict_text(self) -> str:
        """The verdict in words, with the correction, region or counterexample."""
        verdict = self.verdict
        if verdict is Verdict.HOLDS or not self.otherwise:
            return str(verdict)
        joint = ": " if verdict in {Verdict.FALSE, Verdict.UNDECIDED} else " "
        return f"{verdict}{joint}{self.otherwise}"

    def to_dict(self) -> dict[str, Any]:
        """Return the finding in plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Finding:
        """Return the finding that `to_dict` was made from."""
        figure = content["figure"]
        if figure is not None:
            curves = tuple(
                Curve(**{**curve, "x": tuple(curve["x"]), "y": tuple(curve["y"])})
                for curve in figure["curves"]
            )
            figure = Figure(**{**figure, "curves": curves})
        return cls(
            **{
                **content,
                "checks": tuple(Check(**check) for check in content["checks"]),
                "amended": tuple(Check(**check) for check in content["amended"]),
                "amendment": Verdict(content["amendment"]),
                "figure": figure,
            }
        )


def _outcome(checks: tuple[Check, ...]) -> bool | None:
    """Whether all checks pass; one failure is decisive, and no check at all decides nothing."""
    if any(check.passed is False for check in checks):
        return False
    if not checks or any(check.passed is None for check in checks):
        return None
    return True


# ---- Checks ----------------------------------------------------------------------------------


def _agrees(distance: float, uncertainty: float, tolerance: float, least: float) -> bool | None:
    """Whether a distance is within tolerance or uncertainty; a nan or a wide margin is unknown."""
    if not (math.isfinite(uncertainty) and math.isfinite(distance)):
        return None
    if distance <= tolerance and uncertainty <= tolerance:
        return True
    if distance > max(tolerance, uncertainty):
        return False
    return True if uncertainty <= least else None


def rate_is(rate: Estimate, claimed: float, *, name: str = "exponent") -> Check:
    """Check that a fitted exponent is the claimed one."""
    passed = _agrees(
        abs(rate.value - claimed), rate.uncertainty, _EXPONENT_TOLERANCE, _LEAST_CERTAIN_EXPONENT
    )
    return Check("rate", name, rate.text, f"{claimed:g}", passed)


def rate_at_most(rate: Estimate, claimed: float, *, name: str = "exponent") -> Check:
    """Check that a fitted exponent is the claimed one or below, as a bound ``O(n^claimed)`` asks.

    An exponent far below passes even where it is uncertain.
    """
    if rate.value + max(rate.uncertainty, _EXPONENT_TOLERANCE) <= claimed:
        passed: bool | None = True
    else:
        passed = _agrees(
            max(0.0, rate.value - claimed),
            rate.uncertainty,
            _EXPONENT_TOLERANCE,
            _LEAST_CERTAIN_EXPONENT,
        )
    return Check("rate", name, rate.text, f"<= {claimed:g}", passed)


def constant_is(
    estimate: Estimate, claimed: float, *, name: str = "constant", rtol: float = 0.01
) -> Check:
    """Check that an extrapolated constant is the claimed one, within rtol or its uncertainty."""
    size = abs(claimed) if claimed != 0.0 else 1.0
    passed = _agrees(
        abs(estimate.value - claimed),
        estimate.uncertainty,
        rtol * size,
        max(_LEAST_CERTAIN_CONSTANT, rtol) * size,
    )
    return Check("constant", name, estimate.text, f"{claimed:.5g}", passed)


def printed_number(found: float, claimed: str, *, name: str) -> Check:
    """Check that a number rounds to the one printed, to one unit of its last digit."""
    mantissa, _, exponent = claimed.partition("e")
    decimals = len(mantissa.partition(".")[2])
    unit = 10.0 ** (int(exponent or 0) - decimals)
    return Check("constant", name, f"{found:.7g}", claimed, abs(found - float(claimed)) <= unit)


def none_of(count: int, tried: int, *, name: str) -> Check:
    """Check that none of some cases is an exception."""
    return Check("fact", name, f"{count} of {tried}", "0", count == 0 if tried > 0 else None)


def at_most(found: float, bound: float, *, name: str) -> Check:
    """Check that a number is no larger than a bound; a nan fails."""
    return Check("fact", name, f"{found:.4g}", f"<= {bound:.4g}", bool(found <= bound))


def at_least(found: float, bound: float, *, name: str) -> Check:
    """Check that a number is no smaller than a bound; a nan fails."""
    return Check("fact", name, f"{found:.4g}", f">= {bound:.4g}", bool(found >= bound))
