"""Certified bounds on E[(sum of independent variables)_+], at any number of terms.

The hockey-stick divergence of a homogeneous background, the privacy blanket and the clone
reductions are all such means, of variables with finitely many values.

*Upper.* Every value is split onto its two neighbours on a grid with its mean kept. That is larger
in the convex order, so the mean of the positive part of the sum can only rise.

*Lower.* ``E[S 1{A}] <= E[S_+]`` for every event A. The event is that the sum of the values rounded
to the grid exceeds a threshold, so that only the event is rounded, not the values.

Either side is one sum over the unit circle (`fastshuffle._kernels.lattice_sum`) after an
exponential tilt, which keeps the relative accuracy of a mean of 1e-200. Both errors are of second
order in the grid step, which is refined until the two agree to the requested tolerance. Where the
sum takes few values they are enumerated instead.
"""

import math
from typing import NamedTuple

import numpy as np

from fastshuffle._kernels.lattice_sum import tilted_truncated_mean
from fastshuffle._typing import FloatArray

# Bernstein's exponent of the tilted mass that may fold back, and the same for the far side.
_ALIAS_EXPONENT = 42.0
_FAR_ALIAS_EXPONENT = 45.0
_LARGEST_POSITION = 2.0**50
_MOST_REFINEMENTS = 20
_RELATIVE_ROUNDING = 1e-11
# A sum that cancels to less than this share of its terms is not trusted.
_LEAST_SHARE = 1e-4
# Sums with no more values than this, of no more terms than that, are enumerated.
_MOST_VALUES = 50_000
_MOST_ENUMERATED_TERMS = 300


class Terms(NamedTuple):
    """Independent copies of one variable: how many, its values and their probabilities.

    A value is known up to ``errors``: the upper bound takes its high side, the lower its low side.
    """

    copies: float
    values: FloatArray
    probabilities: FloatArray
    errors: FloatArray

    def possible(self) -> "Terms":
        """Return the terms without values of probability 0."""
        kept = self.probabilities > 0.0
        return Terms(self.copies, self.values[kept], self.probabilities[kept], self.errors[kept])

    def moved(self, sign: float) -> "Terms":
        """Return the terms with all values at their high or low side."""
        return self._replace(values=self.values + sign * self.errors)


class Bracket(NamedTuple):
    """Natural logarithms between which a number lies."""

    lower: float
    upper: float


class _Tilt(NamedTuple):
    s: float
    variance: float


class _Lattice(NamedTuple):
    """One group on the grid: positions, probabilities and the values that are summed."""

    copies: float
    positions: FloatArray
    probabilities: FloatArray
    values: FloatArray


def log_mean_positive_part(terms: list[Terms], rtol: float) -> Bracket:
    """Bracket log E[S_+], S the sum of all copies of all terms.

    Parameters
    ----------
    terms : list of Terms
        Values are finite; the probabilities of a term sum to 1; counts are positive integers.
    rtol : float
        The bracket is refined until it is at most this wide, or until the refinement no longer
        helps; it is valid in either case.

    Returns
    -------
    Bracket
        ``(-inf, -inf)`` where S is never positive.
    """
    terms = [t.possible() for t in terms]
    low, high = ([t.moved(sign) for t in terms] for sign in (-1.0, 1.0))
    if sum(t.copies * float(t.values.max()) for t in high) <= 0.0:
        return Bracket(-math.inf, -math.inf)
    if _is_small(terms):
        bracket = Bracket(
            _log_enumerated(low) - _RELATIVE_ROUNDING, _log_enumerated(high) + _RELATIVE_ROUNDING
        )
    else:
        bracket = _refined(low, high, rtol)
        if not bracket.upper - bracket.lower <= rtol:
            chernoff = log_smallest_exponential_bound(high)
            bracket = Bracket(bracket.lower, min(bracket.upper, chernoff))
    if not bracket.lower <= bracket.upper:
        raise ArithmeticError(f"the bracket of a positive part came out as {bracket!r}")
    return bracket


