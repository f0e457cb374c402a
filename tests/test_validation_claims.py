"""The frame of the claims: verdicts follow from numbers, and a wrong claim comes out wrong."""

import dataclasses
import json
import math
from fractions import Fraction

import numpy as np
import pytest

import fastshuffle as fs
from validation import noise, personal, sections, splitting
from validation.__main__ import main
from validation.claim import (
    Claim,
    Curve,
    Figure,
    Finding,
    Verdict,
    at_least,
    at_most,
    constant_is,
    none_of,
    printed_number,
    rate_at_most,
    rate_is,
)
from validation.figures import draw
from validation.rates import Estimate, fit_limit, fit_rate, geometric_grid
from validation.reference import constants, exact, lattice
from validation.reference.deficiency import jitter_and_rounding
from validation.run_claims import FOLDER, check_claims, families
from validation.store import Store

GRID = geometric_grid(100, 10**6, 12)

WRONG = '''
"""A claim that is wrong: the total variation of the pair falls as 1/n."""

import fastshuffle as fs
from validation.claim import Claim, Finding, Verdict, rate_is
from validation.rates import fit_rate, geometric_grid

CLAIMS = (Claim("total variation is of order 1/n", "made up", Verdict.{expected}),)


def measure(*, quick):
    grid = geometric_grid(100, 10**4, 8)
    rr = fs.binary_randomized_response(1.0)
    values = [fs.exact_profile(fs.ShuffleExperiment(rr, n, k=0)).total_variation() for n in grid]
    return [Finding("total variation", "small", (rate_is(fit_rate(grid, values), -1.0),))]
'''


def claim_folder(tmp_path, expected):
    folder = tmp_path / "claims"
    folder.mkdir()
    (folder / "wrong.py").write_text(WRONG.replace("{expected}", expected))
    return folder


def test_a_wrong_claim_comes_out_false_and_fails_the_run(tmp_path, capsys):
    folder = claim_folder(tmp_path, "HOLDS")
    (judged,) = check_claims(folder, quick=True, progress=lambda _: None)
    assert judged.finding.verdict is Verdict.FALSE
    assert not judged.passed
    assert main(["--quick", "--only-claims", "--claims", str(folder)]) == 1
    assert "recorded: holds" in capsys.readouterr().out


def test_a_wrong_claim_recorded_as_false_passes_the_run(tmp_path):
    folder = claim_folder(tmp_path, "FALSE")
    assert main(["--quick", "--only-claims", "--claims", str(folder)]) == 0


def test_every_file_of_claims_is_found_and_recorded():
    found = families()
    assert {family.name for family in found} == {
        path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__"
    }
    for family in found:
        assert family.claims
        assert all(claim.statement and claim.source for claim in family.claims)


QUICK = ["closed_form", "jensen_shannon", "noise", "regression", "skellam", "worst_composition"]


@pytest.mark.parametrize("family", [f for f in families() if f.name in QUICK], ids=lambda f: f.name)
def test_verdicts_are_as_recorded(family):
    findings = family.measure(quick=True)
    for claim, finding in zip(family.claims, findings, strict=True):
        assert finding.verdict is claim.expected, (claim.statement, finding.verdict_text)


# ---- Verdicts ----------------------------------------------------------------------------------


def finding(*checks, **kwargs):
    return Finding("quantity", "grid", checks, **kwargs)


GOOD, BAD = at_most(1.0, 2.0, name="good"), at_most(3.0, 2.0, name="bad")
UNKNOWN = rate_is(Estimate(math.nan, math.inf), -1.0)


@pytest.mark.parametrize(
    ("checks", "verdict"),
    [
        ((), Verdict.UNDECIDED),
        ((GOOD,), Verdict.HOLDS),
        ((GOOD, BAD), Verdict.FALSE),
        ((GOOD, UNKNOWN), Verdict.UNDECIDED),
        ((UNKNOWN, BAD), Verdict.FALSE),
    ],
)
def test_verdict_of_checks(checks, verdict):
    assert finding(*checks).verdict is verdict


