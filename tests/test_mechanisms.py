"""Named mechanisms: their laws against laws written out in full from the definitions."""

import copy
import itertools
import json
import math
import pickle
import time

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose

import fastshuffle.randomizers as fr
from tests.tolerances import FEW_ROUNDINGS

DIGITS = 60
EPSILON0 = [1e-10, 0.1, 1.0, 5.0, 40.0, 700.0, 1000.0]

# A few additions of logarithms of about the size of the result, and their structure.
LOG_ROUNDINGS = 1e-14


# A probability from its logarithm, which is as large as 708; so is a logarithm near 0, as minus the
# probability of all other groups.
PROBABILITY = 2e-13

# -- the laws in full: rows of mpmath numbers, one column for each message ------------------------


def k_ary_law(epsilon0, k):
    e = mpmath.exp(epsilon0)
    return [[(e if x == y else 1) / (e + k - 1) for y in range(k)] for x in range(k)]


def bits_law(p, q, k):
    rows = []
    for x in range(k):
        chances = [p if i == x else q for i in range(k)]
        rows.append(
            [
                mpmath.fprod(c if bit else 1 - c for c, bit in zip(chances, message, strict=True))
                for message in itertools.product((0, 1), repeat=k)
            ]
        )
    return rows


def symmetric_law(epsilon0, k):
    root = mpmath.exp(epsilon0 / 2)
    return bits_law(root / (root + 1), 1 / (root + 1), k)


def optimized_law(epsilon0, k):
    return bits_law(mpmath.mpf(1) / 2, 1 / (mpmath.exp(epsilon0) + 1), k)


def rappor_law(k, *, f, p, q):
    f, p, q = map(mpmath.mpf, (f, p, q))
    permanent = {1: 1 - f / 2, 0: f / 2}  # of a permanent 1, given the bit
    one, zero = (permanent[bit] * q + (1 - permanent[bit]) * p for bit in (1, 0))
    return bits_law(one, zero, k)


def subset_law(epsilon0, k, omega):
    e = mpmath.exp(epsilon0)
    subsets = list(itertools.combinations(range(k), omega))
    rows = [[e if x in subset else mpmath.mpf(1) for subset in subsets] for x in range(k)]
    return [[entry / mpmath.fsum(row) for entry in row] for row in rows]


def hadamard_law(epsilon0, k):
    blocks = 1
    while 2 * blocks < min(math.exp(min(epsilon0, 700.0)), 2 * k):
        blocks *= 2
    size = 1
    while size < k / blocks + 1:
        size *= 2
    signs = [[1]]
    while len(signs) < size:  # Sylvester's construction
        signs = [r + r for r in signs] + [r + [-s for s in r] for r in signs]
    e = mpmath.exp(epsilon0)
    rows = []
    for x in range(k):
        block, row = x // (size - 1), 1 + x % (size - 1)
        marks = [b == block and signs[row][c] == 1 for b in range(blocks) for c in range(size)]
        weights = [e if mark else mpmath.mpf(1) for mark in marks]
        rows.append([weight / mpmath.fsum(weights) for weight in weights])
    return rows


def hashing_law(epsilon0, k, g):
    e = mpmath.exp(epsilon0)
    functions = list(itertools.product(range(g), repeat=k))
    return [
        [
            (e if function[x] == y else 1) / (e + g - 1) / len(functions)
            for function in functions
            for y in range(g)
        ]
        for x in range(k)
    ]


def clamped_law(cumulative, edges, places):
    """Masses between the edges of noise with the distribution function given, in the near tail."""
    rows = []
    for x in places:
        bounds = [-mpmath.inf, *(edge - x for edge in edges), mpmath.inf]
        row = []
        for low, high in itertools.pairwise(bounds):
            if low >= 0:
                row.append(cumulative(-low) - cumulative(-high))
            else:
                row.append(cumulative(high) - cumulative(low))
        rows.append(row)
    return rows


def discrete_laplace_law(epsilon0, n_levels):
    a = mpmath.exp(-mpmath.mpf(epsilon0) / (n_levels - 1))

    def cumulative(d):  # Pr[noise <= d] for d < 0, and half-integers for d
        if d == -mpmath.inf:
            return mpmath.mpf(0)
        if d == mpmath.inf:
            return mpmath.mpf(1)
        steps = int(mpmath.floor(d))
        return a**-steps / (1 + a) if steps < 0 else 1 - a ** (steps + 1) / (1 + a)

    edges = [mpmath.mpf(y) + 0.5 for y in range(n_levels - 1)]
    return clamped_law(cumulative, edges, range(n_levels))


