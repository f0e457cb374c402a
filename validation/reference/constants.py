"""Constants of the limit theorems, straight from their definitions, for full-support randomizers.

``W`` has the rows ``W_0`` and ``W_1``; ``pi`` is the share of users who hold input 1.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def multinomial_covariance(row: Floats) -> Floats:
    """Covariance of one message, ``diag(w) - w w^T``."""
    return np.diag(row) - np.outer(row, row)


def fixed_covariance(rows: Floats, pi: float) -> Floats:
    """Covariance a user at a fixed composition, ``(1 - pi) Sigma_0 + pi Sigma_1``."""
    zero, one = (multinomial_covariance(row) for row in rows)
    return (1.0 - pi) * zero + pi * one


def mixture_covariance(rows: Floats, pi: float) -> Floats:
    """Covariance of one message of the mixture ``(1 - pi) W_0 + pi W_1``."""
    return multinomial_covariance((1.0 - pi) * rows[0] + pi * rows[1])


def score(rows: Floats, covariance: Floats) -> Floats:
    """Return the solution s of ``covariance s = W_1 - W_0`` with a last entry of 0.

    It differs from that of the pseudo-inverse by a constant, which a centred histogram, whose
    entries sum to 0, does not see.
    """
    v = rows[1] - rows[0]
    return np.append(np.linalg.solve(covariance[:-1, :-1], v[:-1]), 0.0)


def fisher_constant(rows: Floats, pi: float) -> float:
    """Return ``I_pi = v^T Sigma_pi^+ v``."""
    return float((rows[1] - rows[0]) @ score(rows, fixed_covariance(rows, pi)))


def mixture_constant(rows: Floats, pi: float) -> float:
    """Return the same with the covariance of the mixture."""
    return float((rows[1] - rows[0]) @ score(rows, mixture_covariance(rows, pi)))


def ratio_moment(rows: Floats, order: int) -> float:
    """Return ``E (w - 1)^order`` of the likelihood ratio ``w = W_1/W_0`` under ``W_0``."""
    return float(rows[0] @ (rows[1] / rows[0] - 1.0) ** order)


def normal_cdf(x: float) -> float:
    """Standard normal distribution function."""
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def normal_density(x: float) -> float:
    """Standard normal density."""
    return math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return delta of a mu-GDP mechanism, ``Phi(-e/mu + mu/2) - exp(e) Phi(-e/mu - mu/2)``."""
    return normal_cdf(-epsilon / mu + 0.5 * mu) - math.exp(epsilon) * normal_cdf(
        -epsilon / mu - 0.5 * mu
    )


def tangent_delta(mu: float, t: float) -> float:
    """Return the local curve at ``epsilon = t mu``, ``mu (phi(t) - t Phi(-t))``."""
    return mu * (normal_density(t) - t * normal_cdf(-t))
