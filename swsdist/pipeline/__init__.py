"""Chains, stages, tasks, receipts, and who runs them; nothing here knows a stage by its name."""
