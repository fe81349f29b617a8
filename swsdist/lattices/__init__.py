"""Lattices and transcripts of recognisers: reading, and preparation for search."""
