"""Lattices of files: from transcripts or lattices and written queries to a report; the same however it is cut and resumed."""

from __future__ import annotations

import csv
import json
import math
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import swsdist
from swsdist.core.codes import corpora as corpora_codes
from swsdist.core.codes import families
from swsdist.core.codes import lattices as codes
from swsdist.core.codes import pipeline as chains_codes
from swsdist.io.filesystem import Folder
from swsdist.lattices import collection
from swsdist.pipeline.chain_run import StepSelection
from swsdist.pipeline.operation.cleaning import clean
from swsdist.store import lattice_shards
from swsdist.store.maintaining import check
from tests.support.coded import raises, says
from tests.support.random_lattices import GOLDEN
from tests.support.tables import write_rows
from tests.support.written_corpus import QUERIES, Said, compact_text, make, spoken, write_json

pytestmark = pytest.mark.until("decide")


@pytest.fixture(scope="module")
def _corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("written")
    make(folder)
    return folder


@pytest.fixture
def written(new_scene: Any, tmp_path: Path, _corpus: Path, env: dict[str, str], until: str | None) -> Any:
    """A copy of the corpus, whose documents are the transcripts of Whisper."""
    corpus = tmp_path / "corpus"
    shutil.copytree(_corpus, corpus)
    return new_scene(tmp_path, corpus, env, base(corpus, "json"), until=until)


@pytest.fixture
def kaldi(written: Any) -> Any:
    """The same, whose documents are lattices."""
    written.base = base(written.corpus, "kaldi")
    return written


@pytest.fixture(scope="module")
def whole(new_scene: Any, _corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Any, Any]]:
    """Of transcripts or of lattices, a run that nothing happened to: its scene and result, to be read only."""

    @cache
    def made(kind: str) -> tuple[Any, Any]:
        scene = new_scene(tmp_path_factory.mktemp(kind), _corpus, {}, base(_corpus, kind))
        return scene, scene.run()

    return made


def base(corpus: Path, kind: str) -> dict[str, Any]:
    tables = {name: str(corpus / f"{name}.csv") for name in ("queries", "references")}
    lattices = {"lattices": {"words": str(corpus / "words.txt")}, "recipe": {"acoustic_scale": 0.1}}
    return {
        "chain": "lattices",
        "search": {"method": "lattice"},
        "reduce": {"overlap": 1},  # detections are places
        "calibrate": {"steps": []},
        "corpus": {"documents": str(corpus / kind), **tables},
        "options": lattices if kind == "kaldi" else {},
    }


def chances(words: list[Said], k: int, text: str, *, first: bool) -> float:
    """Of a word to be at a place; by the first guess alone, or by both."""
    if words[k].guess == text:
        return words[k].confidence
    return 0.0 if first or words[k].other != text else 1 - words[k].confidence


def expected(*, first: bool) -> dict[tuple[str, str, float, float], float]:
    """Posterior of each query at each place. In a transcript a word that is not sure may be none, so that it is skipped."""
    result = {}
    for (query_id, text), (doc_id, words) in product(QUERIES.items(), spoken().items()):
        parts = text.lower().strip("!").split()
        for k in range(len(words)):
            for last in range(k, len(words) if first else k + len(parts)):
                between = words[k + 1 : last] if first and len(parts) == 2 else []
                if (len(parts) == 1 and last > k) or (len(parts) == 2 and last == k) or last >= len(words):
                    continue
                if len(parts) == 2 and words[last].start - words[k].end > 0.5 + 1e-9:
                    continue
                ends = [chances(words, place, part, first=first) for place, part in zip((k, last), parts, strict=False)]
                if posterior := math.prod([*ends, *(1 - word.confidence for word in between)]):
                    result[query_id, doc_id, words[k].start, words[last].end] = posterior
    return result


def detected(result: Any) -> dict[tuple[str, str, float, float], float]:
    rows = result.detections().to_dict("records")
    return {
        (row["query_id"], row["doc_id"], round(row["start"], 3), round(row["end"], 3)): row["score"] for row in rows
    }


def live(scene: Any) -> set[str]:
    return set(scene.store().documents(columns=["doc_id"])["doc_id"].to_pylist())


def done(result: Any) -> dict[str, int]:
    return {name: outcome.done for name, outcome in result.outcome.chain_run.outcomes.items() if outcome.done}


def digest_of(whole: Callable[[str], tuple[Any, Any]], kind: str, until: str | None) -> dict[str, str]:
    """Of the tables until a stage."""
    return replace(whole(kind)[0], until=until).digest()


