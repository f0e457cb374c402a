"""Randomizers: what is accepted, what is refused, and the accuracy of what is derived."""

import copy
import json
import math
import pickle
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import chisquare

from fastshuffle import Randomizer, binary_randomized_response
from tests.tolerances import FEW_ROUNDINGS, ONE_ROUNDING

NAMED_EPSILON0 = [0.0, 1e-300, 1e-20, 1e-10, 1e-3, 0.1, 1.0, 5.0, 36.8, 40.0, 50.0, 100.0, 400.0]
UNDERFLOWING_EPSILON0 = [709.0, 710.0, 746.0, 1000.0, 1e300]
THREE = [[0.5, 0.3, 0.2], [0.2, 0.35, 0.45]]

probabilities = st.one_of(
    st.floats(0.0, 1.0),
    st.floats(-300.0, 0.0).map(lambda e: 10.0**e),
    st.floats(-16.0, -1.0).map(lambda e: 0.5 - 10.0**e),
    st.floats(-16.0, -1.0).map(lambda e: 1.0 - 10.0**e),
)
# Rows [smaller, larger] and [larger, smaller]; the larger entry is rounded, the law is not.
binary_rows = st.builds(
    lambda p, flip: [1.0 - p, p] if flip else [p, 1.0 - p],
    probabilities.map(lambda p: min(p, 1.0 - p)),
    st.booleans(),
)


def exact_rows(matrix):
    """The laws that a matrix stands for, from the convention alone."""
    laws = []
    for row in matrix:
        law = [Fraction(entry) for entry in row]
        if len(law) == 2:
            i = law.index(min(law))
            law[1 - i] = 1 - law[i]
        laws.append(law)
    return laws


def exact_log_ratio(high, low):
    if high == low:
        return 0.0
    if low == 0:
        return math.inf
    if high == 0:
        return -math.inf
    with mpmath.workdps(400):
        numerator = mpmath.mpf(high.numerator) * low.denominator
        return float(mpmath.log(numerator / (mpmath.mpf(high.denominator) * low.numerator)))


# -- construction ---------------------------------------------------------------------------------


def test_matrix_is_a_read_only_copy():
    given_matrix = np.array(THREE)
    w = Randomizer(given_matrix)
    given_matrix[0, 0] = 9.0
    assert w.matrix[0, 0] == 0.5
    assert (w.n_inputs, w.n_outputs) == (2, 3)
    for array in (w.matrix, w.log_matrix):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 0.0
    with pytest.raises(AttributeError):
        w.matrix = given_matrix
    with pytest.raises(AttributeError):
        w.colour = "blue"


def test_rows_are_never_renormalised():
    row = [0.1, 0.2, 0.7 + 2e-12]
    assert Randomizer([row]).matrix.tolist() == [row]


@pytest.mark.parametrize(
    "matrix",
    [
        [[1]],
        [[1, 0], [0, 1]],
        np.eye(3, dtype=np.int8),
        np.eye(2, dtype=">f8"),
        [np.array([0.5, 0.5]), (0.25, 0.75)],
        np.asfortranarray(THREE),
    ],
)
def test_accepted_matrices(matrix):
    w = Randomizer(matrix)
    assert w.matrix.dtype == np.float64
    assert w.matrix.dtype.isnative
    assert w.matrix.flags.c_contiguous


