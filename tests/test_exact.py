"""The exact profile of one experiment: stored values, references, symmetries and edges."""

import json
import math
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from mpmath import mp, mpf
from numpy.testing import assert_allclose

from fastshuffle import (
    DeltaWarning,
    Randomizer,
    ShuffleExperiment,
    Validity,
    binary_randomized_response,
    exact_profile,
)
from tests.laws import EXTREME_DIGITS, assert_log_close, profile, randomizer
from tests.tolerances import (
    DOZEN_ROUNDINGS,
    FEW_ROUNDINGS,
    LOG_PER_EXPONENT,
    STATED,
    STATED_DIVERGENCE,
)
from validation.reference import mp as reference
from validation.reference.mp import Complement

STORED = json.loads((Path(__file__).parent / "data" / "finite_n_binary.json").read_text())["binary"]
DIRECTIONS = ("forward", "reverse")


def stored_id(entry):
    return f"n={entry['n']}-k={entry['k']}-p0={entry['p0']:.3g}-p1={entry['p1']:.3g}"


def of_entry(entry):
    return profile((entry["p0"], entry["p1"]), [entry["n"] - 1 - entry["k"], entry["k"]])


@pytest.mark.parametrize("entry", STORED, ids=stored_id)
class TestStored:
    @pytest.mark.parametrize("direction", DIRECTIONS)
    def test_delta(self, entry, direction):
        curve = of_entry(entry)
        for epsilon, truth in entry[f"delta_{direction}"]:
            value, expected = curve.delta(epsilon, direction=direction), float(truth)
            if expected == 0.0 or value == 0.0:
                # at the largest loss the last bit of the loss decides between 0 and little
                least = curve.delta(epsilon * (1.0 + 2.0**-50), direction=direction)
                most = curve.delta(epsilon * (1.0 - 2.0**-50), direction=direction)
                assert least <= expected <= most
                continue
            assert_allclose(value, expected, rtol=STATED_DIVERGENCE, atol=0)
            lower, upper = curve.bounds(epsilon, direction=direction)
            assert lower <= expected <= upper
            assert upper <= lower * (1.0 + 1e-11) or epsilon > 0.99 * curve.epsilon(0.0)

    def test_epsilon(self, entry):
        curve = of_entry(entry)
        for delta, truth in entry["epsilon"]:
            with pytest.warns(DeltaWarning) if delta * entry["n"] >= 1.0 else nullcontext():
                value = curve.epsilon(delta)
            assert_allclose(value, float(truth), rtol=STATED_DIVERGENCE, atol=0)

    def test_trade_off(self, entry):
        curve = of_entry(entry)
        for alpha, truth in entry["beta"]:
            value = curve.trade_off(alpha, direction="forward")
            assert_allclose(value, float(truth), rtol=STATED_DIVERGENCE, atol=0)

    def test_divergences(self, entry):
        curve = of_entry(entry)
        values = {
            "jsd": curve.jensen_shannon(),
            "kl_forward": curve.kl(direction="forward"),
            "kl_reverse": curve.kl(direction="reverse"),
            "tv": curve.total_variation(),
        }
        for name, value in values.items():
            assert_allclose(value, float(entry[name]), rtol=STATED_DIVERGENCE, atol=0, err_msg=name)
        for order, truth in entry["renyi_forward"]:
            value = curve.renyi(order, direction="forward")
            assert_allclose(value, float(truth), rtol=STATED_DIVERGENCE, atol=0, err_msg=str(order))


# ---- Any others and any pair -----------------------------------------------------------------

FOUR = (0.3, 0.45, 0.01, Complement(1e-9))


