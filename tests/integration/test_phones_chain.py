"""Lattices of frames: a search is the same, whatever the cut, the executor and interruptions; strings, lattices, texts."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from swsdist.config import Config, config_from_dict
from swsdist.core.codes import families
from swsdist.core.codes import lattices as lattice_codes
from swsdist.core.codes import lattices as text_codes
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain_run import ChainRun, StepSelection, prepare_chain_run
from swsdist.pipeline.driver import run_stages
from swsdist.pipeline.ledger import ONLY, Ledger
from swsdist.pipeline.operation.progress import Progress
from swsdist.pipeline.status import digests, load_chain_run
from swsdist.testing.conformance import check_chain
from tests.support.coded import raises
from tests.support.tables import write_rows

#: Components of a mixture, as phones of one state.
FEATURES = {
    "name": "mfcc",
    "transforms": [
        {"name": "mean-variance"},
        {"name": "gmm", "options": {"components": 8, "values": "posteriors", "iterations": 3}},
    ],
}
DECODING = {"scale": 0.3, "insertion": -8.0, "string_insertion": -40.0, "least": 1e-4, "non_speech": ["g7"]}


def config(folder: Path, run: Path | str, method: str, **values: Any) -> Config:
    given: dict[str, Any] = {
        "chain": "lattices",
        "run": str(run),
        "corpus": {name: f"{table}.csv" for name, table in (("documents", "docs"), ("queries", "queries"))},
        "features": FEATURES,
        "options": {"source": "frames", "decoding": DECODING},
        "queries": {"trim": "none"},
        "search": {"method": method},
        "calibrate": {"steps": ["q-norm"]},
        "executor": {"kind": "serial"},
    }
    return config_from_dict({**given, **values}, folder)


def searched(given: Config, until: str = "normalise") -> ChainRun:
    outcome = run_stages(given, StepSelection(until=until), Progress())
    assert not outcome.failures
    return outcome.chain_run


def of_terms(folder: Path, words: list[str]) -> dict[str, Any]:
    """A config's sections for written queries whose phones are in the folder's words.txt."""
    table = write_rows(folder / "terms.csv", [{"query_id": word, "text": word} for word in words])
    options = {"source": "frames", "decoding": DECODING, "terms": {"dictionary": str(folder / "words.txt")}}
    return {"corpus": {"documents": "docs.csv", "queries": table}, "options": options}


def hits(chain_run: ChainRun, table: str) -> list[dict[str, Any]]:
    return [row for part in chain_run.read(table) for row in part.to_pylist()]


@pytest.fixture(scope="module")
def undisturbed(small_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, str]]:
    """Digests by method, of a run with one shard."""

    @cache
    def made(method: str) -> dict[str, str]:
        return digests(searched(config(small_corpus, tmp_path_factory.mktemp("one"), method, index={"shards": 1})))

    return made


@pytest.mark.slow
def test_the_cut_does_not_matter(small_corpus: Path, tmp_path: Path, undisturbed: Any) -> None:
    chain_run = searched(config(small_corpus, tmp_path, "lattice-edits", index={"shards": 3}))
    assert digests(chain_run) == undisturbed("lattice-edits")
    assert len(hits(chain_run, "detections")) > 10


@pytest.mark.ray
def test_the_executor_does_not_matter(small_corpus: Path, tmp_path: Path, cluster: Any, undisturbed: Any) -> None:
    ray = dict(item.removeprefix("executor.").split("=", 1) for item in cluster.sets)
    given = config(small_corpus, tmp_path, "lattice-edits", index={"shards": 2}, executor={**ray, "workers": 2})
    assert digests(searched(given)) == undisturbed("lattice-edits")


@pytest.mark.slow
def test_another_decoder_decodes_again_and_reads_no_audio(small_corpus: Path, tmp_path: Path) -> None:
    searched(config(small_corpus, tmp_path, "lattice"))
    other = {"source": "frames", "decoding": {**DECODING, "least": 0.01}}
    outcome = run_stages(config(small_corpus, tmp_path, "lattice", options=other), StepSelection(), Progress())
    done = {name: ended.done for name, ended in outcome.chain_run.outcomes.items()}
    assert (done["index"], done["examples"]) == (0, 0)
    assert done["decode"] > 0
    assert done["search"] > 0


def test_queries_in_phones(small_corpus: Path, tmp_path: Path) -> None:
    """The string of a query that was cut out of a document lies in the document's lattice, if it has one."""
    index = {"store": str(tmp_path / "store")}
    chain_run = searched(config(small_corpus, tmp_path, "lattice", index=index))
    strings = hits(chain_run, "groups")
    assert all(label.startswith("g") and label != "g7" for row in strings for label in row["labels"])
    (tmp_path / "words.txt").write_text(
        "".join(f"word{k} {' '.join(row['labels'])}\n" for k, row in enumerate(strings))
    )
    terms = of_terms(tmp_path, [f"word{k}" for k in range(len(strings))])
    written = searched(config(small_corpus, tmp_path / "written", "lattice", index=index, **terms))
    ours = [sorted(row["labels"]) for row in hits(written, "groups")]
    assert sorted(ours) == sorted(sorted(row["labels"]) for row in strings)


