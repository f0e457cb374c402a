"""Audit of somebody's mechanism: what observed histograms prove of its epsilon."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fastshuffle._typing import FloatArray, Side
from fastshuffle._validation import (
    LARGEST_COUNT,
    NONNEGATIVE,
    PROBABILITY,
    check_generator,
    check_real,
)
from fastshuffle.monte_carlo.intervals import probability_bounds
from fastshuffle.monte_carlo.pair import SIDES
from fastshuffle.monte_carlo.simulation import CONFIDENCE
from fastshuffle.profile import RELATION, PrivacyProfile

__all__ = ["AuditResult", "Evidence", "audit"]

_LEAST_RUNS = 20
# Events that are tried on one half of the runs, for every score.
_MOST_THRESHOLDS = 200
# Single outputs that are tried as scores, those whose counts differ most.
_MOST_OUTPUTS = 20
# And those that enter Fisher's discriminant.
_MOST_COVARIANCES = 200
# Scores are whole numbers up to this: then their sums are exact for histograms of up to 2**33, and
# whether a histogram is in the event does not depend on the order of additions.
_LARGEST_SCORE = 2.0**20


@dataclass(frozen=True)
class Evidence:
    """An event and how often it was seen, in runs that had no part in its choice.

    Attributes
    ----------
    direction : {"forward", "reverse"}
        Forward: an event that is more likely under P than under Q; reverse the other way round.
    scores : tuple of float
        A histogram N is in the event if the sum of scores times counts is ``threshold`` or more.
    threshold : float
        See scores.
    seen, runs : int
        How often it was seen in how many runs under the first law, P for forward.
    seen_opposite, runs_opposite : int
        The same under the other law.
    probability_lower : float
        Confidence bound from below on its probability under the first law.
    probability_upper : float
        Confidence bound from above on its probability under the other law.
    epsilon : float
        ``log((probability_lower - delta) / probability_upper)``, or 0 where that is negative.
    """

    direction: Side
    scores: tuple[float, ...]
    threshold: float
    seen: int
    runs: int
    seen_opposite: int
    runs_opposite: int
    probability_lower: float
    probability_upper: float
    epsilon: float


@dataclass(frozen=True)
class AuditResult:
    """What observed histograms prove of epsilon; see `audit`.

    Attributes
    ----------
    delta : float
        The delta of the definition.
    confidence : float
        The probability, before the runs, that ``epsilon_bounds`` holds.
    claimed_epsilon : float or None
        What was claimed of epsilon at delta, if anything.
    evidence : tuple of Evidence
        The events of the forward and of the reverse direction.
    """

    delta: float
    confidence: float
    claimed_epsilon: float | None
    evidence: tuple[Evidence, ...]

    @property
    def epsilon_lower(self) -> float:
        """Confidence bound from below on the epsilon that goes with delta; 0 proves nothing."""
        return max(evidence.epsilon for evidence in self.evidence)

    @property
    def epsilon_bounds(self) -> tuple[float, float]:
        """The interval for epsilon. Its upper end is inf: no number of runs proves privacy."""
        return self.epsilon_lower, math.inf

    @property
    def violated(self) -> bool:
        """Whether the claim is refuted; False also where nothing was claimed."""
        return self.claimed_epsilon is not None and self.epsilon_lower > self.claimed_epsilon

    @property
    def verdict(self) -> str:
        """``"violated"``, ``"consistent"`` or, where nothing was claimed, ``"no claim"``."""
        if self.claimed_epsilon is None:
            return "no claim"
        return "violated" if self.violated else "consistent"

    def to_dict(self) -> dict[str, Any]:
        """Return the result in plain Python values, ready for JSON; inf is the string ``"inf"``.

        Returns
        -------
        dict
            The bound, the claim, the verdict and the evidence.
        """
        return {
            "relation": RELATION,
            "delta": self.delta,
            "confidence": self.confidence,
            "epsilon_lower": _json_number(self.epsilon_lower),
            "claimed_epsilon": _json_number(self.claimed_epsilon),
            "verdict": self.verdict,
            "evidence": [
                {
                    **evidence.__dict__,
                    "scores": list(evidence.scores),
                    "epsilon": _json_number(evidence.epsilon),
                }
                for evidence in self.evidence
            ],
        }


def _json_number(value: float | None) -> float | str | None:
    return str(value) if value == math.inf else value


def audit(
    samples_p: npt.ArrayLike,
    samples_q: npt.ArrayLike,
    *,
    delta: float,
    rng: np.random.Generator,
    claimed: PrivacyProfile | float | None = None,
    confidence: float = 0.95,
) -> AuditResult:
    """Return what histograms of two neighbouring runs of any mechanism prove of its epsilon.

    Parameters
    ----------
    samples_p, samples_q : array_like of int, shape (n_runs, n_outputs)
        Observed histograms, one independent run a row: under the dataset of P and under the
        neighbouring one of Q. At least 20 rows each; counts from 0 to 2**53.
    delta : float
        Privacy parameter in [0, 1].
    rng : numpy.random.Generator
        Splits the runs into two halves, at random.
    claimed : PrivacyProfile or float, optional
        The curve that is claimed, or the epsilon >= 0 that is claimed at delta.
    confidence : float, default 0.95
        In [0.5, 1 - 1e-9].

    Returns
    -------
    AuditResult
        With ``epsilon_lower``, the ``evidence`` and the ``verdict``.

    Raises
    ------
    TypeError, ValueError
        If an argument is outside its domain, or the runs are too few or of different length.

    Notes
    -----
    If the mechanism is (epsilon, delta)-differentially private, every event has
    ``P(T) <= exp(epsilon) Q(T) + delta``, and the same with P and Q exchanged. One half of the runs
    chooses an event for each direction: a threshold of a linear score of the counts, that of
    Fisher's discriminant or a single count. The other half counts it, and Clopper-Pearson bounds on
    P(T) and Q(T), with a quarter of the error each, give the bound on epsilon. The choice cannot
    bias it, and noise alone gives 0 with at least the stated confidence. Either direction is judged
    by an event of its own; signs are never dropped.

    An audit proves a loss and never its absence: a poor choice of events, or few runs, leave the
    bound far below the truth.

    **Cost**: O(n_runs n_outputs), with up to 200 outputs in the discriminant.

    Examples
    --------
    >>> import numpy as np
    >>> import fastshuffle as fs
    >>> w = fs.Randomizer([[0.75, 0.25], [0.25, 0.75]])
    >>> rng = np.random.default_rng(1)
    >>> noise = rng.multinomial(9, w.matrix[0], size=4000)
    >>> p = noise + rng.multinomial(1, w.matrix[1], size=4000)
    >>> q = noise[::-1] + rng.multinomial(1, w.matrix[0], size=4000)
    >>> truth = fs.exact_profile(fs.ShuffleExperiment(w, 10, k=0))
    >>> fs.audit(p, q, delta=0.01, rng=rng, claimed=truth).verdict
    'consistent'
    >>> fs.audit(p, q, delta=0.01, rng=rng, claimed=0.01).verdict
    'violated'
    """
    runs = {
        "forward": _checked_samples("samples_p", samples_p),
        "reverse": _checked_samples("samples_q", samples_q),
    }
    widths = {name: rows.shape[1] for name, rows in runs.items()}
    if widths["forward"] != widths["reverse"]:
        raise ValueError(
            "samples_p and samples_q must have equally many outputs, got "
            f"{widths['forward']} and {widths['reverse']}"
        )
    target = check_real("delta", delta, PROBABILITY)
    level = check_real("confidence", confidence, CONFIDENCE)
    check_generator(rng)
    claim = _claimed_epsilon(claimed, target)
    order = {name: rng.permutation(rows) for name, rows in runs.items()}
    chosen = {name: rows[: len(rows) // 2] for name, rows in order.items()}
    judged = {name: rows[len(rows) // 2 :] for name, rows in order.items()}
    evidence = []
    for side, opposite in (SIDES, SIDES[::-1]):
        scores, threshold = _chosen_event(chosen[side], chosen[opposite], target, 1.0 - level)
        evidence.append(
            _judged_event(
                side, scores, threshold, (judged[side], judged[opposite]), target, 1.0 - level
            )
        )
    return AuditResult(target, level, claim, tuple(evidence))


def _checked_samples(name: str, samples: npt.ArrayLike) -> FloatArray:
    array = np.asarray(samples)
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(f"{name} must be 2-D with a column an output, got shape {array.shape}")
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers, got dtype {array.dtype}")
    if len(array) < _LEAST_RUNS:
        raise ValueError(f"{name} must have at least {_LEAST_RUNS} rows, got {len(array)}")
    outside = (array < 0) | (array > LARGEST_COUNT)
    if outside.any():
        i, j = (int(at[0]) for at in np.nonzero(outside))
        raise ValueError(f"{name} must be >= 0 and <= 2**53, got {array[i, j]} in row {i}")
    return array.astype(np.float64)


def _claimed_epsilon(claimed: PrivacyProfile | float | None, delta: float) -> float | None:
    if claimed is None:
        return None
    if isinstance(claimed, PrivacyProfile):
        return float(claimed.epsilon(delta))
    return check_real("claimed", claimed, NONNEGATIVE)


def _candidate_scores(first: FloatArray, second: FloatArray) -> list[FloatArray]:
    """Return scores that tend to be larger in the first than in the second."""
    gap = first.mean(axis=0) - second.mean(axis=0)
    variances = 0.5 * (first.var(axis=0) + second.var(axis=0))
    ridge = 1e-6 * float(variances.max()) + 1e-12
    distinct = np.argsort(-np.abs(gap) / np.sqrt(variances + ridge))
    some = distinct[:_MOST_COVARIANCES]
    centred = np.concatenate(
        (
            first[:, some] - first[:, some].mean(axis=0),
            second[:, some] - second[:, some].mean(axis=0),
        )
    )
    covariance = centred.T @ centred / len(centred)
    discriminant = np.zeros(len(gap))
    discriminant[some] = np.linalg.solve(covariance + ridge * np.eye(len(some)), gap[some])
    largest = float(np.abs(discriminant).max())
    candidates = [np.rint(discriminant * (_LARGEST_SCORE / largest))] if largest > 0.0 else []
    for y in distinct[:_MOST_OUTPUTS].tolist():
        single = np.zeros(len(gap))
        single[y] = 1.0 if gap[y] >= 0.0 else -1.0
        candidates.append(single)
    return candidates


def _chosen_event(
    first: FloatArray, second: FloatArray, delta: float, error: float
) -> tuple[FloatArray, float]:
    """Return the scores and the threshold that promise the largest bound."""
    best = (-math.inf, np.zeros(first.shape[1]), 0.0)
    for scores in _candidate_scores(first, second):
        values, opposite = np.sort(first @ scores), np.sort(second @ scores)
        levels = np.unique(np.concatenate((values, opposite)))
        thresholds = levels[np.linspace(0, len(levels) - 1, _MOST_THRESHOLDS).astype(int)]
        low = _wilson(len(values) - np.searchsorted(values, thresholds), len(values), error, -1.0)
        high = _wilson(
            len(opposite) - np.searchsorted(opposite, thresholds), len(opposite), error, 1.0
        )
        promised = (low - delta) / high
        at = int(promised.argmax())
        if promised[at] > best[0]:
            best = (float(promised[at]), scores, float(thresholds[at]))
    return best[1], best[2]


def _wilson(
    seen: npt.NDArray[np.intp], runs: int, error: float, sign: float
) -> npt.NDArray[np.float64]:
    """Return the end of Wilson's interval: a rough bound, which only guides a choice."""
    z = math.sqrt(2.0 * math.log(4.0 / error))
    share = seen / runs
    center = share + z * z / (2.0 * runs)
    width = z * np.sqrt(share * (1.0 - share) / runs + z * z / (4.0 * runs * runs))
    return (center + sign * width) / (1.0 + z * z / runs)


def _judged_event(
    side: Side,
    scores: FloatArray,
    threshold: float,
    runs: tuple[FloatArray, FloatArray],
    delta: float,
    error: float,
) -> Evidence:
    seen, opposite = (int((rows @ scores >= threshold).sum()) for rows in runs)
    sizes = len(runs[0]), len(runs[1])
    lower, _ = probability_bounds(seen, sizes[0], 0.25 * error)
    _, upper = probability_bounds(opposite, sizes[1], 0.25 * error)
    proved = math.log((lower - delta) / upper) if lower > delta else 0.0
    return Evidence(
        direction=side,
        scores=tuple(scores.tolist()),
        threshold=threshold,
        seen=seen,
        runs=sizes[0],
        seen_opposite=opposite,
        runs_opposite=sizes[1],
        probability_lower=lower,
        probability_upper=upper,
        epsilon=max(0.0, proved),
    )
