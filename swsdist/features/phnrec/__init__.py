"""Phoneme recognisers of BUT's phnrec, computed from their original files of weights.

Two networks process 16 frames of mel energies to the left and to the right of a frame, and a third merges their
outputs. The weights are licensed for research and education, and are not part of this package.

Sources: P. Schwarz, "Phoneme recognition based on long temporal context" (PhD thesis, Brno University of Technology,
2009); P. Schwarz, P. Matejka, J. Cernocky, "Hierarchical structures of neural networks for phoneme recognition" (ICASSP
2006).
"""
