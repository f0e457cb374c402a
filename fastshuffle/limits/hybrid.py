"""Hybrid limit: a Gaussian factor for outputs sent often, Poisson counts for those sent rarely."""

import math
from itertools import pairwise
from typing import Any, NamedTuple, final

import numpy as np

from fastshuffle._kernels.poisson_shift import log_poisson_mass
from fastshuffle._typing import Direction, FloatArray, Side
from fastshuffle._validation import UnsupportedSettingError
from fastshuffle.experiment import ShuffleExperiment, check_experiment
from fastshuffle.limits._normal import log_gaussian_delta
from fastshuffle.limits._profile import LimitProfile
from fastshuffle.limits.fisher import composition_constant, merged_rows
from fastshuffle.randomizers import MergedRows

__all__ = ["HybridProfile", "hybrid_profile"]

# The rare counts are summed where their probability is above exp(-depth); a log delta within the
# margin of -depth needs the next depth, if there is one.
_DEPTHS = (60.0, 120.0, 750.0)
_DEPTH_MARGIN = 40.0
_MOST_COUNTS = 200_000
# Counts of a mean from here on may be taken as Gaussian where there are too many to be summed.
_LEAST_OFTEN = 100.0


class _Field(NamedTuple):
    """Values of the rare counts: their log masses and, for each input, its likelihood ratio."""

    log_masses: FloatArray
    ratios_a: FloatArray
    ratios_b: FloatArray


class _Block(NamedTuple):
    """What the outputs sent often are: the masses there of both laws, and their separation.

    The first law is that of a, or of b where it is the nearer to the others' and so the origin.
    """

    masses: FloatArray
    mu: float
    exchanged: bool