@pytest.mark.parametrize("pair", [(0, 1), (1, 0), (2, 0), (3, 2), (1, 3)], ids=str)
@pytest.mark.parametrize("others", [(0, 0, 0, 0), (0, 0, 9, 8), (11, 0, 20, 3), (40, 25, 30, 5)])
def test_pairs_and_others(pair, others):
    """The differing user holds pair[0] under Q; the others may hold neither of the two."""
    curve = profile(FOUR, others, pair)
    groups = list(zip(others, FOUR, strict=True))
    law_a, law_b = FOUR[pair[0]], FOUR[pair[1]]
    for direction in DIRECTIONS:
        for epsilon in (0.0, 0.02, 0.3, 1.7):
            truth = reference.delta(groups, law_a, law_b, epsilon, direction)
            assert_log_close(curve.log_delta(epsilon, direction=direction), truth)
        truth = reference.kl(groups, law_a, law_b, direction)
        value = curve.kl(direction=direction)
        assert_allclose(value, float(truth), rtol=STATED_DIVERGENCE, atol=0)
    for alpha in (0.01, 0.4):
        truth = reference.trade_off(groups, law_a, law_b, alpha)
        value = curve.trade_off(alpha, direction="forward")
        assert_allclose(value, float(truth), rtol=STATED, atol=0)


@pytest.mark.parametrize("n_inputs", [5, 60, 200])
def test_many_different_inputs(n_inputs):
    rng = np.random.default_rng(n_inputs)
    laws = [0.2, 0.5, 0.0, 1.0, *(rng.random(n_inputs - 4) ** 4).tolist()]
    others = [1 + x % 2 for x in range(n_inputs)]
    curve = profile(laws, others)
    groups = list(zip(others, laws, strict=True))
    for direction in DIRECTIONS:
        for epsilon in (0.0, 0.05, 0.2):
            truth = reference.delta(groups, 0.2, 0.5, epsilon, direction, 30)
            assert_log_close(curve.log_delta(epsilon, direction=direction), truth)
        epsilon = curve.epsilon(1e-7, direction=direction)
        truth = reference.epsilon(groups, 0.2, 0.5, 1e-7, direction, 30)
        assert_allclose(epsilon, float(truth), rtol=STATED, atol=0)
    truth = reference.jensen_shannon(groups, 0.2, 0.5, 30)
    assert_allclose(curve.jensen_shannon(), float(truth), rtol=STATED_DIVERGENCE, atol=0)


@pytest.mark.parametrize("laws", [(0.2, 0.5), (0.7, 0.1), (0.0, 0.3), (1e-30, 0.4)], ids=str)
@pytest.mark.parametrize(("n", "k"), [(1, 0), (2, 1), (40, 0), (41, 7), (300, 299)])
def test_case_03_symmetries(laws, n, k):
    """Swapping the inputs, or relabelling the outputs, of an asymmetric channel."""
    curve = profile(laws, (n - 1 - k, k))
    swapped = profile(laws[::-1], (k, n - 1 - k))
    exchanged = profile(laws, (n - 1 - k, k), (1, 0))
    relabelled = exact_profile(
        ShuffleExperiment(Randomizer(randomizer(*laws).matrix[:, ::-1].copy()), n, k=k)
    )
    epsilons = np.array([0.0, 0.01, 0.1, 0.5, 1.0, 3.0, math.inf])
    forward = curve.log_delta(epsilons, direction="forward")
    reverse = curve.log_delta(epsilons, direction="reverse")
    assert not np.array_equal(forward, reverse)
    assert_allclose(swapped.log_delta(epsilons, direction="reverse"), forward, rtol=0, atol=0)
    assert_allclose(swapped.log_delta(epsilons, direction="forward"), reverse, rtol=0, atol=0)
    assert_allclose(exchanged.log_delta(epsilons, direction="reverse"), forward, rtol=0, atol=0)
    assert_allclose(relabelled.log_delta(epsilons, direction="forward"), forward, rtol=0, atol=0)
    both = curve.log_delta(epsilons)
    assert both.tolist() == np.maximum(forward, reverse).tolist()
    for order in (0.5, 1.0, 2.0):
        assert_allclose(
            swapped.renyi(order, direction="reverse"), curve.renyi(order, direction="forward"),
            rtol=DOZEN_ROUNDINGS, atol=0,
        )  # fmt: skip


# ---- Divergences -----------------------------------------------------------------------------

ORDERS = (0.1, 0.5, 0.9, 1.0 - 1e-8, 1.0, 1.0 + 1e-8, 2.0, 8.0, 1000.0, math.inf)