def grid(n_inputs, bins_per_step):
    steps = (n_inputs - 1) * bins_per_step
    edges = [mpmath.mpf(j) / steps for j in range(steps + 1)]
    return edges, edges[::bins_per_step]


def discretized_laplace_law(epsilon0, n_inputs, *, bins_per_step):
    def cumulative(d):
        if abs(d) == mpmath.inf:
            return mpmath.mpf(d > 0)
        tail = mpmath.exp(-mpmath.mpf(epsilon0) * abs(d)) / 2
        return tail if d <= 0 else 1 - tail

    return clamped_law(cumulative, *grid(n_inputs, bins_per_step))


def discretized_gaussian_law(sigma, n_inputs, *, bins_per_step):
    def cumulative(d):
        return mpmath.erfc(-d / (mpmath.mpf(sigma) * mpmath.sqrt(2))) / 2

    return clamped_law(cumulative, *grid(n_inputs, bins_per_step))


# factory, law, arguments after epsilon0
BY_EPSILON0 = [
    (fr.k_randomized_response, k_ary_law, {"k": 2}),
    (fr.k_randomized_response, k_ary_law, {"k": 5}),
    (fr.symmetric_unary_encoding, symmetric_law, {"k": 2}),
    (fr.symmetric_unary_encoding, symmetric_law, {"k": 4}),
    (fr.optimized_unary_encoding, optimized_law, {"k": 2}),
    (fr.optimized_unary_encoding, optimized_law, {"k": 4}),
    (fr.subset_selection, subset_law, {"k": 2, "omega": 1}),
    (fr.subset_selection, subset_law, {"k": 5, "omega": 2}),
    (fr.subset_selection, subset_law, {"k": 5, "omega": 4}),
    (fr.hadamard_response, hadamard_law, {"k": 2}),
    (fr.hadamard_response, hadamard_law, {"k": 5}),
    (fr.hadamard_response, hadamard_law, {"k": 9}),
    (fr.optimized_local_hashing, hashing_law, {"k": 2, "g": 2}),
    (fr.optimized_local_hashing, hashing_law, {"k": 3, "g": 3}),
    (fr.discrete_laplace, discrete_laplace_law, {"n_levels": 2}),
    (fr.discrete_laplace, discrete_laplace_law, {"n_levels": 6}),
    (fr.discretized_laplace, discretized_laplace_law, {"n_inputs": 2, "bins_per_step": 1}),
    (fr.discretized_laplace, discretized_laplace_law, {"n_inputs": 4, "bins_per_step": 3}),
]
OTHERS = [
    (fr.rappor, rappor_law, {"k": 4, "f": 0.5, "p": 0.5, "q": 0.75}),
    (fr.rappor, rappor_law, {"k": 3, "f": 0.25, "p": 0.9, "q": 0.125}),
    (fr.rappor, rappor_law, {"k": 3, "f": 0.0, "p": 0.0, "q": 0.5}),
    (fr.rappor, rappor_law, {"k": 3, "f": 0.0, "p": 0.25, "q": 1.0}),
    (fr.rappor, rappor_law, {"k": 3, "f": 0.0, "p": 1.0, "q": 0.0}),
    (fr.rappor, rappor_law, {"k": 3, "f": 1.0, "p": 0.25, "q": 1.0}),
    (fr.rappor, rappor_law, {"k": 3, "f": 1e-20, "p": 1e-30, "q": 0.5}),
    *(
        (fr.discretized_gaussian, discretized_gaussian_law, arguments)
        for arguments in (
            {"sigma": 0.5, "n_inputs": 3, "bins_per_step": 2},
            {"sigma": 0.02, "n_inputs": 3, "bins_per_step": 3},  # masses down to e**-1250
            {"sigma": 1e9, "n_inputs": 4, "bins_per_step": 1},
            {"sigma": 3.0, "n_inputs": 2, "bins_per_step": 15},
        )
    ),
]
CASES = [
    (factory, law, {"epsilon0": epsilon0} | arguments)
    for factory, law, arguments in BY_EPSILON0
    for epsilon0 in (0.0, 1e-10, 0.1, 1.0, 5.0, 40.0, 800.0)
] + OTHERS
NAMES = [f"{factory.__name__}-{arguments}" for factory, _, arguments in CASES]