@final
class HybridProfile(LimitProfile):
    """The curve of a Gaussian shift beside a field of Poisson counts; see `hybrid_profile`."""

    def __init__(
        self, experiment: ShuffleExperiment, rows: FloatArray, means: FloatArray, block: _Block
    ) -> None:
        self._mu = block.mu
        self._means = means
        self._often = block.masses
        self._exchanged = block.exchanged
        self._rows = rows
        self._fields: dict[float, _Field] = {}
        super().__init__(
            experiment,
            method=(
                f"Gaussian curve with mu = {block.mu:.6g}, mean over {len(means)} Poisson counts"
            ),
            source="A. Shvets, arXiv:2603.13407v1 (hybrid limit), in the form derived here",
            region=(
                "n large; outputs that the others send often, with counts that vary by many, and "
                "outputs that they send a bounded number of times, none between; epsilon fixed: "
                "the error of delta was measured to fall as 1/n, absolutely. No bound anywhere"
            ),
        )

    @property
    def mu(self) -> float:
        """Separation of the two laws in the Gaussian factor."""
        return self._mu

    @property
    def means(self) -> tuple[float, ...]:
        """Means of the Poisson counts, one for each group of rare outputs."""
        return tuple(self._means.tolist())

    def _field(self, depth: float) -> _Field | None:
        """Return the values of the rare counts of at least this depth, None if too many."""
        if depth not in self._fields:
            seen = self._means > 0.0
            likely = _likely_counts(self._means[seen], depth)
            if likely is None:
                return None
            counts, log_masses = likely
            ratios = counts @ (self._rows[:, seen] / self._means[seen]).T
            self._fields[depth] = _Field(log_masses, ratios[:, 0], ratios[:, 1])
        return self._fields[depth]

    def _require_known(self, log_delta: float) -> None:
        """Refuse a delta so small that it takes too many values of the rare counts."""
        for depth, deeper in pairwise(_DEPTHS):
            if log_delta > _DEPTH_MARGIN - depth:
                return
            if self._field(deeper) is None:
                raise UnsupportedSettingError(
                    f"delta must be above exp({_DEPTH_MARGIN - depth:g}), where the rare counts "
                    f"have at most {_MOST_COUNTS} likely values, got exp({log_delta:g}) for means "
                    f"{self.means}"
                )

    def _log_delta(self, epsilons: FloatArray, direction: Direction) -> FloatArray:
        log_deltas = super()._log_delta(epsilons, direction)
        self._require_known(float(log_deltas[epsilons < math.inf].min(initial=0.0)))
        return log_deltas

    def _inverse(self, log_delta: float, side: Side) -> float:
        self._require_known(log_delta)
        return super()._inverse(log_delta, side)

    def _log_curve(self, epsilons: FloatArray, side: Side) -> FloatArray:
        if self._exchanged:
            side = "reverse" if side == "forward" else "forward"
        return np.array([self._log_at(epsilon, side) for epsilon in epsilons.tolist()])

    def _log_at(self, epsilon: float, side: Side) -> float:
        log_delta = clear = self._log_unseen(epsilon, side)
        if epsilon == math.inf and self._often[0 if side == "forward" else 1] > 0.0:
            return clear  # every count is possible under both laws
        for depth in _DEPTHS:
            field = self._field(depth)
            if field is None:
                break
            log_delta = float(np.logaddexp(clear, self._log_inside(epsilon, side, field)))
            if log_delta > _DEPTH_MARGIN - depth:
                break
        return min(log_delta, 0.0)

    def _log_unseen(self, epsilon: float, side: Side) -> float:
        """Return the log of what outputs contribute that none of the others sends."""
        unseen = self._rows[:, self._means == 0.0]
        null, alternative = unseen if side == "forward" else unseen[::-1]
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            scaled = np.where(null > 0.0, null * np.exp(epsilon), 0.0)
            return float(np.log(np.maximum(alternative - scaled, 0.0).sum()))

    def _log_inside(self, epsilon: float, side: Side, field: _Field) -> float:
        """Return the log of the mean over Gaussian factor and counts.

        The likelihood ratios against the law without the differing user are ``a = often_a + ...``
        of Q and ``often_b exp(X) + b`` of P, with X the log likelihood ratio of the factor.
        """
        often_a, often_b = self._often.tolist()
        a, b = often_a + field.ratios_a, field.ratios_b
        with np.errstate(divide="ignore"):
            log_a, log_b, log_often = np.log(a), np.log(b), float(np.log(often_b))
        scaled_a = _shifted(log_a, epsilon)
        if side == "forward":
            # (often_b e**X - K)_+ with K = e**epsilon a - b
            log_k, log_less = _log_difference(scaled_a, log_b)
            gaussian = log_often + self._log_gaussian(_apart(log_k, log_often))
            without = np.logaddexp(log_often, log_less)
            logs = np.where(log_less > -math.inf, without, gaussian)
            logs = np.where((log_k == -math.inf) & (log_less == -math.inf), log_often, logs)
        else:
            # (K - e**epsilon often_b e**X)_+ with K = a - e**epsilon b
            log_k, _ = _log_difference(log_a, _shifted(log_b, epsilon))
            strike = _shifted(np.full_like(log_k, log_often), epsilon)
            logs = log_k + self._log_gaussian(_apart(strike, log_k))
            logs = np.where(log_k == -math.inf, -math.inf, logs)
        total = field.log_masses + logs
        largest = float(total.max())
        if largest == -math.inf:
            return largest
        return largest + math.log(float(np.exp(total - largest).sum()))

    def _log_gaussian(self, epsilons: FloatArray) -> FloatArray:
        """Return the log of ``E (1 - exp(epsilon - X))_+`` under P for any real epsilon."""
        size = np.abs(epsilons)
        if self._mu == 0.0:
            with np.errstate(divide="ignore"):
                return np.log(-np.expm1(np.minimum(epsilons, 0.0)))
        log_delta = log_gaussian_delta(size, np.full_like(size, self._mu))
        below = epsilons < 0.0
        # delta(e) = 1 - exp(e) + exp(e) delta(-e), by the symmetry of the Gaussian pair
        negative = np.where(below, epsilons, -1.0)
        mirrored = np.logaddexp(np.log(-np.expm1(negative)), negative + log_delta)
        return np.where(below, mirrored, log_delta)


