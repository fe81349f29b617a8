"""This module reads a finished run, local or `s3://`: its config, and its scored system, to compare it with others."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.chains.search.inputs import SearchInputs
from swsdist.chains.search.point import spans_of
from swsdist.chains.search.told import Measured
from swsdist.config import Config, load_config
from swsdist.errors import UserError
from swsdist.evaluation.properties import Scored, decided, threshold_of, valued_at
from swsdist.io.filesystem import Folder
from swsdist.pipeline.inspection.recorded import recorded
from swsdist.score.measures.protocol import protocol_of
from swsdist.score.measures.twv import PER_TERM


def run_config(folder: str, sets: Sequence[str] = ()) -> Config:
    """The config of a run folder; its paths are absolute, wherever it lies.

    Args:
        folder: local or `s3://`.
        sets: as of `swsdist.config.load_config`.

    Raises:
        UserError: there is none.
        ConfigError: it is wrong, or `sets` are.
    """
    run = Folder(folder.rstrip("/"))
    if not run.exists("config.yaml"):
        raise UserError("there is no config here", where=folder, remedy="name a run folder, or a config file")
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / "config.yaml"
        copy.write_bytes(run.read_bytes("config.yaml"))
        return load_config(copy, sets)


def from_run(name: str, path: str) -> Scored:
    """A run folder that has been scored, local or `s3://`.

    Raises:
        UserError: it was not scored.
    """
    course = recorded(Folder(path))
    told = course.told("score", Measured)
    if not told:
        raise UserError(
            "this run was not scored", where=path, remedy="give references (corpus.references) and run it again"
        )
    measures, point = told[0].measures, told[0].point

    def parts() -> Iterable[pa.Table]:
        return course.read("align.final", "trials")

    rules = protocol_of(course.config.score)
    own: SearchInputs = course.chain.own
    # As trials name them: documents, or the recordings that they are places in.
    by_place = rules.trials == "document"
    store = own.open_store()
    found = store.documents(columns=["doc_id", "channel", "duration"]) if by_place else spans_of(store)
    seconds = pc.if_else(pc.equal(found["channel"], 1), found["duration"], 0.0)
    documents = pa.table({"doc_id": found["doc_id"], "seconds": seconds})
    terms = pa.concat_tables(course.read("measure", "terms")).sort_by("query_id")
    cut = threshold_of(*(measures[key] for key in ("mtwv_threshold", "mtwv_pmiss", "mtwv_pfa")))
    return Scored(
        name,
        decided(terms.select(PER_TERM.names)),
        valued_at(parts(), cut, point["trials"], point["beta"]),
        cut,
        parts,
        point["trials"],
        point["beta"],
        rules.rules.rate(rules.trials_per_second),
        documents,
        reject_all=rules.rules.rejects_all,
    )