def merged_in_full(law, inputs):
    """Merge the columns of equal ratios of a law: a list of columns."""
    groups = {}
    for column in zip(*(law[x] for x in inputs), strict=True):
        largest = max(column)
        if largest > 0:  # ratios but for the last digits
            key = tuple(mpmath.nstr(entry / largest, 40) for entry in column)
            groups.setdefault(key, []).append(column)
    return [[mpmath.fsum(rows) for rows in zip(*group, strict=True)] for group in groups.values()]


def log_or_minus_inf(x):
    if abs(x - 1) < 1e10 * mpmath.eps:
        return 0.0
    return float(mpmath.log(x)) if x > 0 else -math.inf


def log_ratio(x, reference):
    if abs(x - reference) <= 1e-40 * reference:  # equal, but for the last digits
        return 0.0
    return log_or_minus_inf(x / reference) if reference > 0 else math.inf


@pytest.mark.parametrize(("factory", "law", "arguments"), CASES, ids=NAMES)
def test_merged_rows_are_the_law_in_full_with_equal_ratios_merged(factory, law, arguments):
    """Every group, its probability in every row, and nothing left to merge."""
    w = factory(**arguments)
    # so many that a probability is told from 1
    with mpmath.workdps(DIGITS + int(arguments.get("epsilon0", 0.0))):
        full = law(**arguments)
        assert w.n_inputs == len(full)
        choices = [(0, 1), (1, 0), (len(full) - 1, 0)]
        if len(full) > 2:
            choices += [(2, 0, 1), tuple(range(len(full)))]
        for inputs in choices:
            expected = merged_in_full(full, inputs)
            rows, log_rows, log_ratios = w.merged(inputs)
            assert rows.shape == log_rows.shape == log_ratios.shape
            assert rows.shape == (len(inputs), len(expected))
            found = []
            for column in expected:
                ratios = np.array([log_ratio(entry, column[0]) for entry in column])
                with np.errstate(invalid="ignore"):
                    gap = np.nan_to_num(np.abs(log_ratios - ratios[:, np.newaxis]), posinf=1e300)
                found.append(int(gap.sum(axis=0).argmin()))
                at = found[-1]
                assert_allclose(log_ratios[:, at], ratios, rtol=LOG_ROUNDINGS, atol=0)
                logs = np.array([log_or_minus_inf(entry) for entry in column])
                near_0 = logs > -1e-3
                assert_allclose(log_rows[near_0, at], logs[near_0], rtol=PROBABILITY, atol=0)
                assert_allclose(log_rows[~near_0, at], logs[~near_0], rtol=LOG_ROUNDINGS, atol=0)
                normal = logs > -708.0
                probabilities = np.array([float(entry) for entry in column])
                assert_allclose(rows[normal, at], probabilities[normal], rtol=PROBABILITY, atol=0)
            assert sorted(found) == list(range(len(expected)))
        losses = [
            log_ratio(b, a) for column in zip(*full, strict=True) for a in column for b in column
        ]
    assert_allclose(w.epsilon0, max(losses), rtol=LOG_ROUNDINGS, atol=0)
    assert_allclose(w.merged_rows(range(w.n_inputs)).sum(axis=1), 1.0, rtol=1e-14, atol=0)


@pytest.mark.parametrize(
    ("factory", "law", "arguments"),
    [case for case in CASES if case[2].get("epsilon0", 1.0) in {0.1, 1.0, 5.0}],
)
def test_hockey_stick_divergences_are_those_of_the_full_law(factory, law, arguments):
    """Of mixtures of three rows, at several epsilons: no divergence changes."""
    w = factory(**arguments)
    with mpmath.workdps(DIGITS):
        full = np.array([[float(entry) for entry in row] for row in law(**arguments)])
    inputs = (0, 1, w.n_inputs - 1)
    merged = w.merged_rows(inputs)
    assert w.n_inputs == 2 or merged.shape[1] <= full.shape[1]
    for weights in ([0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.2, 0.3, 0.5]):
        for other in ([1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.6, 0.4, 0.0]):
            for epsilon in (0.0, 0.05, 0.5, 2.0):
                deltas = [
                    np.maximum(weights @ rows - math.exp(epsilon) * (other @ rows), 0.0).sum()
                    for rows in (full[list(inputs)], merged)
                ]
                if deltas[0] < 1e-9:  # rounding of the full law
                    assert deltas[1] < 1e-9
                else:
                    assert_allclose(deltas[1], deltas[0], rtol=1e-6, atol=0)


