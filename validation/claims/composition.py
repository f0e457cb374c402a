"""Rounds about the same users: certified composition, its accuracy, and what is no bound."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
from mpmath import mp, mpf

import fastshuffle as fs
from validation.claim import Claim, Finding, Verdict, at_least, at_most, none_of
from validation.reference.composition import by_ratio, composed, hockey_stick
from validation.reference.exact import binary_pair

CLAIMS = (
    Claim(
        "The pair of straight pieces above a privacy curve dominates, and products of dominating "
        "pairs do: no composition of rounds, each in either order of the two datasets, is above "
        "`composed_profile`, nor below its lower end",
        "arXiv:2106.08567 and arXiv:2207.04380, as used by this project",
        Verdict.HOLDS,
    ),
    Claim(
        "The ends of `composed_profile` are within rtol of each other for any number of rounds "
        "from 2 to 1e4, n from 1e3 to 1e15 and epsilon up to 15 standard deviations of the loss",
        "recorded by this project",
        Verdict.HOLDS,
    ),
    Claim(
        "The composition of T rounds is sqrt(T) mu-GDP when each has the limit mu",
        "a reading of the composition of arXiv:1905.02383 with limits as bounds",
        Verdict.FALSE,
    ),
    Claim(
        "With m of n users drawn without replacement: delta'(log(1 + q (exp(epsilon) - 1))) <= "
        "q delta(epsilon), q = m/n, under replace-one, delta over all datasets",
        "arXiv:1807.01647v2",
        Verdict.HOLDS,
    ),
)


def _scale(epsilon: float) -> Fraction:
    with mp.workdps(60):
        return Fraction(int(mp.exp(mpf(epsilon)) * 10**50), 10**50)


def _randomizer(p0: Fraction, p1: Fraction) -> fs.Randomizer:
    return fs.Randomizer([[float(1 - p), float(p)] for p in (p0, p1)])


def _exact_rounds(*, quick: bool) -> Finding:
    rng = np.random.default_rng(20261130)
    cases, most = (10, 3) if quick else (60, 4)
    wrong = tried = 0
    for _ in range(cases):
        p0, p1 = (Fraction(int(x), 32) for x in rng.choice(np.arange(1, 32), 2, replace=False))
        n = int(rng.integers(1, 6))
        k, rounds = int(rng.integers(0, n)), int(rng.integers(2, most + 1))
        law_q, law_p = binary_pair([(n - 1 - k, p0), (k, p1)], p0, p1)
        pairs = by_ratio(law_p, law_q), by_ratio(law_q, law_p)
        one = fs.exact_profile(fs.ShuffleExperiment(_randomizer(p0, p1), n, k=k))
        bound = fs.composed_profile(one, rounds)
        orders = [composed(order) for order in itertools.product(pairs, repeat=rounds)]
        for epsilon in rng.uniform(0.0, 3.0, 4).tolist():
            deltas = [float(hockey_stick(order, _scale(epsilon))) for order in orders]
            lower, upper = bound.bounds(epsilon)
            tried += 1
            wrong += not (
                max(deltas) <= upper * (1.0 + 1e-12)
                and lower <= max(deltas[0], deltas[-1]) * (1.0 + 1e-12)
            )
    grid = f"{cases} random binary W, n <= 5, up to {most} rounds in all orders"
    return Finding("exceptions, in fractions", grid, (none_of(wrong, tried, name="exceptions"),))


def _width(*, quick: bool) -> Finding:
    rtol, widest = 1e-2, 0.0
    rr = fs.binary_randomized_response(1.0)
    users = (10**3, 10**8) if quick else (10**3, 10**5, 10**8, 10**12, 10**15)
    for n, rounds in itertools.product(users, (2, 30, 1000) if quick else (2, 10, 100, 10**4)):
        one = fs.exact_profile(fs.ShuffleExperiment(rr, n, k=0))
        bound = fs.composed_profile(one, rounds, rtol=rtol)
        spread = 2.5 * one.total_variation() * math.sqrt(rounds)
        for epsilon in spread * np.array([0.0, 1.0, 4.0, 10.0, 15.0]):
            lower, upper = bound.log_bounds(epsilon, direction="forward")
            widest = max(widest, upper - lower)
    return Finding(
        "largest log(upper / lower), forward",
        f"RR, epsilon0 = 1, k = 0, n to {users[-1]:.0e}, epsilon to 15 deviations, rtol = {rtol:g}",
        (at_most(widest, rtol, name="width"),),
    )


def _limit() -> Finding:
    experiment = fs.ShuffleExperiment(fs.binary_randomized_response(4.0), 10**4, k=0)
    limit = fs.composed_gaussian_profile(fs.gaussian_profile(experiment), 10)
    lower, _ = fs.composed_profile(fs.exact_profile(experiment), 10).bounds(1.5)
    ratio = float(lower / limit.delta(1.5))
    return Finding(
        "proved delta over that of the limit",
        "RR, epsilon0 = 4, n = 1e4, k = 0, ten rounds, epsilon = 1.5",
        (at_most(ratio, 1.0, name="ratio"),),
        otherwise=f"at least {ratio:.3g} times too much privacy",
    )


def _sampled(p0: Fraction, p1: Fraction, ones: int, n: int, size: int) -> list[Fraction]:
    """Law of the number of ones sent by a random set of ``size`` of n users."""
    law = [Fraction(0)] * (size + 1)
    total = math.comb(n, size)
    for chosen in range(max(0, size - (n - ones)), min(ones, size) + 1):
        ways = Fraction(math.comb(ones, chosen) * math.comb(n - ones, size - chosen), total)
        # the last of them is the "differing user", who holds what the pair says
        groups = [(chosen, p1), (size - 1 - chosen, p0)] if chosen < size else [(size - 1, p1)]
        zero, one = binary_pair(groups, p0, p1)
        law = [a + ways * b for a, b in zip(law, one if chosen == size else zero, strict=True)]
    return law


def _sampling(*, quick: bool) -> Finding:
    rng = np.random.default_rng(20261201)
    wrong, tried, closest = 0, 0, 0.0
    for _ in range(10 if quick else 60):
        p0, p1 = (Fraction(int(x), 16) for x in rng.choice(np.arange(1, 16), 2, replace=False))
        n = int(rng.integers(2, 9))
        size = int(rng.integers(1, n))
        bound = fs.subsampled_profile(fs.worst_case_profile(_randomizer(p0, p1), size), n)
        for epsilon in rng.uniform(0.0, 0.7, 3).tolist():
            truth = Fraction(0)
            for ones in range(n):
                few, many = (_sampled(p0, p1, k, n, size) for k in (ones, ones + 1))
                scale = _scale(epsilon)
                truth = max(
                    truth,
                    *(hockey_stick(by_ratio(*x), scale) for x in ((few, many), (many, few))),
                )
            upper = bound.delta(epsilon)
            tried += 1
            wrong += float(truth) > upper * (1.0 + 1e-12)
            closest = max(closest, float(truth) / upper if upper > 0.0 else 0.0)
    return Finding(
        "exceptions over all datasets, in fractions",
        f"random binary W, n <= 8; the bound is met up to a factor {closest:.3f}",
        (
            none_of(wrong, tried, name="exceptions"),
            at_least(closest, 0.5, name="largest delta over the bound"),
        ),
    )


def measure(*, quick: bool) -> list[Finding]:
    """Hold compositions against brute force, and their ends against each other."""
    return [_exact_rounds(quick=quick), _width(quick=quick), _limit(), _sampling(quick=quick)]
