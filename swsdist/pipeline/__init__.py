"""The machinery of chains, stages, tasks and receipts, the driver that runs them, and what runs cost; no stage is known by name."""
