"""The asv suites, and what they share with the README tables."""
