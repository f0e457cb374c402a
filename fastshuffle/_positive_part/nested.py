"""E[S_+] from the counts of the values themselves, where the sum takes few values."""

import math

import numpy as np

from fastshuffle._kernels.nested_sum import nested_positive_part, window_width
from fastshuffle._positive_part.terms import UNIT, Terms, Tilted, tilted
from fastshuffle._typing import FloatArray

_MOST_LEVELS = 40
_LOG_WINDOW_TAIL = -42.0
_RELATIVE_ROUNDING = 1e-11


def log_nested(terms: list[Terms], s: float, side: float, most_work: float) -> float:
    """Return log E[S_+] with all errors on one side, or nan where it is too long a sum.

    Parameters
    ----------
    terms : list of Terms
        Merged terms.
    s : float
        A tilt that centres the sum near 0, or above.
    side : float
        1 for an upper and -1 for a lower value.
    most_work : float
        Terms that may be added up.
    """
    if sum(len(t.values) - 1 for t in terms) > _MOST_LEVELS:
        return math.nan
    laws = [tilted(t, s) for t in terms]
    # of the groups of several values, that whose two main ones vary most has its last count summed
    # in closed form
    spreads = [
        (len(t.values) > 1, t.copies * law.variance) for t, law in zip(terms, laws, strict=True)
    ]
    inner = spreads.index(max(spreads))
    order = [g for g in range(len(terms)) if g != inner] + [inner]
    rows: list[FloatArray] = []
    base, work, log_slack = 0.0, 1.0, 0.0
    for g in order:
        new_rows, last_value, visits, exponent = _levels(terms[g], laws[g], closed=g == inner)
        base += terms[g].copies * last_value
        rows += new_rows
        log_slack += exponent
        work *= visits
        if not work <= most_work:
            return math.nan
    if not rows:  # the sum has one value
        size = sum(t.copies * abs(float(t.values[0])) for t in terms)
        base += side * UNIT * (len(terms) + 3.0) * size
        return math.log(base) + side * _RELATIVE_ROUNDING if base > 0.0 else -math.inf
    levels, last = np.array(rows[:-1]).reshape(-1, 7), rows[-1]
    log_scale = sum(t.copies * law.log_moment for t, law in zip(terms, laws, strict=True))
    slack = UNIT * (len(rows) + 3.0)
    # outside the windows, under the tilt, where x exp(-s x) <= 1 / (e s); if single values reach
    # far beyond the rest, S_+ is better replaced by the sum of the positive values, and each
    # window then has to hold the other n - 1 copies
    largest = 1.0 / (math.e * s)
    positive = sum(
        t.copies * float(law.probabilities @ np.maximum(t.values, 0.0))
        for t, law in zip(terms, laws, strict=True)
    )
    margin = 1.0 if positive < 1e-3 * largest else 0.0
    total, truncated = nested_positive_part(
        levels, last, base, side, slack, margin, log_scale, most_work
    )
    # a log mass is good to some units of the divergence in it
    rounding = _RELATIVE_ROUNDING + UNIT * (log_slack + 10.0 * (len(rows) + 2.0) * abs(log_scale))
    if side < 0.0:
        return log_scale + math.log(total) - rounding if total > 0.0 else -math.inf
    if truncated:  # two tails of each count, and something for the rounding of the tilt
        tails = 3.0 * len(levels) * math.exp(_LOG_WINDOW_TAIL)
        total += tails * (positive if margin else largest)
    if total == 0.0:
        return -math.inf
    return log_scale + math.log(total) + rounding


def _levels(
    term: Terms, law: Tilted, *, closed: bool
) -> tuple[list[FloatArray], float, float, float]:
    """Return the counts of one group, rarest first, its last value, the visits and the rounding.

    The last two values are the most frequent ones under the tilt.
    ``closed`` says that the last count is summed in closed form.
    """
    order = np.argsort(law.probabilities, kind="stable")
    values, p, q = (x[order].tolist() for x in (term.values, term.probabilities, law.probabilities))
    last_value = values[-1]
    rows = []
    visits, sensitivity = 1.0, 0.0
    for i in range(len(order) - 1):
        rest = sum(p[i + 1 :])
        share, other = p[i] / (p[i] + rest), rest / (p[i] + rest)
        log_share = math.log1p(-other) if share > 0.5 else math.log(p[i]) - math.log(p[i] + rest)
        log_other = math.log1p(-share) if other > 0.5 else math.log(rest) - math.log(p[i] + rest)
        t = q[i] / sum(q[i:])
        copies = term.copies if i == 0 else -1.0
        rows.append(
            np.array([copies, values[i] - last_value, share, other, log_share, log_other, t])
        )
        n = term.copies * min(1.0, sum(q[i:]) * 2.0)
        width = sum(window_width(n, t, side) for side in (-1.0, 1.0)) if 0.0 < t < 1.0 else 0.0
        # the last count is a sum outwards over at most nine standard deviations
        visits *= 0.5 * width + 10.0 if closed and i == len(order) - 2 else width + 1.0
        sensitivity += 2.0 * (n * abs(t - share) + width)
    return rows, last_value, visits, sensitivity
