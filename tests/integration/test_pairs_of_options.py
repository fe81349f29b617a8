"""Any two settings that are valid alone: a run that has both finishes, or `swsdist check` refuses them.

Values are those of the registries, so a new entry is tried without a line here; `NEEDS` has what some cannot be without, and
`ALONE` those that no run here can have. Rows of a covering array are chosen greedily: each begins with a pair that no row had,
and takes of every other option the value that brings most new pairs. What keeps a row from starting is reduced to the values
that are to blame, and no later row has these together.

HYPOTHESIS_PROFILE=nightly runs all rows that all pairs need, otherwise those of `ROWS`: the first bring most.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from swsdist.accounts import journal
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
from swsdist.pipeline.ledger import ONLY, Ledger
from swsdist.pipeline.operation.progress import Progress
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
from swsdist.testing.synthesis.encoder import make_encoder
from swsdist.testing.synthesis.recogniser import make_recogniser
from tests.support.tables import read_rows, write_rows

pytestmark = pytest.mark.slow
#: Rows that are run unless all are, by executor. Of pairs with Ray there are only those of Ray itself.
ROWS = {"serial": 36, "ray": 2}
#: Ends that tell of a corpus as small as this one, or of queries of which `search.drop` leaves nothing, not of settings.
SMALL = ("nothing-to-fit", "empty-input")
Values = dict[str, Any]
#: Of each option, the name of its value; others have their first.
Row = dict[str, str]
MFCC: Values = {"name": "mfcc", "options": {"deltas": 0}}
GMM: Values = {"name": "gmm", "options": {"components": 6, "iterations": 2}}
POSTERIORS: Values = {"features": {**MFCC, "transforms": [GMM]}}
TRACKS: Values = {"features": [{**MFCC, "track": "a"}, {**MFCC, "transforms": [GMM], "track": "b"}]}
COLUMNS = [{"columns": [0, 3], "weight": 2, "distance": "cosine"}, {"columns": [3, 6], "distance": "euclidean"}]
KL: Values = {"distance": "kl", "normalise": "none"}
PHONES: Values = {
    **POSTERIORS,
    "chain": "lattices",
    "options": {"source": "frames", "decoding": {"scale": 0.3, "insertion": -8.0, "least": 1e-4, "non_speech": ["g5"]}},
    "search.method": "lattice",
}
TEXT: Values = {
    "corpus.documents": "talks",
    "corpus.queries": "terms.csv",
    "corpus.references": None,
    "features": None,
    "search.method": "lattice",
    "calibrate.steps": [],
}
FUSE: Values = {"chain": "fuse", "options": {"systems": [{"name": name, "run": name} for name in "ab"]}}
RECOGNISER: Values = {"options": {"dictionary": "words.dict", "lm": "words.arpa"}}
#: Of the chain lattices, by source.
LATTICES: dict[str, Values] = {
    "frames": PHONES,
    "files": TEXT,
    "recogniser": {
        **TEXT,
        "corpus.documents": "two.csv",
        "options": {"source": "recogniser", "recogniser": RECOGNISER},
    },
}
#: What a value cannot be without; of a transform and of features the options.
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
    "chain fuse": FUSE,
    "external": {"path": "frames", "shift": 0.01, "dimension": 13},
    "librosa": {"feature": "melspectrogram", "n_fft": 512, "n_mels": 13},
    "phnrec": {"weights": "recogniser"},
    "ssl": {"model": "encoder", "layer": 1},
    "step fusion": FUSE,
    "step zt-norm": {"corpus.cohort": "cohort.csv"},
}
#: Values that are refused alone: what is missing here.
ALONE = {
    ("backend", "cuda"): "a GPU",
    ("features", "ssl"): "PyTorch" if find_spec("torch") is None or find_spec("transformers") is None else "",
    ("chain", "lattices, recogniser"): "pocketsphinx" if find_spec("pocketsphinx") is None else "",
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
    return [name] if entry.first or name == "fusion" else [*before, name]


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
        "chain": {
            n: {"chain": n, **NEEDS.get(f"chain {n}", {})}
            for n in CHAINS
            if n != "lattices" and not CHAINS[n].of_points
        }
        | {f"lattices, {source}": {"chain": "lattices", **values} for source, values in LATTICES.items()},
        "merge": {"": {}, "best": {"reduce.merge": "best"}, "sum": {**PHONES, "reduce.merge": "sum"}},
        "distance": {
            n: {"search.distance": n, **({"search.normalise": "none", **POSTERIORS} if DISTANCES[n].posteriors else {})}
            for n in DISTANCES
        },
        "drop": {"": {}, "drop": {**POSTERIORS, "search.drop": {"columns": [0, 1]}}},
        "streams": {
            "": {},
            "columns": {"search.streams": COLUMNS},
            "track": {**TRACKS, "search.streams": [{**KL, "track": "b"}, {"track": "a"}]},
        },
        "features": {"mfcc": {}, "two tracks": TRACKS}
        | {n: {"features": {"name": n, "options": NEEDS.get(n, {})}} for n in FEATURES if n != "mfcc"}
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
        "protocol": only("score.protocol", sorted(PROTOCOLS, key=lambda name: name != "sws2013")),
        "references": {"given": {}, "none": {"corpus.references": None}},
        "own places": {"": {}} | only("corpus.own_places", ("keep", "leave-out")),
        "export": {"": {}} | {n: {"report.exports": [n], "report.clips": 2} for n in EXPORTS},
        "shards": only("index.shards", (1, 3)),
        "executor": {"serial": {}, "ray": {"executor.kind": "ray", "executor.workers": 2}},
    }
    return {
        option: {name: value if k else {} for k, (name, value) in enumerate(values.items())}
        for option, values in made.items()
    }


OPTIONS = options()


class Scene:
    """A corpus, and what came of rows."""

    def __init__(self, folder: Path, executor: Values) -> None:
        self.folder, self.runs, self._executor = folder, 0, executor
        make_corpus(folder, documents=8, queries=6, voices=3)
        docs = read_rows(folder / "docs.csv")
        write_rows(folder / "two.csv", [{name: row[name] for name in ("doc_id", "path")} for row in docs[:2]])
        with (folder / "phones.ctm").open("w") as file:
            for row in docs:
                file.writelines(
                    f"{row['doc_id']} 1 {k / 10:.1f} 0.1 {'abc'[k * k % 7 % 3]}\n"
                    for k in range(int(10 * float(row["duration"])))
                )
        projection(np.zeros(13), np.eye(13)[:, :4], np.full(13, 50.0)).save(Folder(str(folder)), "model.npz")
        said = {row["query_id"]: row for row in read_rows(folder / "refs.csv")}.values()
        places = ("query_id", "doc_id", "start", "end")
        write_rows(folder / "places.csv", [{name: row[name] for name in places} for row in said])
        speech = [{"doc_id": row["doc_id"], "start": 0, "end": row["duration"]} for row in docs]
        write_rows(folder / "speech.csv", speech)
        shutil.copy(folder / "queries.csv", folder / "cohort.csv")
        (folder / "talks").mkdir()
        for k in range(3):
            (folder / "talks" / f"t{k}.srt").write_text(f"1\n00:00:00,000 --> 00:00:0{k + 1},000\nthe red house\n")
        (folder / "terms.csv").write_text("query_id,text\na,red house\nb,the\n")
        (folder / "words.dict").write_text("the DH AH\nred R EH D\nhouse HH AW S\n")
        grams = "".join(
            f"{-99 if word == '<s>' else -0.7} {word} 0\n" for word in ["<s>", "</s>", "the", "red", "house"]
        )
        (folder / "words.arpa").write_text(f"\\data\\\nngram 1=5\n\n\\1-grams:\n{grams}\n\\end\\\n")
        make_recogniser(str(folder / "recogniser"))
        if not ALONE["features", "ssl"]:
            make_encoder(str(folder / "encoder"))
        (folder / "frames").mkdir()
        seconds = {row["doc_id"]: float(row["duration"]) for row in docs}
        for row in read_rows(folder / "queries.csv"):
            seconds[f"{row['query_id']}-{row.get('example', 1)}"] = float(row["duration"])
        for key, length in seconds.items():
            # Posteriors: what given frames are is not known before a distance reads them.
            frames = np.random.default_rng(len(key)).dirichlet(np.ones(13), round(100 * length) - 1)
            np.save(folder / "frames" / f"{key}.npy", frames.astype(np.float32))
        for name in "ab":
            run_stages(self.config({}).model_copy(update={"run": str(folder / name)}), StepSelection(), Progress())

    def config(self, row: Row) -> Config:
        given: Values = {
            "run": f"run{self.runs}",
            "corpus": {"documents": "docs.csv", "queries": "queries.csv", "references": "refs.csv"},
            "features": MFCC,
            "report": {"exports": [], "clips": 0, "labels": 1},
            "reduce": {"buckets": 2},
            "calibrate": {"folds": 2},
            "executor": {"kind": "serial", **self._executor},
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
        if given["features"] is None:
            del given["features"]
        if given.pop("dtype", None) and "features" in given:
            tracks = given["features"] if isinstance(given["features"], list) else [given["features"]]
            given["features"] = [{**track, "dtype": "float16"} for track in tracks]
        store = fingerprint(given.get("features"), given["corpus"]["documents"], given.get("index"))
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
            chain_run.chain.inputs.read(frozenset(label for step in chain_run.steps for label in step.tables))
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
    """What is left of a row without the values that may be missing while it holds: halves of them, quarters, ... at once."""
    row = {option: value for option, value in row.items() if value != next(iter(OPTIONS[option]))}
    size = len(row)
    while size := size // 2:
        names = list(row)
        for begin in range(0, len(names), size):
            rest = {name: value for name, value in row.items() if name not in names[begin : begin + size]}
            if rest and holds(rest):
                row = rest
    return row


class Rows:
    """Chooses rows.

    Attributes:
        items: option and value, of each value that is valid alone.
        open: by two items, whether no row had both.
    """

    def __init__(self, items: list[tuple[str, str]], leading: str | None) -> None:
        self.items, self._index = items, {item: k for k, item in enumerate(items)}
        options = np.array([option for option, _ in items])
        self.open = options[:, None] != options
        if leading:
            self.open &= (options == leading)[:, None] | (options == leading)
        self._clashes: list[frozenset[tuple[str, str]]] = []

    def close(self, row: Row) -> None:
        at = [self._index[item] for item in row.items()]
        self.open[np.ix_(at, at)] = False

    def clash(self, row: Row) -> None:
        """No later row has these values together."""
        self._clashes.append(frozenset(row.items()))
        if len(row) == 2:
            self.close(row)

    def fits(self, row: Row) -> bool:
        given = set(row.items())
        return not any(clash <= given for clash in self._clashes)

    def first(self) -> Row:
        """A pair that no row had, of items that have most of these."""
        one = int(self.open.sum(axis=1).argmax())
        other = int((self.open[one] * (1 + self.open.sum(axis=1))).argmax())
        return dict([self.items[one], self.items[other]])

    def complete(self, row: Row) -> Row:
        """A row with a value of each option; those with many values choose first."""
        for option, values in sorted(OPTIONS.items(), key=lambda option: -len(option[1])):
            if option in row:
                continue
            at, default = [self._index[item] for item in row.items()], next(iter(values))
            new = {v: int(self.open[self._index[option, v], at].sum()) for v in values if (option, v) in self._index}
            for value in sorted(new, key=lambda value: -new[value]):
                if value == default or (new[value] > 0 and self.fits({**row, option: value})):
                    row = {**row, option: value}
                    break
        return row


@pytest.fixture(params=["serial", pytest.param("ray", marks=pytest.mark.ray)])
def executor(request: pytest.FixtureRequest) -> tuple[str, Values]:
    """Its kind, and what a config says of it."""
    sets = request.getfixturevalue("cluster").sets if request.param == "ray" else ()
    given = dict(one.removeprefix("executor.").split("=", 1) for one in sets if ".kind" not in one)
    return request.param, given


def test_two_settings_that_are_valid_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, executor: tuple[str, Values]
) -> None:
    monkeypatch.setattr(filesystem, "_flush_to_disk", lambda *_: None)
    monkeypatch.setattr(journal, "pss_bytes", lambda *_: 0)
    kind, given = executor
    scene, wrong, refused = Scene(tmp_path, given), list[str](), 0
    alone = [(option, value) for option, values in OPTIONS.items() for value in values]
    never = {item for item in alone if scene.checked(dict([item]))}
    assert never == {item for item in ALONE if ALONE[item]}
    others = {("executor", name) for name in OPTIONS["executor"]} - {("executor", kind)}
    rows = Rows([item for item in alone if item not in never | others], "executor" if kind == "ray" else None)
    every, tried = int(rows.open.sum()) // 2, 0

    def breaks(row: Row) -> bool:
        return not scene.refused(row) and bool(scene.ran(row)) and not scene.checked(row)

    def culprit_of(row: Row) -> Row:
        """The values that are to blame if no run with a row finishes; else none."""
        nonlocal refused
        if scene.refused(row):
            culprit = smallest(row, scene.refused)
            if not scene.checked(culprit):
                wrong.append(f"{culprit}: check finds nothing, and a run does not start")
        elif ended := scene.ran(row):
            by_check = scene.checked(row)
            culprit = smallest(row, scene.checked if by_check else breaks)
            if not by_check:
                wrong.append(f"{culprit}: {ended}")
        else:
            return {}
        rows.clash(culprit)
        refused += len(culprit) == 2
        return culprit

    while rows.open.any() and (tried < ROWS[kind] or os.environ.get("HYPOTHESIS_PROFILE") == "nightly"):
        pair = rows.first()
        row = rows.complete(pair)
        while culprit := culprit_of(row):
            row.pop(list(culprit)[-1])
            row = rows.complete(row)
        rows.close(pair)
        rows.close(row)
        tried += 1
    left = int(rows.open.sum()) // 2
    print(f"{tried} rows, {scene.runs} runs; of {every} pairs {refused} are refused, {left} left")
    assert not wrong, "\n".join(wrong)
