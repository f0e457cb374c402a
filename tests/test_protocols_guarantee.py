"""The guarantee of a protocol is what the profile functions say of each budget."""

import json
import math

import numpy as np
import pytest

import fastshuffle as fs
from fastshuffle.protocols import BudgetGroup, Guarantee, estimate_frequencies, estimate_mean

BUDGETS = np.array([0.5, 2.0, 0.5, 1.0] * 100)
SIZES = {0.5: 200, 1.0: 100, 2.0: 100}
DELTA = 1e-6


def run(mechanism, epsilon0=BUDGETS, **options):
    rng = np.random.default_rng(1)
    if mechanism in ("rr", "laplace", "piecewise"):
        values = np.linspace(0.0, 1.0, 400)
        return estimate_mean(
            values, epsilon0, low=0, high=1, rng=rng, mechanism=mechanism, **options
        )
    values = np.arange(400) % 5
    return estimate_frequencies(values, epsilon0, domain=5, rng=rng, mechanism=mechanism, **options)


RANDOMIZERS = {
    "rr": fs.binary_randomized_response,
    "laplace": lambda epsilon0: fs.laplace(epsilon0, 9),
    "krr": lambda epsilon0: fs.k_randomized_response(epsilon0, 5),
    "oue": lambda epsilon0: fs.optimized_unary_encoding(epsilon0, 5),
    "olh": lambda epsilon0: fs.optimized_local_hashing(epsilon0, 5),
    "hadamard": lambda epsilon0: fs.hadamard_response(epsilon0, 5),
    "subset": lambda epsilon0: fs.subset_selection(epsilon0, 5),
}


@pytest.mark.parametrize("mechanism", RANDOMIZERS)
def test_each_user_hides_among_those_of_the_same_budget(mechanism):
    guarantee = run(mechanism).guarantee
    expected = {
        epsilon0: fs.worst_case_profile(RANDOMIZERS[mechanism](epsilon0), size).epsilon(DELTA)
        for epsilon0, size in SIZES.items()
    }
    epsilons = guarantee.epsilons(DELTA)
    assert epsilons.tolist() == [expected[epsilon0] for epsilon0 in BUDGETS.tolist()]
    assert guarantee.epsilon(DELTA) == max(expected.values())
    assert guarantee.user(1).epsilon(DELTA) == expected[2.0]
    assert guarantee.epsilon0 == 2.0
    assert guarantee.delta0 == 0.0
    assert guarantee.validity is fs.Validity.UPPER_BOUND
    assert "hides among the users of the same budget" in guarantee.view
    assert all(epsilon < epsilon0 for epsilon0, epsilon in expected.items())


def test_piecewise_is_bounded_by_the_blanket_of_its_ends():
    """Against the mechanism at nine inputs as a matrix, all pairs of inputs."""
    guarantee = run("piecewise", 1.0).guarantee
    z = math.exp(0.5)
    reach = (z + 1) / (z - 1)
    inputs = np.linspace(-1.0, 1.0, 9)[:, np.newaxis]
    left = (reach + 1) / 2 * inputs - (reach - 1) / 2
    edges = np.unique(np.round([-reach, reach, *left.flat, *(left + reach - 1).flat], 12))
    middle = (edges[1:] + edges[:-1]) / 2
    inside = (left < middle) & (middle < left + reach - 1)
    density = np.where(inside, z, 1 / z) * (z - 1) / (2 * z + 2)
    rows = density * np.diff(edges)
    rows[:, -1] += 1.0 - rows.sum(axis=1)
    matrix = fs.Randomizer(rows)
    for epsilon in (0.02, 0.1, 0.3):
        bound = fs.blanket_profile(matrix, 400).delta(epsilon)
        np.testing.assert_allclose(guarantee.delta(epsilon), bound, rtol=2e-3, atol=0)
    assert guarantee.epsilon(DELTA) < fs.clone_profile(1.0, 400).epsilon(DELTA)
    assert guarantee.delta(1.0) == 0.0


def test_one_budget_hides_among_all():
    guarantee = run("rr", 1.0).guarantee
    profile = fs.worst_case_profile(fs.binary_randomized_response(1.0), 400)
    assert guarantee.epsilon(DELTA) == profile.epsilon(DELTA)
    assert guarantee.delta(0.1) == profile.delta(0.1)
    assert guarantee.n == 400
    assert "hides among all" in guarantee.view


