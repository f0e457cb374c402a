"""Upper bounds of delta where users send several messages: one of them replaced after another.

Let T_j be the law of the histogram where j of the m messages of the differing user come from W_a
and m - j from W_b, so that P = T_0 and Q = T_m. With ``step = epsilon / m``,

    P - e**epsilon Q = sum_{j < m} e**(j step) (T_j - e**step T_{j+1}),

and the positive part of a sum is at most the sum of the positive parts:

    delta(epsilon) <= sum_{j < m} e**(j step) delta_j(step),

delta_j the hockey-stick divergence of T_j from T_{j+1}. These two differ by a *single* message
among nm, the case of one message a user with fixed inputs, so that every bound of that case applies
to them: revealing the user's other messages leaves the (n - 1) m messages of the others, and then
all terms are alike:

    delta(epsilon) <= (e**epsilon - 1) / (e**step - 1) delta_1(step; (n - 1) m + 1 messages).

What is lost vanishes as n grows, for the m events nearly agree: they are m half-spaces that lie
less than the distance of P and Q apart. To leading order both sides are ``mu (phi(t) - t Phi(-t))``
with mu**2 = m I / n and t = epsilon / mu. (Keeping the messages of a user together is a bound too,
since shuffling them apart is a post-processing; but its ``mu**2 = ((1 + I)**m - 1) / n`` is larger
for any n, and it is the smaller one for a few users and next to the largest loss alone.)

*Infinite losses.* What only W_b sends is a clear sign: with g the mass of W_b without it, a P of
mass 1 - g**m is counted as delta, and the rest is as above with W_b restricted, of mass g:

    delta(epsilon) <= 1 - g**m + sum_{j < m} e**(j step) g**(m - 1 - j) delta_1(step).
"""

import math

import numpy as np

from fastshuffle._kernels.binomial_groups import log_upper_tail
from fastshuffle._positive_part import Bracket
from fastshuffle._typing import BoolArray, Side
from fastshuffle.bounds.largest import HomogeneousLaw, Law
from fastshuffle.bracket import Curve
from fastshuffle.profile import PrivacyProfile

# Rounding of the factors, and of a mass of W_b.
_ROUNDING = 1e-13
_ULP = 4.5e-16
# Of a tail of a sum of binomials.
TAIL_ROUNDING = 1e-11


def log_clear_mass(clear: float, messages: int) -> float:
    """Return ``log(1 - (1 - p)**m)``."""
    if clear in (0.0, 1.0):
        return 0.0 if clear else -math.inf
    return math.log(-math.expm1(messages * math.log1p(-clear)))


def log_infinite_mass(law: HomogeneousLaw, n_messages: int, messages: int) -> float:
    """Return the log of the mass that P puts where Q has none, among so many other messages.

    Beside the clear signs, those are the histograms with more messages of the kinds that W_a does
    not send than there are others: a tail of a sum of two binomials. Others' messages that are
    revealed hide nothing, and count as such ones.
    """
    clear = _is_clear(law)
    alone = min(float(law.alternative[clear].sum()), 1.0)
    unseen = (law.null == 0.0) & (law.background > 0.0)
    shares = (
        (n_messages, float(law.background[unseen].sum()) + law.revealed),
        (messages, float(law.alternative[unseen].sum()) / max(1.0 - alone, 1e-300)),
    )
    if shares[1][1] == 0.0:
        return log_clear_mass(alone, messages)
    with np.errstate(divide="ignore"):
        groups = np.array(
            [
                (float(count), p, 1.0 - p, np.log(p), np.log1p(-p))
                for count, p in ((count, min(share, 1.0)) for count, share in shares)
            ]
        )
    inside = messages * math.log1p(-alone) + log_upper_tail(n_messages + 1.0, groups)
    return float(np.logaddexp(log_clear_mass(alone, messages), inside))


def _is_clear(law: HomogeneousLaw) -> BoolArray:
    """Return what is sent under P alone, by the differing user alone."""
    return (law.null == 0.0) & (law.background == 0.0)


def split_clear(law: Law) -> tuple[float, Law]:
    """Return the mass of the clear signs under P, and the law with them taken out of P."""
    if not isinstance(law, HomogeneousLaw):
        return 0.0, law
    clear = _is_clear(law)
    losses = law.losses[~clear & ((law.alternative > 0.0) | (law.null > 0.0))]
    rest = law._replace(
        alternative=np.where(clear, 0.0, law.alternative), loss=float(losses.max(initial=0.0))
    )
    return min(float(law.alternative[clear].sum()), 1.0), rest


def smaller_step(epsilon: float, messages: int) -> float:
    """Return ``epsilon / messages``, rounded down: a smaller step is valid too."""
    return epsilon / messages * (1.0 - _ULP)


def log_factor(step: float, messages: int, clear: float = 0.0) -> float:
    """Return the log of ``sum_{j < m} exp(j step) g**(m - 1 - j)``, g = 1 - clear."""
    if messages == 1:
        return 0.0
    if clear == 1.0:
        return (messages - 1.0) * step
    log_rest = math.log1p(-clear)
    growth = step - log_rest
    if growth == math.inf:
        return math.inf
    if growth < 1e-200:
        return math.log(messages)
    ratio = math.expm1(-messages * growth) / math.expm1(-growth)
    return (messages - 1.0) * step + math.log(ratio)


def log_upper(value: float, step: float, messages: int, clear: float = 0.0) -> float:
    """Return the bound of log delta from that of one message, ``value``, at ``step``."""
    inside = value + log_factor(step, messages, clear) if value > -math.inf else -math.inf
    total = float(np.logaddexp(log_clear_mass(clear, messages), inside))
    return min(total + _ROUNDING * (1.0 + messages * step), 0.0) if total > -math.inf else total


def replaced_curve(law: Law, n_others: int, messages: int, rtol: float) -> Curve:
    """Return the upper curve for a user of some messages, among so many others of a background."""
    if messages == 1:
        return law.among(n_others + 1).curve(rtol)
    clear, rest = split_clear(law)
    single = rest.among(n_others + 1).curve(rtol)

    def log_bracket(epsilon: float) -> Bracket:
        if epsilon == math.inf and isinstance(law, HomogeneousLaw):
            upper = log_infinite_mass(law, n_others, messages) + TAIL_ROUNDING
            return Bracket(-math.inf, min(upper, 0.0))
        step = smaller_step(epsilon, messages)
        return Bracket(-math.inf, log_upper(single.at(step).upper, step, messages, clear))

    loss = math.inf if clear > 0.0 else messages * single.loss
    return Curve(log_bracket, loss, rtol)


def curve_of_single(single: PrivacyProfile, side: Side, messages: int, rtol: float) -> Curve:
    """Return the upper curve from the profile of one message among those of the others.

    Its losses are finite.
    """

    def log_bracket(epsilon: float) -> Bracket:
        step = smaller_step(epsilon, messages)
        _, value = single.log_bounds(step, direction=side)
        return Bracket(-math.inf, log_upper(value, step, messages))

    return Curve(log_bracket, messages * float(single.epsilon(0.0, direction=side)), rtol)
