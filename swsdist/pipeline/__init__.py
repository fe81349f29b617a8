"""The machinery of chains, stages, tasks and receipts, the driver of runs, and their costs; it knows no stage by its name."""
