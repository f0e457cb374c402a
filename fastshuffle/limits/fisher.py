"""Fisher constants: the one number of a randomizer and a composition behind its Gaussian limit.

Let ``v = W_b - W_a`` and let m be the mean law of the other users' messages. Their histogram has n
times the covariance ``diag(m) - sum_z pi_z W_z W_z^T`` if exactly a fraction pi_z of them holds z.
The constant is ``v^T Sigma^+ v``. It begins with the sum of ``v**2 / m``, which is all for one
input z; what it gains from several is a sum of terms >= 0 too, so that neither a singular nor a
nearly singular covariance costs a digit.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fastshuffle._typing import FloatArray
from fastshuffle._validation import PROBABILITY, UnsupportedSettingError, check_pair, check_real
from fastshuffle.bounds.common import check_randomizer, unordered_pairs
from fastshuffle.exact.homogeneous import underflows
from fastshuffle.experiment import ShuffleExperiment
from fastshuffle.randomizers import LocalRandomizer, MergedRows

__all__ = [
    "WorstFisherConstant",
    "chi_square",
    "fisher_constant",
    "mixture_fisher_constant",
    "worst_fisher_constant",
]

# A current between two inputs that is smaller than this beside its parts is rounding.
_NO_CURRENT = 1e-13


class WorstFisherConstant(NamedTuple):
    """The largest Fisher constant over all datasets, and one that has it.

    Attributes
    ----------
    constant : float
        The largest constant, which may be inf.
    pair : tuple of two ints
        The inputs of the differing user.
    others : int
        The input that all other users hold.
    """

    constant: float
    pair: tuple[int, int]
    others: int


def fisher_constant(
    randomizer: LocalRandomizer, pi: float, *, pair: Sequence[int] = (0, 1)
) -> float:
    """Return the Fisher constant ``I_pi = v^T Sigma_pi^+ v`` of a fixed composition.

    Parameters
    ----------
    randomizer : LocalRandomizer
        What every user applies to the input held; at least 2 inputs, any number of outputs.
    pi : float
        Fraction in [0, 1] of the other users who hold the second input of the pair, while the
        rest hold the first.
    pair : tuple of two ints, default (0, 1)
        The inputs ``(a, b)`` of the differing user in the first and in the second dataset.

    Returns
    -------
    float
        The constant, >= 0; inf where one of the two laws allows a certain decision in the limit:
        at an end point, if b sends an output that a never sends (for pi = 0), and for every pi if
        the two rows have no output in common.

    Raises
    ------
    TypeError, ValueError
        If an argument is outside its domain, or a probability underflows to 0.
    OverflowError
        If the constant is finite but larger than the largest double.

    See Also
    --------
    worst_fisher_constant : the largest over all datasets.
    gaussian_profile : the limit with ``mu = sqrt(I_pi / n)``.

    Notes
    -----
    ``Sigma_pi = (1 - pi) Sigma_a + pi Sigma_b`` with ``Sigma_x = diag(W_x) - W_x W_x^T``. Exactly,

        I_pi = sum_y v(y)**2 / m(y)  /  sum_y W_a(y) W_b(y) / m(y),   m = (1 - pi) W_a + pi W_b:

    the posterior ``h = pi W_b / m`` of input b solves ``Sigma_pi h = pi (1 - pi) A v``, where A is
    the denominator, and ``v^T h = pi (1 - pi)`` times the numerator. The function is convex in pi,
    so its maximum is at 0 or at 1.

    **Accuracy**: relative error below 1e-13, for singular covariances, zeros and probabilities of
    1e-300 too (``tests/test_limits_fisher.py``). **Cost**: proportional to the number of outputs.

    References
    ----------
    .. [1] A. Shvets, "Universal Shuffle Asymptotics: Sharp Privacy Analysis in the Gaussian
       Regime", arXiv:2602.09029, for the constant; the quotient is derived above.

    Examples
    --------
    >>> import fastshuffle as fs
    >>> w = fs.Randomizer([[0.5, 0.3, 0.2], [0.2, 0.35, 0.45]])
    >>> print(f"{fs.fisher_constant(w, 0.0):.6f} {fs.fisher_constant(w, 0.5):.6f}")
    0.500833 0.516129
    """
    a, b = check_pair(pair, check_randomizer(randomizer).n_inputs)
    share = check_real("pi", pi, PROBABILITY)
    numerator, denominator = _pair_sums(merged_rows(randomizer, (a, b)), share)
    return _quotient(numerator, denominator)


def mixture_fisher_constant(
    randomizer: LocalRandomizer, pi: float, *, pair: Sequence[int] = (0, 1)
) -> float:
    """Return the constant of users whose inputs are drawn at random: **too much privacy**.

    Parameters
    ----------
    randomizer, pi, pair
        As for `fisher_constant`.

    Returns
    -------
    float
        ``sum_y (W_b - W_a)(y)**2 / m(y)``. It is smaller than `fisher_constant` for every pi
        inside (0, 1), and equal to it at the end points.

    Raises
    ------
    TypeError, ValueError, OverflowError
        As for `fisher_constant`.

    Warnings
    --------
    Do not account with it. It belongs to other users whose inputs are independent draws, with
    probability pi each, unknown to the analyst. A guarantee must hold for inputs that are known,
    hence of a fixed composition: their covariance is smaller by ``pi (1 - pi) v v^T``. It is kept
    to be compared with.

    Notes
    -----
    With J this constant, ``fisher_constant = J / (1 - pi (1 - pi) J)``.

    Examples
    --------
    >>> import fastshuffle as fs
    >>> rr = fs.binary_randomized_response(1.0)
    >>> print(f"{fs.mixture_fisher_constant(rr, 0.5):.6f} {fs.fisher_constant(rr, 0.5):.6f}")
    0.854209 1.086161
    """
    a, b = check_pair(pair, check_randomizer(randomizer).n_inputs)
    share = check_real("pi", pi, PROBABILITY)
    numerator, _ = _pair_sums(merged_rows(randomizer, (a, b)), share)
    return _quotient(numerator, 1.0)


def chi_square(randomizer: LocalRandomizer, *, pair: Sequence[int] = (0, 1)) -> float:
    """Return the chi-square divergence of one message, ``sum_y (W_b - W_a)(y)**2 / W_a(y)``.

    Parameters
    ----------
    randomizer : LocalRandomizer
        What a user applies to the input held.
    pair : tuple of two ints, default (0, 1)
        The inputs ``(a, b)``: that of W_b from W_a.

    Returns
    -------
    float
        The divergence, inf where b sends an output that a never sends. It is `fisher_constant` at
        pi = 0.

    Raises
    ------
    TypeError, ValueError, OverflowError
        As for `fisher_constant`.

    Examples
    --------
    >>> import fastshuffle as fs
    >>> print(f"{fs.chi_square(fs.binary_randomized_response(1.0)):.6f}")
    1.086161
    """
    return fisher_constant(randomizer, 0.0, pair=pair)


def worst_fisher_constant(
    randomizer: LocalRandomizer, *, pair: Sequence[int] | None = None
) -> WorstFisherConstant:
    """Return the largest Fisher constant over all compositions of the other users.

    Parameters
    ----------
    randomizer : LocalRandomizer
        What every user applies to the input held; at least 2 inputs.
    pair : tuple of two ints, optional
        The inputs of the differing user; by default the worst pair.

    Returns
    -------
    WorstFisherConstant
        The constant, the pair, and the input that all the others hold where it is attained.

    Raises
    ------
    TypeError, ValueError, OverflowError
        As for `fisher_constant`, and if no pair is given for a randomizer with more than 64 inputs
        that it treats differently.

    Notes
    -----
    ``v^T Sigma^+ v`` is convex in Sigma, and Sigma is linear in the composition: the maximum is
    where the others all hold one input z, which may be a third one, and there the constant is
    ``sum_y v(y)**2 / W_z(y)``. So the limit says that the worst dataset is homogeneous; at a finite
    n the worst composition of binary randomized response depends on epsilon
    (`worst_case_profile`). **Cost**: a millisecond a pair for few inputs; about 10 seconds for an
    explicit matrix of 64.

    References
    ----------
    .. [1] S. Boyd, L. Vandenberghe, "Convex Optimization", 2004, section 3.1.7 (the matrix
       fractional function is convex).

    Examples
    --------
    >>> import fastshuffle as fs
    >>> worst = fs.worst_fisher_constant(fs.k_randomized_response(2.0, k=10))
    >>> print(f"{worst.constant:.4f} {worst.pair} {worst.others}")
    4.9814 (0, 1) 2
    """
    checked = check_randomizer(randomizer)
    pairs = unordered_pairs(checked) if pair is None else [check_pair(pair, checked.n_inputs)]
    best = WorstFisherConstant(-1.0, pairs[0], 0)
    for a, b in pairs:
        held = sorted({a, b, *randomizer.representative_inputs()})
        merged = merged_rows(randomizer, (a, b, *held))
        v = difference(merged)
        for z, law in zip(held, merged.rows[2:], strict=True):
            constant = _sum_of_squares(v, law)
            if constant > best.constant:
                best = WorstFisherConstant(constant, (a, b), z)
    return best


def experiment_constant(experiment: ShuffleExperiment) -> float:
    """Return the Fisher constant of the composition of the others in an experiment, n >= 2."""
    a, b = experiment.pair
    held = experiment.others
    total = sum(held.values())
    if held.keys() <= {a, b}:
        return fisher_constant(experiment.randomizer, held.get(b, 0) / total, pair=(a, b))
    shares = np.array(list(held.values())) / total
    return composition_constant(merged_rows(experiment.randomizer, (a, b, *held)), shares)


def merged_rows(randomizer: LocalRandomizer, inputs: tuple[int, ...]) -> MergedRows:
    merged = randomizer.merged(inputs)
    if underflows(merged):
        smallest = float(merged.log_rows[merged.log_rows > -math.inf].min())
        raise UnsupportedSettingError(
            f"probabilities must be at least 1e-308, got exp({smallest!r}) for {randomizer!r}"
        )
    return merged


def difference(merged: MergedRows) -> FloatArray:
    """Return ``W_b - W_a`` to relative accuracy, a and b the first two rows."""
    loss = merged.log_ratios[1]
    larger = np.where(loss > 0.0, merged.rows[1], merged.rows[0])
    return np.copysign(-larger * np.expm1(-np.abs(loss)), loss)


def _sum_of_squares(v: FloatArray, mean: FloatArray) -> float:
    """Return the sum of ``v**2 / mean`` over the support of v."""
    support = v != 0.0
    v, mean = v[support], mean[support]
    if (mean == 0.0).any():
        return math.inf
    with np.errstate(over="ignore"):
        total = float((v * (v / mean)).sum())
    if total == math.inf:
        raise OverflowError("the Fisher constant is finite but beyond the largest double")
    return total


def _pair_sums(merged: MergedRows, pi: float) -> tuple[float, float]:
    """Return the sums of ``v**2 / m`` and of ``W_a W_b / m`` for others at inputs of the pair."""
    low, high = merged.rows
    mean = (1.0 - pi) * low + pi * high
    both = (low > 0.0) & (high > 0.0)
    smaller, larger = np.minimum(low, high)[both], np.maximum(low, high)[both]
    overlap = float((smaller / mean[both] * larger).sum())
    return _sum_of_squares(difference(merged), mean), overlap


def composition_constant(merged: MergedRows, shares: FloatArray) -> float:
    """Return ``v^T Sigma^+ v`` for the fractions of other users at the rows after the first two.

    The sum of ``v**2 / m`` gains the power that the currents ``pi_z sum_y W_z v / m`` dissipate
    between the inputs z, joined by the conductances ``pi_z pi_x sum_y W_z W_x / m``. Eliminating
    one input after the other leaves a network of fewer nodes whose conductances are sums, never
    differences, of what they were (the elimination of Grassmann, Taksar and Heyman).
    """
    weighted = shares[:, np.newaxis] * merged.rows[2:]
    mean = weighted.sum(axis=0)
    v = difference(merged)
    constant = _sum_of_squares(v, mean)
    if len(weighted) == 1 or constant == math.inf:
        return constant
    reached = mean > 0.0
    weighted, mean = weighted[:, reached], mean[reached]
    ratio = v[reached] / mean
    currents, parts = weighted @ ratio, weighted @ np.abs(ratio)
    conductances = weighted @ (weighted / mean).T
    for node in range(len(weighted) - 1, 0, -1):
        to_others = conductances[node, :node].copy()
        total = float(to_others.sum())
        if total > 0.0:
            constant += float(currents[node]) ** 2 / total
            passed = to_others / total
            currents[:node] += currents[node] * passed
            parts[:node] += parts[node] * passed
            conductances[:node, :node] += np.outer(passed, to_others)
        elif abs(currents[node]) > _NO_CURRENT * parts[node]:
            return math.inf
    return constant


def _quotient(numerator: float, denominator: float) -> float:
    """Return the constant; if the rows have no output in common the denominator is 0."""
    constant = numerator / denominator if denominator > 0.0 else math.inf
    if constant == math.inf > numerator and denominator > 0.0:
        raise OverflowError("the Fisher constant is finite but beyond the largest double")
    return constant
