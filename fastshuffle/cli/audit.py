"""The command ``audit``: what observed histograms prove of epsilon."""

import csv
import math
import warnings
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from fastshuffle._typing import IntArray
from fastshuffle._validation import LARGEST_COUNT, NONNEGATIVE, PROBABILITY
from fastshuffle.cli.errors import InputError, file_errors, input_errors, say_warnings
from fastshuffle.cli.files import check_paths, json_bytes, write_files
from fastshuffle.cli.parsing import parse_count, parse_real
from fastshuffle.cli.settings import (
    Confidence,
    Epsilon0,
    JsonFile,
    Matrix,
    Mechanism,
    Seed,
    read_confidence,
    read_randomizer,
    read_seed,
    read_users,
)
from fastshuffle.cli.tables import number_table, print_result
from fastshuffle.exact import worst_case_profile
from fastshuffle.monte_carlo import AuditResult
from fastshuffle.monte_carlo import audit as audit_samples
from fastshuffle.plotting import rounded_down, rounded_up
from fastshuffle.profile import RELATION, DeltaWarning, PrivacyProfile

# The exit code where the claim is refuted, so that a script need not read the text.
_REFUTED = 3


def audit(  # noqa: PLR0913 - one parameter an option
    *,
    samples_p: Annotated[
        Path,
        typer.Argument(
            metavar="P", help="A .csv file of histograms, one independent run a line of counts."
        ),
    ],
    samples_q: Annotated[
        Path, typer.Argument(metavar="Q", help="The same of runs with the neighbouring dataset.")
    ],
    delta: Annotated[str, typer.Option(metavar="D", help="The delta of the guarantee.")],
    epsilon: Annotated[
        str | None, typer.Option(metavar="E", help="The epsilon that is claimed at delta.")
    ] = None,
    users: Annotated[
        str | None,
        typer.Option(
            metavar="N", help="With --mechanism or --matrix: what N users get is claimed."
        ),
    ] = None,
    mechanism: Mechanism = None,
    epsilon0: Epsilon0 = None,
    matrix: Matrix = None,
    confidence: Confidence = "0.95",
    seed: Seed = None,
    json_file: JsonFile = None,
) -> None:
    """Print what histograms of two neighbouring runs prove of epsilon, and judge a claim by it.

    The claim is --epsilon, or the certified worst case of --users and --mechanism or --matrix. The
    exit code is 3 if it is refuted.
    """
    target = parse_real("--delta", delta, PROBABILITY)
    level = read_confidence(confidence)
    entropy = read_seed(seed)
    paths = check_paths({"--json": json_file}, matrix)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DeltaWarning)
        claimed = _claimed(epsilon, users, mechanism, epsilon0, matrix)
        samples = [_read(name, path) for name, path in (("P", samples_p), ("Q", samples_q))]
        with input_errors():
            result = audit_samples(
                *samples,
                delta=target,
                rng=np.random.default_rng(entropy),
                claimed=claimed,
                confidence=level,
            )
    content = {**result.to_dict(), "seed": str(entropy)}
    write_files(paths, {"--json": json_bytes(content)} if json_file is not None else {})
    say_warnings(caught)
    _print(result, entropy)
    if result.verdict == "violated":
        raise typer.Exit(_REFUTED)


def _claimed(
    epsilon: str | None,
    users: str | None,
    mechanism: str | None,
    epsilon0: str | None,
    matrix: Path | None,
) -> PrivacyProfile | float | None:
    named = mechanism is not None or matrix is not None or epsilon0 is not None
    if epsilon is not None and (named or users is not None):
        raise InputError("--epsilon must be given without --users, --mechanism and --matrix")
    if named != (users is not None):
        raise InputError("--users must be given with --mechanism or --matrix")
    if users is not None:
        n = read_users(users)
        randomizer = read_randomizer(mechanism, epsilon0, matrix)
        with input_errors():
            return worst_case_profile(randomizer, n)
    return None if epsilon is None else parse_real("--epsilon", epsilon, NONNEGATIVE)


def _read(name: str, path: Path) -> IntArray:
    """Return the histograms of a file."""
    rows: list[list[int]] = []
    try:
        with file_errors(name, path), path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file)
            for cells in filter(None, reader):
                place = f"{name} {path}, line {reader.line_num}: a count"
                rows.append([parse_count(place, cell, 0, LARGEST_COUNT) for cell in cells])
                if len(rows[-1]) != len(rows[0]):
                    raise InputError(
                        f"{name} {path}: line {reader.line_num} must have {len(rows[0])} counts, "
                        f"got {len(rows[-1])}"
                    )
    except UnicodeDecodeError as error:
        raise InputError(f"{name} {path}: no UTF-8 text") from error
    if not rows:
        raise InputError(f"{name} {path}: no histograms")
    return np.array(rows, dtype=np.int64)


def _print(result: AuditResult, entropy: int) -> None:
    table = number_table(
        ("direction", "epsilon >=", "event seen", "of runs", "in the other", "of runs"),
        (
            (
                evidence.direction,
                rounded_down(evidence.epsilon),
                str(evidence.seen),
                str(evidence.runs),
                str(evidence.seen_opposite),
                str(evidence.runs_opposite),
            )
            for evidence in result.evidence
        ),
    )
    best = max(result.evidence, key=lambda evidence: evidence.epsilon)
    scores = " ".join(f"{score:.12g}" for score in best.scores[:12])
    more = f" and {len(best.scores) - 12} more" if len(best.scores) > 12 else ""
    claimed = "nothing"
    if result.claimed_epsilon is not None:
        number = result.claimed_epsilon
        claimed = f"epsilon = {rounded_up(number) if number < math.inf else 'inf'}"
    facts = {
        "verdict": result.verdict,
        "claimed": f"{claimed} at delta = {result.delta:g}",
        "proved": f"epsilon >= {rounded_down(result.epsilon_lower)} with confidence "
        f"{result.confidence:g}; 0 proves nothing",
        "event": f"the counts times {scores}{more} sum to {best.threshold:.12g} or more",
        "relation": RELATION,
        "method": "an event chosen on one half of the runs, counted on the other; Clopper-Pearson "
        "bounds; forward is an event of P, reverse one of Q",
        "seed": str(entropy),
    }
    headline = {
        "violated": "The claim is refuted:",
        "consistent": "The runs do not contradict the claim, which is no proof of it:",
        "no claim": "What the runs prove:",
    }[result.verdict]
    print_result(headline, [table], facts)
