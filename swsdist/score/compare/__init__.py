"""Comparison of systems: tests, intervals, breakdowns."""