@pytest.mark.parametrize(
    ("matrix", "error", "message"),
    [
        ([[0.5, 0.4], [0.5, 0.5]], ValueError, "matrix row 0 must sum to 1 .* got 0.9"),
        ([[0.5, 0.5], [0.5, 0.6]], ValueError, "matrix row 1 must sum to 1 .* got 1.1"),
        ([[0.5, 0.5 + 3e-12]], ValueError, "matrix row 0 must sum to 1"),
        ([[0.5, 0.5], [1.5, -0.5]], ValueError, "row 1, column 1 must be >= 0 .* got -0.5"),
        (np.array([[1.5, -0.5]]), ValueError, "row 0, column 1 must be >= 0 .* got -0.5"),
        ([[0.5, math.nan]], ValueError, "row 0, column 1 must be .* got nan"),
        (np.array([[math.inf, 0.0]]), ValueError, "row 0, column 0 must be .* got inf"),
        ([[0.5, 0.5], [1.0]], ValueError, "matrix row 1 must have 2 entries .* got 1"),
        ([0.5, 0.5], ValueError, "matrix must be 2-D, got 0.5"),
        (np.array([0.5, 0.5]), ValueError, "matrix must be 2-D, got 1-D"),
        (np.ones((1, 1, 1)), ValueError, "matrix must be 2-D, got 3-D"),
        ([], ValueError, "at least one row and one column"),
        ([[], []], ValueError, "at least one row and one column"),
        (np.ones((2, 0)), ValueError, "at least one row and one column"),
        (np.full((1, 2), 0.5, np.float32), TypeError, "got dtype float32"),
        (np.full((1, 2), 0.5, np.float16), TypeError, "got dtype float16"),
        (np.full((1, 2), 0.5, np.complex128), TypeError, "got dtype complex128"),
        (np.eye(2, dtype=bool), TypeError, "got dtype bool"),
        (np.eye(2, dtype=object), TypeError, "got dtype object"),
        ([[0.5, np.float32(0.5)]], TypeError, "row 0, column 1 must be float64, got float32"),
        ([[np.longdouble(1.0)]], TypeError, "row 0, column 0 must be float64"),
        ([[0.0, True]], TypeError, "row 0, column 1 .* got True"),
        ([[0.0, 1.0], [0.5, "0.5"]], TypeError, "row 1, column 1 .* got '0.5'"),
        ([[1.0, None]], TypeError, "row 0, column 1 .* got None"),
        ([[1j]], TypeError, "row 0, column 0 .* got 1j"),
        ("rr", TypeError, "row 0, column 0 .* got 'r'"),
        (None, TypeError, "matrix must be 2-D, got None"),
        (1.0, TypeError, "matrix must be 2-D, got 1.0"),
    ],
)
def test_case_14_refused_matrices_name_the_place(matrix, error, message):
    with pytest.raises(error, match=message):
        Randomizer(matrix)


@pytest.mark.parametrize("p", [[0.2, 0.5], [0.2, 0.9, 1.0, 0.0], (0.3,)])
def test_from_probabilities(p):
    w = Randomizer.from_probabilities(p)
    assert w.n_inputs == len(p)
    assert w.matrix[:, 1].tolist() == list(p)
    assert_allclose(w.matrix.sum(axis=1), 1.0, rtol=ONE_ROUNDING, atol=0)


@pytest.mark.parametrize(
    ("p", "error", "message"),
    [
        ([0.2, 1.5], ValueError, r"probabilities must be in \[0, 1\], got 1.5 at index 1"),
        ([0.2, None], TypeError, "got None at index 1"),
        (0.2, ValueError, "probabilities must be 1-D, got 0-D"),
        ([[0.2]], ValueError, "probabilities must be 1-D, got 2-D"),
        ([], ValueError, "at least one row"),
    ],
)
def test_case_13_refused_probabilities(p, error, message):
    with pytest.raises(error, match=message):
        Randomizer.from_probabilities(p)


# -- files ----------------------------------------------------------------------------------------


def test_from_csv(tmp_path):
    path = tmp_path / "w.csv"
    path.write_text("\ufeff0.5, 0.3,0.2\n\n0.2,0.35,0.45\n", encoding="utf-8")
    assert Randomizer.from_csv(path) == Randomizer(THREE)
    assert Randomizer.from_csv(str(path)) == Randomizer(THREE)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "at least one row"),
        ("p0,p1\n0.5,0.5\n", "line 1 must hold numbers, got 'p0'"),
        ("0.5,0.5\n\n0.5,\n", "line 3 must hold numbers, got ''"),
        ("0.5,0.5\n0.5,nan\n", "line 2, column 1 must be .* got nan"),
        ("0.5,0.5\n-0.5,1.5\n", "line 2, column 0 must be .* got -0.5"),
        ("0.5,0.5\n0.5,0.3,0.2\n", "line 2 must have 2 entries like line 1, got 3"),
        ("0.5,0.5\n\n0.5,0.4\n", "line 3 must sum to 1 .* got 0.9"),
        ("0.5;0.5\n", "line 1 must hold numbers, got '0.5;0.5'"),
    ],
)
def test_case_14_refused_csv_files_name_path_and_line(tmp_path, text, message):
    path = tmp_path / "w.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=rf"w\.csv: .*{message}"):
        Randomizer.from_csv(path)


