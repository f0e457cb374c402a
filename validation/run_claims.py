"""The claims in a folder: found by listing it, measured one file at a time, judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from validation.claim import Claim, Finding
from validation.progress import Progress
from validation.store import Store

FOLDER = Path(__file__).with_name("claims")


@dataclass(frozen=True)
class Family:
    """The claims of one file.

    Attributes
    ----------
    name : str
        Name of the file, without its ending.
    title : str
        First line of its docstring.
    claims : tuple of Claim
        Its `CLAIMS`.
    measure : callable
        Its `measure(quick=)`, which returns a finding for each claim.
    path : path
        The file.
    """

    name: str
    title: str
    claims: tuple[Claim, ...]
    measure: Callable[..., list[Finding]]
    path: Path


@dataclass(frozen=True)
class Judged:
    """A claim with its finding.

    Attributes
    ----------
    family : str
        Name of the file.
    title : str
        Its title.
    claim : Claim
        The claim.
    finding : Finding
        What was measured.
    """

    family: str
    title: str
    claim: Claim
    finding: Finding

    @property
    def passed(self) -> bool:
        """Whether the verdict is the recorded one."""
        return self.finding.verdict is self.claim.expected

    @property
    def failure(self) -> str:
        """Return what differs from the record."""
        return (
            f"{self.family}: {self.claim.statement}: {self.finding.verdict_text}, "
            f"recorded: {self.claim.expected}"
        )


def _load(path: Path) -> Family:
    spec = spec_from_file_location(f"validation.claims.{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module: Any = module_from_spec(spec)
    spec.loader.exec_module(module)
    title = (module.__doc__ or path.stem).strip().splitlines()[0].rstrip(".")
    return Family(path.stem, title, tuple(module.CLAIMS), module.measure, path)


def families(folder: Path = FOLDER) -> list[Family]:
    """Return the claims of every file in a folder.

    Parameters
    ----------
    folder : path
        A folder of Python files, each with ``CLAIMS`` and ``measure(quick=)``.

    Returns
    -------
    list of Family
        In the order of the file names.
    """
    return [_load(path) for path in sorted(folder.glob("*.py")) if path.stem != "__init__"]


def check_claims(
    folder: Path, *, quick: bool, progress: Progress, store: Store | None = None
) -> list[Judged]:
    """Measure and judge the claims of a folder.

    Parameters
    ----------
    folder : path
        As for `families`.
    quick : bool
        Measure on small grids.
    progress : callable
        Called with a line of text as each file begins.
    store : Store, optional
        Where findings are kept.

    Returns
    -------
    list of Judged
        One for each claim.
    """
    judged = []
    found = families(folder)
    for i, family in enumerate(found, start=1):
        progress(f"claims {i}/{len(found)}: {family.title}")

        def compute(family: Family = family) -> list[dict[str, Any]]:
            return [finding.to_dict() for finding in family.measure(quick=quick)]

        contents = compute() if store is None else store.get(family.name, compute, family.path)
        findings = [Finding.from_dict(content) for content in contents]
        judged += [
            Judged(family.name, family.title, claim, finding)
            for claim, finding in zip(family.claims, findings, strict=True)
        ]
    return judged