@pytest.mark.parametrize("laws", [(0.2, 0.6), (0.19, 1.0), (1e-9, 0.7), (0.9, 0.004)], ids=str)
@pytest.mark.parametrize(("n", "k"), [(1, 0), (2, 0), (4, 0), (50, 16), (50, 49)])
def test_divergences_of_few_users(laws, n, k):
    curve = profile(laws, (n - 1 - k, k))
    groups = [(n - 1 - k, laws[0]), (k, laws[1])]
    for direction in DIRECTIONS:
        for order in ORDERS:
            truth = float(reference.renyi(groups, *laws, order, direction))
            value = curve.renyi(order, direction=direction)
            assert_allclose(value, truth, rtol=STATED_DIVERGENCE, atol=0, err_msg=f"{order}")
        truth = float(reference.chi_square(groups, *laws, direction))
        value = curve.chi_square(direction=direction)
        # expm1 of a logarithm: relative in the divergence, absolute in its exponent
        assert_allclose(value, truth, rtol=1e-12, atol=0)
        assert curve.kl(direction=direction) == curve.renyi(1.0, direction=direction)
    truth = float(reference.jensen_shannon(groups, *laws))
    assert_allclose(curve.jensen_shannon(), truth, rtol=STATED_DIVERGENCE, atol=0)
    truth = float(reference.total_variation(groups, *laws))
    assert_allclose(curve.total_variation(), truth, rtol=STATED_DIVERGENCE, atol=0)


@pytest.mark.parametrize(("n", "k"), [(1000, 0), (1000, 333)])
def test_divergences_of_a_thousand_users(n, k):
    laws = (0.2, 0.6)
    curve = profile(laws, (n - 1 - k, k))
    groups = [(n - 1 - k, laws[0]), (k, laws[1])]
    for direction in DIRECTIONS:
        for order in ORDERS:
            truth = float(reference.renyi(groups, *laws, order, direction, 30))
            value = curve.renyi(order, direction=direction)
            assert_allclose(value, truth, rtol=STATED_DIVERGENCE, atol=0, err_msg=f"{order}")
        truth = float(reference.chi_square(groups, *laws, direction, 30))
        value = curve.chi_square(direction=direction)
        assert_allclose(value, truth, rtol=STATED_DIVERGENCE, atol=0)
    truth = float(reference.jensen_shannon(groups, *laws, 30))
    assert_allclose(curve.jensen_shannon(), truth, rtol=STATED_DIVERGENCE, atol=0)


@pytest.mark.parametrize("n", [10**6, 10**15])
def test_case_30_divergences_of_many_users(n):
    """A Jensen-Shannon divergence of 1e-16 is a sum of terms of one sign."""
    laws = (0.2, 0.6)
    curve = profile(laws, (n - 1, 0))
    groups = [(n - 1, laws[0])]
    for direction in DIRECTIONS:
        for order in (0.1, 0.5, 0.9, 1.0, 1.0 + 1e-8, 8.0, 1000.0):
            truth = reference.renyi_large(groups, *laws, order, direction, 15)
            value = curve.renyi(order, direction=direction)
            assert_allclose(value, float(truth), rtol=STATED_DIVERGENCE, atol=0, err_msg=f"{order}")
        truth = float(reference.chi_square_large(groups, *laws, direction, 15))
        assert_allclose(
            curve.chi_square(direction=direction), truth, rtol=STATED_DIVERGENCE, atol=0
        )
        assert_allclose(
            curve.renyi(math.inf, direction=direction),
            math.log(3.0 if direction == "forward" else 2.0),
            rtol=FEW_ROUNDINGS,
            atol=0,
        )
    truth = float(reference.jensen_shannon_large(groups, *laws, 15))
    assert_allclose(curve.jensen_shannon(), truth, rtol=STATED_DIVERGENCE, atol=0)
    truth = float(reference.total_variation_large(groups, *laws, 15))
    assert_allclose(curve.total_variation(), truth, rtol=STATED, atol=0)


