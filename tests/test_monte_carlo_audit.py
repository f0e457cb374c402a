"""Audits: noise proves nothing, losses are found in either direction, and no bound is too high."""

import json
import math

import numpy as np
import pytest

import fastshuffle as fs

pytestmark = pytest.mark.filterwarnings("ignore::fastshuffle.profile.DeltaWarning")

ASYMMETRIC = fs.Randomizer([[0.5, 0.3, 0.2], [0.2, 0.35, 0.45]])


def histograms(randomizer, n, runs, rng, *, own, held=0):
    """Runs in which n - 1 users hold one input and one user another."""
    others = rng.multinomial(n - 1, randomizer.matrix[held], size=runs)
    return others + rng.multinomial(1, randomizer.matrix[own], size=runs)


def audit_of(randomizer, n, runs, rng, **options):
    p = histograms(randomizer, n, runs, rng, own=1)
    q = histograms(randomizer, n, runs, rng, own=0)
    return fs.audit(p, q, rng=rng, **{"delta": 1e-3, **options})


def test_noise_proves_nothing():
    """Identical laws, 150 audits at 80 percent: no more false alarms than stated."""
    rng = np.random.default_rng(1)
    alarms = 0
    for _ in range(150):
        p, q = (histograms(ASYMMETRIC, 20, 60, rng, own=0) for _ in range(2))
        result = fs.audit(p, q, delta=0.0, rng=rng, confidence=0.8)
        lower, upper = result.epsilon_bounds
        assert lower >= 0.0
        assert upper == math.inf
        alarms += lower > 0.0
    assert alarms <= 0.2 * 150


def test_the_bound_is_below_the_truth_and_not_far():
    rng = np.random.default_rng(2)
    exact = fs.exact_profile(fs.ShuffleExperiment(ASYMMETRIC, 3, k=0))
    truth = exact.epsilon(1e-3)
    found = [audit_of(ASYMMETRIC, 3, 8000, rng, claimed=exact) for _ in range(10)]
    assert all(result.epsilon_lower <= truth for result in found)
    assert all(result.verdict == "consistent" for result in found)
    assert all(result.claimed_epsilon == truth for result in found)
    assert max(result.epsilon_lower for result in found) > 0.5 * truth


@pytest.mark.parametrize("swapped", [False, True])
def test_each_direction_by_its_own_event(swapped):
    """Only one law sends the last output: a loss in one direction that the other has not."""
    rng = np.random.default_rng(3)
    w = fs.Randomizer([[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]])
    p = histograms(w, 10, 2000, rng, own=1)
    q = histograms(w, 10, 2000, rng, own=0)
    result = fs.audit(*((q, p) if swapped else (p, q)), delta=0.01, rng=rng)
    found = {evidence.direction: evidence for evidence in result.evidence}
    strong, weak = ("reverse", "forward") if swapped else ("forward", "reverse")
    assert found[strong].epsilon > 4.0
    assert found[strong].seen_opposite == 0
    assert found[weak].epsilon < 1.0
    assert result.epsilon_lower == found[strong].epsilon


def test_a_claim_is_refuted_with_evidence():
    rng = np.random.default_rng(4)
    result = audit_of(ASYMMETRIC, 3, 8000, rng, claimed=0.05)
    assert (result.verdict, result.violated) == ("violated", True)
    best = max(result.evidence, key=lambda evidence: evidence.epsilon)
    # the bound follows from the counts alone
    assert best.runs + best.runs_opposite == 8000
    assert best.probability_lower < best.seen / best.runs
    assert best.probability_upper > best.seen_opposite / best.runs_opposite
    expected = math.log((best.probability_lower - 1e-3) / best.probability_upper)
    assert result.epsilon_lower == expected > 0.05
    content = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert content["verdict"] == "violated"
    assert content["evidence"][0]["scores"] == list(result.evidence[0].scores)
    # whole numbers, so that anyone finds the same histograms in the event
    assert all(score == round(score) for e in result.evidence for score in e.scores)


def test_without_a_claim():
    result = audit_of(ASYMMETRIC, 3, 100, np.random.default_rng(5))
    assert (result.verdict, result.violated, result.claimed_epsilon) == ("no claim", False, None)
    assert audit_of(ASYMMETRIC, 3, 100, np.random.default_rng(5)) == result
    claimed = audit_of(ASYMMETRIC, 3, 100, np.random.default_rng(5), claimed=math.inf)
    assert claimed.to_dict()["claimed_epsilon"] == "inf"


def test_constant_histograms():
    same = np.full((40, 2), 5)
    assert fs.audit(same, same, delta=0.0, rng=np.random.default_rng(1)).epsilon_lower == 0.0


@pytest.mark.parametrize(
    ("p", "q", "options", "error", "message"),
    [
        (np.ones(30, int), None, {}, ValueError, "samples_p must be 2-D with a column an output"),
        (np.ones((30, 2)), None, {}, TypeError, "samples_p must be integers, got dtype float64"),
        (np.ones((9, 2), int), None, {}, ValueError, "samples_p must have at least 20 rows, got 9"),
        (None, -np.ones((30, 2), int), {}, ValueError, "samples_q must be >= 0 .* got -1 in row 0"),
        (None, np.ones((30, 3), int), {}, ValueError, "equally many outputs, got 2 and 3"),
        (None, None, {"delta": 1.5}, ValueError, r"delta must be in \[0, 1\], got 1.5"),
        (None, None, {"confidence": 0.1}, ValueError, "confidence must be in"),
        (None, None, {"rng": 1}, TypeError, "rng must be a numpy.random.Generator"),
        (None, None, {"claimed": -1.0}, ValueError, "claimed must be >= 0, got -1.0"),
        (None, None, {"claimed": "1"}, TypeError, "claimed must be a real number"),
    ],
)
def test_refusals(p, q, options, error, message):
    good = np.ones((30, 2), dtype=np.int64)
    arguments = {"delta": 0.0, "rng": np.random.default_rng(1), **options}
    with pytest.raises(error, match=message):
        fs.audit(good if p is None else p, good if q is None else q, **arguments)
