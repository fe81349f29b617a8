"""Chains, stages, tasks and receipts; the driver of runs, and their costs. It knows no stage by its name."""
