"""What keeping a user's messages together costs, in the limit."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from fastshuffle._validation import LARGEST_COUNT, PROBABILITY, check_count, check_pair, check_real
from fastshuffle.bounds.common import check_randomizer
from fastshuffle.limits.fisher import fisher_constant
from fastshuffle.randomizers import LocalRandomizer, bundle

__all__ = ["MessageConstants", "message_constants"]


class MessageConstants(NamedTuple):
    """The constants of m messages a user; ``mu = sqrt(constant / n)`` is the Gaussian limit.

    Attributes
    ----------
    unbundled : float
        Where all messages are shuffled one by one.
    bundled : float
        Where those of a user stay together.
    """

    unbundled: float
    bundled: float

    @property
    def mu_ratio(self) -> float:
        """The mu of bundled messages over that of unbundled ones; 1 where both are 0 or inf."""
        if self.unbundled in (0.0, math.inf):
            return 1.0
        return math.sqrt(self.bundled / self.unbundled)


def message_constants(
    randomizer: LocalRandomizer, messages: float, pi: float = 0.0, *, pair: Sequence[int] = (0, 1)
) -> MessageConstants:
    """Return the Fisher constants of m messages a user, shuffled one by one and kept together.

    Parameters
    ----------
    randomizer : LocalRandomizer
        What every user applies for each message; at least 2 inputs.
    messages : int
        How many messages every user sends, at least 1.
    pi : float, default 0
        Fraction in [0, 1] of the other users who hold the second input of the pair, while the
        rest hold the first.
    pair : tuple of two ints, default (0, 1)
        The inputs ``(a, b)`` of the differing user in the first and in the second dataset.

    Returns
    -------
    MessageConstants
        ``unbundled``, ``bundled`` and their ``mu_ratio``. They say what `gaussian_profile` says:
        an approximation at finite n, no bound.

    Raises
    ------
    TypeError, ValueError, OverflowError
        As for `fisher_constant`; where 0 < pi < 1, also if there are too many types of messages or
        their probabilities underflow.

    Notes
    -----
    Unbundled: ``m I_pi``. Bundled: the constant of `bundle`, which at pi = 0 is the chi-square
    divergence of m messages, ``(1 + chi_square)**m - 1``, and so at pi = 1 with the pair exchanged.

    Shuffling messages one by one is a post-processing of shuffling bundles, so that ``mu_ratio``
    is at least 1. It is not always more: two messages of symmetric binary randomized response at
    pi = 1/2 have equal constants.

    Privacy has one price: the best linear unbiased estimate, from either histogram, of the
    fraction of users who hold the second input, where it is pi, has the variance
    ``1 / (n constant)``, so that ``mu`` is one over n times its standard deviation. For two
    outputs that of unbundled messages is the estimate from the number of ones.

    **Accuracy**: relative error below 1e-12 (``tests/test_bundle.py``).

    Examples
    --------
    >>> import fastshuffle as fs
    >>> constants = fs.message_constants(fs.binary_randomized_response(1.0), 4)
    >>> print(f"{constants.unbundled:.4f} {constants.bundled:.4f} {constants.mu_ratio:.4f}")
    4.3446 17.9405 2.0321
    """
    a, b = check_pair(pair, check_randomizer(randomizer).n_inputs)
    count = check_count("messages", messages, minimum=1, maximum=LARGEST_COUNT)
    share = check_real("pi", pi, PROBABILITY)
    single = fisher_constant(randomizer, share, pair=(a, b))
    if 0.0 < share < 1.0:
        together = fisher_constant(bundle(randomizer, count), share, pair=(a, b))
    elif single == math.inf:
        together = math.inf
    else:
        together = math.expm1(count * math.log1p(single))
    return MessageConstants(count * single, together)
