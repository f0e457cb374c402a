"""What a run is doing: a live line where rich and a terminal are at hand, plain lines otherwise."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib.util import find_spec

Progress = Callable[[str], None]


@contextmanager
def show_progress() -> Generator[Progress, None, None]:
    """Yield a function that shows a line of text as the next piece of work begins."""
    start = time.perf_counter()
    if find_spec("rich") is not None and sys.stdout.isatty():
        from rich.progress import (  # noqa: PLC0415 - an extra
            Progress as Display,
        )
        from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

        columns = SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}")
        with Display(*columns) as display:
            task = display.add_task("start", total=None)

            def update(line: str) -> None:
                display.console.print(f"{time.perf_counter() - start:5.0f} s  {line}")
                display.update(task, description=line)

            yield update
        return

    def line_by_line(line: str) -> None:
        print(f"{time.perf_counter() - start:5.0f} s  {line}", flush=True)

    yield line_by_line
