"""Several systems' lists become one: joined, filled, weighed."""
