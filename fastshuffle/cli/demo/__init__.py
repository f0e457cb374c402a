"""The commands ``demo ...``: protocols on the flights out of New York in 2013."""

import typer

from fastshuffle.cli.demo.frequency import frequency
from fastshuffle.cli.demo.mean import mean
from fastshuffle.cli.demo.sgd import sgd
from fastshuffle.cli.errors import tells_warnings

demo = typer.Typer(
    add_completion=False,
    help="Run a protocol on real data: 336,776 flights, one a user.",
    no_args_is_help=True,
)
for command in (frequency, mean, sgd):
    demo.command()(tells_warnings(command))

__all__ = ["demo"]
