"""Transforms of an extractor's frames (`features.transforms` of a config)."""
