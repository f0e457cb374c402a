"""Bad input, and how a message is said."""

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import ParamSpec

from fastshuffle.profile import DeltaWarning

_P = ParamSpec("_P")


class InputError(Exception):
    """What is wrong with the input."""


def say(kind: str, message: str) -> None:
    """Write a message to standard error, as one line."""
    sys.stderr.write(f"{kind}: {' '.join(message.split())}\n")


def tells_warnings(command: Callable[_P, None]) -> Callable[_P, None]:
    """Return a command that ends with a line for each different warning about delta."""

    @wraps(command)
    def told(*arguments: _P.args, **options: _P.kwargs) -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", DeltaWarning)
            try:
                command(*arguments, **options)
            finally:
                say_warnings(caught)

    return told


def say_warnings(caught: Iterable[warnings.WarningMessage]) -> None:
    """Write each different warning once."""
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        say("warning", message)


@contextmanager
def input_errors(prefix: str = "") -> Iterator[None]:
    """Turn what the library refuses into bad input."""
    try:
        yield
    except ValueError as error:
        raise InputError(f"{prefix}{error}") from error


@contextmanager
def file_errors(option: str, path: Path) -> Iterator[None]:
    """Turn an error of the file system into one that names the option and the file."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{option} {path}: {error.strerror or error}") from error
