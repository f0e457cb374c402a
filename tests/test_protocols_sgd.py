"""SGD: samplers that match their laws, a guarantee that brute force cannot beat, and fits."""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import fastshuffle as fs
from fastshuffle.protocols import fit_sgd
from fastshuffle.protocols.vectors import CoordinateResponse, SphereResponse
from tests.brackets import assert_between, exp_fraction
from validation.reference.composition import by_ratio, hockey_stick
from validation.reference.exact import worst_composition

KINDS = [CoordinateResponse, SphereResponse]


def data(n, seed, *, d=3):
    """Features in [-1, 1] after a column of ones, and noisy linear targets."""
    rng = np.random.default_rng(seed)
    x = np.column_stack((np.ones(n), rng.uniform(-1.0, 1.0, (n, d - 1))))
    return x, x @ np.linspace(0.6, -0.4, d) + rng.normal(0.0, 0.2, n), rng


# ---- Mechanisms ------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon0", [0.1, 5.0])
def test_coordinates_are_sampled_from_their_law(epsilon0):
    vector = np.array([2.0, -0.5, 0.0, -2.0])
    kind = CoordinateResponse(epsilon0, 4, 2.0)
    users = 200_000
    messages = kind.report(np.tile(vector, (users, 1)), np.random.default_rng(5))
    ones = 0.5 * (1.0 + vector / 2.0 * math.tanh(0.5 * epsilon0))
    law = np.column_stack((1.0 - ones, ones)).ravel() / 4.0
    counts = np.bincount(messages, minlength=8)
    assert stats.chisquare(counts, law * users).pvalue > 1e-4
    corner = np.column_stack((1.0 - kind.keep, kind.keep))[0]
    assert_allclose(corner[1] / corner[0], math.exp(epsilon0), rtol=1e-12, atol=0)


@pytest.mark.parametrize("epsilon0", [0.1, 5.0])
@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_directions_are_uniform_on_their_half(epsilon0, dimension):
    vector = np.zeros(dimension)
    vector[0] = -3.0
    kind = SphereResponse(epsilon0, dimension, 3.0)
    users = 100_000
    messages = kind.report(np.tile(vector, (users, 1)), np.random.default_rng(6))
    assert_allclose((messages**2).sum(axis=1), 1.0, rtol=1e-12, atol=0)
    near = int((messages[:, 0] < 0.0).sum())
    assert stats.binomtest(near, users, kind.keep).pvalue > 1e-4
    if dimension > 1:
        # the square of a coordinate of a uniform direction
        law = stats.beta(0.5, 0.5 * (dimension - 1))
        for side in (messages[:, 0] < 0.0, messages[:, 0] > 0.0):
            assert stats.kstest(messages[side, 0] ** 2, law.cdf).pvalue > 1e-4


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dimension", [1, 2, 6])
@pytest.mark.parametrize("epsilon0", [0.5, 4.0])
def test_decoded_messages_are_unbiased(kind, dimension, epsilon0):
    rng = np.random.default_rng(7)
    randomizer = kind(epsilon0, dimension, 1.5)
    for vector in (np.zeros(dimension), rng.uniform(-0.6, 0.6, dimension)):
        users, batches = 1_000, 40
        held = np.tile(vector, (users, 1))
        assert randomizer.clipped(held)[1] == 0
        means = [randomizer.decode(randomizer.report(held, rng)) / users for _ in range(batches)]
        error = np.std(means, axis=0, ddof=1) / math.sqrt(batches)
        assert (np.abs(np.mean(means, axis=0) - vector) <= 5.0 * error).all()


def test_the_size_of_a_message():
    rng = np.random.default_rng(8)
    for kind in KINDS:
        randomizer = kind(1.0, 4, 2.0)
        message = randomizer.report(np.ones((1, 4)), rng)
        assert_allclose(np.linalg.norm(randomizer.decode(message)), randomizer.size, rtol=1e-12)


def test_clipping():
    vectors = np.array([[3.0, 4.0], [0.3, -0.4], [0.0, 0.0], [-2.0, 0.0]])
    cut, outside = CoordinateResponse(1.0, 2, 1.0).clipped(vectors)
    assert outside == 2
    assert_allclose(cut, [[1.0, 1.0], [0.3, -0.4], [0.0, 0.0], [-1.0, 0.0]], rtol=0)
    cut, outside = SphereResponse(1.0, 2, 1.0).clipped(vectors)
    assert outside == 2
    assert_allclose(cut, [[0.6, 0.8], [0.3, -0.4], [0.0, 0.0], [-1.0, 0.0]], rtol=1e-15)


# ---- Guarantee of a round --------------------------------------------------------------------


