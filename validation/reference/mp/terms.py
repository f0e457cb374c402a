"""The terms of the divergences."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from mpmath import mp, mpf

Term: TypeAlias = Callable[[mpf, mpf], mpf]


def kl_term(p: mpf, q: mpf) -> mpf:
    """Term of the Kullback-Leibler divergence, with `q - p` added so that no term is negative."""
    if p == 0:
        return q
    return mp.inf if q == 0 else p * mp.log(p / q) - p + q


def chi_square_term(p: mpf, q: mpf) -> mpf:
    """Term of the chi-square divergence."""
    if q == 0:
        return mp.inf if p > 0 else mpf(0)
    return (p - q) ** 2 / q


def jensen_shannon_term(p: mpf, q: mpf) -> mpf:
    """Term of the Jensen-Shannon divergence."""
    middle = (p + q) / 2
    return (kl_term(p, middle) + kl_term(q, middle)) / 2 if middle > 0 else mpf(0)


def renyi_term(order: mpf) -> Term:
    """Term of `sum P^order Q^(1 - order)`."""

    def term(p: mpf, q: mpf) -> mpf:
        if p == 0:
            return mpf(0)
        if q == 0:
            return mp.inf if order > 1 else mpf(0)
        return q * mp.exp(order * mp.log(p / q))

    return term
