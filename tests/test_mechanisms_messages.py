"""Named mechanisms: samplers against their laws, and decoders against the truth."""

import itertools
import math
import time

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import chisquare, laplace, norm

import fastshuffle.randomizers as fr

EPSILON0 = [0.1, 1.0, 5.0]


# -- laws in floating point, with a number for each message ---------------------------------------


def k_ary(epsilon0, k):
    rows = np.exp(epsilon0 * np.eye(k))
    return rows / rows.sum(axis=1, keepdims=True), lambda messages: messages


def bits(p, q, k):
    patterns = np.array(list(itertools.product((0, 1), repeat=k)))
    chances = np.where(np.eye(k, dtype=bool), p, q)[:, np.newaxis]
    rows = np.where(patterns, chances, 1.0 - chances).prod(axis=2)
    return rows, lambda messages: messages.astype(int) @ 2 ** np.arange(k)[::-1]


def symmetric(epsilon0, k):
    p = 1.0 / (1.0 + math.exp(-epsilon0 / 2))
    return bits(p, 1.0 - p, k)


def optimized(epsilon0, k):
    return bits(0.5, 1.0 / (math.exp(epsilon0) + 1.0), k)


def subsets(epsilon0, k, omega):
    members = list(itertools.combinations(range(k), omega))
    rows = np.exp(epsilon0 * np.array([[x in subset for subset in members] for x in range(k)]))
    index = {subset: i for i, subset in enumerate(members)}
    rows /= rows.sum(axis=1, keepdims=True)
    return rows, lambda messages: np.array([index[tuple(m)] for m in messages.tolist()])


def hadamard(epsilon0, k):
    w = fr.hadamard_response(epsilon0, k)
    rows = np.zeros((k, w.n_blocks * w.block_size))
    for x in range(k):
        block, place = divmod(x, w.block_size - 1)
        for c in range(w.block_size):
            rows[x, block * w.block_size + c] = ((place + 1) & c).bit_count() % 2 == 0
    rows = np.exp(epsilon0 * rows)
    return rows / rows.sum(axis=1, keepdims=True), lambda messages: messages


def hashed(seeds, x, g):
    """Output number x of the SplitMix64 stream of each seed, modulo g, in Python integers."""
    mask = 2**64 - 1
    values = []
    for seed in seeds.tolist():
        z = (seed + (x + 1) * 0x9E3779B97F4A7C15) & mask
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        values.append((z ^ (z >> 31)) % g)
    return np.array(values)


def hashing(epsilon0, k, g):
    """Which inputs a message supports, each independently with an ideal hash function."""
    rows, number = bits(math.exp(epsilon0) / (math.exp(epsilon0) + g - 1), 1.0 / g, k)

    def pattern(messages):
        seeds, values = messages[:, 0], messages[:, 1].astype(int)
        return number(np.array([hashed(seeds, x, g) == values for x in range(k)]).T)

    return rows, pattern


def binary_hashing(epsilon0, k):
    return hashing(epsilon0, k, 2)


def between(cdf, places, edges):
    bounds = np.concatenate(([-np.inf], edges, [np.inf]))
    rows = np.diff(cdf(bounds - np.array(places)[:, np.newaxis]), axis=1)
    return rows, lambda messages: messages


def discrete(epsilon0, n_levels):
    a = math.exp(-epsilon0 / (n_levels - 1))
    noise = np.arange(-4000, 4001)
    mass = (1 - a) / (1 + a) * a ** np.abs(noise)
    rows = np.array(
        [np.bincount(np.clip(x + noise, 0, n_levels - 1), mass, n_levels) for x in range(n_levels)]
    )
    return rows, lambda messages: messages


def discretized(epsilon0, n_inputs, bins_per_step):
    edges = np.linspace(0.0, 1.0, (n_inputs - 1) * bins_per_step + 1)
    return between(laplace(scale=1.0 / epsilon0).cdf, edges[::bins_per_step], edges)


