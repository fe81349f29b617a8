"""The chain phones: from audio and posteriors to phone lattices, in which spoken and written queries are searched."""
