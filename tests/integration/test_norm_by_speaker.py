"""Scores that are normalised by speaker, in a run: as the statistics say, and however the work is cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from swsdist.calibrate.statistics import from_table
from swsdist.calibrate.steps.norms import SpeakerNorm, SpeakerNormOptions
from swsdist.core.codes import families
from swsdist.core.errors import StoreError
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain import Context
from swsdist.reduce.examples import WHO, Speakers
from swsdist.stages.score import speakers_of
from swsdist.store.reading import Store
from tests.support.coded import raises

STEPS = ("calibrate.steps=[speaker-norm]", "report.exports=[]")


def test_scores_are_those_of_the_statistics(scene: Any) -> None:
    normed, plain = scene.run(*STEPS, run="a"), scene.run("report.exports=[]", "calibrate.steps=[q-norm]", run="b")
    store = Store(Folder(str(scene.folder / "a" / "store")))
    documents = store.documents(columns=list(WHO))
    assert len(set(documents["speaker"].to_pylist())) > 1
    raw = next(iter((scene.folder / "a" / "tables" / "detections").glob("*.parquet")))
    known = next(iter((scene.folder / "a" / "tables" / "statistics").glob("*.parquet")))
    table, statistics = pq.read_table(raw), from_table(pq.read_table(known))
    expected = SpeakerNorm(SpeakerNormOptions()).apply(
        Speakers(documents, 0.01).of_detections(table, recordings=False), None, statistics, None
    )
    keys = ["query_id", "doc_id", "channel", "start"]
    there = table.to_pandas()[keys].assign(expected=expected)
    found = normed.detections().merge(there, on=keys)
    assert len(found) == len(there) > 0
    assert np.array_equal(found["score"], found["expected"])
    both = normed.detections().merge(plain.detections(), on=keys)
    assert not np.allclose(both["score_x"], both["score_y"])


def test_documents_are_read_once_a_process(scene: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not once a bucket, in `reduce` and in `normalise`; of another state of the store they are read again."""
    asked: list[list[str] | None] = []
    read = Store.documents

    def counted(self: Store, shard: Any = None, columns: Any = None, track: Any = None, **more: Any) -> pa.Table:
        asked.append(columns)
        return read(self, shard, columns, track, **more)

    monkeypatch.setattr(Store, "documents", counted)
    scene.run(*STEPS, "reduce.buckets=3", run="a")
    monkeypatch.undo()
    in_plan = 1  # the plan of reduce
    assert len(list((scene.folder / "a/tables/detections").glob("*.parquet"))) > 1
    assert asked.count(list(WHO)) == in_plan + 1
    context, root = Context(Folder(str(tmp_path)), {}), str(scene.folder / "a/store")
    state = Store(Folder(root)).manifest.fingerprint
    first = speakers_of((root, state), context)
    assert speakers_of((root, state), context) is first
    with pytest.raises(StoreError, match="this state of the store is gone"):
        speakers_of((root, "0" * 32), context)


def test_it_comes_first(scene: Any) -> None:
    with raises(families.MISMATCH):
        scene.run("calibrate.steps=[q-norm, speaker-norm]")


def test_recordings_of_several_speakers(own_corpus: Any) -> None:
    """Documents that are places in one recording: each detection is normalised by who speaks in its middle."""
    data, table = own_corpus.folder / "data", pd.read_csv(own_corpus.corpus / "docs.csv")
    data.mkdir()
    recording = table["doc_id"][0]
    (data / "wav.scp").write_text(f"{recording} {own_corpus.corpus / table['path'][0]}\n")
    (data / "segments").write_text(f"u1 {recording} 0 1\nu2 {recording} 1 2\n")
    (data / "utt2spk").write_text("u1 ada\nu2 eva\n")
    run = own_corpus.run(*STEPS, f"corpus.documents={data}", "corpus.references=null")
    statistics = from_table(pq.read_table(own_corpus.folder / "run" / "tables" / "statistics"))
    raw = pq.read_table(own_corpus.folder / "run" / "tables" / "detections")
    named = np.array(raw["start"].to_numpy() + raw["end"].to_numpy() >= 2.0, np.int64)
    assert set(named.tolist()) == {0, 1}
    table = raw.append_column("speaker", pa.array(named))
    expected = SpeakerNorm(SpeakerNormOptions()).apply(table, None, statistics, None)
    keys = ["query_id", "doc_id", "channel", "start"]
    found = run.detections().merge(raw.to_pandas()[keys].assign(expected=expected), on=keys)
    assert np.array_equal(found["score"], found["expected"])
