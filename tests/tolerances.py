"""Named tolerances, each with its reason. They are relative, and ``atol`` is always 0."""

# The correctly rounded function of a double: one unit in the last place, 2**-52.
ONE_ROUNDING = 2.3e-16

# A difference, a quotient and a logarithm of numpy in a row, each off by at most about one unit.
FEW_ROUNDINGS = 1.2e-15
