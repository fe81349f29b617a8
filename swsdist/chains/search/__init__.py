"""The chain search: from audio and spoken queries to a scored report."""
