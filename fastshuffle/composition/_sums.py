"""Sums of independent privacy losses on a grid, with certified ends, by tilted Fourier sums.

The law of a loss is weighted by ``exp(s x)`` with the s that brings the sum to the epsilon in
question. Then neither the mass that folds back over the ends of the transform nor its rounding is
large against the result, also where this is 1e-200. Both are bounded and counted: the folded mass
by Chernoff's inequality, the rounding by that of the transform and of its power. The transform of
what is averaged is known in closed form, and only the nodes are visited at which the power of the
characteristic function is not negligible: some hundred where the rounds are many.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fastshuffle._typing import FloatArray, IntArray

# Exponents of the tilted mass that may fold back, and of the nodes that are left out.
_ALIAS_EXPONENT = 42.0
_NODE_EXPONENT = 45.0
_LARGEST_SIZE = 2**22
_UNIT = 1e-15
# Beyond this exponent the tilt is as good as infinite.
_LARGEST_EXPONENT = 600.0

ComplexArray: TypeAlias = Any  # of complex128


class Summand(NamedTuple):
    """Copies of one variable on the grid: how many, its places and its masses, which may lack."""

    copies: float
    places: FloatArray
    masses: FloatArray


class Tail(NamedTuple):
    """A number ``value * exp(log_scale)`` and how far off it may be, in the same scale."""

    value: float
    error: float
    log_scale: float


class TooLongSumError(ArithmeticError):
    """A sum that would need a transform of more than 2**22 numbers: the grid is too fine."""


class Window(NamedTuple):
    """Where the sum is looked at: the tilt, step, first distance from epsilon, length, and nodes.

    ``log_ratio`` is the logarithm of the ratio of successive terms of ``exp(-s y)`` at each node.
    """

    s: float
    step: float
    start: float
    length: float
    log_ratio: ComplexArray

    def geometric(self, extra: float) -> ComplexArray:
        """Return the sums of ``exp(-(s + extra) y)`` over the window at every node."""
        ratio = self.log_ratio - extra * self.step
        return math.exp(-(self.s + extra) * self.start) * (
            np.expm1(self.length * ratio) / np.expm1(ratio)
        )


def indicator(window: Window) -> ComplexArray:
    """Return the transform of ``exp(-s y)`` on y > 0."""
    return window.geometric(0.0)


def falling(window: Window) -> ComplexArray:
    """Return the transform of ``exp(-s y) exp(-y)`` on y > 0."""
    return window.geometric(1.0)


def rising(window: Window) -> ComplexArray:
    """Return the transform of ``exp(-s y) (1 - exp(-y))`` on y > 0, without cancellation."""
    step, start = window.step, window.start
    one, other = np.expm1(window.log_ratio), np.expm1(window.log_ratio - step)
    end = window.length * window.log_ratio
    change = np.expm1(end) * np.exp(window.log_ratio) * math.expm1(-step) / (one * other)
    change += np.exp(end) * -math.expm1(-window.length * step) / other
    first = -math.expm1(-start) * np.expm1(end) / one
    return math.exp(-window.s * start) * (first + math.exp(-start) * change)


def largest_sum(summands: Sequence[Summand]) -> float:
    """Return the largest place of the sum, -inf where there is no mass at all."""
    return sum(t.copies * float(t.places[t.masses > 0.0].max(initial=-math.inf)) for t in summands)


def tilt_to(summands: Sequence[Summand], step: float, epsilon: float) -> float:
    """Return a tilt s > 0 that brings the sum near epsilon, or a small one where it is above."""
    mean, variance = _mean_and_variance(summands, step, 0.0)
    widest = max(float(np.abs(t.places).max()) for t in summands) * step
    # off the pole at 0, but by so little that it does not make a rare large loss frequent
    high = min(0.5 / math.sqrt(variance), 1.0 / widest)
    if mean > epsilon:
        high = min(high, 5.0 / (mean - epsilon))
    low = high
    while _mean_and_variance(summands, step, high)[0] < epsilon:
        low, high = high, 2.0 * high
        if high * widest > _LARGEST_EXPONENT:
            return low
    while high - low > 1e-2 * high:
        middle = 0.5 * (low + high)
        if _mean_and_variance(summands, step, middle)[0] < epsilon:
            low = middle
        else:
            high = middle
    return high


def tail_mean(
    summands: Sequence[Summand],
    step: float,
    s: float,
    epsilon: float,
    transform: Callable[[Window], ComplexArray],
) -> Tail:
    """Return ``E[weight(S - epsilon) 1{S > epsilon}]`` for the sum S.

    ``transform`` is that of ``exp(-s y) weight(y)`` on y > 0, which is in [0, 1]. The measure need
    not have the mass 1.
    """
    laws = [_tilted(t, s * step) for t in summands]
    log_scale = sum(t.copies * law.log_moment for t, law in zip(summands, laws, strict=True))
    log_scale -= s * epsilon
    rounds = sum(t.copies for t in summands)
    center = sum(t.copies * law.mean for t, law in zip(summands, laws, strict=True))
    below, above = (_reach(summands, laws, side) for side in (-1.0, 1.0))
    outside = math.exp(-_ALIAS_EXPONENT)
    first = math.floor(epsilon / step) + 1
    if first * step <= epsilon:
        first += 1
    count = math.ceil(center + above) + 1 - first
    if count < 1:  # all but the bounded tail is below epsilon
        return Tail(0.0, outside, log_scale)
    length = max(count, math.ceil(center + above) + 1 - math.floor(center - below))
    size = 1 << max(4, math.ceil(math.log2(length)))
    if size > _LARGEST_SIZE:
        raise TooLongSumError(f"the sum needs {length} places")
    nodes, power, error = _spectrum(summands, laws, first, size)
    share = np.where((nodes == 0) | (nodes == size // 2), 1.0, 2.0) / size
    angles = (2.0 * math.pi / size) * nodes
    window = Window(s, step, first * step - epsilon, float(count), -s * step + 1j * angles)
    terms = share * np.conj(transform(window)) * power
    value, sizes = float(terms.real.sum()), np.abs(terms)
    # the nodes left out: the mean of the transform of a step is below 2 + log(size)
    missed = math.exp(-_NODE_EXPONENT) * (2.0 + math.log(size))
    off = float(share @ (np.abs(transform(window)) * error)) + missed + 2.0 * outside
    off += _UNIT * float(sizes.sum()) * (20.0 + 4.0 * rounds + abs(log_scale) + 3.0 * s * epsilon)
    return Tail(value, off, log_scale)


class _Tilted(NamedTuple):
    log_moment: float
    weights: FloatArray
    mean: float
    variance: float


def _tilted(term: Summand, s: float) -> _Tilted:
    """Return the measure weighted by exp(s place): the log of its mass, and its shape."""
    exponents = s * term.places
    largest = float(exponents.max())
    weights = term.masses * np.exp(exponents - largest)
    total = float(weights.sum())
    weights /= total
    log_moment = largest + math.log(total)
    if largest < 0.5 and abs(log_moment) < 0.5:
        # a small logarithm, of which there are many copies, from a small change of the mass
        change = float(term.masses @ np.expm1(exponents)) + (float(term.masses.sum()) - 1.0)
        log_moment = math.log1p(change)
    mean = float(weights @ term.places)
    deviations = term.places - mean
    return _Tilted(log_moment, weights, mean, float(weights @ (deviations * deviations)))


def _mean_and_variance(summands: Sequence[Summand], step: float, s: float) -> tuple[float, float]:
    laws = [(t.copies, _tilted(t, s * step)) for t in summands]
    mean = step * sum(copies * law.mean for copies, law in laws)
    return mean, step * step * sum(copies * law.variance for copies, law in laws)


def _reach(summands: Sequence[Summand], laws: Sequence[_Tilted], side: float) -> float:
    """Return how far from its mean the tilted sum goes before its tail is below exp(-42)."""
    variance = sum(t.copies * law.variance for t, law in zip(summands, laws, strict=True))
    width = max(
        float(np.abs(t.places - law.mean).max()) for t, law in zip(summands, laws, strict=True)
    )
    if variance == 0.0:
        return 0.0
    best = math.inf
    # around that which a normal sum would have, or what a double holds
    normal = min(math.sqrt(2.0 * _ALIAS_EXPONENT / variance), 400.0 / width)
    for exponent in (normal * np.geomspace(0.01, 1.5, 12)).tolist():
        cumulant = 0.0
        for term, law in zip(summands, laws, strict=True):
            kept = law.weights > 0.0
            terms = exponent * side * (term.places[kept] - law.mean)
            largest = float(terms.max())
            mass = float(law.weights[kept] @ np.exp(terms - largest))
            cumulant += term.copies * (largest + math.log(mass))
        best = min(best, (_ALIAS_EXPONENT + max(cumulant, 0.0)) / exponent)
    return best + 1.0


def _spectrum(
    summands: Sequence[Summand], laws: Sequence[_Tilted], first: int, size: int
) -> tuple[IntArray, ComplexArray, FloatArray]:
    """Return the nodes that matter, the transform of the sum minus ``first``, and its errors.

    A transform of weights of sum 1 is off by at most ``_UNIT log2(size)`` at a node, the power by
    the derivative of that and by its own rounding.
    """
    node_error = _UNIT * math.log2(size)
    transforms, logs = [], np.zeros(size // 2 + 1)
    shift = -first
    for term, law in zip(summands, laws, strict=True):
        center = round(law.mean)
        shift += int(term.copies) * center
        places = (term.places.astype(np.int64) - center) % size
        phi = np.conj(np.fft.rfft(np.bincount(places, law.weights, size)))
        transforms.append(phi)
        logs += 0.5 * term.copies * np.log(np.maximum(phi.real**2 + phi.imag**2, 1e-300))
    nodes = np.flatnonzero(logs >= -_NODE_EXPONENT).astype(np.int64)
    turns = shift % size * nodes % size
    spectrum = np.exp(2j * math.pi / size * turns)
    error = np.zeros(nodes.size)
    for term, phi in zip(summands, transforms, strict=True):
        length = np.abs(phi[nodes])
        angle = np.remainder(term.copies * np.angle(phi[nodes]), 2.0 * math.pi)
        power = length**term.copies
        off = term.copies * node_error * (length + node_error) ** (term.copies - 1.0)
        off += power * _UNIT * (8.0 + 8.0 * term.copies)
        error = error * (power + off) + np.abs(spectrum) * off
        spectrum = spectrum * power * np.exp(1j * angle)
    return nodes, spectrum, error
