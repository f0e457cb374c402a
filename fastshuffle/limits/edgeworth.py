"""Edgeworth expansions: the Gaussian limit corrected for skewness, kurtosis and the lattice."""

import abc
import math
from itertools import product
from typing import final

import numpy as np

from fastshuffle._typing import FloatArray, Side
from fastshuffle._validation import UnsupportedSettingError, check_count
from fastshuffle.exact._pair import FORWARD, REVERSE, pair_arrays
from fastshuffle.experiment import ShuffleExperiment, check_experiment
from fastshuffle.limits._normal import log_density, log_mean_excess, log_upper_tail
from fastshuffle.limits._profile import LimitProfile
from fastshuffle.limits.fisher import difference
from fastshuffle.limits.gaussian import GaussianProfile, gaussian_profile
from fastshuffle.randomizers import MergedRows

__all__ = ["EdgeworthProfile", "edgeworth_profile"]

_CODE: dict[Side, int] = {"forward": FORWARD, "reverse": REVERSE}
# Where the corrections of either order exceed this part of the Gaussian limit, none is meant.
_LARGEST_CORRECTION = 0.25
# With a larger Lyapunov fraction, less than one rare message, the corrections do not help.
_LARGEST_FRACTION = 1.0
# The end of the region is looked for in steps of mu / 10 up to 40 mu.
_STEPS_A_MU, _MOST_MUS = 10, 40


class _Expansion(abc.ABC):
    """The expansion of one direction.

    Attributes
    ----------
    fraction : float
        The third absolute moments of the terms over the 3/2 power of the variance of the sum, at
        epsilon = 0: about one over the root of the number of rare messages.
    """

    fraction: float

    @abc.abstractmethod
    def log_delta(self, epsilons: FloatArray, order: int) -> FloatArray:
        """Return the log delta of order 3 or 4, nan where the expansion is not positive."""


def _hermite(u: FloatArray) -> tuple[FloatArray, ...]:
    """Return the Hermite polynomials He_1, ..., He_6."""
    square = u * u
    return (
        u,
        square - 1.0,
        u * (square - 3.0),
        square * (square - 6.0) + 3.0,
        u * (square * (square - 10.0) + 15.0),
        square * (square * (square - 15.0) + 45.0) - 15.0,
    )


class _BinaryExpansion(_Expansion):
    """For two groups of outputs: the count R of one group among the others is a lattice sum.

    Exactly, ``delta = max_x (p1 - p0) R(x - 1) - expm1(epsilon) (p0 R(x - 1) + S(x))`` with R(x)
    the mass and S(x) the upper tail, which are expanded. The sum over the lattice from x on is an
    integral from x - 1/2 on, up to a term of the Euler-Maclaurin formula, ``f'(x - 1/2) / 24``.
    """

    def __init__(self, own: FloatArray, others: FloatArray, log_loss: float) -> None:
        """Take the rows ``(count, p, q, ...)`` of the differing user and of the others."""
        counts, p, q = others[:, :3].T
        self._mean = float(counts @ p)
        self._sigma = math.sqrt(float(counts @ (p * q)))
        self.fraction = float(counts @ (p * q * (p * p + q * q))) / self._sigma**3
        self._skewness = float(counts @ (p * q * (q - p))) / self._sigma**3
        self._kurtosis = float(counts @ (p * q * (1.0 - 6.0 * p * q))) / self._sigma**4
        self._p0 = float(own[0, 1])
        self._difference = -float(own[1, 1]) * math.expm1(-log_loss)

    def log_delta(self, epsilons: FloatArray, order: int) -> FloatArray:
        growth = np.expm1(epsilons)
        # where the masses at x - 1 and x have the ratio at which the two laws cross
        log_ratio = np.log1p(growth / (self._difference - growth * self._p0))
        u = self._sigma * log_ratio
        for _ in range(3):
            u = self._sigma * log_ratio + 0.5 * self._skewness * (u * u - 1.0)
        crossing = np.floor(self._mean + 0.5 + self._sigma * u)
        x = crossing + np.arange(-1.0, 3.0)[:, np.newaxis]
        edge = (x - 0.5 - self._mean) / self._sigma
        log_unit = log_density(edge).max(axis=0)
        mass, tail = self._mass_and_tail(edge, log_unit, order)
        values = self._difference * mass - growth * (self._p0 * mass + tail)
        return log_unit + np.log(values.max(axis=0))

    def _mass_and_tail(
        self, edge: FloatArray, log_unit: FloatArray, order: int
    ) -> tuple[FloatArray, FloatArray]:
        """Return the mass below an edge and the tail above it, in a unit."""
        below = edge - 0.5 / self._sigma
        h1, h2, h3, _, h5, _ = _hermite(edge)
        _, _, b3, b4, _, b6 = _hermite(below)
        skew, kurt, square = self._skewness / 6.0, self._kurtosis / 24.0, self._skewness**2 / 72.0
        of_mass, of_tail = 1.0 + skew * b3, skew * h2
        if order == 4:
            of_mass = of_mass + kurt * b4 + square * b6
            of_tail = of_tail + kurt * h3 + square * h5 - h1 / (24.0 * self._sigma**2)
        normal_mass = np.exp(log_density(below) - log_unit) / self._sigma
        density = np.exp(log_density(edge) - log_unit)
        normal_tail = np.exp(log_upper_tail(edge.ravel()).reshape(edge.shape) - log_unit)
        return normal_mass * of_mass, normal_tail + density * of_tail


