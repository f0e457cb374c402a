"""A simulation: chunks of samples drawn anywhere, merged exactly, stopped and taken up at will."""

import json
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import contextmanager
from itertools import islice
from typing import Any, NamedTuple, Self, final

import numpy as np
import numpy.typing as npt
from numpy.random.bit_generator import ISpawnableSeedSequence

from fastshuffle._typing import FloatArray, Side
from fastshuffle._validation import (
    NONNEGATIVE_FINITE,
    Interval,
    UnsupportedSettingError,
    check_count,
    check_generator,
    check_real,
    check_reals,
)
from fastshuffle.experiment import ShuffleExperiment, check_experiment
from fastshuffle.monte_carlo.aim import Aim, take_aim
from fastshuffle.monte_carlo.band import Band, Target
from fastshuffle.monte_carlo.chunks import Sums, Task, chunk_size, pilot, run_chunk
from fastshuffle.monte_carlo.execution import Progress, pool_of, spawned
from fastshuffle.monte_carlo.pair import SIDES, PairLaws
from fastshuffle.monte_carlo.profile import MonteCarloProfile

__all__ = ["Simulation"]

CONFIDENCE = Interval(0.5, 1.0 - 1e-9, "in [0.5, 1 - 1e-9]")

_FORMAT = 2
_MOST_SAMPLES = 10**13
# Chunks handed out and not yet finished.
_OUTSTANDING = 256
_MOST_EPSILONS = 4096
# Of the differing user to the others: products with exp(epsilon) do not overflow up to this.
_LARGEST_RATIO = 1e130
# Samples of this many equal weights are the least that an interval at the target rests on.
_LEAST_EFFECTIVE = 50.0


class _Collected(NamedTuple):
    """The sums of the chunks so far and their keys; replaced whole, so that both always agree."""

    sums: dict[Side, Sums]
    chunks: frozenset[int]

    def plus(self, sums: dict[Side, Sums], chunks: frozenset[int]) -> "_Collected":
        return _Collected(
            {side: self.sums[side] + sums[side] for side in SIDES}, self.chunks | chunks
        )


