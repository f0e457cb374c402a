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
from fastshuffle.cli import app, bounds, curve, methods, settings

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
        assert "others at 0  others at 1" in out[2]
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


MECHANISMS = {
    "krr:16": fs.k_randomized_response(2.0, 16),
    "krr:1e3": fs.k_randomized_response(2.0, 1000),
    "sue:100": fs.symmetric_unary_encoding(2.0, 100),
    "oue:100": fs.optimized_unary_encoding(2.0, 100),
    "subset:64": fs.subset_selection(2.0, 64),
    "subset:64:5": fs.subset_selection(2.0, 64, 5),
    "hadamard:16": fs.hadamard_response(2.0, 16),
    "blh:100": fs.binary_local_hashing(2.0, 100),
    "olh:100": fs.optimized_local_hashing(2.0, 100),
    "olh:100:3": fs.optimized_local_hashing(2.0, 100, 3),
    "laplace": fs.laplace(2.0),
    "laplace:3": fs.laplace(2.0, 3),
    "discrete-laplace:4": fs.discrete_laplace(2.0, 4),
    "binned-laplace:3": fs.discretized_laplace(2.0, 3),
    "binned-laplace:3:2": fs.discretized_laplace(2.0, 3, bins_per_step=2),
}


class TestMechanisms:
    def test_every_one_is_tried(self):
        tried = {name.partition(":")[0] for name in MECHANISMS}
        assert tried | {"rr"} == set(settings._MECHANISMS)

    @pytest.mark.parametrize("mechanism", MECHANISMS)
    def test_the_worst_case(self, command, mechanism):
        randomizer = MECHANISMS[mechanism]
        code, out, err = command(
            "curve", "--mechanism", mechanism, "--epsilon0", "2", "--users", "1e5", *NUMBER
        )
        assert (code, err) == (0, [])
        profile = fs.worst_case_profile(randomizer, 10**5)
        epsilon = profile.epsilon(1e-8)
        worst = profile.argmax(epsilon)
        lower, upper = profile.bounds(epsilon)
        ((shown, delta, attained, direction, pair, others),) = rows_of(out)
        assert not_below(shown, epsilon)
        assert (delta, direction) == ("1e-08", worst.direction)
        assert lower * (1.0 - 1e-8) <= float(attained) <= lower <= upper <= 1e-8
        a, b = worst.experiment.pair
        ((z, count),) = worst.experiment.others.items()
        assert (pair, others) == (f"{a}:{b}", f"{z}:{count}")
        facts = facts_of(out)
        definition = randomizer.to_dict()
        assert definition["mechanism"] in facts
        for name in definition.keys() - {"mechanism", "epsilon0"}:
            assert f"{name} = {definition[name]}" in facts
        for words in ("A guarantee", "UPPER_BOUND", profile.relation, "what is not known"):
            assert words in facts
        assert max(map(len, out)) <= 80

    def test_the_dataset_of_a_line_is_what_the_options_take(self, command):
        setting = ["curve", "--mechanism", "oue:100", "--epsilon0", "2", "--users", "1000"]
        _, out, _ = command(*setting, *NUMBER)
        ((epsilon, _, attained, direction, pair, others),) = rows_of(out)
        code, out, _ = command(*setting, "--pair", pair, "--others", others, "--epsilon", epsilon)
        assert code == 0
        (row,) = [row for row in rows_of(out) if row[3] == direction]
        # epsilon was rounded up
        assert float(row[2]) == pytest.approx(float(attained), rel=1e-6, abs=0.0)

    def test_several_numbers_and_the_csv(self, command, tmp_path):
        numbers = ["--delta", "1e-8", "--epsilon", "0.05", "--csv", "a.csv"]
        setting = ["curve", "--mechanism", "krr:5", "--epsilon0", "2", "--users", "1000"]
        _, out, _ = command(*setting, *numbers)
        with (tmp_path / "a.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        profile = fs.worst_case_profile(fs.k_randomized_response(2.0, 5), 1000)
        for shown, row in zip(rows_of(out), rows, strict=True):
            lower, upper = profile.bounds(float(row["epsilon"]))
            assert float(row["lower_delta"]) == pytest.approx(lower, rel=1e-12, abs=0.0)
            assert upper <= float(row["delta"]) * (1.0 + 1e-12)
            assert shown[4:] == [row["pair"].replace(" ", ":"), row["others"]]

    def test_a_lower_end_below_every_double(self, command):
        setting = ["curve", "--mechanism", "krr:3", "--epsilon0", "2", "--users", "20000"]
        code, out, _ = command(*setting, "--epsilon", "0.9")
        assert code == 0
        ((_, delta, attained, *_),) = rows_of(out)
        assert delta.startswith("10^-")
        assert attained == "<1e-307"

    def test_identical_rows(self, command):
        setting = ["curve", "--mechanism", "krr:3", "--epsilon0", "0", "--users", "10"]
        code, out, _ = command(*setting, "--epsilon", "0", "--delta", "1e-9")
        assert code == 0
        assert [row[:2] for row in rows_of(out)] == [["0", "1e-09"], ["0", "0"]]

    def test_a_plot(self, command, tmp_path):
        setting = ["curve", "--mechanism", "binned-laplace:2", "--epsilon0", "1", "--users", "1000"]
        code, _, err = command(*setting, *NUMBER, "--plot", "a.png")
        assert (code, err) == (0, [])
        assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")

    @pytest.mark.parametrize(
        "mechanism",
        [
            "",
            "RR",
            "warner",
            "rr:2",
            "krr",
            "krr:",
            "krr:3:4",
            "subset:8:2:1",
            "olh",
            ":3",
            "discrete-laplace",
        ],
    )
    def test_an_unknown_form(self, command, mechanism):
        code, out, err = command(
            "curve", "--mechanism", mechanism, "--epsilon0", "1", "--users", "10", *NUMBER
        )
        assert (code, out) == (2, [])
        (line,) = err
        if mechanism == "krr:":
            assert line.startswith("error: each argument of --mechanism krr must be an integer")
            return
        forms = "rr, krr:K, sue:K, oue:K, subset:K[:OMEGA], hadamard:K, blh:K, olh:K[:G], "
        assert line.startswith(f"error: --mechanism must be one of {forms}")
        assert line.endswith(f", got {mechanism!r}")

    @pytest.mark.parametrize(
        ("mechanism", "message"),
        [
            ("krr:1", "--mechanism krr:1: k must be >= 2, got 1"),
            ("subset:8:8", "--mechanism subset:8:8: omega must be <= 7, got 8"),
            ("olh:8:1", "--mechanism olh:8:1: g must be >= 2, got 1"),
            ("discrete-laplace:1", "--mechanism discrete-laplace:1: n_levels must be >= 2, got 1"),
            ("krr:2.5", "each argument of --mechanism krr must be an integer from 0 to "),
            ("krr:1e400", "each argument of --mechanism krr must be an integer from 0 to "),
            ("krr:nan", "each argument of --mechanism krr must be an integer from 0 to "),
            (
                "discrete-laplace:100",
                "randomizer must have at most 64 inputs unless a pair is given, got",
            ),
        ],
    )
    def test_an_argument_outside_its_domain(self, command, mechanism, message):
        code, out, err = command(
            "curve", "--mechanism", mechanism, "--epsilon0", "1", "--users", "10", *NUMBER
        )
        assert (code, out) == (2, [])
        (line,) = err
        assert line.startswith(f"error: {message}")


class TestFixedDatasets:
    KRR = ("curve", "--mechanism", "krr:4", "--epsilon0", "1", "--users", "1000")

    @pytest.mark.parametrize(
        ("options", "others", "pair"),
        [
            (["--ones", "0"], {0: 999}, (0, 1)),
            (["--ones", "999"], {1: 999}, (0, 1)),
            (["--others", "3:999"], {3: 999}, (0, 1)),
            (["--others", "2:999", "--others", "0:0", "--pair", "3:1"], {2: 999}, (3, 1)),
        ],
    )
    def test_one_input(self, command, options, others, pair):
        code, out, err = command(*self.KRR, *options, *NUMBER)
        assert (code, err) == (0, [])
        krr = fs.k_randomized_response(1.0, 4)
        profile = fs.exact_profile(fs.ShuffleExperiment(krr, 1000, others=others, pair=pair))
        rows = rows_of(out)
        assert [row[3] for row in rows] == ["both", "forward", "reverse"]
        for shown, delta, attained, direction in rows:
            epsilon = profile.epsilon(1e-8, direction=direction)
            lower, _ = profile.bounds(epsilon, direction=direction)
            assert not_below(shown, epsilon)
            assert delta == "1e-08"
            assert lower * (1.0 - 1e-8) <= float(attained) <= lower
        facts = facts_of(out)
        ((held, count),) = others.items()
        for words in (
            "not a guarantee",
            f"{count} others hold {held}",
            f"holds {pair[1]}, against {pair[0]}",
        ):
            assert words in facts

    def test_ones_are_others(self, command):
        outputs = [
            command(*THOUSAND, *NUMBER, *options)
            for options in (["--ones", "3"], ["--others", "0:996", "--others", "1:3"])
        ]
        assert outputs[0] == outputs[1]

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--others", "3:998"], "others must sum to n - 1 = 999, got 998"),
            (["--others", "4:999"], "input in others must be <= 3, got 4"),
            (["--others", "3"], "--others must have the form INPUT:COUNT, got '3'"),
            (["--others", "3:"], "--others must be an integer from 0 to 9007199254740992, got ''"),
            (
                ["--others", "3:9", "--others", "3:990"],
                "--others must name each input once, got 3:9 3:990",
            ),
            (["--others", "3:999", "--ones", "0"], "--ones must be given without --others"),
            (["--others", "3:999", "--pair", "1"], "--pair must have the form A:B, got '1'"),
            (
                ["--others", "3:999", "--pair", "1:1"],
                "pair must be two different inputs, got (1, 1)",
            ),
            (["--others", "3:999", "--pair", "0:4"], "pair[1] must be <= 3, got 4"),
            (["--pair", "0:1"], "--pair must be given with --others"),
            (["--pair", "0:1", "--ones", "0"], "--pair must be given with --others"),
        ],
    )
    def test_bad_compositions(self, command, options, message):
        code, out, err = command(*self.KRR, *options, *NUMBER)
        assert (code, out, err) == (2, [], [f"error: {message}"])

    def test_a_composition_without_a_method_is_one_line(self, command):
        unary = ["curve", "--mechanism", "hadamard:16", "--epsilon0", "2", "--users", "1e9"]
        options = [f"{x}:{1e8:.0f}" for x in range(9)] + ["9:99999999"]
        others = [word for option in options for word in ("--others", option)]
        code, out, err = command(*unary, *others, *NUMBER)
        assert (code, out) == (2, [])
        (line,) = err
        assert line.startswith("error: ")


