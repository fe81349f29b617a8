"""A store that grows, changes and shrinks is always what a plain dict of its documents says, and `check` finds it whole.

Each rule changes the folder of recordings; `index` brings the store up to date, through the same stage that a run uses.
"""

import csv
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from swsdist.config import config_from_dict
from swsdist.features.mfcc import Mfcc
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain_run import StepSelection
from swsdist.pipeline.driver import run_stages
from swsdist.pipeline.operation.cleaning import clean
from swsdist.pipeline.operation.progress import Progress
from swsdist.store.maintaining import check, compact
from swsdist.store.reading import Store

OPTIONS = {"sample_rate": 1000, "n_fft": 32, "win_length": 25, "hop_length": 10, "n_mels": 8, "n_mfcc": 4, "deltas": 1}
NAMES = st.sampled_from(["a", "b", "c", "d", "e"])
SPEAKERS = st.sampled_from(["", "one", "two"])
FRAMES = st.integers(1, 40)


class StoreMachine(RuleBasedStateMachine):
    """The model: `audio`, the recordings as they are in the folder; `indexed`, as they were when last indexed."""

    def __init__(self) -> None:
        super().__init__()
        self.temporary = tempfile.TemporaryDirectory(prefix="swsdist-test-")
        self.root = Path(self.temporary.name)
        self.audio: dict[str, tuple[np.ndarray, str]] = {}
        self.indexed: dict[str, tuple[np.ndarray, str]] = {}
        self.rejected: set[str] = set()
        self.tried: set[str] = set()
        self.frozen: dict[tuple[str, str], bytes] = {}
        self.taken_from: set[tuple[str, bytes]] = set()
        self.shards: dict[str, str] = {}
        self.clock = 0
        self.extractor = Mfcc(**OPTIONS)

    def teardown(self) -> None:
        self.temporary.cleanup()

    @property
    def folder(self) -> Folder:
        return Folder(str(self.root / "run" / "store"))

    def write(self, name: str, frames: int, speaker: str, seed: int) -> None:
        samples = np.random.default_rng(seed).normal(scale=0.1, size=32 + (frames - 1) * 10).astype(np.float32)
        path = self.root / f"{name}.wav"
        soundfile.write(path, samples, 1000, subtype="FLOAT")
        self.clock += 1  # a file system's clock may be too coarse for us
        os.utime(path, ns=(self.clock, self.clock))
        self.audio[name] = samples, speaker

    @initialize(seed=st.integers(0, 99))
    def first(self, seed: int) -> None:
        self.write("a", 10, "one", seed)

    @rule(name=NAMES, frames=FRAMES, speaker=SPEAKERS, seed=st.integers(0, 99))
    def add_or_change(self, name: str, frames: int, speaker: str, seed: int) -> None:
        self.write(name, frames, speaker, seed)

    @precondition(lambda self: len(self.audio) > 1)
    @rule(data=st.data())
    def remove(self, data: Any) -> None:
        del self.audio[data.draw(st.sampled_from(sorted(self.audio)))]

    @precondition(lambda self: self.audio)
    @rule(data=st.data())
    def rename_speaker(self, data: Any) -> None:
        name = data.draw(st.sampled_from(sorted(self.audio)))
        self.audio[name] = self.audio[name][0], data.draw(SPEAKERS)

    @rule(name=st.sampled_from(["x", "y"]))
    def add_a_bad_one(self, name: str) -> None:
        (self.root / f"{name}.wav").write_bytes(b"no sound at all")
        self.rejected.add(name)
        self.tried.discard(name)  # written anew, it is tried again

    @rule(shards=st.sampled_from([None, 1, 2, 3]))
    def index(self, shards: int | None) -> None:
        with (self.root / "docs.csv").open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow(("doc_id", "path", "speaker"))
            table.writerows((name, f"{name}.wav", speaker) for name, (_, speaker) in sorted(self.audio.items()))
            table.writerows((name, f"{name}.wav", "") for name in sorted(self.rejected))
        values = {"run": str(self.root / "run"), "corpus": {"documents": str(self.root / "docs.csv")}}
        values |= {"features": {"name": "mfcc", "options": OPTIONS}, "index": {"shards": shards}}
        changed = self.indexed.keys() != self.audio.keys() or any(
            self.indexed[name] is not value for name, value in self.audio.items()
        )
        outcome = run_stages(
            config_from_dict({**values, "executor": {"kind": "serial"}}, "."), StepSelection(until="index"), Progress()
        )
        assert outcome.failures == []
        # Nothing new, nothing done: what was rejected is not tried again.
        assert changed or outcome.tasks_done <= len(self.rejected - self.tried)
        self.tried = set(self.rejected)
        self.indexed = dict(self.audio)
        self.freeze()
        for shard in Store(self.folder).manifest.shards:
            # A shard is never rewritten.
            assert self.shards.setdefault(shard.name, shard.files["mfcc"].sha256) == shard.files["mfcc"].sha256

    def freeze(self) -> None:
        """Once all that the collection's were taken from is gone, all are taken anew."""
        recordings = {(name, samples.tobytes()) for name, (samples, _) in self.indexed.items()}
        if not self.taken_from & recordings:
            self.taken_from = recordings
            self.frozen = {}

    @precondition(lambda self: self.indexed)
    @rule(hours=st.sampled_from([1.0, 0.2 / 3600]))
    def compact(self, hours: float) -> None:
        assert 1 <= compact(self.folder, hours).shards <= len(self.indexed)
        clean(self.folder, 0.0, dry=False)

    @invariant()
    def is_the_model(self) -> None:
        if not self.indexed:
            return
        store = Store(self.folder)
        rows = {row["doc_id"]: row for row in store.documents().to_pylist()}
        assert sorted(rows) == sorted(self.indexed)
        for name, (samples, speaker) in self.indexed.items():
            expected = self.extractor.extract(samples)
            assert store.features(name).tobytes() == expected.tobytes()
            assert rows[name]["speaker"] == (speaker or None)
            assert rows[name]["frames"] == len(expected)
        assert store.manifest.counts["documents"] == len(rows)
        assert store.manifest.counts["frames"] == sum(row["frames"] for row in rows.values())
        in_shards = sorted(
            key for shard in store.manifest.shards for key in {b.doc_id for b in store.blocks(shard.name)}
        )
        assert in_shards == sorted(rows)

    @invariant()
    def is_whole(self) -> None:
        if self.indexed:
            assert list(check(Store(self.folder))) == []

    @invariant()
    def statistics_stay(self) -> None:
        """Those of a speaker, and of the collection, are frozen when first indexed, while a recording of the first is left."""
        if not self.indexed:
            return
        found = Store(self.folder).statistics()
        for scope, value in found.items():
            assert self.frozen.setdefault(scope, value.mean.tobytes()) == value.mean.tobytes()
        assert self.frozen.keys() == found.keys()
        gone = self.taken_from - {(name, each[0].tobytes()) for name, each in self.indexed.items()}
        assert Store(self.folder).manifest.counts["statistics_gone"] == len(gone)


StoreMachine.TestCase.settings = settings(
    max_examples=12, stateful_step_count=14, suppress_health_check=[HealthCheck.too_slow]
)
test_store_is_a_dict = StoreMachine.TestCase
