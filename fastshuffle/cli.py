"""The command line. It needs the extra ``cli`` (typer and rich).

All input is checked and all is computed before the first file is written, and all files are
written under temporary names before the first is renamed.
"""

import csv
import io
import json
import math
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args

import typer
from rich.console import Console
from rich.table import Column, Table

from fastshuffle import __version__
from fastshuffle._kernels import _jit
from fastshuffle._typing import Direction
from fastshuffle._validation import (
    LARGEST_COUNT,
    NONNEGATIVE,
    NONNEGATIVE_FINITE,
    PROBABILITY,
    Interval,
)
from fastshuffle.exact import WorstCaseProfile, exact_profile, worst_case_profile
from fastshuffle.experiment import ShuffleExperiment
from fastshuffle.plotting import delta_text, plot_profile, replacing, rounded_up
from fastshuffle.profile import DeltaWarning, PrivacyProfile
from fastshuffle.randomizers import Randomizer, binary_randomized_response

__all__ = ["run"]

_MECHANISMS = {"rr": binary_randomized_response}
_READERS = {".csv": Randomizer.from_csv, ".json": Randomizer.from_json}

# A picture shows no more of a worst case, which is found many times faster so.
_PLOT_RTOL = 1e-3

# The usage errors of typer have one public name, that of a subclass.
_UsageError: Any = typer.BadParameter.__base__

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class _InputError(Exception):
    """What is wrong with the input."""