@pytest.mark.parametrize("epsilon0", [1e-20, *EPSILON0, 1e300])
@pytest.mark.parametrize(
    ("factory", "arguments"),
    [
        *((factory, arguments) for factory, _, arguments in BY_EPSILON0),
        (fr.k_randomized_response, {"k": 10**6}),
        (fr.symmetric_unary_encoding, {"k": 1000}),
        (fr.optimized_unary_encoding, {"k": 1000}),
        (fr.subset_selection, {"k": 256}),
        (fr.hadamard_response, {"k": 2**20}),
        (fr.binary_local_hashing, {"k": 1000}),
        (fr.optimized_local_hashing, {"k": 1000}),
        (fr.discrete_laplace, {"n_levels": 1000}),
        (fr.discretized_laplace, {"n_inputs": 7, "bins_per_step": 11}),
    ],
)
def test_case_25_largest_row_ratio_is_epsilon0(factory, arguments, epsilon0):
    w = factory(epsilon0, **arguments)
    assert w.epsilon0 == epsilon0
    merged = w.merged((w.n_inputs - 1, 0))
    assert_allclose(merged.log_ratios.max(), epsilon0, rtol=1e-14, atol=0)
    assert_allclose(merged.log_ratios.min(), -epsilon0, rtol=1e-14, atol=0)
    from_logs = np.abs(merged.log_rows[1] - merged.log_rows[0]).max()
    subtraction = 4e-16 * np.abs(merged.log_rows).max() / epsilon0
    assert_allclose(from_logs, epsilon0, rtol=1e-14 + subtraction, atol=0)


def test_case_26_bit_probabilities_of_optimized_unary_encoding():
    rows = fr.optimized_unary_encoding(1.0, 2).merged_rows((0, 1))
    q = 1.0 / (math.e + 1.0)
    assert_allclose(sorted(rows[0]), sorted([0.5, 0.5 * (1 - q), 0.5 * q]), rtol=1e-15, atol=0)


@pytest.mark.parametrize("epsilon0", [0.0, 1e-20, 0.1, 5.0, 1000.0])
def test_two_inputs_are_binary_randomized_response(epsilon0):
    k_ary, binary = (
        w.merged((0, 1))
        for w in (fr.k_randomized_response(epsilon0, 2), fr.binary_randomized_response(epsilon0))
    )
    for one, other in zip(k_ary, binary, strict=True):
        assert_allclose(one, other, rtol=FEW_ROUNDINGS, atol=0)
    subsets = fr.subset_selection(epsilon0, 2).merged((0, 1))
    assert_allclose(np.sort(subsets.log_rows), np.sort(binary.log_rows), rtol=1e-15, atol=0)


def test_subsets_of_one_are_k_ary_randomized_response():
    subsets, k_ary = (
        np.sort(w.merged_rows((3, 0, 7)), axis=1)
        for w in (fr.subset_selection(1.5, 9, omega=1), fr.k_randomized_response(1.5, 9))
    )
    assert_allclose(subsets, k_ary, rtol=FEW_ROUNDINGS, atol=0)


def test_one_time_rappor_is_symmetric_unary_encoding():
    sue = fr.symmetric_unary_encoding(2.0, 5)
    f = 2.0 / (math.e + 1.0)
    report = fr.rappor(5, f=f, p=0.0, q=1.0)
    assert_allclose(report.epsilon0, 2.0, rtol=1e-15, atol=0)
    assert_allclose(report.permanent_epsilon0, 2.0, rtol=1e-15, atol=0)
    assert_allclose(report.merged_rows((0, 1)), sue.merged_rows((0, 1)), rtol=1e-14, atol=0)


def test_permanent_epsilon0_of_rappor():
    report = fr.rappor(5, f=0.5, p=0.5, q=0.75)
    assert_allclose(report.permanent_epsilon0, 2.0 * math.log(3.0), rtol=1e-15, atol=0)
    assert fr.rappor(5, f=0.0, p=0.4, q=0.5).permanent_epsilon0 == math.inf
    assert fr.rappor(5, f=1.0, p=0.4, q=0.5).permanent_epsilon0 == 0.0


