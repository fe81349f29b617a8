"""The machinery of chains, stages, tasks and receipts, and the driver that runs them; it knows no stage by its name."""