class _HomogeneousExpansion(_Expansion):
    """For others who all hold one input, any outputs: delta is a mean excess of an iid sum.

    ``delta = E (sum_i r(Y_i))_+ / n`` exactly, ``r = (W_b - exp(epsilon) W_a) / W_z``.
    """

    def __init__(self, merged: MergedRows, n: int, side: Side) -> None:
        first, second, self._law = merged.rows
        v = difference(merged)
        null, self._v = (first, v) if side == "forward" else (second, -v)
        self._null_ratio = null / self._law
        self._v = self._v / self._law
        self._n = n
        deviation = math.sqrt(float(self._v**2 @ self._law))
        self.fraction = float(np.abs(self._v / deviation) ** 3 @ self._law) / math.sqrt(n)

    def log_delta(self, epsilons: FloatArray, order: int) -> FloatArray:
        growth = np.expm1(epsilons)[:, np.newaxis]
        # r has the mean -expm1(epsilon)
        centred = self._v - growth * (self._null_ratio - 1.0)
        deviation = np.sqrt(centred**2 @ self._law)
        standard = centred / deviation[:, np.newaxis]
        skewness = standard**3 @ self._law
        kurtosis = standard**4 @ self._law - 3.0
        root = math.sqrt(self._n)
        t = root * growth[:, 0] / deviation
        h1, h2, _, h4, _, _ = _hermite(t)
        correction = skewness * h1 / (6.0 * root)
        if order == 4:
            correction = correction + (kurtosis * h2 / 24.0 + skewness**2 * h4 / 72.0) / self._n
        log_unit = log_density(t)
        normal = np.exp(log_mean_excess(t) - log_unit)
        return log_unit + np.log(deviation / root * (normal + correction))