def test_rappor_that_tells_nothing_has_equal_rows():
    for arguments in ({"f": 1.0, "p": 0.1, "q": 0.9}, {"f": 0.5, "p": 0.3, "q": 0.3}):
        w = fr.rappor(6, **arguments)
        assert w.epsilon0 == 0.0
        assert w.merged_rows((0, 5)).tolist() == [[1.0], [1.0]]


def test_asymmetric_randomized_response():
    w = fr.asymmetric_randomized_response(p=0.5, q=0.2)
    assert w == fr.Randomizer.from_probabilities([0.2, 0.5])
    assert_allclose(w.epsilon0, math.log(2.5), rtol=1e-15, atol=0)
    warner = fr.asymmetric_randomized_response(p=0.75, q=0.25)
    assert_allclose(warner.epsilon0, math.log(3.0), rtol=1e-15, atol=0)


@pytest.mark.parametrize(
    ("epsilon0", "omega"), [(0.0, 128), (1.0, 69), (2.0, 31), (5.0, 2), (40.0, 1), (1e300, 1)]
)
def test_default_size_of_subsets(epsilon0, omega):
    assert fr.subset_selection(epsilon0, 256).omega == omega
    assert fr.subset_selection(epsilon0, 2).omega == 1


@pytest.mark.parametrize(
    ("epsilon0", "g"), [(0.0, 2), (1.0, 4), (2.0, 8), (10.0, 22027), (22.5, 2**32), (1e300, 2**32)]
)
def test_default_number_of_hash_values(epsilon0, g):
    assert fr.optimized_local_hashing(epsilon0, 10).g == g


@pytest.mark.parametrize("epsilon0", [0.0, 1e-300, 0.3, 0.69, 0.7, 1.4, 3.0, 700.0, 1e300])
@pytest.mark.parametrize("k", [2, 3, 4, 7, 8, 9, 1000, 2**20])
def test_case_26_blocks_of_hadamard_response_hold_all_inputs(epsilon0, k):
    w = fr.hadamard_response(epsilon0, k)
    assert w.n_blocks >= 1
    assert w.n_blocks * (w.block_size - 1) >= k
    assert (w.n_blocks == 1) == (epsilon0 <= math.log(2.0))


# -- huge alphabets -------------------------------------------------------------------------------

HUGE = [
    fr.k_randomized_response(2.0, 10**6),
    fr.k_randomized_response(2.0, 2**53),
    fr.symmetric_unary_encoding(2.0, 1000),
    fr.optimized_unary_encoding(2.0, 2**53),
    fr.rappor(1000, f=0.5, p=0.5, q=0.75),
    fr.subset_selection(2.0, 256, omega=64),
    fr.subset_selection(2.0, 10**9),
    fr.hadamard_response(0.5, 2**20),
    fr.hadamard_response(5.0, 2**20),
    fr.optimized_local_hashing(5.0, 10**9),
]


@pytest.mark.parametrize("w", HUGE, ids=repr)
def test_huge_alphabets_are_never_written_down(w):
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        pair, triple = w.merged_rows((0, 1)), w.merged_rows((w.n_inputs - 1, 0, 1))
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.02
    assert 3 <= pair.shape[1] <= 4
    assert 4 <= triple.shape[1] <= 8
    for rows in (pair, triple):
        assert_allclose(rows.sum(axis=1), 1.0, rtol=1e-15, atol=0)


@pytest.mark.parametrize("k", [256, 10**6])
def test_subset_selection_at_scale_against_binomials(k):
    omega, epsilon0 = k // 4, 1.25
    inputs = (5, 0, 200)
    rows, log_rows, _ = fr.subset_selection(epsilon0, k, omega=omega).merged(inputs)
    with mpmath.workdps(60):
        e = mpmath.exp(epsilon0)
        chosen = [mpmath.binomial(k - 3, omega - s) for s in range(4)]
        z = e * mpmath.binomial(k - 1, omega - 1) + mpmath.binomial(k - 1, omega)
        expected = [
            float(chosen[sum(pattern)] * (e if pattern[0] else 1) / z)
            for pattern in itertools.product((0, 1), repeat=3)
            if 0 < sum(pattern) < 3
        ]
        expected.append(float((chosen[0] + e * chosen[3]) / z))
    assert_allclose(np.sort(rows[0]), np.sort(expected), rtol=1e-13, atol=0)
    assert_allclose(np.sort(log_rows[0]), np.log(np.sort(expected)), rtol=1e-13, atol=0)


