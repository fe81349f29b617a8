"""Trials: alignment, segments, documents, and the look-up of terms in transcripts."""
