"""Errors, codes, schemas of tables, times and fingerprints."""
