"""Glossaries: words, their judged places and who judged them, and exports to other programs."""
