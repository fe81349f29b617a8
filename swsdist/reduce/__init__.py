"""From candidates to detections: overlaps out, the best kept, statistics for normalisation."""
