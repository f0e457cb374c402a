"""The points of a lattice profile: every histogram of the window, in the order of the losses."""

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from fastshuffle._kernels.deviance import log_binomial_mass, stirling_error
from fastshuffle._kernels.lattice_laws import (
    AT_CONSTANT,
    AT_K,
    AT_LOG_LABELS,
    AT_LOG_LINE,
    AT_LOG_MORE_LABELS,
    AT_LOG_WINDOW,
    AT_N,
    AT_SCALE,
    CERTAIN,
    EXCESS,
    LOG_MEAN,
    MEAN,
    MEAN_ERROR,
    RATIO,
    RATIO_EXCESS,
    SHARE,
)
from fastshuffle._kernels.lattice_tails import (
    POINTS_A_STRIDE,
    add_to_divergence,
    add_to_tail,
    fill_tail_sums,
)
from fastshuffle._kernels.lattice_window import fill_points
from fastshuffle._typing import FloatArray, Side
from fastshuffle._validation import UnsupportedSettingError
from fastshuffle.exact._lattice_window import Window, chosen_window
from fastshuffle.randomizers import MergedRows

# 16 bytes each: just under a gigabyte.
_MOST_POINTS = 60_000_000
_POINTS_A_CHUNK = 2**20

ELSEWHERE = (
    "homogeneous backgrounds, where the others all hold one input, have a bracket at any n, and "
    "worst_case_profile bounds all datasets"
)

_SIGN: dict[Side, float] = {"forward": 1.0, "reverse": -1.0}


class _Chunk(NamedTuple):
    """Points ``(loss, log mass)`` in the order of their losses, and the tails of the strides."""

    points: FloatArray
    sums: FloatArray


class Tail(NamedTuple):
    """The sums of ``M (1 - exp(epsilon - L))`` and of ``M exp(epsilon - L)`` over L > epsilon."""

    log_scale: float
    excess: float
    slope: float


def _output_rows(merged: MergedRows, n: int, k: int) -> tuple[FloatArray, float]:
    """Return the kernels' row of each output, and n minus the sum of their means."""
    rest, share = Fraction(2 * (n - k) - 1, 2), Fraction(2 * k + 1, 2)
    pi, rho = float(share / n), float(rest / n)
    table = np.zeros((merged.rows.shape[1], CERTAIN + 1))
    defect = Fraction(n)
    for row, (a, b), (log_a, log_b), loss in zip(
        table, merged.rows.T, merged.log_rows.T, merged.log_ratios[1].tolist(), strict=True
    ):
        mean = rest * Fraction(float(a)) + share * Fraction(float(b))
        defect -= mean
        row[MEAN] = float(mean)
        row[MEAN_ERROR] = float(mean - Fraction(float(mean)))
        row[LOG_MEAN] = np.logaddexp(math.log(rest) + log_a, math.log(share) + log_b)
        # with numerator and denominator divided by the larger of 1 and exp(loss)
        fade = math.exp(-abs(loss))
        near, far = (fade, 1.0) if loss > 0.0 else (1.0, fade)
        row[EXCESS] = math.copysign(-math.expm1(-abs(loss)), loss) / (rho * near + pi * far)
        row[SHARE] = far / (rho * near + pi * far)
        row[RATIO_EXCESS] = math.expm1(loss) if loss < 700.0 else math.inf
        row[RATIO] = math.exp(loss) if loss < 700.0 else math.inf
        row[CERTAIN] = math.copysign(1.0, loss) if math.isinf(loss) else 0.0
        odds = math.log(share / rest) + loss if math.isfinite(loss) else 0.0
        log_t, log_u = (-float(np.logaddexp(0.0, sign * odds)) for sign in (-1.0, 1.0))
        row[:5] = 0.0, math.exp(log_t), math.exp(log_u), log_t, log_u
        if math.isfinite(loss):
            row[1], row[2] = pi * row[SHARE], rho * near / (rho * near + pi * far)
    return table, float(defect)


def _law(n: int, k: int, defect: float, window: Window) -> FloatArray:
    """Return the kernels' numbers of the whole law."""
    pi, rho = (k + 0.5) / n, (n - k - 0.5) / n
    labels = np.array([n, pi, rho, math.log(pi), math.log(rho)])
    law = np.empty(AT_LOG_WINDOW + 1)
    law[AT_N] = n
    law[AT_K] = k
    law[AT_CONSTANT] = stirling_error(float(n)) + 0.5 * math.log(2.0 * math.pi * n) - defect
    law[AT_LOG_LABELS] = log_binomial_mass(float(k), labels)
    law[AT_LOG_MORE_LABELS] = log_binomial_mass(k + 1.0, labels)
    law[AT_SCALE] = rho / (n - k)
    # two ends a line, a quarter of the truncation in all
    law[AT_LOG_LINE] = window.log_truncation - math.log(8.0 * float(window.box[1:, 1].prod()))
    law[AT_LOG_WINDOW] = window.log_truncation if window.log_truncation > -math.inf else 0.0
    return law


