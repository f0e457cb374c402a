"""How the estimates from the users of different budgets are combined."""

from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from fastshuffle._typing import FloatArray
from fastshuffle.protocols.guarantee import LocalBudgets

Weights: TypeAlias = Literal["users", "precision"]


def check_weights(weights: Any) -> Weights:
    """Return ``"users"`` or ``"precision"``."""
    for known in get_args(Weights):
        if isinstance(weights, str) and weights == known:
            return known
    raise ValueError(f"weights must be 'users' or 'precision', got {weights!r}")


def budget_shares(weights: Weights, budgets: LocalBudgets, variances: list[float]) -> FloatArray:
    """Return how much each budget counts, for the variance of one of its messages.

    The variances must not depend on the messages, for then the shares would bias the estimate.
    """
    shares = budgets.sizes.astype(np.float64)
    if weights == "precision":
        shares /= np.array(variances)
    return shares / shares.sum()


def target(quantity: str, weights: Weights, budgets: LocalBudgets) -> str:
    """Return in words what the combination is unbiased for."""
    if weights == "users" or budgets.values.size == 1:
        return f"{quantity} of all users"
    return (
        f"{quantity} with the budgets weighted by precision, which is that of all users if values "
        "and budgets are unrelated"
    )
