"""Each chain of stages has a folder."""
