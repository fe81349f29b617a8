"""Lattices and transcripts: what recognisers write, read and made ready to be searched."""
