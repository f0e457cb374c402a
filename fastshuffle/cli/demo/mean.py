"""The command ``demo mean``: the mean departure delay."""

from typing import Annotated, Any

import numpy as np
import typer

from fastshuffle._typing import FloatArray
from fastshuffle._validation import Interval
from fastshuffle.cli.demo.flights import Flights, read_flights
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
from fastshuffle.cli.parsing import parse_real
from fastshuffle.cli.settings import Confidence, JsonFile, read_confidence, read_seed
from fastshuffle.cli.tables import number_table, print_result
from fastshuffle.protocols import MeanResult, estimate_mean
from fastshuffle.protocols.numeric import MECHANISMS

_MINUTES = Interval(-1e6, 1e6, "in [-1e6, 1e6]")


def mean(  # noqa: PLR0913 - one parameter an option
    *,
    mechanism: Annotated[
        str, typer.Option(metavar="NAME", help=f"One of {', '.join(MECHANISMS)}.")
    ] = "rr",
    epsilon0: LocalBudget = "2",
    cautious: CautiousShare = "0.3",
    cautious_epsilon0: CautiousBudget = "0.5",
    low: Annotated[
        str, typer.Option(metavar="MIN", help="Shorter delays are clipped to this.")
    ] = "-30",
    high: Annotated[
        str, typer.Option(metavar="MIN", help="Longer delays are clipped to this.")
    ] = "180",
    delta: Delta = "1e-8",
    confidence: Confidence = "0.95",
    seed: RepeatableSeed = "1",
    json_file: JsonFile = None,
    plot_file: PlotFile = None,
) -> None:
    """Estimate the mean departure delay in minutes, every flight being a user."""
    setting = Setting.read(epsilon0, cautious_epsilon0, cautious, delta)
    ends = parse_real("--low", low, _MINUTES), parse_real("--high", high, _MINUTES)
    level, entropy = read_confidence(confidence), read_seed(seed)
    if mechanism not in MECHANISMS:
        raise InputError(f"--mechanism must be one of {', '.join(MECHANISMS)}, got {mechanism!r}")
    paths = check_paths({"--json": json_file, "--plot": plot_file}, None)
    flights = read_flights("dep_delay")
    delays = flights.columns["dep_delay"]

    rng = np.random.default_rng(entropy)

    def estimate(budgets: float | FloatArray, **options: Any) -> MeanResult:
        return estimate_mean(
            delays,
            budgets,
            low=ends[0],
            high=ends[1],
            rng=rng,
            mechanism=mechanism,  # type: ignore[arg-type] # one of the names
            clip=True,
            confidence=level,
            **options,
        )

    with input_errors():
        runs = all_runs(setting, flights.n, rng, estimate)
    truth = float(np.clip(delays, *ends).mean())
    contents = {}
    if json_file is not None:
        contents["--json"] = json_bytes(
            {
                "data": flights.words,
                "mean": float(delays.mean()),
                "mean_clipped": truth,
                "seed": entropy,
                "runs": [run.to_dict(setting.delta) for run in runs],
            }
        )
    if plot_file is not None:
        contents["--plot"] = figure_bytes(lambda axes: _draw(axes, runs, truth))
    write_files(paths, contents)
    _print(runs, flights, delays, ends, setting.delta, entropy)


def _draw(axes: Any, runs: list[Run[MeanResult]], truth: float) -> None:
    places = np.arange(len(runs))[::-1]
    results = [run.result for run in runs]
    estimates = np.array([result.estimate for result in results])
    errors = np.abs(np.array([(r.lower, r.upper) for r in results]).T - estimates)
    axes.errorbar(estimates, places, xerr=errors, fmt="o", capsize=3, label="estimate, interval")
    axes.axvline(truth, color="black", linewidth=1.0, label="all flights, clipped")
    labels = [f"{run.name}\nepsilon {run.epsilons[0]} -> {run.epsilons[1]}" for run in runs]
    axes.set_yticks(places, labels, fontsize="small")
    axes.set_xlabel("mean departure delay, minutes")
    axes.set_ylim(-0.5, len(runs) - 0.5)
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")


def _print(
    runs: list[Run[MeanResult]],
    flights: Flights,
    delays: FloatArray,
    ends: tuple[float, float],
    delta: float,
    seed: int,
) -> None:
    truth = float(np.clip(delays, *ends).mean())
    rows = [("not private", f"{truth:.4f}", "", "", "", "inf", "inf")]
    rows += [
        (
            run.name,
            f"{run.result.estimate:.4f}",
            f"{run.result.lower:.4f}",
            f"{run.result.upper:.4f}",
            f"{run.result.variance**0.5:.4f}",
            *run.epsilons,
        )
        for run in runs
    ]
    header = ("run", "estimate", "lower", "upper", "standard error", "local", "central")
    facts = {
        "data": flights.words,
        "clipped": f"{runs[0].result.clipped:,} delays, to {ends[0]:g} and {ends[1]:g} minutes; "
        f"without clipping the mean is {float(delays.mean()):.4f}",
        **common_facts(runs, delta, seed),
    }
    print_result(
        f"Mean departure delay of {flights.n:,} flights in minutes:",
        [number_table(header, rows), budget_table(runs[-1].result.guarantee, delta)],
        facts,
    )
