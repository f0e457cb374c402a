"""References straight from the definitions; nothing here imports the package under test."""
