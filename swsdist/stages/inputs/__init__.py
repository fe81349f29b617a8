"""Inputs of a run: documents, queries, references, stores and models, their oddities, and the settings that scores depend on."""
