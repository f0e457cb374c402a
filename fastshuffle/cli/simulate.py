"""The command ``simulate``: estimates with intervals, from simulated histograms."""

import math
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.progress import Progress

from fastshuffle._validation import NONNEGATIVE_FINITE, PROBABILITY
from fastshuffle.cli.datasets import Ones, Others, Pair, held, read_dataset
from fastshuffle.cli.errors import InputError, file_errors, input_errors, say_warnings
from fastshuffle.cli.files import check_paths, json_bytes, write_files
from fastshuffle.cli.parsing import parse_count, parse_real
from fastshuffle.cli.settings import (
    Bundled,
    Confidence,
    Epsilon0,
    JsonFile,
    Matrix,
    Mechanism,
    MessageCount,
    Seed,
    Users,
    describe_messages,
    describe_randomizer,
    read_confidence,
    read_messages,
    read_randomizer,
    read_seed,
    read_users,
)
from fastshuffle.cli.tables import number_table, print_result
from fastshuffle.experiment import ShuffleExperiment
from fastshuffle.monte_carlo import MonteCarloProfile, Simulation
from fastshuffle.plotting import rounded_down, rounded_up
from fastshuffle.profile import DeltaWarning

_MOST_SAMPLES = 10**13


def simulate(  # noqa: PLR0913 - one parameter an option
    *,
    users: Users,
    mechanism: Mechanism = None,
    epsilon0: Epsilon0 = None,
    matrix: Matrix = None,
    messages: MessageCount = "1",
    bundled: Bundled = False,
    ones: Ones = None,
    others: Others = None,
    pair: Pair = None,
    delta: Annotated[
        list[str] | None, typer.Option(metavar="D", help="Print epsilon at this delta; repeatable.")
    ] = None,
    epsilon: Annotated[
        list[str] | None, typer.Option(metavar="E", help="Print delta at this epsilon; repeatable.")
    ] = None,
    samples: Annotated[
        str, typer.Option(metavar="M", help="How many histograms to draw.")
    ] = "1000000",
    confidence: Confidence = "0.99",
    seed: Seed = None,
    workers: Annotated[
        str | None, typer.Option(metavar="W", help="Number of threads, by default one a processor.")
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Draw on the workers of this Dask scheduler."),
    ] = None,
    state_file: Annotated[
        Path | None,
        typer.Option(
            "--state",
            metavar="FILE",
            help="Take up the samples of this file and its aim, if it exists, and keep all samples "
            "there, also if interrupted.",
        ),
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """Estimate the privacy of one pair of datasets from simulated histograms, with intervals.

    For datasets that no exact method covers. The samples are drawn where they serve the smallest
    --delta, or else the largest --epsilon.
    """
    n = read_users(users)
    deltas = [parse_real("--delta", text, PROBABILITY) for text in delta or ()]
    epsilons = [parse_real("--epsilon", text, NONNEGATIVE_FINITE) for text in epsilon or ()]
    if not deltas and not epsilons:
        raise InputError("at least one of --delta and --epsilon must be given")
    fixed = read_dataset(n, ones, others, pair)
    if fixed is None:
        raise InputError("one of --ones and --others must be given")
    n_samples = parse_count("--samples", samples, 2, _MOST_SAMPLES)
    level = read_confidence(confidence)
    entropy = read_seed(seed)
    threads = None if workers is None else parse_count("--workers", workers, 1, 10**4)
    if threads is not None and dask is not None:
        raise InputError("--workers must be given without --dask")
    single = read_randomizer(mechanism, epsilon0, matrix)
    randomizer, apart = read_messages(messages, single, n, bundled=bundled)
    paths = check_paths({"--json": json_file, "--state": state_file}, matrix)
    with input_errors():
        experiment = ShuffleExperiment(randomizer, n, messages=apart, **fixed)
        simulation = _simulation(experiment, deltas, epsilons, paths.get("--state"))

    rng = np.random.default_rng(entropy)
    try:
        with _client(dask) as client, _progress_bar(n_samples) as progress:
            simulation.run(n_samples, rng, executor=client, workers=threads, progress=progress)
    finally:
        if state_file is not None:
            write_files(paths, {"--state": simulation.to_json().encode()})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DeltaWarning)
        profile = simulation.profile(confidence=level)
        content = _content(profile, deltas, epsilons, entropy)
    if json_file is not None:
        write_files(paths, {"--json": json_bytes(content)})
    say_warnings(caught)
    _print(profile, content, entropy)


def _simulation(
    experiment: ShuffleExperiment, deltas: list[float], epsilons: list[float], state: Path | None
) -> Simulation:
    if state is not None and state.exists():
        # a file that is no text is no state either
        with file_errors("--state", state), input_errors(f"--state {state}: "):
            return Simulation.from_json(experiment, state.read_text(encoding="utf-8"))
    smallest = min((value for value in deltas if value > 0.0), default=None)
    target = (
        {"target_epsilon": max(epsilons, default=0.0)}
        if smallest is None
        else {"target_delta": max(smallest, 1e-300)}
    )
    simulation = Simulation(experiment, **target)
    if not epsilons:
        return simulation
    return Simulation(experiment, epsilons=[*simulation.epsilons, *epsilons], **target)


@contextmanager
def _client(address: str | None) -> Iterator[Any]:
    if address is None:
        yield None
        return
    try:
        distributed = import_module("dask.distributed")
    except ModuleNotFoundError as error:
        raise InputError('--dask needs Dask: pip install "fastshuffle[distributed]"') from error
    try:
        client = distributed.Client(address, timeout=10)
    except (OSError, ValueError) as error:
        raise InputError(f"--dask {address}: {error or 'no scheduler there'}") from error
    with client:
        yield client


@contextmanager
def _progress_bar(total: int) -> Iterator[Callable[[int, int], object] | None]:
    """Show progress on a terminal, and nothing elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("samples", total=total)
        yield lambda done, _: bar.update(task, completed=done)


def _content(
    profile: MonteCarloProfile, deltas: list[float], epsilons: list[float], entropy: int
) -> dict[str, Any]:
    rows = []
    for direction in ("both", "forward", "reverse"):
        for value in deltas:
            lower, upper = profile.epsilon_bounds(value, direction=direction)
            estimate = _estimate(lambda: profile.epsilon(value, direction=direction))  # noqa: B023
            rows.append(("epsilon", direction, value, estimate, lower, upper))
        for value in epsilons:
            lower, upper = profile.bounds(value, direction=direction)
            estimate = _estimate(lambda: profile.delta(value, direction=direction))  # noqa: B023
            rows.append(("delta", direction, value, estimate, lower, upper))
    names = ("quantity", "direction", "at", "estimate", "lower", "upper")
    return {
        **profile.to_dict(),
        "seed": str(entropy),
        "estimates": [
            dict(zip(names, (str(x) if x == math.inf else x for x in row), strict=True))
            for row in rows
        ],
    }


def _estimate(value: Callable[[], float]) -> float | None:
    try:
        return value()
    except ValueError:  # too few samples bear it; the interval says what is known
        return None


def _print(profile: MonteCarloProfile, content: dict[str, Any], entropy: int) -> None:
    table = number_table(
        ("quantity", "at", "estimate", "lower", "upper", "direction"),
        (
            (
                row["quantity"],
                f"{row['at']:g}",
                "-" if row["estimate"] is None else f"{float(row['estimate']):.6g}",
                rounded_down(float(row["lower"])),
                rounded_up(float(row["upper"])),
                row["direction"],
            )
            for row in content["estimates"]
        ),
    )
    a, b = profile.experiment.pair
    facts = {
        "users": f"{profile.n:,}, with the one who differs",
        "local": describe_randomizer(profile.experiment.randomizer),
        **describe_messages(profile.experiment.messages, profile.experiment.randomizer),
        "datasets": f"one pair; the others hold {' '.join(held(profile.experiment))}",
        "relation": profile.relation,
        "forward": f"the user who differs holds {b}, against {a}; reverse is {a} against {b}",
        "validity": str(profile.validity),
        "interval": f"all hold together with probability {profile.confidence:g}; - stands for too "
        "few samples for an estimate",
        "method": profile.method,
        "source": profile.source,
        "seed": str(entropy),
    }
    print_result(
        "Estimates for one pair of datasets alone, not a guarantee for a deployment:",
        [table],
        facts,
    )
