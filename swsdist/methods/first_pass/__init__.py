"""First passes, which propose windows for the exact search to visit."""