def test_a_binary_file_is_refused_by_name(tmp_path):
    path = tmp_path / "w.bin"
    path.write_bytes(b"\xff\x00\xfe")
    for read in (Randomizer.from_csv, Randomizer.from_json):
        with pytest.raises(ValueError, match=r"w\.bin: "):
            read(path)
        with pytest.raises(FileNotFoundError):
            read(tmp_path / "absent")


@pytest.mark.parametrize("content", [THREE, {"matrix": THREE}])
def test_from_json(tmp_path, content):
    path = tmp_path / "w.json"
    path.write_text(json.dumps(content))
    assert Randomizer.from_json(path) == Randomizer(THREE)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1 column 1"),
        ("[[0.5, 0.5],\n[0.5,, 0.5]]", "line 2 column 6"),
        ("[[0.5, NaN]]", "matrix row 0, column 1 .* got nan"),
        ("[[0.5, null]]", "matrix row 0, column 1 .* got None"),
        ("[[0.5, true]]", "matrix row 0, column 1 .* got True"),
        ("[[0.5, 0.5], [1]]", "matrix row 1 must have 2 entries"),
        ("[[0.5, 0.4]]", "matrix row 0 must sum to 1 .* got 0.9"),
        ("3", "matrix must be 2-D, got 3"),
        ('{"rows": [[1]]}', "'matrix'.* got .'rows'"),
        ('{"matrix": [[1]], "epsilon0": 1}', "'matrix'.* got .'epsilon0', 'matrix'"),
        ('{"epsilon0": -1, "exponents": [[1, 0], [0, 1]]}', "epsilon0 must be >= 0"),
        ('{"epsilon0": 1, "exponents": [[1, 0], [1, 1]]}', "exponents must have rows"),
        ('{"epsilon0": 1, "exponents": [[1, 0], [1]]}', "exponents must have rows"),
        ('{"epsilon0": 1, "exponents": [[1, 0.5]]}', "exponents row 0 .* got 0.5"),
        ('{"epsilon0": 1, "exponents": []}', "exponents must be a list of rows"),
        ('{"epsilon0": 1, "exponents": [1]}', "exponents must be a list of rows"),
    ],
)
def test_case_14_refused_json_files_name_path_and_place(tmp_path, text, message):
    path = tmp_path / "w.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=rf"w\.json: .*{message}"):
        Randomizer.from_json(path)


@pytest.mark.parametrize(
    "w", [Randomizer(THREE), binary_randomized_response(0.0), binary_randomized_response(1000.0)]
)
def test_copies_and_round_trips_are_equal_and_read_only(w, tmp_path):
    path = tmp_path / "w.json"
    path.write_text(json.dumps(w.to_dict(), allow_nan=False))
    for other in (copy.deepcopy(w), pickle.loads(pickle.dumps(w)), Randomizer.from_json(path)):
        assert other == w
        assert hash(other) == hash(w)
        assert other.epsilon0 == w.epsilon0
        assert not other.matrix.flags.writeable


def test_equality():
    assert Randomizer(THREE) == Randomizer(np.array(THREE))
    assert Randomizer([[0.0, 1.0]]) == Randomizer([[-0.0, 1.0]])
    assert Randomizer(THREE) != Randomizer(THREE[::-1])
    assert Randomizer([[1.0], [1.0]]) != Randomizer([[1.0]])
    assert Randomizer(THREE) != THREE
    assert binary_randomized_response(1e-20) != binary_randomized_response(2e-20)
    assert len({binary_randomized_response(1.0), binary_randomized_response(1)}) == 1


