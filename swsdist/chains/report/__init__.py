"""The report at the end of the chain search."""
