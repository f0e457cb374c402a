"""Universal bounds: privacy profiles that hold for all datasets, from how W is composed.

All of them are the law of one homogeneous background: each of the other n - 1 users sends a
message of the law ``background``, and the two laws of the differing user are ``alternative`` and
``null``. Then, with Y_i independent of law ``background``,

    delta(epsilon) <= (1/n) E[ (sum_{i=1}^n r(Y_i))_+ ] + the mass outside the background,
    r(y) = (alternative(y) - exp(epsilon) null(y)) / background(y),

which `fastshuffle._positive_part` brackets.
"""

from fastshuffle.bounds.blanket import blanket_profile, chernoff_profile
from fastshuffle.bounds.clones import (
    clone_profile,
    stronger_clone_profile,
    variation_ratio_parameters,
    variation_ratio_profile,
)

__all__ = [
    "blanket_profile",
    "chernoff_profile",
    "clone_profile",
    "stronger_clone_profile",
    "variation_ratio_parameters",
    "variation_ratio_profile",
]
