"""SUPERB's query-by-example search beside s3prl's own `quesst14_dtw`: MTWV on the same frames, and CPU.

A folder in the form of QUESST 2014 is made of real speech, its queries and documents. Frames are MFCC; layers of a random
encoder as wide as a base model, of which s3prl searches the first queries; and, if it lies beside the checkout, layers of
Whisper base, in windows of 30 s, as the command has them, and on each recording's own length, in every third document.
`--s3prl` names the unpacked source of s3prl 0.4.18, whose code is called unchanged; it needs dtw-python, lxml, scipy, torch
and tqdm. Its pool has one process; audio is read, and frames are made, by us alone.
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

import numpy as np
import pyarrow as pa

import swsdist
from benchmarks.corpora import base, read
from benchmarks.encoders import MODEL
from benchmarks.rows import Row, at_least, at_most, say, show
from swsdist.evaluation.scoring_task import read_system
from swsdist.features.ssl.extractor import Ssl
from swsdist.features.ssl.folder import read_encoder
from swsdist.pipeline.operation.progress import Progress
from swsdist.store.reading import Store
from swsdist.testing.synthesis.encoder import make_encoder
from swsdist_recipes.quesst.database import QuesstDatabase, read_quesst_database
from swsdist_recipes.quesst.made import Recording, write_quesst
from swsdist_recipes.superb.plans import LANGUAGE, System
from swsdist_recipes.superb.running import Superb, run_superb, scored

_WIDTH, _LAYERS = 768, 2
#: Queries that s3prl searches with the encoder's frames.
_FEW = 12
#: Whisper in windows takes a second for each document: every third is enough.
_THIRD = 3
#: Options of `ssl` that the command sets for Whisper.
_OWN = ("short_seconds", "window_seconds")
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
    encoder = scratch / "encoder"
    make_encoder(str(encoder), "hubert", width=_WIDTH, layers=_LAYERS, num_conv_pos_embeddings=4)
    sets = ("executor.kind=serial",)
    mfcc = System("mfcc", [{"name": "mfcc"}], {0: "mfcc"}, sets=sets)
    wide = System.of_model("random", str(encoder), range(_LAYERS + 1), sets=sets)
    rows = _measured("MFCC", mfcc, scratch, s3prl)
    rows += _measured(f"random encoder, {_WIDTH} wide", wide, scratch, s3prl, most=_FEW)
    if MODEL.is_dir():
        layers = range(read_encoder(str(MODEL)).layers + 1)
        own = tuple(f"features.options.{name}={Ssl.model_fields[name].default}" for name in _OWN)
        windows = System.of_model("windows", str(MODEL), layers, sets=sets)
        rows += _measured("Whisper base", windows, scratch, s3prl, every=_THIRD)
        length = System.of_model("length", str(MODEL), layers, sets=(*sets, *own))
        rows += _measured("Whisper base, own length", length, scratch, s3prl, every=_THIRD)
    return rows


def _measured(
    name: str, system: System, scratch: Path, s3prl: Path | None, most: int | None = None, every: int = 1
) -> list[Row]:
    """All layers by us, in one document of `every`; of dev the best layer by s3prl, of its first `most` queries."""
    say(f"superb: {name}")
    folder = scratch / f"quesst14Database-{every}"
    if not folder.is_dir():
        _make(folder, scratch, every)
    database = read_quesst_database(folder, LANGUAGE)
    ours = run_superb(system, database, str(scratch / system.name), Progress())
    return [*_of_layers(name, ours), *_beside(name, ours, system, database, folder, s3prl, most)]


def _make(folder: Path, scratch: Path, every: int) -> None:
    """Documents; first examples of the queries are those of dev, second ones of eval."""
    corpus = base(scratch)
    documents = corpus.rows()[::every]
    names = {row["doc_id"]: f"quesst14_{k:05d}" for k, row in enumerate(documents, 1)}
    queries: dict[str, dict[str, Recording]] = {"dev": {}, "eval": {}}
    for row in read(corpus.queries):
        split = {1: "dev", 2: "eval"}.get(int(row["example"]))
        if split is not None:
            queries[split][f"quesst14_{split}_{row['query_id']}"] = Recording(Path(row["path"]), LANGUAGE)
    assert corpus.references is not None
    pairs = [(row["query_id"], names[row["doc_id"]]) for row in read(corpus.references) if row["doc_id"] in names]
    write_quesst(
        folder,
        {names[row["doc_id"]]: Recording(Path(row["path"]), LANGUAGE) for row in documents},
        queries,
        {
            split: [(name, document) for query, document in pairs if (name := f"quesst14_{split}_{query}") in some]
            for split, some in queries.items()
        },
    )


def _of_layers(name: str, ours: Superb) -> list[Row]:
    rows = [Row(f"{name}, layer {layer}: MTWV on dev", values["mtwv"], "") for layer, values in ours.dev.items()]
    return [
        *rows,
        Row(f"{name}, layer {ours.best}: MTWV on eval", ours.eval["mtwv"], ""),
        Row(f"{name}: frames of all layers", sum(ours.cpu[stage] for stage in _MODEL), "CPU s"),
    ]


def _beside(
    name: str,
    ours: Superb,
    system: System,
    database: QuesstDatabase,
    folder: Path,
    s3prl: Path | None,
    most: int | None,
) -> list[Row]:
    """A search of dev with the best layer, by both; by s3prl of the first `most` queries."""
    ratio = f"{name}: CPU of s3prl / ours, a query of a layer"
    if s3prl is None:
        return [Row(f"{ratio} (s3prl's source is not given: --s3prl FOLDER)", None, "")]
    queries = len(ours.dev) * len(database.queries["dev"]) + len(database.queries["eval"])
    spent = sum(seconds for stage, seconds in ours.cpu.items() if stage not in _MODEL) / queries
    trials, searched, by_them = _by_s3prl(s3prl, folder, Path(ours.folder.root), system.tracks[ours.best], most)
    rows = [
        Row(f"{name}: a query of a layer", spent, "CPU s"),
        Row(f"{name}: a query of a layer by s3prl", by_them / searched, "CPU s"),
        Row(ratio, by_them / searched / spent, "", at_least(100)),
    ]
    if most is None:
        difference = abs(ours.dev[ours.best]["mtwv"] - scored(trials, database.truth["dev"])["mtwv"])
        rows.append(Row(f"{name}: difference of MTWV from s3prl's", difference, "", at_most(0.001)))
        apart = _apart(ours.lists["dev"], trials)
        rows.append(Row(f"{name}: largest difference of a normalised score from s3prl's", apart, ""))
    return rows


def _apart(one: pa.Table, other: pa.Table) -> float:
    """The largest difference of two lists with the same trials."""
    keys = ["query_id", "doc_id"]
    both = one.select([*keys, "score"]).join(
        other.select([*keys, "score"]), keys, right_suffix="_other", join_type="inner"
    )
    assert len(both) == len(one) == len(other)
    return float(np.abs(both["score"].to_numpy() - both["score_other"].to_numpy()).max())


def _by_s3prl(s3prl: Path, folder: Path, run: Path, track: str, most: int | None) -> tuple[pa.Table, int, float]:
    """Its list of dev, its queries, and the CPU seconds of normalising frames, matching, and writing the list."""
    import torch

    datarc = {"dataset_root": str(folder), "batch_size": 1, "num_workers": 0}
    downstream = _expert(s3prl).DownstreamExpert(1, {**_CONFIG, "datarc": datarc}, str(folder))
    paths = [path.stem for path in downstream.get_dataloader("dev").dataset.data]
    every = downstream.test_dataset.n_queries
    downstream.test_dataset.n_queries = queries = every if most is None else min(most, every)
    names = [*paths[:queries], *paths[every:]]
    frames = dict(_frames(run, track))
    records: dict[str, list[Any]] = {"features": [], "audio_names": []}
    downstream.forward("dev", [torch.from_numpy(frames[name]) for name in names], names, records)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    before = _cpu()
    downstream.log_records("dev", records)
    spent = _cpu() - before
    torch.set_num_threads(threads)
    return read_system(str(folder / "benchmark.stdlist.xml"), conventions="quesst").detections, queries, spent


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
