"""What splitting a report into several messages buys: privacy and accuracy side by side.

Every user sends m messages by binary randomized response. They are shuffled one by one (unbundled),
or those of a user stay together (bundled). The fraction of users who hold 1 is estimated from the
number of ones among the nm messages: with ``p_x`` the probability of a one, the estimate
``(ones / (n m) - p0) / (p1 - p0)`` is unbiased, and n times its variance is
``p (1 - p) / (m (p1 - p0)**2)``, where p is either of the two since ``p0 = 1 - p1``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fastshuffle import (
    Randomizer,
    ShuffleExperiment,
    binary_randomized_response,
    bundle,
    exact_profile,
    gaussian_profile,
    message_constants,
    worst_case_profile,
)
from validation.claim import Curve, Figure

USERS = 10**6
DELTA = 1e-8
_MESSAGES = (*range(1, 13), 14, 16, 20, 24, 28, 32)
_QUICK_MESSAGES = (1, 2, 8)
# Those of the table; the figures show all.
TABLED = (1, 2, 3, 4, 8, 16, 32)
# The certified worst case of unbundled messages may lie above the smallest by so much.
_RTOL = 1e-4

TOTAL, EACH, ACCURACY = 4.0, 1.0, 1.0
_FIXED_TOTAL = f"total epsilon0 = {TOTAL:g}"
_FIXED_EACH = f"epsilon0 = {EACH:g} a message"
_FIXED_ACCURACY = f"accuracy of one message of epsilon0 = {ACCURACY:g}"


@dataclass(frozen=True)
class SplittingRow:
    """Privacy and accuracy of m messages a user.

    Attributes
    ----------
    setting : str
        What is held fixed.
    messages : int
        How many messages a user sends.
    epsilon0 : float
        Local budget of a message.
    unbundled, bundled : float
        The epsilon of the worst case; bundled, of the worst case where the others all hold one
        input.
    bundled_upper : float
        An upper bound of the bundled epsilon over all datasets.
    unbundled_limit, bundled_limit : float
        The epsilon of the Gaussian limit.
    variance : float
        n times the variance of the estimate from the number of ones.
    bundled_variance : float
        n times the least variance of a linear unbiased estimate from the bundles, half of the users
        holding 1.
    """

    setting: str
    messages: int
    epsilon0: float
    unbundled: float
    bundled: float
    bundled_upper: float
    unbundled_limit: float
    bundled_limit: float
    variance: float
    bundled_variance: float

    @property
    def ratio(self) -> float:
        """The bundled over the unbundled epsilon."""
        return self.bundled / self.unbundled

    @property
    def limit_ratio(self) -> float:
        """The same in the limit."""
        return self.bundled_limit / self.unbundled_limit

    @property
    def passed(self) -> bool:
        """Whether bundles reveal more, as post-processing says, and no more than their bound."""
        slack = 1.0 + _RTOL
        return (
            self.unbundled <= slack * self.bundled
            and self.bundled <= slack * self.bundled_upper
            and self.bundled_variance <= slack * self.variance
        )


def budget(setting: str, messages: int) -> float:
    """Return the local budget of a message of randomized response.

    Parameters
    ----------
    setting : str
        What is held fixed.
    messages : int
        How many messages a user sends.

    Returns
    -------
    float
        At a fixed accuracy, from ``m I(epsilon0) = I`` with ``I(e) = 4 sinh(e / 2)**2``.
    """
    if setting == _FIXED_TOTAL:
        return TOTAL / messages
    if setting == _FIXED_EACH:
        return EACH
    return 2.0 * math.asinh(math.sinh(0.5 * ACCURACY) / math.sqrt(messages))


def _variance(randomizer: Randomizer, messages: int) -> float:
    p0, p1 = randomizer.matrix[:, 1].tolist()
    return float(p1 * (1.0 - p1) / (messages * (p1 - p0) ** 2))


def _row(setting: str, messages: int) -> SplittingRow:
    epsilon0 = budget(setting, messages)
    single = binary_randomized_response(epsilon0)
    together = bundle(single, messages)
    apart = ShuffleExperiment(single, USERS, k=0, messages=messages)
    kept = ShuffleExperiment(together, USERS, k=0)
    return SplittingRow(
        setting,
        messages,
        epsilon0,
        float(worst_case_profile(single, USERS, messages=messages).epsilon(DELTA)),
        float(exact_profile(kept, rtol=1e-6).epsilon(DELTA)),
        float(worst_case_profile(together, USERS).epsilon(DELTA)),
        float(gaussian_profile(apart).epsilon(DELTA)),
        float(gaussian_profile(kept).epsilon(DELTA)),
        _variance(single, messages),
        1.0 / message_constants(single, messages, 0.5).bundled,
    )


def check_splitting(*, quick: bool, progress: Callable[[str], None]) -> list[SplittingRow]:
    """Tabulate privacy and accuracy over the number of messages.

    Parameters
    ----------
    quick : bool
        Only a few numbers of messages.
    progress : callable
        Called with a line of text before each setting.

    Returns
    -------
    list of SplittingRow
        At a fixed total budget, a fixed budget of each message, and a fixed accuracy.
    """
    counts = _QUICK_MESSAGES if quick else _MESSAGES
    rows = []
    for setting in (_FIXED_TOTAL, _FIXED_EACH, _FIXED_ACCURACY):
        progress(f"several messages: {setting}")
        rows += [_row(setting, messages) for messages in counts]
    return rows


def figures(rows: Sequence[SplittingRow]) -> tuple[Figure, ...]:
    """Return the figures: epsilon over m in each setting, and epsilon over the variance.

    Parameters
    ----------
    rows : sequence of SplittingRow
        What `check_splitting` returned.

    Returns
    -------
    tuple of Figure
        Three of epsilon over m, and one of epsilon over the variance.
    """
    settings = dict.fromkeys(row.setting for row in rows)
    by_setting = {setting: [r for r in rows if r.setting == setting] for setting in settings}
    drawn = [
        Figure(
            f"n = {USERS:,}, delta = {DELTA:g}: {setting}",
            "messages a user m",
            "epsilon",
            (
                _curve("unbundled", some, lambda r: r.unbundled),
                _curve("bundled", some, lambda r: r.bundled),
                _curve("unbundled, Gaussian limit", some, lambda r: r.unbundled_limit, line=True),
                _curve("bundled, Gaussian limit", some, lambda r: r.bundled_limit, line=True),
            ),
            log_y=setting == _FIXED_EACH,
        )
        for setting, some in by_setting.items()
    ]
    variances = [
        Curve.of(f"{kind}, {setting}", [r.variance for r in some], [value(r) for r in some])
        for kind, value in _KINDS
        for setting in (_FIXED_TOTAL, _FIXED_EACH)
        # farther out bundles have lost all that the shuffler gave
        for some in ([r for r in by_setting[setting] if r.bundled < 1.0],)
    ]
    title = f"n = {USERS:,}, delta = {DELTA:g}: privacy against accuracy"
    label = "n times the variance of the estimate from the number of ones"
    return (*drawn, Figure(title, label, "epsilon", tuple(variances)))


_KINDS: tuple[tuple[str, Callable[[SplittingRow], float]], ...] = (
    ("unbundled", lambda row: row.unbundled),
    ("bundled", lambda row: row.bundled),
)


def _curve(
    label: str,
    rows: Sequence[SplittingRow],
    value: Callable[[SplittingRow], float],
    *,
    line: bool = False,
) -> Curve:
    return Curve.of(label, [r.messages for r in rows], [value(r) for r in rows], line=line)
