"""The runs that a demonstration compares, and how they are told to a person."""

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
import typer

from fastshuffle._typing import FloatArray
from fastshuffle._validation import POSITIVE_FINITE, PROBABILITY, Interval
from fastshuffle.cli.errors import InputError
from fastshuffle.cli.parsing import parse_real
from fastshuffle.cli.tables import number_table
from fastshuffle.plotting import rounded_up
from fastshuffle.profile import RELATION
from fastshuffle.protocols import Guarantee, ProtocolResult

LocalBudget: TypeAlias = Annotated[
    str, typer.Option("--epsilon0", metavar="E", help="Local privacy parameter of the users.")
]
CautiousBudget: TypeAlias = Annotated[
    str,
    typer.Option(
        "--cautious-epsilon0", metavar="E", help="That of the privacy-conscious in a second run."
    ),
]
CautiousShare: TypeAlias = Annotated[
    str, typer.Option("--cautious", metavar="SHARE", help="The share of privacy-conscious users.")
]
Delta: TypeAlias = Annotated[
    str, typer.Option("--delta", metavar="D", help="Print epsilon at this delta.")
]
RepeatableSeed: TypeAlias = Annotated[
    str, typer.Option("--seed", metavar="S", help="An integer >= 0: the same numbers again.")
]
PlotFile: TypeAlias = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE", help="Draw the estimates to a .png file.")
]

_SHARE = Interval(1e-6, 1.0 - 1e-6, "in [1e-6, 1 - 1e-6]")


class Setting(NamedTuple):
    """What the options of every demonstration say."""

    epsilon0: float
    cautious_epsilon0: float
    cautious: float
    delta: float

    @classmethod
    def read(cls, epsilon0: str, cautious_epsilon0: str, cautious: str, delta: str) -> "Setting":
        """Return the setting from the texts of the options."""
        return cls(
            parse_real("--epsilon0", epsilon0, POSITIVE_FINITE),
            parse_real("--cautious-epsilon0", cautious_epsilon0, POSITIVE_FINITE),
            parse_real("--cautious", cautious, _SHARE),
            parse_real("--delta", delta, PROBABILITY),
        )

    def budgets(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Return a budget for each of n users, those of the cautious ones drawn at random."""
        cautious = rng.random(n) < self.cautious
        return np.where(cautious, self.cautious_epsilon0, self.epsilon0)


Result = TypeVar("Result", bound=ProtocolResult)


@dataclass(frozen=True)
class Run(Generic[Result]):
    """One way to make the estimate, and the privacy that it is made with."""

    name: str
    result: Result
    central: float | None  # epsilon at delta for the worst user; None without a shuffler

    @property
    def epsilons(self) -> tuple[str, str]:
        """The local and the central epsilon, as text."""
        local = rounded_up(self.result.guarantee.epsilon0, 4)
        return local, local if self.central is None else rounded_up(self.central, 4)

    def to_dict(self, delta: float) -> dict[str, Any]:
        """Return the run in plain Python values."""
        content = self.result.to_dict(delta=delta)
        if self.central is None:
            del content["guarantee"]
        return {
            "run": self.name,
            "shuffled": self.central is not None,
            "local_epsilon": self.result.guarantee.epsilon0,
            **content,
        }


def all_runs(
    setting: Setting,
    n: int,
    rng: np.random.Generator,
    estimate: Callable[..., Result],
) -> list[Run[Result]]:
    """Run the protocol with one budget, without a shuffler, and with two budgets.

    ``estimate`` takes the budgets and, by name, the weights.
    """

    def shuffled(name: str, result: Result) -> Run[Result]:
        return Run(name, result, result.guarantee.epsilon(setting.delta))

    one = shuffled("shuffled", estimate(setting.epsilon0))
    if one.central == 0.0:
        raise InputError(
            f"--delta must be so small that it asks for noise, got {setting.delta!r}: epsilon is 0"
        )
    budgets = setting.budgets(n, rng)
    return [
        one,
        # the same protection without trust in a shuffler
        Run("no shuffler, as private", estimate(one.central), None),
        *(
            shuffled(f"two budgets, by {weights}", estimate(budgets, weights=weights))
            for weights in ("users", "precision")
        ),
    ]


def budget_table(guarantee: Guarantee, delta: float) -> Any:
    """Return what the users of each budget are guaranteed, before and after the shuffle."""
    return number_table(
        ("users", "alone: epsilon", "shuffled: epsilon", "delta", "validity"),
        (
            (
                f"{group.users:,}",
                rounded_up(group.epsilon0, 4),
                rounded_up(group.profile.epsilon(delta), 4),
                rounded_up(delta),
                str(group.profile.validity),
            )
            for group in guarantee.groups
        ),
        title="Users of two budgets, each among those of the same budget",
    )


def common_facts(runs: Sequence[Run[Any]], delta: float, seed: int) -> dict[str, str]:
    """Return what is to be said of every demonstration."""
    first = runs[0].result
    profile = first.guarantee.groups[0].profile
    return {
        "protocol": first.protocol,
        "interval": f"{first.confidence:.0%}; one budget {first.interval}; two "
        f"{runs[-1].result.interval}",
        "by users": f"unbiased for {runs[-2].result.target}",
        "by precision": f"unbiased for {runs[-1].result.target}",
        "epsilon": f"at delta = {rounded_up(delta)}, for the worst user; local before the shuffle, "
        "central after it",
        "no shuffler": "every user alone spends the epsilon that the shuffled run has in the end",
        "relation": RELATION,
        "validity": str(first.guarantee.validity),
        "method": profile.method,
        "source": profile.source,
        "seed": str(seed),
    }


def figure_bytes(draw: Callable[[Any], None]) -> bytes:
    """Return a PNG of a figure with one pair of axes."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - only a plot needs the extra
    except ModuleNotFoundError as error:
        raise InputError('--plot needs matplotlib: pip install "fastshuffle[plot]"') from error
    figure = Figure(figsize=(7.2, 4.2), dpi=150, layout="constrained")
    draw(figure.add_subplot())
    content = io.BytesIO()
    figure.savefig(content, format="png", metadata={"Software": None})
    return content.getvalue()
