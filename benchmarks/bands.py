"""An archive of mixed bandwidth, and what the word likely is worth, in the store that `swsdist index FOLDER` makes.

Mboshi dev, first examples. Right hits among each query's first ten: of features up to 8 kHz and up to 3.7 kHz, for queries as
they are and through a channel of 8 kHz. Of hits that are called likely, by the package's prior and by one of the run's other
queries: how many are right, and which part of the right ones among the first ten they are. Then nine places of .7 s in a
recording of ten minutes that came by telephone (300 to 3400 Hz, mu-law), beside an hour that did not: the worst rank of the own
place.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import soundfile
import soxr
from scipy.signal import butter, sosfilt

from benchmarks.corpora import ROOT, mboshi
from benchmarks.rows import Row, at_most, main, say
from swsdist import api
from swsdist.calibrate.likelihood import MFCC, WORDS, Likelihood, Prior
from swsdist.config import load_config
from swsdist.core.types import TRIALS
from swsdist.pipeline.chain_run import StepSelection
from swsdist.stages.buckets import Measured

_FOLDER = ROOT / "swsdist" / "config" / "folder.yaml"
_RATE = 16000
#: Parts of the queries.
_FOLDS = 5


def measure(scratch: Path) -> list[Row]:
    """All of it."""
    found = mboshi()
    if found is None:
        return [Row("bands (Mboshi dev is not beside the checkout)", None, "")]
    corpus = found.documents.parent
    narrow = _through_8_khz(corpus, scratch / "narrow")
    rows: list[Row] = []
    for fmax in (8000, 3700):
        for word, queries in (("as they are", corpus / "queries.csv"), ("through 8 kHz", narrow)):
            name = f"features up to {fmax / 1000:g} kHz, queries {word}"
            say(f"bands: {name}")
            run = scratch / f"{fmax}-{queries.parent.name}"
            sets = [
                f"features={json.dumps(_features(fmax))}",
                f"index.store={scratch / f'store-{fmax}'}",
                "queries.trim=none",
                "report.exports=[]",
                "executor.kind=serial",
            ]
            given = {"documents": corpus / "docs.csv", "queries": queries, "references": corpus / "refs.csv"}
            config = load_config(_FOLDER, sets, corpus={k: str(v) for k, v in given.items()}, run=str(run))
            result = api.run(config)
            trials = pa.concat_tables([TRIALS.empty_table(), *result.outcome.chain_run.read("trials")])
            (told,) = result.outcome.chain_run.results("measures", Measured)
            rows += [Row(f"{name}: MTWV", told.measures["mtwv"], ""), *_likely(name, trials)]
    rows.append(Row("marked places of a telephone recording: worst rank", _worst_rank(corpus, scratch), "", at_most(1)))
    return rows


def _likely(name: str, trials: pa.Table) -> list[Row]:
    """What likely hits are worth: by the package's prior, and by those of other queries."""
    hits = trials.filter(trials["score"].is_valid()).sort_by([("query_id", "ascending"), ("score", "descending")])
    words = hits["query_id"].combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
    scores, truths = hits["score"].to_numpy(), hits["ref_start"].is_valid().to_numpy()
    correct = truths & (np.arange(len(words)) - np.searchsorted(words, words) < 10)
    fitted = np.zeros(len(words), bool)
    for fold in range(_FOLDS):
        others, own = words % _FOLDS != fold, words % _FOLDS == fold
        prior = Prior.of_words(words[others], scores[others], truths[others])
        fitted[own] = Likelihood(*prior, judged=0).likely(scores[own]) >= WORDS["likely"]
    rows = [Row(f"{name}: right among the first ten", int(correct.sum()), "")]
    for by, likely in (
        ("the package's prior", Likelihood(*MFCC, judged=0).likely(scores) >= WORDS["likely"]),
        ("other queries", fitted),
    ):
        right = float(truths[likely].mean()) if likely.any() else None
        rows += [
            Row(f"{name}: likely hits by {by} that are right", right, ""),
            Row(f"{name}: right ones that are likely by {by}", float(likely[correct].mean()), ""),
        ]
    return rows


def _features(fmax: int) -> list[dict[str, Any]]:
    """Those of the folder's config, up to another frequency."""
    made = load_config(_FOLDER, corpus={"documents": "x"}, run="x").features
    return [{**one.model_dump(mode="json", exclude_defaults=True), "options": {"fmax": fmax}} for one in made]


def _through_8_khz(corpus: Path, folder: Path) -> Path:
    """The table of the queries' first examples, which came through a rate of 8 kHz."""
    folder.mkdir(parents=True)
    table = pa_csv.read_csv(corpus / "queries.csv").to_pylist()
    with (folder / "queries.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["query_id", "example", "path", "speaker"])
        writer.writeheader()
        for row in (row for row in table if row["example"] == 1):
            samples, rate = soundfile.read(corpus / row["path"])
            path = folder / f"{row['query_id']}.wav"
            soundfile.write(path, soxr.resample(samples, rate, 8000), 8000)
            writer.writerow({"query_id": row["query_id"], "example": 1, "path": path.name, "speaker": row["speaker"]})
    return folder / "queries.csv"


def _worst_rank(corpus: Path, scratch: Path) -> float:
    """Of nine places in a recording that came by telephone, in a store of MFCC up to half the rate."""
    say("bands: marked places")
    archive = scratch / "archive"
    archive.mkdir()
    paths = sorted((corpus / "audio").iterdir())
    tapes = {"telephone": paths[:200], "first": paths[200:700], "second": paths[700:]}
    for name, parts in tapes.items():
        samples = np.concatenate([soundfile.read(path, dtype="float32")[0] for path in parts])
        if name != "telephone":
            soundfile.write(archive / f"{name}.flac", samples, _RATE)
            continue
        band = butter(6, (300, 3400), "band", fs=8000, output="sos")
        passed = sosfilt(band, soxr.resample(samples, _RATE, 8000))
        soundfile.write(archive / "telephone.wav", passed, 8000, subtype="ULAW")
    (scratch / "archive.yaml").write_text(
        f"run: {scratch / 'archived'}\ncorpus: {{documents: {archive}}}\nexecutor: {{kind: serial}}\n"
    )
    api.run(load_config(scratch / "archive.yaml"), selection=StepSelection(until="index"))
    seconds, worst = soundfile.info(archive / "telephone.wav").duration, 0
    for k in range(1, 10):
        start = round(seconds * k / 10, 2)
        found = api.search(
            str(scratch / "archived" / "store"), f"{archive}/telephone.wav:{start}-{start + 0.7:.2f}", top=500
        )
        own = (found["doc_id"] == "telephone") & (found["end"] > start) & (found["start"] < start + 0.7)
        worst = max(worst, int(np.argmax(own.to_numpy())) + 1 if own.any() else 501)
    return float(worst)


if __name__ == "__main__":
    main(measure, __doc__)