def _refined(low: list[Terms], high: list[Terms], rtol: float) -> Bracket:
    """Refine the grid until the bracket is narrow enough or a sum tells nothing more."""
    tilt = _tilt_to_zero(high)
    largest = sum(t.copies * float(t.values.max()) for t in high)
    n = sum(t.copies for t in high)
    deviation = math.sqrt(tilt.variance)
    step = min(deviation, largest) * math.sqrt(2.0 * rtol / n) / max(1.0, tilt.s * deviation)
    reach = max(float(np.abs(t.values).max()) for t in high)
    bracket = Bracket(-math.inf, math.inf)
    gap = math.inf
    for _ in range(_MOST_REFINEMENTS):
        if not reach < step * _LARGEST_POSITION:
            break
        lower = _log_truncated_mean([_round_to_grid(t, step) for t in low], low, step, tilt.s)
        upper = _log_truncated_mean([_split_onto_grid(t, step) for t in high], None, step, tilt.s)
        # a side that could not be told from rounding leaves the bracket as it is
        if not math.isnan(lower[0]):
            bracket = bracket._replace(lower=max(bracket.lower, lower[0] - lower[1]))
        if not math.isnan(upper[0]):
            bracket = bracket._replace(upper=min(bracket.upper, upper[0] + upper[1]))
        if math.isnan(lower[0]) or math.isnan(upper[0]):
            break
        last_gap, gap = gap, bracket.upper - bracket.lower
        if gap <= rtol or gap > 0.9 * last_gap:
            break
        step *= min(0.7, 0.8 * math.sqrt(rtol / gap))
    return bracket


def _is_small(terms: list[Terms]) -> bool:
    n_values = math.prod(
        math.comb(int(t.copies) + len(t.values) - 1, len(t.values) - 1) for t in terms
    )
    return n_values == 1 or (
        max(t.copies for t in terms) <= _MOST_ENUMERATED_TERMS and n_values <= _MOST_VALUES
    )


def _log_enumerated(terms: list[Terms]) -> float:
    """Sum over all compositions of the terms among their values.

    Each sum of values is moved by its own rounding to the side that ``errors`` already chose.
    """
    log_mass = np.zeros(1)
    total = np.zeros(1)
    for copies, values, probabilities, _ in terms:
        if len(values) == 1:
            total = total + copies * values[0]
            continue
        n = int(copies)
        log_factorials = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1.0, n + 1.0)))))
        left = np.full(len(total), n)
        log_mass = log_mass + log_factorials[n]
        for i, (value, log_p) in enumerate(zip(values, np.log(probabilities), strict=True)):
            if i < len(values) - 1:  # any number of the terms left take this value
                repeats = left + 1
                taken = np.arange(repeats.sum()) - np.repeat(np.cumsum(repeats) - repeats, repeats)
            else:  # all that are left take the last one
                repeats = np.ones_like(left)
                taken = left
            left = np.repeat(left, repeats) - taken
            log_mass = np.repeat(log_mass, repeats) + taken * log_p - log_factorials[taken]
            total = np.repeat(total, repeats) + taken * value
    positive = total > 0.0
    if not positive.any():
        return -math.inf
    logs = log_mass[positive] + np.log(total[positive])
    largest = float(logs.max())
    return largest + math.log(float(np.exp(logs - largest).sum()))


def _moments(terms: list[Terms], s: float) -> tuple[float, float]:
    mean = variance = 0.0
    for count, values, probabilities, _ in terms:
        exponents = s * values
        weights = probabilities * np.exp(exponents - exponents.max())
        weights /= weights.sum()
        center = float(weights @ values)
        mean += count * center
        variance += count * float(weights @ (values - center) ** 2)
    return mean, variance


def _tilt_to_zero(terms: list[Terms]) -> _Tilt:
    """Return a tilt s > 0 that centres the sum near 0.

    It is kept off the pole at s = 0 by one deviation, or by less where that would tilt some value
    by more than a factor of e.
    """
    low, high = 0.0, math.inf
    s = 0.0
    mean, variance = _moments(terms, s)
    for _ in range(200):
        if mean >= 0.0:
            high = s
        else:
            low = s
        if abs(mean) <= 0.01 * math.sqrt(variance) or high == 0.0:
            break
        s_next = s - mean / variance if variance > 0.0 else math.inf
        if not low < s_next < high:
            s_next = 0.5 * (low + high) if high < math.inf else 2.0 * s
        if s_next == s:
            break
        s = s_next
        mean, variance = _moments(terms, s)
    if variance > 0.0:
        widest = max(float(np.abs(t.values).max()) for t in terms)
        least = min(1.0 / math.sqrt(variance), 1.0 / widest)
        if s < least:
            s = least
            _, variance = _moments(terms, s)
    return _Tilt(s, variance)


def _gathered(count: float, positions: FloatArray, p: FloatArray, values: FloatArray) -> _Lattice:
    grid, where = np.unique(positions, return_inverse=True)
    mass = np.bincount(where, p).astype(np.float64, copy=False)
    total = np.bincount(where, p * values).astype(np.float64, copy=False)
    kept = mass > 0.0
    return _Lattice(count, grid[kept], mass[kept], total[kept] / mass[kept])


