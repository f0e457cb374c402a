"""The command ``demo frequency``: the shares of carriers or destinations."""

from typing import Annotated, Any

import numpy as np
import typer

from fastshuffle._typing import FloatArray
from fastshuffle._validation import PROBABILITY
from fastshuffle.cli.demo.flights import read_flights
from fastshuffle.cli.demo.runs import (
    CautiousBudget,
    CautiousShare,
    Delta,
    LocalBudget,
    PlotFile,
    RepeatableSeed,
    Run,
    Setting,
    all_runs,
    budget_table,
    common_facts,
    figure_bytes,
)
from fastshuffle.cli.errors import InputError, input_errors
from fastshuffle.cli.files import check_paths, json_bytes, write_files
from fastshuffle.cli.parsing import parse_count, parse_real
from fastshuffle.cli.settings import Confidence, JsonFile, read_confidence, read_seed
from fastshuffle.cli.tables import number_table, print_result
from fastshuffle.protocols import FrequencyResult, estimate_frequencies
from fastshuffle.protocols.frequency import MECHANISMS

_MOST_DRAWN = 30
_COLUMNS = {"carrier": "carrier", "destination": "dest"}


def frequency(  # noqa: PLR0913 - one parameter an option
    *,
    of: Annotated[str, typer.Option(metavar="WHAT", help=f"{' or '.join(_COLUMNS)}.")] = "carrier",
    mechanism: Annotated[
        str, typer.Option(metavar="NAME", help=f"One of {', '.join(MECHANISMS)}.")
    ] = "krr",
    epsilon0: LocalBudget = "3",
    cautious: CautiousShare = "0.3",
    cautious_epsilon0: CautiousBudget = "1",
    threshold: Annotated[
        str, typer.Option(metavar="F", help="Find the categories more frequent than this.")
    ] = "0.05",
    top: Annotated[
        str, typer.Option(metavar="M", help="How many of the most frequent to print.")
    ] = "10",
    delta: Delta = "1e-8",
    confidence: Confidence = "0.95",
    seed: RepeatableSeed = "1",
    json_file: JsonFile = None,
    plot_file: PlotFile = None,
) -> None:
    """Estimate how frequent each carrier or destination is, every flight being a user."""
    setting = Setting.read(epsilon0, cautious_epsilon0, cautious, delta)
    limit = parse_real("--threshold", threshold, PROBABILITY)
    shown = parse_count("--top", top, 1, 10**6)
    level, entropy = read_confidence(confidence), read_seed(seed)
    if of not in _COLUMNS:
        raise InputError(f"--of must be one of {', '.join(_COLUMNS)}, got {of!r}")
    if mechanism not in MECHANISMS:
        raise InputError(f"--mechanism must be one of {', '.join(MECHANISMS)}, got {mechanism!r}")
    paths = check_paths({"--json": json_file, "--plot": plot_file}, None)
    flights = read_flights(_COLUMNS[of])
    # what is public about a deployment: here the categories that occur
    domain, inputs = np.unique(flights.columns[_COLUMNS[of]].astype(str), return_inverse=True)
    truth = np.bincount(inputs) / flights.n

    rng = np.random.default_rng(entropy)

    def estimate(budgets: float | FloatArray, **options: Any) -> FrequencyResult:
        return estimate_frequencies(
            domain[inputs],
            budgets,
            domain=domain.tolist(),
            rng=rng,
            mechanism=mechanism,  # type: ignore[arg-type] # one of the names
            confidence=level,
            **options,
        )

    with input_errors():
        runs = all_runs(setting, flights.n, rng, estimate)
    first = runs[0].result
    contents = {}
    if json_file is not None:
        contents["--json"] = json_bytes(
            {
                "data": flights.words,
                "frequencies": dict(zip(domain.tolist(), truth.tolist(), strict=True)),
                "seed": entropy,
                "runs": [run.to_dict(setting.delta) for run in runs],
            }
        )
    if plot_file is not None:
        contents["--plot"] = figure_bytes(lambda axes: _draw(axes, first, truth))
    write_files(paths, contents)
    found = first.heavy_hitters(limit)
    names = ", ".join(str(hitter.category) for hitter in found)
    missed = int((truth > limit).sum()) - len(found)
    _print(
        runs,
        truth,
        shown,
        f"Shares of {len(domain)} {of}s among {flights.n:,} flights:",
        setting.delta,
        {
            "data": flights.words,
            "heavy hitters": f"{names or 'none'}: above {limit:g}, a false one among them with "
            f"probability at most 0.05; {missed} missed",
            **common_facts(runs, setting.delta, entropy),
        },
    )


def _draw(axes: Any, first: FrequencyResult, truth: FloatArray) -> None:
    order = np.argsort(-truth)[:_MOST_DRAWN]
    places = np.arange(order.size)
    estimate = np.asarray(first.estimate)[order]
    ends = np.array([np.asarray(end)[order] for end in (first.lower, first.upper)])
    axes.bar(places, truth[order], color="lightgray", label="all flights")
    axes.errorbar(
        places,
        estimate,
        yerr=np.abs(ends - estimate),
        fmt="o",
        capsize=3,
        label="estimate, interval",
    )
    axes.axhline(0.0, color="black", linewidth=0.8)
    axes.set_xticks(places, [str(first.domain[i]) for i in order], rotation=90)
    axes.set_ylabel("share of flights")
    axes.legend(fontsize="small")


def _print(
    runs: list[Run[FrequencyResult]],
    truth: FloatArray,
    shown: int,
    headline: str,
    delta: float,
    facts: dict[str, str],
) -> None:
    first, alone = (run.result for run in runs[:2])
    arrays = (first.estimate, first.lower, first.upper, alone.estimate)
    columns = np.array([truth, *arrays]).T
    categories = number_table(
        ("category", "truth", "estimate", "lower", "upper", "no shuffler"),
        (
            (str(first.domain[i]), *(f"{value:.5f}" for value in columns[i].tolist()))
            for i in np.argsort(-truth)[:shown].tolist()
        ),
        title=f"The most frequent, with one budget of {runs[0].epsilons[0]}",
    )
    rows = [("not private", "0", "inf", "inf")]
    rows += [
        (run.name, f"{np.sqrt(np.mean((run.result.estimate - truth) ** 2)):.5f}", *run.epsilons)
        for run in runs
    ]
    errors = number_table(("run", "root mean square error", "local", "central"), rows)
    print_result(
        headline, [errors, categories, budget_table(runs[-1].result.guarantee, delta)], facts
    )
