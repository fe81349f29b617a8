"""The chain words: from audio to word lattices by a recogniser, in which written and spoken queries are searched as text."""
