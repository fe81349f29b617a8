"""Benchmarks of a config: indexing and searching with different numbers of workers and sizes of data."""