def test_repr():
    expected = "<Randomizer: 2 inputs, 2 outputs, epsilon0 = 0.5>"
    assert repr(binary_randomized_response(0.5)) == expected


# -- derived quantities ---------------------------------------------------------------------------


def test_log_matrix():
    assert_allclose(Randomizer(THREE).log_matrix, np.log(THREE), rtol=ONE_ROUNDING, atol=0)
    certain = Randomizer([[1, 0], [0, 1]]).log_matrix
    assert certain.tolist() == [[0.0, -math.inf], [-math.inf, 0.0]]
    assert not np.signbit(certain[0, 0])


@given(binary_rows)
@example([1e-30, 1.0])
@example([1.0, 5e-324])
@example([0.5 + 9e-13, 0.5 + 9e-13])
def test_larger_entry_of_a_binary_row_is_the_complement(row):
    w = Randomizer([row])
    p = min(*row, 0.5)
    assert w.smaller_probability[0] == p
    assert w.smaller_output[0] == row.index(min(row))
    with mpmath.workdps(400):
        larger = float(mpmath.log1p(-mpmath.mpf(p)))
    assert_allclose(w.log_matrix[0, 1 - w.smaller_output[0]], larger, rtol=FEW_ROUNDINGS, atol=0)


def test_authoritative_entries_need_binary_output():
    for name in ("smaller_output", "smaller_probability"):
        with pytest.raises(ValueError, match=f"{name} requires n_outputs to be 2, got 3"):
            getattr(Randomizer(THREE), name)


@given(st.lists(binary_rows, min_size=2, max_size=4))
@example([[0.3, 0.7], [0.3 + 1e-16, 0.7]])
@example([[1.0, 1e-300], [1.0, 1.0000000000000002e-300]])
@example([[1.0, 1e-20], [1e-30, 1.0]])
@example([[1e-30, 1.0], [1e-20, 1.0]])
@example([[5e-324, 1.0], [1.0, 0.0]])
@example([[0.5, 0.5], [0.5 - 2.0**-54, 0.5 + 2.0**-54]])
def test_binary_rows_are_compared_to_relative_accuracy(rows):
    w, law = Randomizer(rows), exact_rows(rows)
    losses = []
    for b in range(len(rows)):
        for a in range(len(rows)):
            for y in range(2):
                loss = exact_log_ratio(law[b][y], law[a][y])
                losses.append(loss)
                assert_allclose(w.log_ratio(b, a, y), loss, rtol=FEW_ROUNDINGS, atol=0)
                assert w.log_ratio(b, a, y) == -w.log_ratio(a, b, y)
                difference = float(law[b][y] - law[a][y])
                assert_allclose(
                    w.probability_difference(b, a, y), difference, rtol=FEW_ROUNDINGS, atol=0
                )
    assert_allclose(w.epsilon0, max(losses), rtol=FEW_ROUNDINGS, atol=0)


@given(st.integers(3, 5), st.integers(1, 4), st.integers(0, 2**32 - 1), st.floats(-15.0, 0.0))
def test_rows_of_any_length_are_compared_to_relative_accuracy(d, n_inputs, seed, exponent):
    rng = np.random.default_rng(seed)
    rows = 1.0 + 10.0**exponent * rng.random((n_inputs, d))
    rows /= rows.sum(axis=1, keepdims=True)
    w, law = Randomizer(rows), exact_rows(rows)
    pairs = [(b, a, y) for b in range(n_inputs) for a in range(n_inputs) for y in range(d)]
    losses = [exact_log_ratio(law[b][y], law[a][y]) for b, a, y in pairs]
    assert_allclose([w.log_ratio(*at) for at in pairs], losses, rtol=FEW_ROUNDINGS, atol=0)
    assert_allclose(w.epsilon0, max(losses), rtol=FEW_ROUNDINGS, atol=0)
    for b, a, y in pairs:
        assert w.probability_difference(b, a, y) == float(law[b][y] - law[a][y])


