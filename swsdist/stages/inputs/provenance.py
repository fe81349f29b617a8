"""What a calibration was fitted on, and whether that is what it is applied to."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial

from swsdist.calibrate.training_overlap import ENTRY, fingerprint_references, overlaps, read_fitted
from swsdist.config import Config
from swsdist.core.codes import stages as codes
from swsdist.core.fingerprint import fingerprint
from swsdist.io.filesystem import Folder
from swsdist.io.notices import Notices
from swsdist.pipeline.inspection.loading import load_chain_run
from swsdist.pipeline.task import Values
from swsdist.stages.inputs.search_inputs import CorpusInputs
from swsdist.stages.inputs.settings import score_differences
from swsdist.stages.inputs.supervision import supervisions


def provenance(config: Config, own: CorpusInputs) -> Values:
    """The entries of a calibration's `trained_on` that name the system and the corpus.

    Returns:
        `system`: its name; `scores`: what of the config scores depend on; `documents`: a fingerprint of the documents' ids;
        `labels`, where features were fitted by labels: which, and of how many documents; `references`: see
        `swsdist.calibrate.training_overlap`.
    """
    keys = zip(own.corpus.documents["doc_id"].to_pylist(), own.corpus.documents["channel"].to_pylist(), strict=True)
    found: Values = {"system": config.system, "scores": own.scores(), "documents": fingerprint(sorted(keys))}
    if own.corpus.references is not None:
        found[ENTRY] = fingerprint_references(own.corpus.references)
    by_labels = {f"{one.track}: {one.name}": one.said for one in supervisions(own)}
    return {**found, "labels": by_labels} if by_labels else found


def calibration_place(path: str, storage: Mapping[str, object], where: str) -> str:
    """The file that a name stands for: itself, or in a finished run's folder what that run has fitted.

    Args:
        path: of a file or a run, local or `s3://`.
        storage: options for s3fs.
        where: the name, as messages show it.

    Raises:
        ConfigError: the run has fitted nothing.
        StoreError: the run is not finished.
    """
    run = Folder(path.rstrip("/"), storage)
    if not run.exists("plan.json"):
        return path
    parts = load_chain_run(run).parts("fit", "calibration")
    if not parts:
        raise codes.RUN_WITHOUT_CALIBRATION(where=where)
    return run.path(parts[0].name)


def calibration_file(path: str, storage: Mapping[str, object], where: str = "") -> bytes:
    """What an earlier run has fitted: the content of a file, or of that of a finished run's folder.

    Args:
        path: of a file or a run, local or `s3://`.
        storage: options for s3fs.
        where: the name, as messages show it; by default as `calibrate.fit`.

    Raises:
        ConfigError: there is none.
        StoreError: the run is not finished.
    """
    where = where or f"calibrate.fit: {path}"
    return read_fitted(calibration_place(path, storage, where), storage, where)


def files_of(config: Config) -> dict[str, Callable[[], bytes]]:
    """What reads the calibration that a config names, by its name; empty where it names none."""
    fit = config.calibrate.fit
    return {} if fit in ("none", "crossfit", "oracle") else {fit: partial(calibration_file, fit, config.storage)}


def named_calibration(config: Config, own: CorpusInputs) -> tuple[bytes, bool]:
    """The content of the file that a config names, once it was told whether it fits; whether it was fitted on what is scored.

    Raises:
        ConfigError: there is none.
        StoreError: it is a run that is not finished.
    """
    path = config.calibrate.fit
    data = calibration_file(path, config.storage)
    if own.is_first(f"{config.system}, {path}"):
        note_provenance(data, path, config, own, own.notices)
    scored = own.corpus.references is not None and own.corpus.references.num_rows > 0
    return data, scored and is_of_scored(data, config, own)


def note_provenance(data: bytes, path: str, config: Config, own: CorpusInputs, notices: Notices) -> None:
    """Tell of a calibration that another system's scores were fitted to, or that is of the very documents it decides on.

    One of other documents, or of other queries in them, is what a file is for. Files of lists do not say what their scores
    depend on.
    """
    try:
        theirs = json.loads(data)["trained_on"]
    except (ValueError, KeyError, TypeError):
        return  # who reads the file says what is wrong with it
    if "scores" in theirs and (others := score_differences(own.scores(), theirs["scores"])):
        notices.add(
            codes.CALIBRATION_OF_OTHER_SCORES,
            where=f"{path}, of system {theirs.get('system')}: {'; '.join(others)}",
            count=1,
        )
    if is_of_scored(data, config, own):
        notices.add(codes.CALIBRATION_ON_TEST_DATA, where=path, count=1)


def is_of_scored(data: bytes, config: Config, own: CorpusInputs) -> bool:
    """Whether a calibration was fitted on what is scored: by its occurrences; where the file tells none, by its documents."""
    try:
        theirs = json.loads(data)["trained_on"]
    except (ValueError, KeyError, TypeError):
        return False
    known = overlaps(theirs, own.corpus.references)
    if known is not None:
        return known
    return isinstance(theirs, dict) and theirs.get("documents") == provenance(config, own)["documents"]
