"""The certificate of the worst composition: every bound of a block lies above every exact value."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fastshuffle._kernels.composition_search import (
    _pop_block,
    _push_block,
    certified_epsilon,
    compose_groups,
    epsilon_of_counts,
    log_block_bound,
    log_delta_of_counts,
    log_envelope,
    search_compositions,
)
from tests.laws import assert_log_close, group_rows, hockey_stick_pair
from tests.tolerances import LOG_PER_UNIT, STATED
from validation.reference import mp as reference
from validation.reference.mp import Complement

# An interpreted kernel warns where machine code returns the same infinity without a word.
pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in scalar:RuntimeWarning")
jit_free = pytest.mark.jit_free

# (law of the lower, law of the higher input)
CHANNELS = [
    (0.2, 0.5),
    (0.3, 0.35),
    (0.45, 0.55),
    (1e-3, 0.9),
    (0.1192, Complement(0.1192)),
    (Complement(0.02), Complement(1e-3)),
    (0.25, 0.25000001),
    (0.02, 0.03),
]
CERTAIN = [(0.0, 0.3), (0.3, 1.0), (0.0, 1.0), (1e-300, 0.5), (1e-12, Complement(1e-9))]


def mirrored(law):
    if isinstance(law, Complement):
        return float(law.q)
    return Complement(float(law)) if law < 0.5 else 1.0 - law


def both_directions(low, high):
    """Return the inputs and the pairs of the search kernels, forward and reverse."""
    inputs = np.array(
        [group_rows([(1, low), (1, high)]), group_rows([(1, mirrored(low)), (1, mirrored(high))])]
    )
    pairs = np.array(
        [hockey_stick_pair(low, high), hockey_stick_pair(mirrored(high), mirrored(low))]
    )
    return inputs, pairs


def assert_bounds(epsilon, block, rest, direction, arrays, ks):
    """Both bounds lie above every exact value, but for the rounding that the search adds."""
    inputs, pairs = arrays[0][direction], arrays[1][direction]
    k_low, k_high = block
    values = [log_delta_of_counts(epsilon, rest - k, k, inputs, pairs) for k in ks]
    largest = max(values)
    slack = STATED + (LOG_PER_UNIT * abs(largest) if largest > -math.inf else 0.0)
    envelope = log_envelope(epsilon, k_low, k_high, rest, inputs, pairs)
    bound = log_block_bound(epsilon, k_low, k_high, rest, inputs, pairs)
    where = f"{epsilon=} {block=} {rest=} {direction=} {values=}"
    assert not math.isnan(envelope), where
    assert envelope + slack >= largest, where
    assert bound + slack >= largest, where
    assert bound <= envelope, where
    return envelope


# ---- Blocks ----------------------------------------------------------------------------------


@jit_free
@pytest.mark.parametrize("channel", [*CHANNELS, *CERTAIN], ids=str)
def test_revealing_bounds_every_composition(channel):
    """Random blocks of n up to 300 with every k in them, both directions, all of the curve."""
    rng = np.random.default_rng(len(str(channel)))
    arrays = both_directions(*channel)
    for _ in range(4):
        rest = float(rng.integers(1, 80) if rng.random() < 0.7 else rng.integers(80, 300))
        k_low, k_high = np.sort(rng.integers(0, int(rest) + 1, 2)).astype(float).tolist()
        ks = np.arange(k_low, k_high + 1.0)[: 1 + int(k_high - k_low)].tolist()
        ks = ks if len(ks) <= 30 else [ks[0], ks[-1], *rng.choice(ks, 28).tolist()]
        for direction in range(2):
            loss = min(arrays[1][direction, 3], 50.0)
            for epsilon in (0.0, 0.4 * loss * rng.random() ** 3, loss * rng.random()):
                assert_bounds(float(epsilon), (k_low, k_high), rest, direction, arrays, ks)


@pytest.mark.parametrize("channel", [*CHANNELS, *CERTAIN], ids=str)
def test_revealing_bounds_all_of_many_blocks(channel):
    rng = np.random.default_rng(7)
    arrays = both_directions(*channel)
    for _ in range(120):
        rest = float(rng.integers(1, 300))
        k_low, k_high = np.sort(rng.integers(0, int(rest) + 1, 2)).astype(float).tolist()
        ks = np.arange(k_low, k_high + 1.0).tolist()
        for direction in range(2):
            loss = min(arrays[1][direction, 3], 50.0)
            for epsilon in (0.0, 0.4 * loss * rng.random() ** 3, loss * rng.random()):
                assert_bounds(float(epsilon), (k_low, k_high), rest, direction, arrays, ks)


def some_compositions(rng, k_low, k_high, size):
    """Return the ends, the middle and its neighbours, and random compositions of a block."""
    middle = float(math.floor(0.5 * (k_low + k_high)))
    inside = rng.integers(int(k_low), int(k_high) + 1, size).astype(float)
    ends = [k_low, k_high, middle, middle + 1, middle - 1]
    return [k for k in [*ends, *inside.tolist()] if k_low <= k <= k_high]


@pytest.mark.parametrize("channel", CHANNELS, ids=str)
@pytest.mark.parametrize("rest", [1e5, 1e6, 1e7, 1e12])
def test_envelope_bounds_every_composition(channel, rest):
    """Blocks from a few compositions to all of them, epsilon from 0 to 6 standard deviations."""
    rng = np.random.default_rng(int(rest) % 1000 + len(str(channel)))
    arrays = both_directions(*channel)
    defined = 0
    for width in (1.0, 3.0, 30.0, 1e3, 1e-3 * rest, 0.05 * rest, 0.4 * rest, rest):
        k_low = float(math.floor(rng.random() * (rest - width)))
        k_high = min(rest, k_low + math.floor(width))
        ks = some_compositions(rng, k_low, k_high, 250)
        for direction in range(2):
            pair = arrays[1][direction]
            log_total = log_delta_of_counts(0.0, rest - k_low, k_low, arrays[0][direction], pair)
            # the standard deviation of the loss is about 2.5 times its total variation
            deviation = 2.5 * math.exp(log_total)
            for z in (0.0, 1e-6, 0.1, 1.0, 2.5, 6.0, math.inf):
                epsilon = min(z * deviation, 0.6 * pair[3])
                envelope = assert_bounds(epsilon, (k_low, k_high), rest, direction, arrays, ks)
                defined += envelope < math.inf
    assert defined >= 30 or rest == 1e5


@pytest.mark.parametrize("channel", CHANNELS[:4], ids=str)
def test_envelope_is_sharp_where_revealing_is_not(channel):
    """Near epsilon = 0 a narrow block loses a few percent of nothing; that is what it is for."""
    arrays = both_directions(*channel)
    rest = 1e6
    for direction in range(2):
        inputs, pair = arrays[0][direction], arrays[1][direction]
        exact = log_delta_of_counts(0.0, 5e5, 5e5, inputs, pair)
        for half in (100.0, 1000.0):
            envelope = log_envelope(0.0, 5e5 - half, 5e5 + half, rest, inputs, pair)
            assert 0.0 <= envelope - exact < 2e-3 * half / 100.0 + 1e-2


@jit_free
def test_a_single_composition_is_exact():
    arrays = both_directions(0.2, 0.5)
    for direction in range(2):
        inputs, pair = arrays[0][direction], arrays[1][direction]
        for k in (0.0, 7.0, 50.0):
            bound = log_block_bound(0.1, k, k, 50.0, inputs, pair)
            assert bound == log_delta_of_counts(0.1, 50.0 - k, k, inputs, pair)


# ---- Values of one composition ---------------------------------------------------------------


@jit_free
@pytest.mark.parametrize("channel", [(0.2, 0.5), (0.0, 0.3), (0.3, 1.0)], ids=str)
def test_values_against_the_definition(channel):
    low, high = channel
    arrays = both_directions(low, high)
    names = ("forward", "reverse")
    for zeros, ones in ((0, 0), (9, 0), (0, 9), (20, 14)):
        groups = [(zeros, low), (ones, high)]
        for direction, name in enumerate(names):
            inputs, pair = arrays[0][direction], arrays[1][direction]
            for epsilon in (0.0, 0.05, 0.3):
                truth = reference.delta(groups, low, high, epsilon, name)
                value = log_delta_of_counts(epsilon, float(zeros), float(ones), inputs, pair)
                assert_log_close(value, truth)
            epsilon = epsilon_of_counts(-9.0, float(zeros), float(ones), inputs, pair)
            delta = math.exp(-9.0)
            truth = float(reference.epsilon(groups, low, high, delta, name))
            if truth == math.inf:
                assert epsilon == truth
            else:
                # exp(-9) is a rounded number, and so is its logarithm
                assert_allclose(epsilon, truth, rtol=STATED, atol=0)


@jit_free
def test_composed_groups():
    inputs = both_directions(0.2, 0.5)[0][0]
    groups = np.empty((2, 5))
    compose_groups(3.0, 4.0, inputs, groups)
    assert groups[:, 0].tolist() == [3.0, 4.0]
    assert groups[:, 1:].tolist() == inputs[:, 1:].tolist()


# ---- The search ------------------------------------------------------------------------------


@jit_free
def test_heap_returns_the_largest_bound_first():
    rng = np.random.default_rng(5)
    bounds = [*rng.normal(size=60).tolist(), math.inf, -math.inf, 0.5, 0.5]
    heap, block = np.empty((64, 4)), np.empty(4)
    for size, bound in enumerate(bounds):
        _push_block(heap, size, np.array([bound, size % 2, size, 2.0 * size]))
    returned = []
    for size in range(len(bounds), 0, -1):
        _pop_block(heap, size, block)
        returned.append(block[0])
        place = int(block[2])
        assert bounds[place] == block[0]
        assert block.tolist() == [bounds[place], place % 2, place, 2.0 * place]
    assert returned == sorted(bounds, reverse=True)


def search(epsilon, rest, tolerance, arrays, floor=-math.inf, ceiling=math.inf):
    best = np.empty(3)
    limits = np.array([tolerance, floor, ceiling])
    upper = search_compositions(epsilon, rest, limits, *arrays, best)
    return upper, best


def brute_force(epsilon, rest, arrays):
    return max(
        log_delta_of_counts(epsilon, rest - k, float(k), arrays[0][d], arrays[1][d])
        for d in range(2)
        for k in range(int(rest) + 1)
    )


@pytest.mark.parametrize("channel", [*CHANNELS, *CERTAIN], ids=str)
@pytest.mark.parametrize("rest", [0.0, 1.0, 2.0, 57.0, 200.0])
def test_search_brackets_the_largest(channel, rest):
    arrays = both_directions(*channel)
    loss = min(arrays[1][:, 3].max(), 40.0)
    for epsilon in (0.0, 1e-3 * loss, 0.03 * loss, 0.3 * loss, 0.99 * loss, loss, math.inf):
        worst = brute_force(epsilon, rest, arrays)
        for tolerance in (1e-7, 0.05):
            upper, best = search(epsilon, rest, tolerance, arrays)
            if worst == -math.inf:
                assert upper == best[0] == -math.inf
                continue
            direction, k = int(best[1]), best[2]
            assert best[0] == log_delta_of_counts(
                epsilon, rest - k, k, arrays[0][direction], arrays[1][direction]
            )
            slack = STATED + LOG_PER_UNIT * abs(worst)
            assert best[0] <= worst <= upper + slack
            assert upper - best[0] <= tolerance


@jit_free
def test_search_interpreted():
    arrays = both_directions(0.2, 0.5)
    for epsilon in (0.0, 0.2):
        upper, best = search(epsilon, 12.0, 1e-7, arrays)
        assert best[0] <= brute_force(epsilon, 12.0, arrays) <= upper + STATED
        assert upper - best[0] <= 1e-7


def test_search_stops_at_floor_and_ceiling():
    """A floor need not be refined below, a ceiling need not be refined above."""
    arrays = both_directions(0.2, 0.5)
    worst = brute_force(0.1, 200.0, arrays)
    upper, best = search(0.1, 200.0, 0.0, arrays, floor=worst + 0.5)
    assert best[0] <= worst <= upper <= worst + 0.5
    upper, best = search(0.1, 200.0, 0.0, arrays, ceiling=worst - 2.0)
    assert worst - 2.0 < best[0] <= worst <= upper


@pytest.mark.parametrize("channel", [(0.2, 0.5), (0.3, 0.35), (0.02, Complement(0.1))], ids=str)
def test_certified_epsilon(channel):
    """Every composition stays below delta there, and not much below it."""
    arrays = both_directions(*channel)
    rest, tolerance = 150.0, 1e-6
    for log_delta in (-3.0, -8.0, -40.0):
        best = np.empty(3)
        epsilon = certified_epsilon(log_delta, rest, tolerance, *arrays, best)
        assert epsilon >= 0.0
        assert brute_force(epsilon, rest, arrays) <= log_delta
        if epsilon > 0.0:
            assert brute_force(epsilon * (1.0 - 1e-6), rest, arrays) > log_delta - 2.0 * tolerance
