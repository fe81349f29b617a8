"""Corpora as others keep them, into our tables: Kaldi's data folders, NIST's lists."""