class _Quote(NamedTuple):
    """A pair of epsilon and delta, and the datasets and the direction that it is about."""

    computed: str  # which of the two
    epsilon: float
    delta: float  # 0 only for a delta that is exactly 0
    log_delta: float
    direction: Direction
    experiment: ShuffleExperiment


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        What follows the name of the program; by default that of this process.

    Returns
    -------
    int
        The exit code: 0 when all is done, 2 for bad input, 1 where a number cannot be computed,
        130 after a keyboard interrupt.
    """
    try:
        return app(arguments, prog_name="fastshuffle", standalone_mode=False) or 0
    except _UsageError as error:
        return _failed(error.format_message(), 2)
    except _InputError as error:
        return _failed(str(error), 2)
    except typer.Abort:
        return 130
    except (ArithmeticError, RuntimeError) as error:
        return _failed(str(error), 1)


def _failed(message: str, exit_code: int) -> int:
    _say("error", message)
    return exit_code


def _say(kind: str, message: str) -> None:
    sys.stderr.write(f"{kind}: {' '.join(message.split())}\n")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fastshuffle {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="The version.")
    ] = False,
) -> None:
    """Exact finite-n privacy of the shuffle model of differential privacy."""
    del version


@app.command()
def precompile() -> None:
    """Compile all kernels into the cache, so that no later call has to."""
    typer.echo(f"{_jit.precompile()} kernels compiled")


@app.command()
def curve(  # noqa: PLR0913 - one parameter an option
    *,
    users: Annotated[
        str, typer.Option(metavar="N", help="Number of users, with the one who differs.")
    ],
    mechanism: Annotated[
        str | None, typer.Option(metavar="NAME", help="rr: binary randomized response.")
    ] = None,
    epsilon0: Annotated[
        str | None, typer.Option(metavar="E", help="Local privacy parameter of the mechanism.")
    ] = None,
    matrix: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The randomizer instead: a .csv or .json file with one row of probabilities "
            "an input, two outputs.",
        ),
    ] = None,
    ones: Annotated[
        str | None,
        typer.Option(
            metavar="K",
            help="One fixed dataset instead of the worst case: K of the N - 1 others hold input "
            "1, the rest input 0.",
        ),
    ] = None,
    delta: Annotated[
        list[str] | None, typer.Option(metavar="D", help="Print epsilon at this delta; repeatable.")
    ] = None,
    epsilon: Annotated[
        list[str] | None, typer.Option(metavar="E", help="Print delta at this epsilon; repeatable.")
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON.")
    ] = None,
    csv_file: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", help="Write a line for each number.")
    ] = None,
    plot_file: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw the curve to a .png file.")
    ] = None,
) -> None:
    """Print the privacy of n users: epsilon at each delta, and delta at each epsilon.

    It is the certified worst case over all datasets, which a deployment may quote, unless --ones
    fixes the dataset.
    """
    n = _count("--users", users, 1, LARGEST_COUNT)
    k = None if ones is None else _count("--ones", ones, 0, n - 1)
    deltas = [_real("--delta", text, PROBABILITY) for text in delta or ()]
    epsilons = [_real("--epsilon", text, NONNEGATIVE) for text in epsilon or ()]
    if not deltas and not epsilons:
        raise _InputError("at least one of --delta and --epsilon must be given")
    randomizer = _randomizer(mechanism, epsilon0, matrix)
    files = {"--json": json_file, "--csv": csv_file, "--plot": plot_file}
    paths = {option: path for option, path in files.items() if path is not None}
    _check_paths(paths, matrix)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DeltaWarning)
        profile, experiment = _profile(randomizer, n, k)
        quotes = _quotes(profile, experiment, deltas, epsilons)
        contents = {}
        if json_file is not None:
            contents["--json"] = _json(profile, quotes, deltas, epsilons)
        if csv_file is not None:
            contents["--csv"] = _csv(profile, quotes)
        if plot_file is not None:
            drawn = worst_case_profile(randomizer, n, rtol=_PLOT_RTOL) if k is None else profile
            contents["--plot"] = _png(drawn, quotes)
    with ExitStack() as stack:
        for option, content in contents.items():
            stack.enter_context(_file_errors(option, paths[option]))
            stack.enter_context(replacing(paths[option])).write_bytes(content)
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        _say("warning", message)
    _print(profile, quotes)


def _parsed(option: str, domain: str, text: str, parse: Callable[[Decimal], float]) -> float:
    try:
        return parse(Decimal(text))
    except (ArithmeticError, ValueError):
        raise _InputError(f"{option} must be {domain}, got {text!r}") from None


def _count(option: str, text: str, low: int, high: int) -> int:
    def parse(number: Decimal) -> int:
        if not low <= number <= high or number != number.to_integral_value():
            raise ValueError
        return int(number)

    return int(_parsed(option, f"an integer from {low} to {high}", text, parse))


def _real(option: str, text: str, interval: Interval) -> float:
    def parse(number: Decimal) -> float:
        value = float(number)
        underflow_or_overflow = value in (0.0, math.inf) and number != value
        if not interval.low <= value <= interval.high or underflow_or_overflow:
            raise ValueError
        return value + 0.0

    return _parsed(option, f"a number {interval.words}", text, parse)


def _randomizer(mechanism: str | None, epsilon0: str | None, matrix: Path | None) -> Randomizer:
    if matrix is None:
        if mechanism is None:
            raise _InputError("one of --mechanism and --matrix must be given")
        if mechanism not in _MECHANISMS:
            names = " or ".join(_MECHANISMS)
            raise _InputError(f"--mechanism must be {names}, got {mechanism!r}")
        if epsilon0 is None:
            raise _InputError("--epsilon0 must be given with --mechanism")
        return _MECHANISMS[mechanism](_real("--epsilon0", epsilon0, NONNEGATIVE_FINITE))
    if mechanism is not None or epsilon0 is not None:
        raise _InputError("--matrix must be given without --mechanism and --epsilon0")
    if matrix.suffix not in _READERS:
        raise _InputError(f"--matrix must name a {' or '.join(_READERS)} file, got {str(matrix)!r}")
    with _file_errors("--matrix", matrix):
        try:
            return _READERS[matrix.suffix](matrix)
        except ValueError as error:
            raise _InputError(f"--matrix {error}") from error


def _profile(
    randomizer: Randomizer, n: int, k: int | None
) -> tuple[PrivacyProfile, ShuffleExperiment | None]:
    """Return the profile, and the one experiment it covers if it does not cover all."""
    try:
        if k is None:
            return worst_case_profile(randomizer, n), None
        experiment = ShuffleExperiment(randomizer, n, k=k)
        return exact_profile(experiment), experiment
    except ValueError as error:  # the shape, which only a matrix from a file can have wrong
        raise _InputError(f"--matrix: {error}") from error


@contextmanager
def _file_errors(option: str, path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _InputError(f"{option} {path}: {error.strerror or error}") from error


def _check_paths(paths: dict[str, Path], matrix: Path | None) -> None:
    used = {} if matrix is None else {matrix.resolve(): "--matrix"}
    for option, path in paths.items():
        with _file_errors(option, path):
            if not path.parent.is_dir():
                raise _InputError(f"{option} must name a file in an existing folder, got {path}")
            if path.exists() and not path.is_file():
                raise _InputError(f"{option} must name a regular file, got {path}")
            other = used.setdefault(path.resolve(), option)
        if other != option:
            raise _InputError(f"{option} must name another file than {other}, got {path}")
        if option == "--plot" and path.suffix != ".png":
            raise _InputError(f"{option} must name a .png file, got {path}")


def _quotes(
    profile: PrivacyProfile,
    experiment: ShuffleExperiment | None,
    deltas: list[float],
    epsilons: list[float],
) -> list[_Quote]:
    if isinstance(profile, WorstCaseProfile):
        quotes = []
        for pair in _pairs(profile, deltas, epsilons, "both"):
            worst = profile.argmax(pair[1])
            quotes.append(_Quote(*pair, worst.direction, worst.experiment))
        return quotes
    assert experiment is not None  # noqa: S101 - a profile is a worst case or of one experiment
    columns = [
        [
            _Quote(*pair, direction, experiment)
            for pair in _pairs(profile, deltas, epsilons, direction)
        ]
        for direction in get_args(Direction)
    ]
    return [quote for row in zip(*columns, strict=True) for quote in row]


def _pairs(
    profile: PrivacyProfile, deltas: list[float], epsilons: list[float], direction: Direction
) -> Iterator[tuple[str, float, float, float]]:
    """Yield the first four fields of a quote, at each delta and at each epsilon."""
    found = profile.epsilon(deltas, direction=direction).tolist()
    for delta, epsilon in zip(deltas, found, strict=True):
        yield "epsilon", epsilon, delta, math.log(delta) if delta > 0.0 else -math.inf
    found = profile.log_delta(epsilons, direction=direction).tolist()
    for epsilon, log_delta in zip(epsilons, found, strict=True):
        smallest = 0.0 if log_delta == -math.inf else math.ulp(0.0)
        yield "delta", epsilon, max(math.exp(log_delta), smallest), log_delta


def _json(
    profile: PrivacyProfile, quotes: list[_Quote], deltas: list[float], epsilons: list[float]
) -> bytes:
    content = profile.to_dict(delta=deltas or None, epsilon=epsilons or None)
    if isinstance(profile, WorstCaseProfile):
        rows = [*content.get("guarantees", ()), *content.get("curve", ())]
        for row, quote in zip(rows, quotes, strict=True):
            dataset = quote.experiment.to_dict()
            row["worst_dataset"] = {
                "others": dataset["others"],
                "pair": dataset["pair"],
                "direction": quote.direction,
            }
    return (json.dumps(content, indent=2, allow_nan=False) + "\n").encode()


def _csv(profile: PrivacyProfile, quotes: list[_Quote]) -> bytes:
    text = io.StringIO(newline="")
    header = "kind epsilon delta log_delta direction validity relation datasets n pair others"
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header.split())
    for quote in quotes:
        experiment = quote.experiment
        writer.writerow(
            (
                quote.computed,
                quote.epsilon,
                quote.delta,
                quote.log_delta,
                quote.direction,
                profile.validity,
                profile.relation,
                "all" if isinstance(profile, WorstCaseProfile) else "these",
                profile.n,
                " ".join(map(str, experiment.pair)),
                " ".join(f"{x}:{count}" for x, count in experiment.others.items()),
            )
        )
    return text.getvalue().encode()


def _png(profile: PrivacyProfile, quotes: list[_Quote]) -> bytes:
    worst_case = isinstance(profile, WorstCaseProfile)
    marks = {(q.epsilon, q.log_delta) for q in quotes if worst_case or q.direction == "both"}
    content = io.BytesIO()
    try:
        plot_profile(profile, marks=marks).savefig(content, format="png")
    except ModuleNotFoundError as error:
        raise _InputError(f"--plot: {error}") from error
    return content.getvalue()


def _print(profile: PrivacyProfile, quotes: list[_Quote]) -> None:
    # without markup, since no text here is meant as such
    console = Console(highlight=False, markup=False, emoji=False)
    worst_case = isinstance(profile, WorstCaseProfile)
    experiment = quotes[0].experiment
    a, b = experiment.pair
    numbers = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    inputs = experiment.pair if worst_case else ()
    for name in ("epsilon", "delta", "direction", *(f"others at {x}" for x in inputs)):
        numbers.add_column(name, overflow="fold")  # in a narrow terminal: no number is cut short
    for quote in quotes:
        numbers.add_row(
            rounded_up(quote.epsilon),
            delta_text(quote.delta, quote.log_delta),
            quote.direction,
            *(str(quote.experiment.others.get(x, 0)) for x in inputs),
        )
    held = " and ".join(f"{count:,} others hold {x}" for x, count in experiment.others.items())
    facts = {
        "users": f"{profile.n:,}, with the one who differs",
        "local": f"{experiment.randomizer.n_inputs} inputs, 2 outputs, epsilon0 = "
        f"{rounded_up(experiment.randomizer.epsilon0)}",
        "datasets": "all neighbouring pairs; each line above names the worst one"
        if worst_case
        else f"one pair, where {held or 'there are no others'}; leave out --ones to cover all",
        "relation": profile.relation,
        "forward": f"the user who differs holds {b}, against {a}; reverse is {a} against {b}",
        "validity": str(profile.validity),
        "method": profile.method,
        "source": profile.source,
    }
    lines = Table.grid(Column(), Column(overflow="fold"), padding=(0, 2, 0, 0))
    for name, text in facts.items():
        lines.add_row(name, text)
    console.print(
        "A guarantee for every dataset:"
        if worst_case
        else "For one pair of datasets alone, not a guarantee for a deployment:"
    )
    console.print()
    console.print(numbers)
    console.print()
    console.print(lines)
