"""The training data of a calibration, and whether it overlaps the test data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from swsdist.calibrate.procedure import ENTRY, fingerprint_references, overlaps, read_fitted
from swsdist.config import Config
from swsdist.core.codes import families
from swsdist.core.codes import stages as codes
from swsdist.core.fingerprint import fingerprint, parse_json
from swsdist.features.fitting.interface import load_model
from swsdist.features.interface import files_of as interface_files_of
from swsdist.features.transforms.interface import Transformed
from swsdist.io.filesystem import Folder, locate
from swsdist.io.notices import Notices
from swsdist.pipeline.status import load_chain_run
from swsdist.pipeline.task import Values
from swsdist.stages.fit_transforms import document_hash
from swsdist.stages.inputs.corpus_documents import score_differences
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


def supervisions(chain_inputs: CorpusInputs) -> list[Supervision]:
    """Supervisions of all of a run's tracks; for a fusion those of its systems."""
    chain_runs: Mapping[str, ChainRun] = getattr(chain_inputs, "chain_runs", {})
    if chain_runs:
        return list(
            dict.fromkeys(
                supervision for chain_run in chain_runs.values() for supervision in supervisions(chain_run.chain.inputs)
            )
        )
    result = []
    searched: set[str] | None = None
    for source in chain_inputs.features.sources:
        transforms = source.extractor.transforms if isinstance(source.extractor, Transformed) else ()
        for transform in transforms:
            if not hasattr(transform, "labels"):
                continue
            for path in interface_files_of(transform):
                settings = load_model(*locate(str(path))).settings.get("taught_by")
                if not isinstance(settings, dict):
                    continue
                if searched is None:
                    searched = {
                        document_hash(row)
                        for row in chain_inputs.corpus.documents.select(["doc_id", "channel"]).to_pylist()
                    }
                trained_on = settings["documents"]
                both = len(searched.intersection(trained_on))
                track, automatic = source.tracks[0].name, bool(settings["automatic"])
                result.append(Supervision(track, transform.name, settings["file"], len(trained_on), both, automatic))
    return result


def note_supervision(chain_inputs: CorpusInputs, notices: Notices) -> None:
    """Note each supervision by labels of searched documents: its results are no fair test.

    Raises:
        OddError: with `strict`.
    """
    for supervision in supervisions(chain_inputs):
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


def provenance(config: Config, chain_inputs: CorpusInputs) -> Values:
    """The entries of a calibration's `trained_on` that name the system and the corpus.

    Returns:
        `system`: its name; `scores`: the settings that scores depend on; `documents`: a fingerprint of the documents'
            ids;
        `labels`, if labels were used to fit features: their file and number of documents; `references`: see
        `swsdist.calibrate.procedure`.
    """
    keys = zip(
        chain_inputs.corpus.documents["doc_id"].to_pylist(),
        chain_inputs.corpus.documents["channel"].to_pylist(),
        strict=True,
    )
    result: Values = {"system": config.system, "scores": chain_inputs.scores(), "documents": fingerprint(sorted(keys))}
    if chain_inputs.corpus.references is not None:
        result[ENTRY] = fingerprint_references(chain_inputs.corpus.references)
    by_labels = {
        f"{supervision.track}: {supervision.name}": supervision.said for supervision in supervisions(chain_inputs)
    }
    return {**result, "labels": by_labels} if by_labels else result


def calibration_place(path: str, storage: Mapping[str, object], where: str) -> str:
    """The calibration file for a name: the file itself, or that of a finished run.

    Args:
        path: of a file or a run, local or `s3://`.
        storage: options for s3fs.
        where: the name in messages.

    Raises:
        ConfigError: the run has fitted nothing.
        StoreError: the run is not finished.
    """
    run = Folder(path.rstrip("/"), storage)
    if not run.exists("plan.json"):
        return path
    chain_run = load_chain_run(run)
    parts = chain_run.table("calibration").parts if chain_run.ended("calibration") else []
    if not parts:
        raise families.UNFITTED("the run has no fitted calibration", "name one with references, or a file", where=where)
    return run.path(parts[0].name)


def calibration_file(path: str, storage: Mapping[str, object], where: str = "") -> bytes:
    """Read the calibration of an earlier run, from its file or the finished run's folder.

    Args:
        path: of a file or a run, local or `s3://`.
        storage: options for s3fs.
        where: the name in messages; by default that of `calibrate.fit`.

    Raises:
        ConfigError: the file does not exist.
        StoreError: the run is not finished.
    """
    where = where or f"calibrate.fit: {path}"
    return read_fitted(calibration_place(path, storage, where), storage, where)


def files_of(config: Config) -> dict[str, Callable[[], bytes]]:
    """Readers of the calibration that a config names, by its name; empty if it names none."""
    fit = config.calibrate.fit
    return {} if fit in ("none", "crossfit", "oracle") else {fit: partial(calibration_file, fit, config.storage)}


def named_calibration(config: Config, chain_inputs: CorpusInputs) -> tuple[bytes, bool]:
    """The content of the calibration file that a config names, and whether it was fitted on the scored data; notes
    mismatches.

    Raises:
        ConfigError: the file does not exist.
        StoreError: the run is not finished.
    """
    path = config.calibrate.fit
    data = calibration_file(path, config.storage)
    if chain_inputs.is_first(f"{config.system}, {path}"):
        note_provenance(data, path, config, chain_inputs, chain_inputs.notices)
    scored = chain_inputs.corpus.references is not None and chain_inputs.corpus.references.num_rows > 0
    return data, scored and is_of_scored(data, config, chain_inputs)


def note_provenance(data: bytes, path: str, config: Config, chain_inputs: CorpusInputs, notices: Notices) -> None:
    """Note a calibration fitted to another system's scores, or on the very documents it decides on.

    A calibration of other documents, or other queries, is the intended use. Files of lists do not record what their
    scores depend on.
    """
    try:
        training = parse_json(data)["trained_on"]
    except (ValueError, KeyError, TypeError):
        return  # its reader reports the defect
    if "scores" in training and (others := score_differences(chain_inputs.scores(), training["scores"])):
        notices.add(
            codes.CALIBRATION_OF_OTHER_SCORES,
            where=f"{path}, of system {training.get('system')}: {'; '.join(others)}",
            count=1,
        )
    if is_of_scored(data, config, chain_inputs):
        notices.add(codes.CALIBRATION_ON_TEST_DATA, where=path, count=1)


def is_of_scored(data: bytes, config: Config, chain_inputs: CorpusInputs) -> bool:
    """Whether a calibration was fitted on the scored data: by its occurrences, or by its documents if it records none."""
    try:
        training = parse_json(data)["trained_on"]
    except (ValueError, KeyError, TypeError):
        return False
    overlap = overlaps(training, chain_inputs.corpus.references)
    if overlap is not None:
        return overlap
    return isinstance(training, dict) and training.get("documents") == provenance(config, chain_inputs)["documents"]
