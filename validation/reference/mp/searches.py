"""Integer searches that ask for few values."""

from collections.abc import Callable

from mpmath import mp, mpf


def first(holds: Callable[[int], bool], left: int, right: int, x: int, step: int) -> int:
    """Least integer where a monotone statement holds, known false at left and true at right."""
    x = min(max(x, left + 1), right - 1)
    while right - left > 1:
        if holds(x):
            right = x
            x -= step
        else:
            left = x
            x += step
        step *= 2
        if not left < x < right:
            x = (left + right) // 2
    return right


def crossing(excess: Callable[[int], mpf], start: int, right: int, step: int) -> int:
    """Least integer >= start where a decreasing function is <= 0, known to be so at right.

    Doubling steps, then the Illinois method with an occasional bisection.
    """
    left, at_left, at_right = start - 1, mp.inf, mp.ninf
    x, rounds, was_above = start, 0, True
    while right - left > 1:
        value = excess(x)
        above = value > 0
        if above:
            left, at_left = x, value
            at_right /= 2 if was_above else 1
        else:
            right, at_right = x, value
            at_left /= 1 if was_above else 2
        was_above = above
        rounds += 1
        if mp.isinf(at_right) and above:
            x, step = left + step, 2 * step
        elif mp.isinf(at_right) or mp.isinf(at_left) or rounds % 4 == 0:
            x = (left + right) // 2
        else:
            x = left + int((right - left) * at_left / (at_left - at_right))
        x = min(max(x, left + 1), right - 1)
    return right
