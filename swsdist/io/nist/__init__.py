"""Formats of the NIST evaluations, one per file."""
