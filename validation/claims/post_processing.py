"""Revealing messages never helps privacy: bounds between compositions and between n."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from validation.claim import Claim, Finding, Verdict, none_of
from validation.reference.exact import binary_pair, hockey_stick

_SOURCE = "post-processing; recorded by this project"

CLAIMS = (
    Claim(
        "For k1 <= k <= k2: delta_{n,k} <= delta_{n-(k2-k1),k1}, so that whole blocks of "
        "compositions are bounded at once",
        _SOURCE,
        Verdict.HOLDS,
    ),
    Claim("The worst-case delta does not increase with n", _SOURCE, Verdict.HOLDS),
    Claim("delta_{n,k} <= min(delta_{n-k,0}, delta_{k+1,k})", _SOURCE, Verdict.HOLDS),
)


def _deltas(
    p0: Fraction, p1: Fraction, most: int, scale: Fraction
) -> dict[tuple[int, int], Fraction]:
    """Return delta_{n,k}, the larger of both directions, for all k < n <= most."""
    deltas = {}
    for n in range(1, most + 1):
        for k in range(n):
            q, p = binary_pair([(n - 1 - k, p0), (k, p1)], p0, p1)
            deltas[n, k] = max(hockey_stick(p, q, scale), hockey_stick(q, p, scale))
    return deltas


def measure(*, quick: bool) -> list[Finding]:
    """Compare all compositions up to some n, as fractions."""
    rng = np.random.default_rng(20260307)
    cases, most = (6, 6) if quick else (40, 11)
    wrong, tried = [0, 0, 0], [0, 0, 0]

    def compare(i: int, *, holds: bool) -> None:
        tried[i] += 1
        wrong[i] += not holds

    for _ in range(cases):
        low, high = (int(x) for x in rng.choice(np.arange(1, 20), 2, replace=False))
        scale = Fraction(int(rng.integers(20, 50)), 20)
        deltas = _deltas(Fraction(low, 20), Fraction(high, 20), most, scale)
        for (n, k), value in deltas.items():
            for k1 in range(k + 1):
                for k2 in range(k, n):
                    compare(0, holds=value <= deltas[n - (k2 - k1), k1])
            compare(2, holds=value <= min(deltas[n - k, 0], deltas[k + 1, k]))
        for n in range(1, most):
            of_n, of_next = (
                max(value for (users, _), value in deltas.items() if users == m) for m in (n, n + 1)
            )
            compare(1, holds=of_next <= of_n)
    grid = f"{cases} random binary W and epsilon, all k < n <= {most}"
    return [
        Finding("exceptions, in fractions", grid, (none_of(bad, of, name="exceptions"),))
        for bad, of in zip(wrong, tried, strict=True)
    ]
