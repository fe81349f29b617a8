"""Term discovery: finding what recurs in untranscribed speech, and measures of it against phones and words.

Input of measures: classes of fragments, pairs of fragments, or a parse. Times are integers of 1 us, so that no
comparison depends on rounding. Programs give different numbers, each a mode
(`swsdist.registry.registries.DISCOVERY_MODES`); see docs/concepts/discovery-measures.md.
"""
