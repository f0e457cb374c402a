"""Parameters of the variation-ratio bound, against their formulas."""

import math

import numpy as np
import pytest

import fastshuffle as fs

MECHANISMS = {
    "rr": (fs.binary_randomized_response, lambda e: (e - 1.0) / (e + 1.0)),
    "krr": (lambda x: fs.k_randomized_response(x, 7), lambda e: (e - 1.0) / (e + 6.0)),
    "sue": (
        lambda x: fs.symmetric_unary_encoding(x, 9),
        lambda e: (math.sqrt(e) - 1.0) / (math.sqrt(e) + 1.0),
    ),
    "oue": (
        lambda x: fs.optimized_unary_encoding(x, 9),
        lambda e: 0.5 * (e - 1.0) / (e + 1.0),
    ),
    "subset": (
        lambda x: fs.subset_selection(x, 10, omega=3),
        lambda e: (e - 1.0) * math.comb(8, 2) / (e * math.comb(9, 2) + math.comb(9, 3)),
    ),
}


@pytest.mark.parametrize("epsilon0", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("name", MECHANISMS)
def test_the_table(name, epsilon0):
    factory, beta = MECHANISMS[name]
    parameters = fs.variation_ratio_parameters(factory(epsilon0))
    e = math.exp(epsilon0)
    assert parameters.beta == pytest.approx(beta(e), rel=1e-12, abs=0.0)
    for ratio in (parameters.p, parameters.q):
        assert e <= ratio <= e * (1.0 + 1e-13)


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_bound_is_above_the_blanket(name):
    """It reveals more than the blanket does."""
    randomizer = MECHANISMS[name][0](1.0)
    bound = fs.variation_ratio_profile(*fs.variation_ratio_parameters(randomizer), 1000)
    for epsilon in (0.0, 0.05, 0.2):
        value = bound.delta(epsilon)
        assert fs.blanket_profile(randomizer, 1000).delta(epsilon) <= value * 1.001


def test_a_matrix_has_parameters_for_each_pair():
    w = fs.Randomizer([[0.5, 0.3, 0.2], [0.2, 0.35, 0.45], [0.25, 0.5, 0.25]])
    p, beta, q = fs.variation_ratio_parameters(w, pair=(1, 2))
    np.testing.assert_allclose([p, beta, q], [1.8, 0.2, 2.25], rtol=1e-12, atol=0.0)
    assert fs.variation_ratio_parameters(w, pair=(2, 1)) == pytest.approx((p, beta, q), rel=1e-13)


def test_bad_input():
    rr = fs.binary_randomized_response(1.0)
    with pytest.raises(ValueError, match=r"pair\[1\] must be <= 1, got 2"):
        fs.variation_ratio_parameters(rr, pair=(0, 2))
    with pytest.raises(TypeError, match="randomizer must be a Randomizer, got float"):
        fs.variation_ratio_parameters(1.0)
    infinite = fs.variation_ratio_parameters(fs.Randomizer([[1.0, 0.0], [0.5, 0.5]]))
    assert infinite.p == infinite.q == math.inf
