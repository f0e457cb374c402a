"""What is printed: a headline, tables of numbers, and facts about them."""

from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console
from rich.table import Column, Table


def number_table(
    header: Iterable[str], rows: Iterable[Sequence[str]], *, title: str | None = None
) -> Table:
    """Return a table in which a narrow terminal cuts no number short."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), title=title, title_justify="left")
    for name in header:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def print_result(headline: str, tables: Iterable[Table], facts: Mapping[str, str]) -> None:
    """Print all of a result, with an empty line between its parts."""
    # without markup, since no text here is meant as such
    console = Console(highlight=False, markup=False, emoji=False)
    console.print(headline)
    console.print()
    for table in tables:
        console.print(table)
        console.print()
    lines = Table.grid(Column(), Column(overflow="fold"), padding=(0, 2, 0, 0))
    for name, text in facts.items():
        lines.add_row(name, text)
    console.print(lines)
