"""The command ``curve``: the privacy of n users."""

import io
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from fastshuffle._validation import NONNEGATIVE, PROBABILITY
from fastshuffle.cli.datasets import Ones, Others, Pair, held, read_dataset
from fastshuffle.cli.errors import InputError, input_errors, say_warnings
from fastshuffle.cli.files import check_paths, csv_bytes, json_bytes, write_files
from fastshuffle.cli.parsing import parse_real
from fastshuffle.cli.quotes import Quote, experiment_quotes, worst_case_quotes
from fastshuffle.cli.settings import (
    Bundled,
    CsvFile,
    Epsilon0,
    JsonFile,
    Matrix,
    Mechanism,
    MessageCount,
    Users,
    describe_messages,
    describe_randomizer,
    read_messages,
    read_randomizer,
    read_users,
)
from fastshuffle.cli.tables import number_table, print_result
from fastshuffle.exact import (
    ExactProfile,
    UnbundledProfile,
    WorstCaseProfile,
    exact_profile,
    worst_case_profile,
)
from fastshuffle.exact.binary_worst_case import BinaryWorstCase
from fastshuffle.exact.unbundled_worst_case import UnbundledWorstCase
from fastshuffle.experiment import ShuffleExperiment
from fastshuffle.plotting import delta_text, lower_delta_text, plot_profile, rounded_up
from fastshuffle.profile import DeltaWarning, PrivacyProfile
from fastshuffle.randomizers import LocalRandomizer

# A picture shows no more of a worst case, which is found many times faster so.
_PLOT_RTOL = 1e-3


def curve(  # noqa: PLR0913 - one parameter an option
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
    json_file: JsonFile = None,
    csv_file: CsvFile = None,
    plot_file: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw the curve to a .png file.")
    ] = None,
) -> None:
    """Print the privacy of n users: epsilon at each delta, and delta at each epsilon.

    It is the certified worst case over all datasets, which a deployment may quote, unless --ones
    or --others fixes the dataset.
    """
    n = read_users(users)
    deltas = [parse_real("--delta", text, PROBABILITY) for text in delta or ()]
    epsilons = [parse_real("--epsilon", text, NONNEGATIVE) for text in epsilon or ()]
    if not deltas and not epsilons:
        raise InputError("at least one of --delta and --epsilon must be given")
    fixed = read_dataset(n, ones, others, pair)
    single = read_randomizer(mechanism, epsilon0, matrix)
    randomizer, apart = read_messages(messages, single, n, bundled=bundled)
    paths = check_paths({"--json": json_file, "--csv": csv_file, "--plot": plot_file}, matrix)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DeltaWarning)
        profile, quotes = _computed(randomizer, n, apart, fixed, deltas, epsilons)
        contents = {}
        if json_file is not None:
            contents["--json"] = _json(profile, quotes, deltas, epsilons)
        if csv_file is not None:
            contents["--csv"] = _csv(profile, quotes)
        if plot_file is not None:
            contents["--plot"] = _png(profile, quotes)
    write_files(paths, contents)
    say_warnings(caught)
    if isinstance(profile, WorstCaseProfile):
        _print_worst_case(profile, quotes)
    else:
        _print_experiment(profile, quotes)


def _computed(
    randomizer: LocalRandomizer,
    n: int,
    messages: int,
    fixed: dict[str, Any] | None,
    deltas: list[float],
    epsilons: list[float],
) -> tuple[PrivacyProfile, list[Quote]]:
    if fixed is None:
        with input_errors():
            worst_case = worst_case_profile(randomizer, n, messages=messages)
        return worst_case, worst_case_quotes(worst_case, deltas, epsilons)
    with input_errors():
        experiment = ShuffleExperiment(randomizer, n, messages=messages, **fixed)
        profile = exact_profile(experiment)
    return profile, experiment_quotes(profile, experiment, deltas, epsilons)


def _json(
    profile: PrivacyProfile, quotes: list[Quote], deltas: list[float], epsilons: list[float]
) -> bytes:
    content = profile.to_dict(delta=deltas or None, epsilon=epsilons or None)
    if isinstance(profile, WorstCaseProfile):
        rows = [*content.get("guarantees", ()), *content.get("curve", ())]
        for row, quote in zip(rows, quotes, strict=True):
            dataset = quote.experiment.to_dict()
            row["worst_dataset"] = {
                "others": dataset["others"],
                "pair": dataset["pair"],
                "direction": quote.direction,
                "lower_delta": quote.lower_delta,
            }
    return json_bytes(content)


