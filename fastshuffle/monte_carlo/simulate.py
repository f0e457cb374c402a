"""The one call that simulates an experiment."""

from typing import Any

import numpy as np
import numpy.typing as npt

from fastshuffle.experiment import ShuffleExperiment
from fastshuffle.monte_carlo.execution import Progress
from fastshuffle.monte_carlo.profile import MonteCarloProfile
from fastshuffle.monte_carlo.simulation import Simulation

__all__ = ["monte_carlo_profile"]


def monte_carlo_profile(  # noqa: PLR0913 - keywords
    experiment: ShuffleExperiment,
    *,
    n_samples: float,
    rng: np.random.Generator,
    target_epsilon: float | None = None,
    target_delta: float | None = None,
    epsilons: npt.ArrayLike | None = None,
    confidence: float = 0.99,
    executor: Any = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> MonteCarloProfile:
    """Return the profile of an experiment estimated from simulated histograms, with intervals.

    It is for experiments that no exact method covers: large alphabets, others at several inputs.
    `exact_profile` is faster and exact where it applies.

    Parameters
    ----------
    experiment : ShuffleExperiment
        The two datasets. At least one other user exists, and at most 2**48 hold the same input.
        Either the others hold at most 7 inputs with different rows, or the outputs form at most
        7 groups, or the rows have a common part from which each differs in one output, as in
        k-ary randomized response. Where users send several messages, the common part does not help,
        and the others send all that the differing user may send.
    n_samples : int
        How many histograms to draw, from 2 to 1e13, half of them for either direction.
    rng : numpy.random.Generator
        The source of randomness.
    target_epsilon : float, optional
        Where the estimate is to be sharpest, >= 0 and finite. At most one target is given.
    target_delta : float, optional
        The same, given as the delta in [1e-300, 1] at which epsilon is wanted. Without a target,
        1e-6 where the others hold a single input or the two inputs of the pair and users send one
        message; elsewhere the law
        itself is drawn then, which serves large deltas best.
    epsilons : array_like of float, optional
        Where delta is estimated, >= 0 and finite, at most 4096 numbers; by default some 130
        numbers from 0 to beyond the target. Fewer numbers have slightly narrower intervals.
    confidence : float, default 0.99
        In [0.5, 1 - 1e-9]: the probability that all intervals of the profile hold at once.
    executor : concurrent.futures.Executor or dask.distributed.Client, optional
        What does the work; by default threads of this process. The numbers do not depend on it.
    workers : int, optional
        Number of threads, without an executor; by default one a processor.
    progress : callable, optional
        Called as ``progress(done, n_samples)`` after each chunk.

    Returns
    -------
    MonteCarloProfile
        ESTIMATE. ``bounds`` and the other intervals hold together with probability ``confidence``,
        for any number of samples: they rest on no normal approximation.

    Raises
    ------
    TypeError, ValueError
        If an argument is outside its domain.
    UnsupportedSettingError
        If the experiment is not of the supported kind.
    ArithmeticError
        If the samples at the target are worth fewer than 50 of equal weight, so that no interval
        of use could rest on them.

    See Also
    --------
    Simulation : the same in steps, to interrupt, store, resume and merge.

    Notes
    -----
    *Likelihood ratio.* Exact for every histogram, a ratio of coefficients of a product of powers of
    linear forms [1]_: a closed form for others at one input; else the inversion of a Fourier
    transform at a saddle point, in a variable for every input of the others but one or for every
    output but one, whichever are fewer (`fastshuffle._kernels.label_ratio`); or, where the rows
    have a common part from which each differs in one output, an integral in one variable for any
    number of inputs and outputs (`fastshuffle._kernels.common_part`); for several messages a user,
    two such coefficients (`fastshuffle._kernels.message_losses`). Without a common part the ratio
    is one of permanents, and no method is known whose cost does not grow exponentially in the
    smaller of the two numbers.

    *Samples* come from a mixture of exponential tilts of the law of every message, for a ladder of
    epsilons from 0 to the target, and are weighted against the whole mixture, so that small deltas
    have the same relative accuracy as large ones. Weights are logarithms until the last. A proof
    that they are bounded (`fastshuffle.monte_carlo.half_spaces`) makes intervals possible at all.
    It covers others at a single input or at the inputs of the pair. Elsewhere small deltas have
    their upper bound from experiments with fewer users, whose messages are not revealed
    (`fastshuffle.monte_carlo.aim`): proved as well, but wider. The lower one needs no such bound.

    *Intervals* for delta hold at all epsilons of the grid and in both directions at once, with the
    error split evenly, but for one half of it that is spent near a target that is given. Between
    grid points they follow from monotonicity and from convexity in exp(epsilon), and those for
    epsilon, the trade-off function and the divergences from the band.
    They are intervals of bets (`fastshuffle.monte_carlo.intervals`), sharpened by one random number
    that is drawn with the samples.

    **Accuracy**: the interval at the target has a relative half-width of a few percent for a
    million samples and deltas of any size where weights are bounded
    (``tests/test_monte_carlo.py``); coverage is measured in ``validation/coverage.py``. Losses
    carry rounding only; with 6 or 7 inputs and outputs they are found to a millionth of
    ``n**(-1/2)``, their usual size.

    **Cost**: about two microseconds a sample and processor for others at two inputs and three
    outputs, at any n; half a microsecond for one input; 40 for three inputs or three outputs, and
    about 20 times more for each further one; with a common part 300 for ten inputs.

    References
    ----------
    .. [1] A. Shvets, "Universal Shuffle Asymptotics: Sharp Privacy Analysis in the Gaussian
       Regime", arXiv:2602.09029v3, section 3 (exact likelihood ratio).

    Examples
    --------
    >>> import numpy as np
    >>> import fastshuffle as fs
    >>> w = fs.Randomizer([[0.5, 0.3, 0.2], [0.2, 0.35, 0.45], [0.3, 0.3, 0.4]])
    >>> experiment = fs.ShuffleExperiment(w, n=1000, others={0: 300, 1: 300, 2: 399})
    >>> rng = np.random.default_rng(1)
    >>> profile = fs.monte_carlo_profile(experiment, n_samples=20_000, rng=rng)
    >>> lower, upper = profile.bounds(0.01)
    >>> lower < profile.delta(0.01) < upper, str(profile.validity)
    (True, 'ESTIMATE')
    """
    simulation = Simulation(
        experiment, target_epsilon=target_epsilon, target_delta=target_delta, epsilons=epsilons
    )
    simulation.run(n_samples, rng, executor=executor, workers=workers, progress=progress)
    return simulation.profile(confidence=confidence)
