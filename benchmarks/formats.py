"""How the tables write times and ratios."""

import math


def time_text(seconds: float) -> str:
    """Return a time to two digits in the unit that suits it."""
    units = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
    unit = next((unit for unit, size in units.items() if seconds >= 0.995 * size), "us")
    value = seconds / units[unit]
    return f"{value:.0f} {unit}" if value >= 9.95 else f"{value:.1f} {unit}"


def count_text(value: float) -> str:
    """Return a number to two digits."""
    if value < 9.95:
        return f"{value:.1f}"
    digits = max(0, math.floor(math.log10(value)) - 1)
    return f"{round(value, -digits):,.0f}"
