"""A corpus apart from a system: a file of its own, whose paths and errors are its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from swsdist.config import Config, config_from_dict, dump_config, load_config
from swsdist.core.codes import config as codes
from swsdist.core.codes import families
from swsdist.stages.inputs.corpus_documents import settings_of
from tests.support.coded import raises


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A system in systems/, and a corpus in data/ that names files beside it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "systems").mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "systems" / "plain.yaml").write_text("run: ../out\ncorpus: ../data/one.yaml\n")
    (tmp_path / "data" / "one.yaml").write_text(
        "# mine\ndocuments: docs.csv\nqueries: q.csv\nreferences: refs.csv\nspeakers: who.csv\ncohort: c.csv\n"
        "protocol: openkws13\nalignments: {words: w.ctm, phones: /abs/p.ctm}\nparts: {train: [a, b], test: t.csv}\n"
    )
    return tmp_path


def test_paths_are_relative_to_the_corpus_file_and_sets_work_into_it(here: Path) -> None:
    config = load_config("systems/plain.yaml")
    corpus, data = config.corpus, f"{here}/data"
    assert config.run == f"{here}/out"
    assert (corpus.documents, corpus.queries) == (f"{data}/docs.csv", f"{data}/q.csv")
    assert (corpus.speakers, corpus.cohort) == (f"{data}/who.csv", f"{data}/c.csv")
    assert (corpus.alignments.words, corpus.alignments.phones) == (f"{data}/w.ctm", "/abs/p.ctm")
    assert (corpus.parts.train, corpus.parts.test) == (("a", "b"), f"{data}/t.csv")
    corpus = load_config("systems/plain.yaml", ["corpus.queries=other.csv", "corpus.alignments.words=null"]).corpus
    assert (corpus.queries, corpus.references) == (f"{here}/other.csv", f"{data}/refs.csv")
    assert corpus.alignments.words is None
    (here / "data" / "two.yaml").write_text("documents: d2.csv\n")
    corpus = load_config("systems/plain.yaml", ["corpus=data/two.yaml", "corpus.queries=q2.csv"]).corpus
    assert (corpus.documents, corpus.queries, corpus.references) == (f"{data}/d2.csv", f"{here}/q2.csv", None)
    assert config_from_dict({"run": "r", "corpus": "data/one.yaml"}).corpus.documents == f"{data}/docs.csv"


def test_system_corpus_and_run_are_told_apart(here: Path) -> None:
    (here / "systems" / "cosine.yaml").write_text("search: {distance: cosine-squared}\n")
    config = load_config("systems/cosine.yaml", ["corpus.queries=q2.csv"], corpus="data/one.yaml", run="runs/x")
    assert (config.run, config.system) == (f"{here}/runs/x", "cosine")
    assert (config.corpus.documents, config.corpus.queries) == (f"{here}/data/docs.csv", f"{here}/q2.csv")
    with raises(families.UNREADABLE_FILE, where="--corpus", path="data/none.yaml"):
        load_config("systems/cosine.yaml", corpus="data/none.yaml", run="x")
    assert load_config("systems/plain.yaml", ["system=other"]).system == "other"
    (here / "kept.yaml").write_text(dump_config(load_config("systems/plain.yaml")))
    assert load_config("kept.yaml") == load_config("systems/plain.yaml")


def test_the_corpus_names_the_protocol_unless_the_config_does(here: Path) -> None:
    for sets, protocol in (
        ([], "openkws13"),
        (["score.protocol=sws2012"], "sws2012"),
        (["corpus.protocol=null"], "sws2013"),
    ):
        assert load_config("systems/plain.yaml", sets).score.protocol == protocol
    values = {"run": "r", "corpus": {"documents": "d", "protocol": "stdeval"}, "score": {"beta": 2.0}}
    assert (config_from_dict(values).score.protocol, config_from_dict(values).score.beta) == ("stdeval", 2.0)


def test_an_error_names_the_corpus_file_and_its_line(here: Path) -> None:
    for text, line, key, code, values in (
        ("documents: d\nquerys: q\n", 2, "querys", codes.UNKNOWN_KEY, {"meant": "; did you mean corpus.queries?"}),
        ("queries: q\n", 1, "documents", codes.MISSING_KEY, {"allowed": "path"}),
        ("documents: d\n\nqueries: [a]\n", 3, "queries", families.INVALID_VALUE, {"allowed": "path | null"}),
        ("documents: d\ndocuments: e\n", 2, "documents", families.INVALID_YAML, {}),
        ("documents: d\nqueries: [\n", 3, "", codes.INVALID_YAML, {}),
        ("documents: ${NOT_SET}\n", 1, "documents", families.UNSET_VARIABLE, {"name": "NOT_SET"}),
        ("- d\n", 1, "", codes.NOT_A_MAPPING, {"what": "corpus file"}),
        ("documents: d\nprotocol: sws\n", 2, "protocol", families.INVALID_VALUE, {"value": "sws"}),
        ("documents: d\nparts: {train: []}\n", 2, "parts.train", families.INVALID_VALUE, {"value": "[]"}),
    ):
        (here / "data" / "one.yaml").write_text(text)
        with raises(code, where=f"data/one.yaml:{line}", key=f"corpus.{key}".rstrip("."), **values):
            load_config("systems/plain.yaml")
    (here / "data" / "one.yaml").write_text("documents: d\nquerys: q\n")
    (here / "systems" / "plain.yaml").write_text("run: x\ncorpus: ../data/one.yaml\n\nserch:\n")
    with raises(codes.INVALID_CONFIG, where="systems/plain.yaml", count=3) as caught:
        load_config("systems/plain.yaml", ["search.lanes=0"])
    places = [line.split(": ")[0].strip() for line in str(caught.value).splitlines()[1:4]]
    assert places == ["systems/plain.yaml:4", "data/one.yaml:2", "--set search.lanes"]
    for path in ("no.yaml", "http://host/no.yaml"):
        (here / "systems" / "plain.yaml").write_text(f"run: x\ncorpus: {path}\n")
        with raises(families.UNREADABLE_FILE, where="systems/plain.yaml:2", key="corpus", path=path):
            load_config("systems/plain.yaml")


# -- queries of another corpus ------------------------------------------------------------------------------------------


@pytest.fixture
def across(here: Path) -> Path:
    """Beside it, in field/, the corpus that the queries are of."""
    (here / "field").mkdir()
    (here / "field" / "their.yaml").write_text(
        "documents: d.csv\nqueries: q.csv\nspeakers: who.csv\nprefer: [wav]\nreferences: r.csv\nprotocol: sws2012\n"
    )
    (here / "data" / "across.yaml").write_text(
        "documents: docs.csv\nqueries_from: ../field/their.yaml\nreferences: across.csv\n"
    )
    return here


def test_queries_of_another_corpus_file(across: Path) -> None:
    config = load_config("systems/plain.yaml", corpus="data/across.yaml")
    corpus, theirs = config.corpus, config.corpus.queries_from
    assert (corpus.documents, corpus.references) == (f"{across}/data/docs.csv", f"{across}/data/across.csv")
    assert corpus.queries == f"{across}/field/q.csv"
    assert (theirs.documents, theirs.speakers) == (f"{across}/field/d.csv", f"{across}/field/who.csv")
    assert (theirs.prefer, theirs.statistics, theirs.same_speakers) == (("wav",), "theirs", False)
    assert config.score.protocol == "sws2013"
    plain = load_config("systems/plain.yaml")
    assert plain.corpus.queries_from.documents is None
    for written in (config, plain):
        (across / "dumped.yaml").write_text(dump_config(written))
        assert load_config("dumped.yaml") == written


def test_other_queries_win_and_sets_work_into_it(across: Path) -> None:
    (across / "data" / "across.yaml").write_text("documents: docs.csv\nqueries: own.csv\n")
    sets = [f"corpus.queries_from{text}" for text in ("=field/their.yaml", ".hours=2", ".statistics=ours")]
    corpus = load_config("systems/plain.yaml", sets, corpus="data/across.yaml").corpus
    theirs = corpus.queries_from
    assert corpus.queries == f"{across}/data/own.csv"
    assert (theirs.hours, theirs.statistics, theirs.documents) == (2, "ours", f"{across}/field/d.csv")
    written = {"run": "r", "corpus": {"documents": "d", "queries": "q", "queries_from": {"documents": "e"}}}
    assert config_from_dict(written, across).corpus.queries_from.documents == f"{across}/e"
    (across / "data" / "odd.yaml").write_text("document: d.csv\n")
    for line, where, key, code in (
        ("gone.yaml", "across.yaml:2", "", families.UNREADABLE_FILE),
        ("{hours: 2}", "across.yaml:2", "", families.MISSING_INPUT),
        ("odd.yaml", "odd.yaml:1", ".document", codes.UNKNOWN_KEY),
        ("{documents: d, hour: 2}", "across.yaml:2", ".hour", codes.UNKNOWN_KEY),
        ("http://x/y.yaml", "across.yaml:2", "", families.UNREADABLE_FILE),
    ):
        (across / "data" / "across.yaml").write_text(f"documents: docs.csv\nqueries_from: {line}\n")
        with raises(code, where=f"data/{where}", key=f"corpus.queries_from{key}"):
            load_config("systems/plain.yaml", corpus="data/across.yaml")


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_a_key_that_results_depend_on_is_listed() -> None:
    config = Config.model_validate({"run": "run", "corpus": {"documents": "docs.csv"}})
    before = settings_of(config)
    for section in ("corpus", "queries", "reduce", "calibrate", "score"):
        for key, field in Config.model_fields[section].annotation.model_fields.items():
            if not (field.json_schema_extra or {}).get("execution_only"):
                given = getattr(config, section).model_copy(update={key: "other"})
                after = settings_of(config.model_copy(update={section: given}))
                assert [name for name, value in after.items() if before[name] != value] == [f"{section}.{key}"]
