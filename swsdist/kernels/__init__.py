"""Numeric inner loops: arrays in, arrays out; those of the search give the same bytes on every machine."""
