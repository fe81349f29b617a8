"""Recurrences of warping paths, a file each."""
