"""SUPERB's query-by-example search beside s3prl's own `quesst14_dtw`: MTWV on the same frames, and CPU.

A folder in the form of QUESST 2014 is made of real speech, its queries and documents; frames are MFCC, and a layer of a random
encoder that is as wide as a base model. `--s3prl` names the unpacked source of s3prl 0.4.18, whose code is called unchanged; it
needs dtw-python, lxml, scipy, torch and tqdm. Its pool has one process; audio is read, and frames are made, by us alone.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import sys
import tempfile
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

import swsdist
from benchmarks.corpora import base, read
from benchmarks.rows import Row, at_least, at_most, say, show
from swsdist.chains.superb.plans import LANGUAGE, System
from swsdist.chains.superb.running import Superb, run_superb, scored
from swsdist.corpora.quesst import QuesstDatabase, read_quesst_database
from swsdist.io.quesst import read_quesst_list
from swsdist.pipeline.operation.progress import Progress
from swsdist.store.reading import Store
from swsdist.testing.synthesis.encoder import make_encoder
from swsdist.testing.synthesis.quesst import Recording, write_quesst

_DOCUMENTS, _QUERIES, _WIDTH, _LAYERS = 400, 40, 768, 2
#: Stages that make frames.
_MODEL = ("index", "queries")
#: Its configuration file, as SUPERB uses it.
_CONFIG: dict[str, Any] = {
    "max_workers": 1,
    "feature_normalization": True,
    "silence_frame": None,
    "dtwrc": {"step_pattern": "asymmetric", "minmax_norm": True, "subsequence": True, "dist_method": "cosine_exp"},
}


def measure(scratch: Path, s3prl: Path | None) -> list[Row]:
    """Search with both."""
    folder = scratch / "quesst14Database"
    _make(folder, scratch)
    database = read_quesst_database(folder, LANGUAGE)
    encoder = scratch / "encoder"
    make_encoder(str(encoder), "hubert", width=_WIDTH, layers=_LAYERS, num_conv_pos_embeddings=4)
    systems = {
        "MFCC": System("mfcc", [{"name": "mfcc"}], {0: "mfcc"}, sets=("executor.kind=serial",)),
        f"random encoder, {_WIDTH} wide": System.of_model(
            "random", str(encoder), range(_LAYERS + 1), sets=("executor.kind=serial",)
        ),
    }
    rows: list[Row] = []
    for name, system in systems.items():
        say(f"superb: {name}")
        run = scratch / system.name
        ours = run_superb(system, database, str(run), Progress())
        rows += _of_layers(name, ours)
        rows += _beside(name, ours, system, database, folder, run, s3prl)
    return rows


def _make(folder: Path, scratch: Path) -> None:
    """The first documents, and queries with references in them: first examples are of dev, second ones of eval."""
    corpus = base(scratch)
    documents = {row["doc_id"]: row for row in corpus.rows()[:: max(1, len(corpus.rows()) // _DOCUMENTS)][:_DOCUMENTS]}
    pairs = [(row["query_id"], row["doc_id"]) for row in read(corpus.references) if row["doc_id"] in documents]
    chosen = list(dict.fromkeys(query for query, _ in pairs))[:_QUERIES]
    names = {doc_id: f"quesst14_{k:05d}" for k, doc_id in enumerate(documents, 1)}
    queries: dict[str, dict[str, Recording]] = {"dev": {}, "eval": {}}
    for row in read(corpus.queries):
        split = {1: "dev", 2: "eval"}.get(int(row["example"]))
        if split is not None and row["query_id"] in chosen:
            place = corpus.queries.parent / row["path"]
            queries[split][f"quesst14_{split}_{row['query_id']}"] = Recording(place, LANGUAGE)
    write_quesst(
        folder,
        {names[doc_id]: Recording(Path(row["path"]), LANGUAGE) for doc_id, row in documents.items()},
        queries,
        {split: [(f"quesst14_{split}_{q}", names[d]) for q, d in pairs if q in chosen] for split in queries},
    )


def _of_layers(name: str, ours: Superb) -> list[Row]:
    rows = [Row(f"{name}, layer {layer}: MTWV on dev", values.max_twv, "") for layer, values in ours.dev.items()]
    return [
        *rows,
        Row(f"{name}, layer {ours.best}: MTWV on eval", ours.eval.max_twv, ""),
        Row(f"{name}: frames of all layers", sum(ours.cpu[stage] for stage in _MODEL), "CPU s"),
    ]


def _beside(
    name: str, ours: Superb, system: System, database: QuesstDatabase, folder: Path, run: Path, s3prl: Path | None
) -> list[Row]:
    """A search of dev with the best layer, by both."""
    both = (f"{name}: MTWV less that of s3prl", f"{name}: CPU of s3prl / ours, a search of a layer")
    if s3prl is None:
        return [Row(f"{text} (s3prl's source is not given: --s3prl FOLDER)", None, "") for text in both]
    searches = len(ours.dev) + 1
    own = sum(seconds for stage, seconds in ours.cpu.items() if stage not in _MODEL) / searches
    trials, spent = _by_s3prl(s3prl, folder, run, system.tracks[ours.best], run)
    values = scored(trials, database.truth["dev"])
    return [
        Row(f"{name}: a search of a layer", own, "CPU s"),
        Row(f"{name}: a search of a layer by s3prl", spent, "CPU s"),
        Row(both[0], abs(ours.dev[ours.best].max_twv - values.max_twv), "", at_most(0.001)),
        Row(both[1], spent / own, "", at_least(100)),
    ]


def _by_s3prl(s3prl: Path, folder: Path, run: Path, track: str, out: Path) -> tuple[pa.Table, float]:
    """Its list of dev, and the CPU seconds of normalising frames, matching, and writing the list."""
    import torch

    expert = _expert(s3prl)
    datarc = {"dataset_root": str(folder), "batch_size": 1, "num_workers": 0}
    downstream = expert.DownstreamExpert(1, {**_CONFIG, "datarc": datarc}, str(out))
    names = [path.stem for path in downstream.get_dataloader("dev").dataset.data]
    frames = dict(_frames(run, track))
    records: dict[str, list[Any]] = {"features": [], "audio_names": []}
    downstream.forward("dev", [torch.from_numpy(frames[name]) for name in names], names, records)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    before = _cpu()
    downstream.log_records("dev", records)
    spent = _cpu() - before
    torch.set_num_threads(threads)
    return read_quesst_list(str(out / "benchmark.stdlist.xml")), spent


def _expert(s3prl: Path) -> Any:
    """Its module, without the package around it; what loads audio is left out."""
    effects = types.ModuleType("torchaudio.sox_effects")
    effects.apply_effects_file = None  # type: ignore[attr-defined]
    sys.modules.setdefault("torchaudio", types.ModuleType("torchaudio"))
    sys.modules.setdefault("torchaudio.sox_effects", effects)
    place = s3prl / "s3prl" / "downstream" / "quesst14_dtw"
    spec = importlib.util.spec_from_file_location(
        "quesst14_dtw", place / "__init__.py", submodule_search_locations=[str(place)]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["quesst14_dtw"] = package
    spec.loader.exec_module(package)
    return importlib.import_module("quesst14_dtw.expert")


def _frames(run: Path, track: str) -> Iterator[tuple[str, Any]]:
    """Frames of documents and queries, by id; each group of queries has a state of its own."""
    groups = sorted(path.stem.partition("-")[2] for path in (run / "queries").glob("manifest-*.json"))
    stores = [
        swsdist.open_store(run / "store"),
        *(Store.at(str(run / "queries"), state, storage={}) for state in groups),
    ]
    for store in stores:
        for doc_id in store.documents(columns=["doc_id"], track=track)["doc_id"].to_pylist():
            yield doc_id, store.features(doc_id, track=track)


def _cpu() -> float:
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows to this file")
    parser.add_argument("--s3prl", type=Path, metavar="FOLDER", help="unpacked source of s3prl 0.4.18")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="swsdist-bench-") as scratch:
        measured = measure(Path(scratch), arguments.s3prl)
    show(measured, arguments.json)
