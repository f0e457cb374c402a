"""Messages of different randomizers of a user, all shuffled together in one channel."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fastshuffle._positive_part import Bracket
from fastshuffle._typing import FloatArray, Side
from fastshuffle._validation import (
    LARGEST_COUNT,
    RELATIVE_TOLERANCE,
    check_count,
    check_real,
)
from fastshuffle.bounds.blanket import BLANKET_SOURCE
from fastshuffle.bracket import BracketProfile, Curve
from fastshuffle.exact._replacing import log_factor, smaller_step
from fastshuffle.exact._scores import Users, log_lower_delta, regression_scores
from fastshuffle.exact._shared_binary import binary_channel
from fastshuffle.exact.revealing import hidden_curves
from fastshuffle.experiment import ShuffleExperiment
from fastshuffle.profile import Validity
from fastshuffle.randomizers import Randomizer

# Rounding of a clear mass.
_ROUNDING = 1e-13
# Of more messages a user, the bits are no longer taken one by one.
_MOST_BITS = 1000
_EXACT_SOURCE = (
    "definition of the hockey-stick divergence of the laws of the number of ones, a sum of "
    "independent bits"
)


def shared_channel_profile(
    randomizers: Sequence[Randomizer],
    n: float,
    *,
    others: Mapping[int, float],
    pair: Sequence[int] = (0, 1),
    rtol: float = 1e-3,
) -> BracketProfile:
    """Return a bracket of the profile where a user sends messages of different randomizers.

    Every user applies each randomizer to the input held, and all messages of all users are shuffled
    together: nobody sees which randomizer or which user a message came from.

    Parameters
    ----------
    randomizers : sequence of Randomizer
        One for each message of a user, given by its matrix, with the same inputs and the same
        outputs. A message that does not depend on the input, such as a dummy of a balls-into-bins
        protocol, has equal rows; the rows of a deterministic one have a single 1.
    n : int
        Number of users, including the one who differs; no more than 2**53 messages in all.
    others : mapping of int to int
        How many of the other users hold each input; the counts are >= 0 and sum to n - 1.
    pair : tuple of two ints, default (0, 1)
        The inputs ``(a, b)`` that the differing user holds in the first and in the second dataset.
    rtol : float, default 1e-3
        As for `revealing_profile`.

    Returns
    -------
    BracketProfile
        For the two datasets alone. EXACT for two outputs, if what the differing user changes to
        makes one of them likelier in every message; otherwise an UPPER_BOUND whose ``bounds`` show
        the gap.

    Raises
    ------
    TypeError, ValueError
        If an argument is outside its domain, or the randomizers differ in inputs or outputs.

    See Also
    --------
    bundle : of different randomizers, for messages that stay together; its worst case bounds this.

    Notes
    -----
    *Two outputs.* The number of ones is a sum of independent bits, and its likelihood ratio is
    monotone: the half-line is found by bisection (`fastshuffle.exact._shared_binary`). Relative
    error of delta below 1e-11 (``tests/test_shared_channel.py``).

    *Above.* The messages of the differing user that depend on the input are replaced one after
    another, T_i with i of them replaced: for any epsilons of sum epsilon

        P - e**epsilon Q = sum_i e**(epsilon_1 + ... + epsilon_{i-1}) (T_{i-1} - e**epsilon_i T_i),

    and the positive parts of the terms are divergences of a single message among all others, as in
    `revealing_profile`. The epsilons are shared out as the messages share the mean of the loss.
    With one such message nothing is lost here, whatever the dummies.

    *Below.* A sum of scores as for `revealing_profile`, of which both tails are summed.

    Messages in a channel of their own for each randomizer are independent given the inputs: their
    profiles compose (`composed_profile`), and the worst case of a `bundle` bounds them too.

    **Cost**: that of `revealing_profile` for each different randomizer.

    References
    ----------
    .. [1] B. Balle, G. Barthe, M. Gaboardi, "Privacy Amplification by Subsampling: Tight Analyses
       via Couplings and Divergences", arXiv:1807.01647v2 (post-processing of the hockey-stick
       divergence).

    Examples
    --------
    The true value and two uniform dummies, 20 bins:

    >>> import numpy as np
    >>> import fastshuffle as fs
    >>> true, dummy = fs.Randomizer(np.eye(20)), fs.Randomizer(np.full((20, 20), 0.05))
    >>> e = fs.shared_channel_profile([true, dummy, dummy], 10_000, others={2: 9_999})
    >>> lower, upper = e.bounds(0.5)
    >>> print(f"{lower:.1e} {upper:.1e}")
    2.1e-30 2.1e-30
    """
    parts = _different(randomizers)
    stacked = Randomizer(np.vstack([part.matrix for part, _ in parts]))
    n_inputs = parts[0][0].n_inputs
    users = check_count("n", n, minimum=1, maximum=LARGEST_COUNT // len(randomizers))
    tolerance = check_real("rtol", rtol, RELATIVE_TOLERANCE)
    # checks the pair and the others
    single = ShuffleExperiment(parts[0][0], users, others=others, pair=pair)
    a, b = single.pair
    rows = stacked.matrix
    # the first row of those that are equal stands for all
    _, kinds, kind = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    place = kinds[kind.ravel()].tolist()
    held: dict[int, int] = {}
    own: list[tuple[int, int]] = []  # the place of the first row of a part, and how often
    for i, (_, times) in enumerate(parts):
        first = i * n_inputs
        for z, count in single.others.items():
            held[place[first + z]] = held.get(place[first + z], 0) + times * count
        if place[first + a] == place[first + b]:
            held[place[first + a]] = held.get(place[first + a], 0) + times
        else:
            own.append((first, times))
    directions: dict[Side, tuple[int, int]] = {"forward": (a, b), "reverse": (b, a)}
    if own and rows.shape[1] == 2 and sum(times for _, times in own) <= _MOST_BITS:
        channels = [binary_channel(rows, held, own, inputs) for inputs in directions.values()]
        exact = [channel.curve(tolerance) for channel in channels if channel is not None]
        if len(exact) == 2:
            return BracketProfile(
                dict(zip(directions, exact, strict=True)),
                n=users,
                validity=Validity.EXACT,
                method="half-line of the number of ones, one of a user's bits replaced at a time",
                source=_EXACT_SOURCE,
                setting=_setting(randomizers, single),
            )
    return BracketProfile(
        {
            side: _curve(stacked, held, own, inputs, tolerance)
            for side, inputs in directions.items()
        },
        n=users,
        validity=Validity.UPPER_BOUND,
        method=(
            "messages outside the common part of some of the others' rows revealed above, one of a "
            "user's messages replaced at a time, a sum of scores below"
        ),
        source=(
            "post-processing of the hockey-stick divergence: B. Balle, G. Barthe, M. Gaboardi, "
            f"arXiv:1807.01647v2; {BLANKET_SOURCE}"
        ),
        setting=_setting(randomizers, single),
    )


def _different(randomizers: Any) -> list[tuple[Randomizer, int]]:
    """Return the different randomizers and how often each is given."""
    if not isinstance(randomizers, Sequence) or not randomizers:
        raise TypeError("randomizers must be a sequence of one or more Randomizers")
    times: dict[Randomizer, int] = {}
    for i, part in enumerate(randomizers):
        if not isinstance(part, Randomizer):
            raise TypeError(
                f"randomizers[{i}] must be a Randomizer given by its matrix, got "
                f"{type(part).__name__}"
            )
        shapes = [(w.n_inputs, w.n_outputs) for w in (randomizers[0], part)]
        if shapes[0] != shapes[1]:
            raise ValueError(
                f"randomizers must have the same inputs and outputs, got {shapes[0]} and "
                f"{shapes[1]}"
            )
        times[part] = times.get(part, 0) + 1
    return list(times.items())


def _setting(randomizers: Sequence[Randomizer], single: ShuffleExperiment) -> dict[str, Any]:
    setting = single.to_dict()
    del setting["randomizer"]
    return {"randomizers": [part.to_dict() for part in randomizers], **setting}


def _curve(
    stacked: Randomizer,
    held: dict[int, int],
    own: list[tuple[int, int]],
    inputs: tuple[int, int],
    rtol: float,
) -> Curve:
    """Return the bracket of the divergence of holding b from holding a, for ``inputs`` (a, b)."""
    a, b = inputs
    if not own:
        nothing = Bracket(-math.inf, -math.inf)
        return Curve(lambda _: nothing, 0.0, rtol)
    kept = {row: count for row, count in held.items() if count > 0}
    n = 1 + sum(kept.values())
    curves = []
    for first, _ in own:
        pair = first + a, first + b
        experiment = ShuffleExperiment(stacked, n, others=kept, pair=pair)
        curves.append(hidden_curves(experiment, pair, rtol))
    times = [count for _, count in own]
    rows = stacked.matrix
    below = _users(rows, kept, own, inputs)
    shares = _shares(rows, kept, own, inputs)
    losses = [min(curve.loss for curve in found) for found in curves]

    def log_above(epsilon: float) -> float:
        total, spent = -math.inf, 0.0
        for found, count, share in zip(curves, times, shares, strict=True):
            # of the copies of a part, each has its share of epsilon
            step = smaller_step(share * epsilon if share > 0.0 else 0.0, count)
            value = min(curve.at(step).upper for curve in found)
            if value > -math.inf and spent < math.inf:
                term = spent + value + log_factor(step, count)
                total = float(np.logaddexp(total, term))
            elif value > -math.inf:
                total = math.inf
            spent += count * step
        return min(total + _ROUNDING * (1.0 + min(epsilon, 1e3)), 0.0)

    def log_bracket(epsilon: float) -> Bracket:
        upper = log_above(epsilon)
        lower = _log_clear(below)
        if epsilon < math.inf:
            lower = max(lower, log_lower_delta(below, epsilon))
        if not lower <= upper + 1e-9:
            raise ArithmeticError(f"a bracket came out as {(lower, upper)!r}")
        return Bracket(min(lower, upper), upper)

    loss = sum(count * loss for count, loss in zip(times, losses, strict=True))
    return Curve(log_bracket, loss, rtol, log_above)


def _users(
    rows: FloatArray, held: dict[int, int], own: list[tuple[int, int]], inputs: tuple[int, int]
) -> Users:
    a, b = inputs
    parts = tuple((count, rows[first + a], rows[first + b]) for first, count in own)
    messages = sum(count for count, _, _ in parts)
    weights = np.array([count / messages for count, _, _ in parts])
    null = weights @ np.array([q for _, q, _ in parts])
    alternative = weights @ np.array([p for _, _, p in parts])
    with np.errstate(divide="ignore", invalid="ignore"):
        losses = np.log(alternative) - np.log(null)
    losses = np.where((alternative == 0.0) & (null == 0.0), 0.0, losses)
    counts = np.array(list(held.values()), dtype=np.float64)
    others = rows[list(held)] if held else np.empty((0, rows.shape[1]))
    # outputs that nobody sends have no place in a covariance
    seen = others.any(axis=0) | (null > 0.0) | (alternative > 0.0)
    return Users(
        counts,
        others[:, seen],
        null[seen],
        alternative[seen],
        losses[seen],
        messages,
        tuple((count, q[seen], p[seen]) for count, q, p in parts),
    )


def _log_clear(users: Users) -> float:
    """Return the log of the mass of messages that are sent under P alone."""
    alone = (users.null == 0.0) & ~users.rows.any(axis=0)
    log_rest = sum(
        count * math.log1p(-min(float(p[alone].sum()), 1.0))
        if float(p[alone].sum()) < 1.0
        else -math.inf
        for count, _, p in users.parts
    )
    return math.log(-math.expm1(log_rest)) - _ROUNDING if log_rest < 0.0 else -math.inf


def _shares(
    rows: FloatArray, held: dict[int, int], own: list[tuple[int, int]], inputs: tuple[int, int]
) -> list[float]:
    """Return which share of the mean of the loss each part has, all its copies together."""
    users = _users(rows, held, own, inputs)
    counts = np.append(users.counts, [0.5 * users.messages] * 2)
    others = np.vstack((users.rows, users.null, users.alternative))
    scores = regression_scores(counts, others, users.alternative - users.null)
    parts = [max(count * float((p - q) @ scores), 0.0) for count, q, p in users.parts]
    total = sum(parts)
    return [part / total if total > 0.0 else 1.0 / len(parts) for part in parts]
