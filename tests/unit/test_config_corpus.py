"""A corpus apart from a system: a file of its own, whose paths and errors are its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from swsdist.config import Config, config_from_dict, dump_config, load_config
from swsdist.core.codes import Code, families
from swsdist.core.codes import config as codes
from swsdist.core.errors import ConfigError
from swsdist.stages.inputs.corpus_documents import settings_of
from tests.support.coded import raises

ROOT = Path(__file__).resolve().parents[2]


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


def test_paths_are_relative_to_the_corpus_file(here: Path) -> None:
    config = load_config("systems/plain.yaml")
    corpus = config.corpus
    assert config.run == f"{here}/out"
    assert corpus.documents == f"{here}/data/docs.csv"
    assert corpus.queries == f"{here}/data/q.csv"
    assert (corpus.speakers, corpus.cohort) == (f"{here}/data/who.csv", f"{here}/data/c.csv")
    assert (corpus.alignments.words, corpus.alignments.phones) == (f"{here}/data/w.ctm", "/abs/p.ctm")
    assert (corpus.parts.train, corpus.parts.test) == (("a", "b"), f"{here}/data/t.csv")


def test_a_set_works_into_it_and_over_it(here: Path) -> None:
    config = load_config("systems/plain.yaml", ["corpus.queries=other.csv", "corpus.alignments.words=null"])
    assert config.corpus.queries == f"{here}/other.csv"
    assert config.corpus.references == f"{here}/data/refs.csv"
    assert config.corpus.alignments.words is None
    (here / "data" / "two.yaml").write_text("documents: d2.csv\n")
    config = load_config("systems/plain.yaml", ["corpus=data/two.yaml", "corpus.queries=q2.csv"])
    assert (config.corpus.documents, config.corpus.queries) == (f"{here}/data/d2.csv", f"{here}/q2.csv")
    assert config.corpus.references is None


def test_system_corpus_and_run_are_told_apart(here: Path) -> None:
    (here / "systems" / "cosine.yaml").write_text("search: {distance: cosine-squared}\n")
    config = load_config("systems/cosine.yaml", ["corpus.queries=q2.csv"], corpus="data/one.yaml", run="runs/x")
    assert config.run == f"{here}/runs/x"
    assert config.system == "cosine"
    assert (config.corpus.documents, config.corpus.queries) == (f"{here}/data/docs.csv", f"{here}/q2.csv")
    with raises(families.UNREADABLE_FILE, path="data/none.yaml") as caught:
        load_config("systems/cosine.yaml", corpus="data/none.yaml", run="x")
    assert caught.value.where == "--corpus"
    assert "No such file" in str(caught.value.values["reason"])


def test_the_system_is_called_as_its_file(here: Path) -> None:
    assert load_config("systems/plain.yaml").system == "plain"
    assert load_config("systems/plain.yaml", ["system=other"]).system == "other"
    (here / "kept.yaml").write_text(dump_config(load_config("systems/plain.yaml")))
    assert load_config("kept.yaml") == load_config("systems/plain.yaml")


def test_the_corpus_names_the_protocol_unless_the_config_does(here: Path) -> None:
    assert load_config("systems/plain.yaml").score.protocol == "openkws13"
    assert load_config("systems/plain.yaml", ["score.protocol=sws2012"]).score.protocol == "sws2012"
    assert load_config("systems/plain.yaml", ["corpus.protocol=null"]).score.protocol == "sws2013"
    values = {"run": "r", "corpus": {"documents": "d", "protocol": "stdeval"}, "score": {"beta": 2.0}}
    assert (config_from_dict(values).score.protocol, config_from_dict(values).score.beta) == ("stdeval", 2.0)


def test_from_python(here: Path) -> None:
    assert config_from_dict({"run": "r", "corpus": "data/one.yaml"}).corpus.documents == f"{here}/data/docs.csv"


@pytest.mark.parametrize(
    ("text", "line", "key", "code", "values"),
    [
        (
            "documents: d\nquerys: q\n",
            2,
            "corpus.querys",
            codes.UNKNOWN_KEY,
            {"meant": "; did you mean corpus.queries?"},
        ),
        ("queries: q\n", 1, "corpus.documents", codes.MISSING_KEY, {"allowed": "path"}),
        (
            "documents: d\n\nqueries: [a]\n",
            3,
            "corpus.queries",
            families.INVALID_VALUE,
            {"value": "[a]", "allowed": "path | null"},
        ),
        (
            "documents: d\ndocuments: e\n",
            2,
            "corpus.documents",
            families.INVALID_YAML,
            {"earlier": "; the first is in line 1"},
        ),
        ("documents: d\nqueries: [\n", 3, "corpus", codes.INVALID_YAML, {}),
        (
            "documents: ${SWSDIST_NO_SUCH}\n",
            1,
            "corpus.documents",
            families.UNSET_VARIABLE,
            {"name": "SWSDIST_NO_SUCH"},
        ),
        ("- d\n", 1, "corpus", codes.NOT_A_MAPPING, {"what": "corpus file"}),
        ("documents: d\nprotocol: sws\n", 2, "corpus.protocol", families.INVALID_VALUE, {"value": "sws"}),
        ("documents: d\nparts: {train: []}\n", 2, "corpus.parts.train", families.INVALID_VALUE, {"value": "[]"}),
    ],
)
def test_an_error_names_the_corpus_file_and_its_line(
    here: Path, text: str, line: int, key: str, code: Code[ConfigError], values: dict[str, object]
) -> None:
    (here / "data" / "one.yaml").write_text(text)
    with raises(code, where=f"data/one.yaml:{line}", key=key, **values):
        load_config("systems/plain.yaml")


def test_errors_of_both_files_come_together(here: Path) -> None:
    (here / "data" / "one.yaml").write_text("documents: d\nquerys: q\n")
    (here / "systems" / "plain.yaml").write_text("run: x\ncorpus: ../data/one.yaml\n\nserch:\n")
    with raises(codes.INVALID_CONFIG, where="systems/plain.yaml", count=3) as caught:
        load_config("systems/plain.yaml", ["search.lanes=0"])
    lines = str(caught.value).splitlines()
    assert [line.split(": ")[0].strip() for line in lines[1:4]] == [
        "systems/plain.yaml:4",
        "data/one.yaml:2",
        "--set search.lanes",
    ]


def test_a_file_that_is_not_there(here: Path) -> None:
    (here / "systems" / "plain.yaml").write_text("run: x\ncorpus: no.yaml\n")
    with raises(families.UNREADABLE_FILE, where="systems/plain.yaml:2", key="corpus", path="no.yaml"):
        load_config("systems/plain.yaml")
    (here / "systems" / "plain.yaml").write_text("run: x\ncorpus: http://host/no.yaml\n")
    with raises(families.UNREADABLE_FILE, where="systems/plain.yaml:2", path="http://host/no.yaml"):
        load_config("systems/plain.yaml")


@pytest.mark.parametrize("name", ["mboshi-tiny", "mboshi-dev"])
def test_configs_of_ours(name: str) -> None:
    config = load_config(ROOT / "configs" / f"{name}.yaml")
    assert config.system == "mfcc-cosine"
    assert (
        config.corpus
        == load_config(ROOT / "configs" / f"{name}.yaml", corpus=f"{ROOT}/configs/corpora/{name}.yaml").corpus
    )
    folder = f"{ROOT.parent}/shared/data/mboshi/{name.removeprefix('mboshi-')}"
    assert config.corpus.queries == f"{folder}/queries.csv"
    assert config.corpus.alignments.phones == f"{folder}/phones.ctm"


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
    (across / "dumped.yaml").write_text(dump_config(config))
    assert load_config("dumped.yaml") == config
    # Without one, what is written can be read, too.
    plain = load_config("systems/plain.yaml")
    assert plain.corpus.queries_from.documents is None
    (across / "dumped.yaml").write_text(dump_config(plain))
    assert load_config("dumped.yaml") == plain


def test_other_queries_win_and_sets_work_into_it(across: Path) -> None:
    (across / "data" / "across.yaml").write_text("documents: docs.csv\nqueries: own.csv\n")
    sets = [
        "corpus.queries_from=field/their.yaml",
        "corpus.queries_from.hours=2",
        "corpus.queries_from.statistics=ours",
    ]
    corpus = load_config("systems/plain.yaml", sets, corpus="data/across.yaml").corpus
    assert corpus.queries == f"{across}/data/own.csv"
    assert (corpus.queries_from.hours, corpus.queries_from.statistics) == (2, "ours")
    assert corpus.queries_from.documents == f"{across}/field/d.csv"
    written = {"run": "r", "corpus": {"documents": "d", "queries": "q", "queries_from": {"documents": "e"}}}
    assert config_from_dict(written, across).corpus.queries_from.documents == f"{across}/e"


@pytest.mark.parametrize(
    ("line", "where", "key", "code"),
    [
        ("queries_from: gone.yaml", "data/across.yaml:2", "corpus.queries_from", families.UNREADABLE_FILE),
        ("queries_from: {hours: 2}", "data/across.yaml:2", "corpus.queries_from", families.MISSING_INPUT),
        ("queries_from: odd.yaml", "data/odd.yaml:1", "corpus.queries_from.document", codes.UNKNOWN_KEY),
        ("queries_from: {documents: d, hour: 2}", "data/across.yaml:2", "corpus.queries_from.hour", codes.UNKNOWN_KEY),
        ("queries_from: http://x/y.yaml", "data/across.yaml:2", "corpus.queries_from", families.UNREADABLE_FILE),
    ],
)
def test_what_is_wrong_with_it(across: Path, line: str, where: str, key: str, code: Code[ConfigError]) -> None:
    (across / "data" / "odd.yaml").write_text("document: d.csv\n")
    (across / "data" / "across.yaml").write_text(f"documents: docs.csv\n{line}\n")
    with raises(code, where=where, key=key):
        load_config("systems/plain.yaml", corpus="data/across.yaml")


OF_RESULTS = [
    (section, key)
    for section in ("corpus", "queries", "reduce", "calibrate", "score")
    for key, field in Config.model_fields[section].annotation.model_fields.items()
    if not (field.json_schema_extra or {}).get("execution_only")
]


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize(("section", "key"), OF_RESULTS)
def test_a_key_that_results_depend_on_is_listed(section: str, key: str) -> None:
    config = Config.model_validate({"run": "run", "corpus": {"documents": "docs.csv"}})
    changed = config.model_copy(update={section: getattr(config, section).model_copy(update={key: "other"})})
    before = settings_of(config)
    assert [name for name, value in settings_of(changed).items() if before[name] != value] == [f"{section}.{key}"]
