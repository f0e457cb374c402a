"""Universal bounds: stored values, every dataset by brute force, and what they refuse."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

import fastshuffle as fs
from validation.bounds import largest_deltas

pytestmark = pytest.mark.filterwarnings("ignore::fastshuffle.DeltaWarning")

STORED = json.loads((Path(__file__).parent / "data" / "bounds.json").read_text())
RTOL = 1e-6
SHARES = (0.0, 0.1, 0.4, 0.8)


def drawn(seed):
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(rng.integers(2, 5), 2.0), rng.integers(2, 4))
    if seed % 2:
        rows = 0.3 * rows + 0.7 * rows.mean(axis=0)
    return fs.Randomizer(rows / rows.sum(axis=1, keepdims=True)), int(rng.integers(1, 7))


def parameters(randomizer):
    """Return the variation-ratio parameters of the pair (0, 1)."""
    rows = randomizer.matrix
    p = max((rows[0] / rows[1]).max(), (rows[1] / rows[0]).max()) * (1.0 + 1e-14)
    q = max((rows[:2] / row).max() for row in rows) * (1.0 + 1e-14)
    beta = min(0.5 * np.abs(rows[0] - rows[1]).sum(), (p - 1.0) / (p + 1.0))
    return float(p), float(beta), float(q)


def clones_by_conditioning(epsilon0, n, epsilon, chance=None):
    """Return the clone bound as a sum over the number of clones, each with all outcomes."""
    chance = math.exp(-epsilon0) if chance is None else chance
    flip = math.exp(-epsilon0) / (1.0 + math.exp(-epsilon0))
    keep = 1.0 / (1.0 + math.exp(-epsilon0))
    total = 0.0
    for c in range(min(n - 1, 120) + 1):
        weight = math.comb(n - 1, c) * chance**c * (1.0 - chance) ** (n - 1 - c)
        ones = np.array([math.comb(c, i) / 2.0**c for i in range(c + 1)])
        p = np.convolve(ones, [flip, keep])
        q = np.convolve(ones, [keep, flip])
        total += weight * float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())
    return total


# ---- Stored values and points from the field ---------------------------------------------------


@pytest.mark.parametrize("entry", STORED["clones"], ids=lambda e: f"n={e['n']}")
def test_stored_clones(entry):
    profile = fs.clone_profile(entry["eps0"], entry["n"], rtol=RTOL)
    for direction in ("forward", "reverse"):
        for epsilon, text in entry[direction]:
            value, truth = profile.delta(epsilon, direction=direction), float(text)
            assert truth * (1.0 - 1e-14) <= value <= truth * (1.0 + RTOL)


@pytest.mark.parametrize("entry", STORED["blanket"], ids=lambda e: f"n={e['n']}")
def test_stored_blankets(entry):
    w = fs.Randomizer(entry["W"])
    profile = fs.blanket_profile(w, entry["n"], pair=entry["pair"], rtol=RTOL)
    for epsilon, text in entry["delta"]:
        value, truth = profile.delta(epsilon, direction="forward"), float(text)
        other = profile.delta(epsilon, direction="reverse")
        assert value >= truth * (1.0 - 1e-14) or other >= truth * (1.0 - 1e-14)
        # the stored direction is P = W_a or W_b: one of the two must be it
        assert min(abs(value - truth), abs(other - truth)) <= RTOL * truth


@pytest.mark.parametrize(
    ("n", "delta", "epsilon"), [(50, 1e-5, 0.824601160237), (100, 1e-6, 0.643688895335)]
)
def test_clone_points_of_the_field(n, delta, epsilon):
    """Case 1: a chunked sum forgot the mass it did not visit."""
    value = fs.clone_profile(1.0, n).epsilon(delta)
    assert epsilon * (1.0 - 1e-11) <= value <= epsilon * (1.0 + 1e-6)


@pytest.mark.parametrize(
    ("epsilon0", "claimed", "truth"), [(6.0, 5.0919, 5.4262), (1.0, 0.102822, 0.102893)]
)
def test_no_reduction_below_the_third_input(epsilon0, claimed, truth):
    """Case 36: k-RR, k = 10, n = 1000, delta = 1e-8, the others all at a third input."""
    krr = fs.k_randomized_response(epsilon0, 10)
    worst = fs.worst_case_profile(krr, 1000, rtol=RTOL).epsilon(1e-8)
    attained = fs.exact_profile(
        fs.ShuffleExperiment(krr, 1000, others={2: 999}), rtol=RTOL
    ).epsilon(1e-8)
    assert claimed < attained
    assert abs(attained - truth) < 1e-4 if epsilon0 > 1 else abs(attained - truth) < 1e-6
    e = math.exp(epsilon0)
    for profile in (
        fs.blanket_profile(krr, 1000),
        fs.chernoff_profile(krr, 1000),
        fs.clone_profile(epsilon0, 1000),
        fs.stronger_clone_profile(krr, 1000),
        fs.variation_ratio_profile(e, (e - 1.0) / (e + 9.0), e, 1000),
    ):
        assert profile.epsilon(1e-8) >= attained * (1.0 - 1e-6)
    assert worst >= attained * (1.0 - 1e-6)


def test_accuracy_is_relative_to_delta():
    """Case 38: an absolute accuracy of delta left 0.01589 where 0.01956 is right."""
    rr = fs.binary_randomized_response(1.0)
    exact = fs.exact_profile(fs.ShuffleExperiment(rr, 10**5, k=0)).epsilon(1e-12)
    assert abs(exact - 0.01956) < 1e-5
    for profile in (
        fs.blanket_profile(rr, 10**5),
        fs.clone_profile(1.0, 10**5),
        fs.stronger_clone_profile(rr, 10**5),
    ):
        assert exact <= profile.epsilon(1e-12) < math.inf


@pytest.mark.parametrize("delta", [1e-30, 1e-111, 1e-250])
def test_tiny_deltas_are_not_clipped(delta):
    """Case 41: a lower bound clipped up to 1e-11."""
    rr = fs.binary_randomized_response(1.0)
    profile = fs.blanket_profile(rr, 10**4, rtol=RTOL)
    epsilon = profile.epsilon(delta)
    value = profile.delta(epsilon)
    assert delta * (1.0 - 2.0 * RTOL) <= value <= delta


# Case 4 of the field: large epsilon0.


@pytest.mark.parametrize("epsilon0", [4, 7, 9, 11, 12, 16, 20, 40])
@pytest.mark.parametrize("n", [200, 301, 1000])
def test_clones_at_large_epsilon0(epsilon0, n):
    profile = fs.clone_profile(float(epsilon0), n, rtol=1e-3)
    for epsilon in (0.1, 0.5 * epsilon0):
        truth = clones_by_conditioning(epsilon0, n, epsilon)
        assert truth * (1.0 - 1e-11) <= profile.delta(epsilon) <= truth * (1.0 + 1.1e-3)


@pytest.mark.parametrize(
    "epsilon0", [40.0, 50.0, 100.0, 400.0, 700.0, 709.0, 710.0, 745.0, 800.0, 1000.0]
)
@pytest.mark.parametrize("n", [2, 1000, 10**9])
def test_huge_epsilon0(epsilon0, n):
    """Nobody hides: epsilon is epsilon0 + log(1 - delta), for n well below exp(epsilon0)."""
    krr = fs.k_randomized_response(epsilon0, 5)
    for profile in (
        fs.clone_profile(epsilon0, n),
        fs.blanket_profile(krr, n),
        fs.chernoff_profile(krr, n),
        fs.stronger_clone_profile(krr, n),
    ):
        value = profile.epsilon(1e-6)
        assert epsilon0 - 2e-6 <= value <= epsilon0
        assert profile.delta(epsilon0) == 0.0
        assert 1.0 - 1e-6 <= profile.delta(0.5 * epsilon0) <= 1.0


@pytest.mark.parametrize("n", [1, 2, 1000, 10**9])
def test_epsilon0_of_0(n):
    krr = fs.k_randomized_response(0.0, 5)
    for profile in (
        fs.clone_profile(0.0, n),
        fs.blanket_profile(krr, n),
        fs.chernoff_profile(krr, n),
        fs.stronger_clone_profile(krr, n),
        fs.variation_ratio_profile(1.0, 0.0, 1.0, n),
        fs.worst_case_profile(krr, n),
    ):
        assert profile.delta([0.0, 0.1, math.inf]).max() == 0.0
        assert profile.epsilon(0.0) == profile.epsilon(1e-300) == 0.0


@pytest.mark.parametrize("epsilon0", [1e-3, 1e-6, 1e-9, 1e-12])
def test_clones_at_small_epsilon0(epsilon0):
    """delta(0) is tanh(epsilon0 / 2) times the mean of the largest mass of the clones."""
    n = 400
    chance = math.exp(-epsilon0)
    mode = math.fsum(
        math.comb(n - 1, c) * chance**c * (-math.expm1(-epsilon0)) ** (n - 1 - c)
        * math.comb(c, c // 2) / 2.0**c
        for c in range(n)
    )  # fmt: skip
    truth = math.tanh(0.5 * epsilon0) * mode
    value = fs.clone_profile(epsilon0, n, rtol=RTOL).delta(0.0)
    assert truth * (1.0 - 1e-12) <= value <= truth * (1.0 + 2.0 * RTOL)


# ---- Against every dataset ----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(24))
def test_no_dataset_lies_above(seed):
    w, n = drawn(seed)
    epsilons = [share * w.epsilon0 for share in SHARES]
    found = largest_deltas(w.matrix, n, epsilons)
    profiles = [
        fs.blanket_profile(w, n),
        fs.chernoff_profile(w, n),
        fs.clone_profile(w.epsilon0, n),
        fs.worst_case_profile(w, n),
    ]
    try:
        profiles.append(fs.stronger_clone_profile(w, n))
    except ValueError as error:
        assert "exp(epsilon0) + 1" in str(error)  # noqa: PT017 - most are not of its class
    for epsilon, (low, _, _) in zip(epsilons, found, strict=True):
        for profile in profiles:
            assert profile.delta(epsilon) >= low
    for pair in ((0, 1), (1, 0)):
        of_pair = largest_deltas(w.matrix, n, epsilons, [pair])
        variation_ratio = fs.variation_ratio_profile(*parameters(w), n)
        blanket = fs.blanket_profile(w, n, pair=pair)
        chernoff = fs.chernoff_profile(w, n, pair=pair)
        for epsilon, (low, _, _) in zip(epsilons, of_pair, strict=True):
            assert variation_ratio.delta(epsilon) >= low
            assert blanket.delta(epsilon, direction="forward") >= low
            assert chernoff.delta(epsilon) >= blanket.delta(epsilon) * (1.0 - 1e-3)


@pytest.mark.parametrize(("epsilon0", "k", "n"), [(1.0, 3, 6), (2.0, 5, 8), (3.0, 4, 6)])
def test_no_dataset_of_k_ary_response_lies_above(epsilon0, k, n):
    krr = fs.k_randomized_response(epsilon0, k)
    e = math.exp(epsilon0)
    epsilons = [share * epsilon0 for share in SHARES]
    found = largest_deltas(krr.merged_rows(range(k)), n, epsilons, [(0, 1)])
    profiles = {
        "blanket": fs.blanket_profile(krr, n),
        "chernoff": fs.chernoff_profile(krr, n),
        "clone": fs.clone_profile(epsilon0, n),
        "stronger": fs.stronger_clone_profile(krr, n),
        "ratio": fs.variation_ratio_profile(e, (e - 1.0) / (e + k - 1.0), e, n),
    }
    for epsilon, (low, _, _) in zip(epsilons, found, strict=True):
        values = {name: profile.delta(epsilon) for name, profile in profiles.items()}
        assert min(values.values()) >= low
        assert values["chernoff"] >= values["blanket"]
        assert values["clone"] >= values["stronger"]
        assert values["stronger"] * (1.0 + 1e-5) >= values["blanket"] / (1.0 + 1e-3)


def test_published_reduction_of_k_ary_response_is_below_the_truth():
    """n = 8, k = 5, epsilon0 = 2, epsilon = 1: .0948147 claimed, .1019404 true."""
    e = math.exp(2.0)
    krr = fs.k_randomized_response(2.0, 5)
    rows = krr.merged_rows(range(5))
    ((low, high, _),) = largest_deltas(rows, 8, [1.0], [(0, 1)])
    third = fs.exact_profile(fs.ShuffleExperiment(krr, 8, others={2: 7}), rtol=RTOL)
    assert abs(third.delta(1.0) - 0.1019404) < 1e-7
    assert low <= third.bounds(1.0)[1]
    assert high >= third.bounds(1.0)[0]
    # the pair (p, 1) / (e + 4) and its mirror, all else of the differing user merged with all
    # else of the others, who send either clone with chance 1 / (e + 4)
    published = np.array([[1.0, e, 3.0], [e, 1.0, 3.0], [1.0, 1.0, e + 2.0]]) / (e + 4.0)
    laws = largest_deltas(published, 8, [1.0], [(0, 1)])
    profile = fs.exact_profile(
        fs.ShuffleExperiment(fs.Randomizer(published), 8, others={2: 7}), rtol=RTOL
    )
    assert abs(profile.delta(1.0) - 0.0948147) < 1e-7
    assert laws[0].high >= 0.0948147
    ours = fs.variation_ratio_profile(e, (e - 1.0) / (e + 4.0), e, 8).delta(1.0)
    assert ours >= high


def test_stronger_clones_refuse_what_is_outside_their_class():
    # a third input that sends one of the clones less often than the class asks for
    outside = fs.Randomizer([[0.7, 0.2, 0.1], [0.2, 0.7, 0.1], [0.25, 0.25, 0.5]])
    inside = fs.k_randomized_response(1.0, 7)
    fs.stronger_clone_profile(inside, 10)
    with pytest.raises(ValueError, match=r"exp\(epsilon0\) \+ 1"):
        fs.stronger_clone_profile(outside, 10)
    with pytest.raises(ValueError, match="finite epsilon0"):
        fs.stronger_clone_profile(fs.Randomizer([[0.5, 0.5], [0.0, 1.0]]), 10)


@pytest.mark.parametrize("seed", range(200))
def test_accepted_by_the_stronger_clones_is_inside_the_class(seed):
    """The condition, written out over all inputs and outputs."""
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(3, 5.0), 3)
    rows = 0.2 * rows + 0.8 * rows.mean(axis=0) if seed % 2 else rows
    w = fs.Randomizer(rows / rows.sum(axis=1, keepdims=True))
    flip = 1.0 / (math.exp(w.epsilon0) + 1.0)
    inside = all(
        (w.matrix[z] >= (w.matrix[a] + w.matrix[b]) * flip * (1.0 - 1e-11)).all()
        for a in range(3) for b in range(a) for z in range(3)
    )  # fmt: skip
    try:
        fs.stronger_clone_profile(w, 3)
    except ValueError:
        assert not inside
    else:
        assert inside


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
def test_distance_is_the_distance_itself(share):
    """A larger beta may give a smaller bound: a documented upper bound would not be one."""
    p, n, epsilon = 2.0, 100, 0.3
    largest = fs.variation_ratio_profile(p, (p - 1.0) / (p + 1.0), p, n).delta(epsilon)
    smaller = fs.variation_ratio_profile(p, share * (p - 1.0) / (p + 1.0), p, n).delta(epsilon)
    assert smaller > largest
    text = fs.variation_ratio_profile.__doc__
    assert "upper bound on the total variation" not in text


# ---- Input --------------------------------------------------------------------------------------

W = fs.Randomizer([[0.5, 0.3, 0.2], [0.2, 0.35, 0.45], [0.3, 0.3, 0.4]])
PROFILES = {
    "blanket": lambda n=10, **options: fs.blanket_profile(W, n, **options),
    "chernoff": lambda n=10, **options: fs.chernoff_profile(W, n, **options),
    "clone": lambda n=10, **options: fs.clone_profile(1.0, n, **options),
    "stronger": lambda n=10, **options: fs.stronger_clone_profile(
        fs.k_randomized_response(1.0, 3), n, **options
    ),
    "ratio": lambda n=10, **options: fs.variation_ratio_profile(2.0, 0.2, 2.0, n, **options),
    "worst": lambda n=10, **options: fs.worst_case_profile(W, n, **options),
}


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize(
    ("n", "error"),
    [
        (0, ValueError), (-1, ValueError), (2.9, TypeError), (math.nan, TypeError),
        (math.inf, TypeError), (2**53 + 2, ValueError), ("10", TypeError), (None, TypeError),
        (True, TypeError),
    ],
)  # fmt: skip
def test_bad_n(name, n, error):
    with pytest.raises(error, match="n must be"):
        PROFILES[name](n)


@pytest.mark.parametrize("name", [name for name in PROFILES if name != "chernoff"])
@pytest.mark.parametrize(
    ("rtol", "error"),
    [
        (0.0, ValueError), (1e-10, ValueError), (0.6, ValueError), (math.nan, ValueError),
        (-1e-3, ValueError), (math.inf, ValueError), ("1e-3", TypeError),
    ],
)  # fmt: skip
def test_bad_rtol(name, rtol, error):
    with pytest.raises(error, match="rtol must be"):
        PROFILES[name](rtol=rtol)


@pytest.mark.parametrize(
    ("epsilon0", "error"),
    [
        (-1.0, ValueError), (math.inf, ValueError), (math.nan, ValueError), ("1", TypeError),
        (None, TypeError), (1j, TypeError),
    ],
)  # fmt: skip
def test_bad_epsilon0(epsilon0, error):
    with pytest.raises(error, match="epsilon0 must be"):
        fs.clone_profile(epsilon0, 10)


@pytest.mark.parametrize("name", ["blanket", "chernoff"])
@pytest.mark.parametrize(
    ("pair", "error"),
    [
        ((0, 0), ValueError), ((0, 3), ValueError), ((-1, 0), ValueError), ((0.5, 1), TypeError),
        ((0,), (TypeError, ValueError)), ((0, 1, 2), (TypeError, ValueError)), (5, TypeError),
        ("01", TypeError),
    ],
)  # fmt: skip
def test_bad_pair(name, pair, error):
    with pytest.raises(error, match="pair"):
        PROFILES[name](pair=pair)


@pytest.mark.parametrize(
    ("p", "beta", "q", "name"),
    [
        (0.9, 0.0, 2.0, "p"), (math.nan, 0.1, 2.0, "p"), (2.0, 0.34, 2.0, "beta"),
        (2.0, -0.1, 2.0, "beta"), (2.0, math.nan, 2.0, "beta"), (1.0, 0.1, 2.0, "beta"),
        (2.0, 0.2, 0.9, "q"), (2.0, 0.2, math.inf, "q"), (2.0, 0.2, math.nan, "q"),
        (2.0, 1.0 / 3.0, 1.0, "q"), (math.inf, 0.9, 1.5, "q"),
    ],
)  # fmt: skip
def test_bad_parameters(p, beta, q, name):
    with pytest.raises(ValueError, match=f"^{name} must be"):
        fs.variation_ratio_profile(p, beta, q, 10)


def test_one_input_or_no_randomizer():
    for function in (
        fs.blanket_profile,
        fs.chernoff_profile,
        fs.stronger_clone_profile,
        fs.worst_case_profile,
    ):
        with pytest.raises(ValueError, match="at least 2 inputs"):
            function(fs.Randomizer([[0.5, 0.5]]), 10)
        with pytest.raises(TypeError, match="Randomizer"):
            function([[0.5, 0.5], [0.2, 0.8]], 10)


@pytest.mark.parametrize("name", PROFILES)
def test_validity_and_edges(name):
    profile = PROFILES[name]()
    assert profile.validity is fs.Validity.UPPER_BOUND
    assert profile.epsilon(1.0) == 0.0
    assert profile.delta(profile.epsilon(0.0)) == 0.0
    assert profile.delta(math.inf) == 0.0
    assert profile.n == 10
    lower, upper = profile.bounds([0.0, 0.1, 5.0])
    assert (lower <= upper).all()
    assert json.loads(profile.to_json(epsilon=[0.0, 0.1], delta=[0.01]))


def test_infinite_ratio():
    """p = inf: one input sends what the other never does, and the clones carry it."""
    w = fs.Randomizer([[0.5, 0.0, 0.5], [0.0, 0.5, 0.5], [0.25, 0.25, 0.5]])
    profile = fs.variation_ratio_profile(math.inf, 0.5, 2.0, 5)
    for direction in ("forward", "reverse"):
        for epsilon in (0.0, 0.5, 3.0):
            ((low, _, _),) = largest_deltas(w.matrix[[0, 1, 2]], 5, [epsilon], [(0, 1)])
            third = fs.exact_profile(fs.ShuffleExperiment(w, 5, others={2: 4}))
            assert profile.delta(epsilon, direction=direction) >= third.bounds(epsilon)[0]
            assert low <= 1.0
