"""Accounts of cost: journals of processes, peak memory, GPUs, hardware."""
