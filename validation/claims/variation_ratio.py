"""The variation-ratio table's row for k-ary randomized response."""

from __future__ import annotations

import math

import numpy as np

from validation.bounds import largest_deltas
from validation.claim import Claim, Curve, Figure, Finding, Verdict, at_most, printed_number
from validation.reference import lattice
from validation.reference.constants import Floats

_SOURCE = "S. Wang et al., arXiv:2304.05007"

CLAIMS = (
    Claim(
        "k-RR, k = 5: the pair with all symbols but two merged bounds delta for every dataset",
        f"{_SOURCE}, table of mechanisms",
        Verdict.FALSE,
    ),
    Claim(
        "k-RR, k = 3: the same pair bounds delta for every dataset",
        f"{_SOURCE}, table of mechanisms",
        Verdict.FALSE,
    ),
    Claim(
        "n = 8, k = 5, epsilon0 = 2, epsilon = 1, the others all at a third symbol: true "
        "0.1019404, claimed 0.0948147",
        "recorded by this project",
        Verdict.HOLDS,
    ),
)

_EPSILON0, _USERS = 2.0, 8


def _rows(k: int, *, merged: bool) -> Floats:
    """Return the laws of the messages of the inputs 0, 1 and 2, by what tells them apart."""
    top = math.exp(_EPSILON0) / (math.exp(_EPSILON0) + k - 1)
    low = top * math.exp(-_EPSILON0)
    groups = [[top, low, low], [low, top, low], [low, low, top], [(k - 3) * low] * 3]
    table = np.array(groups)
    if merged:
        table = np.array([table[0], table[1], table[2] + table[3]])
    return np.ascontiguousarray(table.T)


def _delta(k: int, epsilon: float, *, merged: bool) -> float:
    """Return delta for others who all hold the input 2."""
    rows = _rows(k, merged=merged)
    others = lattice.histogram(rows[2:], (_USERS - 1,), _USERS + 1)
    q, p = (lattice.with_one_more(others, row) for row in rows[:2])
    return lattice.hockey_stick(p, q, epsilon)


def _largest_ratio(epsilons: list[float]) -> tuple[float, float]:
    """Return the largest delta of a dataset of 3-RR over that of the pair, and at which epsilon."""
    rows = _rows(3, merged=True)
    found = largest_deltas(rows, _USERS, epsilons, [(0, 1), (1, 0)])
    return max(
        (extremes.low / _delta(3, epsilon, merged=True), epsilon)
        for epsilon, extremes in zip(epsilons, found, strict=True)
    )


def measure(*, quick: bool) -> list[Finding]:
    """Compare the merged pair with the whole histogram at n = 8."""
    epsilons = np.linspace(0.0, 1.95, 8 if quick else 40)
    ratios = {
        k: [_delta(k, e, merged=False) / _delta(k, e, merged=True) for e in epsilons.tolist()]
        for k in (4, 5, 8)
    }
    worst = int(np.argmax(ratios[5]))
    ratio, at = _largest_ratio(epsilons.tolist())
    return [
        Finding(
            "largest true delta over that of the merged pair",
            f"n = {_USERS}, epsilon0 = {_EPSILON0:g}, epsilon to 1.95, others at a third symbol",
            (at_most(max(ratios[5]), 1.0 + 1e-12, name="largest ratio"),),
            otherwise=f"true delta {ratios[5][worst]:.4g} times the claimed bound at epsilon = "
            f"{epsilons[worst]:.3g}: the count of the common symbol leaks too",
            figure=Figure(
                f"k-ary randomized response, n = {_USERS}, others at a third symbol",
                "epsilon",
                "true delta over the claimed bound",
                tuple(
                    Curve.of(f"k = {k}", epsilons, values, line=True)
                    for k, values in ratios.items()
                ),
                log_x=False,
            ),
        ),
        Finding(
            "largest delta of any dataset over that of the pair",
            f"n = {_USERS}, epsilon0 = {_EPSILON0:g}, epsilon to 1.95, all compositions",
            (at_most(ratio, 1.0 + 1e-12, name="largest ratio"),),
            otherwise=f"above epsilon = 1 other datasets are worse, {ratio:.3g} times the claimed "
            f"bound at epsilon = {at:.3g}",
        ),
        Finding(
            "delta, true and of the merged pair",
            "one case",
            (
                printed_number(_delta(5, 1.0, merged=False), "0.1019404", name="true"),
                printed_number(_delta(5, 1.0, merged=True), "0.0948147", name="claimed"),
            ),
        ),
    ]
