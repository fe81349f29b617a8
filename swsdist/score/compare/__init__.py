"""Comparison of systems: paired tests, intervals, and breakdowns."""
