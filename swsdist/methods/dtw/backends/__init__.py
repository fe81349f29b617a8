"""Backends of the exact search, which find the same bytes: int16 vectors of a CPU, its BLAS, or a GPU."""
