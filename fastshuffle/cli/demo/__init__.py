"""The commands ``demo ...``: protocols on the flights out of New York in 2013."""

import typer

from fastshuffle.cli.demo.sgd import sgd

demo = typer.Typer(
    add_completion=False,
    help="Run a protocol on real data: 336,776 flights, one a user.",
    no_args_is_help=True,
)


@demo.callback()
def _commands() -> None:
    """Keep the name of a command, also where there is only one."""


demo.command()(sgd)

__all__ = ["demo"]