@pytest.mark.parametrize("kind", [Verdict.CORRECTED, Verdict.HOLDS_ONLY])
def test_an_amended_claim_needs_its_own_numbers(kind):
    assert finding(BAD, amended=(GOOD,), amendment=kind).verdict is kind
    assert finding(BAD, amended=(GOOD, BAD), amendment=kind).verdict is Verdict.FALSE
    assert finding(BAD, amended=(UNKNOWN,), amendment=kind).verdict is Verdict.FALSE
    assert finding(GOOD, amended=(BAD,), amendment=kind).verdict is Verdict.HOLDS
    text = finding(BAD, amended=(GOOD,), amendment=kind, otherwise="this").verdict_text
    assert text == f"{kind} this"


def test_checks_fail_on_nan():
    nan = math.nan
    assert at_most(nan, 1.0, name="x").passed is False
    assert at_least(nan, 1.0, name="x").passed is False
    assert constant_is(Estimate(nan, 0.1), 1.0).passed is None
    assert none_of(0, 0, name="x").passed is None
    assert none_of(1, 5, name="x").passed is False


@pytest.mark.parametrize(
    ("value", "uncertainty", "passed"),
    [
        (-1.0, 0.01, True),
        (-1.1, 0.01, False),
        (-1.05, 0.08, True),
        (-1.1, 0.3, None),
        (-1.5, 0.3, False),
    ],
)
def test_rate_check(value, uncertainty, passed):
    assert rate_is(Estimate(value, uncertainty), -1.0).passed is passed


@pytest.mark.parametrize(
    ("value", "uncertainty", "passed"),
    [(-1.0, 0.01, True), (-2.0, 0.5, True), (-0.9, 0.01, False), (-0.8, 0.3, None)],
)
def test_bound_on_a_rate(value, uncertainty, passed):
    assert rate_at_most(Estimate(value, uncertainty), -1.0).passed is passed


@pytest.mark.parametrize(
    ("found", "claimed", "passed"),
    [
        (0.48549, "0.4855", True),
        (0.4857, "0.4855", False),
        (9.13e-8, "9.1e-8", True),
        (9.3e-8, "9.1e-8", False),
    ],
)
def test_printed_numbers(found, claimed, passed):
    assert printed_number(found, claimed, name="x").passed is passed


# ---- Fits --------------------------------------------------------------------------------------


@pytest.mark.parametrize("exponent", [-0.5, -1.0, -3.0])
def test_fitted_rates(exponent):
    pure = fit_rate(GRID, [3.0 * n**exponent for n in GRID])
    assert pure.value == pytest.approx(exponent, abs=1e-10)
    bent = [n**exponent * (1.0 + 5.0 / n) for n in GRID]
    rate = fit_rate(GRID, bent, correction=1.0)
    assert abs(rate.value - exponent) < 1e-3
    wavy = [n**exponent * (1.2 + math.sin(n)) for n in GRID]
    rate = fit_rate(GRID, wavy)
    assert abs(rate.value - exponent) < 3.0 * rate.uncertainty


def test_rates_of_what_is_not_positive():
    for values in ([0.0] * len(GRID), [math.nan] * len(GRID), [-1.0] * len(GRID)):
        assert fit_rate(GRID, values).uncertainty == math.inf
    assert fit_rate(GRID[:3], [1.0, 2.0, 3.0]).uncertainty == math.inf


def test_fitted_limits():
    values = [2.0 + 3.0 / math.sqrt(n) - 7.0 / n for n in GRID]
    limit = fit_limit(GRID, values, 0.5)
    assert limit.value == pytest.approx(2.0, abs=1e-9)
    shifted = fit_limit(GRID, [v + 4.0 * n**-1.5 for n, v in zip(GRID, values, strict=True)], 0.5)
    assert abs(shifted.value - 2.0) < 3.0 * shifted.uncertainty


# ---- What the claims rest on -------------------------------------------------------------------


def test_lattice_laws_against_fractions():
    groups = [(5, 0.25), (7, 0.625)]
    law = lattice.sum_of_binomials(groups)
    true = exact.binomial_groups([(count, Fraction(p)) for count, p in groups])
    np.testing.assert_allclose(law.masses, [float(m) for m in true], rtol=1e-13, atol=0)
    points, q, p = lattice.binary_datasets(0.25, 0.625, 6, 2)
    laws = exact.binary_pair(
        [(3, Fraction(1, 4)), (2, Fraction(5, 8))], Fraction(1, 4), Fraction(5, 8)
    )
    for found, wanted in zip((q, p), laws, strict=True):
        np.testing.assert_allclose(found, [float(m) for m in wanted], rtol=1e-13, atol=0)
    assert points.tolist() == list(range(7))