def test_many_inputs():
    """As many groups as inputs where they suffice, and a refusal where they double with each."""
    rows = fr.k_randomized_response(1.0, 10**6).merged_rows(range(500))
    assert rows.shape == (500, 501)
    hadamard = fr.hadamard_response(1.5, 1000)
    n_outputs = hadamard.n_blocks * hadamard.block_size
    assert hadamard.merged_rows(range(1000)).shape == (1000, n_outputs)
    for w in (
        fr.symmetric_unary_encoding(1.0, 100),
        fr.subset_selection(1.0, 100),
        fr.optimized_local_hashing(1.0, 100),
    ):
        assert w.merged_rows(range(10)).shape == (10, 2**10 - 1)
        with pytest.raises(ValueError, match="inputs must be <= 16 different ones, .* got 17"):
            w.merged_rows(range(17))
    with pytest.raises(ValueError, match="inputs must have at most 65536 groups"):
        fr.hadamard_response(0.5, 2**20).merged_rows([2**i - 1 for i in range(18)])


# -- merging --------------------------------------------------------------------------------------


@pytest.mark.parametrize("w", [*HUGE[:3], fr.Randomizer([[0.5, 0.3, 0.2], [0.2, 0.35, 0.45]])])
def test_inputs_may_be_given_more_than_once(w):
    once, twice = w.merged((1, 0)), w.merged([1, 1, 0, 1])
    for a, b in zip(once, twice, strict=True):
        assert_allclose(b, a[[0, 0, 1, 0]], rtol=0, atol=0)
    for inputs in ((1,), [0, 0, 0]):
        merged = w.merged(inputs)
        assert merged.rows.tolist() == [[1.0]] * len(inputs)
        assert merged.log_rows.tolist() == merged.log_ratios.tolist() == [[0.0]] * len(inputs)


def test_explicit_matrices_are_merged():
    w = fr.Randomizer([[0.1, 0.2, 0.3, 0.4, 0.0], [0.2, 0.4, 0.3, 0.1, 0.0]])
    rows, log_rows, log_ratios = w.merged((0, 1))
    assert_allclose(rows, [[0.1 + 0.2, 0.3, 0.4], [0.2 + 0.4, 0.3, 0.1]], rtol=1e-15, atol=0)
    assert_allclose(log_rows, np.log(rows), rtol=1e-15, atol=0)
    assert_allclose(log_ratios[1], np.log([2.0, 1.0, 0.25]), rtol=1e-15, atol=0)
    assert log_ratios[0].tolist() == [0.0, 0.0, 0.0]


def test_explicit_zeros_have_infinite_ratios():
    w = fr.Randomizer([[0.5, 0.5, 0.0, 0.0], [0.5, 0.0, 0.25, 0.25], [0.5, 0.0, 0.25, 0.25]])
    rows, log_rows, log_ratios = w.merged((0, 1, 2))
    assert rows.tolist() == [[0.5, 0.5, 0.0], [0.5, 0.0, 0.5], [0.5, 0.0, 0.5]]
    assert log_rows[1].tolist() == [math.log(0.5), -math.inf, math.log(0.5)]
    assert log_ratios[1].tolist() == [0.0, -math.inf, math.inf]
    certain = fr.Randomizer(np.eye(3)).merged((2, 0))
    assert certain.rows.tolist() == [[0.0, 1.0], [1.0, 0.0]]
    assert certain.log_ratios[1].tolist() == [math.inf, -math.inf]


@pytest.mark.parametrize("units", [1, 3])
def test_ratios_equal_up_to_rounding_are_merged(units):
    nudged = 0.2 * (1.0 + units * 2.0**-52)
    w = fr.Randomizer([[0.1, 0.1, 0.5, 0.3], [0.2, nudged, 0.3, 0.3]])
    assert w.merged_rows((0, 1)).shape == (2, 3)
    assert w.merged_rows((1, 0)).shape == (2, 3)


def test_ratios_that_differ_by_more_than_rounding_are_kept_apart():
    nudged = 0.2 * (1.0 + 12 * 2.0**-52)
    w = fr.Randomizer([[0.1, 0.1, 0.5, 0.3], [0.2, nudged, 0.3, 0.3]])
    assert w.merged_rows((0, 1)).shape == (2, 4)
    # a long chain of neighbours within rounding is not one group
    d = 1000
    row = np.full(d, 1.0 / d)
    chain = row * (1.0 + 2.0**-50 * (np.arange(d) - (d - 1) / 2))
    assert fr.Randomizer(np.array([row, chain])).merged_rows((0, 1)).shape[1] > d / 8