def test_one_user_has_the_local_guarantee():
    result = estimate_mean([0.3], 1.5, low=0, high=1, rng=np.random.default_rng(1))
    assert result.guarantee.epsilon(0.0) == 1.5
    assert result.n == 1
    # chance of a right bit is e / (1 + e) with e = exp(1.5), so delta(0) is (e - 1) / (e + 1)
    np.testing.assert_allclose(result.guarantee.delta(0.0), math.tanh(0.75), rtol=1e-6, atol=0)


@pytest.mark.parametrize("mechanism", ["rr", "krr"])
def test_json_states_local_and_central(mechanism):
    result = run(mechanism)
    content = json.loads(json.dumps(result.to_dict(delta=DELTA), allow_nan=False))
    guarantee = content["guarantee"]
    assert guarantee["local"] == {"epsilon": 2.0, "delta": 0.0}
    assert guarantee["central"] == {"epsilon": result.guarantee.epsilon(DELTA), "delta": DELTA}
    assert guarantee["relation"] == "replace-one, n known"
    assert [group["users"] for group in guarantee["groups"]] == list(SIZES.values())
    assert content["n"] == 400
    assert content["clipped"] == 0
    assert content["target"].endswith("of all users")


def test_guarantee_refuses_groups_without_their_users():
    profile = fs.worst_case_profile(fs.binary_randomized_response(1.0), 2)
    with pytest.raises(ValueError, match=r"groups must be one or more, got none"):
        Guarantee([], [], view="bits")
    with pytest.raises(ValueError, match=r"groups must have the users of group_of, \[1, 1\]"):
        Guarantee([BudgetGroup(1.0, 2, profile)], [0, 1], view="bits")
    guarantee = Guarantee([BudgetGroup(1.0, 2, profile)], [0, 0], view="bits")
    with pytest.raises(ValueError, match="i must be <= 1, got 2"):
        guarantee.user(2)
    with pytest.raises(ValueError, match=r"delta must be in \[0, 1\]"):
        guarantee.epsilon(1.5)


def test_the_weakest_profile_decides_the_validity():
    rr = fs.binary_randomized_response(1.0)
    experiment = fs.ShuffleExperiment(rr, 10, k=3)
    exact = BudgetGroup(1.0, 1, fs.exact_profile(experiment))
    limit = BudgetGroup(1.0, 1, fs.gaussian_profile(experiment))
    assert Guarantee([exact], [0], view="bits").validity is fs.Validity.EXACT
    assert Guarantee([exact, limit], [0, 1], view="bits").validity is fs.Validity.APPROXIMATION


@pytest.mark.parametrize(
    ("epsilon0", "words"),
    [
        (0.0, "epsilon0 must be in \\[1e-100, 1e100\\], got 0.0"),
        (math.inf, "epsilon0 must be in \\[1e-100, 1e100\\], got inf"),
        (math.nan, "epsilon0 must be in \\[1e-100, 1e100\\], got nan"),
        (-1.0, "epsilon0 must be in \\[1e-100, 1e100\\], got -1.0"),
        ([1.0] * 399 + [0.0], "epsilon0 must be in \\[1e-100, 1e100\\], got 0.0 at index 399"),
        ([1.0, 2.0], "epsilon0 must be one number, or one for each of 400 users"),
        ([], "epsilon0 must be one number, or one for each of 400 users"),
    ],
)
@pytest.mark.parametrize("mechanism", ["rr", "krr"])
def test_budgets_outside_their_domain(mechanism, epsilon0, words):
    with pytest.raises(ValueError, match=words):
        run(mechanism, epsilon0)


@pytest.mark.parametrize("mechanism", ["laplace", "krr"])
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"weights": "equal"}, "weights must be 'users' or 'precision', got 'equal'"),
        ({"confidence": 0.2}, "confidence must be in"),
    ],
)
def test_options_outside_their_domain(mechanism, options, words):
    with pytest.raises(ValueError, match=words):
        run(mechanism, **options)
    with pytest.raises(ValueError, match="mechanism must be one of"):
        run(f"{mechanism}s")


def test_seeds_are_refused():
    with pytest.raises(TypeError, match="rng must be a numpy.random.Generator"):
        estimate_mean([0.5], 1.0, low=0, high=1, rng=1)
    with pytest.raises(TypeError, match="rng must be a numpy.random.Generator"):
        estimate_frequencies([0], 1.0, domain=2, rng=1)
