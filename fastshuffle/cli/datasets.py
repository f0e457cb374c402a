"""The options that fix one pair of datasets."""

from typing import Annotated, Any, TypeAlias

import typer

from fastshuffle._validation import LARGEST_COUNT
from fastshuffle.cli.errors import InputError
from fastshuffle.cli.parsing import parse_count
from fastshuffle.experiment import ShuffleExperiment

Ones: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="K",
        help="One fixed pair of datasets: K of the N - 1 others hold input 1, the rest input 0.",
    ),
]
Others: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="INPUT:COUNT",
        help="Instead of --ones: how many of the N - 1 others hold an input; repeatable.",
    ),
]
Pair: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="A:B",
        help="With --others: the inputs of the user who differs in the first and in the "
        "second dataset, 0:1 by default.",
    ),
]


def read_dataset(
    n: int, ones: str | None, others: list[str] | None, pair: str | None
) -> dict[str, Any] | None:
    """Return the arguments of the experiment that the options fix, if they do."""
    if ones is not None and others:
        raise InputError("--ones must be given without --others")
    if pair is not None and not others:
        raise InputError("--pair must be given with --others")
    if ones is not None:
        return {"k": parse_count("--ones", ones, 0, n - 1)}
    if not others:
        return None
    counts = [_two_counts("--others", "INPUT:COUNT", text) for text in others]
    if len(dict(counts)) < len(counts):
        raise InputError(f"--others must name each input once, got {' '.join(others)}")
    return {"others": dict(counts), "pair": _two_counts("--pair", "A:B", pair or "0:1")}


def _two_counts(option: str, form: str, text: str) -> tuple[int, int]:
    first, colon, second = text.partition(":")
    if not colon:
        raise InputError(f"{option} must have the form {form}, got {text!r}")
    return parse_count(option, first, 0, LARGEST_COUNT), parse_count(
        option, second, 0, LARGEST_COUNT
    )


def held(experiment: ShuffleExperiment) -> list[str]:
    """Return what the others hold, as --others takes it."""
    return [f"{x}:{count}" for x, count in experiment.others.items()]
