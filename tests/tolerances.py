"""Named tolerances, each with its reason. They are relative, and ``atol`` is always 0."""

# The correctly rounded function of a double: one unit in the last place, 2**-52.
ONE_ROUNDING = 2.3e-16

# A difference, a quotient and a logarithm of numpy in a row, each off by at most about one unit.
FEW_ROUNDINGS = 1.2e-15

# What the library states for masses, tails, delta and epsilon: relative error 1e-12.
STATED = 1e-12

# Beyond the range of a double the logarithm is the answer, and its own rounding is all that is
# allowed: nine units in the last place.
LOG_PER_UNIT = 5e-15

# Where exponents of several hundred cancel in log delta, epsilon itself among them, each brings
# its own rounding.
LOG_PER_EXPONENT = 5e-15

# What the library states for divergences: relative error 1e-13.
STATED_DIVERGENCE = 1e-13

# A closed formula of a dozen operations without cancellation.
DOZEN_ROUNDINGS = 3e-15

# A sum of some ten terms of like sign, each a DOZEN_ROUNDINGS, with exponents up to 50.
KERNEL_SUM = 2e-14

# Rounding that a bracket of a mean of a positive part adds to its width on either side: 1e-11.
BRACKET_ROUNDING = 1e-10
