"""The chain lattices: from lattices of files, of a recogniser or of frames to a scored report."""