SAMPLED = [
    (fr.k_randomized_response, k_ary, {"k": 2}),
    (fr.k_randomized_response, k_ary, {"k": 7}),
    (fr.symmetric_unary_encoding, symmetric, {"k": 4}),
    (fr.optimized_unary_encoding, optimized, {"k": 4}),
    (fr.subset_selection, subsets, {"k": 6, "omega": 3}),
    (fr.subset_selection, subsets, {"k": 5, "omega": 1}),
    (fr.subset_selection, subsets, {"k": 5, "omega": 4}),
    (fr.hadamard_response, hadamard, {"k": 3}),
    (fr.hadamard_response, hadamard, {"k": 9}),
    (fr.binary_local_hashing, binary_hashing, {"k": 3}),
    (fr.optimized_local_hashing, hashing, {"k": 3, "g": 5}),
    (fr.discrete_laplace, discrete, {"n_levels": 6}),
    (fr.discretized_laplace, discretized, {"n_inputs": 3, "bins_per_step": 3}),
]


def assert_sampled(w, law, number, seed=20240229, per_input=10_000):
    rng = np.random.default_rng(seed)
    inputs = rng.permutation(np.repeat(np.arange(w.n_inputs), per_input))
    numbers = number(w.sample(inputs, rng))
    for x in range(w.n_inputs):
        counts = np.bincount(numbers[inputs == x], minlength=law.shape[1])
        expected = per_input * law[x]
        rare = expected < 5.0
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
        if expected[-1] < 5.0:  # next to nothing: with the rest it would be no chi-square
            assert counts[-1] < 25
            counts, expected = counts[:-1], expected[:-1] * counts[:-1].sum() / expected[:-1].sum()
        assert chisquare(counts, expected).pvalue > 1e-4


@pytest.mark.parametrize("epsilon0", EPSILON0)
@pytest.mark.parametrize(("factory", "law", "arguments"), SAMPLED)
def test_case_25_sampler_matches_its_law(factory, law, arguments, epsilon0):
    w = factory(epsilon0, **arguments)
    rows, number = law(epsilon0, **arguments)
    assert_sampled(w, rows, number)


@pytest.mark.parametrize(
    ("f", "p", "q"), [(0.5, 0.5, 0.75), (0.25, 0.9, 0.125), (0.0, 0.0, 0.5), (1.0, 0.2, 0.9)]
)
def test_case_25_sampler_of_rappor_matches_two_stages(f, p, q):
    report = [f / 2 * q + (1 - f / 2) * p, (1 - f / 2) * q + f / 2 * p]
    assert_sampled(fr.rappor(3, f=f, p=p, q=q), *bits(report[1], report[0], 3))


@pytest.mark.parametrize("sigma", [0.1, 1.0, 20.0])
def test_case_25_sampler_of_gaussian_noise_matches_its_law(sigma):
    edges = np.linspace(0.0, 1.0, 9)
    w = fr.discretized_gaussian(sigma, 5, bins_per_step=2)
    assert_sampled(w, *between(norm(scale=sigma).cdf, edges[::2], edges))


def test_case_25_sampler_of_asymmetric_response_matches_its_law():
    w = fr.asymmetric_randomized_response(p=0.5, q=0.03)
    assert_sampled(w, np.array([[0.97, 0.03], [0.5, 0.5]]), lambda messages: messages)


@pytest.mark.parametrize("epsilon0", [0.0, 1e-300, 1000.0, 1e300])
@pytest.mark.parametrize(("factory", "law", "arguments"), SAMPLED)
def test_samplers_at_extreme_epsilon0(factory, law, arguments, epsilon0):
    """Case 24: noise without end and without any."""
    del law
    w = factory(epsilon0, **arguments)
    inputs = np.arange(w.n_inputs).repeat(100)
    messages = w.sample(inputs, np.random.default_rng(1))
    assert len(messages) == inputs.size
    if epsilon0 < 1.0:
        if factory is fr.discrete_laplace:
            assert set(messages.tolist()) == {0, w.n_inputs - 1}
        return
    if factory in {fr.k_randomized_response, fr.discrete_laplace}:
        assert messages.tolist() == inputs.tolist()
    elif factory is fr.symmetric_unary_encoding:
        assert messages.argmax(axis=1).tolist() == inputs.tolist()
        assert (messages.sum(axis=1) == 1).all()
    elif factory is fr.subset_selection:
        assert (messages == inputs[:, np.newaxis]).any(axis=1).all()


