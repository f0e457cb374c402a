"""Fisher constants against the definition, ``v^T Sigma^+ v``, solved in rational arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fastshuffle as fs
from fastshuffle.limits.fisher import experiment_constant
from tests.tolerances import STATED_DIVERGENCE


def solved(rows, shares, pair=(0, 1)):
    """Return ``v^T u`` with ``Sigma u = v`` by elimination in fractions, inf if there is no u.

    A row is the double entries given, divided by their sum. Any solution of a singular system
    gives the same value.
    """
    exact = [[Fraction(x) for x in row] for row in rows]
    exact = [[x / sum(row) for x in row] for row in exact]
    weights = [Fraction(s) for s in shares]
    weights = [w / sum(weights) for w in weights]
    d = len(exact[0])
    v = [exact[pair[1]][y] - exact[pair[0]][y] for y in range(d)]
    system = [
        [
            sum(
                w * ((row[y] if y == z else 0) - row[y] * row[z])
                for w, row in zip(weights, exact, strict=True)
            )
            for z in range(d)
        ]
        + [v[y]]
        for y in range(d)
    ]
    pivots = []
    for column in range(d):
        row = next((r for r in range(len(pivots), d) if system[r][column] != 0), None)
        if row is None:
            continue
        at = len(pivots)
        system[at], system[row] = system[row], system[at]
        for r in range(d):
            if r != at and system[r][column] != 0:
                factor = system[r][column] / system[at][column]
                system[r] = [x - factor * y for x, y in zip(system[r], system[at], strict=True)]
        pivots.append(column)
    if any(line[d] != 0 for line in system[len(pivots) :]):
        return math.inf
    solution = [Fraction(0)] * d
    for at, column in enumerate(pivots):
        solution[column] = system[at][d] / system[at][column]
    return float(sum(x * y for x, y in zip(v, solution, strict=True)))


# rows whose double entries sum to 1 exactly, so that both sides mean the same laws
DYADIC = [[0.5, 0.25, 0.25], [0.125, 0.375, 0.5]]
SHARES = [0.0, 1e-300, 0.1, 0.5, 1.0 - 2.0**-30, 1.0]


@pytest.mark.parametrize("pi", SHARES)
@pytest.mark.parametrize(
    "rows",
    [
        DYADIC,
        [[0.25, 0.75], [0.625, 0.375]],
        [[0.5, 0.25, 0.25], [0.5, 0.25, 0.25]],  # no difference
        [[0.5, 0.25, 0.25, 0.0], [0.25, 0.125, 0.625, 0.0]],  # two outputs merge, one is never sent
        [[0.5, 0.5, 0.0], [0.25, 0.5, 0.25]],  # b sends what a never sends
        [[0.5, 0.5, 0.0], [0.25, 0.0, 0.75]],  # and the other way round
        [[1.0, 0.0], [0.25, 0.75]],
        [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]],  # nothing in common
        [[0.5, 0.5, 1e-300], [0.25, 0.75, 2e-300]],
        [[0.5, 0.5], [0.5 - 2.0**-50, 0.5 + 2.0**-50]],
    ],
)
def test_solves_the_definition(rows, pi):
    truth = solved(rows, [1 - Fraction(pi), pi])
    value = fs.fisher_constant(fs.Randomizer(rows), pi)
    assert_allclose(value, truth, rtol=STATED_DIVERGENCE, atol=0)


def test_pair_is_taken_and_symmetric():
    w = fs.Randomizer([[0.25, 0.75, 0.0], *DYADIC])
    pi = 0.25
    value = fs.fisher_constant(w, pi, pair=(1, 2))
    assert value == fs.fisher_constant(fs.Randomizer(DYADIC), pi)
    assert_allclose(fs.fisher_constant(w, 1.0 - pi, pair=(2, 1)), value, rtol=1e-15, atol=0)


def test_chi_square_of_tiny_probabilities():
    w = fs.Randomizer.from_probabilities([1e-300, 0.5])
    assert_allclose(fs.chi_square(w), 0.25e300 + 0.25, rtol=1e-15, atol=0)
    assert_allclose(fs.chi_square(w, pair=(1, 0)), 1.0, rtol=1e-15, atol=0)


def test_symmetric_response_has_one_constant():
    for epsilon0 in (1e-20, 1e-8, 1.0, 30.0, 600.0):
        rr = fs.binary_randomized_response(epsilon0)
        truth = 4.0 * math.sinh(0.5 * epsilon0) ** 2
        for pi in (0.0, 1e-9, 0.3, 0.5, 1.0):
            assert_allclose(fs.fisher_constant(rr, pi), truth, rtol=STATED_DIVERGENCE, atol=0)


def test_mixture_promises_more_privacy():
    for pi in (0.1, 0.5, 0.9):
        w = fs.Randomizer(DYADIC)
        fixed, mixture = fs.fisher_constant(w, pi), fs.mixture_fisher_constant(w, pi)
        assert mixture < fixed
        assert_allclose(fixed, mixture / (1.0 - pi * (1.0 - pi) * mixture), rtol=1e-14, atol=0)
    for pi in (0.0, 1.0):
        assert fs.mixture_fisher_constant(w, pi) == fs.fisher_constant(w, pi)


def test_convex_with_the_largest_value_at_an_end():
    rng = np.random.default_rng(5)
    for _ in range(20):
        w = fs.Randomizer(rng.dirichlet(np.full(4, 0.7), size=2))
        values = np.array([fs.fisher_constant(w, pi) for pi in np.linspace(0.0, 1.0, 11)])
        assert (np.diff(values, 2) > -1e-12 * values.max()).all()
        worst = fs.worst_fisher_constant(w)
        assert_allclose(worst.constant, values.max(), rtol=1e-14, atol=0)
        assert_allclose(
            fs.fisher_constant(w, float(worst.others)), values.max(), rtol=1e-14, atol=0
        )


def test_worst_is_a_third_input():
    krr = fs.k_randomized_response(2.0, 4)
    worst = fs.worst_fisher_constant(krr)
    ratio = math.exp(2.0)
    assert worst.others == 2
    assert_allclose(worst.constant, 2.0 * (ratio - 1.0) ** 2 / (ratio + 3.0), rtol=1e-14, atol=0)
    assert fs.worst_fisher_constant(krr, pair=(3, 1)).constant == worst.constant


@pytest.mark.parametrize(
    ("rows", "others"),
    [
        ([*DYADIC, [0.25, 0.5, 0.25]], {0: 3, 1: 2, 2: 4}),
        ([*DYADIC, [0.25, 0.5, 0.25], [0.0, 0.0, 1.0]], {2: 5, 3: 1}),
        ([*DYADIC, [0.25, 0.5, 0.25]], {2: 7}),
        ([*DYADIC, [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], {2: 5, 3: 2}),  # output 1 unreached
        ([*DYADIC, [0.0, 1.0, 0.0], [0.5, 0.0, 0.5]], {2: 5, 3: 2}),  # not connected
        # not connected, yet v lies in the range
        ([[0.5, 0.0, 0.5], [0.25, 0.0, 0.75], [0.0, 1.0, 0.0], [0.5, 0.0, 0.5]], {2: 2, 3: 2}),
        (
            [[0.5, 0.25, 0.125, 0.125], [0.25, 0.5, 0.125, 0.125], [0.25] * 4,
             [0.125, 0.125, 0.25, 0.5], [0.5, 0.25, 0.25, 0.0]],
            {0: 1, 2: 3, 3: 8, 4: 2},
        ),
    ],
)  # fmt: skip
def test_any_composition(rows, others):
    experiment = fs.ShuffleExperiment(fs.Randomizer(rows), 1 + sum(others.values()), others=others)
    shares = [others.get(x, 0) for x in range(len(rows))]
    assert_allclose(
        experiment_constant(experiment), solved(rows, shares), rtol=STATED_DIVERGENCE, atol=0
    )


def test_compositions_of_the_pair_agree_with_the_network():
    w = fs.Randomizer([*DYADIC, DYADIC[0]])  # input 2 is input 0 under another name
    pair = fs.ShuffleExperiment(w, 10, k=3)
    network = fs.ShuffleExperiment(w, 10, others={2: 6, 1: 3})
    assert_allclose(
        experiment_constant(network), experiment_constant(pair), rtol=STATED_DIVERGENCE, atol=0
    )


def test_a_certain_decision_is_infinite_at_one_end_only():
    w = fs.Randomizer([[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]])
    assert fs.fisher_constant(w, 0.0) == math.inf
    assert fs.fisher_constant(w, 1.0) == 1.0
    assert fs.worst_fisher_constant(w) == (math.inf, (0, 1), 0)
    assert fs.chi_square(w) == math.inf


def test_what_cannot_be_held_is_refused():
    with pytest.raises(OverflowError, match="finite but beyond the largest double"):
        fs.chi_square(fs.Randomizer([[1e-320, 0.5, 0.5], [0.5, 0.25, 0.25]]))
    with pytest.raises(ValueError, match="probabilities must be at least 1e-308"):
        fs.chi_square(fs.binary_randomized_response(800.0))
    w = fs.Randomizer(DYADIC)
    with pytest.raises(ValueError, match=r"pi must be in \[0, 1\], got 1.5"):
        fs.fisher_constant(w, 1.5)
    with pytest.raises(ValueError, match=r"pi must be in \[0, 1\], got nan"):
        fs.mixture_fisher_constant(w, math.nan)
    with pytest.raises(ValueError, match=r"pair must be two different inputs, got \(1, 1\)"):
        fs.fisher_constant(w, 0.5, pair=(1, 1))
    with pytest.raises(ValueError, match=r"pair\[1\] must be <= 1, got 2"):
        fs.chi_square(w, pair=(0, 2))
    with pytest.raises(TypeError, match="pair must be two inputs"):
        fs.worst_fisher_constant(w, pair="01")
    with pytest.raises(TypeError, match="randomizer must be a Randomizer, got list"):
        fs.fisher_constant(DYADIC, 0.5)
