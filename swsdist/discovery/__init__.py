"""Measures of term discovery: what recurs in speech nobody transcribed, against phones and words.

Input: classes of fragments, pairs of fragments, or a parse. Times are integers of 1 us, so that no comparison depends on
rounding. Programs give other numbers, each a mode (`swsdist.registry.registries.DISCOVERY_MODES`).
docs/concepts/discovery-measures.md.
"""
