"""What central limit theorems with explicit constants prove about a privacy curve at a given n."""

import math

import numpy as np

from fastshuffle._positive_part import Bracket
from fastshuffle._typing import FloatArray, Side
from fastshuffle.bracket import BracketProfile, Curve
from fastshuffle.exact._pair import FORWARD, REVERSE, pair_arrays
from fastshuffle.experiment import ShuffleExperiment, check_experiment
from fastshuffle.limits._normal import log_density, log_mean_excess, log_upper_tail
from fastshuffle.limits.berry_esseen import binomial_terms, others_of
from fastshuffle.limits.fisher import difference, merged_rows
from fastshuffle.profile import Validity
from fastshuffle.randomizers import MergedRows

__all__ = ["berry_esseen_profile"]

# Rounding of a dozen operations on positive numbers, and of differences beside their parts.
_ROUNDING = 1e-12
# That of a sum of products.
_MEAN_ROUNDING = 1e-15
# Delta decreases, so that its bounds on a grid of this size up to 50 delta(0) serve in between.
_N_GRID, _GRID_END = 201, 50.0
# Beyond it exp(epsilon) nears the end of a double, and only that delta decreases is used.
_LARGEST_EPSILON = 700.0
_CODE: dict[Side, int] = {"forward": FORWARD, "reverse": REVERSE}


