"""The command ``demo sgd``: which flights arrive late."""

import math
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

from fastshuffle._typing import FloatArray
from fastshuffle._validation import POSITIVE_FINITE, Interval
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
    budget_table,
    figure_bytes,
)
from fastshuffle.cli.errors import InputError, input_errors
from fastshuffle.cli.files import check_paths, json_bytes, write_files
from fastshuffle.cli.parsing import parse_count, parse_real
from fastshuffle.cli.settings import JsonFile, read_seed
from fastshuffle.cli.tables import number_table, print_result
from fastshuffle.composition import composed_profile
from fastshuffle.exact import exact_profile
from fastshuffle.experiment import ShuffleExperiment
from fastshuffle.plotting import rounded_up
from fastshuffle.profile import RELATION
from fastshuffle.protocols import SGDResult, fit_sgd
from fastshuffle.protocols.vectors import VECTOR_MECHANISMS
from fastshuffle.randomizers import binary_randomized_response

_SHARE = Interval(1e-6, 1.0, "in [1e-6, 1]")
_LATE = 15.0
# The features, with a public middle and half-width: what is beyond is clipped to -1 and 1.
_FEATURES = {"dep_delay": (15.0, 45.0), "hour": (13.0, 8.0), "distance": (1000.0, 1500.0)}


class _Run(Run[SGDResult]):
    """One way to fit the model, and the privacy that it is fitted with."""

    def to_dict(self, delta: float) -> dict[str, Any]:
        """Return the run in plain Python values."""
        content = super().to_dict(delta)
        if self.central is None:
            del content["gaussian_limit_epsilons"]
        return content


def sgd(  # noqa: PLR0913 - one parameter an option
    *,
    mechanism: Annotated[
        str, typer.Option(metavar="NAME", help=f"One of {', '.join(VECTOR_MECHANISMS)}.")
    ] = "coordinate",
    epsilon0: LocalBudget = "1",
    cautious: CautiousShare = "0.3",
    cautious_epsilon0: CautiousBudget = "0.3",
    rounds: Annotated[
        str, typer.Option(metavar="T", help="How many messages every user sends.")
    ] = "25",
    sample: Annotated[
        str, typer.Option(metavar="SHARE", help="The share of users drawn for each round.")
    ] = "1",
    step: Annotated[
        str, typer.Option(metavar="A", help="The step of round t is A / sqrt(t).")
    ] = "8",
    clip: Annotated[
        str, typer.Option(metavar="C", help="Gradients are clipped to this, see the mechanism.")
    ] = "1",
    delta: Delta = "1e-8",
    seed: RepeatableSeed = "1",
    json_file: JsonFile = None,
    plot_file: PlotFile = None,
) -> None:
    """Fit a logistic regression of late arrival, every flight being a user.

    The local privacy parameters are those of one message; a user sends one in each round.
    """
    setting = Setting.read(epsilon0, cautious_epsilon0, cautious, delta)
    n_rounds = parse_count("--rounds", rounds, 1, 10**4)
    share = parse_real("--sample", sample, _SHARE)
    lengths = (
        parse_real("--step", step, POSITIVE_FINITE),
        parse_real("--clip", clip, POSITIVE_FINITE),
    )
    entropy = read_seed(seed)
    if mechanism not in VECTOR_MECHANISMS:
        known = ", ".join(VECTOR_MECHANISMS)
        raise InputError(f"--mechanism must be one of {known}, got {mechanism!r}")
    paths = check_paths({"--json": json_file, "--plot": plot_file}, None)
    flights = read_flights("arr_delay", *_FEATURES)
    x, cut = _features(flights.columns)
    late = (flights.columns["arr_delay"] > _LATE).astype(np.float64)
    rng = np.random.default_rng(entropy)

    def fit(budgets: float | FloatArray, **options: Any) -> SGDResult:
        return fit_sgd(
            x,
            late,
            budgets,
            model="logistic",
            rounds=n_rounds,
            step=lengths[0],
            clip=lengths[1],
            rng=rng,
            mechanism=mechanism,  # type: ignore[arg-type] # one of the names
            **options,
        )

    def shuffled(name: str, result: SGDResult) -> _Run:
        return _Run(name, result, result.guarantee.epsilon(setting.delta))

    with input_errors():
        runs = [shuffled("shuffled", fit(setting.epsilon0, sample=share))]
        if not 0.0 < (runs[0].central or 0.0) < math.inf:
            raise InputError(
                f"--delta must be so small that it asks for noise, got {setting.delta!r}"
            )
        # the same protection without trust in a shuffler
        alone = fit(_alone(runs[0].central or 0.0, n_rounds, setting.delta))
        runs.append(_Run("no shuffler, as private", alone, None))
        budgets = setting.budgets(flights.n, rng)
        two = shuffled("two budgets, by users", fit(budgets, sample=share))
        runs.append(two)
        result = fit(budgets, weights="precision", sample=share)
        runs.append(_Run("two budgets, by precision", result, two.central))  # weights hide nothing
        if share == 1.0:
            runs.append(shuffled("two budgets, pooled", fit(budgets, pooled=True)))
    best = _newton(x, late)
    scores = {run.name: _score(x, late, np.asarray(run.result.estimate)) for run in runs}
    scores["not private"] = _score(x, late, best)
    contents = {}
    if json_file is not None:
        content = {
            "data": flights.words,
            "features": ["1", *_FEATURES],
            "values_clipped": cut,
            "late_share": float(late.mean()),
            "seed": entropy,
            "not_private": {"estimate": best.tolist(), **scores["not private"]},
            "runs": [{**run.to_dict(setting.delta), **scores[run.name]} for run in runs],
        }
        contents["--json"] = json_bytes(content)
    if plot_file is not None:
        worst = scores["not private"]["loss"]
        contents["--plot"] = figure_bytes(lambda axes: _draw(axes, runs, worst))
    write_files(paths, contents)
    first = runs[0].result
    profile = first.guarantee.groups[0].profile
    _print(
        runs,
        scores,
        f"Which of {flights.n:,} flights arrive more than {_LATE:g} minutes late:",
        setting.delta,
        {
            "data": flights.words,
            "always on time": f"is right for {1.0 - late.mean():.4f} of the flights",
            "features": f"1, {', '.join(_FEATURES)}, scaled by public numbers and clipped to "
            f"[-1, 1]: {cut:,} values were clipped",
            "protocol": first.protocol,
            "sampling": first.sampling,
            "clipped": f"{first.clipped:,} of {first.gradients:,} gradients",
            "epsilon": f"at delta = {rounded_up(setting.delta)}, of all rounds together, for the "
            "worst user; local before the shuffle, central after it",
            "Gaussian limit": _limit_words(first, setting.delta),
            "no shuffler": "every user alone spends the epsilon that the shuffled run has in the "
            "end, over all rounds, with the same steps",
            "loss": "and accuracy are computed from the data for this table; the guarantee does "
            "not cover them",
            "relation": RELATION,
            "validity": str(first.guarantee.validity),
            "method": profile.method,
            "source": profile.source,
            "seed": str(entropy),
        },
    )


