"""A made-up language with several voices: speech for demonstrations and tests, without a recording or a download.

`phonology` says which sounds there are and makes words of them, `voice` draws speakers, `articulation` turns a sentence
into control tracks (what the mouth does every 5 ms), `signal` turns the tracks into sound, and `corpus` writes the
folder. Everything is drawn from one seed. Why not a synthesiser from a package registry:
docs/decisions/0004-demo-corpus.md.

Sources: Klatt, "Software for a cascade/parallel formant synthesizer", JASA 67 (1980), for the filters and the order of
magnitude of the tables; Klatt and Klatt, JASA 87 (1990), for the glottal pulse; Fant, "Acoustic Theory of Speech
Production" (1960), for source and filter and the scaling by the length of the vocal tract.
"""

from __future__ import annotations

from swsdist.testing.synthesis.corpus import make_corpus

__all__ = ["make_corpus"]
