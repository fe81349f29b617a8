"""Operating a run from outside: events, how far it is, cancelling it, and cleaning up after it; by its folder alone."""
