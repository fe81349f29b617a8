"""What a calibration was fitted on, and whether that is what it is applied to."""

from __future__ import annotations

import json
from collections.abc import Mapping

from swsdist.chains.search.inputs import SearchInputs
from swsdist.config import Config
from swsdist.errors import ConfigError
from swsdist.fingerprint import fingerprint
from swsdist.io.filesystem import locate
from swsdist.io.notices import Notices
from swsdist.pipeline.task import Values


def provenance(config: Config, own: SearchInputs) -> Values:
    """The entries of a calibration's `trained_on` that name the system and the corpus.

    Returns:
        `system`: its name; `scores`: a fingerprint of all that scores before calibration depend on; `documents`: one of the
        documents' ids.
    """
    search, calibrate = config.search, config.calibrate
    steps = [[name, calibrate.options.get(name)] for name in calibrate.steps]
    keys = zip(own.documents["doc_id"].to_pylist(), own.documents["channel"].to_pylist(), strict=True)
    return {
        "system": config.system,
        "scores": fingerprint([one.fingerprint for one in own.sources], search.matters(), search.examples, steps),
        "documents": fingerprint(sorted(keys)),
    }


def calibration_file(path: str, storage: Mapping[str, object]) -> bytes:
    """The content of a file of an earlier run's calibration.

    Raises:
        ConfigError: there is none.
    """
    folder, name = locate(path, storage)
    try:
        return folder.read_bytes(name)
    except FileNotFoundError:
        raise ConfigError(
            "there is no such file",
            where=f"calibrate.fit: {path}",
            remedy="name a file below calibration/ of an earlier run",
        ) from None


def tell_of_provenance(data: bytes, path: str, mine: Values, notices: Notices) -> None:
    """Tell of a calibration that another system's scores were fitted to, or that is of the very documents it decides on.

    One of other documents is what a file is for. Files that do not say what they were fitted on, of lists, tell nothing.
    """
    try:
        theirs = json.loads(data)["trained_on"]
        scores, documents = theirs["scores"], theirs["documents"]
    except (ValueError, KeyError, TypeError):
        return  # who reads the file says what is wrong with it
    if scores != mine["scores"]:
        notices.add(
            "calibration that was fitted to the scores of another system",
            where=f"{path}: of {theirs.get('system')!r}, and this is {mine['system']!r}",
            remedy="what is a good score differs between features, distances and steps: fit it to this system's",
        )
    if documents == mine["documents"]:
        notices.add(
            "calibration that was fitted on the documents that it decides on",
            where=path,
            remedy="the decisions are optimistic: fit it on other documents, or by crossfit (calibrate.fit)",
        )
