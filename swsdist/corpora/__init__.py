"""Corpora of tables, of folders, and of lists of Kaldi, lhotse, NIST and Hugging Face."""
