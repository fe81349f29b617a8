"""Frames to other frames: what stands behind an extractor in `features.transforms`, a file each."""
