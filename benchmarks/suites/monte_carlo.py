"""Simulation: samples a second, whatever the number of users."""

import numpy as np

import fastshuffle as fs

_ROWS = fs.Randomizer([[0.5, 0.3, 0.2], [0.2, 0.35, 0.45], [0.3, 0.3, 0.4]])
_SAMPLES = 2**18
_OTHERS = {
    "one input": lambda n: {2: n - 1},
    "the pair": lambda n: {0: n - n // 2 - 1, 1: n // 2},
}


class Simulation:
    """Draws, ratios and sums at all epsilons, three outputs, on all processors."""

    params = ((10**4, 10**6, 10**9), tuple(_OTHERS))
    param_names = ("n", "others")

    def setup(self, users, others):
        self.experiment = fs.ShuffleExperiment(_ROWS, users, others=_OTHERS[others](users))
        self.simulation = fs.Simulation(self.experiment, target_delta=1e-12)
        self.rng = np.random.default_rng(1)
        self.simulation.run(100, self.rng)

    def time_quarter_of_a_million(self, *_):
        self.simulation.run(_SAMPLES, self.rng, workers=2)

    def time_aim(self, *_):
        fs.Simulation(self.experiment, target_delta=1e-12)
