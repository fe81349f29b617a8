"""Registries: names that a config can use, their entries, and the built-in ones."""
