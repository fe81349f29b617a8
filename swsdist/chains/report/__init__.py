"""Reports: that of a run, and the description of a corpus."""
