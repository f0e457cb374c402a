"""Masses, tails and hockey-stick divergences at any n, by the half-line form of the test."""

from __future__ import annotations

from mpmath import mp, mpf

from validation.reference.mp.background import Background, enough_digits, first_step
from validation.reference.mp.probabilities import (
    Bernoulli,
    Direction,
    Groups,
    Number,
    Probability,
    exact_number,
    over_directions,
)
from validation.reference.mp.searches import crossing, first


def mass_large(groups: Groups, x: int, digits: int = 60) -> mpf:
    """Probability that the other users output exactly `x` ones, at any n.

    One group is a binomial mass by log-gamma; several go through the inversion integral.
    """
    with enough_digits(groups, digits):
        return Background.of(groups).mass(x)


def upper_tail_large(groups: Groups, x: int, digits: int = 60) -> mpf:
    """Probability that the other users output `x` ones or more, at any n."""
    with enough_digits(groups, digits):
        return Background.of(groups).upper_tail(x)


def lower_tail_large(groups: Groups, x: int, digits: int = 60) -> mpf:
    """Probability that the other users output `x` ones or fewer, at any n."""
    with enough_digits(groups, digits):
        background = Background.of(groups)
        return background.relabelled().upper_tail(background.users - x)


def delta_large(
    groups: Groups,
    p_a: Probability,
    p_b: Probability,
    epsilon: Number,
    direction: Direction = "both",
    digits: int = 60,
) -> mpf:
    """Hockey-stick divergence at any n, by the half-line form of the optimal test."""
    with enough_digits(groups, digits):
        background, loss = Background.of(groups), exact_number(epsilon)
        return over_directions(
            lambda a, b: _delta_of(*_increasing(background, a, b), loss), p_a, p_b, direction
        )


def log_delta_large(
    groups: Groups,
    p_a: Probability,
    p_b: Probability,
    epsilon: Number,
    direction: Direction = "both",
    digits: int = 60,
) -> mpf:
    """Natural logarithm of `delta_large`."""
    with enough_digits(groups, digits):
        return mp.log(delta_large(groups, p_a, p_b, epsilon, direction, digits))


def epsilon_large(
    groups: Groups,
    p_a: Probability,
    p_b: Probability,
    delta: Number,
    direction: Direction = "both",
    digits: int = 60,
) -> mpf:
    """Smallest epsilon >= 0 whose hockey-stick divergence is at most delta, at any n."""
    with enough_digits(groups, digits):
        background, target = Background.of(groups), exact_number(delta)
        return over_directions(
            lambda a, b: _epsilon_of(*_increasing(background, a, b), target), p_a, p_b, direction
        )


def total_variation_large(
    groups: Groups, p_a: Probability, p_b: Probability, digits: int = 60
) -> mpf:
    """Total variation distance at any n, the hockey-stick divergence at epsilon 0."""
    return delta_large(groups, p_a, p_b, 0, "forward", digits)


def _increasing(
    background: Background, a: Bernoulli, b: Bernoulli
) -> tuple[Background, Bernoulli, Bernoulli]:
    """Relabel the outputs if need be, so that P/Q increases with the number of ones."""
    if _gap(a, b) >= 0:
        return background, a, b
    return background.relabelled(), Bernoulli(a.q, a.p), Bernoulli(b.q, b.p)


def _gap(a: Bernoulli, b: Bernoulli) -> mpf:
    """Return `b.p - a.p`, from the pair of numbers that has not been rounded against 1."""
    return b.p - a.p if b.p < a.q else a.q - b.q


def _delta_of(background: Background, a: Bernoulli, b: Bernoulli, epsilon: mpf) -> mpf:
    """Hockey-stick divergence of P from Q where P/Q increases."""
    if mp.isinf(epsilon):
        return b.p * background.mass(background.high) if a.p == 0 else mpf(0)
    ratio = mp.exp(epsilon)
    if b.p <= ratio * a.p or _gap(a, b) == 0:
        return mpf(0)
    x = _cut(background, (mp.expm1(epsilon) * a.q + _gap(a, b)) / (b.p - ratio * a.p))
    near = background.mass(x - 1)
    tail = a.p * near + background.upper_tail(x)
    return max(_gap(a, b) * near - mp.expm1(epsilon) * tail, mpf(0))


def _epsilon_of(background: Background, a: Bernoulli, b: Bernoulli, target: mpf) -> mpf:
    """Inverse of `_delta_of`: `e^epsilon = (P(X >= x) - delta) / Q(X >= x)` on one piece."""
    gap = _gap(a, b)
    start = _cut(background, mpf(1))
    if gap * background.mass(start - 1) <= target:
        return mpf(0)
    if a.p == 0 and target < b.p * background.mass(background.high):
        return mp.inf
    if target == 0:
        return mp.log(b.p / a.p)

    def excess(x: int) -> mpf:
        """Log of delta at the loss of x, over the target."""
        below, at = background.mass(x - 1), background.mass(x)
        tail = a.p * below + background.upper_tail(x)
        loss_factor = gap * (below - at) / (a.p * below + a.q * at)
        value = gap * below - loss_factor * tail
        return mp.log(value / target) if value > 0 else mp.ninf

    x = crossing(excess, start, background.high + 1, first_step(background))
    below = background.mass(x - 1)
    return mp.log1p((gap * below - target) / (a.p * below + background.upper_tail(x)))


def _cut(background: Background, odds: mpf) -> int:
    """Least x with `R(x - 1) > odds R(x)`, by doubling steps and bisection.

    The ratio of consecutive masses is close to `e^tilt` at the saddle, which gives the start.
    """
    _, guess, _ = background.tilted(mp.log(odds))
    return first(
        lambda x: background.mass(x - 1) > odds * background.mass(x),
        background.low,
        background.high + 1,
        int(guess + mpf(1) / 2),
        1,
    )
