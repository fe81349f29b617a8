"""Recipes: evaluations and systems that are imitated for the record, made of the public parts of swsdist. A folder each."""
