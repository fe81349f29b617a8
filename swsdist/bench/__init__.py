"""Benchmarks of a config on one's own machines: indexing and searching at many numbers of workers and sizes of data."""
