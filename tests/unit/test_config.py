"""A config becomes a Config, or one error that tells all that is wrong, where, and what was meant; and back."""

import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import swsdist
from swsdist.config import Config, config_from_dict, dump_config, load_config
from swsdist.config.model import Index
from swsdist.config.search import FeatureStream, Search
from swsdist.config.template import PLACEHOLDERS, dotted, find, keys, meant, reference, shown, template
from swsdist.config.template import is_one_or_more as repeats
from swsdist.core.codes import config as codes
from swsdist.core.codes import config as config_codes
from swsdist.core.codes import families
from swsdist.stages.inputs.corpus_documents import settings_of
from tests.support.coded import raises

#: Two lines that make any config complete.
LEAST = "run: out\ncorpus: {documents: docs.csv}\n"

Load = Callable[..., Config]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Write a text to my.yaml in the working directory and load it under that name."""
    monkeypatch.chdir(tmp_path)

    def write_and_load(text: str, *sets: str) -> Config:
        Path("my.yaml").write_text(textwrap.dedent(text), "utf-8")
        return load_config("my.yaml", sets)

    return write_and_load


def listed(call: Callable[..., Any], *arguments: Any) -> list[str]:
    """The lines of an error of several problems."""
    with raises(codes.INVALID_CONFIG) as caught:
        call(*arguments)
    lines = str(caught.value).splitlines()
    assert caught.value.values["count"] == len(lines) - 2
    return lines


def test_defaults_and_given_values(load: Load) -> None:
    config = load(LEAST + "search: {candidates: {least: 7}}\nreport: {exports: [csv, eaf]}\nindex: {shard_hours: 2}\n")
    assert (config.search.candidates.least, config.search.candidates.per_second) == (7, 0.3)
    assert (config.report.exports, config.index.shard_hours) == (("csv", "eaf"), 2.0)
    # A section given in part keeps the other defaults of that place; an empty one is as good as none.
    assert load(LEAST + "reduce: {nbest: {least: 3}}\n").reduce.nbest.per_second == 0.1
    for section in ("search", "storage", "features", "reduce"):
        assert load(f"{LEAST}{section}:\n") == load(LEAST)
    texts = "profile: , since: 2024-01-01, a: 012, b: 0o14, c: yes, d: 1:30, e: 1e3"  # YAML is 1.2
    values = {"profile": None, "since": "2024-01-01", "a": 12, "b": 12, "c": "yes", "d": "1:30", "e": 1000.0}
    assert load(f"{LEAST}storage: {{{texts}}}\n").storage == values


def test_six_different_errors_are_told_together_with_their_lines(load: Load) -> None:
    text = "run: ${NO}\ncorpus:\n  queries: q.csv\nsearch:\n  # a comment moves the lines\n  distnace: cosine\n"
    text += "  recurrence: bounded-slop\nexecutor:\n  workers: many\ncalibrate:\n  folds: 1\n"
    lines = listed(load, text)
    assert [(line.split(": ")[:2], line.rsplit(" [", 1)[1]) for line in lines[1:-1]] == [
        (["  my.yaml:1", "run"], "unset-variable]"),
        (["  my.yaml:2", "corpus.documents"], "missing-key]"),
        (["  my.yaml:6", "search.distnace"], "unknown-key]"),
        (["  my.yaml:7", "search.recurrence"], "invalid-value]"),
        (["  my.yaml:9", "executor.workers"], "invalid-value]"),
        (["  my.yaml:11", "calibrate.folds"], "invalid-value]"),
    ]
    for k, told in {1: "${NO:-default}", 3: "did you mean search.distance?", 4: "did you mean bounded-slope?"}.items():
        assert told in lines[k]
    assert lines[-1].startswith("  remedy: `swsdist init`")
    with raises(families.INVALID_VALUE, where="my.yaml:3", key="strict", value="yes", allowed="true | false"):
        load(LEAST + "strict: yes\n")


def test_an_unknown_key_or_value_names_what_was_meant(load: Load) -> None:
    for line, key, hint in (
        ("exports: [csv]", "exports", "did you mean report.exports?"),
        ("search: {folds: 3}", "search.folds", "did you mean calibrate.folds?"),
        ("normalise: none", "normalise", "did you mean search.normalise?"),
        ("index: {shard-hours: 1}", "index.shard-hours", "did you mean index.shard_hours?"),
        ("worker: 3", "worker", "did you mean executor.workers?"),
        ("search.distance: cosine", "search.distance", "in a file keys are nested, dotted names are for --set"),
    ):
        fields = Search if key.startswith("search.f") else Index if key.startswith("index") else Config
        values = {"meant": f"; {hint}" if hint else "", "keys": ", ".join(fields.model_fields)}
        with raises(codes.UNKNOWN_KEY, where="my.yaml:3", key=key, **values):
            load(f"{LEAST}{line}\n")
    for line, key, value, takes in (
        ("executor: {workers: '4'}", "executor.workers", '"4"', "integer > 0 | null"),
        ("system: 2024", "system", "2024", "text"),
        ("search: 5", "search", "5", "section with the keys distance, normalise"),
        ("report: {exports: csv}", "report.exports", "csv", "list of csv | stdlist"),
        ("report: {exports: [csv, lables]}", "report.exports[1]", "lables", "csv"),
        ("reduce: {overlap: 2}", "reduce.overlap", "2", "number >= 0 and <= 1"),
        ("index: {store: ''}", "index.store", '""', "path | null"),
        ("score: {tolerance: -1}", "score.tolerance", "-1", "number >= 0 | null"),
        ("index: {shard_hours: .inf}", "index.shard_hours", ".inf", ""),
    ):
        with raises(families.INVALID_VALUE, where="my.yaml:3", key=key, value=value) as caught:
            load(f"{LEAST}{line}\n")
        values = caught.value.values
        assert str(values.get("allowed")).startswith(takes)
        assert values.get("meant", "") == ("; did you mean labels?" if value == "lables" else "")
        assert bool(values.get("quote")) == (key == "system")


def test_an_error_in_a_list_of_sections_names_the_key_in_its_element(load: Load) -> None:
    invalid = families.INVALID_VALUE
    for stream, key, code, values in (
        ("{columns: [13, 0]}", ".columns[1]", invalid, {"value": "0", "allowed": "integer > 0"}),
        ("{columns: [0]}", ".columns[1]", codes.MISSING_KEY, {"allowed": "integer > 0"}),
        ("{columns: [0, 1, 2]}", ".columns", invalid, {"allowed": "[integer >= 0, integer > 0] | null"}),
        ("{weight: 2}", "", families.MISSING_INPUT, {}),
        ("{columns: [0, 13], weight: 17}", ".weight", invalid, {"allowed": "integer >= 1 and <= 16"}),
        (
            "{columns: [0, 13], wieght: 2}",
            ".wieght",
            codes.UNKNOWN_KEY,
            {"meant": "; did you mean search.streams[1].weight?", "keys": ", ".join(FeatureStream.model_fields)},
        ),
        ("{columns: [0, 13], lanes: 2}", ".lanes", codes.UNKNOWN_KEY, {"meant": "; did you mean search.lanes?"}),
    ):
        name = f"search.streams[1]{key}"
        with raises(code, where="my.yaml:3", key=name, **values):
            load(f"{LEAST}search: {{streams: [{{columns: [0, 13]}}, {stream}]}}\n")
        with raises(code, where="--set search.streams", key=name, **values):
            load(LEAST, f"search.streams=[{{columns: [0, 13]}}, {stream}]")
    text = "search:\n  streams:\n    - columns: [0, 13]\n      wieght: 2\n    - distance: cosine\n      columns:\n"
    lines = listed(load, f"{LEAST}{text}        - 13\n        - x\n")
    assert [line.split(": ")[:2] for line in lines[1:3]] == [
        ["  my.yaml:6", "search.streams[0].wieght"],
        ["  my.yaml:10", "search.streams[1].columns[1]"],
    ]


def test_what_is_not_strict_yaml_or_lacks_all_is_refused(load: Load, tmp_path: Path) -> None:
    odd = families.INVALID_YAML
    for text, line, key, code in (
        ("run: out\nrun: [\n", 3, "", codes.INVALID_YAML),
        ("run: *x\n", 1, "", codes.INVALID_YAML),
        ("run: " + 1000 * "[" + "\n", 1, "", codes.INVALID_YAML),
        ("- run\n", 1, "", codes.NOT_A_MAPPING),
        (LEAST + "run: other\n", 3, "run", odd),
        (LEAST + "strict: &x true\n", 3, "strict", odd),
        (LEAST + "system: !!str 5\n", 3, "system", odd),
        (LEAST + "storage: !!python/object {}\n", 3, "storage", odd),
        (LEAST + "storage: {1: x}\n", 3, "storage.1", odd),
        (LEAST + "&x strict: true\n", 3, "strict", odd),
        (LEAST + "? [a]\n: b\n", 3, "a list or mapping", odd),
    ):
        with raises(code, where=f"my.yaml:{line}", key=key):
            load(text)
    with raises(odd, earlier="; the first is in line 1"):
        load(LEAST + "run: other\n")
    lines = listed(load, "# nothing\n")
    assert [line.split(": ")[:2] for line in lines[1:-1]] == [["  my.yaml:1", "run"], ["  my.yaml:1", "corpus"]]
    assert all(line.endswith("[missing-key]") for line in lines[1:-1])
    (tmp_path / "latin.yaml").write_bytes(b"run: \xe9\n")
    for place, code in (
        (tmp_path / "none.yaml", families.UNREADABLE_FILE),
        (tmp_path, families.UNREADABLE_FILE),
        (tmp_path / "latin.yaml", families.MALFORMED_FILE),
    ):
        with raises(code, where=str(place)):
            load_config(place)


def test_variables_of_the_environment(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PLACE": "/data", "COUNT": "4", "EMPTY": ""}.items():
        monkeypatch.setenv(name, value)
    config = load(
        """\
        run: ${PLACE}/runs
        corpus: {documents: "${PLACE}/docs.csv", queries: "${UNSET_HERE:-queries}.csv"}
        system: "${COUNT}"
        executor:
          workers: ${COUNT}
          address: ${EMPTY}
        storage: {price: $$5, key: "${EMPTY:-none}", both: "$${COUNT}${COUNT}"}
        """
    )
    assert (config.run, config.corpus.documents) == ("/data/runs", "/data/docs.csv")
    assert config.corpus.queries == str(Path.cwd() / "queries.csv")
    assert (config.system, config.executor.workers, config.executor.address) == ("4", 4, None)
    assert config.storage == {"price": "$5", "key": "none", "both": "${COUNT}4"}
    for text in ("$HOME", "${}", "${A-b}", "a$"):
        with raises(families.UNSET_VARIABLE, where="my.yaml:3", key="system"):
            load(f"{LEAST}system: '{text}'\n")


def test_paths_are_relative_to_the_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.chdir("/")
    (tmp_path / "configs").mkdir()
    path = tmp_path / "configs" / "my.yaml"
    path.write_text(
        "run: ../runs/x\ncorpus: {documents: /abs/docs.csv, queries: ~/q.csv, references: 's3://bucket/refs.csv'}\n"
        "calibrate: {fit: models/threshold.json}\n"
    )
    config = load_config(path)
    corpus = config.corpus
    assert (config.run, config.index.store, config.store) == (f"{tmp_path}/runs/x", None, f"{tmp_path}/runs/x/store")
    assert [corpus.documents, corpus.queries] == ["/abs/docs.csv", "/home/someone/q.csv"]
    assert corpus.references == "s3://bucket/refs.csv"
    assert config.calibrate.fit == f"{tmp_path}/configs/models/threshold.json"
    with raises(families.INVALID_VALUE, meant="s3://bucket/run"):
        config_from_dict({"run": "s3:/bucket/run", "corpus": {"documents": "d"}}, tmp_path)


def test_the_words_of_fit_are_no_paths(load: Load) -> None:
    for word in ("none", "crossfit", "oracle"):
        assert load(f"{LEAST}calibrate: {{fit: {word}}}\n").calibrate.fit == word
    with raises(families.INVALID_VALUE, key="calibrate.fit", value="crosfit", meant="crossfit"):
        load(LEAST + "calibrate: {fit: crosfit}\n")
    assert load(LEAST + "calibrate: {fit: ./crosfit}\n").calibrate.fit == str(Path.cwd() / "crosfit")


def test_sets_win_over_the_file_and_their_errors_name_them(load: Load) -> None:
    sets = ["search.lanes=16", "search.lanes=32", "report.exports=[csv]", "executor.workers=null", "system=a=b"]
    sets += ["features.options.n_mels=40", "storage.endpoint_url=http://localhost:9000", "reduce.nbest={least: 3}"]
    text = "search: {distance: cosine, lanes: 8}\nexecutor: {workers: 3}\nsystem: ${SWSDIST_NO_SUCH}\n"
    config = load(LEAST + text, *sets)
    assert (config.search.lanes, config.search.distance) == (32, "cosine")
    assert (config.report.exports, config.executor.workers, config.system) == (("csv",), None, "a=b")
    assert config.features[0].options == {"n_mels": 40}
    assert config.storage == {"endpoint_url": "http://localhost:9000"}
    assert config.reduce.nbest.least == 3
    for assignment, code, values in (
        ("search.distance=cosin", families.INVALID_VALUE, {"meant": "; did you mean cosine?"}),
        ("serch.distance=cosine", codes.UNKNOWN_KEY, {"meant": "; did you mean search?", "key": "serch"}),
        ("search={lans: 3}", codes.UNKNOWN_KEY, {"meant": "; did you mean search.lanes?", "key": "search.lans"}),
        ("search.lanes", families.INVALID_VALUE, {"assignment": "search.lanes"}),
        ("search..lanes=3", families.INVALID_VALUE, {"assignment": "search..lanes=3"}),
        ("search.lanes=[3", codes.INVALID_YAML, {}),
        ("run.x=3", families.INVALID_YAML, {"value": "out"}),
        ("system=${SWSDIST_NO_SUCH}", families.UNSET_VARIABLE, {"name": "SWSDIST_NO_SUCH"}),
    ):
        with raises(code, **values) as caught:
            load(LEAST, assignment)
        assert caught.value.where == f"--set {assignment.split('=')[0]}"
    lines = listed(load, LEAST + "serch:\n", "search.lanes=0")
    assert [line.split(": ")[0] for line in lines[1:3]] == ["  my.yaml:3", "  --set search.lanes"]


def test_features_are_one_section_or_several_whose_errors_name_their_place(load: Load) -> None:
    assert [one.track_name for one in load(LEAST).features] == ["mfcc"]
    assert load(LEAST + "features:\n").features == load(LEAST).features
    (one,) = load(LEAST + "features: {track: mine, options: {n_mfcc: 20}}\n").features
    assert (one.name, one.track_name, one.options) == ("mfcc", "mine", {"n_mfcc": 20})
    both = load(LEAST + "features: [{name: mfcc}, {name: mfcc, track: energy, options: {n_mfcc: 1}}]\n").features
    assert [each.track_name for each in both] == ["mfcc", "energy"]
    for text in ("", "features: {options: {n_mfcc: 20}}\n", "features: [{name: mfcc}, {name: mfcc, track: e}]\n"):
        config = load(LEAST + text)
        Path("again.yaml").write_text(dump_config(config), "utf-8")
        assert load_config("again.yaml") == config
    assert "features:\n  name: mfcc\n" in dump_config(load(LEAST))
    for text, line, key, code, values in (
        ("{nmae: mfcc}", 3, "features.nmae", codes.UNKNOWN_KEY, {"meant": "; did you mean features.name?"}),
        ("{name: 3}", 3, "features.name", families.INVALID_VALUE, {"quote": " (in quotes)"}),
        ("\n- name: a\n- name: 3", 5, "features[1].name", families.INVALID_VALUE, {"value": "3"}),
        ("[]", 1, "", families.MISSING_INPUT, {}),
        ("3", 3, "features", families.INVALID_VALUE, {"value": "3"}),
        ("[{name: a}, {name: b, track: a}]", 1, "", families.DUPLICATE_NAME, {"count": 2, "track": "a"}),
    ):
        with raises(code, where=f"my.yaml:{line}", key=key, **values):
            load(f"{LEAST}features: {text}\n")


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


def test_a_corpus_file_has_its_own_paths_and_a_system_names_no_corpus(here: Path) -> None:
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
    (here / "systems" / "cosine.yaml").write_text("search: {distance: cosine-squared}\n")
    config = load_config("systems/cosine.yaml", ["corpus.queries=q2.csv"], corpus="data/one.yaml", run="runs/x")
    assert (config.run, config.system) == (f"{here}/runs/x", "cosine")
    assert (config.corpus.documents, config.corpus.queries) == (f"{here}/data/docs.csv", f"{here}/q2.csv")
    with raises(families.UNREADABLE_FILE, where="--corpus", path="data/none.yaml"):
        load_config("systems/cosine.yaml", corpus="data/none.yaml", run="x")
    assert load_config("systems/plain.yaml", ["system=other"]).system == "other"
    (here / "kept.yaml").write_text(dump_config(load_config("systems/plain.yaml")))
    assert load_config("kept.yaml") == load_config("systems/plain.yaml")
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
        ("documents: d\ndocuments: e\n", 2, "documents", families.INVALID_YAML, {}),
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


def test_queries_of_another_corpus_file_and_other_queries_win(across: Path) -> None:
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


CONFIGS = Path(__file__).resolve().parents[2] / "configs"
SHARED = Path(__file__).resolve().parents[2].parent / "shared"


def test_dumped_and_loaded_it_is_the_same_config(tmp_path: Path) -> None:
    values = {"run": tmp_path / "out", "corpus": {"documents": "docs.csv"}}
    values |= {"report": {"exports": ("csv",)}, "storage": {"price": "$5"}}
    config = config_from_dict(values, tmp_path, ["search.lanes=8"])
    assert (config.run, config.corpus.documents) == (f"{tmp_path}/out", f"{tmp_path}/docs.csv")
    assert (config.report.exports, config.storage, config.search.lanes) == (("csv",), {"price": "$5"}, 8)
    with raises(config_codes.INVALID_CONFIG, where="config", count=2) as caught:
        config_from_dict({"run": "r", "corpus": {"documents": "d", "queries": object()}, "sistem": "x"})
    _, first, second, _ = str(caught.value).splitlines()
    assert (first.split(": ")[0], first.split()[-1]) == ("  corpus.queries", "[invalid-value]")
    assert (second.split(": ")[0], second.split()[-1]) == ("  sistem", "[unknown-key]")


number = st.integers(1 - 2**63, 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
plain = st.recursive(
    st.none() | st.booleans() | number | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@example(system="b\x85:", storage={"\u2028": "\U0001f600", "a: b": ["#", {"$": "$"}]})
@given(system=st.text(min_size=1), storage=st.dictionaries(st.text(), plain, max_size=3))
def test_any_value_survives(tmp_path_factory: pytest.TempPathFactory, system: str, storage: dict[str, Any]) -> None:
    config = config_from_dict({"run": "r", "corpus": {"documents": "d"}, "system": system, "storage": storage})
    path = tmp_path_factory.getbasetemp() / "dumped.yaml"
    path.write_bytes(dump_config(config).encode())
    assert load_config(path) == config


def test_the_configs_of_the_project_load() -> None:
    if not SHARED.is_dir():
        pytest.skip("needs ../shared beside the checkout")
    for path in sorted(CONFIGS.glob("*.yaml")):
        config = load_config(path)
        assert config.run == str(CONFIGS.parent / "runs" / path.stem)
        for table in (config.corpus.documents, config.corpus.queries, config.corpus.references):
            assert Path(str(table)).is_file(), path
    for path in sorted((CONFIGS / "systems").glob("*.yaml")):
        config = load_config(path, corpus=str(CONFIGS / "corpora/mboshi-dev.yaml"), run="runs/x")
        assert config.system == path.stem
        named = [each.options["weights"] for each in config.features if each.name == "phnrec"]
        assert all(Path(str(weights)).is_dir() for weights in named)


FIELDS = {key.dotted: key.field for key in keys()}


def test_which_keys_are_meant_and_values_shown() -> None:
    assert find(("calibrate", "fit", "constrained-str"))[1:] == (FIELDS["calibrate.fit"], ("calibrate", "fit"))
    assert find(("report", "exports", 1, "x"))[2] == ("report", "exports", 1)
    assert find(("search", "none")) == (Search, None, ("search", "none"))
    assert find(()) == (None, None, ())
    assert (dotted(("report", "exports", 1)), dotted(())) == ("report.exports[1]", "")
    found = [meant(name, Search, ("search",)) for name in ("exports", "lane", "qqqq")]
    assert found == [["report.exports"], ["search.lanes"], []]
    for text in ("cosine", "s3://b/k", "/a/b.c"):
        assert shown(text) == text
    for text in ("null", "True", "4", "", "a: b", "a:"):
        assert shown(text) == f'"{text}"'
    values: list[Any] = ["é\x85\n", None, True, 1.5, float("inf"), [1, "x"], {"a": [None]}]
    texts = ['"é\\U00000085\\n"', "null", "true", "1.5", ".inf", "[1, x]", "{a: [null]}"]
    assert [shown(value) for value in values] == texts
    assert shown("a" * 100, 20) == "a" * 17 + "..."


PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "config.md"


def test_the_template_gives_the_defaults_and_shows_every_key(tmp_path: Path) -> None:
    path, plain = tmp_path / "my.yaml", tmp_path / "plain.yaml"
    path.write_text(template())
    given = {name: str(tmp_path / PLACEHOLDERS[f"corpus.{name}"]) for name in ("documents", "queries")}
    least = Config.model_validate({"run": str(tmp_path / PLACEHOLDERS["run"]), "corpus": given, "system": "my"})
    assert load_config(path) == least
    # And with every default uncommented.
    plain.write_text(re.sub(r"(?m)^( *)#(?=\w)", r"\1", template()))
    assert load_config(plain) == load_config(path, ["system=mfcc-cosine"])
    path = tmp_path / "my.yaml"
    path.write_text(template({"run": "s3://b/r", "corpus.documents": "/a b/$x: #.csv", "report.exports": ["csv"]}))
    config = load_config(path)
    assert config.run == "s3://b/r"
    assert config.corpus.documents == "/a b/$x: #.csv"
    assert config.corpus.queries is None
    assert config.report.exports == ("csv",)
    for key in keys():
        indent = "  " * (len(key.place) - 1)
        assert re.search(rf"(?m)^{indent}# .*\n(?:{indent}#   .*\n)*{indent}#?{key.place[-1]}:", template()), key.dotted
    assert PAGE.read_text() == reference(), "run: python -m tools.pages"
    # So that the defaults in the page hold also for a section that is given in part.
    for key in keys():
        if key.section and not key.field.is_required():
            alone = key.section()
            assert key.field.default == ((alone,) if repeats(key.field) else alone), key.dotted


def test_what_is_no_config_or_list_of_sets(tmp_path: Path) -> None:
    """A text is no list of its letters."""
    for function, name in ((swsdist.run, "config"), (swsdist.sweep, "path")):
        for sets in ("run=abc", None, 5, [5]):
            with raises(families.INVALID_VALUE, where="sets"):
                function(str(tmp_path / "none.yaml"), sets=sets)
        for config in (None, 5, ["a.yaml"]):
            with raises(families.INVALID_VALUE, where=name):
                function(config)
