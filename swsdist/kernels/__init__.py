"""Numeric inner loops: arrays in, arrays out, the same bytes on every machine."""
