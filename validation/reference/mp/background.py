"""Mass and tail of a sum of binomial groups, at a cost that does not grow with n."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from functools import lru_cache
from typing import NamedTuple

from mpmath import mp, mpf

from validation.reference.mp.probabilities import Bernoulli, Groups, Law, exact_law


@contextmanager
def enough_digits(groups: Groups, digits: int) -> Generator[None, None, None]:
    """Work with digits enough for every cancellation at this n.

    Exponents as large as n need `log10(n)` digits; a hockey-stick sum at epsilon far above the
    typical loss `1/sqrt(n)`, or a divergence of size `1/n`, needs `log10(n)` more; tilting away
    from the saddle costs up to 20.
    """
    users = sum(count for count, _ in groups) + 1
    with mp.workdps(digits + 3 * len(str(users)) + 50):
        yield


class Background(NamedTuple):
    """Number of ones among the other users, with the certain outputs taken out.

    Attributes
    ----------
    law : tuple of (int, Bernoulli)
        Groups whose probability is neither 0 nor 1.
    low : int
        Users who certainly output 1, hence the least possible number of ones.
    users : int
        All users, those who certainly output 0 included.
    """

    law: Law
    low: int
    users: int

    @classmethod
    def of(cls, groups: Groups) -> Background:
        """Take the certain outputs out of the groups."""
        law = exact_law(groups)
        return cls(
            tuple((count, own) for count, own in law if count > 0 and own.p > 0 and own.q > 0),
            sum(count for count, own in law if own.q == 0),
            sum(count for count, _ in law),
        )

    @property
    def high(self) -> int:
        """Largest possible number of ones."""
        return self.low + sum(count for count, _ in self.law)

    def relabelled(self) -> Background:
        """Return the law of the number of zeros."""
        law = tuple((count, Bernoulli(own.q, own.p)) for count, own in self.law)
        return Background(law, self.users - self.high, self.users)

    def tilted(self, tilt: mpf) -> tuple[list[mpf], mpf, mpf]:
        """Success probabilities, mean and variance after weighting by `e^(tilt x)`."""
        odds = mp.exp(tilt)
        tilted = [own.p * odds / (own.q + own.p * odds) for _, own in self.law]
        counts = [count for count, _ in self.law]
        mean = mp.fsum(count * t for count, t in zip(counts, tilted, strict=True))
        variance = mp.fsum(
            count * t * own.q / (own.q + own.p * odds)
            for (count, own), t in zip(self.law, tilted, strict=True)
        )
        return tilted, self.low + mean, variance

    def saddle(self, x: int) -> mpf:
        """Tilt that moves the mean to `x`, inside the support, to a thousandth of a deviation.

        The identities that use it hold at any tilt, so it need not be accurate.
        """
        share = mpf(x - self.low) / (self.high - self.low)
        tilts = [mp.log(share / (1 - share)) - mp.log(own.p / own.q) for _, own in self.law]
        left, right = min(tilts), max(tilts)
        tilt = (left + right) / 2
        while left < right:
            _, mean, variance = self.tilted(tilt)
            excess = mean - x
            if excess**2 <= variance / 10**6:
                break
            left, right = (left, tilt) if excess > 0 else (tilt, right)
            tilt -= excess / variance
            if not left < tilt < right:
                tilt = (left + right) / 2
        return tilt

    def mass(self, x: int) -> mpf:
        """Probability of exactly `x` ones."""
        if not self.low <= x <= self.high:
            return mpf(0)
        if x in {self.low, self.high}:
            return self._end(x)
        if len(self.law) > 1:
            return _inverted_mass(self, x, mp.prec)
        count, (p, q) = self.law[0]
        ones = x - self.low
        zeros = count - ones
        log_comb = mp.loggamma(count + 1) - mp.loggamma(ones + 1) - mp.loggamma(zeros + 1)
        return mp.exp(log_comb + ones * mp.log(p) + zeros * mp.log(q))

    def upper_tail(self, x: int) -> mpf:
        """Probability of `x` ones or more."""
        if x > self.high:
            return mpf(0)
        if x <= self.low:
            return mpf(1)
        if x == self.high:
            return self._end(x)
        _, mean, _ = self.tilted(mpf(0))
        if x <= mean:
            return 1 - self.relabelled().upper_tail(self.users - x + 1)
        tilt = self.saddle(x)
        _, _, variance = self.tilted(tilt)
        # The geometric factor of a tail is singular at tilt 0: stay eight deviations off, which
        # costs digits and nothing else.
        return _inversion(self, x, max(tilt, min(8 / mp.sqrt(variance), mpf(1))), tail=True)

    def _end(self, x: int) -> mpf:
        """Probability of an end of the support."""
        top = x == self.high
        return mp.exp(mp.fsum(count * mp.log(own.p if top else own.q) for count, own in self.law))


@lru_cache(maxsize=4096)
def _inverted_mass(background: Background, x: int, precision: int) -> mpf:
    """Mass inside the support at a precision in bits; searches and sums ask for some twice."""
    with mp.workprec(precision):
        return _inversion(background, x, background.saddle(x), tail=False)


def _inversion(background: Background, x: int, tilt: mpf, *, tail: bool) -> mpf:
    """Mass at `x`, or the upper tail from `x`, by the Fourier series of the tilted law.

    `R(x) = e^(K - tilt x) (1/2 pi) int phi(theta) e^(-i theta x) d theta`, with phi the
    characteristic function of the tilted law and K its log normalisation; a tail sums the
    geometric series of the following masses, a factor `1/(1 - e^(-tilt - i theta))`.
    """
    tilted, mean, variance = background.tilted(tilt)
    counts = [count for count, _ in background.law]
    ones = x - background.low
    period, last = _nodes(abs(x - mean), variance, tilt if tail else mp.inf)
    shrink = mp.exp(-tilt)
    total = 1 / (1 - shrink) if tail else mpf(1)
    for j in range(1, last + 1):
        theta = 2 * mp.pi * j / period
        turn = mp.expj(theta)
        exponent = mp.fsum(
            count * mp.log(1 - t + t * turn) for count, t in zip(counts, tilted, strict=True)
        )
        value = mp.exp(exponent - mp.mpc(0, theta * ones))
        if tail:
            value /= 1 - shrink * mp.conj(turn)
        # Nodes come in conjugate pairs, and the odd period has no unpaired last one.
        total += 2 * value.real
    odds = mp.exp(tilt)
    log_norm = mp.fsum(count * mp.log(own.q + own.p * odds) for count, own in background.law)
    return mp.exp(log_norm - tilt * ones) * total / period


def _nodes(offset: mpf, variance: mpf, decay: mpf) -> tuple[int, int]:
    """Period of the trapezoid rule, an odd integer, and the last node worth visiting.

    M nodes over a period fold the law modulo M. M is so large, and phi at the dropped nodes so
    small, that both errors are below `e^-budget`, by Bernstein's inequality and by
    `|phi(theta)| <= exp(-2 variance sin^2(theta/2))`. The geometric factor of a tail, which
    falls as `e^(-decay m)`, has to die out within the period too.
    """
    # The result is about the tilted mass at x, which is below 1 by no more than this factor.
    budget = mp.dps * mp.log(10) + offset**2 / variance + mp.log(1 + variance)
    span = budget / 3 + mp.sqrt(budget**2 / 9 + 2 * budget * variance)
    after = mpf(0) if mp.isinf(decay) else span + budget / decay
    period = int(span + offset + after) // 2 * 2 + 3
    sine = mp.sqrt(budget / (2 * variance))
    cut = 2 * mp.asin(sine) if sine < 1 else mp.pi
    return period, min((period - 1) // 2, int(cut * period / (2 * mp.pi)) + 1)


def first_step(background: Background) -> int:
    """Half a standard deviation of the background, as a first step of a search."""
    return 1 + int(mp.sqrt(background.tilted(mpf(0))[2]) / 2)