@final
class Simulation:
    """Samples of the privacy loss of one experiment, which may be added to, merged and stored.

    Parameters
    ----------
    experiment : ShuffleExperiment
        The two datasets. At least one other user exists, and at most 2**48 hold the same input.
        Either the others hold at most 7 inputs with different rows, or the outputs form at most
        7 groups, or the rows have a common part from which each differs in one output, as in
        k-ary randomized response. Where users send several messages, the common part does not help,
        and the others send all that the differing user may send.
    target_epsilon : float, optional
        Where the estimate is to be sharpest, >= 0 and finite. At most one target is given.
    target_delta : float, optional
        The same, given as the delta in [1e-300, 1] at which epsilon is wanted. Without a target,
        1e-6 where the others hold a single input or the two inputs of the pair and users send one
        message; elsewhere the law
        itself is drawn then, which serves large deltas best.
    epsilons : array_like of float, optional
        Where delta is estimated, >= 0 and finite, at most 4096 numbers; by default some 130
        numbers from 0 to beyond the target.

    Raises
    ------
    TypeError, ValueError
        If an argument is outside its domain.
    UnsupportedSettingError
        If the experiment is not of the supported kind.

    See Also
    --------
    monte_carlo_profile : all of it in one call.

    Notes
    -----
    Samples are drawn in chunks of 65,536, or fewer where their losses take long, each with a
    generator of its own that is spawned from the caller's. Their sums are integers, so that any
    order of adding and merging gives the same numbers to the last bit, whatever executor did the
    work. A chunk is known by the first number of its generator and is never counted twice: a run
    that was interrupted is completed by the same call with an equal generator, and states with a
    chunk in common are not merged.

    Examples
    --------
    >>> import numpy as np
    >>> import fastshuffle as fs
    >>> w = fs.Randomizer([[0.5, 0.3, 0.2], [0.2, 0.35, 0.45]])
    >>> experiment = fs.ShuffleExperiment(w, n=1000, k=500)
    >>> here, there = (fs.Simulation(experiment, target_delta=1e-8) for _ in range(2))
    >>> here.run(2**16, np.random.default_rng(1))
    >>> there.run(2**16, np.random.default_rng(2))
    >>> both = fs.Simulation.from_json(experiment, here.to_json()).merged(there)
    >>> both.n_samples
    131072
    """

    def __init__(
        self,
        experiment: ShuffleExperiment,
        *,
        target_epsilon: float | None = None,
        target_delta: float | None = None,
        epsilons: npt.ArrayLike | None = None,
    ) -> None:
        if target_epsilon is not None and target_delta is not None:
            raise TypeError("at most one of target_epsilon and target_delta must be given")
        target = Target.of(epsilon=target_epsilon, delta=target_delta)
        grid = None if epsilons is None else _checked_epsilons(epsilons)
        laws = _checked_laws(experiment)
        aims = {
            side: take_aim(
                laws[side],
                target_epsilon=target_epsilon,
                target_delta=target_delta,
                epsilons=grid,
            )
            for side in SIDES
        }
        self._start(experiment, laws, aims, target)

    def _start(
        self,
        experiment: ShuffleExperiment,
        laws: dict[Side, PairLaws],
        aims: dict[Side, Aim],
        target: Target | None,
    ) -> None:
        self._experiment = experiment
        self._target = target
        self._tasks = {side: Task(laws[side], aims[side]) for side in SIDES}
        self._pilots = {side: pilot(self._tasks[side]) for side in SIDES}
        self._collected = _Collected({side: Sums.empty(aims[side]) for side in SIDES}, frozenset())

    @property
    def experiment(self) -> ShuffleExperiment:
        """The experiment that is simulated."""
        return self._experiment

    @property
    def n_samples(self) -> int:
        """Number of histograms drawn so far, half of them for either direction."""
        return sum(sums.size for sums in self._collected.sums.values())

    @property
    def epsilons(self) -> FloatArray:
        """The epsilons at which delta is estimated, in either direction."""
        return np.unique(np.concatenate([self._tasks[side].aim.epsilons for side in SIDES]))

    def run(
        self,
        n_samples: float,
        rng: np.random.Generator,
        *,
        executor: Any = None,
        workers: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Draw samples and add them.

        Parameters
        ----------
        n_samples : int
            How many histograms to draw, from 2 to 1e13.
        rng : numpy.random.Generator
            The source of randomness, from which the generators of the chunks are spawned.
        executor : concurrent.futures.Executor or dask.distributed.Client, optional
            What does the work; by default threads of this process.
        workers : int, optional
            Number of threads, without an executor; by default one a processor.
        progress : callable, optional
            Called as ``progress(done, n_samples)`` after each chunk, in this thread.

        Raises
        ------
        TypeError, ValueError
            If an argument is outside its domain.

        Notes
        -----
        What is finished stays if the call is interrupted or the executor fails. Chunks that are
        already here, which an equal generator brings again, are not drawn anew.
        """
        total = check_count("n_samples", n_samples, minimum=2, maximum=_MOST_SAMPLES)
        check_generator(rng)
        if not isinstance(rng.bit_generator.seed_seq, ISpawnableSeedSequence):
            raise TypeError(
                f"rng must be able to spawn generators, got {rng!r} of a seed that is not"
            )
        if progress is not None and not callable(progress):
            raise TypeError(f"progress must be callable, got {progress!r}")
        if executor is not None and workers is not None:
            raise TypeError("workers must be given without executor")
        if workers is not None:
            workers = check_count("workers", workers, minimum=1, maximum=10**4)
        with pool_of(executor, workers) as pool:
            self._run(pool, total, rng, progress)

    def _run(
        self, pool: Executor, total: int, rng: np.random.Generator, progress: Progress | None
    ) -> None:
        done = 0
        waiting = spawned(total, chunk_size(self._tasks), rng)
        running: dict[Future[dict[Side, Sums]], tuple[int, int]] = {}

        def hand_out() -> int:
            skipped = 0
            for key, size, child in islice(waiting, max(0, _OUTSTANDING - len(running))):
                if key in self._collected.chunks:
                    skipped += size
                else:
                    running[pool.submit(run_chunk, self._tasks, size, child)] = key, size
            return skipped

        try:
            while True:
                done += hand_out()
                if not running:
                    break
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    sums = future.result()
                    key, size = running[future]
                    self._collected = self._collected.plus(sums, frozenset({key}))
                    del running[future]
                    done += size
                    if progress is not None:
                        progress(done, total)
        finally:
            for future in running:
                future.cancel()
            for future, (key, _) in running.items():
                finished = future.done() and not future.cancelled() and not future.exception()
                if finished and key not in self._collected.chunks:
                    self._collected = self._collected.plus(future.result(), frozenset({key}))

    def merged(self, other: "Simulation") -> "Simulation":
        """Return a simulation with the samples of both.

        Parameters
        ----------
        other : Simulation
            A simulation of the same experiment with the same aim: made by the same call, or from
            the stored state of one.

        Returns
        -------
        Simulation
            A new one.

        Raises
        ------
        TypeError, ValueError
            If ``other`` is no Simulation, is of another experiment or aim, or has chunks in common
            with this one.
        """
        if not isinstance(other, Simulation):
            raise TypeError(f"other must be a Simulation, got {type(other).__name__}")
        if self._definition() != other._definition():
            raise ValueError(
                "other must be of the same experiment and aim; a run elsewhere may start from the "
                "stored state of this one"
            )
        common = self._collected.chunks & other._collected.chunks
        if common:
            raise ValueError(
                f"other must have no chunk in common, got {len(common)}: they were drawn with "
                "equal generators"
            )
        both = Simulation.__new__(Simulation)
        both.__dict__.update(self.__dict__)
        both._collected = self._collected.plus(*other._collected)
        return both

    def profile(self, *, confidence: float = 0.99) -> MonteCarloProfile:
        """Return the profile estimated from all samples so far.

        Parameters
        ----------
        confidence : float, default 0.99
            In [0.5, 1 - 1e-9]: the probability, before the samples are drawn, that all intervals
            hold at once: both directions, every epsilon, and whatever is derived from them.

        Returns
        -------
        MonteCarloProfile
            An ESTIMATE.

        Raises
        ------
        TypeError, ValueError
            If the confidence is outside its domain.
        ArithmeticError
            If there are no samples, or those at the target are worth fewer than 50: no interval
            of use could rest on them.
        """
        level = check_real("confidence", confidence, CONFIDENCE)
        if self.n_samples < 2:
            raise ArithmeticError("no samples have been drawn")
        # the fractional part of a sum of independent uniform numbers is one
        uniform = (sum(self._collected.chunks) % 2**64 + 0.5) / 2.0**64
        bands = {
            side: Band.of(
                self._tasks[side],
                self._collected.sums[side],
                self._pilots[side],
                alpha=0.5 * (1.0 - level),
                target=self._target,
                uniform=uniform,
            )
            for side in SIDES
        }
        if self._target is not None:
            for side in SIDES:
                self._require_effective(side, bands[side])
        return MonteCarloProfile(
            self._experiment, bands, confidence=level, n_samples=self.n_samples
        )

    def _require_effective(self, side: Side, band: Band) -> None:
        laws, aim = self._tasks[side]
        if laws.trivial or aim.target >= laws.drawn_loss:
            return
        found = band.effective_samples(aim.target)
        if not found >= _LEAST_EFFECTIVE:
            raise ArithmeticError(
                f"the samples of the {side} direction at the target are worth {found:.3g} of equal "
                f"weight, and an interval needs {_LEAST_EFFECTIVE:g}: draw more of them"
            )

    def _definition(self) -> dict[str, Any]:
        return {
            "format": _FORMAT,
            "setting": self._experiment.to_dict(),
            "target": None if self._target is None else dict([self._target]),
            "aims": {side: self._tasks[side].aim.to_dict() for side in SIDES},
        }

    def to_json(self) -> str:
        """Return the state as JSON text: what is simulated, the aim, and the sums so far.

        Returns
        -------
        str
            Valid JSON. `from_json` takes it up, here or elsewhere.
        """
        content = {
            **self._definition(),
            "chunks": [f"{key:x}" for key in sorted(self._collected.chunks)],
            "sums": {side: self._collected.sums[side].to_dict() for side in SIDES},
        }
        return json.dumps(content, allow_nan=False)

    @classmethod
    def from_json(cls, experiment: ShuffleExperiment, text: str) -> Self:
        """Return the simulation whose state was stored.

        Parameters
        ----------
        experiment : ShuffleExperiment
            The experiment it is of.
        text : str
            What `to_json` returned.

        Returns
        -------
        Simulation
            With the same aim and the same samples.

        Raises
        ------
        TypeError, ValueError
            If the text is no such state, or is one of another experiment.
        """
        laws = _checked_laws(experiment)
        if not isinstance(text, str):
            raise TypeError(f"text must be a str, got {type(text).__name__}")
        with _states_only(text):
            content = json.loads(text)
            found, setting = content["format"], content["setting"]
        if found != _FORMAT:
            raise ValueError(f"text must be a state of format {_FORMAT}, got {found!r}")
        if setting != json.loads(json.dumps(experiment.to_dict())):
            raise ValueError(f"text must be a state of {experiment!r}, got one of {setting}")
        with _states_only(text):
            aims = {
                side: Aim.from_dict(content["aims"][side], len(laws[side].own)) for side in SIDES
            }
            sums = {side: Sums.from_dict(content["sums"][side], aims[side]) for side in SIDES}
            chunks = frozenset(int(key, 16) for key in content["chunks"])
            if bool(chunks) != any(some.size for some in sums.values()):
                raise ValueError("no chunks")
            target = Target.of(**{"epsilon": None, "delta": None, **(content["target"] or {})})
        simulation = cls.__new__(cls)
        simulation._start(experiment, laws, aims, target)
        simulation._collected = _Collected(sums, chunks)
        return simulation

    def __repr__(self) -> str:
        return f"<Simulation: {self.n_samples} samples of {self._experiment!r}>"


@contextmanager
def _states_only(text: str) -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"text must be the state of a simulation, got {text[:40]!r}") from error


def _checked_laws(experiment: Any) -> dict[Side, PairLaws]:
    checked = check_experiment(experiment, several=True)
    if checked.n == 1:
        raise UnsupportedSettingError(
            "n must be >= 2 for a simulation, got 1; exact_profile needs none"
        )
    laws = {side: PairLaws(checked, side) for side in SIDES}
    largest = max(float(laws[side].ratios.max(initial=0.0)) for side in SIDES)
    if largest > _LARGEST_RATIO:
        raise UnsupportedSettingError(
            f"probabilities must be at most {_LARGEST_RATIO:g} times those of the messages of the "
            f"others for a simulation, got {largest:g}"
        )
    return laws


def _checked_epsilons(epsilons: npt.ArrayLike) -> FloatArray:
    values, _ = check_reals("epsilons", epsilons, NONNEGATIVE_FINITE)
    if not 1 <= values.size <= _MOST_EPSILONS:
        raise ValueError(f"epsilons must be 1 to {_MOST_EPSILONS} numbers, got {values.size}")
    return values
