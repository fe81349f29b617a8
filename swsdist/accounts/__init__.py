"""Accounts of cost: journals of processes, their records, peak memory and hardware."""