@final
class EdgeworthProfile(LimitProfile):
    """The Gaussian limit with its corrections: an APPROXIMATION; see `edgeworth_profile`."""

    def __init__(
        self, limit: GaussianProfile, expansions: dict[Side, _Expansion], order: int
    ) -> None:
        self._expansions = expansions
        self._order = order
        self._largest_epsilon = self._end_of_region(limit)
        corrections = "skewness" if order == 3 else "skewness, kurtosis and the lattice"
        super().__init__(
            limit.experiment,
            method=f"Edgeworth expansion with {corrections}",
            source=(
                "F. Y. Edgeworth's expansion, as in W. Feller, An Introduction to Probability "
                "Theory and Its Applications, vol. 2, chapter XVI; exact likelihood ratio of A. "
                "Shvets, arXiv:2602.09029v3, section 3"
            ),
            region=(
                f"epsilon <= {self._largest_epsilon:.6g}, up to where the corrections of order 3 "
                "or 4 are a quarter of the Gaussian limit; beyond, where the expansion may turn "
                "negative, it is refused"
            ),
        )

    def _end_of_region(self, limit: GaussianProfile) -> float:
        if limit.mu == 0.0:
            return math.inf
        epsilons = limit.mu / _STEPS_A_MU * np.arange(_STEPS_A_MU * _MOST_MUS + 1.0)
        inside = np.ones(len(epsilons), dtype=bool)
        with np.errstate(all="ignore"):
            for expansion, order in product(self._expansions.values(), (3, 4)):
                ratio = np.exp(expansion.log_delta(epsilons, order) - limit.log_delta(epsilons))
                inside &= np.abs(ratio - 1.0) <= _LARGEST_CORRECTION
        fraction = max(expansion.fraction for expansion in self._expansions.values())
        if not fraction <= _LARGEST_FRACTION or not inside[0]:
            raise UnsupportedSettingError(
                "n must be larger for an Edgeworth expansion: some messages are too rare or the "
                f"corrections at epsilon = 0 exceed a quarter of the Gaussian limit, got {limit.n}"
            )
        return float(epsilons[-1] if inside.all() else epsilons[inside.argmin() - 1])

    @property
    def order(self) -> int:
        """3 or 4: the highest cumulant that is corrected for."""
        return self._order

    @property
    def largest_epsilon(self) -> float:
        """The end of the region: larger epsilons are refused."""
        return self._largest_epsilon

    def _log_curve(self, epsilons: FloatArray, side: Side) -> FloatArray:
        if self._largest_epsilon == math.inf:  # identical rows
            return np.full_like(epsilons, -math.inf)
        largest = float(epsilons.max(initial=0.0))
        if largest > self._largest_epsilon:
            raise UnsupportedSettingError(
                f"epsilon must be <= {self._largest_epsilon!r}, where the corrections reach a "
                f"quarter of the Gaussian limit, got {largest!r}"
            )
        return self._expansions[side].log_delta(epsilons, self._order)

    def _largest_loss(self, side: Side) -> float:  # noqa: ARG002 - one region for both directions
        return self._largest_epsilon

    def _inverse(self, log_delta: float, side: Side) -> float:
        if self._largest_epsilon < math.inf:
            least = float(self._log_curve(np.array([self._largest_epsilon]), side)[0])
            if log_delta < least:
                raise UnsupportedSettingError(
                    f"delta must be >= exp({least!r}), what the expansion gives at the end of its "
                    f"region, epsilon = {self._largest_epsilon!r}, got exp({log_delta!r})"
                )
        return super()._inverse(log_delta, side)


