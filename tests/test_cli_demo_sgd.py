"""The demonstration of SGD, on a few made-up flights."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from fastshuffle import cli
from fastshuffle.cli.demo.flights import Flights

QUICK = ["demo", "sgd", "--rounds", "3", "--delta", "1e-5"]


@pytest.fixture
def command(capsys, tmp_path, monkeypatch):
    """Run the command in an empty folder and return exit code, output and error text."""
    monkeypatch.chdir(tmp_path)
    # the module, which has the name of its command
    monkeypatch.setattr(sys.modules["fastshuffle.cli.demo.sgd"], "read_flights", made_up)

    def run(*arguments):
        code = cli.run([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return run


def made_up(*names):
    rng = np.random.default_rng(4)
    delay = rng.exponential(20.0, 4_000) - 10.0
    columns = {
        "arr_delay": delay + rng.normal(0.0, 10.0, 4_000),
        "dep_delay": delay,
        "hour": rng.integers(5, 24, 4_000),
        "distance": rng.uniform(100.0, 5_000.0, 4_000),
    }
    assert set(names) == set(columns)
    return Flights(columns, 4_000, 7)


def test_the_runs_and_what_is_said_of_them(command):
    code, out, err = command(*QUICK)
    assert (code, err) == (0, "")
    for run in ("not private", "shuffled", "no shuffler, as private", "two budgets, pooled"):
        assert run in out
    assert "all users take part in every round" in out
    assert "0 of 12,000 gradients" in out
    assert "APPROXIMATION" in out
    assert "UPPER_BOUND" in out


def test_a_delta_that_asks_for_no_noise(command):
    code, _, err = command(*QUICK[:-1], "0")
    assert code == 0
    code, _, err = command(*QUICK[:-1], "1")
    assert code == 2
    assert "--delta must be so small that it asks for noise, got 1.0" in err


def test_the_files(command):
    code, _, err = command(*QUICK, "--json", "fit.json", "--plot", "fit.png", "--sample", "0.25")
    assert (code, err) == (0, "")
    content = json.loads(Path("fit.json").read_text(encoding="utf-8"))
    assert Path("fit.png").read_bytes().startswith(b"\x89PNG")
    runs = {run["run"]: run for run in content["runs"]}
    assert "two budgets, pooled" not in runs
    shuffled, alone = runs["shuffled"], runs["no shuffler, as private"]
    assert "1,000 of 4,000 users, drawn anew without replacement" in shuffled["sampling"]
    central = shuffled["guarantee"]["central"]["epsilon"]
    assert 0.0 < central < shuffled["unshuffled_epsilon"] <= 3.0
    assert alone["unshuffled_epsilon"] <= central
    assert "guarantee" not in alone
    assert content["values_clipped"] > 0
    assert content["not_private"]["loss"] <= min(run["loss"] for run in runs.values())
    assert len(runs["two budgets, by users"]["guarantee"]["groups"]) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--mechanism", "rr"], "--mechanism must be one of coordinate, sphere, got 'rr'"),
        (["--rounds", "0"], "--rounds must be an integer from 1 to 10000, got '0'"),
        (["--sample", "2"], "--sample must be a number in [1e-6, 1], got '2'"),
        (["--clip", "0"], "--clip must be a number > 0"),
        (["--delta", "2"], "--delta must be a number in [0, 1], got '2'"),
        (["--plot", "fit.pdf"], "--plot must name a .png file"),
    ],
)
def test_bad_input(command, options, message):
    code, out, err = command(*QUICK, *options)
    assert code == 2
    assert out == ""
    assert message in err
