"""The record of the accuracy surveys, and what a later run may reach."""

import dataclasses
import math

import numpy as np
import pytest
from mpmath import mp

from validation import accuracy, bracket_accuracy, limit_accuracy, sections

SURVEYS = (accuracy, limit_accuracy, bracket_accuracy)

ROW = accuracy.AccuracyRow("delta", "all", "one input", "n <= 100", 4, 2e-14, 1e-12)


def row(error, documented=1e-12):
    return accuracy.AccuracyRow(*ROW.key, 4, error, documented)


@pytest.mark.parametrize(
    ("recorded", "documented", "allowed"),
    [
        (2e-14, 1e-12, 8e-14),  # four times the record
        (5e-13, 1e-12, 1e-12),  # never above what is documented
        (1e-17, 1e-12, 4e-14),  # a hundredth of that always passes, four times
        (0.0, 1e-15, 8.8e-16),  # and one unit in the last place
    ],
)
def test_allowed_errors(recorded, documented, allowed):
    before = [row(recorded, documented)]
    assert accuracy.allowed_error(row(0.0, documented), before) == pytest.approx(allowed)


def test_a_regime_without_a_record_is_held_to_the_documented_bound():
    assert accuracy.allowed_error(ROW, []) == ROW.documented


@pytest.mark.parametrize("survey", SURVEYS, ids=lambda survey: survey.RECORD.stem)
def test_the_record_is_whole_and_within_what_is_documented(survey):
    rows = accuracy.read_record(survey.RECORD)
    assert len({row.key for row in rows}) == len(rows) > 0
    assert all(0.0 <= row.error <= row.documented and row.cases > 0 for row in rows)
    assert {(row.quantity, row.span) for row in rows} == {
        (quantity.name, quantity.span) for quantity in survey.QUANTITIES
    }


def assert_within_the_record(quantity, kind, cases, path):
    """Other cases than those of the survey are within four times its record."""
    drawn = (quantity.measure(np.random.default_rng((17, i))) for i in range(cases))
    errors = [error for error in drawn if error is not None]
    assert errors
    assert all(math.isfinite(error) for error in errors)
    here = accuracy.AccuracyRow(
        quantity.name, quantity.span, kind, quantity.regime, 1, max(errors), quantity.documented
    )
    recorded = accuracy.read_record(path)
    assert here.key in {row.key for row in recorded}
    assert here.error <= accuracy.allowed_error(here, recorded)


@pytest.mark.parametrize(
    "quantity", [q for q in limit_accuracy.QUANTITIES if q.cases >= 100], ids=lambda q: q.name
)
def test_limits_are_within_four_times_their_record(quantity):
    assert_within_the_record(quantity, limit_accuracy.LIMIT, 12, limit_accuracy.RECORD)


@pytest.mark.parametrize(
    "quantity", bracket_accuracy.QUANTITIES, ids=lambda q: f"{q.name}, {q.regime}"
)
def test_brackets_and_losses_are_within_four_times_their_record(quantity):
    kind, path = bracket_accuracy.HISTOGRAMS, bracket_accuracy.RECORD
    assert_within_the_record(quantity, kind, min(quantity.quick_cases, 3), path)


@pytest.mark.parametrize(
    ("log_lower", "log_upper", "distance"),
    [(-1.5, -0.5, math.expm1(0.5)), (-1.25, -1.0, math.expm1(0.25)), (-0.9, -0.5, math.inf)],
)
def test_a_bracket_that_misses_the_truth_has_an_infinite_error(log_lower, log_upper, distance):
    with mp.workdps(40):
        found = bracket_accuracy.distance(log_lower, log_upper, mp.exp(-1))
    assert found == pytest.approx(distance, rel=1e-12, abs=0)


def test_an_infinite_error_fails_the_run():
    rows = accuracy.read_record(bracket_accuracy.RECORD)
    assert sections.bracket_section(rows, rows).failures == ()
    missed = dataclasses.replace(rows[0], error=math.inf)
    [failure] = sections.bracket_section([missed, *rows[1:]], rows).failures
    assert failure.startswith("exact_profile, delta, all, ")


def test_the_record_survives_its_file(tmp_path):
    path = tmp_path / "record.json"
    path.write_text(accuracy.record_text([ROW]))
    assert accuracy.read_record(path) == [ROW]
    assert accuracy.read_record(tmp_path / "none.json") == []
