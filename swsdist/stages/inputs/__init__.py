"""Inputs of a run: documents, queries, references, stores, models and their oddities; the settings that scores depend on."""
