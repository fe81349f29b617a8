"""The programs of ZeroSpeech's term discovery track, as modes of `swsdist score-discovery`: their numbers, faults included."""

from __future__ import annotations

from swsdist.registry.entries import DiscoveryModeEntry

#: zerospeech/tdev2 2.0.3.
TDEV2 = DiscoveryModeEntry("swsdist_recipes.zerospeech.tdev2:score", 1, needs=("words",), known=True)

#: bootphon/tde, branch zerospeech2017.
TDE1 = DiscoveryModeEntry(
    "swsdist_recipes.zerospeech.tde1:score", 1, needs=("words", "split", "gold_classes", "folds"), instants=True
)