def test_divergences_of_a_mixture_of_many_users():
    n, k, laws = 10**12, 10**11, (0.2, 0.6)
    curve = profile(laws, (n - 1 - k, k))
    truth = reference.kl_large([(n - 1 - k, laws[0]), (k, laws[1])], *laws, "reverse", 10)
    assert_allclose(curve.kl(direction="reverse"), float(truth), rtol=1e-11, atol=0)


@pytest.mark.parametrize("epsilon0", [2.0, 30.0, 75.0, 100.0, 700.0, 709.0])
@pytest.mark.parametrize("n", [1, 3])
def test_divergences_of_nearly_disjoint_laws(epsilon0, n):
    """Below order 1 the moment is nearly 0, and 1 - (1 - moment) is not the moment."""
    curve = exact_profile(ShuffleExperiment(binary_randomized_response(epsilon0), n, k=0))
    with mp.workdps(700):
        flip = 1 / (1 + mp.exp(mpf(epsilon0)))
        groups = [(n - 1, flip)]
        for order in (0.25, 0.5, 0.9, 1.0, 2.0):
            truth = float(reference.renyi(groups, flip, 1 - flip, order, "forward", 700))
            value = curve.renyi(order, direction="forward")
            assert_allclose(value, truth, rtol=STATED_DIVERGENCE, atol=0, err_msg=f"{order}")


# ---- Deterministic outputs, one user and no difference ------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 30])
def test_case_11_one_sided_infinite_loss(n):
    """Only input 1 ever sends output 1: a mass of P that Q does not have, and none in reverse."""
    curve = profile((0.0, 0.25), (n - 1, 0))
    groups = [(n - 1, 0.0)]
    for epsilon in (0.0, 0.3, 5.0, 800.0, math.inf):
        assert_allclose(curve.delta(epsilon, direction="forward"), 0.25, rtol=1e-14, atol=0)
        truth = reference.delta(groups, 0.0, 0.25, epsilon, "reverse")
        value = curve.delta(epsilon, direction="reverse")
        if truth == 0:
            assert value == 0.0
        else:
            assert_allclose(value, float(truth), rtol=STATED, atol=0)
    assert curve.delta(math.inf, direction="reverse") == 0.0
    for direction, largest in (("forward", math.inf), ("reverse", -math.log(0.75))):
        assert_allclose(curve.epsilon(0.0, direction=direction), largest, rtol=1e-14, atol=0)
        assert_allclose(curve.renyi(math.inf, direction=direction), largest, rtol=1e-14, atol=0)
        for order in (0.1, 0.5, 0.9, 1.0, 2.0, 40.0):
            truth = float(reference.renyi(groups, 0.0, 0.25, order, direction))
            value = curve.renyi(order, direction=direction)
            if truth == math.inf:
                assert value == truth
            else:
                assert_allclose(value, truth, rtol=STATED_DIVERGENCE, atol=0, err_msg=f"{order}")
    truth = float(reference.jensen_shannon(groups, 0.0, 0.25))
    assert_allclose(curve.jensen_shannon(), truth, rtol=STATED_DIVERGENCE, atol=0)
    assert curve.chi_square(direction="forward") == math.inf


@pytest.mark.parametrize(("n", "k"), [(2, 1), (5, 2), (40, 33)])
def test_case_11_infinite_loss_below_a_background(n, k):
    """All others sending 1 too, the mass without counterpart is small; epsilon is inf below it."""
    laws = (0.0, 0.75)
    curve = profile(laws, (n - 1 - k, k))
    groups = [(n - 1 - k, 0.0), (k, 0.75)]
    floor = 0.75 ** (k + 1)
    assert_allclose(curve.delta(math.inf), floor, rtol=1e-13, atol=0)
    for epsilon in (0.0, 0.1, 1.0, 50.0):
        for direction in DIRECTIONS:
            truth = reference.delta(groups, *laws, epsilon, direction)
            assert_log_close(curve.log_delta(epsilon, direction=direction), truth)
        assert curve.delta(epsilon) >= floor * (1.0 - 1e-13)
    for delta in (0.99 * floor, 1e-12 * floor, 0.0):
        with pytest.warns(DeltaWarning) if delta * n >= 1.0 else nullcontext():
            assert curve.epsilon(delta, direction="forward") == math.inf
    with pytest.warns(DeltaWarning) if 1.01 * floor * n >= 1.0 else nullcontext():
        assert curve.epsilon(1.01 * floor) < math.inf


