"""The files of a command: checked before anything is computed, and written all or none."""

import csv
import io
import json
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from fastshuffle.cli.errors import InputError, file_errors
from fastshuffle.plotting import replacing


def check_paths(files: Mapping[str, Path | None], matrix: Path | None) -> dict[str, Path]:
    """Return the files that are asked for, by their option."""
    paths = {option: path for option, path in files.items() if path is not None}
    used = {} if matrix is None else {matrix.resolve(): "--matrix"}
    for option, path in paths.items():
        with file_errors(option, path):
            if not path.parent.is_dir():
                raise InputError(f"{option} must name a file in an existing folder, got {path}")
            if path.exists() and not path.is_file():
                raise InputError(f"{option} must name a regular file, got {path}")
            other = used.setdefault(path.resolve(), option)
        if other != option:
            raise InputError(f"{option} must name another file than {other}, got {path}")
        if option == "--plot" and path.suffix != ".png":
            raise InputError(f"{option} must name a .png file, got {path}")
    return paths


def write_files(paths: Mapping[str, Path], contents: Mapping[str, bytes]) -> None:
    """Write the content of each option to its file, all of them or none."""
    with ExitStack() as stack:
        for option, content in contents.items():
            stack.enter_context(file_errors(option, paths[option]))
            stack.enter_context(replacing(paths[option])).write_bytes(content)


def json_bytes(content: dict[str, Any]) -> bytes:
    """Return the content of a JSON file."""
    return (json.dumps(content, indent=2, allow_nan=False) + "\n").encode()


def csv_bytes(header: str, rows: Iterable[Iterable[object]]) -> bytes:
    """Return the content of a CSV file; the header is words."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header.split())
    writer.writerows(rows)
    return text.getvalue().encode()
