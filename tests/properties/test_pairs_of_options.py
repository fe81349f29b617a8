"""Any two settings that are valid alone: a run that has both finishes, or `swsdist check` refuses them.

Rows of a covering array are chosen greedily. A row begins with a pair that no row had, and takes of every other option the
value that brings most new pairs and with which a run starts. Values are those of the registries, so a new entry is tried
without a line here; `NEEDS` has what some cannot be without. HYPOTHESIS_PROFILE=nightly tries all pairs, otherwise so many
rows as take two minutes: the first bring most.
"""

from __future__ import annotations

import csv
import os
import shutil
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from swsdist.config import Config, config_from_dict
from swsdist.config.model import Score
from swsdist.config.search import Search
from swsdist.core.errors import SwsdistError
from swsdist.core.fingerprint import fingerprint
from swsdist.features.transforms.project import projection
from swsdist.io import filesystem
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain_run import ChainRun, StepSelection, prepare_chain_run
from swsdist.pipeline.driver import run_stages
from swsdist.pipeline.ledger import Ledger
from swsdist.pipeline.operation.progress import Progress
from swsdist.pipeline.plan import ONLY
from swsdist.registry.registries import (
    BACKENDS,
    CALIBRATION,
    CHAINS,
    DISTANCES,
    EXPORTS,
    FEATURES,
    FIRST_PASSES,
    METHODS,
    PROTOCOLS,
    RECURRENCES,
    TRANSFORMS,
)
from swsdist.testing.synthesis import make_corpus

pytestmark = pytest.mark.slow

#: Rows that are tried, unless all are.
ROWS = 50

#: Ends that tell of a corpus as small as this one, not of settings.
SMALL = ("one-kind-of-trial", "too-few-queries-to-fit")

Values = dict[str, Any]
#: Of each option, the name of its value; others have their first.
Row = dict[str, str]

MFCC: Values = {"name": "mfcc", "options": {"deltas": 0}}
GMM: Values = {"name": "gmm", "options": {"components": 6, "iterations": 2}}
POSTERIORS: Values = {"features": {**MFCC, "transforms": [GMM]}}
TRACKS: Values = {"features": [{**MFCC, "track": "a"}, {**MFCC, "transforms": [GMM], "track": "b"}]}
PHONES: Values = {
    **POSTERIORS,
    "chain": "phones",
    "options": {"decoding": {"scale": 0.3, "insertion": -8.0, "least": 1e-4, "non_speech": ["g5"]}},
    "search.method": "lattice",
}
TEXT: Values = {
    "corpus.documents": "talks",
    "corpus.queries": "terms.csv",
    "corpus.references": None,
    "search.method": "lattice",
    "calibrate.steps": [],
}
#: What a value cannot be without; of a transform its options.
NEEDS: dict[str, Values] = {
    "columns": {"keep": [1, 3, 5]},
    "correspondence": {"columns": 3, "frames": 2},
    "gmm": GMM["options"],
    "hlda": {"columns": 2},
    "lda": {"columns": 2},
    "pca": {"columns": 4},
    "phones": {"components": 3, "iterations": 1},
    "project": {"model": "model.npz"},
    "chain discover": {"options": {"neighbours": {"beam": 10}}},
    "chain fuse": {"options": {"systems": [{"name": name, "run": name} for name in "ab"]}},
    "chain phones": PHONES,
    "chain text": TEXT,
    "step zt-norm": {"corpus.cohort": "cohort.csv"},
}


def only(key: str, values: Any) -> dict[str, Values]:
    """An option that is a key."""
    return {str(value): {key: value} for value in values}


def choices(section: Any, key: str) -> list[Any]:
    """The values of a key that has a few, its default first."""
    field = section.model_fields[key]
    values = [value for part in [field.annotation, *get_args(field.annotation)] for value in get_args(part)]
    return sorted((value for value in values if isinstance(value, str)), key=lambda value: value != field.default)


