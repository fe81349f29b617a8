"""Sweeps: many points of a config in one ledger, and the chain `sweep`, which scores one search at many points."""
