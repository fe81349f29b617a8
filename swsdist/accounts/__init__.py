"""Accounts of cost: journals, peak memory, hardware, and the factors ISF, SSF, PMU and PL."""
