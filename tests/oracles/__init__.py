"""Definitions, written plainly and slowly, that tests hold the fast code to."""
