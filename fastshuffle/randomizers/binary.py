"""Mechanisms with two inputs and two outputs."""

import numpy as np

from fastshuffle._validation import NONNEGATIVE_FINITE, PROBABILITY, UP_TO_HALF, check_real
from fastshuffle.randomizers.matrix import Randomizer

__all__ = ["asymmetric_randomized_response", "binary_randomized_response"]


def binary_randomized_response(
    epsilon0: float | None = None, *, flip_probability: float | None = None
) -> Randomizer:
    """Return binary randomized response: send the bit held, or flip it.

    Parameters
    ----------
    epsilon0 : float, optional
        Local privacy parameter, >= 0 and finite. The bit is flipped with probability
        ``1 / (1 + exp(epsilon0))``, taken as that real number.
    flip_probability : float, optional
        The probability in [0, 1/2] of the other bit. Exactly one of the two is given.

    Returns
    -------
    Randomizer
        Two inputs and two outputs. Its `epsilon0` and log ratios equal a given ``epsilon0``
        exactly, also where the flip probability underflows (beyond 708).

    Raises
    ------
    TypeError
        If not exactly one parameter is given, or it is no real number.
    ValueError
        If the parameter is outside its domain.

    Examples
    --------
    >>> binary_randomized_response(1.0).matrix
    array([[0.73105858, 0.26894142],
           [0.26894142, 0.73105858]])
    >>> round(binary_randomized_response(flip_probability=0.25).epsilon0, 12)  # log 3
    1.098612288668
    """
    if (epsilon0 is None) == (flip_probability is None):
        raise TypeError("exactly one of epsilon0 and flip_probability must be given")
    if epsilon0 is not None:
        epsilon0 = check_real("epsilon0", epsilon0, NONNEGATIVE_FINITE)
        return Randomizer._from_formula(epsilon0, np.eye(2, dtype=np.int64))
    flip = check_real("flip_probability", flip_probability, UP_TO_HALF)
    return Randomizer([[1.0 - flip, flip], [flip, 1.0 - flip]])


def asymmetric_randomized_response(*, p: float, q: float) -> Randomizer:
    """Return binary randomized response with a probability of its own for each input.

    Parameters
    ----------
    p : float
        Probability in [0, 1] that a user who holds 1 sends 1.
    q : float
        Probability in [0, 1] that a user who holds 0 sends 1.

    Returns
    -------
    Randomizer
        Two inputs and two outputs, ``Randomizer.from_probabilities([q, p])``.

    Raises
    ------
    TypeError, ValueError
        If an argument is no real number in [0, 1].

    See Also
    --------
    binary_randomized_response : the symmetric case, q = 1 - p.

    Notes
    -----
    **Warner's design** [1]_: a spinner picks with probability w the question "do you hold 1?" and
    otherwise its negation, and the answer is the bit sent: p = w and q = 1 - w. **Forced
    response**: with probability c the answer is the truth, else 1 or 0 with probabilities s and
    1 - s: p = c + (1 - c) s and q = (1 - c) s.

    **Privacy.** `epsilon0` is the larger of ``|log(p / q)|`` and ``|log((1 - p) / (1 - q))|``,
    inf where one of the probabilities is 0 and its counterpart is not.

    **Decoder.** With C the messages that are 1, ``(C / n - q) / (p - q)`` is unbiased for the share
    f of ones; its variance is ``(f p (1 - p) + (1 - f) q (1 - q)) / (n (p - q)**2)``.

    References
    ----------
    .. [1] S. L. Warner, "Randomized Response: A Survey Technique for Eliminating Evasive Answer
       Bias", J. Amer. Statist. Assoc. 60 (1965), 63-69.

    Examples
    --------
    >>> asymmetric_randomized_response(p=0.5, q=0.2).matrix
    array([[0.8, 0.2],
           [0.5, 0.5]])
    """
    checked_p, checked_q = check_real("p", p, PROBABILITY), check_real("q", q, PROBABILITY)
    return Randomizer.from_probabilities([checked_q, checked_p])