def test_transcripts(whole: Callable[[str], tuple[Any, Any]]) -> None:
    scene, result = whole("json")
    assert detected(result) == pytest.approx(expected(first=True), abs=1e-6)
    assert 0.3 < result.measures()["mtwv"] < 1.0
    assert scene.reported()
    assert scene.rejected() == []
    assert (scene.folder / "run" / "report.html").exists()
    assert live(scene) == set(spoken())
    assert not list(check(scene.store()))
    assert done(scene.run()) == {}


@pytest.mark.slow
@pytest.mark.until("measure")
@pytest.mark.parametrize("kind", ["json", "kaldi"])
def test_the_cut_does_not_show(kind: str, written: Any, whole: Any, until: str, monkeypatch: Any) -> None:
    written.base = base(written.corpus, kind)
    monkeypatch.setattr(lattice_shards, "SHARD_ARCS", 150)
    monkeypatch.setattr(lattice_shards, "ROW_GROUP_ARCS", 60)
    monkeypatch.setattr(collection, "_MOST_FILES", 5)
    result = written.run("reduce.buckets=7")
    assert len(written.store().manifest.shards) > 4
    assert len(result.outcome.chain_run.outcomes["index"].receipts) >= 3
    monkeypatch.undo()
    assert written.digest() == digest_of(whole, kind, until)


@pytest.mark.ray
def test_the_same_on_ray(written: Any, whole: Any, until: str, cluster: Any) -> None:
    written.run(*cluster.sets)
    assert written.digest() == digest_of(whole, "json", until)


