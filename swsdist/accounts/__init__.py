"""Accounts tell what work costs: journals, peaks, hardware, and the factors made of them (ISF, SSF, PMU, PL)."""