MESSAGES = [
    (fr.k_randomized_response(1.0, 5), (), np.int64),
    (fr.symmetric_unary_encoding(1.0, 5), (5,), np.uint8),
    (fr.optimized_unary_encoding(1.0, 5), (5,), np.uint8),
    (fr.rappor(5, f=0.5, p=0.5, q=0.75), (5,), np.uint8),
    (fr.subset_selection(1.0, 5, 2), (2,), np.int64),
    (fr.hadamard_response(1.0, 5), (), np.int64),
    (fr.binary_local_hashing(1.0, 5), (2,), np.int64),
    (fr.discrete_laplace(1.0, 5), (), np.int64),
    (fr.discretized_laplace(1.0, 5), (), np.int64),
    (fr.discretized_gaussian(1.0, 5), (), np.int64),
]


@pytest.mark.parametrize(("w", "shape", "dtype"), MESSAGES)
def test_messages_have_the_stated_shape(w, shape, dtype):
    for users in ((), (0,), (7,), (2, 3)):
        messages = w.sample(np.zeros(users, dtype=np.uint8), np.random.default_rng(0))
        assert messages.shape == users + shape
        assert messages.dtype == dtype
    inputs = np.arange(5).repeat(3)
    once, again = (w.sample(inputs, np.random.default_rng(5)) for _ in range(2))
    assert (once == again).all()


def test_subsets_are_sorted_sets():
    w = fr.subset_selection(1.0, 4000, 600)  # in several pieces
    messages = w.sample(np.arange(3000), np.random.default_rng(2))
    assert (np.diff(messages, axis=1) > 0).all()
    assert messages.min() >= 0
    assert messages.max() < 4000
    held = (messages == np.arange(3000)[:, np.newaxis]).any(axis=1).mean()
    p = 600 * math.e / (600 * math.e + 3400)
    assert abs(held - p) < 5.0 * math.sqrt(p * (1.0 - p) / 3000)


def test_huge_alphabets_are_sampled_and_decoded():
    k = 2**20
    inputs = np.full(20_000, 123_456)
    start = time.perf_counter()
    for w in (fr.k_randomized_response(5.0, k), fr.hadamard_response(2.0, k)):
        estimate = w.estimate_frequencies(w.sample(inputs, np.random.default_rng(3)))
        assert estimate.shape == (k,)
        standard_error = math.sqrt(w.frequency_variance(inputs.size, 1.0))
        assert abs(estimate[123_456] - 1.0) < 5.0 * standard_error
    hashes = fr.optimized_local_hashing(3.0, k)
    estimate = hashes.estimate_frequencies(hashes.sample(inputs[:20], np.random.default_rng(4)))
    assert estimate.shape == (k,)
    assert estimate[123_456] > 0.5
    assert time.perf_counter() - start < 20.0


# -- decoders -------------------------------------------------------------------------------------

DECODED = [
    *(
        factory(epsilon0, 6)
        for epsilon0 in EPSILON0
        for factory in (
            fr.k_randomized_response,
            fr.symmetric_unary_encoding,
            fr.optimized_unary_encoding,
            fr.subset_selection,
            fr.hadamard_response,
            fr.binary_local_hashing,
            fr.optimized_local_hashing,
        )
    ),
    fr.subset_selection(1.0, 6, 5),
    fr.optimized_local_hashing(1.0, 6, 17),
    fr.hadamard_response(2.0, 13),
    fr.rappor(6, f=0.5, p=0.5, q=0.75),
    fr.rappor(6, f=0.25, p=0.9, q=0.125),
]


