"""The commands ``simulate`` and ``audit``: numbers against the library, files, refusals."""

import json
import math
import sys

import numpy as np
import pytest
from dask.distributed import LocalCluster

import fastshuffle as fs
from fastshuffle import cli
from fastshuffle.cli import simulate as simulate_module

ROWS = "0.5,0.3,0.2\n0.2,0.35,0.45\n0.3,0.3,0.4\n"
SETTING = ["--users", "1000", "--matrix", "w.csv"]
FIXED = [*SETTING, "--others", "2:999"]
FEW = ["--samples", "20000", "--seed", "7"]


@pytest.fixture
def command(capsys, tmp_path, monkeypatch):
    """Run the command in a folder with a matrix and return exit code, output and error lines."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w.csv").write_text(ROWS)

    def run(*arguments):
        code = cli.run([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return code, out.splitlines(), err.splitlines()

    return run


def rows_of(lines):
    first = lines.index("")
    second = lines.index("", first + 1)
    return [line.split() for line in lines[first + 2 : second]]


class TestSimulate:
    def test_messages_that_stay_together(self, command):
        setting = ["--mechanism", "rr", "--epsilon0", "1", "--users", "100", "--ones", "0"]
        several = [*setting, "--messages", "2", "--bundled", "--epsilon", "0.3", *FEW]
        code, out, err = command("simulate", *several)
        assert (code, err) == (0, [])
        assert "2 messages together" in " ".join(" ".join(out).split())
        together = fs.bundle(fs.binary_randomized_response(1.0), 2)
        exact = fs.exact_profile(fs.ShuffleExperiment(together, 100, k=0))
        for _, _, _, lower, upper, direction in rows_of(out):
            assert float(lower) <= exact.delta(0.3, direction=direction) <= float(upper)

    def test_numbers_files_and_a_second_run(self, command, tmp_path):
        arguments = ["simulate", *FIXED, "--delta", "1e-6", "--epsilon", "0.02", *FEW]
        code, out, err = command(*arguments, "--json", "o.json", "--state", "s.json")
        assert (code, err) == (0, [])
        assert command(*arguments)[1] == out
        exact = fs.exact_profile(
            fs.ShuffleExperiment(fs.Randomizer.from_csv(tmp_path / "w.csv"), 1000, others={2: 999})
        )
        rows = rows_of(out)
        assert [row[5] for row in rows] == [*2 * ["both"], *2 * ["forward"], *2 * ["reverse"]]
        for quantity, at, shown, lower, upper, direction in rows:
            truth = getattr(exact, quantity)(float(at), direction=direction)
            assert float(lower) <= truth <= float(upper)
            assert math.isclose(float(shown), truth, rel_tol=0.2)
        text = " ".join(" ".join(out).split())
        for words in ("not a guarantee", "ESTIMATE", "replace-one", "seed 7", "2:999"):
            assert words in text
        content = json.loads((tmp_path / "o.json").read_text())
        assert content["seed"] == "7"
        assert content["setting"]["n_samples"] == 20_000
        assert [row["quantity"] for row in content["estimates"]] == 3 * ["epsilon", "delta"]
        # the same seed brings nothing new, another one does
        for seed, total in (("7", 20_000), ("8", 40_000)):
            code, _, _ = command(
                *arguments[:-1], seed, "--state", "s.json", "--json", "o.json", "--workers", "1"
            )
            assert code == 0
            content = json.loads((tmp_path / "o.json").read_text())
            assert content["setting"]["n_samples"] == total

    def test_a_mixed_composition(self, command):
        others = [part for z in ("0:500", "1:200", "2:299") for part in ("--others", z)]
        code, out, err = command(
            "simulate", *SETTING, *others, "--delta", "1e-4", "--epsilon", "0.01", "--samples",
            "2000", "--seed", "1",
        )  # fmt: skip
        assert (code, err) == (0, [])
        rows = rows_of(out)
        for row in rows:
            assert 0.0 < float(row[3]) < float(row[2]) < float(row[4]) < 1.0

    def test_an_interrupted_run_keeps_its_samples(self, command, tmp_path, monkeypatch):
        run = fs.Simulation.run

        def interrupted(self, n_samples, rng, **options):
            run(self, n_samples, rng, **options)
            raise KeyboardInterrupt

        monkeypatch.setattr(fs.Simulation, "run", interrupted)
        code, _, _ = command("simulate", *FIXED, "--delta", "1e-6", *FEW, "--state", "s.json")
        assert code == 130
        content = json.loads((tmp_path / "s.json").read_text())
        assert content["sums"]["forward"]["size"] == 10_000

    def test_progress_on_a_terminal(self, monkeypatch):
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
        with simulate_module._progress_bar(10) as progress:
            progress(5, 10)
        monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
        with simulate_module._progress_bar(10) as progress:
            assert progress is None

    def test_dask(self, command):
        arguments = ["simulate", *FIXED, "--delta", "1e-6", *FEW]
        _, expected, _ = command(*arguments)
        with LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster:
            code, out, _ = command(*arguments, "--dask", cluster.scheduler_address)
        assert (code, out) == (0, expected)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ([*SETTING, "--ones", "3"], "at least one of --delta and --epsilon must be given"),
            ([*SETTING, "--delta", "0.1"], "one of --ones and --others must be given"),
            ([*FIXED, "--delta", "2"], "--delta must be a number in [0, 1], got '2'"),
            ([*FIXED, "--delta", "0.1", "--samples", "1"], "--samples must be an integer from 2"),
            ([*FIXED, "--delta", "0.1", "--seed", "-1"], "--seed must be an integer from 0"),
            ([*FIXED, "--delta", "0.1", "--confidence", "1"], "--confidence must be a number in"),
            ([*FIXED, "--delta", "0.1", "--workers", "0"], "--workers must be an integer from 1"),
            (
                [*FIXED, "--delta", "0.1", "--workers", "1", "--dask", "tcp://localhost:1"],
                "--workers must be given without --dask",
            ),
            ([*FIXED, "--delta", "0.1", "--dask", "nowhere://x"], "--dask nowhere://x: "),
            ([*FIXED, "--delta", "0.1", "--state", "w.csv"], "--state must name another file"),
        ],
    )
    def test_refusals(self, command, arguments, message):
        code, out, err = command("simulate", *arguments)
        assert (code, out) == (2, [])
        assert err[0].startswith(f"error: {message}")

    @pytest.mark.parametrize("content", [b"{}", b"\xff\xfe\x00"])
    def test_a_file_that_is_no_state(self, command, tmp_path, content):
        (tmp_path / "s.json").write_bytes(content)
        code, _, err = command("simulate", *FIXED, "--delta", "1e-6", *FEW, "--state", "s.json")
        assert code == 2
        assert err[0].startswith("error: --state s.json: ")
        assert (tmp_path / "s.json").read_bytes() == content

    def test_too_few_samples(self, command):
        code, _, err = command("simulate", *FIXED, "--delta", "1e-9", "--samples", "100")
        assert code == 1
        assert "equal weight" in err[0]


class TestAudit:
    @pytest.fixture
    def files(self, tmp_path):
        rng = np.random.default_rng(1)
        rows = [[0.5, 0.3, 0.2], [0.2, 0.35, 0.45]]
        for name, own in (("p.csv", 1), ("q.csv", 0)):
            counts = rng.multinomial(4, rows[0], 3000) + rng.multinomial(1, rows[own], 3000)
            np.savetxt(tmp_path / name, counts, fmt="%d", delimiter=",")
        return ["audit", "p.csv", "q.csv", "--delta", "1e-3", "--seed", "3"]

    def test_verdicts(self, command, files, tmp_path):
        for claim, verdict in (
            (["--epsilon", "0.05"], "violated"),
            (["--users", "5", "--matrix", "w.csv"], "consistent"),
            ([], "no claim"),
        ):
            code, out, err = command(*files, *claim, "--json", "a.json")
            assert (code, err[1:]) == (3 if verdict == "violated" else 0, [])
            content = json.loads((tmp_path / "a.json").read_text())
            assert content["verdict"] == verdict
            assert f"verdict {verdict}" in " ".join(" ".join(out).split())
            rows = rows_of(out)
            assert [row[0] for row in rows] == ["forward", "reverse"]
            found = content["evidence"]
            assert [float(row[1]) for row in rows] == pytest.approx(
                [evidence["epsilon"] for evidence in found], rel=1e-9
            )
            assert [row[2:] for row in rows] == [
                [str(evidence[name]) for name in ("seen", "runs", "seen_opposite", "runs_opposite")]
                for evidence in found
            ]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("1,2\n3\n", "error: P p.csv: line 2 must have 2 counts, got 1"),
            ("1,2\n3,x\n", "error: P p.csv, line 2: a count must be an integer"),
            ("1,-2\n", "error: P p.csv, line 1: a count must be an integer"),
            ("", "error: P p.csv: no histograms"),
            ("1,2\n", "error: samples_p must have at least 20 rows, got 1"),
        ],
    )
    def test_files_that_are_refused(self, command, files, tmp_path, text, message):
        (tmp_path / "p.csv").write_text(text)
        code, _, err = command(*files)
        assert code == 2
        assert err[0].startswith(message)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--epsilon", "1", "--users", "5"], "--epsilon must be given without --users"),
            (["--users", "5"], "--users must be given with --mechanism or --matrix"),
            (["--matrix", "w.csv"], "--users must be given with --mechanism or --matrix"),
            (["--epsilon", "-1"], "--epsilon must be a number >= 0"),
        ],
    )
    def test_claims_that_are_refused(self, command, files, arguments, message):
        code, _, err = command(*files, *arguments)
        assert code == 2
        assert err[0].startswith(f"error: {message}")

    def test_a_missing_file(self, command, files):
        code, _, err = command("audit", "none.csv", *files[2:])
        assert code == 2
        assert "none.csv" in err[0]
