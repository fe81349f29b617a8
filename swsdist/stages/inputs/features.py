"""The features that a config names, with the fitted models that a store has."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from swsdist.config import Config
from swsdist.core.errors import UserError
from swsdist.features.interface import Extractor, Precomputed, kind_of, libraries_of
from swsdist.features.sources import Source, sources_of
from swsdist.io.filesystem import Folder
from swsdist.stages.inputs.unfitted_models import UnfittedModel, with_models
from swsdist.stages.buckets import Extracted, Indexed
from swsdist.store.libraries import Libraries, with_these


class RunFeatures:
    """Extractors and tracks of a config, with the models in the folder of its store.

    Attributes:
        anew: whether models that the store has are fitted again.
    """

    anew = False

    def __init__(self, config: Config, store: Folder) -> None:
        self._config, self._store = config, store

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """The config's extractors with the store's models, and the tracks of each."""
        return sources_of(with_models(self._config.features, self._config.corpus, self._store)[0])

    @cached_property
    def from_audio(self) -> bool:
        """Whether an extractor needs recordings."""
        try:
            return any(isinstance(source.extractor, Extractor) for source in self.sources)
        except UserError:
            return True  # code that needs the extractor reports the fault

    @property
    def fitted(self) -> list[UnfittedModel]:
        """Extractors and transforms that the chain fits, as far as their inputs are known."""
        return with_models(self._config.features, self._config.corpus, self._store, self.anew)[1]

    def libraries(self, recorded: Libraries, results: Sequence[Indexed | Extracted]) -> Libraries:
        """Versions of the libraries that a store's parts were made with: recorded ones, and those of finished tasks."""
        used_by = [name for source in self.sources for name in libraries_of(source.extractor)]
        parts = [item.libraries for item in results if item.libraries]
        return with_these(recorded, parts, [name for item in results for name in item.ffmpeg], used_by)

    def has_model(self, unfitted_model: UnfittedModel) -> bool:
        """Whether the store has the model."""
        return self._store.exists(unfitted_model.file)

    @property
    def recipes(self) -> list[list[str]]:
        """Name, and fingerprint of the recipe, of each track."""
        return [[track.name, source.fingerprint] for source in self.sources for track in source.tracks]

    @property
    def tracks(self) -> dict[str, tuple[int, int]]:
        """First column, and the column after the last, of each track, all side by side."""
        result, first = {}, 0
        for track in (track for source in self.sources for track in source.tracks):
            result[track.name] = first, (first := first + track.stop - track.first)
        return result

    @property
    def kinds(self) -> dict[str, str]:
        """What each track holds: features, posteriors, logits; or given frames that say no more."""
        return {
            track.name: "given features"
            if isinstance(source.extractor, Precomputed) and kind_of(source.extractor) == "features"
            else kind_of(source.extractor)
            for source in self.sources
            for track in source.tracks
        }

    @property
    def extractor_fingerprint(self) -> str:
        """Fingerprint of the first extractor: name, version, options, and content of its files."""
        return self.sources[0].fingerprint
