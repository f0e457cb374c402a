"""High-precision references for binary output, straight from the definitions.

The number of ones among the other users is `R = sum of Bin(count, p)` over `groups`; the user who
differs outputs 1 with probability `p_a` under Q and `p_b` under P, so `P = R * Bernoulli(p_b)` and
`Q = R * Bernoulli(p_a)`. Two families of functions share one set of names:

- `delta`, `epsilon`, ...: sums over the whole support, for `n` up to a few thousand;
- `delta_large`, `epsilon_large`, ...: any `n`, at a cost that does not grow with it. They use the
  half-line form of the optimal test and an inversion integral, and absorb all cancellation by
  carrying more digits.

Parameters common to all functions
----------------------------------
groups : sequence of (int, probability)
    The other users: `count` of them output 1 with probability `p`.
p_a, p_b : probability
    The user who differs, under Q and under P.
direction : {"forward", "reverse", "both"}
    Divergence of P from Q, of Q from P, or the larger of the two.
digits : int
    Decimal digits wanted in the result. Results carry guard digits beyond them.

A probability is an int, float, Fraction or mpf, taken as that exact number, or `Complement(q)`.
"""

from validation.reference.mp.direct import (
    chi_square,
    delta,
    epsilon,
    jensen_shannon,
    kl,
    log_delta,
    lower_tail,
    mass,
    renyi,
    total_variation,
    trade_off,
    upper_tail,
)
from validation.reference.mp.half_line import (
    delta_large,
    epsilon_large,
    log_delta_large,
    lower_tail_large,
    mass_large,
    total_variation_large,
    upper_tail_large,
)
from validation.reference.mp.probabilities import (
    Complement,
    Direction,
    Groups,
    Number,
    Probability,
)
from validation.reference.mp.strided import (
    chi_square_large,
    jensen_shannon_large,
    kl_large,
    renyi_large,
)

__all__ = [
    "Complement",
    "Direction",
    "Groups",
    "Number",
    "Probability",
    "chi_square",
    "chi_square_large",
    "delta",
    "delta_large",
    "epsilon",
    "epsilon_large",
    "jensen_shannon",
    "jensen_shannon_large",
    "kl",
    "kl_large",
    "log_delta",
    "log_delta_large",
    "lower_tail",
    "lower_tail_large",
    "mass",
    "mass_large",
    "renyi",
    "renyi_large",
    "total_variation",
    "total_variation_large",
    "trade_off",
    "upper_tail",
    "upper_tail_large",
]
