"""Stores: shards of frames or lattices, the documents in them, and one manifest that names both."""
