"""The demonstrations of the mean and of frequencies, on all flights out of New York in 2013."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fastshuffle as fs
from fastshuffle import cli
from fastshuffle.cli.demo import flights

N_FLIGHTS = 336_776


@pytest.fixture
def command(capsys, tmp_path, monkeypatch):
    """Run the command in an empty folder and return exit code, output and error text."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        code = cli.run(["demo", *(str(argument) for argument in arguments)])
        return code, *capsys.readouterr()

    return run


def runs_of(path):
    content = json.loads(Path(path).read_text(encoding="utf-8"))
    return content, {run["run"]: run for run in content["runs"]}


def test_frequency_of_carriers(command):
    code, out, err = command("frequency", "--json", "f.json", "--plot", "f.png")
    assert (code, err) == (0, "")
    for text in ("not private", "no shuffler, as private", "two budgets, by precision", "0 missed"):
        assert text in out
    assert Path("f.png").read_bytes().startswith(b"\x89PNG")
    content, runs = runs_of("f.json")
    truth = np.array(list(content["frequencies"].values()))
    assert content["frequencies"]["UA"] == pytest.approx(58_665 / N_FLIGHTS, rel=1e-15)
    shuffled, alone = runs["shuffled"], runs["no shuffler, as private"]
    errors = {name: np.abs(np.array(run["estimate"]) - truth).max() for name, run in runs.items()}
    assert errors["shuffled"] < 0.01 < errors["no shuffler, as private"]
    lower, upper = (np.array(shuffled[end]) for end in ("lower", "upper"))
    assert (lower <= truth).all()
    assert (truth <= upper).all()
    # what is printed as central is the bound over all datasets
    central = shuffled["guarantee"]["central"]
    worst = fs.worst_case_profile(fs.k_randomized_response(3.0, truth.size), N_FLIGHTS)
    assert_allclose(central["epsilon"], worst.epsilon(1e-8), rtol=1e-12, atol=0)
    assert "guarantee" not in alone
    assert alone["local_epsilon"] == central["epsilon"]


def test_frequency_of_destinations(command):
    code, out, err = command(
        "frequency", "--of", "destination", "--mechanism", "subset", "--top", "3", "--seed", "4"
    )
    assert (code, err) == (0, "")
    assert "105 destinations" in out
    assert "ORD" in out


def test_mean_delay(command):
    code, out, err = command("mean", "--json", "m.json", "--plot", "m.png")
    assert (code, err) == (0, "")
    assert "8,255 of" in out  # dropped
    assert "3,896 delays" in out  # clipped
    assert Path("m.png").read_bytes().startswith(b"\x89PNG")
    content, runs = runs_of("m.json")
    assert_allclose(content["mean"], 12.639070257304708, rtol=1e-12, atol=0)
    shuffled = runs["shuffled"]
    assert shuffled["lower"] <= content["mean_clipped"] <= shuffled["upper"]
    groups = runs["two budgets, by users"]["guarantee"]["groups"]
    assert sum(group["users"] for group in groups) == N_FLIGHTS - 8_255
    again = command("mean", "--json", "again.json")
    assert again[0] == 0
    assert runs_of("again.json") == (content, runs)  # the same seed, the same numbers


@pytest.mark.parametrize("mechanism", ["laplace", "piecewise"])
def test_mean_by_other_mechanisms(command, mechanism):
    code, out, err = command("mean", "--mechanism", mechanism, "--low", "0", "--high", "60")
    assert (code, err) == (0, "")
    assert "holds in the limit of many users" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["mean", "--mechanism", "krr"], "--mechanism must be one of rr, laplace, piecewise, got"),
        (["mean", "--low", "9", "--high", "2"], "low must be < high, got 9.0 and 2.0"),
        (["mean", "--epsilon0", "0"], "--epsilon0 must be a number > 0"),
        (["mean", "--cautious", "1"], "--cautious must be a number in [1e-6, 1 - 1e-6], got '1'"),
        (["frequency", "--of", "tail"], "--of must be one of carrier, destination, got 'tail'"),
        (["frequency", "--mechanism", "rr"], "--mechanism must be one of krr, oue, olh, hadamard"),
        (["frequency", "--top", "0"], "--top must be an integer from 1 to"),
        (["frequency", "--plot", "f.pdf"], "--plot must name a .png file"),
    ],
)
def test_bad_input(command, options, message):
    code, out, err = command(*options)
    assert code == 2
    assert out == ""
    assert message in err


def test_a_delta_that_asks_for_no_noise(command):
    code, _, err = command("mean", "--delta", "1")
    assert code == 2
    assert err.count("warning: ") == 1
    assert "--delta must be so small that it asks for noise, got 1.0" in err


def test_without_the_flights(command, monkeypatch):
    monkeypatch.setattr(sys.modules[flights.__name__], "find_spec", lambda _: None)
    code, _, err = command("mean")
    assert code == 2
    assert 'the demo needs the flights: pip install "fastshuffle[examples]"' in err
