"""Frames to other frames, each by itself: what stands behind an extractor in `features.transforms`, a file each."""