def test_zeros_have_stated_log_ratios():
    w = Randomizer([[0.5, 0.5, 0.0, 0.0], [0.5, 0.0, 0.5, 0.0]])
    assert [w.log_ratio(1, 0, y) for y in range(4)] == [0.0, -math.inf, math.inf, 0.0]
    assert w.epsilon0 == math.inf


def test_epsilon0_of_identical_rows_is_0():
    assert Randomizer([[0.3, 0.3, 0.4]] * 3).epsilon0 == 0.0
    assert Randomizer([[0.3, 0.7]]).epsilon0 == 0.0


def test_case_13_indices_are_checked():
    w = Randomizer(THREE)
    for arguments, name in (((-1, 0, 0), "b"), ((0, 2, 0), "a"), ((0, 1, 3), "y")):
        for method in (w.log_ratio, w.probability_difference):
            with pytest.raises(ValueError, match=f"^{name} must be "):
                method(*arguments)
    with pytest.raises(TypeError, match="y must be an integer, got 0.5"):
        w.log_ratio(1, 0, 0.5)


# -- binary randomized response -------------------------------------------------------------------


@pytest.mark.parametrize("epsilon0", NAMED_EPSILON0 + UNDERFLOWING_EPSILON0)
def test_randomized_response_has_the_epsilon0_given(epsilon0):
    rr = binary_randomized_response(epsilon0)
    assert rr.epsilon0 == rr.log_ratio(1, 0, 1) == rr.log_ratio(0, 1, 0) == epsilon0
    assert rr.log_ratio(0, 1, 1) == rr.log_ratio(1, 0, 0) == -epsilon0
    assert rr.log_ratio(1, 1, 0) == 0.0


@pytest.mark.parametrize("epsilon0", NAMED_EPSILON0 + UNDERFLOWING_EPSILON0[:-1])
def test_randomized_response_is_accurate_at_every_epsilon0(epsilon0):
    """Case 4: the flip probability is the real number, also where a double of it underflows."""
    rr = binary_randomized_response(epsilon0)
    with mpmath.workdps(1000):
        odds = mpmath.exp(mpmath.mpf(epsilon0))
        flip = 1 / (1 + odds)
        expected = [[1 - flip, flip], [flip, 1 - flip]]
        logs = [[float(mpmath.log(entry)) for entry in row] for row in expected]
        matrix = [[float(entry) for entry in row] for row in expected]
        difference = float((odds - 1) / (odds + 1))
    assert_allclose(rr.log_matrix, logs, rtol=FEW_ROUNDINGS, atol=0)
    normal = np.abs(np.asarray(matrix)) > 2.3e-308
    assert_allclose(rr.matrix[normal], np.asarray(matrix)[normal], rtol=FEW_ROUNDINGS, atol=0)
    assert_allclose(rr.probability_difference(1, 0, 1), difference, rtol=FEW_ROUNDINGS, atol=0)
    assert rr.probability_difference(0, 1, 1) == -rr.probability_difference(1, 0, 1)


@pytest.mark.parametrize("flip", [0.0, 1e-300, 1e-20, 0.1, 0.25, 0.5 - 1e-12, 0.5])
def test_randomized_response_by_flip_probability(flip):
    """Case 34: a flip probability of 0 is a value, not a missing one."""
    rr = binary_randomized_response(flip_probability=flip)
    assert rr.smaller_probability.tolist() == [flip, flip]
    assert_allclose(
        rr.epsilon0,
        exact_log_ratio(1 - Fraction(flip), Fraction(flip)),
        rtol=FEW_ROUNDINGS,
        atol=0,
    )


