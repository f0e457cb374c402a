"""``python -m validation``: is the theory right, and how accurate is the code everywhere?"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import fastshuffle
from validation import accuracy, worst_case
from validation.tables import Table, markdown, plain, replace_file

REPORT = Path(__file__).with_name("REPORT.md")

_ACCURACY_NOTES = """\
Largest relative errors against 25-digit references that share no code with the library
(`validation/reference/mp.py`). The cases are random and spread over all magnitudes: symmetric and
asymmetric randomizers, probabilities from 1e-30 to 1 - 1e-30, nearly equal rows, all directions.
"Limit" is what the documentation states; a later run fails above it, and above four times the
recorded error.

- Logarithms (`log_delta` below -700, masses and tails below exp(-690)): the error of the logarithm,
  divided by the logarithm.
- "Ill-conditioned" points: epsilon close to the largest loss, or to a step of the curve of a
  nearly deterministic randomizer. The last bits of epsilon decide there. The condition number
  `c = |epsilon delta'(epsilon) / delta|` is above `3 max(100, |log delta|)` for these points and
  no more for all others; the error is divided by `1000 + c`.
- `trade_off`: divided by the condition number `|alpha beta'(alpha) / beta|` where it is above 1.
"""

_CERTIFICATE_NOTES = """\
Random randomizers, n and epsilons. At each point every dataset was tried: all compositions of the
others, all ordered pairs. Failures: some dataset above the upper end of `bounds(epsilon)`; the
dataset named by `argmax` does not attain the lower end; `epsilon(delta)` leaves some dataset above
delta. "Width" is the widest bracket and "given away" how far below delta the worst dataset is at
`epsilon(delta)`, both divided by the `rtol` asked for (1e-2 to 1e-8): at most 1.
"""

_COMPOSITION_NOTES = f"""\
The worst composition depends on epsilon and need not be an end point: a bound over datasets must
search k. Randomized response, epsilon0 = {worst_case.EPSILON0:g}, n = {worst_case.USERS}, forward
direction, k ones among the others.
"""


def _accuracy_table(
    rows: Iterable[accuracy.AccuracyRow], recorded: Sequence[accuracy.AccuracyRow]
) -> Table:
    """Return the table: a line for a quantity and what the others hold, a column for each n."""
    lines: dict[tuple[str, ...], dict[str, str]] = {}
    for row in rows:
        failed = not row.error <= accuracy.allowed_error(row, recorded)
        cells = lines.setdefault((row.quantity, row.span, row.others, f"{row.documented:.0e}"), {})
        cells[row.users] = f"{row.error:.1e} ({row.cases}){' FAILED' if failed else ''}"
    header = ["quantity", "range", "others hold", *accuracy.USERS, "limit"]
    return [
        header,
        *(
            [*names, *(cells.get(users, "-") for users in accuracy.USERS), limit]
            for (*names, limit), cells in lines.items()
        ),
    ]


def _certificate_table(rows: Iterable[worst_case.CertificateRow]) -> Table:
    header = ["datasets", "points", "datasets tried", "failures", "width", "given away", "holds"]
    return [
        header,
        *(
            [
                row.datasets,
                str(row.points),
                str(row.tried),
                str(row.above + row.not_attained + row.unsafe),
                f"{row.widest:.2f}",
                f"{row.given_away:.2f}",
                "yes" if row.passed else "NO",
            ]
            for row in rows
        ),
    ]


def _composition_table(rows: Iterable[worst_case.CompositionRow]) -> Table:
    header = ["epsilon", "worst k claimed", "found", "above both ends by", "holds"]
    return [
        header,
        *(
            [
                f"{row.epsilon:g}",
                str(row.claimed),
                str(row.found),
                f"{row.above_ends:.1e}",
                "yes" if row.passed else "NO",
            ]
            for row in rows
        ),
    ]


def _report(tables: Sequence[tuple[str, str, Table]], *, quick: bool) -> str:
    kind = "quick, a small part of the points" if quick else "full"
    parts = [
        "# Validation report",
        f"fastshuffle {fastshuffle.__version__}, {kind}. Written by `python -m validation`.",
    ]
    for title, notes, table in tables:
        parts += [f"## {title}", notes.strip(), markdown(table)]
    return "\n\n".join(parts) + "\n"


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m validation", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="under a minute; writes no report")
    parser.add_argument("--output", type=Path, metavar="FILE", help="where to write the report")
    parser.add_argument(
        "--record", action="store_true", help="record the errors, as the measure of later runs"
    )
    arguments = parser.parse_args(argv)
    if arguments.quick and arguments.record:
        parser.error("--record needs a full run")
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Run the validation.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments, by default those of the command line.

    Returns
    -------
    int
        0, or 1 if an error exceeds its limit or a claim does not hold.
    """
    arguments = _arguments(argv)
    start = time.perf_counter()

    def progress(line: str) -> None:
        print(f"{time.perf_counter() - start:5.0f} s  {line}", flush=True)

    compositions = worst_case.check_compositions(quick=arguments.quick, progress=progress)
    certificates = worst_case.check_certificate(quick=arguments.quick, progress=progress)
    errors = accuracy.survey(quick=arguments.quick, progress=progress)
    progress("done")

    recorded = errors if arguments.record else accuracy.read_record()
    tables = [
        ("Accuracy", _ACCURACY_NOTES, _accuracy_table(errors, recorded)),
        ("The certified worst case", _CERTIFICATE_NOTES, _certificate_table(certificates)),
        ("The worst composition", _COMPOSITION_NOTES, _composition_table(compositions)),
    ]
    for title, _, table in tables:
        print(f"\n{title}\n\n{plain(table)}")

    output = arguments.output or (None if arguments.quick else REPORT)
    if output is not None:
        replace_file(output, _report(tables, quick=arguments.quick))
    if arguments.record:
        replace_file(accuracy.RECORD, accuracy.record_text(errors))

    failures = [
        f"{', '.join(row.key)}: error {row.error:.2e}, allowed {allowed:.2e}"
        for row in errors
        if not row.error <= (allowed := accuracy.allowed_error(row, recorded))
    ]
    failures += [f"{row}" for row in certificates if not row.passed]
    failures += [f"{row}" for row in compositions if not row.passed]
    print("\n".join(["", *(failures or ["every error is within its limit, every claim holds"])]))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