def steps(name: str) -> list[str]:
    """A step, with those before it that it cannot be without."""
    entry = CALIBRATION[name]
    before = {"posterior": ["q-norm", "logistic"], "llr": ["q-norm", "llr"]}.get(entry.takes, ["q-norm"])
    return [name] if entry.first else [*before, name]


def options() -> dict[str, dict[str, Values]]:
    """By name, values by name; the first of each is the default. A later option has the last word about a key."""
    transforms = {
        f"mfcc, {name}": [{"name": name, "options": NEEDS.get(name, {})}] for name in TRANSFORMS if name != "log"
    }
    transforms["mfcc, gmm, log"] = [GMM, {"name": "log"}]
    first_passes = {
        f"{name}, {label}": {"search.first_pass": {"name": name, "windows": {"least": 2, "per_second": 0}, **more}}
        for name in FIRST_PASSES
        for label, more in {
            "sum of all": {"sample": 0},
            "sample": {"sample": 9.0, "verify": 1},
            "by document": {"sample": 0, "over": "document"},
        }.items()
    }
    made = {
        "method": {n: {**({} if METHODS[n].queries == "spoken" else PHONES), "search.method": n} for n in METHODS},
        # That of points is the command sweep's.
        "chain": {n: {"chain": n, **NEEDS.get(f"chain {n}", {})} for n in CHAINS if not CHAINS[n].of_points},
        "merge": {"": {}, "best": {"reduce.merge": "best"}, "sum": {**PHONES, "reduce.merge": "sum"}},
        "distance": {
            n: {"search.distance": n, **({"search.normalise": "none", **POSTERIORS} if DISTANCES[n].posteriors else {})}
            for n in DISTANCES
        },
        "drop": {"": {}, "drop": {**POSTERIORS, "search.drop": {"columns": [0, 1]}}},
        "streams": {
            "": {},
            "columns": {
                "search.streams": [
                    {"columns": [0, 3], "weight": 2, "distance": "cosine"},
                    {"columns": [3, 6], "distance": "euclidean"},
                ]
            },
            "track": {
                **TRACKS,
                "search.streams": [{"track": "b", "distance": "kl", "normalise": "none"}, {"track": "a"}],
            },
        },
        "features": {"mfcc": {}, "two tracks": TRACKS}
        | {name: {"features": {"name": name}} for name in FEATURES if name != "mfcc"}
        | {name: {"features": {**MFCC, "transforms": steps}} for name, steps in transforms.items()},
        "dtype": {"float32": {}, "float16": {"dtype": "float16"}},
        "normalise": only("search.normalise", choices(Search, "normalise")),
        "statistics": {
            "": {},
            "documents by speaker": {"search.documents_by": "speaker"},
            "documents by collection": {"search.documents_by": "collection"},
            "queries by collection": {"search.queries_by": "collection"},
            "pooled": {"search.documents_by": "pooled", "search.queries_by": "pooled"},
            "corpus frames": {"search.corpus_frames": 100},
        },
        "recurrence": only("search.recurrence", RECURRENCES),
        "first pass": {"none": {}, **first_passes},
        "skip_silence": only("search.skip_silence", (False, True)),
        "row_range": only("search.row_range", (False, True)),
        "parts": only("search.parts", (False, True)),
        "examples": {"primary": {}}
        | {n: {"search.examples": n, "corpus.examples": "all"} for n in choices(Search, "examples")},
        "trim": only("queries.trim", ("auto", "none")),
        "queries": only("corpus.queries", ("queries.csv", "places.csv")),
        "backend": only("search.backend", BACKENDS),
        "least": only("search.least_query_frames", (1, 20)),
        "overlap": only("reduce.overlap", (0.5, 0, 1)),
        "cohort": {"": {}, "cohort": {"corpus.cohort": "cohort.csv", "calibrate.steps": ["zt-norm"]}},
        "steps": {"": {}} | {n: {"calibrate.steps": steps(n), **NEEDS.get(f"step {n}", {})} for n in CALIBRATION},
        "fit": only("calibrate.fit", ("crossfit", "oracle", "none")),
        "threshold": only("calibrate.threshold", ("own", "fitted")),
        "trials": only("score.trials", choices(Score, "trials"))
        | {"segment": {"score.trials": "segment", "score.speech": "speech.csv", "score.protocol": "kwseval"}},
        # The others of that name differ in two numbers.
        "protocol": only("score.protocol", ("sws2013", *(n for n in PROTOCOLS if not n.startswith("sws201")))),
        "references": {"given": {}, "none": {"corpus.references": None}},
        "own places": {"": {}} | only("corpus.own_places", ("keep", "leave-out")),
        "export": {"": {}} | {n: {"report.exports": [n], "report.clips": 2} for n in EXPORTS},
        "shards": only("index.shards", (1, 3)),
    }
    return {
        option: {name: value if k else {} for k, (name, value) in enumerate(values.items())}
        for option, values in made.items()
    }


