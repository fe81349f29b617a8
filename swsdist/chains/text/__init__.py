"""The chain text: from lattices or transcripts and written terms to a scored report."""
