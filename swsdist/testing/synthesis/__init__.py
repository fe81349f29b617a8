"""Synthetic speech in an invented language, with several voices, for demonstrations and tests.

`signal` has sounds and words, speakers, control tracks of a sentence (one point per 5 ms), and sound from the tracks;
`corpus` writes the folder. All random choices come
from one seed. For the reasons against an existing synthesiser see docs/decisions/0004-demo-corpus.md.

Sources: Klatt, "Software for a cascade/parallel formant synthesizer", JASA 67 (1980), for the filters and the order of
magnitude of the tables; Klatt and Klatt, JASA 87 (1990), for the glottal pulse; Fant, "Acoustic Theory of Speech
Production" (1960), for source and filter and the scaling by the length of the vocal tract.
"""

from __future__ import annotations

from swsdist.testing.synthesis.corpus import make_corpus

__all__ = ["make_corpus"]
