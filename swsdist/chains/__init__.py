"""Chains of stages: search, lattices, discover, fuse and sweep, a folder each; what they report."""
