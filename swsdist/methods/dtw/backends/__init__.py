"""Implementations of the exact search, which find the same bytes: vectors of the CPU, its BLAS, a GPU."""
