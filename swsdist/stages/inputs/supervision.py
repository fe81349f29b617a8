"""Features fitted by labels: a run that uses them is not zero resource, and says so."""

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
        track, name: the track, and the transform's name.
        file: name of the file of labels.
        documents: that it was fitted on.
        searched: number of these in the searched corpus.
        automatic: the labels are from a program without supervision.
    """

    track: str
    name: str
    file: str
    documents: int
    searched: int
    automatic: bool

    @property
    def said(self) -> str:
        """Wording of the supervision of its features."""
        whose = "automatic labels" if self.automatic else "labels"
        return f"trained on {whose} of {self.documents} documents ({self.file})"


def supervisions(own: CorpusInputs) -> list[Supervision]:
    """Supervisions of all of a run's tracks; for a fusion those of its systems."""
    chain_runs: Mapping[str, ChainRun] = getattr(own, "chain_runs", {})
    if chain_runs:
        return list(
            dict.fromkeys(
                supervision for chain_run in chain_runs.values() for supervision in supervisions(chain_run.chain.inputs)
            )
        )
    result = []
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
                trained_on = settings["documents"]
                both = len(searched.intersection(trained_on))
                track, automatic = source.tracks[0].name, bool(settings["automatic"])
                result.append(Supervision(track, transform.name, settings["file"], len(trained_on), both, automatic))
    return result


def note_supervision(own: CorpusInputs, notices: Notices) -> None:
    """Note each supervision by labels of searched documents: its results are no fair test.

    Raises:
        OddError: with `strict`.
    """
    for supervision in supervisions(own):
        if supervision.searched and not supervision.automatic:
            notices.add(
                codes.ORACLE_FEATURES,
                where=supervision.file,
                count=supervision.searched,
                transform=supervision.name,
                track=supervision.track,
                training=supervision.said,
            )
        else:
            notices.inform(
                codes.SUPERVISED_FEATURES,
                where=supervision.file,
                transform=supervision.name,
                track=supervision.track,
                training=supervision.said,
                count=1,
            )
