"""The GDP parameter and the clones for users with personal privacy parameters."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from statistics import NormalDist

from validation.claim import (
    Claim,
    Curve,
    Figure,
    Finding,
    Verdict,
    at_least,
    at_most,
    none_of,
    printed_number,
)
from validation.reference import lattice
from validation.reference.constants import gaussian_delta
from validation.reference.exact import hockey_stick
from validation.reference.personalized import (
    clone_delta,
    histogram_law,
    response_rows,
    user_delta,
    worst_user_delta,
)

_SOURCE = "E Chen, Y. Cao, Y. Ge, AAAI 2024, arXiv:2312.14388v3, abstract"

CLAIMS = (
    Claim(
        "Shuffled (epsilon_i, 0)-personalized LDP is mu-GDP with mu^2 = 2/(sum_i c_i - max_i c_i), "
        "c_i = 1/(1 + e^epsilon_i), taken as a bound (the paper says approximately)",
        _SOURCE,
        Verdict.FALSE,
    ),
    Claim(
        "Uniform epsilon_i = 5, n = 100, epsilon = 2: exact 0.4855, formula 0.2284; one "
        "epsilon_i = 8 and nine of 1, epsilon = 3: exact 0.0592, formula 0.0010",
        "recorded by this project",
        Verdict.HOLDS,
    ),
    Claim(
        "With delta_i > 0 the same mu, with c_i times 1 - delta_i, bounds delta at every epsilon",
        f"{_SOURCE}; a user whose message is in the clear with probability delta_i has delta >= "
        "delta_i",
        Verdict.FALSE,
    ),
    Claim(
        "Read as a lower bound by hypothesis testing: a test of level alpha between the two "
        "datasets has a type II error of at least Phi(Phi^-1(1 - alpha) - mu)",
        f'{_SOURCE} ("improve the lower bound by utilizing hypothesis testing"; the theorem itself '
        "was not at hand)",
        Verdict.FALSE,
    ),
    Claim(
        "Clones with the chance exp(-epsilon_i) from each other user bound delta, whatever the "
        "users' own epsilon_i-private randomizers are",
        "the reduction of V. Feldman, A. McMillan, K. Talwar, arXiv:2012.12803v3, with budgets "
        "that belong to users (there the data are shuffled before the randomizers apply)",
        Verdict.CORRECTED,
    ),
    Claim(
        "The lower bound of the clone chance by hypothesis testing: another user's message is a "
        "clone with probability 2 (1 - delta_i)/(1 + e^epsilon_i)",
        f"{_SOURCE}, whose mu counts c_i = (1 - delta_i)/(1 + e^epsilon_i) clones of either kind; "
        "the same step in arXiv:2407.18157v1, abstract (both theorems not at hand)",
        Verdict.FALSE,
    ),
    Claim(
        "With delta_i > 0 it is enough that a clone is rarer by 1 - delta_i, as in c_i",
        "the form of c_i in arXiv:2312.14388v3, abstract; recorded by this project",
        Verdict.CORRECTED,
    ),
    Claim(
        "Binary response: the worst user has the largest budget, at each dataset among those who "
        "hold the same bit, and over all datasets",
        "recorded by this project",
        Verdict.HOLDS,
    ),
    Claim(
        "Binary response: a user's delta rises with the budget of any other user",
        "a smaller budget is post-processing; recorded by this project",
        Verdict.HOLDS_ONLY,
    ),
)


def _mu(epsilons: Sequence[float], deltas: Sequence[float] | None = None) -> float:
    floors = deltas or [0.0] * len(epsilons)
    c = [(1.0 - d) / (1.0 + math.exp(e)) for e, d in zip(epsilons, floors, strict=True)]
    return math.sqrt(2.0 / (sum(c) - max(c)))


def _exact(epsilons: Sequence[float], epsilon: float) -> float:
    """Return the largest delta over who differs, the direction and homogeneous others' bits.

    Randomized response: user i flips with probability ``1/(1 + e^epsilon_i)``.
    """
    worst = 0.0
    flips = [1.0 / (1.0 + math.exp(e)) for e in epsilons]
    for own in sorted(set(flips)):
        rest = list(flips)
        rest.remove(own)
        counts = {p: rest.count(p) for p in sorted(set(rest))}
        for bit in (0, 1):
            groups = [(count, p if bit == 0 else 1.0 - p) for p, count in counts.items()]
            _, q, p = lattice.binary_pair(
                groups, lattice.binomial(1, own), lattice.binomial(1, 1.0 - own)
            )
            worst = max(
                worst, lattice.hockey_stick(p, q, epsilon), lattice.hockey_stick(q, p, epsilon)
            )
    return worst


def measure(*, quick: bool) -> list[Finding]:
    """Compare exact randomized response with the formula."""
    cases = {
        "100 users of epsilon_i = 5": [5.0] * 100,
        "one of 8, nine of 1": [8.0, *[1.0] * 9],
        "1000 users of epsilon_i = 1": [1.0] * 1000,
        "500 of 1, 500 of 3": [1.0] * 500 + [3.0] * 500,
    }
    steps = 12 if quick else 40
    curves, ratios, where = [], [], []
    for name, budgets in cases.items():
        top = 0.999 * max(budgets)
        mu = _mu(budgets)
        epsilons = [top * (i + 1) / (steps + 1) for i in range(steps)]
        pairs = [(e, _exact(budgets, e), gaussian_delta(mu, e)) for e in epsilons]
        kept = [(e, d / g) for e, d, g in pairs if d > 1e-12 and g > 1e-14]
        ratios += [ratio for _, ratio in kept]
        where += [(name, e) for e, _ in kept]
        curves.append(
            Curve.of(name, [e / max(budgets) for e, _ in kept], [r for _, r in kept], line=True)
        )
    worst = max(range(len(ratios)), key=ratios.__getitem__)
    name, epsilon = where[worst]
    uniform, mixed = cases["100 users of epsilon_i = 5"], cases["one of 8, nine of 1"]
    floor, users = 0.01, 1000
    mu = _mu([1.0] * users, [floor] * users)
    return [
        Finding(
            "largest exact delta over that of the formula",
            f"4 populations of binary RR, {steps} epsilons each",
            (at_most(ratios[worst], 1.0, name="largest ratio"),),
            otherwise=f"{ratios[worst]:.3g} times the formula for {name} at epsilon = "
            f"{epsilon:.3g}",
            figure=Figure(
                "Personalized privacy: exact delta over that of the mu formula",
                "epsilon / largest epsilon_i",
                "exact / formula (above 1: not a bound)",
                tuple(curves),
                log_x=False,
            ),
        ),
        Finding(
            "delta, exact and by the formula",
            "two populations",
            (
                printed_number(_exact(uniform, 2.0), "0.4855", name="uniform, exact"),
                printed_number(gaussian_delta(_mu(uniform), 2.0), "0.2284", name="formula"),
                printed_number(_exact(mixed, 3.0), "0.0592", name="mixed, exact"),
                printed_number(gaussian_delta(_mu(mixed), 3.0), "0.0010", name="formula"),
            ),
        ),
        Finding(
            "delta of the formula at epsilon = 1",
            f"{users} users, epsilon_i = 1, delta_i = {floor:g}",
            (at_least(gaussian_delta(mu, 1.0), floor, name="formula at epsilon = 1"),),
            otherwise=f"the formula gives {gaussian_delta(mu, 1.0):.1e} where delta_i = {floor:g} "
            "can be lost outright",
        ),
        _hypothesis_tests(uniform),
        _any_randomizers(),
        _clones_by_testing(),
        _rarer_clones(),
        _worst_user(quick=quick),
        _budgets_of_others(),
    ]


def _hypothesis_tests(budgets: Sequence[float]) -> Finding:
    """Compare the errors of the tests that reject for many ones with those that mu allows."""
    flip = 1.0 / (1.0 + math.exp(budgets[0]))
    _, q, p = lattice.binary_pair(
        [(len(budgets) - 1, flip)], lattice.binomial(1, flip), lattice.binomial(1, 1.0 - flip)
    )
    mu, normal = _mu(budgets), NormalDist()
    tests = []
    for cut in range(1, len(q)):
        level, error = float(q[cut:].sum()), float(p[:cut].sum())
        if 1e-12 < level < 1.0:
            allowed = normal.cdf(normal.inv_cdf(1.0 - level) - mu)
            tests.append((error / allowed, level, error, allowed))
    ratio, level, error, allowed = min(tests)
    return Finding(
        "least error of a test over the error that mu allows at its level",
        f"{len(budgets)} users of epsilon_i = {budgets[0]:g}, the others at 0; half-lines",
        (at_least(ratio, 1.0, name="smallest ratio"),),
        otherwise=f"the test of level {level:.3g} has the error {error:.3g}, below {allowed:.3g}",
    )


def _any_randomizers() -> Finding:
    """Hold clones against k-ary response among more careful users at a third input."""
    own, other, k, others = Fraction(math.exp(4.0)), Fraction(math.exp(0.1)), 4, 5
    growth = Fraction(math.e)
    users = [response_rows(own, k)] + [response_rows(other, k)] * others
    right = max(user_delta(users, [0] + [2] * others, 0, 1, growth))
    claimed, nested = (clone_delta(own, [1 / x] * others, growth) for x in (other, own))
    return Finding(
        "delta of the clones and of a dataset",
        "4-ary response at epsilon = 1: a user of epsilon_i = 4, 5 of 0.1 at a third input",
        (at_least(float(claimed), float(right), name="clones"),),
        otherwise="exp(-max(epsilon_i, epsilon_j)) where the randomizers are nested (a smaller "
        "budget is a random input of the larger one's randomizer); exp(-epsilon_i) only where each "
        f"contains the other's messages. Here {float(right):.4f} was claimed {float(claimed):.4f}",
        amended=(at_least(float(nested), float(right), name="nested"),),
        amendment=Verdict.CORRECTED,
    )


def _clones_by_testing() -> Finding:
    """Hold the chance at which the errors of a test are equal against the same dataset."""
    own, other, k, others = Fraction(math.exp(4.0)), Fraction(math.exp(0.1)), 4, 5
    growth = Fraction(math.e)
    users = [response_rows(own, k)] + [response_rows(other, k)] * others
    right = max(user_delta(users, [0] + [2] * others, 0, 1, growth))
    claimed = clone_delta(own, [2 / (1 + other)] * others, growth)
    return Finding(
        "delta of the clones so found and of a dataset",
        "4-ary response at epsilon = 1: a user of epsilon_i = 4, 5 of 0.1 at a third input",
        (at_least(float(claimed), float(right), name="clones"),),
        otherwise="a test between two laws of one user says nothing of what another user sends: "
        f"{float(right):.4f} was claimed {float(claimed):.4f}",
    )


def _rarer_clones() -> Finding:
    """Hold a coin that is off by its delta against clones that are rarer by as much."""
    keep, off = Fraction(3, 4), Fraction(1, 10)
    coin = [[Fraction(1, 2) + off, Fraction(1, 2) - off]] * 2
    users = [[[keep, 1 - keep], [1 - keep, keep]], coin]
    laws = [histogram_law(users, data) for data in ([0, 0], [1, 0])]
    right = hockey_stick(laws[1], laws[0], Fraction(1))
    odds, one = keep / (1 - keep), Fraction(1)
    rarer, whole = (clone_delta(odds, [chance], one) for chance in (1 - off, one))
    return Finding(
        "delta(0) of the clones and of a dataset",
        "randomized response with keep = 3/4, and a constant coin of 1/2 + delta_i, delta_i = 0.1",
        (at_least(float(rarer), float(right), name="rarer clones"),),
        otherwise="whole clones, and (1 + e^epsilon) exp(-epsilon_i) delta_i added for each",
        amended=(at_least(float(whole + 2 * off), float(right), name="whole clones, and cost"),),
        amendment=Verdict.CORRECTED,
    )


def _worst_user(*, quick: bool) -> Finding:
    """Count users who lose more than one with a larger budget, by enumeration."""
    odds = (Fraction(2), Fraction(7, 2), Fraction(9))[: 2 if quick else 3]
    worse = tried = 0
    for budgets in itertools.combinations_with_replacement(odds, 3):
        users = [response_rows(x) for x in budgets]
        for growth in (Fraction(1), Fraction(3, 2)):
            for bits in itertools.product((0, 1), repeat=3):
                deltas = [user_delta(users, bits, j, 1 - bits[j], growth) for j in range(3)]
                for i, j in itertools.combinations(range(3), 2):  # budgets ascend
                    if bits[i] == bits[j]:
                        tried += 1
                        worse += any(a > b for a, b in zip(deltas[i], deltas[j], strict=True))
            largest = [worst_user_delta(users, j, growth) for j in range(3)]
            tried += 2
            worse += sum(a > b for a, b in itertools.pairwise(largest))
    return Finding(
        "pairs of users of whom the one with the smaller budget loses more",
        "3 users in fractions, all budgets of a few, both directions",
        (none_of(worse, tried, name="exceptions"),),
    )


def _budgets_of_others() -> Finding:
    """Raise the budget of one other user, at one dataset and over all."""
    before, after = (
        [response_rows(Fraction(math.exp(x))) for x in (2.0, 0.5, 1.0, 2.0, last)]
        for last in (0.5, 1.5)
    )
    bits, one = [0, 0, 0, 0, 1], Fraction(1)
    low, high = (float(max(user_delta(u, bits, 0, 1, one))) for u in (before, after))
    worst_low, worst_high = (float(worst_user_delta(u, 0, one)) for u in (before, after))
    return Finding(
        "delta(0) of a user before and after another's budget rises from 0.5 to 1.5",
        "budgets 2, 0.5, 1, 2 and that; the others hold 0, 0, 0, 1",
        (at_least(high, low, name="at one dataset"),),
        otherwise="for the worst over all bits (joint convexity); a more careful neighbour may put "
        "the mode of the others' sum where it hides less",
        amended=(at_least(worst_high, worst_low, name="over all datasets"),),
        amendment=Verdict.HOLDS_ONLY,
    )
