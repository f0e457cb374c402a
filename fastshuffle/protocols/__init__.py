"""Protocols end to end: local randomizers, a shuffle, an estimate, and the guarantee with it."""

from fastshuffle.protocols.guarantee import BudgetGroup, Guarantee
from fastshuffle.protocols.result import EstimateResult, ProtocolResult

__all__ = ["BudgetGroup", "EstimateResult", "Guarantee", "ProtocolResult"]