def test_lattice_histograms_against_the_package():
    rows = np.array([[0.5, 0.3, 0.2], [0.2, 0.35, 0.45]])
    others = lattice.histogram(rows, (17, 6), 25)
    q, p = (lattice.with_one_more(others, row) for row in rows)
    profile = fs.exact_profile(fs.ShuffleExperiment(fs.Randomizer(rows), 24, k=6))
    for epsilon in (0.0, 0.05, 0.3):
        forward = profile.delta(epsilon, direction="forward")
        assert lattice.hockey_stick(p, q, epsilon) == pytest.approx(forward, rel=1e-10)


def test_shifted_negated_and_poisson_laws():
    law = lattice.poisson(2.5)
    assert law.masses @ law.points == pytest.approx(2.5, rel=1e-13)
    difference = lattice.convolve(law, lattice.negated(law))
    low, (left, right) = lattice.aligned(difference, lattice.negated(difference))
    np.testing.assert_allclose(left, right, rtol=1e-12, atol=0)
    assert low + len(left) - 1 == -low
    assert lattice.shifted(law, 3).low == law.low + 3


@pytest.mark.parametrize("mean", [0.0, 0.4])
def test_deficiency_against_a_fine_integral(mean):
    law = lattice.binomial(60, 0.3)
    centre, deviation = 18.0, math.sqrt(12.6)
    x = np.arange(-20.0, 80.0, 1e-3) + 5e-4
    jittered = np.zeros_like(x)
    cells = np.floor(x + 0.5).astype(int) - law.low
    inside = (cells >= 0) & (cells < len(law.masses))
    jittered[inside] = law.masses[cells[inside]]
    z = (x - centre) / deviation - mean
    normal = np.exp(-0.5 * z * z) / (math.sqrt(2.0 * math.pi) * deviation)
    distance = 0.5e-3 * np.abs(jittered - normal).sum()
    bound = jitter_and_rounding(law, centre, deviation, mean)
    assert distance * (1.0 - 1e-9) <= bound <= 1.05 * distance


def test_constants_of_randomized_response():
    p = 1.0 / (1.0 + math.e)
    rows = np.array([[1.0 - p, p], [p, 1.0 - p]])
    for pi in (0.0, 0.3, 1.0):
        value = (math.e - 1.0) ** 2 / math.e
        assert constants.fisher_constant(rows, pi) == pytest.approx(value, rel=1e-13)
    assert constants.mixture_constant(rows, 0.5) < constants.fisher_constant(rows, 0.5)
    assert constants.ratio_moment(rows, 2) == pytest.approx((math.e - 1.0) ** 2 / math.e, rel=1e-13)


# ---- Store and figures -------------------------------------------------------------------------


def test_findings_survive_json():
    figure = Figure("t", "x", "y", (Curve.of("c", [1, 2], [3, 4], slope=-1.0),))
    before = finding(BAD, amended=(GOOD,), amendment=Verdict.CORRECTED, figure=figure)
    assert Finding.from_dict(json.loads(json.dumps(before.to_dict()))) == before


def test_results_are_kept_until_the_code_changes(tmp_path):
    source = tmp_path / "claim.py"
    source.write_text("first")
    calls = []

    def compute():
        calls.append(None)
        return [len(calls)]

    store = Store(tmp_path / "results")
    assert [store.get("a", compute, source) for _ in range(2)] == [[1], [1]]
    source.write_text("second")
    assert Store(tmp_path / "results").get("a", compute, source) == [2]
    store.clear()
    assert store.get("a", compute, source) == [3]


def test_figures_are_small(tmp_path):
    curves = [
        Curve.of(f"curve {i}", GRID, [n**-0.5 / (i + 1) for n in GRID], slope=-0.5)
        for i in range(6)
    ]
    path = tmp_path / "figure.png"
    draw(Figure("title", "number of users n", "error", tuple(curves)), path)
    assert 5_000 < path.stat().st_size < 100_000


def test_claims_are_immutable():
    claim = Claim("s", "p", Verdict.HOLDS)
    with pytest.raises(AttributeError):
        claim.expected = Verdict.FALSE