@pytest.mark.until("search")
def test_an_indexing_that_was_cut_off(written: Any, whole: Any, until: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole shards of a task that did not end are written again; no half of one is left."""
    wanted = digest_of(whole, "json", until)
    monkeypatch.setattr(lattice_shards, "SHARD_ARCS", 150)
    monkeypatch.setattr(collection, "_MOST_FILES", 6)
    publish, calls = lattice_shards.LatticeShardWriter.publish, iter([True, True, True, False])

    def interrupted(writer: Any) -> Any:
        if not next(calls, True):
            raise KeyboardInterrupt
        return publish(writer)

    with monkeypatch.context() as patch:
        patch.setattr(lattice_shards.LatticeShardWriter, "publish", interrupted)
        with pytest.raises(KeyboardInterrupt):
            written.run()
    assert next(calls, None) is None
    before = written.receipts()
    assert before
    written.run()
    assert before.items() <= written.receipts().items()
    assert written.digest() == wanted
    clean(Folder(str(written.folder / "run")), 0.0, dry=False)
    left = {path.name for path in (written.folder / "run" / "store" / "shards").glob("part-*-?.parquet")}
    assert left == {Path(shard.name).name for shard in written.store().manifest.shards}


@pytest.mark.slow
@pytest.mark.until("search")
def test_files_added_changed_removed(written: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection, "_FILES", 1)  # a task a file
    folder = written.corpus / "json"
    written.run()
    every = live(written)
    assert len(every) == 12
    for name, seed in (("d900", 7), ("d003", 8)):  # one that comes, one that is another
        write_json(folder / f"{name}.json", spoken(1, seed=seed)["d000"])
        assert done(written.run()) == {"index": 1, "search": 1}
        assert live(written) == {*every, "d900"}
    (folder / "d005.json").unlink()
    assert done(written.run()) == {}
    assert live(written) == {*every, "d900"} - {"d005"}
    assert not list(check(written.store()))
    incremental = written.digest()
    written.run(run="fresh")
    assert written.digest("fresh") == incremental


@pytest.mark.until("search")
def test_other_words_and_recipes_are_other_work(kaldi: Any) -> None:
    kaldi.run()
    assert done(kaldi.run()) == {}
    assert {"index", "search"} <= done(kaldi.run("options.recipe.acoustic_scale=1")).keys()
    path = kaldi.corpus / "words.txt"
    path.write_text(path.read_text().replace("river", "rivers"))
    assert {"index", "search"} <= done(kaldi.run()).keys()
    queries = kaldi.corpus / "queries.csv"
    queries.write_text(queries.read_text().replace("river", "rivers"))
    assert done(kaldi.run()).keys() == {"queries", "search"}


def test_a_broken_file_or_term_is_a_rejection(written: Any) -> None:
    folder = written.corpus / "json"
    (folder / "d004.json").write_text('{"segments": [\n{"words": [{"word": "a", "start": 2, "end": 1}]}]}')
    (folder / "d006.json").write_text('{"segments": [')
    (folder / "notes.md").write_text("# Notes\n")
    with (written.corpus / "queries.csv").open("a") as file:
        file.write("q8b,...\nq9,(a\n")
    result = written.run("options.terms.patterns=true")
    rejected = {row["id"]: (row["kind"], row["reason"]) for row in written.rejected()}
    assert rejected == {
        "d004": ("document", "invalid-times"),
        "d006": ("document", "malformed-file"),
        "q8b": ("query", codes.EMPTY_TERM.name),
        "q9": ("query", codes.UNBALANCED_PATTERN.name),
    }
    assert live(written) == set(spoken()) - {"d004", "d006"}
    left = {key: score for key, score in expected(first=True).items() if key[1] not in rejected}
    assert detected(result) == pytest.approx(left, abs=1e-6)
    chain_run = result.outcome.chain_run
    assert any(says(line, families.LEFT_OUT) for line in chain_run.chain.summary(chain_run))


def test_labels_that_meet(kaldi: Any) -> None:
    path = kaldi.corpus / "words.txt"
    path.write_text(path.read_text().replace("green", "RED"))
    with raises(families.EMPTY_INPUT, where="lat.d000", count=12) as caught:
        kaldi.run()
    assert "recipe.spelling: exact" in (caught.value.remedy or "")
    kaldi.run("options.recipe.spelling=exact", until="search")
    assert live(kaldi) == set(spoken())


def test_documents_given_apart(written: Any) -> None:
    """With durations, without recordings; what is missing on either side is a rejection."""
    path = written.corpus / "documents.csv"
    rows = list(csv.reader(path.open()))
    rows = [row for row in rows if row[0] != "d001"] + [["d990", "12.5"]]
    path.write_text("\n".join(map(",".join, rows)) + "\n")
    (written.corpus / "json" / "sub").mkdir()
    write_json(written.corpus / "json" / "sub" / "d002.json", spoken()["d000"])
    written.base["options"] = {"lattices": {"path": str(written.corpus / "json")}}
    written.base["corpus"]["documents"] = str(path)
    references = written.corpus / "references.csv"
    lines = references.read_text().splitlines()
    references.write_text("\n".join(line for line in lines if ",d001," not in line) + "\n")
    result = written.run("force=true")
    assert {(row["id"], row["reason"]) for row in written.rejected()} == {
        ("d001", codes.LATTICE_WITHOUT_DOCUMENT.name),
        ("sub/d002", codes.LATTICE_WITHOUT_DOCUMENT.name),
        ("d990", codes.DOCUMENT_WITHOUT_LATTICE.name),
    }
    table = written.store().documents(columns=["doc_id", "duration"])
    seconds = dict(zip(table["doc_id"].to_pylist(), table["duration"].to_pylist(), strict=True))
    assert seconds == {row[0]: float(row[1]) for row in rows[1:] if row[0] != "d990"}
    left = {key: score for key, score in expected(first=True).items() if key[1] != "d001"}
    assert detected(result) == pytest.approx(left, abs=1e-6)


def test_two_lattices_of_a_document(kaldi: Any) -> None:
    (kaldi.corpus / "kaldi" / "lat.more").write_text(compact_text("d004", spoken()["d005"]))
    kaldi.run(until="search")
    (row,) = kaldi.chain_runs["run"].rejected().to_pylist()
    assert (row["id"], row["reason"], Path(row["path"]).name) == ("d004", codes.DUPLICATE_LATTICE.name, "lat.more")
    assert live(kaldi) == set(spoken())


def test_segments(kaldi: Any) -> None:
    """Utterances are places of recordings, of which hits and references are."""
    names = sorted(spoken())
    segments = kaldi.corpus / "segments"
    segments.write_text("".join(f"{name} talk{k % 2} {100 * k} {100 * k + 11.5}\n" for k, name in enumerate(names)))
    kaldi.base["options"]["lattices"]["segments"] = str(segments)
    kaldi.base["corpus"]["references"] = None
    result = kaldi.run()
    moved = {}
    for (query_id, doc_id, *place), p in expected(first=False).items():
        k = names.index(doc_id)
        moved[query_id, f"talk{k % 2}", *(round(t + 100 * k, 3) for t in place)] = p
    assert detected(result) == pytest.approx(moved, abs=1e-6)
    assert kaldi.rejected() == []
    segments.write_text("d000 talk 0 11.5\n")
    with raises(families.UNKNOWN_NAME, utterance="d001"):
        kaldi.run(run="other")


@pytest.mark.parametrize("examples", ["all", "primary"])
def test_several_texts_of_a_query(written: Any, examples: str) -> None:
    """They are alternatives, in references too, or the first is searched and the others are told."""
    lines = [f"{name} 1 {said.start} 0.4 {said.word}\n" for name, words in spoken().items() for said in words]
    (written.corpus / "spoken.ctm").write_text("".join(lines))
    (written.corpus / "queries.csv").write_text("query_id,text\na,river\nb,blue\na,Stone\na,River\n")
    result = written.run(f"corpus.examples={examples}", f"corpus.references={written.corpus}/spoken.ctm")
    plain = {(key[0], *key[1:]) for key in expected(first=True)}
    ids = {"q2": "a", "q6": "b", **({"q4": "a"} if examples == "all" else {})}
    assert set(detected(result)) == {(ids[query_id], *rest) for query_id, *rest in plain if query_id in ids}
    true = [said.word for words in spoken().values() for said in words]
    assert result.outcome.chain_run.chain.inputs.corpus.references.num_rows == sum(
        true.count(word) for word in ("river", "blue", *(["stone"] if examples == "all" else []))
    )
    told = any(says(line, corpora_codes.EXAMPLES_NOT_SEARCHED) for line in result.outcome.chain_run.notices())
    assert told == (examples == "primary")


@pytest.mark.until("search")
@pytest.mark.parametrize("patterns", [False, True])
def test_terms_that_no_document_holds(written: Any, patterns: bool) -> None:
    """Are told, with a word of the first; a pattern may stand for anything."""
    terms = ["river", "zebra", "red zebra", "zeb*", "(zebra|river)", "aardvark"]
    absent = ["zebra", "red zebra", "aardvark"] + ([] if patterns else ["zeb*", "(zebra|river)"])
    write_rows(written.corpus / "queries.csv", [{"query_id": term, "text": term} for term in terms])
    written.run(f"options.terms.patterns={str(patterns).lower()}", "corpus.references=null")
    (told,) = (line for line in written.chain_runs["run"].notices() if says(line, chains_codes.ABSENT_TERMS))
    assert told.startswith(f"{len(absent)} terms ")
    assert f"(first: {min(absent)}: " in told


@pytest.mark.skipif(not GOLDEN.is_dir(), reason=f"no golden lattices beside the checkout ({GOLDEN})")
def test_hits_of_kaldi(tmp_path: Path) -> None:
    given = GOLDEN / "real" / "kaldi-cvte-kws"
    rows = [line.split(None, 1) for line in (given / "keywords.int").read_text().splitlines()]
    write_rows(tmp_path / "queries.csv", [{"query_id": query, "text": text} for query, text in rows])
    config = {
        "run": str(tmp_path / "run"),
        "chain": "lattices",
        "executor": {"kind": "serial"},
        "corpus": {"documents": str(given / "scaled.txt"), "queries": str(tmp_path / "queries.csv")},
        "options": {"lattices": {"subsampling": 3}, "recipe": {"spelling": "exact", "fillers": []}},
        "search": {"method": "lattice", "method_options": {"mode": "kaldi", "gap": 0.51}},
        "calibrate": {"steps": []},
        "reduce": {"overlap": 1, "merge": "best", "nbest": {"least": 100_000}},
        "report": {"clips": 0, "exports": []},
    }
    path = tmp_path / "config.yaml"
    path.write_text(json.dumps(config))
    found = swsdist.run(path, selection=StepSelection(until="decide"))
    # Hits of no length last a tick here.
    ours = {(*key[:2], round(key[2], 2), round(key[3], 2)): p for key, p in detected(found).items()}
    utterances = {number: name for name, number in _fields(given / "utter_id")}
    theirs = {
        (keyword, utterances[utterance], int(start) / 100, int(end) / 100): math.exp(-float(cost))
        for keyword, utterance, start, end, cost in _fields(given / "kws-search.txt")
    }
    assert len(theirs) == 997
    assert ours.keys() == theirs.keys()
    assert [-math.log(ours[key]) for key in theirs] == pytest.approx([-math.log(p) for p in theirs.values()], abs=2e-3)


def _fields(path: Path) -> Iterator[list[str]]:
    return (line.split() for line in path.read_text().splitlines())
