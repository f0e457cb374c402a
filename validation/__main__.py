"""``python -m validation``: is the theory right, and how accurate is the code everywhere?"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import fastshuffle
from validation import (
    accuracy,
    bounds,
    bracket_accuracy,
    coverage,
    limit_accuracy,
    noise,
    personal,
    sections,
    splitting,
    worst_case,
)
from validation.claim import Figure
from validation.figures import draw
from validation.progress import Progress, show_progress
from validation.run_claims import FOLDER, Judged, check_claims
from validation.store import Store
from validation.tables import replace_file

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_HERE = Path(__file__).parent
REPORT = _HERE / "REPORT.md"
RESULTS = _HERE / "results"

Row = TypeVar("Row", bound="DataclassInstance")


def _report(parts: Sequence[sections.Section], *, quick: bool) -> str:
    kind = "quick, a small part of the points" if quick else "full"
    head = [
        "# Validation report",
        f"fastshuffle {fastshuffle.__version__}, {kind}. Written by `python -m validation`.",
    ]
    return "\n\n".join([*head, *(part.markdown() for part in parts)]) + "\n"


def _drawn(name: str, figures: Iterable[Figure], report: Path) -> list[str]:
    """Draw the figures of a name beside the report, and return their paths relative to it."""
    folder = report.parent / "figures"
    paths = []
    for i, figure in enumerate(figures, start=1):
        folder.mkdir(exist_ok=True)
        path = folder / f"{name}{f'_{i}' if i > 1 else ''}.png"
        draw(figure, path)
        paths.append(f"figures/{path.name}")
    return paths


def _figures(judged: Sequence[Judged], report: Path | None) -> dict[str, list[str]]:
    """Draw the figures of the claims, and return their paths, by family."""
    figures: dict[str, list[Figure]] = {}
    for row in judged:
        figure = row.finding.figure
        figures.setdefault(row.family, []).extend([] if figure is None else [figure])
    if report is None:
        return {family: [] for family in figures}
    return {family: _drawn(family, some, report) for family, some in figures.items()}


def _with_figures(part: sections.Section, report: Path | None) -> sections.Section:
    """Draw the figures of a survey, and return its section with them."""
    if report is None or not part.figures:
        return part
    name = part.title.partition(":")[0].lower().replace(" ", "_")
    paths = _drawn(name, part.figures, report)
    return replace(part, more="\n".join(f"![{part.title}]({path})" for path in paths))


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m validation", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="under 2 minutes; writes no report")
    parser.add_argument("--output", type=Path, metavar="FILE", help="where to write the report")
    parser.add_argument(
        "--record", action="store_true", help="record the errors, as the measure of later runs"
    )
    parser.add_argument(
        "--fresh", action="store_true", help="forget the results of an interrupted run"
    )
    parser.add_argument(
        "--claims", type=Path, default=FOLDER, metavar="FOLDER", help="where the claims are"
    )
    parser.add_argument(
        "--only-claims", action="store_true", help="leave out the surveys; writes no report"
    )
    arguments = parser.parse_args(argv)
    if arguments.record and (arguments.quick or arguments.only_claims):
        parser.error("--record needs a full run")
    return arguments


def _surveys(
    *, quick: bool, progress: Progress, store: Store | None, record: bool
) -> list[sections.Section]:
    """Run the surveys, each unless an interrupted run has its rows."""

    def rows(kind: type[Row], name: str, survey: Callable[..., Sequence[Row]]) -> list[Row]:
        def compute() -> list[dict[str, Any]]:
            return [asdict(row) for row in survey(quick=quick, progress=progress)]

        contents = compute() if store is None else store.get(name, compute)
        return [kind(**content) for content in contents]

    compositions = rows(worst_case.CompositionRow, "compositions", worst_case.check_compositions)
    certificates = rows(worst_case.CertificateRow, "certificates", worst_case.check_certificate)
    universal = rows(bounds.BoundRow, "bounds", bounds.check_bounds)
    gaps = rows(bounds.GapRow, "gaps", bounds.check_gap)
    intervals = rows(coverage.CoverageRow, "coverage", coverage.check_coverage)
    split = rows(splitting.SplittingRow, "splitting", splitting.check_splitting)
    budgets = rows(personal.PersonalRow, "personal", personal.check_personal)
    equal_privacy = rows(noise.NoiseRow, "noise", noise.check_noise)
    regimes = list(product(accuracy.USERS, accuracy.OTHERS))
    errors = accuracy.in_order(
        row
        for i, (users, others) in enumerate(regimes)
        for row in rows(
            accuracy.AccuracyRow,
            f"accuracy_{i}",
            partial(accuracy.survey_regime, others, users),
        )
    )
    limits = rows(accuracy.AccuracyRow, "limits", limit_accuracy.survey)
    brackets = rows(accuracy.AccuracyRow, "brackets", bracket_accuracy.survey)
    if record:
        replace_file(accuracy.RECORD, accuracy.record_text(errors))
        replace_file(limit_accuracy.RECORD, accuracy.record_text(limits))
        replace_file(bracket_accuracy.RECORD, accuracy.record_text(brackets))
    return [
        sections.accuracy_section(errors, accuracy.read_record()),
        sections.limit_section(limits, accuracy.read_record(limit_accuracy.RECORD)),
        sections.bracket_section(brackets, accuracy.read_record(bracket_accuracy.RECORD)),
        sections.certificate_section(certificates),
        sections.composition_section(compositions),
        sections.bound_section(universal),
        sections.gap_section(gaps),
        sections.splitting_section(split),
        sections.personal_section(budgets),
        sections.noise_section(equal_privacy),
        sections.coverage_section(intervals),
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the validation.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments, by default those of the command line.

    Returns
    -------
    int
        0, or 1 if an error exceeds its limit, a certificate fails or a verdict is not as recorded.
    """
    arguments = _arguments(argv)
    quick = arguments.quick
    store = None if quick else Store(RESULTS)
    if store is not None and arguments.fresh:
        store.clear()
    output = arguments.output or (None if quick or arguments.only_claims else REPORT)
    with show_progress() as progress:
        judged = check_claims(arguments.claims, quick=quick, progress=progress, store=store)
        parts = (
            []
            if arguments.only_claims
            else _surveys(quick=quick, progress=progress, store=store, record=arguments.record)
        )
        progress("done")
    parts = [_with_figures(part, output) for part in parts]
    for part in parts:
        print(f"\n{part.plain()}")
    print(f"\nThe claims\n\n{sections.claim_summary(judged)}")
    parts.insert(0, sections.claim_section(judged, _figures(judged, output)))
    if output is not None:
        replace_file(output, _report(parts, quick=quick))
    failures = [failure for part in parts for failure in part.failures]
    done = "every error is within its limit, every verdict is as recorded"
    print("\n".join(["", *(failures or [done])]))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
