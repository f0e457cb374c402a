"""The command ``fastshuffle``, also ``python -m fastshuffle``. It needs the extra ``cli``."""

import sys


def main() -> int:
    """Run the command line and return its exit code."""
    try:
        from fastshuffle.cli import run  # noqa: PLC0415 - so that a missing extra has its message
    except ModuleNotFoundError as error:
        if error.name not in {"typer", "rich"}:
            raise
        sys.stderr.write(
            f'error: the command line needs {error.name}: pip install "fastshuffle[cli]"\n'
        )
        return 2
    return run()


if __name__ == "__main__":
    sys.exit(main())
