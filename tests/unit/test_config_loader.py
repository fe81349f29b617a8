"""A config file becomes a Config, or one error that tells all that is wrong, where, and what was meant."""

from __future__ import annotations

import pickle
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from swsdist.config import Config, config_from_dict, dump_config, load_config
from swsdist.config.model import Index
from swsdist.config.search import FeatureStream, Search
from swsdist.core.codes import config as codes
from swsdist.core.codes import families
from swsdist.core.errors import ConfigError
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


# Values


def test_defaults_and_given_values(load: Load) -> None:
    config = load(
        LEAST + "search: {candidates: {least: 7}}\nreport: {exports: [csv, clips]}\nindex: {shard_hours: 2}\n"
    )
    assert (config.search.candidates.least, config.search.candidates.per_second) == (7, 0.3)
    assert (config.report.exports, config.index.shard_hours) == (("csv", "clips"), 2.0)
    # A section given in part keeps the other defaults of that place; an empty one is as good as none.
    assert load(LEAST + "reduce: {nbest: {least: 3}}\n").reduce.nbest.per_second == 0.1
    for section in ("search", "storage", "features", "reduce"):
        assert load(f"{LEAST}{section}:\n") == load(LEAST)
    texts = "profile: , since: 2024-01-01, a: 012, b: 0o14, c: yes, d: 1:30, e: 1e3"  # YAML is 1.2
    values = {"profile": None, "since": "2024-01-01", "a": 12, "b": 12, "c": "yes", "d": "1:30", "e": 1000.0}
    assert load(f"{LEAST}storage: {{{texts}}}\n").storage == values


# Errors


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
    for line, told in {
        1: "${NO:-default}",
        3: "did you mean search.distance?",
        4: "did you mean bounded-slope?",
    }.items():
        assert told in lines[line]
    assert lines[-1].startswith("  remedy: `swsdist init`")
    with raises(families.INVALID_VALUE, where="my.yaml:3", key="strict", value="yes", allowed="true | false"):
        load(LEAST + "strict: yes\n")


def test_an_unknown_key_names_the_one_that_was_meant(load: Load) -> None:
    for line, key, meant in (
        ("exports: [csv]", "exports", "did you mean report.exports?"),
        ("search: {folds: 3}", "search.folds", "did you mean calibrate.folds?"),
        ("normalise: none", "normalise", "did you mean search.normalise?"),
        ("index: {shard-hours: 1}", "index.shard-hours", "did you mean index.shard_hours?"),
        ("worker: 3", "worker", "did you mean executor.workers?"),
        ("qqqq: 3", "qqqq", ""),
        ("search.distance: cosine", "search.distance", "in a file keys are nested, dotted names are for --set"),
    ):
        fields = Search if key.startswith("search.f") else Index if key.startswith("index") else Config
        values = {"meant": f"; {meant}" if meant else "", "keys": ", ".join(fields.model_fields)}
        with raises(codes.UNKNOWN_KEY, where="my.yaml:3", key=key, **values):
            load(f"{LEAST}{line}\n")


def test_a_wrong_value_names_the_allowed_ones(load: Load) -> None:
    for line, key, value, allowed in (
        ("executor: {workers: '4'}", "executor.workers", '"4"', "integer > 0 | null"),
        ("executor: {workers: true}", "executor.workers", "true", "integer > 0 | null"),
        ("system: 2024", "system", "2024", "text"),
        ("search: 5", "search", "5", "section with the keys distance, normalise"),
        ("search: [a]", "search", "[a]", "section with the keys"),
        ("storage: 5", "storage", "5", "mapping"),
        ("report: {exports: csv}", "report.exports", "csv", "list of csv | stdlist"),
        ("report: {exports: [csv, lables]}", "report.exports[1]", "lables", "csv"),
        ("reduce: {overlap: 2}", "reduce.overlap", "2", "number >= 0 and <= 1"),
        ("index: {store: ''}", "index.store", '""', "path | null"),
        ("calibrate: {fit: 3}", "calibrate.fit", "3", "none | crossfit | oracle | path"),
        ("score: {tolerance: -1}", "score.tolerance", "-1", "number >= 0 | null"),
        ("index: {shard_hours: .inf}", "index.shard_hours", ".inf", ""),
        ("storage: {x: [.nan]}", "storage.x[0]", ".nan", ""),
    ):
        with raises(families.INVALID_VALUE, where="my.yaml:3", key=key, value=value) as caught:
            load(f"{LEAST}{line}\n")
        values = caught.value.values
        assert str(values.get("allowed")).startswith(allowed)
        assert values.get("meant", "") == ("; did you mean labels?" if value == "lables" else "")
        assert bool(values.get("quote")) == (key == "system")


