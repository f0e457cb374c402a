"""Protocols end to end: local randomizers, a shuffle, an estimate, and the guarantee with it."""

from fastshuffle.protocols.frequency import (
    FrequencyResult,
    HeavyHitter,
    estimate_frequencies,
)
from fastshuffle.protocols.guarantee import BudgetGroup, Guarantee
from fastshuffle.protocols.mean import MeanResult, estimate_mean
from fastshuffle.protocols.result import EstimateResult, ProtocolResult
from fastshuffle.protocols.sgd import SGDResult, fit_sgd

__all__ = [
    "BudgetGroup",
    "EstimateResult",
    "FrequencyResult",
    "Guarantee",
    "HeavyHitter",
    "MeanResult",
    "ProtocolResult",
    "SGDResult",
    "estimate_frequencies",
    "estimate_mean",
    "fit_sgd",
]
