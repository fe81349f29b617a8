"""Frames from other programs: find items by key, and read them. A file per format; `archive` knows them all."""
