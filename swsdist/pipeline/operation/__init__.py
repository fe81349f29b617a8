"""Operating a run through its folder: events, status, cancelling, cleaning."""