def edgeworth_profile(experiment: ShuffleExperiment, *, order: int = 4) -> EdgeworthProfile:
    """Return the Gaussian limit of an experiment with Edgeworth's corrections.

    Parameters
    ----------
    experiment : ShuffleExperiment
        In one of two cases: the messages of all inputs that occur fall into 2 groups, with any
        composition of the other users; the other users all hold one input, with any outputs.
    order : {3, 4}, default 4
        3 corrects for the skewness, 4 for the kurtosis and the squared skewness too, and, with 2
        groups, for the lattice of the counts.

    Returns
    -------
    EdgeworthProfile
        APPROXIMATION. ``bounds`` is (0, 1), since nothing is proved. Its ``region`` ends at
        ``largest_epsilon``.

    Raises
    ------
    TypeError, ValueError
        If the order is not 3 or 4, no case applies, there is no Gaussian limit (see
        `gaussian_profile`), or n is so small that the expansion fails at epsilon = 0 or some
        message is expected less than about once. **From the methods**: if an epsilon lies beyond
        ``largest_epsilon``, inf included, or a delta below what the curve reaches there.

    Notes
    -----
    *Two groups.* Mass and tail of a count, a sum of binomials, are expanded in the closed form of
    delta, at the best of four half-lines near the crossing. *One input.* Delta is ``s / sqrt(n)``
    times the mean excess over t of a standardised iid sum. With G the mean excess of a normal
    variable
    and k3, k4 the cumulants of a term, all of which depend on epsilon, the expansion of that is

        G(t) + phi(t) { k3 t / (6 sqrt(n))
                        + (k4 (t**2 - 1) / 24 + k3**2 (t**4 - 6 t**2 + 3) / 72) / n }.

    A proof of the last term needs a smooth characteristic function, which no finite alphabet has:
    with three and more groups it is formal. It was found to gain a factor of ten and more.

    **Region**: from 0 on, as long as both orders lie within a quarter of the Gaussian limit, in
    steps of mu / 10 and up to 40 mu. Beyond, the expansion goes wrong quickly, and in one of the
    directions negative: for randomized response with epsilon0 = 4, n = 1e4, k = 0 order 4 has 0.08
    of the reverse delta at 5 mu and is negative from 5.5 mu on. It is refused there, not clipped.

    **Measured** at epsilon = mu (``tests/test_limits_edgeworth.py``), two outputs with
    probabilities 0.2 and 0.5, k = 0: the relative error of delta is for n = 1e3, 1e4 and 1e6

    =================  ======  ======  ======
    Gaussian limit     1.2e-2  3.7e-3  3.6e-4
    order 3            1.7e-3  1.7e-4  1.7e-6
    order 4            3.8e-5  1.2e-6  1.1e-9
    =================  ======  ======  ======

    that is ``n**-1/2``, ``1 / n`` and ``n**-3/2``. Up to the end of the region, in 955 random
    settings with n >= 10, the largest error of order 4 had the median 0.3 percent, the 99th
    percentile 9 and the maximum 15; that of the Gaussian limit 22, 31 and 42. At one point in sixty
    the limit was nearer, mostly where some message is expected only once or twice. Worse is
    possible: probabilities 0.61 and 0.55, n = 1,208, k = 0 at 6.1 mu, where delta is 2e-13, give 43
    percent against 26. The larger the local budget, the shorter the region: for epsilon0 = 4 and
    k = 0 it ends at 1 mu for n = 1e3 and at 4 mu for n = 1e6.

    **Cost**: about 0.2 milliseconds a call, and 50 such calls an epsilon.

    References
    ----------
    .. [1] W. Feller, "An Introduction to Probability Theory and Its Applications", volume 2, second
       edition, 1971, chapter XVI.
    .. [2] A. Shvets, "Universal Shuffle Asymptotics", arXiv:2602.09029v3, section 3, for the exact
       likelihood ratio.

    Examples
    --------
    >>> import fastshuffle as fs
    >>> w = fs.Randomizer.from_probabilities([0.2, 0.5])
    >>> experiment = fs.ShuffleExperiment(w, n=10_000, k=0)
    >>> corrected, exact = fs.edgeworth_profile(experiment), fs.exact_profile(experiment)
    >>> print(f"{corrected.delta(0.02):.4e} {exact.delta(0.02):.4e}")
    9.2379e-06 9.2372e-06
    >>> print(f"{fs.gaussian_profile(experiment).delta(0.02):.4e}")
    8.9513e-06
    """
    checked = check_experiment(experiment)
    kept = check_count("order", order, minimum=3, maximum=4)
    held = list(checked.others)
    limit = gaussian_profile(checked)  # which refuses what has no Gaussian limit
    merged = checked.randomizer.merged((*checked.pair, *held))
    expansions: dict[Side, _Expansion] = {}
    if limit.mu == 0.0:
        pass
    elif merged.rows.shape[1] <= 2:
        rows, pairs = pair_arrays(merged)
        rows[:, 2:, 0] = list(checked.others.values())
        expansions = {
            side: _BinaryExpansion(
                rows[code, [code, 1 - code]], rows[code, 2:], float(pairs[code, 3])
            )
            for side, code in _CODE.items()
        }
    elif len(held) == 1:
        expansions = {side: _HomogeneousExpansion(merged, checked.n, side) for side in _CODE}
    else:
        raise UnsupportedSettingError(
            "the other users must all hold one input, or the messages of all inputs that occur "
            f"fall into 2 groups, got {len(held)} inputs and {merged.rows.shape[1]} groups"
        )
    return EdgeworthProfile(limit, expansions, kept)
