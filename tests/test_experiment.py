"""The shuffle experiment: what it accepts, what it refuses and how it is shown."""

import copy
import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastshuffle import Randomizer, ShuffleExperiment, binary_randomized_response

RR = binary_randomized_response(1.0)
THREE = Randomizer([[0.5, 0.3, 0.2], [0.2, 0.35, 0.45], [0.3, 0.3, 0.4]])


@given(st.integers(1, 2**53), st.data())
def test_k_is_short_for_ones_among_the_others(n, data):
    k = data.draw(st.integers(0, n - 1))
    e = ShuffleExperiment(RR, n, k=k)
    assert e.n == n
    assert e.pair == (0, 1)
    assert sum(e.others.values()) == n - 1
    assert e.others.get(1, 0) == k
    assert e == ShuffleExperiment(RR, n, others={1: k, 0: n - 1 - k})


def test_attributes():
    e = ShuffleExperiment(THREE, 1e6, others={2: 999_990, 1: 9.0, 0: 0}, pair=[2, 0])
    assert e.randomizer is THREE
    assert (e.n, type(e.n)) == (1_000_000, int)
    assert list(e.others.items()) == [(1, 9), (2, 999_990)]
    assert e.pair == (2, 0)
    with pytest.raises(TypeError, match="item assignment"):
        e.others[0] = 1
    with pytest.raises(AttributeError):
        e.n = 3


def test_case_34_zeros_are_values():
    """k = 0, an empty mapping and a count of 0 all say something."""
    assert dict(ShuffleExperiment(RR, 1, k=0).others) == {}
    assert dict(ShuffleExperiment(RR, 1, others={}).others) == {}
    assert dict(ShuffleExperiment(RR, 3, others={0: 0, 1: 2}).others) == {1: 2}
    with pytest.raises(TypeError, match="exactly one"):
        ShuffleExperiment(RR, 1, k=0, others={})


@pytest.mark.parametrize("n", [1_000_000, 1e6, np.int32(1_000_000), np.float64(1e6)])
def test_integral_numbers_are_accepted(n):
    assert ShuffleExperiment(RR, n, k=0).n == 1_000_000


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n": 10}, TypeError, "exactly one of k and others"),
        ({"n": 10, "k": 1, "others": {0: 9}}, TypeError, "exactly one of k and others"),
        ({"n": 2.9, "k": 0}, TypeError, "n must be an integer, got 2.9"),
        ({"n": True, "k": 0}, TypeError, "n must be an integer, got True"),
        ({"n": math.nan, "k": 0}, TypeError, "n must be an integer, got nan"),
        ({"n": "10", "k": 0}, TypeError, "n must be an integer, got '10'"),
        ({"n": None, "k": 0}, TypeError, "n must be an integer, got None"),
        ({"n": 0, "k": 0}, ValueError, "n must be >= 1, got 0"),
        ({"n": 2**53 + 1, "k": 0}, ValueError, "n must be <= 9007199254740992"),
        ({"n": 10, "k": -1}, ValueError, "k must be >= 0, got -1"),
        ({"n": 10, "k": 10}, ValueError, "k must be <= 9, got 10"),
        ({"n": 10, "k": 0.5}, TypeError, "k must be an integer, got 0.5"),
        ({"n": 10, "k": 1, "pair": (1, 0)}, ValueError, r"pair must be \(0, 1\) where k is given"),
        ({"n": 10, "others": {0: 8}}, ValueError, "others must sum to n - 1 = 9, got 8"),
        ({"n": 10, "others": {0: 10}}, ValueError, "others must sum to n - 1 = 9, got 10"),
        ({"n": 10, "others": {0: 10, 1: -1}}, ValueError, r"others\[1\] must be >= 0, got -1"),
        ({"n": 10, "others": {0: 8.5, 1: 0.5}}, TypeError, r"others\[0\] must be an integer"),
        ({"n": 10, "others": {5: 9}}, ValueError, "input in others must be <= 1, got 5"),
        ({"n": 10, "others": {"0": 9}}, TypeError, "input in others must be an integer, got '0'"),
        ({"n": 10, "others": [9, 0]}, TypeError, "others must be a mapping"),
        ({"n": 10, "others": {0: 9}, "pair": (1, 1)}, ValueError, r"two different .* got \(1, 1\)"),
        ({"n": 10, "others": {0: 9}, "pair": (0, 2)}, ValueError, r"pair\[1\] must be <= 1, got 2"),
        ({"n": 10, "others": {0: 9}, "pair": (0,)}, TypeError, "pair must be two inputs"),
        ({"n": 10, "others": {0: 9}, "pair": "01"}, TypeError, "pair must be two inputs"),
        ({"n": 10, "others": {0: 9}, "pair": None}, TypeError, "pair must be two inputs"),
    ],
)
def test_case_13_refused_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        ShuffleExperiment(RR, **arguments)


def test_randomizer_is_checked():
    with pytest.raises(TypeError, match="randomizer must be a Randomizer, got list"):
        ShuffleExperiment([[0.5, 0.5]], 10, k=0)
    with pytest.raises(ValueError, match="at least 2 inputs, got 1"):
        ShuffleExperiment(Randomizer([[0.5, 0.5]]), 10, k=0)


def test_only_the_first_two_parameters_are_positional():
    with pytest.raises(TypeError, match="positional"):
        ShuffleExperiment(RR, 10, 0)


def test_equality_hash_and_copies():
    e = ShuffleExperiment(THREE, 10, others={2: 9})
    for other in (copy.deepcopy(e), pickle.loads(pickle.dumps(e))):
        assert other == e
        assert hash(other) == hash(e)
    assert e != ShuffleExperiment(THREE, 10, others={2: 9}, pair=(1, 0))
    assert e != ShuffleExperiment(THREE, 11, others={2: 10})
    assert e != ShuffleExperiment(THREE, 10, others={1: 9})
    assert e != "experiment"


def test_to_dict_survives_json():
    e = ShuffleExperiment(THREE, 10, others={2: 4, 0: 5}, pair=(1, 0))
    content = e.to_dict()
    assert content["others"] == {"0": 5, "2": 4}
    assert json.loads(json.dumps(content)) == content


def test_repr():
    assert repr(ShuffleExperiment(RR, 10, k=9)) == (
        "<ShuffleExperiment: n = 10, pair = (0, 1), others = {1: 9}, "
        "<Randomizer: 2 inputs, 2 outputs, epsilon0 = 1>>"
    )