# ---- Privacy and accuracy of several messages ---------------------------------------------------


def test_splitting_a_report_at_a_fixed_accuracy():
    rows = splitting.check_splitting(quick=True, progress=lambda _: None)
    settings = list(dict.fromkeys(row.setting for row in rows))
    assert [[row.messages for row in rows if row.setting == s] for s in settings] == 3 * [[1, 2, 8]]
    section = sections.splitting_section(rows)
    assert (section.failures, len(section.table), len(section.figures)) == ((), 10, 4)
    for row in rows:
        flip = 1.0 / (1.0 + math.exp(row.epsilon0))
        single = np.array([[1.0 - flip, flip], [flip, 1.0 - flip]])
        for pi in (0.0, 0.3):
            constant = row.messages * constants.fisher_constant(single, pi)
            assert row.variance == pytest.approx(1.0 / constant, rel=1e-12, abs=0)
    alike = [row for row in rows if row.setting == settings[2]]
    for row in alike:
        assert row.variance == pytest.approx(alike[0].variance, rel=1e-12, abs=0)
        assert row.unbundled == pytest.approx(alike[0].unbundled, rel=2e-3, abs=0)
    wrong = dataclasses.replace(rows[0], bundled=0.9 * rows[0].unbundled)
    assert len(sections.splitting_section([wrong, *rows[1:]]).failures) == 1


# ---- Personal budgets by several methods ---------------------------------------------------------


def test_personal_budgets_by_several_methods():
    rows = personal.check_personal(quick=True, progress=lambda _: None)
    section = sections.personal_section(rows)
    populations = len(personal.POPULATIONS)
    assert (section.failures, len(section.table), len(section.figures)) == (
        (),
        populations + 1,
        populations,
    )
    alike = next(row for row in rows if row.population == "uniform, 1")
    assert alike.exact == pytest.approx(alike.uniform, rel=1e-5, abs=0)
    assert alike.clones == pytest.approx(alike.uniform_clones, rel=1e-3, abs=0)
    # the formula is no bound where budgets are large, and gives privacy away where they are small
    assert max(row.factor for row in rows) > 1e4
    assert alike.factor < 1e-20
    wrong = dataclasses.replace(rows[0], clones=0.9 * rows[0].exact)
    assert len(sections.personal_section([wrong, *rows[1:]]).failures) == 1


# ---- Noise at equal central privacy --------------------------------------------------------------


def test_noise_at_equal_central_privacy():
    rows = noise.check_noise(quick=True, progress=lambda _: None)
    section = sections.noise_section(rows)
    assert (section.failures, len(section.table), len(section.figures)) == ((), 13, 2)
    bits, numbers, frequencies = (
        {row.epsilon: row for row in rows if row.estimate == estimate}
        for estimate in (noise.BITS, noise.NUMBERS, noise.FREQUENCIES)
    )
    for epsilon0 in (0.1, 2.0, 9.0):
        odds, n = math.exp(epsilon0), noise.USERS[0]
        flip, q = 1.0 / (1.0 + odds), 1.0 / (odds + 9.0)
        error = flip * (1.0 - flip) / (n * (1.0 - 2.0 * flip) ** 2)
        assert bits[0.5].error(epsilon0) == pytest.approx(error, rel=1e-12, abs=0)
        error = 0.25 / (n * (1.0 - 2.0 * flip) ** 2)
        assert numbers[0.5].error(epsilon0) == pytest.approx(error, rel=1e-12, abs=0)
        p = odds * q
        error = (0.1 * p * (1.0 - p) + 0.9 * q * (1.0 - q)) / (n * (p - q) ** 2)
        assert frequencies[0.5].error(epsilon0) == pytest.approx(error, rel=1e-12, abs=0)
    # the formula asks for more noise than the clones, and then for too little
    assert bits[0.1].formula < bits[0.1].clones
    assert bits[2.0].factor > 100.0
    assert bits[2.0].ratio(bits[2.0].formula) > 1.5
    assert bits[0.1].error(0.0) == math.inf
    wrong = dataclasses.replace(rows[0], clones=rows[0].ours)
    assert len(sections.noise_section([wrong, *rows[1:]]).failures) == 1
