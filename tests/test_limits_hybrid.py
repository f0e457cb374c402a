"""The hybrid limit against direct sums, its two special cases, and the exact profiles."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fastshuffle as fs
from validation.reference import poisson as reference

# What the docstring states.
STATED_HYBRID = 1e-11


def mixed(n, mean=4.0, b=(0.4, 0.5, 0.1)):
    """Return a randomizer whose third output n users at input 0 send ``mean`` times."""
    rare = mean / n
    return fs.Randomizer([[0.6, 0.4 - rare, rare], b])


@pytest.mark.parametrize("direction", ["forward", "reverse"])
@pytest.mark.parametrize("epsilon", [0.0, 0.003, 0.05, 0.3, 1.0])
def test_against_the_direct_sum(direction, epsilon):
    n, row = 900, (0.4, 0.5, 0.1)
    w = mixed(n)
    limit = fs.hybrid_profile(fs.ShuffleExperiment(w, n, k=0))
    rare = float(w.matrix[0, 2])
    mean = (n - 1) * rare
    assert_allclose(limit.means, (mean,), rtol=1e-14, atol=0)
    # chi-square of the conditional laws, over the messages sent often
    base, moved = 0.6 / (1 - rare), row[0] / 0.9
    chi_square = (moved - base) ** 2 / (base * (1 - base))
    assert_allclose(limit.mu, math.sqrt(chi_square / (n * (1 - rare))), rtol=1e-12, atol=0)
    truth = reference.hybrid_delta(
        epsilon, limit.mu, (1 - rare, 0.9), [(mean, rare, 0.1)], direction, reach=120
    )
    if truth > 1e-300:
        delta = limit.delta(epsilon, direction=direction)
        assert_allclose(delta, float(truth), rtol=STATED_HYBRID, atol=0)


def test_two_rare_counts_and_others_at_a_third_input():
    w = fs.Randomizer(
        [[0.50, 0.40, 0.08, 0.02], [0.45, 0.43, 0.02, 0.10], [0.50, 0.493, 0.004, 0.003]]
    )
    n = 500
    limit = fs.hybrid_profile(fs.ShuffleExperiment(w, n, others={2: n - 1}))
    rows = w.matrix.tolist()
    # b is the nearer to the others and so the origin: its place is that of a in the reference
    rare = [((n - 1) * rows[2][y], rows[1][y], rows[0][y]) for y in (2, 3)]
    assert sorted(limit.means) == pytest.approx(sorted(m for m, _, _ in rare), rel=1e-14)
    for direction, other in (("forward", "reverse"), ("reverse", "forward")):
        truth = reference.hybrid_delta(0.1, limit.mu, (0.88, 0.9), rare, other, reach=40, digits=15)
        delta = limit.delta(0.1, direction=direction)
        assert_allclose(delta, float(truth), rtol=STATED_HYBRID, atol=0)


def test_without_rare_outputs_it_is_the_gaussian_limit():
    w = fs.Randomizer([[0.6, 0.3, 0.1], [0.4, 0.5, 0.1], [0.2, 0.2, 0.6]])
    for others in ({0: 9999}, {0: 6000, 1: 3999}, {2: 9999}):
        experiment = fs.ShuffleExperiment(w, 10**4, others=others)
        hybrid, gaussian = fs.hybrid_profile(experiment), fs.gaussian_profile(experiment)
        assert hybrid.means == ()
        epsilons = [0.0, 0.01, 0.2]
        assert_allclose(
            hybrid.log_delta(epsilons), gaussian.log_delta(epsilons), rtol=1e-12, atol=0
        )


def test_sparse_errors_are_closer_than_the_pure_shift():
    experiment = fs.ShuffleExperiment(fs.binary_randomized_response(math.log(500.0)), 2000, k=0)
    hybrid, poisson = fs.hybrid_profile(experiment), fs.poisson_profile(experiment)
    exact = fs.exact_profile(experiment)
    assert hybrid.mu == 0.0
    epsilons = np.linspace(0.0, 1.0, 11)
    for direction in ("forward", "reverse"):
        true, one, other = (
            p.delta(epsilons, direction=direction) for p in (exact, hybrid, poisson)
        )
        assert np.abs(one - true).max() < 0.7 * np.abs(other - true).max()


def test_nearer_than_the_gaussian_limit_and_at_the_stated_rate():
    """The error falls as 1/n; that of the Gaussian limit does not fall."""
    errors = []
    for n in (1000, 4000, 16000):
        experiment = fs.ShuffleExperiment(mixed(n), n, k=0)
        hybrid, gaussian = fs.hybrid_profile(experiment), fs.gaussian_profile(experiment)
        exact = fs.exact_profile(experiment)
        epsilons = np.array([0.0, 0.02, 0.1])
        gaps = [np.abs(p.delta(epsilons) - exact.delta(epsilons)).max() for p in (hybrid, gaussian)]
        assert gaps[0] < 0.2 * gaps[1]
        errors.append(gaps[0])
    assert 3.6 < errors[0] / errors[1] < 4.4
    assert 3.6 < errors[1] / errors[2] < 4.4


def test_directions_under_exchange_of_the_pair():
    """Exchanging a and b exchanges the directions, whatever row is the origin."""
    w = mixed(2000)
    for others in ({0: 1999}, {0: 1200, 1: 799}):
        there = fs.hybrid_profile(fs.ShuffleExperiment(w, 2000, others=others))
        back = fs.hybrid_profile(fs.ShuffleExperiment(w, 2000, others=others, pair=(1, 0)))
        for epsilon in (0.0, 0.05, 0.5):
            assert_allclose(
                there.log_delta(epsilon, direction="forward"),
                back.log_delta(epsilon, direction="reverse"),
                rtol=1e-11,
                atol=0,
            )


def test_outputs_that_no_other_user_sends_are_a_floor():
    w = fs.Randomizer([[0.6, 0.4, 0.0, 0.0], [0.5, 0.3, 0.2, 0.0], [0.5, 0.3, 0.1, 0.1]])
    limit = fs.hybrid_profile(fs.ShuffleExperiment(w, 1000, others={0: 999}, pair=(1, 2)))
    forward, reverse = (limit.delta(math.inf, direction=d) for d in ("forward", "reverse"))
    assert_allclose(forward, 0.1, rtol=1e-14, atol=0)
    assert reverse == 0.0
    # 0.2 against 0.1, and 0 against 0.1, revealed
    revealed = max(0.2 - math.exp(0.3) * 0.1, 0.0)
    assert_allclose(limit.delta(0.3, direction="reverse"), revealed, rtol=1e-12, atol=0)
    assert limit.epsilon(1e-4) == math.inf


def test_inverse_and_words():
    limit = fs.hybrid_profile(fs.ShuffleExperiment(mixed(3000), 3000, k=0))
    for delta in (1e-4, 1e-30):
        epsilon = limit.epsilon(delta)
        assert limit.delta(epsilon) <= delta < limit.delta(epsilon * (1 - 1e-9))
    assert limit.validity is fs.Validity.APPROXIMATION
    assert "2603.13407v1" in limit.source
    assert "sent often" not in limit.source
    assert "none between" in limit.describe()


def test_refusals():
    with pytest.raises(fs.UnsupportedSettingError, match="n must be >= 2"):
        fs.hybrid_profile(fs.ShuffleExperiment(mixed(100), 1, k=0))
    wide = fs.Randomizer([np.arange(1.0, 31.0) / 465.0, np.arange(30.0, 0.0, -1.0) / 465.0])
    with pytest.raises(fs.UnsupportedSettingError, match="some output must be sent often"):
        fs.hybrid_profile(fs.ShuffleExperiment(wide, 8, k=4))
    certain = fs.Randomizer([[1.0, 0.0], [0.0, 1.0]])
    with pytest.raises(fs.UnsupportedSettingError, match="must vary, got some that are certain"):
        fs.hybrid_profile(fs.ShuffleExperiment(certain, 1000, k=400))
    with pytest.raises(TypeError, match="experiment must be a ShuffleExperiment"):
        fs.hybrid_profile("x")


def test_too_many_values_of_the_rare_counts():
    """Large means join the outputs sent often; small ones, or a tiny delta, are refused."""
    krr = fs.k_randomized_response(6.0, k=10)
    limit = fs.hybrid_profile(fs.ShuffleExperiment(krr, 10**4, others={2: 9999}))
    assert len(limit.means) == 2
    exact = fs.exact_profile(limit.experiment)
    assert_allclose(limit.epsilon(1e-5), exact.epsilon(1e-5), rtol=0.01, atol=0)
    w = fs.Randomizer([[0.5, 0.49934, 0.0006, 0.00006], [0.45, 0.5, 0.03, 0.02]])
    limit = fs.hybrid_profile(fs.ShuffleExperiment(w, 10**6, k=0))
    assert_allclose(sorted(limit.means), (59.99994, 599.9994), rtol=1e-12, atol=0)
    assert limit.delta(0.01) > 1e-7
    with pytest.raises(
        fs.UnsupportedSettingError, match=r"delta must be above exp\(-\d+\), where the rare"
    ):
        limit.delta(3.0)
    with pytest.raises(fs.UnsupportedSettingError, match="at most 200000 likely values"):
        limit.epsilon(1e-250)
    many = fs.Randomizer([[1 - 0.05 * 6] + [0.05] * 6, [0.1] + [0.05, 0.25] * 3, [0.4] + [0.1] * 6])
    other = fs.Randomizer(
        [[0.9, 0.01, 0.02, 0.03, 0.04], [0.1, 0.4, 0.3, 0.15, 0.05], [0.6] + [0.1] * 4]
    )
    assert fs.hybrid_profile(fs.ShuffleExperiment(many, 3000, others={0: 2999})).means == ()
    with pytest.raises(fs.UnsupportedSettingError, match="got more for 3 means up to 26.97"):
        fs.hybrid_profile(fs.ShuffleExperiment(other, 900, others={0: 899}))
