"""Reduction of candidates to detections: overlaps removed, N best kept, statistics summed."""
