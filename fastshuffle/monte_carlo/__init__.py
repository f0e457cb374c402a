"""Likelihood-ratio simulation of experiments at any scale."""

from fastshuffle.monte_carlo.profile import MonteCarloProfile
from fastshuffle.monte_carlo.simulate import monte_carlo_profile
from fastshuffle.monte_carlo.simulation import Simulation

__all__ = ["MonteCarloProfile", "Simulation", "monte_carlo_profile"]