def test_an_error_in_a_list_of_sections_names_the_key_in_its_element(load: Load) -> None:
    invalid = families.INVALID_VALUE
    for stream, key, code, values in (
        ("{columns: [13, 0]}", ".columns[1]", invalid, {"value": "0", "allowed": "integer > 0"}),
        ("{columns: [-1, 13]}", ".columns[0]", invalid, {"value": "-1", "allowed": "integer >= 0"}),
        ("{columns: [0]}", ".columns[1]", codes.MISSING_KEY, {"allowed": "integer > 0"}),
        ("{columns: [0, 1, 2]}", ".columns", invalid, {"allowed": "[integer >= 0, integer > 0] | null"}),
        ("{weight: 2}", "", families.MISSING_INPUT, {}),
        ("{columns: [0, 13], weight: 17}", ".weight", invalid, {"allowed": "integer >= 1 and <= 16"}),
        ("{columns: [0, 13], distance: cosin}", ".distance", invalid, {"meant": "; did you mean cosine?"}),
        (
            "{columns: [0, 13], wieght: 2}",
            ".wieght",
            codes.UNKNOWN_KEY,
            {"meant": "; did you mean search.streams[1].weight?", "keys": ", ".join(FeatureStream.model_fields)},
        ),
        ("{columns: [0, 13], lanes: 2}", ".lanes", codes.UNKNOWN_KEY, {"meant": "; did you mean search.lanes?"}),
        ("3", "", invalid, {"value": "3"}),
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


def test_what_is_not_strict_yaml_is_refused_at_its_line(load: Load) -> None:
    odd = families.INVALID_YAML
    for text, line, key, code in (
        ("run: out\nrun: [\n", 3, "", codes.INVALID_YAML),
        ("run: a: b\n", 1, "", codes.INVALID_YAML),
        ("run: out\n\tx: 1\n", 2, "", codes.INVALID_YAML),
        ("run: out\n---\nrun: out\n", 2, "", codes.INVALID_YAML),
        ("run: out\nsystem: \x07\n", 2, "", codes.INVALID_YAML),
        ("run: *x\n", 1, "", codes.INVALID_YAML),
        ("run: " + 4000 * "[" + "\n", 1, "", codes.INVALID_YAML),
        ("- run\n", 1, "", codes.NOT_A_MAPPING),
        (LEAST + "run: other\n", 3, "run", odd),
        (LEAST + "features: {name: mfcc, name: mfcc}\n", 3, "features.name", odd),
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


def test_a_file_that_lacks_all_or_cannot_be_read(load: Load, tmp_path: Path) -> None:
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


def test_the_error_survives_the_way_between_processes(load: Load) -> None:
    with pytest.raises(ConfigError) as caught:
        load("serch:\n")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert caught.value.exit_code == 2


# Environment


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


# Paths


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


# --set


def test_sets_win_over_the_file_and_the_later_over_the_earlier(load: Load) -> None:
    sets = ["search.lanes=16", "search.lanes=32", "report.exports=[csv]", "executor.workers=null", "system=a=b"]
    sets += ["features.options.n_mels=40", "storage.endpoint_url=http://localhost:9000", "reduce.nbest={least: 3}"]
    text = "search: {distance: cosine, lanes: 8}\nexecutor: {workers: 3}\nsystem: ${SWSDIST_NO_SUCH}\n"
    config = load(LEAST + text, *sets)
    assert (config.search.lanes, config.search.distance) == (32, "cosine")
    assert (config.report.exports, config.executor.workers, config.system) == (("csv",), None, "a=b")
    assert config.features[0].options == {"n_mels": 40}
    assert config.storage == {"endpoint_url": "http://localhost:9000"}
    assert config.reduce.nbest.least == 3


def test_paths_of_a_set_are_relative_to_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "my.yaml").write_text(LEAST)
    monkeypatch.chdir(tmp_path / "here")
    config = load_config("../my.yaml", ["run=r", "corpus={documents: d, queries: q}", "calibrate.fit=./f"])
    assert config.run == f"{tmp_path}/here/r"
    assert config.corpus.documents == f"{tmp_path}/here/d"
    assert config.calibrate.fit == f"{tmp_path}/here/f"
    assert load_config("../my.yaml", ["corpus.queries=q"]).corpus.documents == f"{tmp_path}/docs.csv"


def test_an_error_of_a_set_names_it(load: Load) -> None:
    for assignment, code, values in (
        ("search.distance=cosin", families.INVALID_VALUE, {"meant": "; did you mean cosine?"}),
        ("search.distnace=cosine", codes.UNKNOWN_KEY, {"meant": "; did you mean search.distance?"}),
        ("serch.distance=cosine", codes.UNKNOWN_KEY, {"meant": "; did you mean search?", "key": "serch"}),
        ("search={lans: 3}", codes.UNKNOWN_KEY, {"meant": "; did you mean search.lanes?", "key": "search.lans"}),
        ("search.lanes", families.INVALID_VALUE, {"assignment": "search.lanes"}),
        ("search..lanes=3", families.INVALID_VALUE, {"assignment": "search..lanes=3"}),
        ("search.lanes=[3", codes.INVALID_YAML, {}),
        ("run.x=3", families.INVALID_YAML, {"value": "out"}),
        ("system=${SWSDIST_NO_SUCH}", families.UNSET_VARIABLE, {"name": "SWSDIST_NO_SUCH"}),
        ("features={name: a, name: b}", families.INVALID_YAML, {"key": "features.name"}),
    ):
        with raises(code, **values) as caught:
            load(LEAST, assignment)
        assert caught.value.where == f"--set {assignment.split('=')[0]}"
    lines = listed(load, LEAST + "serch:\n", "search.lanes=0")
    assert [line.split(": ")[0] for line in lines[1:3]] == ["  my.yaml:3", "  --set search.lanes"]


# One extractor, or several tracks


def test_features_are_one_section_or_several(load: Load) -> None:
    assert [one.track_name for one in load(LEAST).features] == ["mfcc"]
    assert load(LEAST + "features:\n").features == load(LEAST).features
    (one,) = load(LEAST + "features: {track: mine, options: {n_mfcc: 20}}\n").features
    assert (one.name, one.track_name, one.options) == ("mfcc", "mine", {"n_mfcc": 20})
    both = load(LEAST + "features: [{name: mfcc}, {name: mfcc, track: energy, options: {n_mfcc: 1}}]\n").features
    assert [each.track_name for each in both] == ["mfcc", "energy"]


def test_tracks_are_dumped_and_read_back(load: Load) -> None:
    for text in ("", "features: {options: {n_mfcc: 20}}\n", "features: [{name: mfcc}, {name: mfcc, track: e}]\n"):
        config = load(LEAST + text)
        Path("again.yaml").write_text(dump_config(config), "utf-8")
        assert load_config("again.yaml") == config
    assert "features:\n  name: mfcc\n" in dump_config(load(LEAST))


def test_errors_of_tracks_name_their_place(load: Load) -> None:
    for text, line, key, code, values in (
        ("{nmae: mfcc}", 3, "features.nmae", codes.UNKNOWN_KEY, {"meant": "; did you mean features.name?"}),
        ("{name: 3}", 3, "features.name", families.INVALID_VALUE, {"quote": " (in quotes)"}),
        ("\n- name: a\n- name: 3", 5, "features[1].name", families.INVALID_VALUE, {"value": "3"}),
        ("[{name: a}, {nmae: b}]", 3, "features[1].nmae", codes.UNKNOWN_KEY, {}),
        ("[]", 1, "", families.MISSING_INPUT, {}),
        ("3", 3, "features", families.INVALID_VALUE, {"value": "3"}),
        ("[{name: a}, {name: b, track: a}]", 1, "", families.DUPLICATE_NAME, {"count": 2, "track": "a"}),
    ):
        with raises(code, where=f"my.yaml:{line}", key=key, **values):
            load(f"{LEAST}features: {text}\n")