def bounds_of(lines, delta):
    """The rows of one delta, by method: the words to its right."""
    title = lines.index(f"delta = {delta}")
    rows = {}
    for line in lines[title + 2 : lines.index("", title)]:
        name, words = line[:21].strip(), line[21:].split()
        if name:
            rows[name] = words
    return rows


class TestBounds:
    KRR = ("bounds", "--mechanism", "krr:16", "--epsilon0", "2", "--users", "1e5")

    @pytest.fixture(autouse=True)
    def _no_timing(self, monkeypatch):
        monkeypatch.setattr(bounds, "load_kernels", lambda _: None)

    def test_all_methods(self, command):
        code, out, err = command(*self.KRR, *NUMBER)
        lines = [line.rstrip() for line in out]
        assert (code, err) == (0, [])
        krr, n = fs.k_randomized_response(2.0, 16), 10**5
        e = math.exp(2.0)
        expected = {
            "worst case": fs.worst_case_profile(krr, n),
            "privacy blanket": fs.blanket_profile(krr, n),
            "stronger clones": fs.stronger_clone_profile(krr, n),
            "clones": fs.clone_profile(2.0, n),
            "variation ratio": fs.variation_ratio_profile(e, (e - 1.0) / (e + 15.0), e, n),
            "Chernoff": fs.chernoff_profile(krr, n),
        }
        rows = bounds_of(lines, "1e-08")
        assert rows.keys() == {*expected, "worst dataset found", "Gaussian limit"}
        for name, profile in expected.items():
            validity, epsilon, seconds = rows[name]
            assert validity == "UPPER_BOUND"
            assert not_below(epsilon, profile.epsilon(1e-8))
            assert float(seconds) > 0.0
        validity, *label, lower, _ = rows["worst dataset found"]
        assert (validity, label) == ("LOWER_BOUND,", ["no", "guarantee"])
        worst = expected["worst case"].argmax(expected["worst case"].epsilon(1e-8))
        exact = fs.exact_profile(worst.experiment)
        assert exact.bounds(float(lower), direction=worst.direction)[0] > 1e-8
        assert float(lower) == pytest.approx(exact.epsilon(1e-8), rel=1e-3, abs=0.0)
        validity, *label, limit, _ = rows["Gaussian limit"]
        assert (validity, label) == ("APPROXIMATION,", ["no", "guarantee"])
        experiment = fs.ShuffleExperiment(krr, n, others={2: n - 1})
        truth = fs.gaussian_profile(experiment).epsilon(1e-8)
        assert float(limit) == pytest.approx(truth, rel=1e-9, abs=0.0)
        epsilons = [float(words[-2]) for words in rows.values()]
        assert epsilons == sorted(epsilons)
        assert max(map(len, lines)) <= 80
        assert "100,000, with the one who differs" in facts_of(lines)

    def test_binary_randomized_response_closes_the_gap(self, command):
        _, out, _ = command(*(word.replace("krr:16", "rr") for word in self.KRR), *NUMBER)
        rows = bounds_of([line.rstrip() for line in out], "1e-08")
        lower, upper = float(rows["worst dataset found"][-2]), float(rows["worst case"][-2])
        assert lower <= upper <= lower * (1.0 + 1e-6)
        assert float(rows["variation ratio"][1]) >= upper

    def test_messages_shuffled_one_by_one(self, command, tmp_path):
        setting = ["bounds", *RR[1:], "--users", "1000", "--messages", "4", *NUMBER]
        code, out, err = command(*setting, "--json", "a.json", "--csv", "a.csv")
        assert (code, err) == (0, [])
        lines = [line.rstrip() for line in out]
        assert "messages 4 a user, shuffled one by one" in facts_of(lines)
        rr = fs.binary_randomized_response(2.0)
        profile = fs.worst_case_profile(rr, 1000, messages=4)
        limit = fs.gaussian_profile(fs.ShuffleExperiment(rr, 1000, k=0, messages=4))
        content = json.loads((tmp_path / "a.json").read_text())
        assert content["setting"]["messages"] == 4
        found = {row["method"]: row["epsilon"] for row in content["bounds"]}
        assert found.pop("worst case") == profile.epsilon(1e-8)
        assert found.pop("Gaussian limit") == pytest.approx(limit.epsilon(1e-8), rel=1e-9, abs=0.0)
        lower = found.pop("worst dataset found")
        assert profile.epsilon(1e-8) * (1.0 - 2e-3) < lower < profile.epsilon(1e-8)
        assert set(found.values()) == {None}
        refusals = {row["refusal"] for row in content["bounds"] if row["epsilon"] is None}
        assert refusals == {"for one message a user, or --bundled"}
        with (tmp_path / "a.csv").open(newline="") as file:
            assert {row["messages"] for row in csv.DictReader(file)} == {"4"}

    def test_messages_that_stay_together(self, command, tmp_path):
        setting = ["bounds", *RR[1:], "--users", "1000", "--messages", "2", "--bundled", *NUMBER]
        code, out, err = command(*setting, "--json", "a.json")
        assert (code, err) == (0, [])
        assert "2 messages together" in facts_of(out)
        together = fs.bundle(fs.binary_randomized_response(2.0), 2)
        content = json.loads((tmp_path / "a.json").read_text())
        found = {row["method"]: row["epsilon"] for row in content["bounds"]}
        assert found["privacy blanket"] == fs.blanket_profile(together, 1000).epsilon(1e-8)
        assert None not in found.values()

    def test_refusals_and_files(self, command, tmp_path):
        setting = ["bounds", "--mechanism", "blh:9", "--epsilon0", "1", "--users", "1e5"]
        numbers = ["--delta", "1e-8", "--delta", "1e-6"]
        code, out, err = command(*setting, *numbers, "--json", "a.json", "--csv", "a.csv")
        assert (code, err) == (0, [])
        content = json.loads((tmp_path / "a.json").read_text())
        with (tmp_path / "a.csv").open(newline="") as file:
            lines = list(csv.DictReader(file))
        assert content["setting"]["randomizer"] == fs.binary_local_hashing(1.0, 9).to_dict()
        assert [row["delta"] for row in content["bounds"]] == [1e-8] * 8 + [1e-6] * 8
        for row, line in zip(content["bounds"], lines, strict=True):
            shown = bounds_of([line.rstrip() for line in out], f"{row['delta']:g}")
            assert line["method"] == row["method"]
            assert line["refusal"] == (row["refusal"] or "")
            assert line["guarantee"] == ("yes" if row["guarantee"] else "no")
            if row["epsilon"] is None:
                assert shown[row["method"]][0] == "refused:"
            else:
                assert float(line["epsilon"]) == row["epsilon"]
        refusals = {row["method"]: row["refusal"] for row in content["bounds"] if row["refusal"]}
        assert refusals == {"stronger clones": "not of its class"}
        guarantees = {row["method"] for row in content["bounds"] if row["guarantee"]}
        kept = {"worst case", "privacy blanket", "clones", "variation ratio", "Chernoff"}
        assert guarantees == kept

    def test_an_infinite_loss(self, command, tmp_path):
        (tmp_path / "w.csv").write_text("0.5,0.5,0\n0,0.5,0.5\n")
        setting = ["bounds", "--matrix", "w.csv", "--users", "100", "--delta", "1e-6"]
        code, _, err = command(*setting, "--json", "a.json")
        assert (code, err) == (0, [])
        rows = {
            row["method"]: row for row in json.loads((tmp_path / "a.json").read_text())["bounds"]
        }
        assert rows["worst case"]["epsilon"] == rows["worst dataset found"]["epsilon"] == "inf"
        assert rows["clones"]["refusal"] == "randomizer must have a finite epsilon0"
        reason = "the Fisher constant must be finite for a Gaussian limit"
        assert rows["Gaussian limit"]["refusal"] == reason
        assert rows["stronger clones"]["refusal"] == "randomizer must have a finite epsilon0"

    def test_too_many_inputs(self, command, tmp_path):
        setting = [
            "bounds",
            "--mechanism",
            "discrete-laplace:100",
            "--epsilon0",
            "1",
            "--users",
            "1e5",
        ]
        code, _, _ = command(*setting, "--delta", "1e-8", "--json", "a.json")
        assert code == 0
        rows = {
            row["method"]: row for row in json.loads((tmp_path / "a.json").read_text())["bounds"]
        }
        assert rows["clones"]["epsilon"] == fs.clone_profile(1.0, 10**5).epsilon(1e-8)
        reason = "randomizer must have at most 64 inputs unless a pair is given"
        assert rows["privacy blanket"]["refusal"] == rows["worst case"]["refusal"] == reason

    def test_edge_deltas(self, command):
        setting = ["bounds", "--mechanism", "krr:3", "--epsilon0", "1", "--users", "50"]
        code, out, err = command(*setting, "--delta", "0", "--delta", "0.9")
        assert code == 0
        lines = [line.rstrip() for line in out]
        assert {words[-2] for words in bounds_of(lines, "0.9").values()} == {"0"}
        at_zero = bounds_of(lines, "0")
        assert at_zero["worst case"][1] == "1"
        (line,) = err
        assert line.startswith("warning: delta = 0.9 is not below 1/n")

    def test_every_method_is_loaded_before_it_is_timed(self):
        for randomizer in methods._SMALL:
            assert all(
                o.epsilon is not None
                for o in methods.outcomes(methods.Setting(randomizer, 10), 1e-3)
            )

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--delta", "2"], "--delta must be a number in [0, 1], got '2'"),
            ([*NUMBER, "--mechanism", "krr"], "--mechanism must be one of rr, krr:K, "),
            ([*NUMBER, "--users", "0"], "--users must be an integer from 1 to "),
            ([*NUMBER, "--json", "no/a"], "--json must name a file in an existing folder"),
            ([], "Missing option '--delta'"),
        ],
    )
    def test_bad_input(self, command, tmp_path, options, message):
        code, out, err = command(*self.KRR, *options)
        assert (code, out) == (2, [])
        (line,) = err
        assert line.startswith(f"error: {message}")
        assert list(tmp_path.iterdir()) == []


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
                lower, _ = fs.exact_profile(worst.experiment).bounds(
                    row["epsilon"], direction=worst.direction
                )
                dataset = worst.experiment.to_dict()
                assert row.pop("worst_dataset") == {
                    "others": dataset["others"],
                    "pair": dataset["pair"],
                    "direction": worst.direction,
                    "lower_delta": lower,
                }
        assert content == profile.to_dict(delta=[1e-8], epsilon=[0.1, 1.9])

    def test_messages_shuffled_one_by_one(self, command, tmp_path):
        several = [*THOUSAND, "--messages", "4"]
        files = ["--csv", "a.csv", "--json", "a.json", "--plot", "a.png"]
        code, out, err = command(*several, *NUMBER, *files)
        assert (code, err) == (0, [])
        profile = fs.worst_case_profile(fs.binary_randomized_response(2.0), 1000, messages=4)
        assert not_below(rows_of(out)[0][0], profile.epsilon(1e-8))
        assert "messages 4 a user, shuffled one by one" in facts_of(out)
        with (tmp_path / "a.csv").open(newline="") as file:
            (row,) = csv.DictReader(file)
        assert (row["messages"], row["validity"]) == ("4", "UPPER_BOUND")
        assert json.loads((tmp_path / "a.json").read_text())["setting"]["messages"] == 4
        assert (tmp_path / "a.png").stat().st_size > 1000
        code, out, err = command(*several, "--unbundled", "--ones", "7", *NUMBER)
        assert (code, err) == (0, [])
        experiment = fs.ShuffleExperiment(profile.randomizer, 1000, k=7, messages=4)
        assert not_below(rows_of(out)[0][0], fs.exact_profile(experiment).epsilon(1e-8))
        assert "EXACT" in facts_of(out)

    def test_messages_that_stay_together(self, command):
        together = [*THOUSAND, "--messages", "2", "--bundled"]
        code, out, err = command(*together, *NUMBER)
        assert (code, err) == (0, [])
        w = fs.bundle(fs.binary_randomized_response(2.0), 2)
        assert not_below(rows_of(out)[0][0], fs.worst_case_profile(w, 1000).epsilon(1e-8))
        assert "2 messages together, epsilon0 = 4, each 2 inputs, 2 outputs" in facts_of(out)
        code, out, err = command(*together, "--ones", "0", *NUMBER)
        assert (code, err) == (0, [])
        profile = fs.exact_profile(fs.ShuffleExperiment(w, 1000, k=0))
        assert not_below(rows_of(out)[0][0], profile.epsilon(1e-8))

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--messages", "0"], "--messages must be an integer from 1 to"),
            (["--messages", "2", "--bundled", "--mechanism", "laplace"], "continuous noise"),
        ],
    )
    def test_messages_refused(self, command, arguments, message):
        code, out, err = command(*THOUSAND, *NUMBER, *arguments)
        assert (code, out) == (2, [])
        assert message in facts_of(err)

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
            " ".join(map(str, worst.experiment.pair)),
        )
        for row in (at_delta, at_epsilon):
            assert 0.0 <= float(row["lower_delta"]) <= float(row["delta"])

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
            ("w.csv", "0.8,0.2\n", "randomizer must have at least 2 inputs, got 1"),
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

        monkeypatch.setattr(curve, "_computed", stop)
        code, out, err = command(*THOUSAND, *NUMBER)
        assert (code, out, err) == (1, [], ["error: no epsilon could be certified"])

    def test_a_keyboard_interrupt_is_exit_code_130(self, command, monkeypatch):
        def interrupt(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr(curve, "_computed", interrupt)
        assert command(*THOUSAND, *NUMBER) == (130, [], [])


class TestOtherCommands:
    def test_version(self, command):
        assert command("--version") == (0, [f"fastshuffle {fs.__version__}"], [])

    def test_precompile_counts_the_kernels(self, command, monkeypatch):
        monkeypatch.setattr(app._jit, "precompile", lambda: 48)
        assert command("precompile") == (0, ["48 kernels compiled"], [])

    @pytest.mark.parametrize("arguments", [["--help"], ["curve", "--help"], ["bounds", "--help"]])
    def test_help(self, command, arguments):
        code, out, err = command(*arguments)
        assert (code, err) == (0, [])
        assert "Usage: fastshuffle" in facts_of(out)


class TestEntryPoint:
    def test_a_missing_extra_is_named(self, capsys, monkeypatch):
        for name in [name for name in sys.modules if name.startswith("fastshuffle.cli")]:
            monkeypatch.delitem(sys.modules, name)
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
