"""The search chain ends with this report."""
