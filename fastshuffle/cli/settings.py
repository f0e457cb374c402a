"""The options that several commands share, and the randomizer that they name."""

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NamedTuple, TypeAlias

import typer

from fastshuffle._validation import LARGEST_COUNT, NONNEGATIVE_FINITE
from fastshuffle.cli.errors import InputError, file_errors, input_errors
from fastshuffle.cli.parsing import parse_count, parse_real
from fastshuffle.monte_carlo.simulation import CONFIDENCE
from fastshuffle.plotting import rounded_up
from fastshuffle.randomizers import (
    LocalRandomizer,
    Randomizer,
    binary_local_hashing,
    binary_randomized_response,
    bundle,
    discrete_laplace,
    discretized_laplace,
    hadamard_response,
    k_randomized_response,
    laplace,
    optimized_local_hashing,
    optimized_unary_encoding,
    subset_selection,
    symmetric_unary_encoding,
)
from fastshuffle.randomizers.bundle import Bundle


def _binned_laplace(epsilon0: float, n_inputs: int, bins_per_step: int = 1) -> LocalRandomizer:
    return discretized_laplace(epsilon0, n_inputs, bins_per_step=bins_per_step)


class _Mechanism(NamedTuple):
    form: str  # how it is written; what is in brackets may be left out
    factory: Callable[..., LocalRandomizer]  # of epsilon0 and the integers in the form


_MECHANISMS = {
    form.split(":")[0].rstrip("["): _Mechanism(form, factory)
    for form, factory in (
        ("rr", binary_randomized_response),
        ("krr:K", k_randomized_response),
        ("sue:K", symmetric_unary_encoding),
        ("oue:K", optimized_unary_encoding),
        ("subset:K[:OMEGA]", subset_selection),
        ("hadamard:K", hadamard_response),
        ("blh:K", binary_local_hashing),
        ("olh:K[:G]", optimized_local_hashing),
        ("laplace[:INPUTS]", laplace),
        ("discrete-laplace:LEVELS", discrete_laplace),
        ("binned-laplace:INPUTS[:BINS]", _binned_laplace),
    )
}
_FORMS = ", ".join(mechanism.form for mechanism in _MECHANISMS.values())
_READERS = {".csv": Randomizer.from_csv, ".json": Randomizer.from_json}

Users: TypeAlias = Annotated[
    str, typer.Option("--users", metavar="N", help="Number of users, with the one who differs.")
]
Mechanism: TypeAlias = Annotated[
    str | None, typer.Option("--mechanism", metavar="NAME[:ARGS]", help=f"One of {_FORMS}.")
]
Epsilon0: TypeAlias = Annotated[
    str | None,
    typer.Option("--epsilon0", metavar="E", help="Local privacy parameter of the mechanism."),
]
Matrix: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--matrix",
        metavar="FILE",
        help="The randomizer instead: a .csv or .json file with one row of probabilities an input.",
    ),
]
JsonFile: TypeAlias = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON.")
]
CsvFile: TypeAlias = Annotated[
    Path | None, typer.Option("--csv", metavar="FILE", help="Write a line for each number.")
]
MessageCount: TypeAlias = Annotated[
    str, typer.Option("--messages", metavar="M", help="How many messages every user sends.")
]
Bundled: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--bundled/--unbundled",
        help="Whether the messages of a user stay together, or all are shuffled one by one.",
    ),
]
Confidence: TypeAlias = Annotated[
    str,
    typer.Option(
        "--confidence", metavar="C", help="Probability with which all that is said has to hold."
    ),
]
Seed: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--seed", metavar="S", help="An integer >= 0; by default a new one, which is printed."
    ),
]


def read_confidence(text: str) -> float:
    """Return the confidence."""
    return parse_real("--confidence", text, CONFIDENCE)


def read_seed(text: str | None) -> int:
    """Return the seed, by default a new one."""
    if text is None:
        return secrets.randbits(64)
    return parse_count("--seed", text, 0, 2**64 - 1)


def read_users(text: str) -> int:
    """Return the number of users."""
    return parse_count("--users", text, 1, LARGEST_COUNT)


def read_randomizer(
    mechanism: str | None, epsilon0: str | None, matrix: Path | None
) -> LocalRandomizer:
    """Return the randomizer that the three options name."""
    if matrix is not None:
        if mechanism is not None or epsilon0 is not None:
            raise InputError("--matrix must be given without --mechanism and --epsilon0")
        return _from_file(matrix)
    if mechanism is None:
        raise InputError("one of --mechanism and --matrix must be given")
    name, *texts = mechanism.split(":")
    known = _MECHANISMS.get(name)
    if known is None or not 0 <= known.form.count(":") - len(texts) <= known.form.count("["):
        raise InputError(f"--mechanism must be one of {_FORMS}, got {mechanism!r}")
    if epsilon0 is None:
        raise InputError("--epsilon0 must be given with --mechanism")
    local = parse_real("--epsilon0", epsilon0, NONNEGATIVE_FINITE)
    arguments = [
        parse_count(f"each argument of --mechanism {name}", text, 0, LARGEST_COUNT)
        for text in texts
    ]
    with input_errors(f"--mechanism {mechanism}: "):
        return known.factory(local, *arguments)


def read_messages(
    messages: str, randomizer: LocalRandomizer, n: int, *, bundled: bool
) -> tuple[LocalRandomizer, int]:
    """Return what every user applies, and how many messages are then shuffled one by one."""
    count = parse_count("--messages", messages, 1, LARGEST_COUNT // n)
    if not bundled:
        return randomizer, count
    with input_errors("--messages: "):
        return bundle(randomizer, count), 1


def describe_messages(count: int, randomizer: LocalRandomizer) -> dict[str, str]:
    """Return the fact about messages that are shuffled one by one, if there are several."""
    if count == 1:
        return {}
    total = rounded_up(count * randomizer.epsilon0)
    return {"messages": f"{count:,} a user, shuffled one by one; epsilon0 of all is {total}"}


def _from_file(matrix: Path) -> Randomizer:
    if matrix.suffix not in _READERS:
        raise InputError(f"--matrix must name a {' or '.join(_READERS)} file, got {str(matrix)!r}")
    with file_errors("--matrix", matrix), input_errors("--matrix "):
        return _READERS[matrix.suffix](matrix)


def describe_randomizer(randomizer: LocalRandomizer) -> str:
    """Return what the randomizer is, in a few words."""
    epsilon0 = f"epsilon0 = {rounded_up(randomizer.epsilon0)}"
    if isinstance(randomizer, Randomizer):
        n_inputs, n_outputs = randomizer.matrix.shape
        return f"{n_inputs} inputs, {n_outputs} outputs, {epsilon0}"
    if isinstance(randomizer, Bundle):
        single = describe_randomizer(randomizer.randomizer)
        return f"{randomizer.messages} messages together, {epsilon0}, each {single}"
    definition = randomizer.to_dict()
    words = [f"{name} = {value}" for name, value in definition.items() if name != "epsilon0"]
    return ", ".join([definition["mechanism"], *words[1:], epsilon0])