def test_nearly_equal_binary_rows_keep_their_difference():
    w = fr.Randomizer([[0.3, 0.7], [0.3 + 2.0**-54, 0.7]])
    assert w.merged((0, 1)).log_ratios[1, 0] == w.log_ratio(1, 0, 0) > 0.0
    assert fr.Randomizer([[0.3, 0.7], [0.3, 0.7]]).merged_rows((0, 1)).tolist() == [[1.0], [1.0]]


@pytest.mark.parametrize("epsilon0", [0.0, 1e-20, 1.0, 1000.0])
def test_binary_randomized_response_is_merged_by_its_formula(epsilon0):
    rr = fr.binary_randomized_response(epsilon0)
    rows, log_rows, log_ratios = rr.merged((0, 1))
    if epsilon0 == 0.0:
        assert rows.tolist() == [[1.0], [1.0]]
    else:
        assert log_ratios[1].tolist() == [-epsilon0, epsilon0]
        assert_allclose(log_rows, rr.log_matrix, rtol=FEW_ROUNDINGS, atol=0)


def test_explicit_matrix_with_a_million_outputs():
    d = 10**6
    rng = np.random.default_rng(3)
    values = 1.0 + np.arange(5)
    weight = values[rng.integers(5, size=d)]
    base = rng.random(d)
    rows = np.array([base / base.sum(), base * weight / (base * weight).sum()])
    w = fr.Randomizer(rows)
    start = time.perf_counter()
    merged = w.merged_rows((0, 1))
    assert time.perf_counter() - start < 10.0
    assert merged.shape == (2, 5)
    assert_allclose(merged.sum(axis=1), 1.0, rtol=1e-14, atol=0)
    first = [math.fsum(rows[0, weight == value]) for value in values]
    assert_allclose(np.sort(merged[0]), np.sort(first), rtol=1e-14, atol=0)


# -- definition -----------------------------------------------------------------------------------

ALL = [factory(**arguments) for factory, _, arguments in OTHERS] + [
    factory(0.5, **arguments) for factory, _, arguments in BY_EPSILON0
]


@pytest.mark.parametrize("w", ALL, ids=repr)
def test_definition_copies_and_equality(w):
    content = json.loads(json.dumps(w.to_dict(), allow_nan=False))
    again = getattr(fr, content.pop("mechanism"))(**content)
    for other in (again, copy.deepcopy(w), pickle.loads(pickle.dumps(w))):
        assert other == w
        assert hash(other) == hash(w)
        assert repr(other) == repr(w)
    assert isinstance(w, fr.LocalRandomizer)
    assert [other for other in ALL if other == w] == [w]
    assert w != "mechanism"
    assert w != fr.binary_randomized_response(0.5)
    with pytest.raises(AttributeError):
        w.n_inputs = 3


def test_repr():
    assert repr(fr.subset_selection(1, 16, 4)) == (
        "<subset_selection: epsilon0 = 1, k = 16, omega = 4>"
    )


def test_binary_local_hashing_is_local_hashing_with_two_values():
    assert fr.binary_local_hashing(1.0, 9) == fr.optimized_local_hashing(1.0, 9, g=2)


# -- bad input ------------------------------------------------------------------------------------

FACTORIES = [
    (fr.k_randomized_response, "k"),
    (fr.symmetric_unary_encoding, "k"),
    (fr.optimized_unary_encoding, "k"),
    (fr.subset_selection, "k"),
    (fr.hadamard_response, "k"),
    (fr.binary_local_hashing, "k"),
    (fr.optimized_local_hashing, "k"),
    (fr.discrete_laplace, "n_levels"),
    (fr.discretized_laplace, "n_inputs"),
]


