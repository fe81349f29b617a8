"""What a search without a run found, for a person: hits by query, as lines, as clips and as a page."""
