"""The record of the accuracy surveys, and what a later run may reach."""

import math

import numpy as np
import pytest

from validation import accuracy, limit_accuracy

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


@pytest.mark.parametrize("path", [accuracy.RECORD, limit_accuracy.RECORD], ids=lambda p: p.stem)
def test_the_record_is_whole_and_within_what_is_documented(path):
    rows = accuracy.read_record(path)
    assert len({row.key for row in rows}) == len(rows) > 0
    assert all(0.0 <= row.error <= row.documented and row.cases > 0 for row in rows)
    survey = limit_accuracy if path == limit_accuracy.RECORD else accuracy
    assert {(row.quantity, row.span) for row in rows} == {
        (quantity.name, quantity.span) for quantity in survey.QUANTITIES
    }


@pytest.mark.parametrize(
    "quantity", [q for q in limit_accuracy.QUANTITIES if q.cases >= 100], ids=lambda q: q.name
)
def test_limits_are_within_four_times_their_record(quantity):
    drawn = (quantity.measure(np.random.default_rng((17, i))) for i in range(12))
    errors = [error for error in drawn if error is not None]
    assert errors
    assert all(math.isfinite(error) for error in errors)
    here = accuracy.AccuracyRow(
        quantity.name, quantity.span, "limit", quantity.regime, 1, max(errors), quantity.documented
    )
    recorded = accuracy.read_record(limit_accuracy.RECORD)
    assert here.error <= accuracy.allowed_error(here, recorded)


def test_the_record_survives_its_file(tmp_path):
    path = tmp_path / "record.json"
    path.write_text(accuracy.record_text([ROW]))
    assert accuracy.read_record(path) == [ROW]
    assert accuracy.read_record(tmp_path / "none.json") == []
