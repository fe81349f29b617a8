"""Phoneme recognisers of BUT's phnrec, computed from their original files of weights.

The recogniser is that of P. Schwarz, "Phoneme recognition based on long temporal context" (PhD thesis, Brno University of
Technology, 2009), and of P. Schwarz, P. Matejka, J. Cernocky, "Hierarchical structures of neural networks for phoneme
recognition" (ICASSP 2006): two networks look at 16 frames of mel energies to the left and to the right of a frame, and a third
one merges what they say. The weights are licensed for research and education, and are no part of this package.
"""
