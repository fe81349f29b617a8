"""Queries, from sound to frames that are ready to be searched."""
