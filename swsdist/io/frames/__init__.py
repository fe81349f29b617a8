"""Frames that other programs made: where those of a key are, and reading them. A file a format; `archive` knows them all."""
