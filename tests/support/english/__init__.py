"""A corpus of spoken English on which a recogniser works, made from nothing: see `tests.support.english.__main__`."""
