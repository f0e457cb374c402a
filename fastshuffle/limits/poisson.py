"""Poisson and Skellam limits: rare errors make the histogram a shifted count of jumps."""

from typing import final

import numpy as np

from fastshuffle._kernels.poisson_shift import shift_log_delta_array, shift_type_two_error_array
from fastshuffle._typing import OPPOSITE, Direction, FloatArray, Side
from fastshuffle._validation import UnsupportedSettingError
from fastshuffle.experiment import ShuffleExperiment, check_experiment
from fastshuffle.limits._jumps import Jumps, shift_law
from fastshuffle.limits._profile import LimitProfile

__all__ = ["JumpProfile", "ShiftProfile", "poisson_profile", "skellam_profile"]

_REGION = (
    "errors are rare: every input that occurs is reported with probability near 1, and the mean "
    "number of errors among the other users is moderate, whatever n"
)


class JumpProfile(LimitProfile):
    """The curve of a limit with sparse errors, whose distance from the exact law is bounded.

    Unlike other limits it proves something at a finite n: ``bounds`` is what the total variation
    distances between the exact laws and their limits leave open, which is useful while delta is
    not much smaller than they are.
    """

    def __init__(
        self, experiment: ShuffleExperiment, jumps: Jumps, *, method: str, source: str
    ) -> None:
        super().__init__(experiment, method=method, source=source, region=_REGION)
        self._errors = (jumps.error_a, jumps.error_b)

    @property
    def law_errors(self) -> tuple[float, float]:
        """Bounds on the total variation distance of Q and of P from their limits."""
        return self._errors

    def _log_bounds(
        self, epsilons: FloatArray, direction: Direction
    ) -> tuple[FloatArray, FloatArray]:
        lower, upper = np.zeros((2, len(epsilons)))
        for side in self._sides(direction):
            null, alternative = self._errors if side == "forward" else self._errors[::-1]
            with np.errstate(over="ignore"):
                scaled = np.exp(epsilons) * null if null > 0.0 else 0.0
            delta = np.exp(self._log_curve(epsilons, side))
            margin = alternative + scaled + 1e-12 * delta
            lower = np.maximum(lower, delta - margin)
            upper = np.maximum(upper, delta + margin)
        with np.errstate(divide="ignore"):
            return np.log(lower), np.log(np.minimum(upper, 1.0))


@final
class ShiftProfile(JumpProfile):
    """The curve of ``R + 1`` against R, R a Poisson count or the difference of two.

    `poisson_profile` and `skellam_profile` return it.
    """

    def __init__(
        self,
        experiment: ShuffleExperiment,
        jumps: Jumps,
        *,
        up: float,
        down: float,
        name: str,
        source: str,
    ) -> None:
        method = f"{name}; a contour sum of terms of one sign"
        super().__init__(experiment, jumps, method=method, source=source)
        self._means = (up, down)
        self._laws = {"forward": shift_law(up, down), "reverse": shift_law(down, up)}

    @property
    def means(self) -> tuple[float, float]:
        """Means ``(up, down)``: P is the law of R + 1 and Q of R = Poi(up) - Poi(down)."""
        return self._means

    def _log_curve(self, epsilons: FloatArray, side: Side) -> FloatArray:
        log_deltas = np.empty_like(epsilons)
        shift_log_delta_array(epsilons, self._laws[side], log_deltas)
        return log_deltas

    def _trade_off(self, alphas: FloatArray, direction: Direction) -> FloatArray:
        least = np.ones_like(alphas)
        for side in self._sides(direction):
            law, mirrored = self._laws[side], self._laws[OPPOSITE[side]]
            errors = np.empty_like(alphas)
            shift_type_two_error_array(alphas, law, mirrored, errors)
            least = np.minimum(least, errors)
        return least


