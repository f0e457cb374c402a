"""Frequencies: unbiased, with the stated variance, intervals that hold and no false alarms."""

import math

import numpy as np
import pytest

import fastshuffle as fs
from fastshuffle.protocols import estimate_frequencies
from fastshuffle.protocols._intervals import share_bounds
from fastshuffle.protocols.projections import project

MECHANISMS = ("krr", "oue", "olh", "hadamard", "subset")
PURE = tuple(name for name in MECHANISMS if name != "hadamard")
K = 6
# Nobody holds the last category.
VALUES = np.repeat(np.arange(K), [300, 150, 100, 40, 10, 0])
TRUTH = np.bincount(VALUES, minlength=K) / VALUES.size


def frequencies(values, epsilon0, rng, **options):
    return estimate_frequencies(values, epsilon0, **{"domain": K, "rng": rng, **options})


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("epsilon0", [1.0, np.repeat([0.7, 2.0], 300)])
def test_unbiased_with_the_stated_variance_and_coverage(mechanism, epsilon0):
    """60 runs; Hadamard response states the largest variance, the others their own."""
    rng = np.random.default_rng(1)
    values = rng.permutation(VALUES)
    runs = [frequencies(values, epsilon0, rng, mechanism=mechanism) for _ in range(60)]
    estimates = np.array([run.estimate for run in runs])
    stated = np.mean([run.variance for run in runs], axis=0)
    spread = estimates.var(axis=0, ddof=1)
    assert (np.abs(estimates.mean(axis=0) - TRUTH) <= 5.0 * np.sqrt(spread / 60)).all()
    # a variance of 60 runs has a relative standard error of about 0.18
    assert (spread <= stated * 1.9).all()
    if mechanism != "hadamard":
        assert (spread >= stated * 0.2).all()
    covered = sum(((run.lower <= TRUTH) & (run.upper >= TRUTH)).sum() for run in runs)
    assert covered >= 0.91 * 60 * K
    exact = mechanism in PURE and np.ndim(epsilon0) == 0
    assert all(("Clopper-Pearson" in run.interval) == exact for run in runs)
    assert all((run.support is not None) == exact for run in runs)


@pytest.mark.parametrize("mechanism", PURE)
def test_exact_intervals_are_those_of_the_counts(mechanism):
    rng = np.random.default_rng(2)
    result = frequencies(VALUES, 1.5, rng, mechanism=mechanism)
    counts, n, q, difference = result.support
    assert n == VALUES.size
    for i in range(K):
        lower, upper = share_bounds(int(counts[i]), n, 0.025)
        expected = [(lower - q) / difference, (upper - q) / difference]
        found = [result.lower[i], result.upper[i]]
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=0)
    estimate = (counts / n - q) / difference
    np.testing.assert_allclose(result.estimate, estimate, rtol=1e-9, atol=0)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_weights_and_their_targets(mechanism):
    """Users of one budget all hold 0, of the other all 1."""
    rng = np.random.default_rng(3)
    values, budgets = np.repeat([0, 1], 3000), np.repeat([0.5, 3.0], 3000)
    by_users = frequencies(values, budgets, rng, mechanism=mechanism)
    assert by_users.weights == (0.5, 0.5)
    assert by_users.target == "the frequency of all users"
    by_precision = frequencies(values, budgets, rng, mechanism=mechanism, weights="precision")
    low, high = by_precision.weights
    assert math.isclose(low + high, 1.0, rel_tol=1e-15)
    assert high > 0.85
    assert "if values and budgets are unrelated" in by_precision.target
    for result in (by_users, by_precision):
        truth = np.array([*result.weights, 0.0, 0.0, 0.0, 0.0])
        assert (np.abs(result.estimate - truth) <= 5.0 * np.sqrt(result.variance)).all()
    assert by_precision.variance[2] < 0.5 * by_users.variance[2]


def test_heavy_hitters_at_a_family_wise_level():
    """All frequencies are exactly at the threshold: at most 1 run of 5 has a false one."""
    rng = np.random.default_rng(4)
    values = np.repeat(np.arange(K), 100)
    for mechanism in ("krr", "hadamard"):
        alarms = sum(
            len(frequencies(values, 1.0, rng, mechanism=mechanism).heavy_hitters(1 / K, level=0.2))
            > 0
            for _ in range(80)
        )
        assert alarms <= 27  # of 80 at 20 percent: above that with chance 2e-3
    result = frequencies(VALUES, 4.0, rng)
    found = result.heavy_hitters(0.1)
    assert [hitter.category for hitter in found] == [0, 1, 2]
    for hitter in found:
        assert 0.1 < hitter.lower < hitter.estimate == result.estimate[hitter.category]
        # a bound at a sixth of the level is below that at half of it
        assert hitter.lower < result.lower[hitter.category]
    assert result.heavy_hitters(0.9) == []


def test_names_of_categories():
    rng = np.random.default_rng(5)
    names = ["red", "green", "blue"]
    values = np.array(["red"] * 600 + ["blue"] * 300)
    result = frequencies(values, 8.0, rng, domain=names)
    assert result.domain == ("red", "green", "blue")
    assert np.abs(result.estimate - [2 / 3, 0.0, 1 / 3]).max() <= 0.02
    assert [hitter.category for hitter in result.heavy_hitters(0.1)] == ["red", "blue"]
    same = frequencies(values.tolist(), 8.0, np.random.default_rng(6), domain=tuple(names))
    again = frequencies(values, 8.0, np.random.default_rng(6), domain=np.array(names))
    assert same.estimate.tolist() == again.estimate.tolist()


