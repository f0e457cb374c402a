"""Vectors in one message, a random coordinate or a direction, against randomized response."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
from mpmath import mp, mpf

import fastshuffle as fs
from validation.claim import Claim, Finding, Verdict, at_most, none_of
from validation.reference.exact import worst_composition

CLAIMS = (
    Claim(
        "Over all datasets of vectors at the corners of a cube, one random coordinate sent by "
        "randomized response is no less private than the privacy blanket of binary randomized "
        "response with the same epsilon0; so are directions in the plane",
        "derived in fastshuffle.protocols.vectors",
        Verdict.HOLDS,
    ),
    Claim(
        "The worst of these datasets is exactly as bad as the worst of binary randomized response, "
        "below its blanket",
        "an observation of this project, without a proof: nothing rests on it",
        Verdict.HOLDS,
    ),
)

_RR = fs.binary_randomized_response


def _corners(dimension: int, keep: Fraction) -> list[list[Fraction]]:
    return [
        [(keep if bit == y else 1 - keep) / dimension for bit in corner for y in (0, 1)]
        for corner in itertools.product((0, 1), repeat=dimension)
    ]


def _arcs(arcs: int, keep: Fraction) -> list[list[Fraction]]:
    half = arcs // 2
    return [
        [(keep if (y - x) % arcs < half else 1 - keep) / half for y in range(arcs)]
        for x in range(arcs)
    ]


def measure(*, quick: bool) -> list[Finding]:
    """Try all datasets of few users, in fractions."""
    rng = np.random.default_rng(20261202)
    settings = [(_corners, 2, 4), (_corners, 3, 2), (_arcs, 6, 2)]
    if not quick:
        settings = [(_corners, 2, 6), (_corners, 3, 3), (_arcs, 6, 3), (_arcs, 8, 2)]
    wrong = tried = 0
    farthest = 0.0
    for rows_of, size, most in settings:
        for n in range(1, most + 1):
            keep = Fraction(int(rng.integers(9, 16)), 16)
            epsilon0 = math.log(keep / (1 - keep))
            for epsilon in rng.uniform(0.0, 0.8 * epsilon0, 3).tolist():
                with mp.workdps(60):
                    scale = Fraction(int(mp.exp(mpf(epsilon)) * 10**50), 10**50)
                delta, _ = worst_composition(rows_of(size, keep), n, scale)
                blanket = fs.blanket_profile(_RR(epsilon0), n).delta(epsilon)
                binary, _ = worst_composition([[keep, 1 - keep], [1 - keep, keep]], n, scale)
                tried += 1
                wrong += float(delta) > blanket * (1.0 + 1e-12)
                farthest = max(farthest, abs(float(delta / binary) - 1.0))
    grid = "corners of cubes of dimension 2 and 3, arcs of a circle; all datasets of few users"
    return [
        Finding("exceptions", grid, (none_of(wrong, tried, name="exceptions"),)),
        Finding(
            "largest relative distance from the worst case of binary randomized response",
            grid,
            (at_most(farthest, 0.0, name="distance"),),
        ),
    ]
