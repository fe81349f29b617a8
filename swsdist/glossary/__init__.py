"""Glossaries: words, their judged places, who judged them, and what becomes of them in other programs."""
