"""Every built-in thing that a config can name: a line each. What another package adds: see `swsdist.registry`."""

from __future__ import annotations

from swsdist.registry import Entry, Registry

#: Samples to frames.
FEATURES: Registry[Entry] = Registry(
    "feature extractor", "swsdist.features", "features.name", {"mfcc": Entry("swsdist.features.mfcc:Mfcc", 1)}
)

#: A config and its ledger to a checked chain (`swsdist.pipeline.chain.Chain`).
CHAINS: Registry[Entry] = Registry(
    "chain", "swsdist.chains", "chain", {"search": Entry("swsdist.chains.search.chain:build", 1)}
)