@pytest.mark.parametrize("w", DECODED, ids=repr)
def test_decoders_are_unbiased(w):
    counts = np.zeros(w.n_inputs, dtype=int)
    counts[:3] = 60_000, 30_000, 10_000
    n = counts.sum()
    inputs = np.repeat(np.arange(w.n_inputs), counts)
    estimate = w.estimate_frequencies(w.sample(inputs, np.random.default_rng(8)))
    standard_errors = np.sqrt(w.frequency_variance(n, counts / n))
    assert np.abs((estimate - counts / n) / standard_errors).max() < 5.0


@pytest.mark.parametrize("w", DECODED, ids=repr)
def test_variance_of_the_estimates(w):
    """Against the spread over 600 repetitions; all users hold inputs of one Hadamard block."""
    repetitions, n = 600, 120
    used = min(w.n_inputs, getattr(w, "block_size", math.inf) - 1)
    inputs = np.tile(np.arange(n) * used // n, (repetitions, 1))
    inputs[:, : n // 2] = 0
    messages = w.sample(inputs, np.random.default_rng(12))
    estimates = np.array([w.estimate_frequencies(part) for part in messages])
    shares = np.bincount(inputs[0], minlength=w.n_inputs)[:used] / n
    ratio = estimates[:, :used].var(axis=0, ddof=1) / w.frequency_variance(n, shares)
    # four moments: the variance of a variance is (kurtosis - 1) / repetitions
    centred = estimates[:, :used] - shares
    kurtosis = (centred**4).mean(axis=0) / (centred**2).mean(axis=0) ** 2
    assert (np.abs(ratio - 1.0) < 5.0 * np.sqrt((kurtosis - 1.0) / repetitions)).all()


def test_hadamard_variance_is_the_largest_over_other_blocks():
    w = fr.hadamard_response(3.0, 40)
    assert w.n_blocks > 1
    inputs = np.tile(np.repeat([0, 39], 50), (600, 1))
    messages = w.sample(inputs, np.random.default_rng(13))
    estimates = np.array([w.estimate_frequencies(part) for part in messages])
    assert np.abs(estimates.mean(axis=0) - np.bincount(inputs[0]) / 100).max() < 0.05
    e, blocks = math.exp(3.0), w.n_blocks
    c = (e + 2 * blocks - 1) / (e - 1)
    own, other = (e + 1) / (e + 2 * blocks - 1), 2 / (e + 2 * blocks - 1)
    expected = (c**2 * (0.5 * own + 0.5 * other) - 0.5) / 100
    assert_allclose(estimates[:, 0].var(), expected, rtol=0.3)
    assert w.frequency_variance(100, 0.5) > expected


@pytest.mark.parametrize("epsilon0", [1e-3, 0.5, 2.0])
def test_variances_of_the_literature(epsilon0):
    """At frequency 0: the closed forms of Wang et al. (2017), in units of 1 / n."""
    e, root = math.exp(epsilon0), math.exp(epsilon0 / 2)
    optimized = 4 * e / (e - 1) ** 2
    hashing = fr.optimized_local_hashing(epsilon0, 9, 3)
    for w, variance in (
        (fr.k_randomized_response(epsilon0, 9), (9 - 2 + e) / (e - 1) ** 2),
        (fr.symmetric_unary_encoding(epsilon0, 9), root / (root - 1) ** 2),
        (fr.optimized_unary_encoding(epsilon0, 9), optimized),
        (fr.binary_local_hashing(epsilon0, 9), ((e + 1) / (e - 1)) ** 2),
        (hashing, (e + 2) ** 2 / ((e - 1) ** 2 * 2)),
    ):
        assert_allclose(w.frequency_variance(1, 0.0), variance, rtol=1e-11, atol=0)
    assert hashing.frequency_variance(10, [0.0, 1.0]).shape == (2,)
    assert isinstance(hashing.frequency_variance(10, 0.25), float)


@pytest.mark.parametrize("epsilon0", [1e-300, 1e-10, 700.0, 1000.0])
def test_variance_at_extreme_epsilon0(epsilon0):
    for w in (
        fr.k_randomized_response(epsilon0, 9),
        fr.symmetric_unary_encoding(epsilon0, 9),
        fr.subset_selection(epsilon0, 9),
        fr.hadamard_response(epsilon0, 9),
        fr.optimized_local_hashing(epsilon0, 9),
    ):
        variance = w.frequency_variance(100, 0.5)
        assert variance >= 0.0
        if epsilon0 == 1e-10:
            assert 0.1 < variance * 1e-18 < 100.0
    noiseless = fr.k_randomized_response(1000.0, 9)
    assert noiseless.estimate_frequencies([3, 3, 8, 0]).tolist() == [
        0.25, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.25,
    ]  # fmt: skip


@pytest.mark.parametrize("w", [w for w, *_ in MESSAGES if isinstance(w, fr.FrequencyRandomizer)])
def test_case_13_refused_messages(w):
    messages = w.sample([0, 1, 2], np.random.default_rng(0))
    for value in (None, "message", [0.5], messages.astype(float)):
        with pytest.raises((TypeError, ValueError), match="^messages must be "):
            w.estimate_frequencies(value)
    with pytest.raises(ValueError, match="^messages must be one or more, got none"):
        w.estimate_frequencies(messages[:0])
    if messages.dtype.kind == "i":
        with pytest.raises(ValueError, match="^messages must be >= 0 .* got -1"):
            w.estimate_frequencies(messages * 0 - 1)
    with pytest.raises(ValueError, match="messages must be "):
        w.estimate_frequencies(messages * 0 + 200)
    if messages.ndim == 2:
        with pytest.raises(ValueError, match="^messages must .* along the last axes, got"):
            w.estimate_frequencies(messages[:, :1])
    for arguments, name in (
        ((0, 0.5), "n"),
        ((1.5, 0.5), "n"),
        ((5, -0.1), "frequency"),
        ((5, [0.5, math.nan]), "frequency"),
    ):
        with pytest.raises((TypeError, ValueError), match=f"^{name} must be "):
            w.frequency_variance(*arguments)


def test_repeated_members_of_a_subset_are_refused():
    w = fr.subset_selection(1.0, 5, 2)
    with pytest.raises(ValueError, match=r"^messages must be sets of 2 inputs, got \[3, 3\]"):
        w.estimate_frequencies([[0, 1], [3, 3]])


def test_values_beyond_the_hash_are_refused():
    w = fr.optimized_local_hashing(1.0, 5, 4)
    with pytest.raises(ValueError, match="^values of messages must be <= 3, got 4"):
        w.estimate_frequencies([[2**63 - 1, 4]])
    with pytest.raises(ValueError, match="^messages must be >= 0 .* got -1"):
        w.estimate_frequencies([[-1, 2]])
    messages = w.sample(np.arange(5), np.random.default_rng(1))
    from_json = w.estimate_frequencies(messages.tolist())
    assert from_json.tolist() == w.estimate_frequencies(messages).tolist()


@pytest.mark.parametrize("w", [w for w, *_ in MESSAGES if isinstance(w, fr.FrequencyRandomizer)])
def test_equal_rows_give_no_estimate(w):
    arguments = w.to_dict()
    factory = getattr(fr, arguments.pop("mechanism"))
    silent = factory(**arguments | ({"f": 1.0} if "f" in arguments else {"epsilon0": 0.0}))
    messages = silent.sample([0, 1], np.random.default_rng(0))
    with pytest.raises(ValueError, match="^epsilon0 must be > 0 to estimate frequencies, got 0"):
        silent.estimate_frequencies(messages)
    assert silent.frequency_variance(10, 0.5) == math.inf
