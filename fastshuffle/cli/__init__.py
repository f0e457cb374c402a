"""The command line. It needs the extra ``cli`` (typer and rich).

All input is checked and all is computed before the first file is written, and all files are
written under temporary names before the first is renamed.
"""

from fastshuffle.cli.app import run

__all__ = ["run"]
