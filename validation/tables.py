"""Tables of text, and files that are replaced whole."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

# The first row is the header.
Table: TypeAlias = Sequence[Sequence[str]]


def _padded(table: Table) -> list[list[str]]:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in table]


def plain(table: Table) -> str:
    """Return a table for a terminal."""
    return "\n".join("  ".join(row).rstrip() for row in _padded(table))


def markdown(table: Table, *, aligned: bool = True) -> str:
    """Return a table for a Markdown file, its columns aligned unless they are too wide."""
    header, *rows = _padded(table) if aligned else table
    rule = ["-" * len(cell) for cell in header]
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, rule, *rows))


def replace_file(path: Path, text: str) -> None:
    """Write a file under a temporary name and rename it, so that no half-written one remains."""
    temporary = path.with_name(f"{path.name}.part")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
