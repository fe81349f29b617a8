"""Measures: counts and values computed from trials."""
