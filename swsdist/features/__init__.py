"""Features: frames from samples, their transforms, models fitted to a corpus, and statistics for normalisation."""
