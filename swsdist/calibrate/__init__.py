"""Scores made comparable between queries, and the threshold that decides."""
