"""A picture of a privacy profile. It needs the extra ``plot`` (matplotlib)."""

import math
import os
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fastshuffle._validation import NONNEGATIVE, Interval, check_real
from fastshuffle.exact import WorstCaseProfile
from fastshuffle.monte_carlo import MonteCarloProfile
from fastshuffle.profile import DeltaWarning, PrivacyProfile

if TYPE_CHECKING:
    import matplotlib.figure

__all__ = [
    "delta_text",
    "lower_delta_text",
    "plot_profile",
    "replacing",
    "rounded_down",
    "rounded_up",
    "save_png",
]

_NONPOSITIVE = Interval(-math.inf, 0.0, "<= 0")

_POINTS = 200
# How far down a curve is of interest: the smallest delta that people quote, or six decades where
# delta(0) itself is near that.
_SMALLEST_DELTA = 1e-12
_SMALLEST_FRACTION = 1e-6
# Room to the right of the last mark for its label, as a factor.
_ROOM = 1.4


def plot_profile(
    profile: PrivacyProfile, *, marks: Iterable[tuple[float, float]] = ()
) -> "matplotlib.figure.Figure":
    """Draw the curve delta(epsilon), forward and reverse, with a logarithmic delta axis.

    Parameters
    ----------
    profile : PrivacyProfile
        The profile to draw.
    marks : iterable of pairs of float, optional
        Points ``(epsilon, log_delta)`` to mark and to label: what is quoted or claimed. Epsilon
        is >= 0 and log_delta, the natural logarithm, is <= 0. A point at infinity is left out.

    Returns
    -------
    matplotlib.figure.Figure
        A figure with one pair of axes, unknown to pyplot.

    Raises
    ------
    ModuleNotFoundError
        If matplotlib is missing.
    TypeError, ValueError
        If a mark is outside its domain.

    See Also
    --------
    save_png : write the figure to a file.

    Notes
    -----
    The epsilon axis runs from 0 to where delta reaches 1e-12, or a millionth of delta(0) if that
    is smaller, and past the last mark. Where delta does not fall that low, since some outputs
    have infinite loss, it ends where delta is within a thousandth of its limit. The vertical axis
    is log10 of delta, from `PrivacyProfile.log_delta`, so that it holds any delta.

    An estimated profile ends where too few samples bear it, and its intervals are shaded.

    One curve is drawn where forward and reverse are the same, as in the worst case over all
    datasets. The numbers of a label are rounded up. **Cost**: 400 values of log delta, or 200 for a
    worst case.

    Examples
    --------
    >>> import math
    >>> import fastshuffle as fs
    >>> rr = fs.binary_randomized_response(epsilon0=1.0)
    >>> profile = fs.exact_profile(fs.ShuffleExperiment(rr, n=1000, k=0))
    >>> figure = plot_profile(profile, marks=[(profile.epsilon(1e-8), math.log(1e-8))])
    >>> print(figure.axes[0].get_title())
    EXACT, n = 1,000 (replace-one, n known)
    """
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - only a plot needs the extra
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            'a plot needs matplotlib: pip install "fastshuffle[plot]"', name=error.name
        ) from error

    marked = _checked_marks(marks)
    window = _window(profile, marked)
    # a curve may fall steeply between two points of the grid, but it meets the marks
    grid = np.linspace(0.0, window.right, _POINTS)
    epsilons = np.union1d(grid, [epsilon for epsilon, _ in marked])
    if isinstance(profile, MonteCarloProfile):
        epsilons = epsilons[epsilons <= profile.reach]
    forward = profile.log_delta(epsilons, direction="forward") / math.log(10.0)
    # over all datasets the two are one, and costly where there are more than two outputs
    reverse = (
        forward
        if isinstance(profile, WorstCaseProfile)
        else profile.log_delta(epsilons, direction="reverse") / math.log(10.0)
    )

    figure = Figure(figsize=(6.4, 4.2), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    # where a curve that has come to 0 runs on, out of sight
    below = 2.0 * window.bottom - window.top
    if np.array_equal(forward, reverse):
        axes.plot(epsilons, np.maximum(forward, below), label="forward and reverse")
    else:
        axes.plot(epsilons, np.maximum(forward, below), label="forward")
        axes.plot(epsilons, np.maximum(reverse, below), "--", label="reverse")
    if isinstance(profile, MonteCarloProfile):
        for direction in ("forward", "reverse"):
            with np.errstate(divide="ignore"):
                ends = np.log10(profile.bounds(epsilons, direction=direction))
            axes.fill_between(epsilons, *np.maximum(ends, below), alpha=0.2, linewidth=0.0)
    for epsilon, log_delta in marked:
        delta = float(f"{math.exp(log_delta):.12g}")  # as it was before its logarithm
        point = (epsilon, log_delta / math.log(10.0))
        axes.plot(*point, "o", color="black", markersize=4)
        axes.annotate(
            f"({rounded_up(epsilon, 4)}, {delta_text(delta, log_delta, 4)})",
            point,
            xytext=(4, 3),
            textcoords="offset points",
            fontsize="small",
        )
    if forward[0] == reverse[0] == -math.inf:
        axes.text(0.5, 0.5, "delta = 0 at every epsilon", ha="center", transform=axes.transAxes)
    axes.set(
        xlim=(0.0, window.right),
        ylim=(window.bottom, window.top),
        xlabel="epsilon",
        ylabel="delta",
        title=f"{profile.validity}, n = {profile.n:,} ({profile.relation})",
    )
    axes.locator_params(axis="y", integer=True)
    axes.yaxis.set_major_formatter(lambda value, _: f"$10^{{{value:.0f}}}$")
    axes.grid(alpha=0.3)
    axes.legend()
    return figure


def save_png(figure: "matplotlib.figure.Figure", path: str | os.PathLike[str]) -> None:
    """Write a figure to a PNG file, whole or not at all.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        What `plot_profile` returns.
    path : str or path-like
        The file, which is replaced if it exists.

    Raises
    ------
    OSError
        If the file cannot be written; what was there before stays.
    """
    with replacing(path) as temporary:
        figure.savefig(temporary, format="png")


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary name beside a file, and rename it to the file if the block succeeds.

    Parameters
    ----------
    path : str or path-like
        The file, which is replaced if it exists.

    Yields
    ------
    pathlib.Path
        A new name in the same folder; nothing remains of it if the block raises.
    """
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{os.urandom(4).hex()}.tmp")
    try:
        yield temporary
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def rounded_up(value: float, digits: int = 10) -> str:
    """Return a privacy parameter as text: a larger one still holds, so it is rounded up.

    Parameters
    ----------
    value : float
        Any number but nan.
    digits : int, default 10
        Significant digits, at most 15.

    Returns
    -------
    str
        The shortest text of the rounded number.

    Examples
    --------
    >>> rounded_up(0.1), rounded_up(1 / 3, 4)
    ('0.1', '0.3334')
    """
    return _rounded(value, digits, ROUND_CEILING)


def rounded_down(value: float, digits: int = 10) -> str:
    """Return the lower end of a privacy parameter as text, rounded down.

    Parameters
    ----------
    value : float
        Any number but nan.
    digits : int, default 10
        Significant digits, at most 15.

    Returns
    -------
    str
        The shortest text of the rounded number.

    Examples
    --------
    >>> rounded_down(0.1), rounded_down(2 / 3, 4)
    ('0.1', '0.6666')
    """
    return _rounded(value, digits, ROUND_FLOOR)


def _rounded(value: float, digits: int, rounding: str) -> str:
    context = Context(prec=digits, rounding=rounding)
    return f"{float(context.create_decimal(repr(value))):.{digits}g}"


def delta_text(delta: float, log_delta: float, digits: int = 10) -> str:
    """Return delta as text, rounded up, as a power of ten where the float underflows.

    Parameters
    ----------
    delta, log_delta : float
        Delta and its natural logarithm.
    digits : int, default 10
        Significant digits of delta; an exponent has 4 decimals.

    Returns
    -------
    str
        ``"0"`` only for a delta that is exactly 0.

    Examples
    --------
    >>> delta_text(1e-8, math.log(1e-8)), delta_text(0.0, -1000.0), delta_text(0.0, -math.inf)
    ('1e-08', '10^-434.2944', '0')
    """
    if delta >= sys.float_info.min or log_delta == -math.inf:
        return rounded_up(delta, digits)
    return f"10^{math.ceil(1e4 * log_delta / math.log(10.0)) / 1e4:.4f}"


def lower_delta_text(lower: float, log_delta: float) -> str:
    """Return the lower end of delta as text, rounded down to 10 digits.

    Parameters
    ----------
    lower, log_delta : float
        The lower end, and the natural logarithm of the upper one.

    Returns
    -------
    str
        ``"<1e-307"`` where the float underflows and the upper end is not 0.

    Examples
    --------
    >>> lower_delta_text(1e-8 / 3, -18.0), lower_delta_text(0.0, -1000.0)
    ('3.333333333e-09', '<1e-307')
    """
    if lower < sys.float_info.min and log_delta > -math.inf:
        return "<1e-307"
    return rounded_down(lower)


class _Window(NamedTuple):
    """The part of the plane that is shown: epsilon from 0, and log10 of delta."""

    right: float
    bottom: float
    top: float


def _checked_marks(marks: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    checked = [
        (
            check_real("epsilon of a mark", epsilon, NONNEGATIVE),
            check_real("log_delta of a mark", log_delta, _NONPOSITIVE),
        )
        for epsilon, log_delta in marks
    ]
    return [
        (epsilon, log_delta) for epsilon, log_delta in checked if epsilon - log_delta < math.inf
    ]


def _window(profile: PrivacyProfile, marks: list[tuple[float, float]]) -> _Window:
    largest, limit = profile.delta([0.0, math.inf]).tolist()
    largest = largest or 1.0  # the frame around an empty picture
    target = max(min(_SMALLEST_DELTA, _SMALLEST_FRACTION * largest), sys.float_info.min)
    if limit >= target:
        target = limit + 1e-3 * (largest - limit)
    if isinstance(profile, MonteCarloProfile) and profile.reach < math.inf:
        reach = profile.reach
        target = float(profile.delta(reach)) or target
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeltaWarning)  # it is about quoted numbers
            reach = profile.epsilon(target)
    if not 0.0 < reach < math.inf:  # a flat curve
        reach = 1.0
    heights = [y / math.log(10.0) for _, y in marks]
    highest = math.ceil(max([math.log10(largest), *heights]))
    lowest = math.floor(min([math.log10(target), *heights, highest - 1.0]))
    margin = 0.05 * (highest - lowest)
    right = max([reach, *(_ROOM * epsilon for epsilon, _ in marks)])
    return _Window(right, lowest - margin, highest + margin)
