"""A server for tests of the page alone: the API with made-up answers, one process, nothing kept."""