OPTIONS = options()


class Scene:
    """A corpus, and what came of rows."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.runs = folder, 0
        make_corpus(folder, documents=8, queries=6, voices=3)
        docs = self._rows("docs.csv")
        with (folder / "phones.ctm").open("w") as file:
            for row in docs:
                file.writelines(
                    f"{row['doc_id']} 1 {k / 10:.1f} 0.1 {'abc'[k * k % 7 % 3]}\n"
                    for k in range(int(10 * float(row["duration"])))
                )
        projection(np.zeros(13), np.eye(13)[:, :4], np.full(13, 50.0)).save(Folder(str(folder)), "model.npz")
        said = {row["query_id"]: row for row in self._rows("refs.csv")}.values()
        (folder / "places.csv").write_text(
            "query_id,doc_id,start,end\n"
            + "".join(f"{r['query_id']},{r['doc_id']},{r['start']},{r['end']}\n" for r in said)
        )
        (folder / "speech.csv").write_text(
            "doc_id,start,end\n" + "".join(f"{d['doc_id']},0,{d['duration']}\n" for d in docs)
        )
        shutil.copy(folder / "queries.csv", folder / "cohort.csv")
        (folder / "talks").mkdir()
        for k in range(3):
            (folder / "talks" / f"t{k}.srt").write_text(f"1\n00:00:00,000 --> 00:00:0{k + 1},000\nthe red house\n")
        (folder / "terms.csv").write_text("query_id,text\na,red house\nb,the\n")
        for name in "ab":
            run_stages(self.config({}).model_copy(update={"run": str(folder / name)}), StepSelection(), Progress())

    def _rows(self, name: str) -> list[dict[str, str]]:
        with (self.folder / name).open(encoding="utf-8", newline="") as text:
            return list(csv.DictReader(text))

    def config(self, row: Row) -> Config:
        given: Values = {
            "run": f"run{self.runs}",
            "corpus": {"documents": "docs.csv", "queries": "queries.csv", "references": "refs.csv"},
            "features": MFCC,
            "report": {"exports": [], "clips": 0, "labels": 1},
            "reduce": {"buckets": 2},
            "calibrate": {"folds": 2},
            "executor": {"kind": "serial"},
            "force": True,  # the corpus is too small to judge how many rows of it are odd
        }
        given["corpus"]["alignments"] = {"phones": "phones.ctm"}
        for option, values in OPTIONS.items():
            for key, value in values[row.get(option, next(iter(values)))].items():
                *sections, last = key.split(".")
                place = given
                for section in sections:
                    place = place.setdefault(section, {})
                place[last] = value
        if given.pop("dtype", None):
            tracks = given["features"] if isinstance(given["features"], list) else [given["features"]]
            given["features"] = [{**track, "dtype": "float16"} for track in tracks]
        store = fingerprint(given["features"], given["corpus"]["documents"], given.get("index"))
        given.setdefault("index", {})["store"] = f"store-{store[:12]}"
        return config_from_dict(given, self.folder)

    def prepared(self, row: Row) -> ChainRun:
        """Raises what a run would before its first task."""
        config = self.config(row)
        return prepare_chain_run(ONLY, config, Ledger(Folder(config.run)), StepSelection())

    def refused(self, row: Row) -> str:
        """Why a run would not start."""
        try:
            chain_run = self.prepared(row)
            chain_run.chain.inputs.read(frozenset(step.name for step in chain_run.steps))
        except SwsdistError as error:
            return str(error)
        return ""

    def checked(self, row: Row) -> str:
        """What `check` finds bad; empty if nothing."""
        try:
            chain = self.prepared(row).chain
            return next((one.text for one in chain.check(chain.inputs) if one.good is False), "") if chain.check else ""
        except SwsdistError as error:
            return str(error)

    def ran(self, row: Row) -> str:
        """What a run ends with; empty if it finishes."""
        self.runs += 1
        try:
            outcome = run_stages(self.config(row), StepSelection(), Progress())
        except SwsdistError as error:
            return "" if error.code in SMALL else f"{type(error).__name__}: {error}"
        except Exception as error:
            return f"traceback: {type(error).__name__}: {error}"
        finally:
            shutil.rmtree(self.folder / f"run{self.runs}", ignore_errors=True)
        return "; ".join(f"{failure.task.stage}: {failure.message}" for failure in outcome.failures)


def smallest(row: Row, holds: Callable[[Row], object]) -> Row:
    """What is left of a row without the values that may be missing while it holds."""
    for option in list(row):
        rest = {name: value for name, value in row.items() if name != option}
        if holds(rest):
            row = rest
    return row


def pairs_of(row: Row) -> set[frozenset[tuple[str, str]]]:
    return set(map(frozenset, combinations(row.items(), 2)))


def complete(row: Row, fits: Callable[[Row], bool], open_pairs: set[frozenset[tuple[str, str]]]) -> Row:
    """A row with a value of each option."""
    for option, values in OPTIONS.items():
        if option in row:
            continue
        new = {value: sum(frozenset(((option, value), item)) in open_pairs for item in row.items()) for value in values}
        default = next(iter(values))
        for value in sorted(values, key=lambda value: -new[value]):
            if value == default or (new[value] > 0 and fits({**row, option: value})):
                row = {**row, option: value}
                break
        else:
            row = {**row, option: default}
    return row


def test_two_settings_that_are_valid_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filesystem, "_flush_to_disk", lambda *_: None)
    scene, wrong, refused = Scene(tmp_path), list[str](), 0
    alone = [{option: value} for option in OPTIONS for value in OPTIONS[option]]
    never = [row for row in alone if scene.checked(row)]
    items = [item for row in alone if row not in never for item in row.items()]
    open_pairs = {frozenset(pair) for pair in combinations(items, 2) if pair[0][0] != pair[1][0]}
    every = len(open_pairs)

    def breaks(row: Row) -> bool:
        return not scene.refused(row) and bool(scene.ran(row)) and not scene.checked(row)

    for pair in sorted(open_pairs, key=sorted):
        if pair not in open_pairs:
            continue
        open_pairs.discard(pair)
        if scene.refused(dict(pair)):
            refused += 1
            if not scene.checked(dict(pair)):
                wrong.append(f"{dict(pair)}: check finds nothing, and a run does not start")
            continue
        row = complete(dict(pair), lambda some: not scene.refused(some), open_pairs)
        while ended := scene.ran(row):
            by_check = scene.checked(row)
            culprit = smallest(row, scene.checked if by_check else breaks)
            if not by_check:
                wrong.append(f"{culprit}: {ended}")
            option = list(culprit)[-1]
            row = {**row, option: next(iter(OPTIONS[option]))}
        open_pairs -= pairs_of(row)
        if scene.runs >= ROWS and os.environ.get("HYPOTHESIS_PROFILE") != "nightly":
            break
    print(f"{scene.runs} runs; of {every} pairs {refused} are refused, {len(open_pairs)} left; refused alone: {never}")
    assert not wrong, "\n".join(wrong)