def hybrid_profile(experiment: ShuffleExperiment) -> HybridProfile:
    """Return the hybrid limit of an experiment: some outputs are sent often, others rarely.

    Parameters
    ----------
    experiment : ShuffleExperiment
        Any randomizer and composition of the m = n - 1 >= 1 other users. An output is *rare* if
        they send it fewer than ``sqrt(m)`` times in the mean, where the errors of a Poisson law, of
        order lambda / m, and of a Gaussian one, 1 / lambda, balance; at least one output must not
        be. Where the rare counts have more than 200,000 likely values, those of the largest mean
        above 100 count as sent often.

    Returns
    -------
    HybridProfile
        APPROXIMATION. Counts of rare outputs are independent Poisson counts, to which a message of
        the differing user adds one; the counts of the other outputs are Gaussian, and a message
        there shifts their mean.

    Raises
    ------
    TypeError
        If ``experiment`` is no ShuffleExperiment.
    UnsupportedSettingError
        If n = 1, no output is sent often, the counts of those that are do not vary (rare errors
        at several homes: `compound_poisson_profile`), or the rare counts have more than 200,000
        likely values still; from ``delta`` and the like, if so small a delta takes more than that.

    See Also
    --------
    gaussian_profile : what it is without rare outputs.
    compound_poisson_profile : sparse errors only.

    Notes
    -----
    Against the other users alone, the likelihood ratio of the histogram under a row w is

        w(often) exp(X_w) + sum_y w(y) N_y / lambda_y,

    y over the rare outputs with means lambda_y. X is the log likelihood ratio of a Gaussian law
    whose mean is shifted by w conditioned to the outputs sent often; its variance is
    ``v^T Sigma^+ v``, v the difference of these conditional laws of b and a and Sigma the
    covariance of the others' counts there. The origin is the row of the pair that is nearer to the
    law of the others, where X = 0. Given the rare counts, delta is a Gaussian curve, and the sum
    over them has positive terms only.

    **Meant for** n large, rare means bounded, all other means of order n and a fixed epsilon. With
    the others at one input the error of delta was measured to fall as 1/n, absolutely
    (``tests/test_limits_hybrid.py``); [1]_ has ``n**-1/2``, sharp in general, for the experiments.
    For sparse errors it keeps the probabilities of the differing user, which `poisson_profile` and
    `compound_poisson_profile` take to be 0 or 1; those have a proved bracket.

    **Accuracy** of the limit curve itself: relative error of delta below 1e-11 down to 1e-300
    (``tests/test_limits_hybrid.py``); beyond that ``log_delta`` is that of the rare counts with
    probability above exp(-750) and leaves out the others. **Cost**: some microseconds for each
    value of the rare counts with a probability above exp(-60), or for small delta exp(-750).

    References
    ----------
    .. [1] A. Shvets, "Universal Shuffle Asymptotics, Part III: Dominant-Block Quotient Geometry and
       Hybrid Gaussian-Compound-Poisson Limits in Finite-Alphabet Shuffle Privacy",
       arXiv:2603.13407v1, abstract.

    Examples
    --------
    >>> import fastshuffle as fs
    >>> w = fs.Randomizer([[0.6, 0.3996, 0.0004], [0.4, 0.5, 0.1]])
    >>> experiment = fs.ShuffleExperiment(w, n=10**4, k=0)
    >>> limit = fs.hybrid_profile(experiment)
    >>> print(f"{limit.mu:.5f} {limit.means}")
    0.00318 (3.9996,)
    >>> exact, gaussian = fs.exact_profile(experiment), fs.gaussian_profile(experiment)
    >>> print(" ".join(f"{p.delta(0.05):.5f}" for p in (exact, limit, gaussian)))
    0.00476 0.00476 0.00424
    """
    held = check_experiment(experiment).others
    if not held:
        raise UnsupportedSettingError(
            "n must be >= 2, since the limit is in the number of other users, got 1"
        )
    merged = merged_rows(experiment.randomizer, (*experiment.pair, *held))
    counts = np.array(list(held.values()), dtype=np.float64)
    means = counts @ merged.rows[2:]
    rare = means < math.sqrt(float(counts.sum()))
    if rare.all():
        raise UnsupportedSettingError(
            "some output must be sent often by the other users, more than sqrt(n - 1) times in "
            f"the mean, got {float(means.max())!r} at most"
        )
    while _likely_counts(means[rare & (means > 0.0)], _DEPTHS[0]) is None:
        largest = float(means[rare].max())
        if largest < _LEAST_OFTEN:
            raise UnsupportedSettingError(
                f"the rare counts must have at most {_MOST_COUNTS} likely values, got more for "
                f"{int(rare.sum())} means up to {largest!r}"
            )
        rare &= means < largest
    block = _often(experiment, merged.rows[:, ~rare], counts)
    rows = merged.rows[:2, rare]
    return HybridProfile(experiment, rows[::-1] if block.exchanged else rows, means[rare], block)


