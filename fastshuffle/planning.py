"""Choice of the local budget: how much noise a wanted guarantee needs."""

import math
from collections.abc import Callable

from fastshuffle._validation import NONNEGATIVE_FINITE, PROBABILITY, Interval, check_real
from fastshuffle.profile import PrivacyProfile

__all__ = ["largest_epsilon0"]

_TOLERANCE = Interval(1e-12, 0.5, "in [1e-12, 0.5]")
# Where the search begins if epsilon is smaller, and where it gives up.
_FIRST_STEP = 1e-3
_LARGEST = 1000.0
_SMALLEST = 1e-300


def largest_epsilon0(
    profile_of: Callable[[float], PrivacyProfile],
    *,
    epsilon: float,
    delta: float,
    rtol: float = 1e-6,
) -> float:
    """Return the largest local privacy parameter whose profile meets (epsilon, delta).

    Parameters
    ----------
    profile_of : callable
        From epsilon0 > 0 to the profile of what is deployed, with a delta that increases in
        epsilon0.
    epsilon : float
        Wanted privacy parameter, >= 0 and finite.
    delta : float
        Wanted privacy parameter in [0, 1].
    rtol : float, default 1e-6
        How far the returned number may lie below the largest one, relatively; from 1e-12 to 0.5.

    Returns
    -------
    float
        An epsilon0 at which ``profile_of(epsilon0).delta(epsilon) <= delta`` was found to hold;
        so it is a guarantee if the profile is one, also where delta should not increase. It is 0
        if nothing above 1e-300 will do.

    Raises
    ------
    TypeError, ValueError
        If an argument is outside its domain.
    ArithmeticError
        If every epsilon0 up to 1000 will do, so that there is no largest one to be found.

    Notes
    -----
    Doubling from epsilon on, which is enough without any shuffler, and then bisection. **Cost**:
    about 30 values of delta.

    Examples
    --------
    >>> import fastshuffle as fs
    >>> def worst_case(epsilon0):
    ...     return fs.worst_case_profile(fs.binary_randomized_response(epsilon0), 10**6)
    >>> local = fs.largest_epsilon0(worst_case, epsilon=0.1, delta=1e-9)
    >>> print(f"{local:.4f}")
    5.9220
    >>> worst_case(local).epsilon(1e-9) <= 0.1
    True
    """
    if not callable(profile_of):
        raise TypeError(f"profile_of must be callable, got {profile_of!r}")
    wanted = check_real("epsilon", epsilon, NONNEGATIVE_FINITE)
    target = check_real("delta", delta, PROBABILITY)
    tolerance = check_real("rtol", rtol, _TOLERANCE)

    def meets(local: float) -> bool:
        profile = profile_of(local)
        if not isinstance(profile, PrivacyProfile):
            raise TypeError(f"profile_of must return a PrivacyProfile, got {profile!r}")
        log_delta = profile.log_delta(wanted)
        # delta may underflow, which is not 0
        return bool(math.exp(log_delta) <= target and (target > 0.0 or log_delta == -math.inf))

    low, high = 0.0, max(wanted, _FIRST_STEP)
    while meets(high):
        if high >= _LARGEST:
            raise ArithmeticError(
                f"delta must be below that of every epsilon0 up to {high:g} for a largest one to "
                f"exist, got {target!r} at epsilon = {wanted!r}"
            )
        low, high = high, 2.0 * high
    while high - low > tolerance * low and high > _SMALLEST:
        middle = 0.5 * (low + high)
        if meets(middle):
            low = middle
        else:
            high = middle
    return low
