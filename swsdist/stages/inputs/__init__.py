"""Inputs of a run: documents, queries, references, stores, models and their oddities; settings that scores depend on."""
