"""Benchmarks of a config with different numbers of workers and sizes of data."""