@pytest.mark.parametrize(("factory", "size"), FACTORIES)
def test_case_13_refused_arguments(factory, size):
    for value in (-0.5, math.inf, -math.inf, math.nan):
        with pytest.raises(ValueError, match=f"^epsilon0 must be >= 0 and finite, got {value}"):
            factory(value, 5)
    for value in (None, "1", True, 1j):
        with pytest.raises(TypeError, match="^epsilon0 must be a real number"):
            factory(value, 5)
    for value in (1, 0, -3):
        with pytest.raises(ValueError, match=f"^{size} must be >= 2, got {value}"):
            factory(1.0, value)
    for value in (2.5, math.nan, None, True):
        with pytest.raises(TypeError, match=f"^{size} must be an integer"):
            factory(1.0, value)
    with pytest.raises(ValueError, match=f"^{size} must be <= "):
        factory(1.0, 2**53 + 1)
    assert factory(1, 5.0) == factory(1.0, 5)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: fr.subset_selection(1.0, 5, 0), ValueError, "^omega must be >= 1, got 0"),
        (lambda: fr.subset_selection(1.0, 5, 5), ValueError, "^omega must be <= 4, got 5"),
        (lambda: fr.subset_selection(1.0, 5, 1.5), TypeError, "^omega must be an integer"),
        (lambda: fr.optimized_local_hashing(1.0, 5, 1), ValueError, "^g must be >= 2, got 1"),
        (lambda: fr.optimized_local_hashing(1.0, 5, 2**33), ValueError, "^g must be <= 42949"),
        (lambda: fr.rappor(1, f=0.5, p=0.5, q=0.75), ValueError, "^k must be >= 2, got 1"),
        (lambda: fr.rappor(5, f=1.5, p=0.5, q=0.75), ValueError, r"^f must be in \[0, 1\]"),
        (lambda: fr.rappor(5, f=0.5, p=-0.5, q=0.75), ValueError, r"^p must be in \[0, 1\]"),
        (lambda: fr.rappor(5, f=0.5, p=0.5, q=math.nan), ValueError, r"^q must be in \[0, 1\]"),
        (lambda: fr.rappor(5, 0.5, 0.5, 0.75), TypeError, "positional"),
        (lambda: fr.asymmetric_randomized_response(p=2.0, q=0.5), ValueError, "^p must be in"),
        (lambda: fr.asymmetric_randomized_response(p=0.5, q=-1), ValueError, "^q must be in"),
        (lambda: fr.asymmetric_randomized_response(0.5, 0.2), TypeError, "positional"),
        (lambda: fr.discretized_gaussian(0.0, 5), ValueError, r"^sigma must be in \[1e-100"),
        (lambda: fr.discretized_gaussian(math.inf, 5), ValueError, "^sigma must be in"),
        (lambda: fr.discretized_gaussian(math.nan, 5), ValueError, "^sigma must be in"),
        (lambda: fr.discretized_gaussian("1", 5), TypeError, "^sigma must be a real number"),
        (lambda: fr.discretized_gaussian(1.0, 1), ValueError, "^n_inputs must be >= 2, got 1"),
        (
            lambda: fr.discretized_gaussian(1.0, 2**10 + 1, bins_per_step=65),
            ValueError,
            "^bins_per_step must be <= 64, got 65",
        ),
        (
            lambda: fr.discretized_laplace(1.0, 5, bins_per_step=0),
            ValueError,
            "^bins_per_step must be >= 1, got 0",
        ),
    ],
)
def test_case_13_refused_parameters(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("w", [*ALL, fr.binary_randomized_response(1.0)], ids=repr)
def test_case_13_refused_inputs(w):
    last = w.n_inputs - 1
    for inputs, error, message in (
        ((), ValueError, "^inputs must be one or more, got none"),
        ((0, -1), ValueError, r"^inputs\[1\] must be >= 0, got -1"),
        ((last + 1,), ValueError, rf"^inputs\[0\] must be <= {last}, got {last + 1}"),
        ((0.5, 1), TypeError, r"^inputs\[0\] must be an integer, got 0.5"),
        ((True, 1), TypeError, r"^inputs\[0\] must be an integer, got True"),
    ):
        with pytest.raises(error, match=message):
            w.merged_rows(inputs)
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=f"^inputs must be >= 0 and <= {last}, got -1"):
        w.sample([0, -1], rng)
    with pytest.raises(ValueError, match=f"^inputs must be >= 0 and <= {last}, got {last + 1}"):
        w.sample([0, last + 1], rng)
    with pytest.raises(TypeError, match="^inputs must be integers, got dtype float64"):
        w.sample([0.5], rng)
    with pytest.raises(TypeError, match=r"^rng must be a numpy.random.Generator, got 7"):
        w.sample([0], 7)
