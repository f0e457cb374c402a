"""The window of histograms that a lattice profile sums, and the mass outside it."""

import math

import numpy as np

from fastshuffle._kernels.binomial_groups import log_lower_tail, log_upper_tail
from fastshuffle._typing import FloatArray
from fastshuffle._validation import Interval
from fastshuffle.randomizers import MergedRows

LOG_TRUNCATION = Interval(-700.0, -30.0, "in [-700, -30]")
_DEFAULT_LOG_TRUNCATION = -80.0
# The window is widened up to this many points, one or two seconds of work.
_CHEAP_POINTS = 5_000_000
# Share of the window's volume in that of its box: the disc in a square, the ball in a cube.
_ROUNDNESS = {2: 1.0, 3: math.pi / 4.0, 4: math.pi / 6.0}


def _group(count: float, p: float, log_p: float) -> list[float]:
    return [count, p, 1.0 - p, log_p, math.log1p(-p) if p < 1.0 else -math.inf]


class Window:
    """Ranges of the outputs after the first, and what they leave out of Q and of P."""

    def __init__(self, merged: MergedRows, n: int, k: int, log_truncation: float) -> None:
        self.log_truncation = log_truncation
        self.outside = np.zeros(2)  # in units of exp(log_truncation), which is 1 for no truncation
        self._n = n
        outputs = merged.rows.shape[1]
        if log_truncation == -math.inf:
            self.box = np.tile([0.0, n + 1.0], (outputs - 1, 1))
            self.n_points = float(math.comb(n + outputs - 1, outputs - 1))
            return
        # an eighth for either end of at most 3 ranges; the lines have the quarter that is left
        limit = log_truncation - math.log(8.0)
        box = []
        for y in range(1, outputs):
            a, b = (_group(0.0, merged.rows[x, y], merged.log_rows[x, y]) for x in (0, 1))
            laws = [np.array([a, b]) for _ in range(2)]
            laws[0][:, 0] = n - k, k
            laws[1][:, 0] = n - k - 1, k + 1
            low, high = self._range(laws, limit)
            for law, groups in enumerate(laws):
                for log_left in (log_lower_tail(low - 1, groups), log_upper_tail(high + 1, groups)):
                    self.outside[law] += math.exp(log_left - log_truncation)
            box.append((low, high - low + 1.0))
        self.box = np.array(box)
        correlation = self._correlation(merged, k)
        self.n_points = float(self.box[:, 1].prod()) * _ROUNDNESS[outputs] * correlation

    def _range(self, laws: list[FloatArray], limit: float) -> tuple[float, float]:
        """Return the ends of the counts outside which each law has at most exp(limit) a side."""
        low, high = 0, self._n
        while low < high:  # what lies below ``low`` is negligible
            middle = (low + high + 1) // 2
            if all(log_lower_tail(middle - 1.0, groups) <= limit for groups in laws):
                low = middle
            else:
                high = middle - 1
        first, low, high = low, 0, self._n
        while low < high:  # what lies above ``high`` is negligible
            middle = (low + high) // 2
            if all(log_upper_tail(middle + 1.0, groups) <= limit for groups in laws):
                high = middle
            else:
                low = middle + 1
        return float(first), float(high)

    def _correlation(self, merged: MergedRows, k: int) -> float:
        """Return the root of the determinant of the correlations of the outputs but the first."""
        covariance = np.zeros((len(self.box), len(self.box)))
        for row, count in zip(merged.rows[:, 1:], (self._n - k, k), strict=True):
            covariance += count * (np.diag(row) - np.outer(row, row))
        deviations = np.sqrt(np.diag(covariance))
        if not deviations.min() > 0.0:
            return 1.0
        correlations = covariance / np.outer(deviations, deviations)
        return math.sqrt(max(float(np.linalg.det(correlations)), 1e-4))


def chosen_window(merged: MergedRows, n: int, k: int, log_truncation: float | None) -> Window:
    """Return the window with the truncation asked for, or the widest that costs little."""
    if log_truncation is not None:
        return Window(merged, n, k, log_truncation)
    outputs = merged.rows.shape[1]
    if math.comb(n + outputs - 1, outputs - 1) <= _CHEAP_POINTS:
        return Window(merged, n, k, -math.inf)
    window = Window(merged, n, k, _DEFAULT_LOG_TRUNCATION)
    deeper = _DEFAULT_LOG_TRUNCATION * (_CHEAP_POINTS / window.n_points) ** (2.0 / (outputs - 1))
    if deeper < _DEFAULT_LOG_TRUNCATION:
        window = Window(merged, n, k, max(deeper, LOG_TRUNCATION.low))
    return window