def test_case_11_two_sided_infinite_loss():
    curve = profile((0.0, 1.0), (0, 0))
    epsilons = np.array([0.0, 1.0, 1e3, math.inf])
    for direction in DIRECTIONS:
        assert curve.delta(epsilons, direction=direction).tolist() == [1.0] * 4
        assert curve.epsilon(0.5 / 2, direction=direction) == math.inf
        for alpha in (0.0, 0.3, 1.0):
            assert curve.trade_off(alpha, direction=direction) == 0.0
        for order in (0.3, 0.5, 1.0 - 1e-8, 1.0, 2.0, math.inf):
            assert curve.renyi(order, direction=direction) == math.inf
    assert_allclose(curve.jensen_shannon(), math.log(2.0), rtol=FEW_ROUNDINGS, atol=0)
    # any others send what they hold and hide nothing
    assert profile((0.0, 1.0), (6, 5)).delta(3.0) == 1.0


@pytest.mark.parametrize("laws", [(0.3, 0.3), (0.0, 0.0), (1.0, 1.0), (1e-300, 1e-300)], ids=str)
def test_identical_rows(laws):
    curve = profile((*laws, 0.6), (5, 4, 3))
    assert curve.delta(0.0) == curve.delta(1.0) == curve.delta(math.inf) == 0.0
    assert curve.log_delta(0.0) == -math.inf
    assert curve.epsilon(0.0) == curve.epsilon(1e-9) == 0.0
    assert curve.bounds(0.0) == (0.0, 0.0)
    assert_allclose(curve.trade_off([0.0, 0.25, 1.0]), [1.0, 0.75, 0.0], rtol=1e-14, atol=0)
    assert curve.kl() == curve.renyi(0.3) == curve.renyi(math.inf) == curve.chi_square() == 0.0
    assert curve.jensen_shannon() == curve.total_variation() == 0.0


def test_epsilon0_of_zero():
    curve = exact_profile(ShuffleExperiment(binary_randomized_response(0.0), 1000, k=300))
    assert curve.delta([0.0, 1e-300, 1.0]).tolist() == [0.0, 0.0, 0.0]
    assert curve.epsilon(0.0) == 0.0
    assert curve.renyi(2.0) == 0.0


@pytest.mark.parametrize("epsilon0", [1e-300, 1e-20, 1e-9])
def test_tiny_epsilon0(epsilon0):
    """delta(0) = tanh(epsilon0 / 2) max R, to full relative precision."""
    n = 1001
    curve = exact_profile(ShuffleExperiment(binary_randomized_response(epsilon0), n, k=500))
    largest_mass = math.comb(1000, 500) / 2**1000
    expected = math.tanh(0.5 * epsilon0) * largest_mass
    assert_allclose(curve.total_variation(), expected, rtol=STATED, atol=0)
    assert curve.delta(epsilon0) == 0.0
    assert curve.epsilon(0.0) == epsilon0
    assert curve.epsilon(0.5 * expected) < epsilon0


@pytest.mark.parametrize(
    "laws",
    [
        (1e-300, 3e-300),
        (1e-300, 0.5),
        (Complement(3e-200), Complement(1e-200)),
        (1e-300, Complement(1e-300)),
    ],
    ids=str,
)
@pytest.mark.parametrize(("n", "k"), [(1, 0), (2, 1), (33, 0), (60, 20)])
def test_extreme_probabilities(laws, n, k):
    curve = profile(laws, (n - 1 - k, k))
    groups = [(n - 1 - k, laws[0]), (k, laws[1])]
    for direction in DIRECTIONS:
        loss = float(reference.epsilon(groups, *laws, 0, direction, 2 * EXTREME_DIGITS))
        for share in (0.0, 1e-3, 0.25, 0.9):
            epsilon = share * loss
            truth = reference.delta(groups, *laws, epsilon, direction, 2 * EXTREME_DIGITS)
            lower, upper = curve.bounds(epsilon, direction=direction)
            assert mpf(lower) <= truth <= mpf(upper) or truth < mpf(10) ** -307
            assert_log_close(curve.log_delta(epsilon, direction=direction), truth)
        assert_allclose(curve.epsilon(0.0, direction=direction), loss, rtol=FEW_ROUNDINGS, atol=0)


