"""The description of a corpus for a paper."""
