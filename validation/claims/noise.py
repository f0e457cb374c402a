"""The noise that exact accounting, bounds and the published formula ask for at equal privacy."""

from __future__ import annotations

from validation import noise
from validation.claim import Claim, Finding, Verdict, at_least, at_most, none_of

_SOURCE = (
    'E Chen, Y. Cao, Y. Ge, AAAI 2024, arXiv:2312.14388v3, abstract ("outperforms existing '
    'methods in achieving strong central privacy guarantees while preserving the utility")'
)
# Where the formula is held to outperform the clones.
_LEAST_EPSILON = 0.5

CLAIMS = (
    Claim(
        "At equal n and central (epsilon, delta) the worst case of the randomizer itself needs "
        "strictly less noise than clones, stronger clones and the local model",
        "recorded by this project",
        Verdict.HOLDS,
    ),
    Claim(
        "At equal n and central (epsilon, delta) the mu formula needs less noise than clones",
        _SOURCE,
        Verdict.HOLDS_ONLY,
    ),
    Claim(
        "The noise that the mu formula asks for is enough for the central (epsilon, delta)",
        f"{_SOURCE}; the paper says approximately",
        Verdict.FALSE,
    ),
)


def measure(*, quick: bool) -> list[Finding]:
    """Compare the mean squared errors at the largest local budgets that are allowed."""
    users = noise.USERS[:1] if quick else noise.USERS
    rows = [row for n in users for e in noise.TABLED for row in noise.rows_of(n, e)]
    grid = (
        f"n = {', '.join(f'{n:.0e}' for n in users)}; epsilon = "
        f"{', '.join(f'{e:g}' for e in noise.TABLED)}; delta = {noise.DELTA:g}"
    )
    kinds = f"binary and {noise.CATEGORIES}-ary response"
    ratios = [row.ratio(b) for row in rows for b in (row.stronger, row.clones, row.epsilon)]
    gains = [(row.ratio(row.formula) / row.ratio(row.clones), row) for row in rows]
    gain, where = min(gains, key=lambda pair: pair[0])
    elsewhere = min(gain for gain, row in gains if row.epsilon >= _LEAST_EPSILON)
    short = max(rows, key=lambda row: row.factor)
    return [
        Finding(
            "our mean squared error over that of each bound",
            f"{kinds}: {', '.join(dict.fromkeys(row.estimate for row in rows))}; {grid}",
            (none_of(sum(x >= 1.0 for x in ratios), len(ratios), name="ratios of 1 or more"),),
        ),
        Finding(
            "mean squared error of the clones over that of the formula",
            f"{kinds}; {grid}",
            (at_least(gain, 1.0, name="smallest ratio"),),
            otherwise=f"where neither epsilon nor n is small, here from epsilon = "
            f"{_LEAST_EPSILON:g} on: at n = {where.users:.0e} and epsilon = {where.epsilon:g} it "
            f"asks for {1.0 / gain:.2g} times their noise ({where.estimate})",
            amended=(at_least(elsewhere, 1.0, name="smallest ratio there"),),
            amendment=Verdict.HOLDS_ONLY,
        ),
        Finding(
            "delta of a dataset at the epsilon0 that the formula allows, over delta",
            f"{kinds}; {grid}",
            (at_most(short.factor, 1.0, name="largest ratio"),),
            otherwise=f"{short.factor:.3g} times delta for {short.estimate} at n = "
            f"{short.users:.0e} and epsilon = {short.epsilon:g}, where it allows epsilon0 = "
            f"{short.formula:.4g} and {short.ours:.4g} is right",
        ),
    ]
