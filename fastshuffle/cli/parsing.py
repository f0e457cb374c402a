"""Numbers from the text of options.

The text goes through `decimal`, so that what is beyond float64 is refused and not rounded.
"""

import math
from collections.abc import Callable
from decimal import Decimal

from fastshuffle._validation import Interval
from fastshuffle.cli.errors import InputError


def _parsed(option: str, domain: str, text: str, parse: Callable[[Decimal], float]) -> float:
    try:
        return parse(Decimal(text))
    except (ArithmeticError, ValueError):
        raise InputError(f"{option} must be {domain}, got {text!r}") from None


def parse_count(option: str, text: str, low: int, high: int) -> int:
    """Return an integer of a domain; 1e6 is one."""

    def parse(number: Decimal) -> int:
        if not low <= number <= high or number != number.to_integral_value():
            raise ValueError
        return int(number)

    return int(_parsed(option, f"an integer from {low} to {high}", text, parse))


def parse_real(option: str, text: str, interval: Interval) -> float:
    """Return a number of an interval."""

    def parse(number: Decimal) -> float:
        value = float(number)
        underflow_or_overflow = value in (0.0, math.inf) and number != value
        if not interval.low <= value <= interval.high or underflow_or_overflow:
            raise ValueError
        return value + 0.0

    return _parsed(option, f"a number {interval.words}", text, parse)
