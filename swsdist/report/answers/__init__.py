"""Hits of a search without a run, for a person: by query, as lines, clips and a page."""
