"""Error-free transformations: a rounded sum or product together with its exact rounding error.

``n * p`` at n = 1e15 is rounded by up to 0.06 counts, which would shift a tail at 37 standard
deviations by 1e-7 in relative terms; the pair (product, error) keeps it to the last digit.
"""

from fastshuffle._kernels._jit import kernel

_SPLITTER = 134217729.0  # 2**27 + 1 cuts a double into two halves of 26 bits (Veltkamp)


@kernel("(float64, float64)")
def two_sum(a, b):
    """Return ``(s, e)`` with ``s = fl(a + b)`` and ``s + e = a + b`` exactly (Knuth)."""
    total = a + b
    b_virtual = total - a
    return total, (a - (total - b_virtual)) + (b - b_virtual)


@kernel("(float64, float64)")
def two_product(a, b):
    """Return ``(p, e)`` with ``p = fl(a * b)`` and ``p + e = a * b`` exactly (Dekker).

    Exact while no partial product underflows, so for a probability b above about 1e-290; below
    that the product is so small beside a count that its error does not matter.
    """
    product = a * b
    scaled = _SPLITTER * a
    a_high = scaled - (scaled - a)
    a_low = a - a_high
    scaled = _SPLITTER * b
    b_high = scaled - (scaled - b)
    b_low = b - b_high
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error
