"""Results of earlier runs, in JSON, so that an interrupted run goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import fastshuffle
from validation.tables import replace_file

_HERE = Path(__file__).parent
_PACKAGE = Path(fastshuffle.__file__).parent


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


@cache
def _code_stamp() -> str:
    """Return a digest of the package and of the validation, the files of the claims excepted."""
    own = [file for file in _HERE.rglob("*.py") if file.parent.name != "claims"]
    return _digest(sorted([*_PACKAGE.rglob("*.py"), *own]))


class Store:
    """Results kept in a folder, each with a stamp of the code it rests on.

    Parameters
    ----------
    folder : path
        Where the results are kept; made when the first is.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, name: str, compute: Callable[[], Any], *files: Path) -> Any:
        """Return a kept result, or compute it and keep it.

        Parameters
        ----------
        name : str
            Name of the result, and of its file.
        compute : callable
            Returns the result in plain values, ready for JSON.
        *files : path
            Files that the result rests on besides the package and the frame.

        Returns
        -------
        object
            The result as it comes back from JSON.
        """
        path = self._folder / f"{name}.json"
        stamp = f"{_code_stamp()} {_digest(files)}"
        if path.exists():
            kept = json.loads(path.read_text(encoding="utf-8"))
            if kept["stamp"] == stamp:
                return kept["result"]
        text = json.dumps({"stamp": stamp, "result": compute()})
        self._folder.mkdir(parents=True, exist_ok=True)
        replace_file(path, text)
        return json.loads(text)["result"]

    def clear(self) -> None:
        """Forget all results."""
        for path in self._folder.glob("*.json"):
            path.unlink()