@pytest.mark.slow
def test_phones_that_the_track_lacks(small_corpus: Path, tmp_path: Path) -> None:
    """Such a query is rejected, the others are searched; a check says so before any work, and after it."""
    words = {"one": "g1 g2", "two": "g1 AH", "three": "g3 g7", "four": "g3"}  # g7 is silence
    (tmp_path / "words.txt").write_text("".join(f"{word} {phones}\n" for word, phones in words.items()))
    terms = of_terms(tmp_path, list(words))
    given = config(small_corpus, tmp_path / "run", "lattice-edits", force=True, **terms)

    def odd() -> list[str]:
        chain = prepare_chain_run(ONLY, given, Ledger(Folder(given.run)), StepSelection()).chain
        assert chain.check is not None
        return [item.text for item in chain.check(chain.inputs) if item.name == "queries" and not item.good]

    before = odd()
    run = run_stages(given, StepSelection(until="normalise"), Progress()).chain_run
    reason = text_codes.PHONE_NOT_IN_TRACK
    rejected = {row["id"]: row for row in run.rejected().to_pylist()}
    assert {name: row["reason"] for name, row in rejected.items()} == {"two": reason.name, "three": reason.name}
    for name, phone in (("two", "AH"), ("three", "g7")):
        assert f"words.txt has {phone}," in rejected[name]["message"]
    assert {row["query_id"] for row in hits(run, "groups")} == {"one", "four"}
    for found in (before, odd()):
        (finding,) = found
        assert "2 of 4" in finding
        assert "words.txt has g7" in finding


def test_what_the_chain_does_not_take(small_corpus: Path, tmp_path: Path) -> None:
    with raises(families.UNSUPPORTED, where="search.method", method="dtw", methods="lattice, lattice-edits"):
        searched(config(small_corpus, tmp_path, "dtw"))
    for decoding, code in (
        ({"scale": -1}, families.INVALID_VALUE),
        ({"topology": "ctc", "bigrams": "lm"}, lattice_codes.BIGRAMS_OF_CTC),
    ):
        with raises(code, where="options"):
            searched(config(small_corpus, tmp_path, "lattice", options={"source": "frames", "decoding": decoding}))
    with raises(families.UNSUPPORTED, where="options.terms.patterns", method="lattice-edits"):
        searched(
            config(small_corpus, tmp_path, "lattice-edits", options={"source": "frames", "terms": {"patterns": True}})
        )
    store = tmp_path / "frames"
    searched(config(small_corpus, tmp_path / "1", "lattice", index={"store": str(store)}), until="index")
    with raises(families.WRONG_KIND, where=str(store)):
        options = {"source": "frames", "decoding": DECODING, "store": str(store)}
        searched(config(small_corpus, tmp_path / "2", "lattice", options=options))


@pytest.mark.slow
def test_the_chain_conforms(small_corpus: Path, tmp_path: Path, undisturbed: Any) -> None:
    """Its tables are also those of one shard."""
    tables = check_chain(lambda word: config(small_corpus, tmp_path / word, "lattice", index={"shards": 2}))
    assert {"lattices", "candidates", "detections"} <= set(tables)
    assert undisturbed("lattice").items() <= tables.items()
    (name,) = {load_chain_run(Folder(str(path))).chain.name for path in tmp_path.iterdir() if path.is_dir()}
    assert name == "lattices"