def poisson_profile(experiment: ShuffleExperiment) -> ShiftProfile:
    """Return the Poisson limit of an experiment: one rare count against the same plus one.

    Parameters
    ----------
    experiment : ShuffleExperiment
        Every input that occurs has an output of probability above 1/2, its home; the homes of a
        and b differ, and those of all other users are the home of a, or all are that of b.

    Returns
    -------
    ShiftProfile
        APPROXIMATION. If the others are at home with a, the number of messages at the home of b
        is ``Poi(lambda)`` under Q and ``1 + Poi(lambda)`` under P, where lambda is the mean number
        of the other users' messages there: ``(n - 1) p`` for a single input with error p. If they
        are at home with b, P and Q change places.

    Raises
    ------
    TypeError
        If ``experiment`` is no ShuffleExperiment.
    UnsupportedSettingError
        If it is not of this kind; the message says why.

    See Also
    --------
    skellam_profile : others at both homes.
    compound_poisson_profile : others at a third home, and other errors that matter.

    Notes
    -----
    The errors of the other users are replaced by a Poisson count, and the differing user is taken
    to be at home for certain. **Meant for** sparse errors: error probabilities of order 1/n, hence
    a lambda of order 1, and n large. Then the total variation error is of order 1/n. Explicitly,
    with r the error probability of the input of m of the others and r_b that of b, the law P is
    within ``sum (1 - exp(-m r)) r + r_b`` of its limit, by [2]_ and since distances of independent
    parts add up. ``law_errors`` are these numbers and ``bounds`` the bracket of the exact delta
    that follows from them; nothing is proved about a delta far below them. A count of 0 reveals
    the input, which leaves a floor ``delta(inf) = exp(-lambda)`` in one direction; the exact curve
    stays near it until epsilon approaches epsilon0, and is 0 from there on.

    **Accuracy** of the limit curve itself: relative error of delta below 1e-12 down to 1e-300
    (``tests/test_kernels_poisson_shift.py``). **Cost**: some microseconds a delta, for any lambda.

    References
    ----------
    .. [1] A. Shvets, "Universal Shuffle Asymptotics, Part II: Non-Gaussian Limits for Shuffle
       Privacy -- Poisson, Skellam, and Compound-Poisson Regimes", arXiv:2603.10073v1, section 3.
    .. [2] A. D. Barbour, P. Hall, "On the rate of Poisson convergence", Math. Proc. Cambridge
       Philos. Soc. 95, 1984 (``d(W, Poi) <= (1 - exp(-lambda)) / lambda * sum p_i**2``).

    Examples
    --------
    >>> import math
    >>> import fastshuffle as fs
    >>> rr = fs.binary_randomized_response(math.log(1000.0))
    >>> experiment = fs.ShuffleExperiment(rr, n=4000, k=0)
    >>> limit = fs.poisson_profile(experiment)
    >>> print(f"{limit.delta(1.0):.5f} {fs.exact_profile(experiment).delta(1.0):.5f}")
    0.04191 0.04163
    >>> str(limit.validity)
    'APPROXIMATION'
    """
    jumps = Jumps.of(check_experiment(experiment))
    a, b = jumps.home_a, jumps.home_b
    if len(jumps.homes) > 1 or not jumps.homes <= {a, b}:
        raise UnsupportedSettingError(
            "the other users must all have the home of one input of the pair; skellam_profile and "
            "compound_poisson_profile allow others"
        )
    return ShiftProfile(
        experiment,
        jumps,
        up=float(jumps.rates[a, b]),
        down=float(jumps.rates[b, a]),
        name="a Poisson count against the same plus one",
        source="A. Shvets, arXiv:2603.10073v1, section 3",
    )


def skellam_profile(experiment: ShuffleExperiment) -> ShiftProfile:
    """Return the Skellam limit of an experiment: the difference of two rare counts, shifted by one.

    Parameters
    ----------
    experiment : ShuffleExperiment
        The messages of all inputs that occur fall into two groups, and every such input sends one
        of them with probability above 1/2, a and b different ones.

    Returns
    -------
    ShiftProfile
        APPROXIMATION. With m of the other users at home with b, the number of messages there less
        m is ``R = Poi(up) - Poi(down)`` under Q and ``R + 1`` under P. The means are those of the
        errors in either direction: ``up = (n - 1 - k) p0`` and ``down = k q1`` where k of the
        others hold 1, p0 is the error of input 0 and q1 that of input 1.

    Raises
    ------
    TypeError
        If ``experiment`` is no ShuffleExperiment.
    UnsupportedSettingError
        If it is not of this kind; the message says why.

    See Also
    --------
    poisson_profile : its special case of others at one home.

    Notes
    -----
    **Meant for** sparse errors, as `poisson_profile`, and a fraction k/n inside (0, 1). Then both
    means are positive, no count reveals the input, and ``delta(inf) = 0``: the floor of the Poisson
    limit has disappeared.

    **Accuracy** of the limit curve itself: relative error of delta below 1e-12 down to 1e-300
    (``tests/test_kernels_poisson_shift.py``). **Cost**: some microseconds a delta, for any means.

    References
    ----------
    .. [1] A. Shvets, "Universal Shuffle Asymptotics, Part II: Non-Gaussian Limits for Shuffle
       Privacy -- Poisson, Skellam, and Compound-Poisson Regimes", arXiv:2603.10073v1, section 4.

    Examples
    --------
    >>> import math
    >>> import fastshuffle as fs
    >>> rr = fs.binary_randomized_response(math.log(1000.0))
    >>> experiment = fs.ShuffleExperiment(rr, n=4000, k=2000)
    >>> limit = fs.skellam_profile(experiment)
    >>> print(f"{limit.delta(1.0):.5f} {fs.exact_profile(experiment).delta(1.0):.5f}")
    0.00353 0.00348
    >>> lower, upper = limit.bounds(1.0)
    >>> lower < 0.00348 < upper
    True
    """
    jumps = Jumps.of(check_experiment(experiment))
    if len(jumps.rates) > 2:
        raise UnsupportedSettingError(
            "the messages must fall into 2 groups, got "
            f"{len(jumps.rates)}; compound_poisson_profile allows more"
        )
    a, b = jumps.home_a, jumps.home_b
    return ShiftProfile(
        experiment,
        jumps,
        up=float(jumps.rates[a, b]),
        down=float(jumps.rates[b, a]),
        name="a difference of Poisson counts against the same plus one",
        source="A. Shvets, arXiv:2603.10073v1, section 4",
    )