def _alone(epsilon: float, rounds: int, delta: float) -> float:
    """Return the parameter of a message with which all rounds have epsilon without a shuffler."""
    low, high = epsilon / rounds, epsilon
    for _ in range(16):
        middle = math.sqrt(low * high)
        one = exact_profile(ShuffleExperiment(binary_randomized_response(middle), 1, k=0))
        if composed_profile(one, rounds).epsilon(delta) <= epsilon:
            low = middle
        else:
            high = middle
    return low


def _features(columns: dict[str, npt.NDArray[Any]]) -> tuple[FloatArray, int]:
    """Return ones and the scaled columns, and how many values were clipped."""
    scaled = [(columns[name] - middle) / half for name, (middle, half) in _FEATURES.items()]
    cut = sum(int((np.abs(values) > 1.0).sum()) for values in scaled)
    ones = np.ones(len(scaled[0]))
    return np.column_stack((ones, *(np.clip(values, -1.0, 1.0) for values in scaled))), cut


def _newton(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return the coefficients of the least loss, which nothing protects."""
    coefficients = np.zeros(x.shape[1])
    for _ in range(12):
        chance = 0.5 * (1.0 + np.tanh(0.5 * (x @ coefficients)))
        curvature = (x * (chance * (1.0 - chance))[:, np.newaxis]).T @ x
        coefficients -= np.linalg.solve(curvature, x.T @ (chance - y))
    return coefficients


def _score(x: FloatArray, y: FloatArray, coefficients: FloatArray) -> dict[str, float]:
    predictor = x @ coefficients
    loss = np.logaddexp(0.0, predictor) - y * predictor
    return {"loss": float(loss.mean()), "accuracy": float(((predictor > 0.0) == (y > 0.0)).mean())}


def _limit_words(result: SGDResult, delta: float) -> str:
    if not result.limits:
        return "none is offered for a sample"
    epsilon = max(float(limit.epsilon(delta)) for limit in result.limits)
    return f"says {epsilon:.4g}, an APPROXIMATION"


def _draw(axes: Any, runs: list[_Run], best: float) -> None:
    for run in runs:
        axes.plot(run.result.losses, label=run.name, linewidth=1.2)
    axes.axhline(best, color="black", linewidth=1.0, linestyle="--", label="not private")
    # what diverges may leave the picture
    axes.set_ylim(0.95 * best, 1.3 * math.log(2.0))
    axes.set_xlabel("round")
    axes.set_ylabel("mean loss over all flights")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")


def _print(
    runs: list[_Run],
    scores: dict[str, dict[str, float]],
    headline: str,
    delta: float,
    facts: dict[str, str],
) -> None:
    rows = [("not private", *_shown(scores["not private"]), "inf", "inf", "inf")]
    for run in runs:
        local = rounded_up(run.result.guarantee.epsilon0, 4)
        composed = rounded_up(run.result.unshuffled_epsilon(delta), 4)
        central = composed if run.central is None else rounded_up(run.central, 4)
        rows.append((run.name, *_shown(scores[run.name]), local, composed, central))
    header = ("run", "loss", "accuracy", "local, delta = 0", "local", "central")
    tables = [number_table(header, rows)]
    tables += [
        budget_table(run.result.guarantee, delta) for run in runs if run.name.endswith("precision")
    ]
    print_result(headline, tables, facts)


def _shown(score: dict[str, float]) -> tuple[str, str]:
    return f"{score['loss']:.4f}", f"{score['accuracy']:.4f}"