def test_case_34_zero_epsilon0_is_a_value():
    assert binary_randomized_response(0.0).matrix.tolist() == [[0.5, 0.5], [0.5, 0.5]]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, TypeError, "exactly one of epsilon0 and flip_probability"),
        ({"epsilon0": 1.0, "flip_probability": 0.1}, TypeError, "exactly one of"),
        ({"epsilon0": 0.0, "flip_probability": 0.0}, TypeError, "exactly one of"),
        ({"epsilon0": -0.5}, ValueError, "epsilon0 must be >= 0 and finite, got -0.5"),
        ({"epsilon0": math.inf}, ValueError, "epsilon0 must be >= 0 and finite, got inf"),
        ({"epsilon0": math.nan}, ValueError, "epsilon0 must be >= 0 and finite, got nan"),
        ({"epsilon0": "1"}, TypeError, "epsilon0 must be a real number"),
        ({"epsilon0": True}, TypeError, "epsilon0 must be a real number"),
        ({"flip_probability": 0.6}, ValueError, r"flip_probability must be in \[0, 1/2\], got 0.6"),
        ({"flip_probability": math.nan}, ValueError, "flip_probability must be in"),
    ],
)
def test_case_24_exactly_one_named_parameter(arguments, error, message):
    with pytest.raises(error, match=message):
        binary_randomized_response(**arguments)


def test_case_24_flip_probability_is_keyword_only():
    with pytest.raises(TypeError, match="positional"):
        binary_randomized_response(None, 0.1)


# -- sampling -------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon0", [0.1, 5.0])
def test_case_25_sampler_matches_its_rows(epsilon0):
    per_input = 200_000
    three = np.exp(epsilon0 * np.eye(3))
    three /= three.sum(axis=1, keepdims=True)
    for w in (binary_randomized_response(epsilon0), Randomizer(three)):
        assert_allclose(math.exp(w.epsilon0), math.exp(epsilon0), rtol=FEW_ROUNDINGS, atol=0)
        rng = np.random.default_rng(20240229)
        inputs = rng.permutation(np.repeat(np.arange(w.n_inputs), per_input))
        outputs = w.sample(inputs, rng)
        for x in range(w.n_inputs):
            counts = np.bincount(outputs[inputs == x], minlength=w.n_outputs)
            assert chisquare(counts, per_input * w.matrix[x]).pvalue > 1e-3


def test_sample_keeps_the_shape_and_gives_int64():
    w = Randomizer(THREE)
    for shape in ((), (0,), (4,), (2, 3)):
        outputs = w.sample(np.zeros(shape, dtype=np.uint8), np.random.default_rng(0))
        assert outputs.shape == shape
        assert outputs.dtype == np.int64
    assert w.sample([1, 0], np.random.default_rng(0)).shape == (2,)


def test_outputs_of_probability_0_never_appear():
    class Extremes(np.random.Generator):
        """A generator that draws only the ends of [0, 1)."""

        def random(self, size):
            return np.resize([0.0, 1.0 - 2.0**-53], size)

    rng = Extremes(np.random.PCG64(0))
    short = [0.0, 0.3, 0.0, 0.7 - 3e-12, 0.0]  # a sum just below 1
    w = Randomizer([short, [0.0, 0.0, 1.0, 0.0, 0.0]])
    assert w.sample([0, 0, 1, 1], rng).tolist() == [1, 3, 2, 2]
    assert binary_randomized_response(1000.0).sample([0, 0, 1, 1], rng).tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        ([0, 2], ValueError, "inputs must be >= 0 and <= 1, got 2"),
        ([0, -1], ValueError, "inputs must be >= 0 and <= 1, got -1"),
        ([0.0, 1.0], TypeError, "inputs must be integers, got dtype float64"),
        ([True], TypeError, "inputs must be integers, got dtype bool"),
        (None, TypeError, "inputs must be integers, got dtype object"),
    ],
)
def test_sample_refuses_unknown_inputs(inputs, error, message):
    with pytest.raises(error, match=message):
        binary_randomized_response(1.0).sample(inputs, np.random.default_rng(0))


@pytest.mark.parametrize("rng", [0, None, np.random.RandomState(0), np.random])
def test_sample_requires_a_generator(rng):
    with pytest.raises(TypeError, match=r"rng must be a numpy\.random\.Generator"):
        binary_randomized_response(1.0).sample([0], rng)