# ---- Bounds ----------------------------------------------------------------------------------


@pytest.mark.parametrize("laws", [(0.2, 0.5), (1e-9, 0.7), (0.4, 0.4 + 1e-9)], ids=str)
@pytest.mark.parametrize(("n", "k"), [(1, 0), (3, 2), (32, 10), (500, 499)])
def test_bounds_contain_the_truth(laws, n, k):
    curve = profile(laws, (n - 1 - k, k))
    groups = [(n - 1 - k, laws[0]), (k, laws[1])]
    loss = curve.epsilon(0.0)
    for epsilon in [
        0.0,
        *(loss * s for s in (1e-9, 0.01, 0.3, 0.9, 1 - 1e-9, 1 - 1e-15, 1.0, 1.5)),
    ]:
        for direction in ("forward", "reverse", "both"):
            lower, upper = curve.bounds(epsilon, direction=direction)
            truth = reference.delta(groups, *laws, epsilon, direction, 80)
            value = curve.delta(epsilon, direction=direction)
            assert lower <= value <= upper <= 1.0
            # a loss and its rounding are one number here
            if epsilon < loss:
                assert mpf(lower) <= truth <= mpf(upper)


def test_bounds_of_many_users():
    for n in (10**6, 10**15):
        curve = profile((0.2, 0.6), (n - 1, 0))
        for z in (0.0, 1.0, 20.0):
            epsilon = z / math.sqrt(n)
            lower, upper = curve.bounds(epsilon, direction="reverse")
            truth = reference.delta_large([(n - 1, 0.2)], 0.2, 0.6, epsilon, "reverse", 25)
            assert mpf(lower) <= truth <= mpf(upper)
            assert upper / lower < 1.0 + 1e-11


@pytest.mark.parametrize(
    ("laws", "others", "epsilon", "direction"),
    [
        ((6.854372947058591e-246, 0.1688625024362035), (3, 56), 536.7532385948969, "forward"),
        ((5.4449183349567036e-123, 0.23254584418576674), (3, 62), 277.8751271545941, "forward"),
        (
            (Complement(1.0921137818083576e-194), Complement(1.0921166501879762e-194)),
            (49, 0),
            9.974163143117103e-07,
            "forward",
        ),
    ],
    ids=str,
)
def test_bounds_where_a_loss_is_in_the_hundreds(laws, others, epsilon, direction):
    """Exponents of several hundred cancel in log delta, and each brings its own rounding."""
    curve = profile(laws, others)
    groups = list(zip(others, laws, strict=True))
    truth = reference.delta(groups, *laws, epsilon, direction, 700)
    lower, upper = curve.bounds(epsilon, direction=direction)
    assert mpf(lower) <= truth
    assert truth <= mpf(upper) or truth < mpf(10) ** -324
    with mp.workdps(60):
        log_truth = mp.log(truth)
        error = abs(mpf(curve.log_delta(epsilon, direction=direction)) - log_truth)
        assert error <= mpf(STATED) + mpf(LOG_PER_EXPONENT) * (abs(log_truth) + mpf(epsilon))


# ---- Shapes, words and files -------------------------------------------------------------------

CURVE = profile((0.2, 0.5), (20, 9))


