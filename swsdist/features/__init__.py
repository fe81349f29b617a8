"""From samples to frames: extractors, their registry, and statistics for normalisation."""