def corner_rows(dimension, keep):
    """The law of the message, coordinate and bit, at each corner of the cube."""
    return [
        [(keep if bit == y else 1 - keep) / dimension for bit in corner for y in (0, 1)]
        for corner in itertools.product((0, 1), repeat=dimension)
    ]


def arc_rows(arcs, keep):
    """The law of the arc in which a direction of the plane falls, for inputs between arcs."""
    half = arcs // 2
    return [
        [(keep if (y - x) % arcs < half else 1 - keep) / half for y in range(arcs)]
        for x in range(arcs)
    ]


@pytest.mark.parametrize("keep", [Fraction(3, 4), Fraction(15, 16)])
@pytest.mark.parametrize(
    ("rows_of", "size", "kind", "users"),
    [
        (corner_rows, 1, CoordinateResponse, 6),
        (corner_rows, 2, CoordinateResponse, 4),
        (corner_rows, 3, CoordinateResponse, 2),
        (arc_rows, 4, SphereResponse, 4),
        (arc_rows, 6, SphereResponse, 2),
    ],
)
def test_a_round_is_below_its_bound_for_all_datasets(keep, rows_of, size, kind, users):
    rows = rows_of(size, keep)
    epsilon0 = math.log(float(keep / (1 - keep)))
    closest = 0.0
    for n in range(1, users + 1):
        bound = kind(epsilon0, 2, 1.0).profile(n)
        for epsilon in (0.0, 0.2, 0.7, 1.0):
            truth, _ = worst_composition(rows, n, exp_fraction(epsilon))
            assert_between(0.0, bound.delta(epsilon), truth)
            closest = max(closest, float(truth) / bound.delta(epsilon))
    assert closest > 0.9


def test_a_pooled_round_is_below_its_bound_for_all_datasets():
    keeps = [Fraction(3, 4), Fraction(7, 8), Fraction(3, 4)]
    rows = [corner_rows(2, keep) for keep in keeps]
    budgets = [math.log(float(keep / (1 - keep))) for keep in keeps]
    x, y, rng = data(3, 1)
    fit = fit_sgd(x, y, budgets, model="linear", rounds=1, step=0.1, clip=1.0, rng=rng, pooled=True)
    for user in range(3):
        others = [rows[i] for i in range(3) if i != user]
        for epsilon in (0.0, 0.3, 0.9):
            truth = Fraction(0)
            for held in itertools.product(range(4), repeat=2):
                hidden = [row[z] for row, z in zip(others, held, strict=True)]
                laws = [histogram_law([own, *hidden]) for own in rows[user]]
                for a, b in itertools.permutations(laws, 2):
                    truth = max(truth, hockey_stick(by_ratio(a, b), exp_fraction(epsilon)))
            assert_between(0.0, fit.guarantee.user(user).delta(epsilon), truth)


def histogram_law(rows):
    law = {(0,) * len(rows[0]): Fraction(1)}
    for row in rows:
        longer = {}
        for histogram, mass in law.items():
            for y, share in enumerate(row):
                key = (*histogram[:y], histogram[y] + 1, *histogram[y + 1 :])
                longer[key] = longer.get(key, Fraction(0)) + mass * share
        law = longer
    return law


# ---- Guarantee of all rounds -----------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["coordinate", "sphere"])
def test_the_guarantee_is_the_composed_blanket(mechanism):
    x, y, rng = data(2_000, 2)
    fit = fit_sgd(
        x, y, 1.0, model="linear", rounds=5, step=0.1, clip=1.0, rng=rng, mechanism=mechanism
    )
    blanket = fs.blanket_profile(fs.binary_randomized_response(1.0), 2_000)
    assert fit.guarantee.epsilon(1e-6) == fs.composed_profile(blanket, 5).epsilon(1e-6)
    assert fit.guarantee.validity is fs.Validity.UPPER_BOUND
    assert fit.guarantee.epsilon0 == 5.0
    assert blanket.epsilon(1e-6) < fit.guarantee.epsilon(1e-6) < 5 * blanket.epsilon(2e-7)
    assert fit.guarantee.epsilon(1e-6) < fit.unshuffled_epsilon(1e-6) <= 5.0
    (limit,) = fit.limits
    assert limit.rounds == 5
    assert limit.validity is fs.Validity.APPROXIMATION
    assert fit.sampling == "all users take part in every round"