@pytest.mark.parametrize("method", ["delta", "log_delta", "epsilon", "trade_off"])
@pytest.mark.filterwarnings("ignore::fastshuffle.DeltaWarning")
def test_shapes(method):
    function = getattr(CURVE, method)
    scalar = function(0.125)
    assert type(scalar) is float
    for one in (np.float64(0.125), np.float32(0.125), np.array(0.125)):
        assert function(one) == scalar
    assert function([0.125]).shape == (1,)
    assert function([]).shape == (0,)
    grid = np.linspace(0.0, 1.0, 12).reshape(3, 4)
    values = function(grid)
    assert values.shape == (3, 4)
    assert values.dtype == np.float64
    assert values.tolist() == [[function(x) for x in row] for row in grid.tolist()]
    assert function(np.asfortranarray(grid)).tolist() == values.tolist()
    assert function(grid[::2, ::3]).tolist() == values[::2, ::3].tolist()
    assert function([[0, 1], [1, 0]]).shape == (2, 2)
    assert grid[0, 0] == 0.0  # the argument is left alone


def test_bounds_shapes():
    lower, upper = CURVE.bounds(np.zeros((2, 3)))
    assert lower.shape == upper.shape == (2, 3)
    assert [type(x) for x in CURVE.bounds(0.1)] == [float, float]


def test_what_it_says_of_itself():
    assert CURVE.validity is Validity.EXACT
    assert CURVE.relation == "replace-one, n known"
    assert CURVE.n == 30
    assert CURVE.experiment.others == {0: 20, 1: 9}
    described = CURVE.describe()
    for word in ("30 (including", "EXACT", "replace-one", CURVE.source, CURVE.method):
        assert word in described
    assert "n = 30" in repr(CURVE)


def test_to_dict_and_json():
    curve = profile((0.0, 0.5), (3, 2))
    content = curve.to_dict(epsilon=[0.0, 0.5, math.inf], delta=[0.0, 1e-3])
    assert content["validity"] == "EXACT"
    assert content["setting"]["others"] == {"0": 3, "1": 2}
    assert [row["epsilon"] for row in content["curve"]] == [0.0, 0.5, "inf"]
    for row in content["curve"]:
        epsilon = float(row["epsilon"])
        for suffix, direction in (("", "both"), ("_forward", "forward"), ("_reverse", "reverse")):
            assert float(row[f"delta{suffix}"]) == curve.delta(epsilon, direction=direction)
            log_delta = curve.log_delta(epsilon, direction=direction)
            assert float(row[f"log_delta{suffix}"]) == log_delta
    assert content["curve"][2]["log_delta_reverse"] == "-inf"
    for row in content["guarantees"]:
        assert row["epsilon"] == row["epsilon_forward"] == "inf"
        assert row["epsilon_reverse"] == curve.epsilon(row["delta"], direction="reverse")
    assert [row["delta"] for row in content["guarantees"]] == [0.0, 1e-3]
    text = curve.to_json(epsilon=[0.0, 0.5, math.inf], delta=[0.0, 1e-3])
    assert json.loads(text, parse_constant=pytest.fail) == content
    assert set(curve.to_dict()) == {"validity", "relation", "method", "source", "setting"}
    restored = Randomizer(content["setting"]["randomizer"]["matrix"])
    assert restored == curve.experiment.randomizer
    assert json.loads(curve.to_json(delta=0.01))["guarantees"][0]["delta"] == 0.01


@pytest.mark.parametrize("laws", [(0.2, 0.5, 0.9)])
def test_refusals(laws):
    with pytest.raises(TypeError, match="experiment must be a ShuffleExperiment"):
        exact_profile(randomizer(*laws))
    three = Randomizer([[0.5, 0.3, 0.2], [0.2, 0.35, 0.45], [0.1, 0.1, 0.8]])
    with pytest.raises(ValueError, match="fall into 2 groups, got 2 inputs and 3 groups"):
        exact_profile(ShuffleExperiment(three, 5001, others={0: 2000, 2: 3000}))
    for order in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="order must be > 0"):
            CURVE.renyi(order)
    with pytest.raises(ValueError, match="direction must be"):
        CURVE.kl(direction="backward")
    large = profile((0.2, 0.5), (10**15, 0))
    with pytest.raises(ValueError, match="order must be <= .* or inf at n"):
        large.renyi(1e15)
