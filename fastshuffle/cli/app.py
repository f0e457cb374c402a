"""The program: its commands, and what becomes of errors."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from fastshuffle import __version__
from fastshuffle._kernels import _jit
from fastshuffle.cli.audit import audit
from fastshuffle.cli.bounds import bounds
from fastshuffle.cli.curve import curve
from fastshuffle.cli.demo import demo
from fastshuffle.cli.errors import InputError, say
from fastshuffle.cli.simulate import simulate

# The usage errors of typer have one public name, that of a subclass.
_UsageError: Any = typer.BadParameter.__base__

_app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
_app.command()(curve)
_app.command()(bounds)
_app.command()(simulate)
_app.command()(audit)
_app.add_typer(demo, name="demo")


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
        3 where an audit refutes the claim, 130 after a keyboard interrupt.
    """
    try:
        return _app(arguments, prog_name="fastshuffle", standalone_mode=False) or 0
    except _UsageError as error:
        return _failed(error.format_message(), 2)
    except InputError as error:
        return _failed(str(error), 2)
    except typer.Abort:
        return 130
    except (ArithmeticError, RuntimeError) as error:
        return _failed(str(error), 1)


def _failed(message: str, exit_code: int) -> int:
    say("error", message)
    return exit_code


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - typer's flags are booleans
    if wanted:
        typer.echo(f"fastshuffle {__version__}")
        raise typer.Exit


@_app.callback()
def _options(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="The version.")
    ] = False,
) -> None:
    """Exact finite-n privacy of the shuffle model of differential privacy."""
    del version


@_app.command()
def precompile() -> None:
    """Compile all kernels into the cache, so that no later call has to."""
    typer.echo(f"{_jit.precompile()} kernels compiled")
