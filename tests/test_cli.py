"""The command line: numbers against the library, files, refusals and exit codes."""

import csv
import json
import math
import subprocess
import sys

import pytest

import fastshuffle as fs
from fastshuffle import cli
from fastshuffle.__main__ import main

RR = ["curve", "--mechanism", "rr", "--epsilon0", "2"]
THOUSAND = [*RR, "--users", "1000"]
NUMBER = ["--delta", "1e-8"]
ASYMMETRIC = "0.8,0.2\n0.5,0.5\n"


@pytest.fixture
def command(capsys, tmp_path, monkeypatch):
    """Run the command in an empty folder and return exit code, output lines and error lines."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        code = cli.run([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return code, out.splitlines(), err.splitlines()

    return run


def rows_of(lines):
    """The table of numbers, as words: the lines between the first two blank ones."""
    first = lines.index("")
    second = lines.index("", first + 1)
    return [line.split() for line in lines[first + 2 : second]]


def facts_of(lines):
    return " ".join(" ".join(lines).split())


def not_below(text, value):
    """Whether the text is the value, rounded up to 10 digits."""
    return value <= float(text) <= value * (1.0 + 1e-9)


class TestNumbers:
    def test_the_main_job(self, command):
        code, out, err = command(*RR, "--users", "336776", *NUMBER)
        assert (code, err) == (0, [])
        profile = fs.worst_case_profile(fs.binary_randomized_response(2.0), 336776)
        epsilon = profile.epsilon(1e-8)
        worst = profile.argmax(epsilon)
        ((shown, delta, direction, zeros, ones),) = rows_of(out)
        assert not_below(shown, epsilon)
        assert (delta, direction) == ("1e-08", worst.direction)
        others = worst.experiment.others
        assert (int(zeros), int(ones)) == (others.get(0, 0), others.get(1, 0))
        facts = facts_of(out)
        for words in ("A guarantee", profile.validity, profile.relation, profile.method):
            assert words in facts
        assert profile.source in facts
        assert max(map(len, out)) <= 80

    def test_a_fixed_composition_has_both_directions(self, command):
        code, out, err = command(
            *THOUSAND, "--ones", "3", "--delta", "1e-8", "--epsilon", "0.1", "--epsilon", "0.2"
        )
        assert (code, err) == (0, [])
        rr = fs.binary_randomized_response(2.0)
        profile = fs.exact_profile(fs.ShuffleExperiment(rr, 1000, k=3))
        rows = rows_of(out)
        assert [row[2] for row in rows] == ["both", "forward", "reverse"] * 3
        for shown, delta, direction in rows[:3]:
            assert delta == "1e-08"
            assert not_below(shown, profile.epsilon(1e-8, direction=direction))
        for epsilon, delta, direction in rows[3:6]:
            assert epsilon == "0.1"
            assert not_below(delta, profile.delta(0.1, direction=direction))
        for epsilon, delta, direction in rows[6:]:
            assert epsilon == "0.2"
            assert not_below(delta, profile.delta(0.2, direction=direction))
        facts = facts_of(out)
        assert "not a guarantee" in facts
        assert "996 others hold 0 and 3 others hold 1" in facts

    def test_a_delta_below_every_double_is_not_zero(self, command):
        _, out, _ = command(*RR, "--users", "1e6", "--ones", "0", "--epsilon", "0.5")
        rr = fs.binary_randomized_response(2.0)
        profile = fs.exact_profile(fs.ShuffleExperiment(rr, 10**6, k=0))
        for _, delta, direction in rows_of(out):
            base, _, exponent = delta.partition("^")
            log10_delta = profile.log_delta(0.5, direction=direction) / math.log(10.0)
            assert base == "10"
            assert 0.0 <= float(exponent) - log10_delta < 2e-4

    def test_a_matrix_from_csv_and_from_json(self, command, tmp_path):
        (tmp_path / "w.csv").write_text(ASYMMETRIC)
        (tmp_path / "w.json").write_text("[[0.8, 0.2], [0.5, 0.5]]")
        settings = ["--users", "50", "--ones", "20", "--delta", "1e-3"]
        outputs = [command("curve", "--matrix", name, *settings) for name in ("w.csv", "w.json")]
        assert outputs[0] == outputs[1]
        w = fs.Randomizer([[0.8, 0.2], [0.5, 0.5]])
        profile = fs.exact_profile(fs.ShuffleExperiment(w, 50, k=20))
        for shown, _, direction in rows_of(outputs[0][1]):
            assert not_below(shown, profile.epsilon(1e-3, direction=direction))

    def test_ones_of_more_than_two_inputs(self, command, tmp_path):
        (tmp_path / "w.csv").write_text("0.8,0.2\n0.5,0.5\n0.4,0.6\n")
        settings = ["curve", "--matrix", "w.csv", "--users", "50", "--delta", "1e-3"]
        code, out, _ = command(*settings, "--ones", "20")
        assert code == 0
        assert "29 others hold 0 and 20 others hold 1" in facts_of(out)
        code, out, _ = command(*settings)
        assert code == 0
        assert "others at 0 others at 2" in facts_of(out)

    @pytest.mark.parametrize("users", ["1e12", "1000000000000", "1_000_000_000_000", "1.0E+12"])
    def test_forms_of_users(self, command, users):
        code, out, err = command(*RR, "--users", users, "--epsilon", "1e-5")
        assert (code, err) == (0, [])
        assert "1,000,000,000,000, with the one" in facts_of(out)

    def test_every_integer_of_the_domain_is_kept(self, command):
        _, out, _ = command(*RR, "--users", 2**53 - 1, "--ones", "0", "--epsilon", "inf")
        assert f"{2**53 - 1:,}" in facts_of(out)

    def test_edge_values(self, command):
        code, out, err = command(*THOUSAND, "--delta", "0", "--epsilon", "inf", "--epsilon", "2")
        assert (code, err) == (0, [])
        assert [row[:2] for row in rows_of(out)] == [["2", "0"], ["inf", "0"], ["2", "0"]]

    def test_one_user(self, command):
        code, out, _ = command(*RR, "--users", "1", "--ones", "0", "--delta", "0.5")
        assert code == 0
        assert "there are no others" in facts_of(out)

    def test_case_23_a_large_delta_is_one_warning(self, command):
        code, out, err = command(*THOUSAND, "--ones", "0", "--delta", "0.001", "--csv", "a.csv")
        assert code == 0
        assert len(rows_of(out)) == 3
        (line,) = err
        assert line.startswith("warning: delta = 0.001 is not below 1/n = 0.001")


class TestFiles:
    @pytest.mark.parametrize("ones", [[], ["--ones", "3"]])
    def test_json(self, command, tmp_path, ones):
        numbers = ["--delta", "1e-8", "--epsilon", "0.1", "--epsilon", "1.9"]
        code, _, err = command(*THOUSAND, *ones, *numbers, "--json", "a.json")
        assert (code, err) == (0, [])
        content = json.loads((tmp_path / "a.json").read_text())
        rr = fs.binary_randomized_response(2.0)
        if ones:
            profile = fs.exact_profile(fs.ShuffleExperiment(rr, 1000, k=3))
        else:
            profile = fs.worst_case_profile(rr, 1000)
            for row in [*content["guarantees"], *content["curve"]]:
                worst = profile.argmax(row["epsilon"])
                dataset = worst.experiment.to_dict()
                assert row.pop("worst_dataset") == {
                    "others": dataset["others"],
                    "pair": [0, 1],
                    "direction": worst.direction,
                }
        assert content == profile.to_dict(delta=[1e-8], epsilon=[0.1, 1.9])

    def test_csv_of_the_worst_case(self, command, tmp_path):
        command(*RR, "--users", "1e6", *NUMBER, "--epsilon", "0.5", "--csv", "a.csv")
        with (tmp_path / "a.csv").open(newline="") as file:
            at_delta, at_epsilon = csv.DictReader(file)
        profile = fs.worst_case_profile(fs.binary_randomized_response(2.0), 10**6)
        assert float(at_delta["epsilon"]) == profile.epsilon(1e-8)
        assert float(at_delta["delta"]) == 1e-8
        assert float(at_epsilon["log_delta"]) == profile.log_delta(0.5)
        assert float(at_epsilon["delta"]) > 0.0  # though exp(log_delta) is below every double
        assert [row["kind"] for row in (at_delta, at_epsilon)] == ["epsilon", "delta"]
        worst = profile.argmax(0.5)
        assert at_epsilon["direction"] == worst.direction
        others = worst.experiment.others
        assert at_epsilon["others"] == " ".join(f"{x}:{count}" for x, count in others.items())
        assert at_epsilon["validity"] == "UPPER_BOUND"
        assert at_epsilon["relation"] == "replace-one, n known"
        assert (at_epsilon["datasets"], at_epsilon["n"], at_epsilon["pair"]) == (
            "all",
            "1000000",
            "0 1",
        )

    def test_csv_of_a_fixed_composition(self, command, tmp_path):
        command(*THOUSAND, "--ones", "3", "--epsilon", "0.1", "--csv", "a.csv")
        with (tmp_path / "a.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        rr = fs.binary_randomized_response(2.0)
        profile = fs.exact_profile(fs.ShuffleExperiment(rr, 1000, k=3))
        assert [row["direction"] for row in rows] == ["both", "forward", "reverse"]
        for row in rows:
            log_delta = profile.log_delta(0.1, direction=row["direction"])
            assert float(row["log_delta"]) == log_delta
            assert float(row["delta"]) == pytest.approx(math.exp(log_delta), rel=1e-15, abs=0.0)
            assert (row["datasets"], row["others"]) == ("these", "0:996 1:3")

    @pytest.mark.parametrize("ones", [[], ["--ones", "3"]])
    def test_plot(self, command, tmp_path, ones):
        code, _, err = command(*THOUSAND, *ones, "--delta", "1e-8", "--plot", "a.png")
        assert (code, err) == (0, [])
        assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")

    def test_all_files_and_nothing_else(self, command, tmp_path):
        (tmp_path / "a.json").write_text("old")
        files = ["--json", "a.json", "--csv", tmp_path / "a.csv", "--plot", "a.png"]
        code, _, err = command(*THOUSAND, "--delta", "1e-8", *files)
        assert (code, err) == (0, [])
        assert {path.name for path in tmp_path.iterdir()} == {"a.json", "a.csv", "a.png"}
        assert json.loads((tmp_path / "a.json").read_text())["validity"] == "UPPER_BOUND"

    def test_a_file_that_cannot_be_written_leaves_no_other(self, command, tmp_path):
        (tmp_path / "a.json").write_text("old")
        too_long = "x" * 250 + ".csv"  # found out by the file system only
        code, out, err = command(
            *THOUSAND, "--delta", "1e-8", "--json", "a.json", "--csv", too_long
        )
        assert (code, out) == (2, [])
        (line,) = err
        assert line.startswith(f"error: --csv {too_long}: ")
        assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
        assert (tmp_path / "a.json").read_text() == "old"

    def test_an_error_while_computing_writes_nothing(self, command, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
        files = ["--json", "a.json", "--plot", "a.png"]
        code, out, err = command(*THOUSAND, "--delta", "1e-8", *files)
        assert (code, out) == (2, [])
        assert err == ['error: --plot: a plot needs matplotlib: pip install "fastshuffle[plot]"']
        assert list(tmp_path.iterdir()) == []


class TestBadInput:
    @pytest.mark.parametrize(
        ("arguments", "word"),
        [
            ([], "command"),
            (["curves"], "curves"),
            (["--frobnicate"], "--frobnicate"),
            ([*THOUSAND, *NUMBER, "--frobnicate"], "--frobnicate"),
            ([*THOUSAND, *NUMBER, "extra"], "extra"),
            ([*THOUSAND, "--delta"], "--delta"),
            ([*RR, *NUMBER], "--users"),
        ],
    )
    def test_what_typer_refuses(self, command, tmp_path, arguments, word):
        code, out, err = command(*arguments)
        assert (code, out) == (2, [])
        (line,) = err
        assert line.startswith("error: ")
        assert word in line
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (THOUSAND, "at least one of --delta and --epsilon must be given"),
            (
                ["curve", "--users", "10", *NUMBER],
                "one of --mechanism and --matrix must be given",
            ),
            (
                ["curve", "--mechanism", "oue", "--epsilon0", "1", "--users", "10", *NUMBER],
                "--mechanism must be rr, got 'oue'",
            ),
            (
                ["curve", "--mechanism", "rr", "--users", "10", *NUMBER],
                "--epsilon0 must be given with --mechanism",
            ),
            (
                [*THOUSAND, *NUMBER, "--matrix", "w.csv"],
                "--matrix must be given without --mechanism and --epsilon0",
            ),
            (
                ["curve", "--epsilon0", "1", "--matrix", "w.csv", "--users", "10", *NUMBER],
                "--matrix must be given without --mechanism and --epsilon0",
            ),
        ],
    )
    def test_a_combination_of_options(self, command, tmp_path, arguments, message):
        code, out, err = command(*arguments)
        assert (code, out, err) == (2, [], [f"error: {message}"])
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        "value", ["0", "-5", "2.9", "1e400", "nan", "snan", "inf", "many", "", str(2**53 + 1)]
    )
    def test_users(self, command, value):
        code, out, err = command(*RR, "--users", value, *NUMBER)
        line = f"error: --users must be an integer from 1 to {2**53}, got {value!r}"
        assert (code, out, err) == (2, [], [line])

    @pytest.mark.parametrize("value", ["-1", "1000", "0.5", "nan", "all"])
    def test_ones(self, command, value):
        code, out, err = command(*THOUSAND, *NUMBER, "--ones", value)
        line = f"error: --ones must be an integer from 0 to 999, got {value!r}"
        assert (code, out, err) == (2, [], [line])

    @pytest.mark.parametrize("value", ["nan", "-1", "-1e-300", "text", "", "1e-400", "1e400"])
    @pytest.mark.parametrize(
        ("option", "domain"), [("--epsilon", ">= 0"), ("--epsilon0", ">= 0 and finite")]
    )
    def test_epsilons(self, command, option, domain, value):
        code, out, err = command(*THOUSAND, *NUMBER, option, value)
        line = f"error: {option} must be a number {domain}, got {value!r}"
        assert (code, out, err) == (2, [], [line])

    def test_an_infinite_epsilon0(self, command):
        code, out, err = command(*THOUSAND, *NUMBER, "--epsilon0", "inf")
        assert (code, out) == (2, [])
        assert err == ["error: --epsilon0 must be a number >= 0 and finite, got 'inf'"]

    @pytest.mark.parametrize("value", ["nan", "-1e-8", "1.5", "text", "1e-400"])
    def test_the_second_delta(self, command, tmp_path, value):
        files = ["--json", "a.json", "--csv", "a.csv", "--plot", "a.png"]
        code, out, err = command(*THOUSAND, *NUMBER, "--delta", value, *files)
        line = f"error: --delta must be a number in [0, 1], got {value!r}"
        assert (code, out, err) == (2, [], [line])
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            ("w.csv", None, "--matrix w.csv: No such file or directory"),
            ("w.txt", ASYMMETRIC, "--matrix must name a .csv or .json file, got 'w.txt'"),
            ("w.csv", "0.8,0.2\n0.5,x\n", "--matrix w.csv: line 2 must hold numbers, got 'x'"),
            (
                "w.csv",
                "0.8,0.2\n0.5,0.6\n",
                "--matrix w.csv: line 2 must sum to 1 within 1e-12 times its length, got 1.1",
            ),
            ("w.csv", "", "--matrix w.csv: matrix must have at least one row and one column, "),
            ("w.csv", "\x00\xff", "--matrix w.csv: "),
            ("w.json", "{", "--matrix w.json: Expecting property name"),
            ("w.json", '{"w": 1}', "--matrix w.json: a randomizer has the key 'matrix'"),
            ("w.csv", "0.8,0.1,0.1\n0.5,0.5,0\n", "--matrix: randomizer must have 2 outputs, got"),
            ("w.csv", "0.8,0.2\n", "--matrix: randomizer must have at least 2 inputs, got 1"),
        ],
    )
    @pytest.mark.parametrize("ones", [[], ["--ones", "1"]])
    def test_the_matrix(self, command, tmp_path, name, content, message, ones):
        if content is not None:
            (tmp_path / name).write_bytes(content.encode("latin-1"))
        settings = ["--matrix", name, "--users", "10", *NUMBER, *ones, "--json", "a.json"]
        code, out, err = command("curve", *settings)
        assert (code, out) == (2, [])
        (line,) = err
        assert line.startswith(f"error: {message}")
        assert not (tmp_path / "a.json").exists()

    @pytest.mark.parametrize("option", ["--json", "--csv", "--plot"])
    def test_the_place_of_a_file(self, command, tmp_path, option):
        missing = "nowhere/a.png"
        (tmp_path / "folder.png").mkdir()
        for path, reason in (
            (missing, f"must name a file in an existing folder, got {missing}"),
            ("folder.png", "must name a regular file, got folder.png"),
        ):
            code, out, err = command(*THOUSAND, *NUMBER, option, path)
            assert (code, out, err) == (2, [], [f"error: {option} {reason}"])
        assert [path.name for path in tmp_path.iterdir()] == ["folder.png"]

    def test_a_plot_is_a_png(self, command):
        code, out, err = command(*THOUSAND, *NUMBER, "--plot", "a.pdf")
        assert (code, out, err) == (2, [], ["error: --plot must name a .png file, got a.pdf"])

    def test_two_options_never_share_a_file(self, command, tmp_path):
        (tmp_path / "w.json").write_text("[[0.8, 0.2], [0.5, 0.5]]")
        settings = ["curve", "--matrix", "w.json", "--users", "10", *NUMBER]
        code, _, err = command(*settings, "--json", tmp_path / "w.json")
        assert code == 2
        assert err[0].startswith("error: --json must name another file than --matrix, got ")
        code, _, err = command(*settings, "--json", "a", "--csv", "a")
        assert (code, err) == (2, ["error: --csv must name another file than --json, got a"])

    def test_an_uncertified_number_is_exit_code_1(self, command, monkeypatch):
        def stop(*_):
            raise RuntimeError("no epsilon\ncould be certified")

        monkeypatch.setattr(cli, "_quotes", stop)
        code, out, err = command(*THOUSAND, *NUMBER)
        assert (code, out, err) == (1, [], ["error: no epsilon could be certified"])

    def test_a_keyboard_interrupt_is_exit_code_130(self, command, monkeypatch):
        def interrupt(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr(cli, "_quotes", interrupt)
        assert command(*THOUSAND, *NUMBER) == (130, [], [])


class TestOtherCommands:
    def test_version(self, command):
        assert command("--version") == (0, [f"fastshuffle {fs.__version__}"], [])

    def test_precompile_counts_the_kernels(self, command, monkeypatch):
        monkeypatch.setattr(cli._jit, "precompile", lambda: 48)
        assert command("precompile") == (0, ["48 kernels compiled"], [])

    @pytest.mark.parametrize("arguments", [["--help"], ["curve", "--help"]])
    def test_help(self, command, arguments):
        code, out, err = command(*arguments)
        assert (code, err) == (0, [])
        assert "Usage: fastshuffle" in facts_of(out)


class TestEntryPoint:
    def test_a_missing_extra_is_named(self, capsys, monkeypatch):
        monkeypatch.delitem(sys.modules, "fastshuffle.cli")
        monkeypatch.setitem(sys.modules, "typer", None)
        assert main() == 2
        line = 'error: the command line needs typer: pip install "fastshuffle[cli]"\n'
        assert capsys.readouterr().err == line

    def test_a_process(self):
        process = self.run(*THOUSAND, *NUMBER)
        assert (process.returncode, process.stderr) == (0, "")
        (row,) = rows_of([line.rstrip() for line in process.stdout.splitlines()])
        assert row[1] == "1e-08"

    def test_a_process_that_refuses_has_no_traceback(self):
        process = self.run(*RR, "--users", "2.9", *NUMBER)
        assert (process.returncode, process.stdout) == (2, "")
        assert process.stderr.startswith("error: --users must be an integer")
        assert process.stderr.count("\n") == 1

    @staticmethod
    def run(*arguments):
        return subprocess.run(  # noqa: S603 - this package with arguments from here
            [sys.executable, "-m", "fastshuffle", *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
