"""Likelihood-ratio simulation of experiments at any scale, and audits of observed histograms."""

from fastshuffle.monte_carlo.auditing import AuditResult, Evidence, audit
from fastshuffle.monte_carlo.profile import MonteCarloProfile
from fastshuffle.monte_carlo.simulate import monte_carlo_profile
from fastshuffle.monte_carlo.simulation import Simulation

__all__ = [
    "AuditResult",
    "Evidence",
    "MonteCarloProfile",
    "Simulation",
    "audit",
    "monte_carlo_profile",
]