def _split_onto_grid(term: Terms, step: float) -> _Lattice:
    below = np.floor(term.values / step)
    share = np.clip(term.values / step - below, 0.0, 1.0)
    positions = np.concatenate((below, below + 1.0))
    p = np.concatenate((term.probabilities * (1.0 - share), term.probabilities * share))
    return _gathered(term.copies, positions, p, positions * step)


def _round_to_grid(term: Terms, step: float) -> _Lattice:
    return _gathered(term.copies, np.rint(term.values / step), term.probabilities, term.values)


def _exponential_excess(y: FloatArray) -> FloatArray:
    series = 0.5 * y * y * (1.0 + y / 3.0 * (1.0 + y / 4.0 * (1.0 + y / 5.0 * (1.0 + y / 6.0))))
    return np.where(np.abs(y) < 5e-3, series, np.expm1(y) - y)


def _log_truncated_mean(
    lattice: list[_Lattice], exact_terms: list[Terms] | None, step: float, s: float
) -> tuple[float, float]:
    """Return log E[V 1{S > t}] and its rounding; nan where it cannot be told from rounding.

    V is the sum of the values and S that of the positions. Given ``exact_terms``, t is where S
    stands when their sum is 0 under the tilt; otherwise t = 0.
    """
    atoms, groups = [], []
    log_scale = variance = drift = reach = magnitude = 0.0
    first = 0
    for g, (count, positions, p, values) in enumerate(lattice):
        steps = s * step * positions
        mean_step = float(p @ steps)
        # log E exp(s A), as a mean plus a sum of non-negative terms
        cumulant = math.log1p(float(p @ _exponential_excess(steps)) + mean_step)
        weights = p * np.exp(steps - cumulant)
        center = float(weights @ positions) / float(weights.sum())
        offsets = positions - center
        spread = float(weights @ offsets**2)
        atoms.append(np.column_stack((offsets, weights, values)))
        groups.append((first, len(p), count, center, spread))
        first += len(p)
        log_scale += count * cumulant
        magnitude += count * float(p @ np.abs(steps))
        variance += count * spread
        reach = max(reach, float(np.abs(offsets).max()))
        if exact_terms is not None:
            tilted_mean, _ = _moments([exact_terms[g]._replace(copies=1.0)], s)
            drift += count * (center - tilted_mean / step)
    threshold = float(np.rint(drift))
    jumps = reach * _ALIAS_EXPONENT / 3.0
    length = 2.0 * (jumps + math.sqrt(jumps**2 + 2.0 * _ALIAS_EXPONENT * variance))
    length = max(length, (_FAR_ALIAS_EXPONENT - min(log_scale, 0.0)) / (s * step))
    length = 2.0 * math.ceil(0.5 * length) + 1.0
    total, size = tilted_truncated_mean(
        s * step, threshold, length, np.concatenate(atoms), np.array(groups)
    )
    if not total > _LEAST_SHARE * size:  # also where the sum was too long to do
        return math.nan, 0.0
    n = sum(group.copies for group in lattice)
    rounding = _RELATIVE_ROUNDING * (1.0 + size / total)
    rounding += 1e-15 * (magnitude + abs(log_scale) + math.sqrt(n) * size / total)
    return log_scale - s * step * threshold + math.log(total), rounding


def log_smallest_exponential_bound(terms: list[Terms]) -> float:
    """Return the log of the least ``E exp(s S - 1) / s`` over s > 0, which is above E[S_+].

    At the minimum the tilted mean of S is 1/s; the value is valid at any s.
    """
    if sum(t.copies * float(t.values.max()) for t in terms) <= 0.0:
        return -math.inf
    tilt = _tilt_to_zero(terms)
    if not tilt.s > 0.0:
        return math.inf
    best = math.inf
    for s in tilt.s * np.geomspace(0.25, 4.0, 65):
        exponent = -1.0 - math.log(s)
        for count, values, probabilities, _ in terms:
            steps = s * values
            largest = float(steps.max())
            if float(np.abs(steps).max()) < 0.5:
                mean = float(probabilities @ steps)
                cumulant = math.log1p(float(probabilities @ _exponential_excess(steps)) + mean)
            else:
                cumulant = largest + math.log(float(probabilities @ np.exp(steps - largest)))
            exponent += count * cumulant
        best = min(best, exponent)
    return best + 1e-9
