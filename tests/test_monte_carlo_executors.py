"""Where a simulation runs does not matter: executors, merging, states, interruptions."""

import itertools
import json
import logging
import os
import signal
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from dask.distributed import Client, LocalCluster

import fastshuffle as fs
from fastshuffle.monte_carlo.chunks import CHUNK

EXPERIMENT = fs.ShuffleExperiment(
    fs.Randomizer([[0.5, 0.3, 0.2], [0.2, 0.35, 0.45], [0.3, 0.3, 0.4]]), 1000, others={2: 999}
)
# the last chunk is smaller
SAMPLES = 5 * CHUNK + 1000


def simulation_of(n_samples=SAMPLES, *, seed=3, **options):
    simulation = fs.Simulation(EXPERIMENT, target_delta=1e-7)
    simulation.run(n_samples, np.random.default_rng(seed), **options)
    return simulation


@pytest.fixture(scope="module")
def reference():
    """The state after a run on one thread."""
    return simulation_of(workers=1).to_json()


class Backwards(ThreadPoolExecutor):
    """An executor that finishes the last chunks first."""

    def __init__(self):
        super().__init__(8)
        self.delays = itertools.count(0.5, -0.08)

    def submit(self, function, /, *arguments):
        delay = max(0.0, next(self.delays))

        def late():
            time.sleep(delay)
            return function(*arguments)

        return super().submit(late)


class Failing(ThreadPoolExecutor):
    """An executor whose fourth chunk fails."""

    def __init__(self):
        super().__init__(1)
        self.left = 3

    def submit(self, function, /, *arguments):
        self.left -= 1
        return super().submit(function if self.left >= 0 else None, *arguments)


class TestSameNumbers:
    @pytest.mark.parametrize("workers", [2, 7])
    def test_threads(self, reference, workers):
        assert simulation_of(workers=workers).to_json() == reference

    def test_default(self, reference):
        assert simulation_of().to_json() == reference

    def test_processes(self, reference):
        with ProcessPoolExecutor(2) as pool:
            assert simulation_of(executor=pool).to_json() == reference

    def test_any_order(self, reference):
        with Backwards() as pool:
            assert simulation_of(executor=pool).to_json() == reference

    def test_dask_workers_of_which_one_is_lost(self, reference):
        """A killed worker costs its chunk, which another one draws again."""
        with (
            LocalCluster(
                n_workers=2,
                threads_per_worker=1,
                processes=True,
                dashboard_address=None,
                silence_logs=logging.CRITICAL,
            ) as cluster,
            Client(cluster) as client,
        ):
            pids = set(client.run(os.getpid).values())
            assert len(pids) == 2
            assert os.getpid() not in pids
            killed = []

            def kill_one(done, total):
                assert done <= total
                if not killed:
                    killed.append(pids.pop())
                    os.kill(killed[0], signal.SIGKILL)

            assert simulation_of(executor=client, progress=kill_one).to_json() == reference
            assert killed

    def test_progress(self):
        seen = []
        simulation_of(executor=None, workers=1, progress=lambda *numbers: seen.append(numbers))
        assert seen == [(min((i + 1) * CHUNK, SAMPLES), SAMPLES) for i in range(6)]


