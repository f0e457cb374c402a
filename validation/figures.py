"""Figures of the report: measurements on named axes, with the slopes they are held against."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure as Canvas

from validation.claim import Figure

_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#444444")
_MARKERS = "os^Dv<>"


def draw(figure: Figure, path: Path) -> None:
    """Write a figure as a PNG of well under 100 kB.

    Parameters
    ----------
    figure : Figure
        What to draw.
    path : path
        Where to; the folder must exist.
    """
    canvas = Canvas(figsize=(6.4, 4.4), layout="constrained")
    axes = canvas.add_subplot()
    for i, curve in enumerate(figure.curves):
        color, marker = _COLORS[i % len(_COLORS)], _MARKERS[i % len(_MARKERS)]
        style = {"linestyle": "-", "linewidth": 1.5} if curve.line else {"linestyle": "none"}
        axes.plot(
            curve.x,
            curve.y,
            color=color,
            marker="none" if curve.line else marker,
            markersize=4.5,
            label=curve.label,
            **style,
        )
        if curve.slope is not None:
            x = np.array([min(curve.x), max(curve.x)])
            y = curve.y[-1] * (x / curve.x[-1]) ** curve.slope
            axes.plot(x, y, color=color, linestyle="--", linewidth=1.0, alpha=0.7,
                      label=f"slope {curve.slope:g}")  # fmt: skip
    axes.set(title=figure.title, xlabel=figure.x_label, ylabel=figure.y_label)
    axes.set_xscale("log" if figure.log_x else "linear")
    axes.set_yscale("log" if figure.log_y else "linear")
    axes.title.set_fontsize(10)
    axes.grid(visible=True, which="major", linewidth=0.4, alpha=0.5)
    axes.legend(fontsize=8, framealpha=0.85)
    canvas.savefig(path, dpi=110, metadata={"Software": None})