def _often(experiment: ShuffleExperiment, rows: FloatArray, counts: FloatArray) -> _Block:
    """Return the block of outputs that are sent often, from its columns of the rows."""
    masses = rows.sum(axis=1)
    weights = counts * masses[2:]
    base = counts @ rows[2:]
    # a row without mass here does not shift the law of the others
    laws = np.where(masses[:, np.newaxis] > 0.0, rows, base)
    laws /= laws.sum(axis=1)[:, np.newaxis]
    others, shares = laws[2:], weights / weights.sum()
    constant = _constant(laws[0], laws[1], others, shares)
    if constant == math.inf:
        raise UnsupportedSettingError(
            "the counts of the outputs sent often must vary, got some that are certain; "
            "compound_poisson_profile is the limit of rare errors"
        )
    shift_a, shift_b = (_constant(base / base.sum(), law, others, shares) for law in laws[:2])
    exchanged = shift_b < shift_a
    users = float(weights.sum()) * experiment.n / float(counts.sum())
    both = masses[1::-1] if exchanged else masses[:2]
    return _Block(both, math.sqrt(constant / users), exchanged=exchanged)


def _constant(one: FloatArray, other: FloatArray, laws: FloatArray, shares: FloatArray) -> float:
    """Return ``v^T Sigma^+ v`` for two laws of one message among others with these laws."""
    rows = np.vstack((one, other, laws))
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(rows)
        ratios = np.where(rows == one, 0.0, logs - logs[0])
    return composition_constant(MergedRows(rows, logs, ratios), shares)


def _likely_counts(means: FloatArray, depth: float) -> tuple[FloatArray, FloatArray] | None:
    """Return the values of independent Poisson counts of log mass above -depth, and that log.

    None if there are too many.
    """
    counts, logs = np.zeros((1, 0)), np.zeros(1)
    for mean in means.tolist():
        top = math.floor(mean)
        while log_poisson_mass(float(top), mean) > -depth:
            top += 1 + top // 8
        values = np.arange(top + 1.0)
        own = np.array([log_poisson_mass(x, mean) for x in values.tolist()])
        values, own = values[own > -depth], own[own > -depth]
        joint = logs[:, np.newaxis] + own
        left, right = np.nonzero(joint > -depth)
        if left.size > _MOST_COUNTS:
            return None
        counts = np.column_stack((counts[left], values[right]))
        logs = joint[left, right]
    return counts, logs


def _shifted(logs: FloatArray, epsilon: float) -> FloatArray:
    """Return ``logs + epsilon``, -inf staying what it is for an infinite epsilon."""
    with np.errstate(invalid="ignore"):
        return np.where(logs == -math.inf, -math.inf, logs + epsilon)


def _apart(high: FloatArray, low: Any) -> FloatArray:
    """Return ``high - low``, with inf for an empty ``low`` whatever ``high`` is."""
    with np.errstate(invalid="ignore"):
        return np.where(low == -math.inf, math.inf, high - low)


def _log_difference(one: FloatArray, other: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the logs of the positive parts of ``exp(one) - exp(other)`` and of its negative."""
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = np.where(one == other, 0.0, one - other)
        log_size = np.maximum(one, other) + np.log(-np.expm1(-np.abs(gap)))
    return np.where(gap > 0.0, log_size, -math.inf), np.where(gap < 0.0, log_size, -math.inf)