class _Homogeneous:
    """The mean excess of an iid sum, bracketed by the central limit theorem in the mean.

    With n - 1 users who hold z and the differing one, delta is exactly ``E (sum r)_+ / n`` plus
    what lies outside the support of W_z, ``r = (W_alternative - exp(epsilon) W_null) / W_z``. With
    m and s the mean and deviation of r, ``|E (S - t)_+ - E (Z - t)_+|`` of the standardised sum is
    at most half the L1 distance of the laws, since their means agree, hence at most ``E |r - m|**3
    / (2 s**3 sqrt(n))``. Not ``alone``, the n users are a part of all, and the rest is revealed:
    then only the upper bound is one for all.
    """

    def __init__(self, merged: MergedRows, n: int, side: Side, *, alone: bool) -> None:
        first, second, law = merged.rows
        v = difference(merged)
        null, v = (first, v) if side == "forward" else (second, -v)
        inside = law > 0.0
        self._n = n
        self._alone = alone
        self._law, self._v, self._null = law[inside], v[inside], null[inside]
        self._v_beyond, self._null_beyond = v[~inside], null[~inside]

    def bracket(self, epsilons: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return a lower and an upper bound on delta at finite epsilons."""
        growth = np.expm1(epsilons)[:, np.newaxis]
        beyond = self._v_beyond - growth * self._null_beyond
        clear = np.maximum(beyond, 0.0).sum(axis=1)
        mean = -growth[:, 0] - beyond.sum(axis=1)
        ratio = (self._v - growth * self._null) / self._law
        centred = ratio - mean[:, np.newaxis]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            variance = centred**2 @ self._law
            third = np.abs(centred) ** 3 @ self._law
            scale = np.sqrt(variance / self._n)
            t = -mean / scale
            size = np.abs(t)
            excess = scale * (np.exp(log_mean_excess(size)) + np.where(t < 0.0, size, 0.0))
            error = third / (2.0 * self._n * variance)
        certain = variance == 0.0
        excess = np.where(certain, np.maximum(mean, 0.0), excess)
        error = np.where(certain, 0.0, error)
        parts = np.abs(self._v_beyond).sum() + growth[:, 0] * self._null_beyond.sum()
        slack = _ROUNDING * (parts + excess + error)
        lower = clear + excess - error - slack
        return lower if self._alone else np.zeros_like(lower), clear + excess + error + slack


class _TwoGroups:
    """Mass and tail of the count of the others, bracketed by their distances from the normal law.

    Delta is the largest ``c1 R(x - 1) - growth S(x)`` over x, with ``c1 = p1 - exp(epsilon) p0``,
    ``growth = exp(epsilon) - 1``, R the mass and S the upper tail.

    - The tail: between integers the distribution function is constant, so that ``tail(x - 1) - D <=
      S(x) <= tail(x) + D`` with D the Berry-Esseen distance and tail that of the normal law. So a
      mass is at most 2 D.
    - The mass: it is within E of the normal density, see `_mass_error`.

    With both, the largest value over all real x is the tangent curve of ``mu = c1 / sigma``, and
    its error is ``c1 E + growth D``.
    """

    def __init__(self, own: FloatArray, others: FloatArray, log_loss: float) -> None:
        counts, p, q = others[:, :3].T
        self._mean, self._sigma = float(counts @ p), math.sqrt(float(counts @ (p * q)))
        self._distance = binomial_terms(others).distance()
        self._error = _mass_error(others)
        self._p0 = float(own[0, 1])
        self._difference = -float(own[1, 1]) * math.expm1(-log_loss)

    def bracket(self, epsilons: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return a lower and an upper bound on delta at finite epsilons."""
        growth = np.expm1(epsilons)
        c1 = np.maximum(self._difference - growth * self._p0, 0.0)
        slack = _ROUNDING * self._difference
        upper = 2.0 * self._distance * (c1 + slack)
        if self._error == math.inf:
            return np.zeros_like(upper), upper
        with np.errstate(divide="ignore"):
            t = np.minimum(growth * self._sigma / c1, 40.0)
        # 40 is as good as any larger number: the excess over it is 0
        tangent = c1 / self._sigma * np.exp(log_mean_excess(t))
        error = c1 * self._error + growth * self._distance
        upper = np.minimum(upper, (tangent + error) * (1.0 + _ROUNDING) + slack)

        x = np.floor(self._mean + 1.0 + self._sigma * t) + np.arange(-1.0, 2.0)[:, np.newaxis]
        farther, below, at = ((x - shift - self._mean) / self._sigma for shift in (2.0, 1.0, 0.0))
        tails = [np.exp(log_upper_tail(y.ravel())).reshape(y.shape) for y in (farther, at)]
        # rounding of the mean moves the normal law
        moved = _MEAN_ROUNDING * self._mean / self._sigma
        distance, mass_error = self._distance + moved, self._error + moved / self._sigma
        mass = np.maximum(
            np.exp(log_density(below)) / self._sigma - mass_error,
            tails[0] - tails[1] - 2.0 * distance,
        )
        gained, lost = c1 * np.maximum(mass, 0.0), growth * np.minimum(tails[1] + distance, 1.0)
        return (gained - lost - _ROUNDING * (gained + lost) - slack).max(axis=0), upper


def _mass_error(groups: FloatArray) -> float:
    """Return a bound on how far the mass of a sum of Bernoulli variables is from the density.

    Both are Fourier integrals. The characteristic function of one centred term, of variance v and
    third absolute moment r, differs from ``exp(-v s**2 / 2)`` by at most ``r |s|**3 / 6 + v**2 s**4
    / 8``, and neither exceeds ``exp(-2 v sin(s / 2)**2)``. So those of the sum differ by at most
    ``(sum r) |s|**3 / 6 + (sum v**2) s**4 / 8`` times that of the other terms, in which ``2 sin(s /
    2)**2`` is at least ``c s**2`` up to s = 1 and at least c up to pi, for ``c = 2 sin(1/2)**2``.
    Beyond pi only the normal integral goes on. It is O(1 / variance); inf for a variance below 1.
    """
    counts, p, q = groups[:, :3].T
    variance = float(counts @ (p * q))
    if variance < 1.0:
        return math.inf
    third = float(counts @ (p * q * (p * p + q * q))) / 6.0
    fourth = float(counts @ (p * q) ** 2) / 8.0
    decay = 2.0 * math.sin(0.5) ** 2 * (variance - 0.25)
    inside = third / decay**2 + 0.75 * math.sqrt(math.pi) * fourth / decay**2.5
    outside = 2.0 * (third * math.pi**4 / 4.0 + fourth * math.pi**5 / 5.0) * math.exp(-decay)
    beyond = 2.0 * math.exp(-0.5 * variance * math.pi**2) / (variance * math.pi)
    return (inside + outside + beyond) / (2.0 * math.pi) * (1.0 + _ROUNDING)


def _curve(parts: list[_Homogeneous | _TwoGroups], merged: MergedRows, side: Side) -> Curve:
    """Return the best of all brackets of one direction, those of one user included."""
    v, losses = difference(merged), merged.log_ratios[1]
    null, v, losses = (
        (merged.rows[0], v, losses) if side == "forward" else (merged.rows[1], -v, -losses)
    )
    rounding = _ROUNDING * float(np.abs(v).sum())

    def bounds(epsilons: FloatArray) -> tuple[FloatArray, FloatArray]:
        one_user = v - np.expm1(epsilons)[:, np.newaxis] * null
        upper = np.maximum(one_user, 0.0).sum(axis=1) + rounding
        lower = np.zeros_like(upper)
        for part in parts:
            low, high = part.bracket(epsilons)
            # a nan of moments beyond the largest double tells nothing
            lower, upper = np.fmax(lower, low), np.fmin(upper, high)
        return lower, upper

    loss = float(losses.max())
    end = min(_GRID_END * float(bounds(np.zeros(1))[1][0]), loss, _LARGEST_EPSILON)
    grid = np.linspace(0.0, end, _N_GRID)
    lower, upper = bounds(grid)
    # the least of the upper bounds so far, the largest of the lower bounds to come
    upper = np.minimum.accumulate(upper)
    lower = np.maximum.accumulate(lower[::-1])[::-1]
    # beyond the grid nothing is known but that delta decreases
    upper, lower = np.append(upper, 0.0), np.append(lower, 0.0)

    def log_bracket(epsilon: float) -> Bracket:
        before = int(grid.searchsorted(epsilon, side="right")) - 1
        (low,), (high,) = (
            bound.tolist() for bound in bounds(np.array([min(epsilon, _LARGEST_EPSILON)]))
        )
        if epsilon > _LARGEST_EPSILON:
            low = 0.0
        if epsilon == math.inf:
            high = min(high, float(v[null == 0.0].sum()) + rounding)
        # decreasing between two points too
        low = min(max(low, float(lower[before + 1])), float(lower[before]))
        high = max(min(high, float(upper[before])), float(upper[before + 1]))
        return Bracket(*(math.log(x) if x > 0.0 else -math.inf for x in (low, high)))

    return Curve(log_bracket, loss, 1e-9)


def berry_esseen_profile(experiment: ShuffleExperiment) -> BracketProfile:
    """Return what explicit central limit theorems prove about the privacy curve of an experiment.

    Parameters
    ----------
    experiment : ShuffleExperiment
        Any randomizer and any composition of the other users, n >= 2.

    Returns
    -------
    BracketProfile
        UPPER_BOUND for the two datasets of the experiment: ``bounds`` is the proved bracket,
        rounding included, and ``delta`` its upper end.

    Raises
    ------
    TypeError, ValueError
        If ``experiment`` is no ShuffleExperiment, n is 1, or a probability underflows.

    Notes
    -----
    Three facts are combined, each with the Gaussian limit in it, and the curve of one user, which
    is that of n by post-processing.

    - *Others all at one input z.* Delta is the mean excess of an iid sum over 0, within ``E |r -
      m|**3 / (2 s**2 n)`` of that of the normal law with the same mean and variance [1]: the
      tangent curve with a proved error of O(1 / n).
    - *Others at several inputs.* Revealing the messages of all who do not hold z can only raise
      delta, and leaves the first case. It gives an upper bound for every z that occurs.
    - *Two groups of outputs.* The tail of the count of the others is within the Berry-Esseen
      distance D of the normal one (`berry_esseen_bound`), its mass within E = O(1 / n) of the
      normal density, by an elementary bound on the characteristic function that is proved in the
      code. A tangent curve then has the error ``(p1 - exp(epsilon) p0) E + (exp(epsilon) - 1) D``,
      which is O(1 / n) too where epsilon is of the order of mu.

    So the theorems prove the limit to a relative O(n**-1/2) where epsilon is of the order of mu,
    unless outputs fall into more than 2 groups and the others are mixed: then the upper bound is
    off by a factor and there is no lower one. And none says anything of a delta far below 1 / n.
    `exact_profile` has no such limits: this profile shows what the limit alone can certify.

    **Validity**: checked against brute force for n up to 8 and exact curves
    (``tests/test_limits_berry_esseen.py``). **Cost**: about 0.2 milliseconds a delta, at any n.

    References
    ----------
    .. [1] L. Goldstein, "Bounds on the constant in the mean central limit theorem", Annals of
       Probability 38:4, 2010, arXiv:0906.5145: the L1 distance is at most L.
    .. [2] I. G. Shevtsova, "On the absolute constants in the Berry-Esseen inequality and its
       structural and nonuniform improvements", Informatics and its Applications 7:1, 2013.

    Examples
    --------
    >>> import fastshuffle as fs
    >>> experiment = fs.ShuffleExperiment(fs.binary_randomized_response(1.0), n=10**6, k=0)
    >>> lower, upper = fs.berry_esseen_profile(experiment).bounds(0.001)
    >>> print(f"{lower:.3e} {fs.exact_profile(experiment).delta(0.001):.3e} {upper:.3e}")
    9.329e-05 9.387e-05 9.427e-05
    """
    checked = check_experiment(experiment)
    held = others_of(checked)
    merged = merged_rows(checked.randomizer, (*checked.pair, *held))
    curves: dict[Side, Curve] = {}
    for side, code in _CODE.items():
        parts: list[_Homogeneous | _TwoGroups] = []
        for place, count in enumerate(held.values(), start=2):
            alone = merged.of([0, 1, place])
            parts.append(_Homogeneous(alone, count + 1, side, alone=len(held) == 1))
        if merged.rows.shape[1] <= 2:
            rows, pairs = pair_arrays(merged)
            rows[:, 2:, 0] = list(held.values())
            own = rows[code, [code, 1 - code]]
            parts.append(_TwoGroups(own, rows[code, 2:], float(pairs[code, 3])))
        curves[side] = _curve(parts, merged, side)
    return BracketProfile(
        curves,
        n=checked.n,
        validity=Validity.UPPER_BOUND,
        method="normal law with proved errors: central limit theorem in the mean, Berry-Esseen",
        source=(
            "L. Goldstein, arXiv:0906.5145 (mean central limit theorem, constant 1); "
            "I. G. Shevtsova, Informatics and its Applications 7:1, 2013 (Berry-Esseen constants); "
            "exact likelihood ratio of A. Shvets, arXiv:2602.09029v3, section 3"
        ),
        setting=checked.to_dict(),
    )
