"""Executors run tasks, in this process or on Ray."""
