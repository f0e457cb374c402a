"""Messages of different binary randomizers in one channel: exact, by a half-line.

The histogram is the number X of ones. That of the differing user is a sum of bits that are all
likelier under P, or all likelier under Q where the zeros are counted instead: bits of log-concave
laws with an increasing likelihood ratio, whose sums with other such bits have one too. So

    delta(epsilon) = max_x (P[X >= x] - exp(epsilon) Q[X >= x]),

reached at the least x with ``P(x) > exp(epsilon) Q(x)``. The difference is taken one replaced bit
after another, as in `fastshuffle.exact.shared_channel`: with p1 and p0 the chance of a one in it
under P and Q, R the law of the sum of all other bits and s its share of epsilon,

    (p1 - p0) R(x - 1) - expm1(s) (p0 R(x - 1) + R[X >= x]),

so that small and large deltas keep their digits. The identity holds for any shares.
"""

import math

import numpy as np

from fastshuffle._kernels.binomial_groups import log_mass, log_upper_tail
from fastshuffle._positive_part import Bracket
from fastshuffle._typing import FloatArray
from fastshuffle.bracket import Curve
from fastshuffle.exact._pair import log_bounds


class BinaryChannel:
    """One direction: bits of all users but one, and the bits of that one under P and under Q.

    Parameters
    ----------
    others : array, shape (n_groups, 5)
        How many bits, and the chances of a one and a zero with their logarithms.
    null, alternative : array, shape (messages, 5)
        The bits of the differing user under Q and under P; each is at least as likely a one under
        P, and 1 stands for how many.
    """

    def __init__(self, others: FloatArray, null: FloatArray, alternative: FloatArray) -> None:
        self._others, self._null, self._alternative = others, null, alternative
        self._laws = [np.vstack((others, bits)) for bits in (null, alternative)]
        gains = alternative[:, 1] - null[:, 1]
        self._shares = gains / gains.sum()
        # that of the largest number of ones
        self._loss = float((alternative[:, 3] - null[:, 3]).sum())

    def curve(self, rtol: float) -> Curve:
        """Return the curve of P from Q, exact up to rounding."""
        return Curve(self._log_bracket, self._loss, rtol)

    def _log_bracket(self, epsilon: float) -> Bracket:
        def log_curve(epsilons: FloatArray) -> FloatArray:
            return np.array([self.log_delta(e) for e in epsilons.tolist()])

        lower, upper = log_bounds(log_curve, np.array([epsilon]))
        return Bracket(float(lower[0]), min(float(upper[0]), 0.0))

    def log_delta(self, epsilon: float) -> float:
        """Return log delta at epsilon."""
        null, alternative = self._laws
        if epsilon == math.inf:
            return float(log_upper_tail(_largest(null) + 1.0, alternative))
        low, high = float(alternative[alternative[:, 2] == 0.0, 0].sum()), _largest(alternative)
        if epsilon >= self._loss:
            return -math.inf
        if not self._exceeds(high, epsilon):  # but for the rounding of two masses
            return log_mass(high, alternative) + math.log(-math.expm1(epsilon - self._loss))
        while high > low:
            middle = float(math.floor(0.5 * (low + high)))
            if self._exceeds(middle, epsilon):
                high = middle
            else:
                low = middle + 1.0
        # rounding may have moved the border by one, next to which the difference is flat
        return max(self._log_excess(high + move, epsilon) for move in (-1.0, 0.0, 1.0))

    def _exceeds(self, x: float, epsilon: float) -> bool:
        null, alternative = self._laws
        return bool(log_mass(x, alternative) > epsilon + log_mass(x, null))

    def _log_excess(self, x: float, epsilon: float) -> float:
        """Return ``log(P[X >= x] - exp(epsilon) Q[X >= x])``, -inf where it is not positive."""
        spent, terms = 0.0, []
        for i, share in enumerate(self._shares.tolist()):
            rest = np.vstack((self._others, self._null[:i], self._alternative[i + 1 :]))
            step = share * epsilon
            log_r, log_tail = log_mass(x - 1.0, rest), log_upper_tail(x, rest)
            terms.append((spent, step, i, log_r, log_tail))
            spent += step
        top = max(spent + max(log_r, log_tail) for spent, _, _, log_r, log_tail in terms)
        if top == -math.inf:
            return top
        total = 0.0
        for spent, step, i, log_r, log_tail in terms:
            p1, p0 = self._alternative[i, 1], self._null[i, 1]
            r, tail = math.exp(spent + log_r - top), math.exp(spent + log_tail - top)
            total += (p1 - p0) * r - math.expm1(step) * (p0 * r + tail)
        return top + math.log(total) if total > 0.0 else -math.inf


def _largest(law: FloatArray) -> float:
    """Return the largest number of ones."""
    return float(law[law[:, 1] > 0.0, 0].sum())


def binary_channel(
    rows: FloatArray, held: dict[int, int], own: list[tuple[int, int]], inputs: tuple[int, int]
) -> BinaryChannel | None:
    """Return the channel of two outputs, or None where the user's bits do not all go one way.

    The arguments are those of `fastshuffle.exact.shared_channel`: all rows, how many messages the
    others send from each, the first row of each part of the user's with its number of copies, and
    (a, b).
    """
    a, b = inputs
    gains = np.array([rows[first + b, 1] - rows[first + a, 1] for first, _ in own])
    if (gains > 0.0).all():
        ones = 1
    elif (gains < 0.0).all():
        ones = 0
    else:
        return None
    with np.errstate(divide="ignore"):
        bits = np.column_stack((rows[:, [ones, 1 - ones]], np.log(rows[:, [ones, 1 - ones]])))
    counts = np.array(list(held.values()), dtype=np.float64)
    others = np.column_stack((counts, bits[list(held)])) if held else np.empty((0, 5))
    users = [
        np.array([(1.0, *bits[first + x]) for first, times in own for _ in range(times)])
        for x in (a, b)
    ]
    return BinaryChannel(others, *users)
