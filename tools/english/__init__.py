"""A corpus of spoken English on which a recogniser works, made from nothing: see `tools.english.__main__`."""
