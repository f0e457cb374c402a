"""The largest relative error against mpmath values, at the settings that are timed.

The survey over all magnitudes is ``python -m validation``.
"""

import fastshuffle as fs

from .settings import DELTA, ONES, USERS

_P0, _P1 = 0.2, 0.6

# (n, others): (epsilon, delta at it, epsilon at delta = 1e-20), by validation/reference/mp.py.
VALUES = {
    (10**4, "k = 0"): (0.06, 2.8110544897181007519e-12, 0.08695459552100046399),
    (10**4, "k = n // 3"): (0.06, 6.8223674559486065756e-14, 0.078852179026013988651),
    (10**8, "k = 0"): (0.0006, 1.5731781485144701874e-14, 0.00079674853634483593645),
    (10**8, "k = n // 3"): (0.0006, 6.2485469737373615492e-16, 0.00073664590015657287872),
    (10**12, "k = 0"): (6e-06, 1.563665627465394881e-16, 7.3846735309581756736e-6),
    (10**12, "k = n // 3"): (6e-06, 6.2407704859744030497e-18, 6.8275247014638546139e-6),
    (10**15, "k = 0"): (1.9e-07, 4.6911951129912096687e-18, 2.1879772344897533027e-7),
    (10**15, "k = n // 3"): (1.9e-07, 1.8568148816590590588e-19, 2.0225334471069893447e-7),
}


class MaxRelativeError:
    """delta and epsilon for W(1) = 0.2 and 0.6, both directions."""

    params = (USERS, ONES)
    param_names = ("n", "others")

    def setup(self, users, ones):
        randomizer = fs.Randomizer.from_probabilities([_P0, _P1])
        k = 0 if ones == ONES[0] else users // 3
        self.profile = fs.exact_profile(fs.ShuffleExperiment(randomizer, users, k=k))

    def track_max_relative_error(self, users, ones):
        epsilon, delta, inverse = VALUES[users, ones]
        return max(
            abs(self.profile.delta(epsilon) / delta - 1.0),
            abs(self.profile.epsilon(DELTA) / inverse - 1.0),
        )


MaxRelativeError.track_max_relative_error.unit = "relative error"