@pytest.mark.parametrize(
    ("values", "options", "error", "words"),
    [
        ([], {}, ValueError, r"values must be 1-D, of one or more users, got shape \(0,\)"),
        ([[0, 1]], {}, ValueError, r"values must be 1-D, of one or more users"),
        (
            [0, K, -1],
            {},
            ValueError,
            "values must be in the domain, got 6 at index 1, 2 outside in all",
        ),
        (
            ["a"],
            {},
            ValueError,
            "values must be in the domain, got 'a' at index 0, 1 outside in all",
        ),
        ([math.nan], {}, ValueError, "values must be in the domain, got nan at index 0"),
        ([0], {"domain": []}, ValueError, "domain must have at least 2 categories"),
        ([0], {"domain": [0]}, ValueError, "domain must have at least 2 categories"),
        ([0], {"domain": [0, 1, 0]}, ValueError, "got 3 of which 2 differ"),
        ([0], {"domain": 1}, ValueError, "domain must be >= 2, got 1"),
        (["a"], {"domain": "ab"}, TypeError, "domain must be a number or a sequence"),
        ([0], {"domain": {0, 1}}, TypeError, "domain must be a number or a sequence"),
    ],
)
def test_values_and_domains_outside_their_domain(values, options, error, words):
    with pytest.raises(error, match=words):
        frequencies(values, 1.0, np.random.default_rng(1), **options)


def test_thresholds_outside_their_domain():
    result = frequencies(VALUES, 1.0, np.random.default_rng(7))
    with pytest.raises(ValueError, match=r"threshold must be in \[0, 1\], got 1\.5"):
        result.heavy_hitters(1.5)
    with pytest.raises(ValueError, match="level must be in"):
        result.heavy_hitters(0.1, level=0.0)
    with pytest.raises(ValueError, match="projection must be one of 'base-pos', 'norm-mul'"):
        result.projected("none")


def test_one_user():
    result = frequencies([2], 3.0, np.random.default_rng(8))
    assert result.n == 1
    assert (result.lower <= result.estimate).all()
    assert (result.estimate <= result.upper).all()
    assert result.guarantee.epsilon(0.0) == 3.0


def test_the_shuffle_leaves_no_order(monkeypatch):
    """What reaches the decoder is in another order every time, each equally often."""
    kind = type(fs.k_randomized_response(1.0, 3))
    seen = []
    counts_of = kind._support_counts
    monkeypatch.setattr(
        kind, "_support_counts", lambda self, m: (seen.append(tuple(m)), counts_of(self, m))[1]
    )
    rng = np.random.default_rng(9)
    for _ in range(300):
        frequencies([0, 1, 2], 50.0, rng, domain=3)  # no noise
    orders, counts = np.unique(seen, axis=0, return_counts=True)
    assert len(orders) == 6
    # each order is seen once for the estimate and once for the interval; 5 degrees of freedom
    assert counts.sum() == 600
    assert ((counts / 2 - 50.0) ** 2 / 50.0).sum() < 25.8  # above that with chance 1e-4


def nearest(estimates):
    """The Euclidean projection onto the simplex, by bisection for what is subtracted."""
    low, high = estimates.min() - 1.0, estimates.max()
    for _ in range(200):
        middle = 0.5 * (low + high)
        if np.maximum(estimates - middle, 0.0).sum() > 1.0:
            low = middle
        else:
            high = middle
    return np.maximum(estimates - high, 0.0)


@pytest.mark.parametrize("seed", range(5))
def test_projections(seed):
    estimates = np.random.default_rng(seed).normal(0.1, 0.3, size=10)
    kept = estimates.copy()
    positive = project(estimates, "base-pos")
    assert positive.tolist() == np.where(estimates > 0.0, estimates, 0.0).tolist()
    scaled = project(estimates, "norm-mul")
    np.testing.assert_allclose(scaled, positive / positive.sum(), rtol=1e-12, atol=0)
    moved = project(estimates, "norm-sub")
    np.testing.assert_allclose(moved, nearest(estimates), rtol=1e-9, atol=1e-14)
    assert math.isclose(moved.sum(), 1.0, rel_tol=1e-12)
    assert estimates.tolist() == kept.tolist()


def test_projections_without_a_positive_estimate():
    estimates = np.array([-0.5, -0.1, -0.3])
    with pytest.raises(ValueError, match="must not all be <= 0 for 'norm-mul'"):
        project(estimates, "norm-mul")
    np.testing.assert_allclose(
        project(estimates, "norm-sub"), [2 / 15, 8 / 15, 5 / 15], rtol=1e-12, atol=0
    )


def test_projected_keeps_the_raw_estimates():
    result = frequencies(VALUES, 0.5, np.random.default_rng(10))
    raw = result.estimate.copy()
    projected = result.projected("norm-sub")
    assert math.isclose(projected.sum(), 1.0, rel_tol=1e-12)
    assert result.estimate.tolist() == raw.tolist()
    assert raw.min() < 0.0 <= projected.min()
