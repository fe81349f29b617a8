"""Chains of stages: search, lattices, discover, fuse and sweep, and the reports at their ends."""
