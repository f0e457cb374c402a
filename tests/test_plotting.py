"""The picture of a profile: what is drawn, labelled and written."""

import math
import sys

import numpy as np
import pytest

import fastshuffle as fs
from fastshuffle.plotting import (
    delta_text,
    lower_delta_text,
    plot_profile,
    replacing,
    rounded_down,
    rounded_up,
    save_png,
)

LOG10 = math.log(10.0)
ASYMMETRIC = fs.Randomizer.from_probabilities([0.2, 0.5])
ERASURE = fs.Randomizer([[1, 0], [0.5, 0.5]])


def exact(randomizer=ASYMMETRIC, n=1000, k=0):
    return fs.exact_profile(fs.ShuffleExperiment(randomizer, n, k=k))


def curves(figure):
    """The labelled curves, without the marks."""
    lines = figure.axes[0].get_lines()
    return {line.get_label(): line for line in lines if not line.get_label().startswith("_")}


def test_both_directions_are_drawn_from_log_delta():
    profile = exact()
    figure = plot_profile(profile)
    assert list(curves(figure)) == ["forward", "reverse"]
    bottom = figure.axes[0].get_ylim()[0]
    for direction, line in curves(figure).items():
        epsilons, heights = line.get_data()
        seen = heights > bottom
        assert seen.sum() > 100
        expected = profile.log_delta(epsilons, direction=direction) / LOG10
        np.testing.assert_array_equal(heights[seen], expected[seen])


def test_the_axes_say_what_is_drawn():
    axes = plot_profile(exact()).axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("epsilon", "delta")
    assert axes.get_title() == "EXACT, n = 1,000 (replace-one, n known)"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["forward", "reverse"]
    assert axes.yaxis.get_major_formatter()(-8.0, 0) == "$10^{-8}$"


def test_the_worst_case_is_one_curve():
    profile = fs.worst_case_profile(ASYMMETRIC, 30, rtol=1e-3)
    figure = plot_profile(profile)
    assert list(curves(figure)) == ["forward and reverse"]
    assert "UPPER_BOUND" in figure.axes[0].get_title()


def test_the_range_is_where_delta_is_of_interest():
    profile = exact()
    axes = plot_profile(profile).axes[0]
    assert axes.get_xlim() == (0.0, profile.epsilon(1e-12))
    bottom, top = axes.get_ylim()
    assert -13.0 < bottom < -12.0
    assert math.log10(profile.delta(0.0)) < top < 0.0


def test_marks_are_on_the_curve_and_labelled():
    profile = exact()
    epsilon = profile.epsilon(1e-8)
    figure = plot_profile(profile, marks=[(epsilon, math.log(1e-8)), (math.inf, 0.0)])
    (label,) = figure.axes[0].texts
    assert label.get_text() == f"({rounded_up(epsilon, 4)}, 1e-08)"
    assert label.xy == (epsilon, math.log(1e-8) / LOG10)
    reverse = curves(figure)["reverse"]
    assert epsilon in reverse.get_xdata()
    assert figure.axes[0].get_xlim()[1] >= 1.4 * epsilon


def test_case_6_delta_below_the_smallest_double():
    profile = exact(fs.binary_randomized_response(1.0), 10**6)
    mark = (0.5, profile.log_delta(0.5))
    figure = plot_profile(profile, marks=[mark])
    bottom, top = figure.axes[0].get_ylim()
    assert bottom < mark[1] / LOG10 < -30_000.0 < top
    assert figure.axes[0].texts[0].get_text().startswith("(0.5, 10^-37510.")
    # the smaller curve leaves through the bottom and does not run along it
    assert curves(figure)["forward"].get_ydata()[-1] < bottom - 0.5 * (top - bottom)


@pytest.mark.parametrize(
    "profile",
    [
        exact(ERASURE, 1, 0),  # delta = 1/2 throughout
        exact(ERASURE, 30, 20),  # delta(inf) = 1e-6
        exact(ERASURE, 300, 200),  # delta(inf) = 1e-61
        exact(fs.Randomizer([[1, 0], [0, 1]]), 3, 2),  # delta = 1 throughout
        exact(fs.binary_randomized_response(800.0), 100, 50),
        exact(fs.binary_randomized_response(1e-300), 1, 0),
        exact(fs.binary_randomized_response(1e-310), 1, 0),
        exact(fs.binary_randomized_response(1e-9), 2**53, 0),
        fs.worst_case_profile(ERASURE, 10),
    ],
)
def test_every_profile_gives_a_picture(profile, tmp_path):
    figure = plot_profile(profile, marks=[(0.0, profile.log_delta(0.0))])
    axes = figure.axes[0]
    assert np.isfinite([axes.get_xlim(), axes.get_ylim()]).all()
    assert axes.get_xlim()[0] < axes.get_xlim()[1]
    assert axes.get_ylim()[0] < math.log10(profile.delta(0.0)) < axes.get_ylim()[1]
    save_png(figure, tmp_path / "profile.png")


def test_a_delta_of_zero_is_said_in_words():
    figure = plot_profile(exact(fs.binary_randomized_response(0.0), 10))
    assert [text.get_text() for text in figure.axes[0].texts] == ["delta = 0 at every epsilon"]


@pytest.mark.parametrize(
    ("mark", "message"),
    [
        ((-0.5, -1.0), "epsilon of a mark must be >= 0, got -0.5"),
        ((math.nan, -1.0), "epsilon of a mark must be >= 0, got nan"),
        ((0.5, 1.0), "log_delta of a mark must be <= 0, got 1.0"),
        ((0.5, math.nan), "log_delta of a mark must be <= 0, got nan"),
    ],
)
def test_bad_marks_are_refused(mark, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        plot_profile(exact(), marks=[mark])


def test_the_extra_is_named_where_matplotlib_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "fastshuffle\[plot\]"'):
        plot_profile(exact())


def test_save_png_replaces_the_file(tmp_path):
    path = tmp_path / "curve.png"
    path.write_text("old")
    save_png(plot_profile(exact()), path)
    assert path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_block_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")

    def fail():
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("value", [0.1, 1e-8, 1 / 3, math.pi, 0.01726000500285, 1e300, 5e-324])
@pytest.mark.parametrize("digits", [4, 10])
def test_rounded_up_is_never_below(value, digits):
    text = rounded_up(value, digits)
    assert value <= float(text) <= value * (1.0 + 10.0 ** (1 - digits))
    assert len(text.partition("e")[0].replace(".", "").lstrip("0")) <= digits


@pytest.mark.parametrize("value", [0.1, 1e-8, 1 / 3, math.pi, 0.01726000500285, 1e300, 5e-324])
def test_rounded_down_is_never_above(value):
    text = rounded_down(value)
    assert value * (1.0 - 1e-9) <= float(text) <= value


def test_lower_delta_text_is_zero_only_below_zero():
    assert lower_delta_text(0.0, -math.inf) == "0"
    assert lower_delta_text(0.0, -1e6) == "<1e-307"
    assert lower_delta_text(1e-8, math.log(2e-8)) == "1e-08"


def test_rounded_up_keeps_short_numbers_and_inf():
    assert [rounded_up(x) for x in (0.0, 0.1, 1e-8, 2.0, math.inf)] == [
        "0",
        "0.1",
        "1e-08",
        "2",
        "inf",
    ]


def test_delta_text_is_zero_only_for_zero():
    assert delta_text(0.0, -math.inf) == "0"
    assert delta_text(0.0, -1e6) == "10^-434294.4819"
    assert delta_text(5e-324, math.log(5e-324)) == "10^-323.3062"
    assert delta_text(1e-8, math.log(1e-8)) == "1e-08"