class TestMerging:
    def test_in_any_order(self):
        parts = [simulation_of(CHUNK + 10 * i, seed=i, workers=1) for i in range(3)]
        merged = [a.merged(b.merged(c)).to_json() for a, b, c in itertools.permutations(parts)] + [
            a.merged(b).merged(c).to_json() for a, b, c in itertools.permutations(parts)
        ]
        assert len(set(merged)) == 1
        both = fs.Simulation.from_json(EXPERIMENT, merged[0])
        assert both.n_samples == 3 * CHUNK + 30
        assert parts[0].n_samples == CHUNK
        profile = both.profile()
        exact = fs.exact_profile(EXPERIMENT)
        lower, upper = profile.bounds(0.03)
        assert lower <= exact.delta(0.03) <= upper

    def test_more_samples_from_the_same_generator_are_new(self):
        simulation = fs.Simulation(EXPERIMENT)
        rng = np.random.default_rng(1)
        simulation.run(1000, rng, workers=1)
        simulation.run(1000, rng, workers=1)
        assert simulation.n_samples == 2000

    def test_nothing_is_counted_twice(self, reference):
        simulation = fs.Simulation.from_json(EXPERIMENT, reference)
        simulation.run(SAMPLES, np.random.default_rng(3), workers=1)
        assert simulation.to_json() == reference
        with pytest.raises(ValueError, match="other must have no chunk in common, got 6"):
            simulation.merged(fs.Simulation.from_json(EXPERIMENT, reference))

    def test_of_another_aim_or_experiment(self, reference):
        simulation = fs.Simulation.from_json(EXPERIMENT, reference)
        with pytest.raises(ValueError, match="other must be of the same experiment and aim"):
            simulation.merged(fs.Simulation(EXPERIMENT, target_delta=1e-8))
        with pytest.raises(TypeError, match="other must be a Simulation, got str"):
            simulation.merged(reference)
        other = fs.ShuffleExperiment(EXPERIMENT.randomizer, 1000, k=3)
        with pytest.raises(ValueError, match="text must be a state of"):
            fs.Simulation.from_json(other, reference)

    @pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 2}', "null"])
    def test_no_state(self, text):
        with pytest.raises(ValueError, match="text must be the state of a simulation"):
            fs.Simulation.from_json(EXPERIMENT, text)
        with pytest.raises(TypeError, match="text must be a str, got bytes"):
            fs.Simulation.from_json(EXPERIMENT, text.encode())

    def test_a_state_of_a_later_format(self, reference):
        content = {**json.loads(reference), "format": 99}
        with pytest.raises(ValueError, match="text must be a state of format 2, got 99"):
            fs.Simulation.from_json(EXPERIMENT, json.dumps(content))

    @pytest.mark.parametrize(
        ("place", "value"),
        [
            (["sums", "forward", "size"], -5),
            (["sums", "forward", "size"], 2.5),
            (["sums", "reverse", "cells"], []),
            (["sums", "forward", "cells", 0], ["1"]),
            (["aims", "forward", "epsilons", 0], 5.0),
            (["aims", "forward", "epsilons", 3], None),
            (["aims", "reverse", "log_units"], [1.0]),
            (["aims", "forward", "tilts"], [[1.0]]),
            (["target"], {"delta": -1.0}),
            (["target"], {"size": 1.0}),
            (["chunks"], []),
        ],
        ids=str,
    )
    def test_a_damaged_state(self, reference, place, value):
        content = json.loads(reference)
        part = content
        for name in place[:-1]:
            part = part[name]
        part[place[-1]] = value
        with pytest.raises(ValueError, match="text must be the state of a simulation"):
            fs.Simulation.from_json(EXPERIMENT, json.dumps(content))


class TestInterruptions:
    def test_what_is_finished_stays_and_the_rest_follows(self, reference):
        simulation = fs.Simulation(EXPERIMENT, target_delta=1e-7)

        def interrupt(done, total):
            if done > 2 * CHUNK:
                assert total == SAMPLES
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            simulation.run(SAMPLES, np.random.default_rng(3), workers=1, progress=interrupt)
        assert 3 * CHUNK <= simulation.n_samples < SAMPLES
        assert simulation.profile().n_samples == simulation.n_samples
        resumed = fs.Simulation.from_json(EXPERIMENT, simulation.to_json())
        resumed.run(SAMPLES, np.random.default_rng(3), workers=1)
        assert resumed.to_json() == reference

    def test_a_failing_executor(self, reference):
        simulation = fs.Simulation(EXPERIMENT, target_delta=1e-7)
        with pytest.raises(TypeError), Failing() as pool:
            simulation.run(SAMPLES, np.random.default_rng(3), executor=pool)
        assert simulation.n_samples == 3 * CHUNK
        simulation.run(SAMPLES, np.random.default_rng(3))
        assert simulation.to_json() == reference