def test_sampling_is_accounted_by_budget():
    x, y, rng = data(3_000, 3)
    budgets = np.where(np.arange(3_000) < 1_000, 0.5, 2.0)
    fit = fit_sgd(x, y, budgets, model="linear", rounds=4, step=0.1, clip=1.0, rng=rng, sample=0.1)
    assert fit.gradients == 4 * 300
    assert "100 of 1,000, 200 of 2,000 users of each budget" in fit.sampling
    assert "without replacement" in fit.sampling
    assert fit.limits == ()
    for user, value, users in ((0, 0.5, 1_000), (2_999, 2.0, 2_000)):
        blanket = fs.blanket_profile(fs.binary_randomized_response(value), users // 10)
        expected = fs.composed_profile(fs.subsampled_profile(blanket, users), 4)
        assert fit.guarantee.user(user).epsilon(1e-6) == expected.epsilon(1e-6)
    assert fit.guarantee.epsilon(1e-6) == fit.guarantee.user(2_999).epsilon(1e-6)
    full = fit_sgd(x, y, budgets, model="linear", rounds=4, step=0.1, clip=1.0, rng=rng)
    assert fit.guarantee.epsilon(1e-6) < full.guarantee.epsilon(1e-6)


def test_pooled_messages_hide_among_all():
    x, y, rng = data(200, 4)
    budgets = np.where(np.arange(200) < 20, 2.0, 0.5)
    common = {"model": "linear", "rounds": 3, "step": 0.1, "clip": 1.0, "rng": rng}
    tagged = fit_sgd(x, y, budgets, **common)
    pooled = fit_sgd(x, y, budgets, pooled=True, **common)
    clones = fs.personalized_clone_profile(budgets, family="containing")
    assert pooled.guarantee.user(0).epsilon(1e-3) == (
        fs.composed_profile(clones.user(0), 3).epsilon(1e-3)
    )
    assert pooled.guarantee.epsilon(1e-3) < tagged.guarantee.epsilon(1e-3)
    with pytest.raises(fs.UnsupportedSettingError, match="sample must be 1"):
        fit_sgd(x, y, budgets, pooled=True, sample=0.5, **common)


# ---- Fits ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["coordinate", "sphere"])
@pytest.mark.parametrize("pooled", [False, True])
def test_the_fit_finds_the_least_squares_solution(mechanism, pooled):
    x, y, _ = data(8_000, 5)
    budgets = np.where(np.arange(8_000) % 3 == 0, 4.0, 20.0)
    solution = np.linalg.lstsq(x, y, rcond=None)[0]
    fits = [
        fit_sgd(
            x,
            y,
            budgets,
            model="linear",
            rounds=60,
            step=1.2,
            clip=4.0,
            rng=np.random.default_rng(seed),
            mechanism=mechanism,
            pooled=pooled,
        )
        for seed in range(5)
    ]
    estimates = np.array([fit.estimate for fit in fits])
    error = estimates.std(axis=0, ddof=1)
    assert (np.abs(estimates - solution) <= 5.0 * error).all()
    assert (error < 0.1).all()
    assert all(fit.clipped == 0 for fit in fits)
    assert all(fit.losses[-1] < 0.5 * fit.losses[0] for fit in fits)


def test_logistic_regression():
    x, _, rng = data(60_000, 6)
    truth = np.array([0.4, 1.5, -1.0])
    y = (rng.random(60_000) < 1.0 / (1.0 + np.exp(-x @ truth))).astype(float)
    exact = np.zeros(3)
    for _ in range(20):  # Newton's method, not private
        p = 1.0 / (1.0 + np.exp(-x @ exact))
        exact -= np.linalg.solve((x * (p * (1 - p))[:, None]).T @ x, x.T @ (p - y))
    fit = fit_sgd(x, y, 8.0, model="logistic", rounds=100, step=8.0, clip=1.0, rng=rng)
    assert fit.clipped == 0
    loss = np.logaddexp(0.0, x @ exact) - y * (x @ exact)
    assert fit.losses[0] == pytest.approx(math.log(2.0), rel=1e-12)
    assert loss.mean() <= fit.losses[-1] <= loss.mean() + 2e-3
    assert np.abs(fit.estimate - exact).max() < 0.15


def test_a_gradient_is_unbiased_for_the_mean_clipped_one():
    x, y, _ = data(600, 7)
    budgets = np.where(np.arange(600) < 200, 1.0, 3.0)
    rng = np.random.default_rng(8)
    for sample in (1.0, 0.5):
        fits = [
            fit_sgd(
                x, y, budgets, model="linear", rounds=1, step=1.0, clip=0.5, rng=rng, sample=sample
            )
            for _ in range(150)
        ]
        steps = np.array([fit.last for fit in fits])
        expected = np.clip(y[:, None] * x, -0.5, 0.5).mean(axis=0)
        error = steps.std(axis=0, ddof=1) / math.sqrt(len(fits))
        assert (np.abs(steps.mean(axis=0) - expected) <= 5.0 * error).all()
    outside = int((np.abs(y[:, None] * x).max(axis=1) > 0.5).sum())
    full = fit_sgd(x, y, budgets, model="linear", rounds=1, step=1.0, clip=0.5, rng=rng)
    assert full.clipped == outside
    assert full.gradients == 600


def test_precision_has_less_noise():
    x, y, _ = data(2_000, 9)
    budgets = np.where(np.arange(2_000) < 1_000, 0.1, 4.0)
    rng = np.random.default_rng(9)
    spread = {
        weights: np.std(
            [
                fit_sgd(
                    x,
                    y,
                    budgets,
                    model="linear",
                    rounds=1,
                    step=1.0,
                    clip=1.0,
                    rng=rng,
                    weights=weights,
                ).last
                for _ in range(60)
            ],
            axis=0,
        ).max()
        for weights in ("users", "precision")
    }
    assert spread["precision"] < 0.3 * spread["users"]


def test_the_same_generator_the_same_fit():
    x, y, _ = data(100, 10)
    one, other = (
        fit_sgd(
            x,
            y,
            1.0,
            model="linear",
            rounds=3,
            step=0.1,
            clip=1.0,
            rng=np.random.default_rng(1),
            sample=0.3,
        ).estimate
        for _ in range(2)
    )
    assert (one == other).all()


def test_plain_values():
    x, y, rng = data(200, 11)
    fit = fit_sgd(x, y, 1.0, model="linear", rounds=3, step=0.1, clip=1.0, rng=rng)
    content = json.loads(json.dumps(fit.to_dict(delta=1e-4), allow_nan=False))
    assert content["n"] == 200
    assert content["rounds"] == 3
    assert len(content["losses"]) == 4
    assert content["losses_are_private"] is False
    assert content["guarantee"]["local"] == {"epsilon": 3.0, "delta": 0.0}
    assert content["guarantee"]["central"]["epsilon"] < content["unshuffled_epsilon"]
    assert len(content["gaussian_limit_epsilons"]) == 1


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"features": [[1.0], [2.0]]}, ValueError, "targets must be one for each of 2 users"),
        ({"features": [1.0, 2.0, 3.0]}, ValueError, "features must be 2-D"),
        ({"features": [[math.nan]] * 3}, ValueError, "features must be in"),
        ({"features": np.empty((0, 2)), "targets": []}, ValueError, "features must be 2-D"),
        (
            {"targets": [0.0, 1.0, 2.0], "model": "logistic"},
            ValueError,
            "0 or 1, got 2.0 at index 2",
        ),
        ({"epsilon0": 0.0}, ValueError, "epsilon0 must be in"),
        ({"epsilon0": [1.0, 2.0]}, ValueError, "epsilon0 must be one number, or one for each"),
        ({"epsilon0": math.inf}, ValueError, "epsilon0 must be"),
        ({"model": "probit"}, ValueError, "model must be one of linear, logistic, got 'probit'"),
        ({"mechanism": "rr"}, ValueError, "mechanism must be one of coordinate, sphere"),
        ({"rounds": 0}, ValueError, "rounds must be >= 1"),
        ({"rounds": 1.5}, TypeError, "rounds must be an integer"),
        ({"step": 0.0}, ValueError, "step must be > 0"),
        ({"clip": -1.0}, ValueError, "clip must be > 0"),
        ({"sample": 0.0}, ValueError, "sample must be in"),
        ({"sample": 1.5}, ValueError, "sample must be in"),
        ({"weights": "all"}, ValueError, "weights must be 'users' or 'precision'"),
        ({"pooled": 1}, TypeError, "pooled must be True or False"),
        ({"rng": 3}, TypeError, "rng must be a numpy.random.Generator"),
        ({"step": 1e30, "clip": 1e30, "rounds": 9}, ArithmeticError, "the fit diverged in round"),
    ],
)
def test_arguments(changes, error, message):
    arguments = {
        "features": [[1.0], [2.0], [3.0]],
        "targets": [1.0, 0.0, 1.0],
        "epsilon0": 1.0,
        "model": "linear",
        "rounds": 2,
        "step": 0.1,
        "clip": 1.0,
        "rng": np.random.default_rng(1),
    }
    with pytest.raises(error, match=message):
        fit_sgd(**{**arguments, **changes})


def test_one_user():
    fit = fit_sgd(
        [[1.0, 2.0]],
        [1.0],
        1.0,
        model="logistic",
        rounds=2,
        step=0.1,
        clip=1.0,
        rng=np.random.default_rng(2),
    )
    assert fit.guarantee.epsilon(0.0) == pytest.approx(2.0, rel=1e-9)
