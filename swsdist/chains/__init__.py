"""The chains of stages, one folder each."""
