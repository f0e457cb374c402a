"""The regime of a deployment, and the errors that it reports."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fastshuffle as fs


def errors_by_name(found):
    return {error.name: error for error in found.errors}


def test_critical_inside_is_skellam():
    rr = fs.binary_randomized_response(math.log(1000.0))
    found = fs.regime(rr, 4000, k=2000, delta=1e-6)
    assert found.kind == "critical"
    assert_allclose(found.ratio, 0.25, rtol=1e-14, atol=0)
    assert found.closest == "skellam"
    assert found.experiment == fs.ShuffleExperiment(rr, 4000, k=2000)
    exact = fs.exact_profile(found.experiment)
    assert found.epsilon == exact.epsilon(1e-6)
    errors = errors_by_name(found)
    limit = fs.skellam_profile(found.experiment)
    assert errors["skellam"].epsilon == limit.epsilon(1e-6)
    epsilons = np.linspace(0.0, found.epsilon, 33)
    gap = np.abs(limit.delta(epsilons) - exact.delta(epsilons)).max()
    assert errors["skellam"].largest_error == gap
    assert list(errors) == ["gaussian", "edgeworth", "hybrid", "skellam"]
    assert "Gaussian limit" in errors["edgeworth"].reason
    assert math.isnan(errors["edgeworth"].epsilon)


def test_critical_end_has_a_floor():
    """The worst dataset at a small delta is the one whose floor the Poisson limits show."""
    found = fs.regime(fs.binary_randomized_response(math.log(500.0)), 1500)
    assert found.kind == "critical"
    assert len(found.experiment.others) == 1
    errors = errors_by_name(found)
    assert errors["poisson"].epsilon == math.inf
    assert errors["gaussian"].epsilon < found.epsilon
    assert found.closest == "hybrid"


@pytest.mark.parametrize("k", [None, 3000])
def test_sub_critical_is_gaussian(k):
    found = fs.regime(fs.binary_randomized_response(1.0), 10**5, k=k)
    assert found.kind == "sub-critical"
    assert found.closest in ("edgeworth", "gaussian")
    assert found.delta == 1e-6
    errors = errors_by_name(found)
    assert errors["gaussian"].largest_error < 1e-5 < errors["skellam"].largest_error


def test_super_critical():
    found = fs.regime(fs.binary_randomized_response(15.0), 100)
    assert found.kind == "super-critical"
    assert found.epsilon > 14.0


@pytest.mark.parametrize(
    ("epsilon0", "kind"),
    [(4.0, "sub-critical"), (6.0, "critical"), (11.0, "critical"), (12.0, "super-critical")],
)
def test_borders(epsilon0, kind):
    assert fs.regime(fs.binary_randomized_response(epsilon0), 10**4, k=0).kind == kind


def test_zeros_are_super_critical():
    w = fs.Randomizer([[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]])
    found = fs.regime(w, 100, k=0)
    assert found.ratio == math.inf
    assert found.epsilon == math.inf


def test_more_outputs():
    found = fs.regime(fs.k_randomized_response(math.log(6000.0), k=3), 10**5)
    assert found.kind == "critical"
    assert found.experiment.others.keys().isdisjoint(found.experiment.pair)
    errors = errors_by_name(found)
    assert errors["compound poisson"].largest_error < errors["gaussian"].largest_error
    dense = fs.regime(fs.k_randomized_response(1.0, k=8), 200)
    assert "must have different outputs" in errors_by_name(dense)["compound poisson"].reason


def test_words():
    text = str(fs.regime(fs.binary_randomized_response(math.log(500.0)), 1500))
    assert text.startswith("n = 1,500 and exp(epsilon0) / n = 0.3333: critical.")
    assert "promises too much" in text
    assert "As a formula use the hybrid limit" in text
    assert "No limit is a guarantee" in text


def test_refusals():
    rr = fs.binary_randomized_response(1.0)
    with pytest.raises(ValueError, match="n must be >= 2, got 1"):
        fs.regime(rr, 1)
    with pytest.raises(ValueError, match=r"delta must be in \[0, 1\], got 2"):
        fs.regime(rr, 10, delta=2)
    with pytest.raises(TypeError, match="n must be an integer"):
        fs.regime(rr, 10.5)
    with pytest.raises(ValueError, match="k must be <= 9"):
        fs.regime(rr, 10, k=10)