class LatticePoints:
    """The histograms of two neighbouring laws, and sums over them.

    Outputs are those of ``merged``, whose first row n - k users hold in the first dataset; k hold
    the second. Points of losses >= 0 count forward, the others reverse, with their losses negated.
    """

    how = "contour sums"
    # some ten times what the tests find; outputs whose ratios differ by up to 8 units of rounding
    # are merged, which moves a loss by less than is allowed here
    loss_rounding = 4e-15

    def __init__(self, merged: MergedRows, n: int, k: int, log_truncation: float | None) -> None:
        self._start(n)
        if merged.rows.shape[1] > 1:
            self._sum_lattice(merged, k, log_truncation)

    def _start(self, n: int) -> None:
        self.n_points = 0
        self.log_outside: dict[Side, float] = {"forward": -math.inf, "reverse": -math.inf}
        self._chunks: dict[Side, list[_Chunk]] = {"forward": [], "reverse": []}
        self._n = n

    @property
    def n_messages(self) -> int:
        """How many messages a histogram counts."""
        return self._n

    def _sum_lattice(self, merged: MergedRows, k: int, log_truncation: float | None) -> None:
        n = self._n
        # lines of points run between the two outputs that vary most
        rows = merged.rows
        order = np.argsort(-((n - k) * rows[0] * (1.0 - rows[0]) + k * rows[1] * (1.0 - rows[1])))
        merged = MergedRows(*(np.ascontiguousarray(part[:, order]) for part in merged))
        window = chosen_window(merged, n, k, log_truncation)
        self._require_storage(window.n_points)

        outputs, defect = _output_rows(merged, n, k)
        law = _law(n, k, defect, window)
        longest_line = int(window.box[0, 1])
        buffer = np.empty((max(_POINTS_A_CHUNK, longest_line), 2))
        line = 0
        while True:
            line, count = fill_points(line, window.box, outputs, law, buffer, window.outside)
            self._store(buffer[:count])
            self._require_storage(self.n_points)
            if line == 0:
                break
        if window.log_truncation > -math.inf:
            # an underflow is no proof that nothing was left out; tails are rounded
            mass_q, mass_p = np.log(1.000001 * np.maximum(window.outside, 1e-300)).tolist()
            self.log_outside["forward"] = window.log_truncation + mass_p
            self.log_outside["reverse"] = window.log_truncation + mass_q

    def _require_storage(self, n_points: float) -> None:
        if n_points > _MOST_POINTS:
            raise UnsupportedSettingError(
                f"the histograms must be at most {_MOST_POINTS}, got about {n_points:.2g} at n = "
                f"{self._n}; {ELSEWHERE}"
            )

    def _store(self, points: FloatArray) -> None:
        self.n_points += len(points)
        for side in self._chunks:
            kept = points[points[:, 0] >= 0.0 if side == "forward" else points[:, 0] < 0.0]
            if len(kept) == 0:
                continue
            kept[:, 0] = np.abs(kept[:, 0])
            # as complex numbers the pairs are sorted in place
            kept.view(np.complex128).sort(axis=0)
            sums = np.empty((-(-len(kept) // POINTS_A_STRIDE), 4))
            fill_tail_sums(kept, sums)
            self._chunks[side].append(_Chunk(kept, sums))

    @property
    def complete(self) -> bool:
        """Whether no histogram was left out."""
        return max(self.log_outside.values()) == -math.inf

    def tail(self, epsilon: float, side: Side) -> Tail:
        """Return the sums over the losses above epsilon."""
        # below inf, so that an infinite loss exceeds it
        finite = min(epsilon, float(np.finfo(np.float64).max))
        sums = np.array([-math.inf, 0.0, 0.0])
        for chunk in self._chunks[side]:
            add_to_tail(finite, chunk.points, chunk.sums, sums)
        return Tail(*sums.tolist())

    def largest_finite_loss(self, side: Side) -> float:
        """Return the largest finite loss, or 0."""
        return max(
            float(np.max(chunk.points[:, 0], initial=0.0, where=chunk.points[:, 0] < math.inf))
            for chunk in self._chunks[side]
        )

    def divergence(self, order_excess: float, side: Side) -> tuple[float, float]:
        """Return a Renyi divergence, or Jensen-Shannon for nan, and the sum it is formed from."""
        partial = np.array([0.0, -math.inf, 0.0])
        for half, chunks in self._chunks.items():
            sign = _SIGN[half] * _SIGN[side]
            for chunk in chunks:
                add_to_divergence(order_excess, sign, chunk.points, partial)
        total, largest, scaled = partial.tolist()
        if math.isnan(order_excess) or order_excess == 0.0:
            return total, total
        if -0.5 < order_excess * total < math.inf:
            return math.log1p(order_excess * total) / order_excess, total
        # the sum is not near 1, so its terms are added as they are
        log_moment = largest + math.log(scaled) if scaled > 0.0 else -math.inf
        return log_moment / order_excess, total
