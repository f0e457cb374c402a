"""Compiled kernels: scalars and C-contiguous arrays in, numbers out, no Python objects."""
