"""Inputs of the chain discover: the store, and the options."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
from pydantic import Field

from swsdist.audio.speech import unpack_marks
from swsdist.config.model import Config
from swsdist.config.search import Search
from swsdist.config.section import Section
from swsdist.core.arrays import Bools
from swsdist.core.codes import families
from swsdist.discovery.clusters import Clustering
from swsdist.discovery.neighbours import Boundaries, Matching, Neighbours, Segments, Stretches
from swsdist.kernels.arithmetic import MAX_DISTANCE, weighted
from swsdist.kernels.distances.interface import Distance, Side
from swsdist.methods.dtw.shard import Documents
from swsdist.pipeline.ledger import Ledger
from swsdist.registry.entries import checked
from swsdist.registry.registries import CHAINS
from swsdist.stages.inputs.search_inputs import SearchInputs
from swsdist.store.reading import Store, Tracks
from swsdist.store.same_sound import SOUND, Key, copies


def stretches(
    store: Store, shard: str, search: Search, keys: Collection[Key] | None = None, side: Side = "document"
) -> Iterator[tuple[Key, Stretches, Distance]]:
    """Documents of a shard, all or some, with their frames and the distance between frames.

    A document has the length of its shortest track."""
    documents = Documents(store, [shard], search.model_copy(update={"skip_silence": False}))
    stored = list(zip(documents.table["doc_id"].to_pylist(), documents.table["channel"].to_pylist(), strict=True))
    chosen = np.array([keys is None or key in keys for key in stored], np.bool_)
    if not chosen.any():
        return
    marks = speech(store, shard)
    for k, blocks in documents.stream(chosen=chosen, side=side):
        frames, spoken = np.concatenate(list(blocks)), marks[stored[k]]
        yield stored[k], Stretches(frames[: len(spoken)], spoken[: len(frames)]), documents.distance


def unit_of(search: Search) -> int:
    """The integer that represents a distance of 1 in every stream."""
    terms = search.terms()
    return int(weighted([(term.distance, term.weight) for term in terms]).unit * sum(term.weight for term in terms))


def speech(store: Store, shard: str) -> dict[Key, Bools]:
    """Whether each frame of a shard's documents is speech, by any track computed from audio: bool (frames,)."""
    result = {}
    for row in Tracks(store).documents(shard, ["doc_id", "channel", "frames", "speech"]).to_pylist():
        result[row["doc_id"], row["channel"]] = unpack_marks(row["speech"], row["frames"]).astype(np.bool_)
    return result


class DiscoverOptions(Section):
    """The options of the chain discover."""

    segments: Segments = Field(Segments(), description="stretches whose signatures are compared")
    neighbours: Neighbours = Field(Neighbours(), description="how pairs of them are proposed")
    matching: Matching = Field(Matching(), description="how two are aligned")
    clustering: Clustering = Field(Clustering(), description="how matches become classes")
    boundaries: Boundaries = Field(Boundaries(), description="where words may begin and end")
    rest: int = Field(5, ge=1, description="frames of the shortest stretch that a parse leaves as a token of its own")

    @property
    def apart(self) -> int:
        """Least frames between the first frames of two segments of a document: they do not overlap, nor do matches."""
        return max(self.segments.frames, self.matching.frames)


#: Keys of the section `search` that make the distance of two frames.
_USED = ("distance", "normalise", "streams", "floor", "cap", "distance_options", "documents_by")


class DiscoverInputs(SearchInputs):
    """The inputs of a config.

    Raises:
        ConfigError: an option is invalid, the level is too high for the distance, or a key of the section `search` is
            not used.
    """

    def __init__(self, config: Config, ledger: Ledger) -> None:
        super().__init__(config, ledger)
        self._copies: tuple[str, dict[Key, Key]] | None = None
        for key in config.search.changed():
            if key not in _USED:
                raise families.UNUSED_OPTION(
                    "the chain discover does not use {key}: it takes the distances of frames, no method of search",
                    "remove it",
                    where=f"search.{key}",
                    key=key,
                )
        self.options = DiscoverOptions.model_validate(checked(CHAINS, "discover", config.options, "options"))  # type: ignore[type-var]
        level, unit = self.options.matching.level, unit_of(config.search)
        if round(level * unit) >= MAX_DISTANCE:  # of frames without speech, which may add to no match
            raise families.INVALID_VALUE(
                "no frames are farther apart than the level {level}: all would add to a match, silence too",
                "give less than {most:.4g}, the greatest distance",
                where="options.matching.level",
                level=level,
                most=MAX_DISTANCE / unit,
            )

    @property
    def copies(self) -> dict[Key, Key]:
        """Documents of the store that are left out because they are copies, and the original of each."""
        store = self.store.open()
        state = store.manifest.fingerprint
        if self._copies is None or self._copies[0] != state:
            self._copies = state, copies(Tracks(store).documents(columns=list(SOUND)))
        return self._copies[1]

    def read(self, labels: frozenset[str]) -> None:
        """Read the corpus.

        Raises:
            UserError: speech is unknown, because all frames are of other programs.
        """
        if not self.from_audio:
            raise families.MISSING_INPUT(
                "frames of other programs do not tell where speech is",
                "add a track that is made of the recordings to features, such as mfcc",
                where="features",
            )
        self.demand_searchable()
        super().read(labels)