def _csv(profile: PrivacyProfile, quotes: list[Quote]) -> bytes:
    header = (
        "kind epsilon delta log_delta lower_delta direction validity relation datasets n pair "
        "others messages"
    )
    return csv_bytes(
        header,
        (
            (
                quote.computed,
                quote.epsilon,
                quote.delta,
                quote.log_delta,
                quote.lower_delta,
                quote.direction,
                profile.validity,
                profile.relation,
                "all" if isinstance(profile, WorstCaseProfile) else "these",
                profile.n,
                " ".join(map(str, quote.experiment.pair)),
                " ".join(held(quote.experiment)),
                quote.experiment.messages,
            )
            for quote in quotes
        ),
    )


def _png(profile: PrivacyProfile, quotes: list[Quote]) -> bytes:
    if isinstance(profile, WorstCaseProfile):
        drawn: PrivacyProfile = worst_case_profile(
            profile.randomizer,
            profile.n,
            rtol=_PLOT_RTOL,
            messages=quotes[0].experiment.messages,
        )
        marks = {(q.epsilon, q.log_delta) for q in quotes}
    else:
        drawn = profile
        marks = {(q.epsilon, q.log_delta) for q in quotes if q.direction == "both"}
    content = io.BytesIO()
    try:
        plot_profile(drawn, marks=marks).savefig(content, format="png")
    except ModuleNotFoundError as error:
        raise InputError(f"--plot: {error}") from error
    return content.getvalue()


def _print_worst_case(profile: WorstCaseProfile, quotes: list[Quote]) -> None:
    a, b = quotes[0].experiment.pair
    if isinstance(profile, (BinaryWorstCase, UnbundledWorstCase)):
        inputs = sorted((a, b))
        table = number_table(
            ("epsilon", "delta", "direction", *(f"others at {x}" for x in inputs)),
            (
                (*_numbers(q), q.direction, *(str(q.experiment.others.get(x, 0)) for x in inputs))
                for q in quotes
            ),
        )
        facts = {"forward": _forward(a, b)}
    else:
        table = number_table(
            ("epsilon", "delta", "attained", "direction", "pair", "others"),
            (
                (
                    *_numbers(q, lower=True),
                    q.direction,
                    ":".join(map(str, q.experiment.pair)),
                    " ".join(held(q.experiment)),
                )
                for q in quotes
            ),
        )
        facts = {
            "attained": "the worst dataset found has at least this delta at epsilon; what is not "
            "known is how far the worst case lies above it, up to delta",
            "pair": "A:B, what the user who differs holds in the first and in the second dataset; "
            "forward is the second against the first",
            "others": "INPUT:COUNT, what the others hold",
        }
    print_result(
        "A guarantee for every dataset:",
        [table],
        _facts(
            profile, quotes, "all neighbouring pairs; each line above names the worst one", facts
        ),
    )


def _print_experiment(profile: PrivacyProfile, quotes: list[Quote]) -> None:
    experiment = quotes[0].experiment
    bracketed = not isinstance(profile, (ExactProfile, UnbundledProfile))
    table = number_table(
        ("epsilon", "delta", *(["attained"] if bracketed else []), "direction"),
        ((*_numbers(q, lower=bracketed), q.direction) for q in quotes),
    )
    facts = {"forward": _forward(*experiment.pair)}
    if bracketed:
        facts = {"attained": "a proved lower end of the exact delta at epsilon", **facts}
    held = " and ".join(f"{count:,} others hold {x}" for x, count in experiment.others.items())
    datasets = (
        f"one pair, where {held or 'there are no others'}; without --ones and --others all are "
        "covered"
    )
    print_result(
        "For one pair of datasets alone, not a guarantee for a deployment:",
        [table],
        _facts(profile, quotes, datasets, facts),
    )


def _numbers(quote: Quote, *, lower: bool = False) -> Iterable[str]:
    yield rounded_up(quote.epsilon)
    yield delta_text(quote.delta, quote.log_delta)
    if lower:
        yield lower_delta_text(quote.lower_delta, quote.log_delta)


def _forward(a: int, b: int) -> str:
    return f"the user who differs holds {b}, against {a}; reverse is {a} against {b}"


def _facts(
    profile: PrivacyProfile, quotes: list[Quote], datasets: str, columns: dict[str, str]
) -> dict[str, str]:
    """Return what is printed below the numbers; ``columns`` explains them."""
    experiment = quotes[0].experiment
    return {
        "users": f"{profile.n:,}, with the one who differs",
        "local": describe_randomizer(experiment.randomizer),
        **describe_messages(experiment.messages, experiment.randomizer),
        "datasets": datasets,
        "relation": profile.relation,
        **columns,
        "validity": str(profile.validity),
        "method": profile.method,
        "source": profile.source,
    }
