"""Features that were fitted by labels: a run that has them is not zero resource, and says so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from swsdist.core.codes import stages as codes
from swsdist.features.interface import files_of
from swsdist.features.model import load_model
from swsdist.features.transforms.interface import Transformed
from swsdist.io.filesystem import locate
from swsdist.io.notices import Notices
from swsdist.stages.fit_transforms import document_hash
from swsdist.stages.inputs.search_inputs import CorpusInputs

if TYPE_CHECKING:
    from swsdist.pipeline.chain_run import ChainRun


class Supervision(NamedTuple):
    """A transform that was fitted by labels.

    Attributes:
        track, name: whose it is, and which.
        file: the labels, by the name of their file.
        documents: that it was fitted on.
        searched: how many of these are searched now.
        automatic: the labels are a program's, which was told nothing.
    """

    track: str
    name: str
    file: str
    documents: int
    searched: int
    automatic: bool

    @property
    def said(self) -> str:
        """What its features are."""
        whose = "automatic labels" if self.automatic else "labels"
        return f"trained on {whose} of {self.documents} documents ({self.file})"


def supervisions(own: CorpusInputs) -> list[Supervision]:
    """All of a run's tracks; of a fusion those of its systems."""
    chain_runs: Mapping[str, ChainRun] = getattr(own, "chain_runs", {})
    if chain_runs:
        return list(
            dict.fromkeys(one for chain_run in chain_runs.values() for one in supervisions(chain_run.chain.inputs))
        )
    found = []
    searched: set[str] | None = None
    for source in own.features.sources:
        transforms = source.extractor.transforms if isinstance(source.extractor, Transformed) else ()
        for transform in transforms:
            if not hasattr(transform, "labels"):
                continue
            for path in files_of(transform):
                settings = load_model(*locate(str(path))).settings.get("taught_by")
                if not isinstance(settings, dict):
                    continue
                if searched is None:
                    searched = {
                        document_hash(row) for row in own.corpus.documents.select(["doc_id", "channel"]).to_pylist()
                    }
                known = settings["documents"]
                both = len(searched.intersection(known))
                track, automatic = source.tracks[0].name, bool(settings["automatic"])
                found.append(Supervision(track, transform.name, settings["file"], len(known), both, automatic))
    return found


def note_supervision(own: CorpusInputs, notices: Notices) -> None:
    """Note each that was fitted by labels of documents that are searched: its results are no test of it.

    Raises:
        OddError: that is not to be tolerated.
    """
    for one in supervisions(own):
        if one.searched and not one.automatic:
            notices.add(
                codes.ORACLE_FEATURES,
                where=one.file,
                count=one.searched,
                transform=one.name,
                track=one.track,
                training=one.said,
            )
        else:
            notices.inform(
                codes.SUPERVISED_FEATURES,
                where=one.file,
                transform=one.name,
                track=one.track,
                training=one.said,
                count=1,
            )
