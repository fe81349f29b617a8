"""Formats of the NIST evaluations, a file each."""
