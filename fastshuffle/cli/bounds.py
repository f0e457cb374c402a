"""The command ``bounds``: all methods side by side."""

import math
import warnings
from typing import Annotated, Any

import typer

from fastshuffle._validation import PROBABILITY
from fastshuffle.cli.errors import say_warnings
from fastshuffle.cli.files import check_paths, csv_bytes, json_bytes, write_files
from fastshuffle.cli.methods import Outcome, Setting, load_kernels, outcomes
from fastshuffle.cli.parsing import parse_real
from fastshuffle.cli.settings import (
    Bundled,
    CsvFile,
    Epsilon0,
    JsonFile,
    Matrix,
    Mechanism,
    MessageCount,
    Users,
    describe_messages,
    describe_randomizer,
    read_messages,
    read_randomizer,
    read_users,
)
from fastshuffle.cli.tables import number_table, print_result
from fastshuffle.plotting import rounded_down, rounded_up
from fastshuffle.profile import RELATION, DeltaWarning, Validity

_GUARANTEES = {Validity.EXACT, Validity.UPPER_BOUND}

_Results = dict[float, list[Outcome]]  # by delta


def bounds(  # noqa: PLR0913 - one parameter an option
    *,
    users: Users,
    delta: Annotated[
        list[str], typer.Option(metavar="D", help="Print epsilon at this delta; repeatable.")
    ],
    mechanism: Mechanism = None,
    epsilon0: Epsilon0 = None,
    matrix: Matrix = None,
    messages: MessageCount = "1",
    bundled: Bundled = False,
    json_file: JsonFile = None,
    csv_file: CsvFile = None,
) -> None:
    """Print epsilon at each delta by every method that covers all datasets, and its time."""
    n = read_users(users)
    deltas = [parse_real("--delta", text, PROBABILITY) for text in delta]
    single = read_randomizer(mechanism, epsilon0, matrix)
    randomizer, apart = read_messages(messages, single, n, bundled=bundled)
    setting = Setting(randomizer, n, apart)
    paths = check_paths({"--json": json_file, "--csv": csv_file}, matrix)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DeltaWarning)
        load_kernels(apart)
        results = {value: outcomes(setting, value) for value in deltas}
    contents = {}
    if json_file is not None:
        contents["--json"] = json_bytes(_content(setting, results))
    if csv_file is not None:
        contents["--csv"] = _csv(setting, results)
    write_files(paths, contents)
    say_warnings(caught)
    _print(setting, results)


def _content(setting: Setting, results: _Results) -> dict[str, Any]:
    randomizer, n, messages = setting
    several = {"messages": messages} if messages > 1 else {}
    return {
        "relation": RELATION,
        "setting": {"randomizer": randomizer.to_dict(), "n": n, **several},
        "bounds": [
            {
                "delta": delta,
                **outcome._asdict(),
                "epsilon": _json_number(outcome.epsilon),
                "guarantee": outcome.validity in _GUARANTEES,
            }
            for delta, row in results.items()
            for outcome in row
        ],
    }


def _csv(setting: Setting, results: _Results) -> bytes:
    return csv_bytes(
        "method delta epsilon validity guarantee relation n messages seconds refusal",
        (
            (
                outcome.method,
                delta,
                outcome.epsilon,
                outcome.validity,
                "yes" if outcome.validity in _GUARANTEES else "no",
                RELATION,
                setting.n,
                setting.messages,
                outcome.seconds,
                outcome.refusal,
            )
            for delta, row in results.items()
            for outcome in row
        ),
    )


def _json_number(value: float | None) -> float | str | None:
    return value if value is None or value < math.inf else str(value)


def _print(setting: Setting, results: _Results) -> None:
    tables = [
        number_table(
            ("method", "validity", "epsilon", "seconds"),
            (_row(outcome) for outcome in row),
            title=f"delta = {rounded_up(delta)}",
        )
        for delta, row in results.items()
    ]
    facts = {
        "users": f"{setting.n:,}, with the one who differs",
        "local": describe_randomizer(setting.randomizer),
        **describe_messages(setting.messages, setting.randomizer),
        "datasets": "all neighbouring pairs",
        "relation": RELATION,
        "seconds": "for one epsilon from scratch, with the kernels loaded",
    }
    print_result("One setting by every method:", tables, facts)


def _row(outcome: Outcome) -> tuple[str, str, str, str]:
    if outcome.epsilon is None or outcome.seconds is None:
        return outcome.method, f"refused: {outcome.refusal}", "", ""
    if outcome.validity in _GUARANTEES:
        validity, epsilon = f"{outcome.validity}", rounded_up(outcome.epsilon)
    else:
        validity, epsilon = f"{outcome.validity}, no guarantee", rounded_down(outcome.epsilon)
    return outcome.method, validity, epsilon, f"{outcome.seconds:.2g}"
