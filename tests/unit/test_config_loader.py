"""A config file becomes a Config, or one error that tells all that is wrong, where, and what was meant."""

from __future__ import annotations

import pickle
import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from swsdist.config import Config, config_from_dict, dump_config, load_config
from swsdist.config.model import Index
from swsdist.config.search import FeatureStream, Search
from swsdist.core.codes import Code, families
from swsdist.core.codes import config as codes
from swsdist.core.errors import ConfigError
from swsdist.registry.registries import RECURRENCES
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
        LEAST + "search: {distance: cosine-squared, candidates: {least: 7}}\nreport: {exports: [csv, clips]}\n"
    )
    assert config.search.distance == "cosine-squared"
    assert config.search.candidates.least == 7
    assert config.search.candidates.per_second == 0.3
    assert config.report.exports == ("csv", "clips")
    assert config.score == Config.model_validate({"run": "r", "corpus": {"documents": "d"}}).score


def test_a_section_given_in_part_keeps_the_other_defaults_of_that_place(load: Load) -> None:
    assert load(LEAST + "reduce: {nbest: {least: 3}}\n").reduce.nbest.per_second == 0.1


def test_an_integer_serves_as_a_number(load: Load) -> None:
    assert load(LEAST + "index: {shard_hours: 2}\n").index.shard_hours == 2.0


@pytest.mark.parametrize("section", ["search", "storage", "features", "reduce"])
def test_an_empty_section_is_as_good_as_none(load: Load, section: str) -> None:
    assert load(f"{LEAST}{section}:\n") == load(LEAST)


def test_an_empty_option_is_null_and_dates_are_text(load: Load) -> None:
    assert load(LEAST + "storage: {profile: , since: 2024-01-01}\n").storage == {"profile": None, "since": "2024-01-01"}


@pytest.mark.parametrize(
    ("text", "value"), [("012", 12), ("0o14", 12), ("yes", "yes"), ("1:30", "1:30"), ("1e3", 1000.0)]
)
def test_yaml_is_1_2(load: Load, text: str, value: object) -> None:
    assert load(f"{LEAST}storage: {{x: {text}}}\n").storage["x"] == value


# Errors


def test_six_different_errors_are_told_together_with_their_lines(load: Load) -> None:
    lines = listed(
        load,
        """\
        run: ${SWSDIST_NO_SUCH}
        corpus:
          queries: queries.csv
        search:
          # a comment moves the lines
          distnace: cosine
          recurrence: bounded-slop
        executor:
          workers: many
        calibrate:
          folds: 1
        """,
    )
    assert lines[0].startswith("my.yaml: 6 errors")
    assert [re.sub(r": .*", "", line.split(": ", 1)[1]) for line in lines[1:-1]] == [
        "run", "corpus.documents", "search.distnace", "search.recurrence", "executor.workers", "calibrate.folds",
    ]  # fmt: skip
    assert [(line.split(":")[1], line.rsplit(" [", 1)[1]) for line in lines[1:-1]] == [
        ("1", "unset-variable]"),
        ("2", "missing-key]"),
        ("6", "unknown-key]"),
        ("7", "invalid-value]"),
        ("9", "invalid-value]"),
        ("11", "invalid-value]"),
    ]
    assert "${SWSDIST_NO_SUCH:-default}" in lines[1]
    assert "table (CSV or Parquet" in lines[2]
    assert "did you mean search.distance?" in lines[3]
    assert ", ".join(Search.model_fields) in lines[3]
    assert "bounded-slop is not allowed; did you mean bounded-slope?" in lines[4]
    assert " | ".join(RECURRENCES) in lines[4]
    assert "many" in lines[5]
    assert "integer > 0 | null" in lines[5]
    assert "integer >= 2" in lines[6]
    assert lines[-1].startswith("  remedy: `swsdist init`")


def test_one_error_has_its_code_and_values(load: Load) -> None:
    with raises(families.INVALID_VALUE, where="my.yaml:3", key="strict", value="yes", allowed="true | false") as caught:
        load(LEAST + "strict: yes\n")
    assert caught.value.message.startswith("strict: ")
    assert len(str(caught.value).splitlines()) == 2


@pytest.mark.parametrize(
    ("line", "key", "meant"),
    [
        ("exports: [csv]", "exports", "; did you mean report.exports?"),
        ("search: {folds: 3}", "search.folds", "; did you mean calibrate.folds?"),
        ("normalise: none", "normalise", "; did you mean search.normalise?"),
        ("index: {shard-hours: 1}", "index.shard-hours", "; did you mean index.shard_hours?"),
        ("worker: 3", "worker", "; did you mean executor.workers?"),
        ("qqqq: 3", "qqqq", ""),
        ("search.distance: cosine", "search.distance", "; in a file keys are nested, dotted names are for --set"),
    ],
)
def test_an_unknown_key_names_the_one_that_was_meant(load: Load, line: str, key: str, meant: str) -> None:
    with raises(codes.UNKNOWN_KEY, where="my.yaml:3", key=key, meant=meant) as caught:
        load(f"{LEAST}{line}\n")
    fields = Search if key.startswith("search.f") else Index if key.startswith("index") else Config
    assert caught.value.values["keys"] == ", ".join(fields.model_fields)


@pytest.mark.parametrize(
    ("line", "key", "value", "allowed"),
    [
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
    ],
)
def test_a_wrong_value_names_the_allowed_ones(load: Load, line: str, key: str, value: str, allowed: str) -> None:
    with raises(families.INVALID_VALUE, where="my.yaml:3", key=key, value=value) as caught:
        load(f"{LEAST}{line}\n")
    values = caught.value.values
    assert str(values["allowed"]).startswith(allowed)
    assert values["meant"] == ("; did you mean labels?" if value == "lables" else "")
    assert bool(values["quote"]) == (key == "system")
    assert len(str(caught.value).splitlines()) == 2


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [("index: {shard_hours: .inf}", "index.shard_hours", ".inf"), ("storage: {x: [.nan]}", "storage.x[0]", ".nan")],
)
def test_numbers_are_finite(load: Load, line: str, key: str, value: str) -> None:
    with raises(families.INVALID_VALUE, where="my.yaml:3", key=key, value=value):
        load(f"{LEAST}{line}\n")


@pytest.mark.parametrize(
    ("stream", "key", "code", "values"),
    [
        ("{columns: [13, 0]}", ".columns[1]", families.INVALID_VALUE, {"value": "0", "allowed": "integer > 0"}),
        ("{columns: [-1, 13]}", ".columns[0]", families.INVALID_VALUE, {"value": "-1", "allowed": "integer >= 0"}),
        ("{columns: [0]}", ".columns[1]", codes.MISSING_KEY, {"allowed": "integer > 0"}),
        (
            "{columns: [0, 1, 2]}",
            ".columns",
            families.INVALID_VALUE,
            {"value": "[0, 1, 2]", "allowed": "[integer >= 0, integer > 0] | null"},
        ),
        ("{weight: 2}", "", families.MISSING_INPUT, {}),
        (
            "{columns: [0, 13], weight: 17}",
            ".weight",
            families.INVALID_VALUE,
            {"value": "17", "allowed": "integer >= 1 and <= 16"},
        ),
        (
            "{columns: [0, 13], distance: cosin}",
            ".distance",
            families.INVALID_VALUE,
            {"value": "cosin", "meant": "; did you mean cosine?"},
        ),
        (
            "{columns: [0, 13], wieght: 2}",
            ".wieght",
            codes.UNKNOWN_KEY,
            {
                "meant": "; did you mean search.streams[1].weight?",
                "keys": "track, columns, distance, weight, normalise, floor, cap, options",
            },
        ),
        ("{columns: [0, 13], lanes: 2}", ".lanes", codes.UNKNOWN_KEY, {"meant": "; did you mean search.lanes?"}),
        ("3", "", families.INVALID_VALUE, {"value": "3"}),
    ],
)
def test_an_error_in_a_list_of_sections_names_the_key_in_its_element(
    load: Load, stream: str, key: str, code: Code[ConfigError], values: dict[str, object]
) -> None:
    name = f"search.streams[1]{key}"
    with raises(code, where="my.yaml:3", key=name, **values) as caught:
        load(f"{LEAST}search: {{streams: [{{columns: [0, 13]}}, {stream}]}}\n")
    assert len(str(caught.value).splitlines()) == 2
    with raises(code, where="--set search.streams", key=name, **values) as of_set:
        load(LEAST, f"search.streams=[{{columns: [0, 13]}}, {stream}]")
    assert of_set.value.message == caught.value.message


def test_errors_in_a_list_of_sections_have_their_own_lines(load: Load) -> None:
    lines = listed(
        load,
        """\
        run: out
        corpus: {documents: docs.csv}
        search:
          streams:
            - columns: [0, 13]
              wieght: 2
            - distance: cosine
              columns:
                - 13
                - x
        """,
    )
    assert lines[0].startswith("my.yaml: 2 errors")
    assert lines[1].startswith("  my.yaml:6: search.streams[0].wieght: ")
    assert lines[1].endswith(f"{', '.join(FeatureStream.model_fields)} [unknown-key]")
    assert lines[2].startswith("  my.yaml:10: search.streams[1].columns[1]: ")
    assert lines[2].endswith("integer > 0 [invalid-value]")


@pytest.mark.parametrize(
    ("text", "line", "key", "code", "values"),
    [
        ("run: out\nrun: [\n", 3, "", codes.INVALID_YAML, {}),
        ("run: a: b\n", 1, "", codes.INVALID_YAML, {"reason": "mapping values are not allowed here (column 7)"}),
        ("run: out\n\tx: 1\n", 2, "", codes.INVALID_YAML, {}),
        ("run: out\n---\nrun: out\n", 2, "", codes.INVALID_YAML, {}),
        ("run: out\nsystem: \x07\n", 2, "", codes.INVALID_YAML, {"reason": "special characters are not allowed"}),
        ("run: *x\n", 1, "", codes.INVALID_YAML, {}),
        ("run: " + 4000 * "[" + "\n", 1, "", codes.INVALID_YAML, {}),
        ("- run\n", 1, "", codes.NOT_A_MAPPING, {"what": "config"}),
        (LEAST + "run: other\n", 3, "run", families.INVALID_YAML, {"earlier": "; the first is in line 1"}),
        (LEAST + "features: {name: mfcc, name: mfcc}\n", 3, "features.name", families.INVALID_YAML, {}),
        (LEAST + "strict: &x true\n", 3, "strict", families.INVALID_YAML, {"anchor": "x"}),
        (LEAST + "system: !!str 5\n", 3, "system", families.INVALID_YAML, {"tag": "!!str"}),
        (LEAST + "storage: !!python/object {}\n", 3, "storage", families.INVALID_YAML, {"tag": "!!python/object"}),
        (LEAST + "storage: {1: x}\n", 3, "storage.1", families.INVALID_YAML, {}),
        (LEAST + "&x strict: true\n", 3, "strict", families.INVALID_YAML, {}),
        (LEAST + "? [a]\n: b\n", 3, "a list or mapping", families.INVALID_YAML, {}),
    ],
)
def test_what_is_not_strict_yaml_is_refused_at_its_line(
    load: Load, text: str, line: int, key: str, code: Code[ConfigError], values: dict[str, object]
) -> None:
    with raises(code, where=f"my.yaml:{line}", key=key, **values) as caught:
        load(text)
    assert len(str(caught.value).splitlines()) == 2


def test_an_empty_file_lacks_what_must_be_given(load: Load) -> None:
    lines = listed(load, "# nothing\n")
    assert [line.split(": ")[:2] for line in lines[1:-1]] == [["  my.yaml:1", "run"], ["  my.yaml:1", "corpus"]]
    assert all(line.endswith("[missing-key]") for line in lines[1:-1])


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"run: \xe9\n")
    with raises(families.UNREADABLE_FILE, where=f"{tmp_path}/none.yaml", what="config") as caught:
        load_config(tmp_path / "none.yaml")
    assert str(caught.value.values["reason"]).startswith("No such file")
    with raises(families.UNREADABLE_FILE, reason="Is a directory"):
        load_config(tmp_path)
    with raises(families.MALFORMED_FILE, where="latin.yaml"):
        load_config(tmp_path / "latin.yaml")


def test_the_error_survives_the_way_between_processes(load: Load) -> None:
    with pytest.raises(ConfigError) as caught:
        load("serch:\n")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert caught.value.exit_code == 2


# Environment


def test_variables_of_the_environment(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLACE", "/data")
    monkeypatch.setenv("COUNT", "4")
    monkeypatch.setenv("EMPTY", "")
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
    assert config.run == "/data/runs"
    assert config.corpus.documents == "/data/docs.csv"
    assert config.corpus.queries == str(Path.cwd() / "queries.csv")
    assert config.system == "4"
    assert config.executor.workers == 4
    assert config.executor.address is None
    assert config.storage == {"price": "$5", "key": "none", "both": "${COUNT}4"}


@pytest.mark.parametrize("text", ["$HOME", "${}", "${A-b}", "a$"])
def test_a_dollar_sign_that_means_nothing_is_an_error(load: Load, text: str) -> None:
    with raises(families.UNSET_VARIABLE, where="my.yaml:3", key="system") as caught:
        load(f"{LEAST}system: '{text}'\n")
    assert "${NAME}" in str(caught.value.remedy)


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
    assert config.run == f"{tmp_path}/runs/x"
    assert config.corpus.documents == "/abs/docs.csv"
    assert config.corpus.queries == "/home/someone/q.csv"
    assert config.corpus.references == "s3://bucket/refs.csv"
    assert config.index.store is None
    assert config.store == f"{tmp_path}/runs/x/store"
    assert config.calibrate.fit == f"{tmp_path}/configs/models/threshold.json"


def test_the_words_of_fit_are_no_paths(load: Load) -> None:
    for word in ("none", "crossfit", "oracle"):
        assert load(f"{LEAST}calibrate: {{fit: {word}}}\n").calibrate.fit == word
    with raises(families.INVALID_VALUE, key="calibrate.fit", value="crosfit", meant="crossfit") as caught:
        load(LEAST + "calibrate: {fit: crosfit}\n")
    assert "./crosfit" in str(caught.value.remedy)
    assert load(LEAST + "calibrate: {fit: ./crosfit}\n").calibrate.fit == str(Path.cwd() / "crosfit")


# --set


def test_sets_win_over_the_file_and_the_later_over_the_earlier(load: Load) -> None:
    config = load(
        LEAST + "search: {distance: cosine, lanes: 8}\nexecutor: {workers: 3}\n",
        "search.lanes=16",
        "search.lanes=32",
        "report.exports=[csv]",
        "executor.workers=null",
        "features.options.n_mels=40",
        "storage.endpoint_url=http://localhost:9000",
        "reduce.nbest={least: 3}",
        "system=a=b",
    )
    assert config.search.lanes == 32
    assert config.search.distance == "cosine"
    assert config.report.exports == ("csv",)
    assert config.executor.workers is None
    assert config.features[0].options == {"n_mels": 40}
    assert config.storage == {"endpoint_url": "http://localhost:9000"}
    assert config.reduce.nbest.least == 3
    assert config.system == "a=b"


def test_paths_of_a_set_are_relative_to_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "my.yaml").write_text(LEAST)
    monkeypatch.chdir(tmp_path / "here")
    config = load_config("../my.yaml", ["run=r", "corpus={documents: d, queries: q}", "calibrate.fit=./f"])
    assert config.run == f"{tmp_path}/here/r"
    assert config.corpus.documents == f"{tmp_path}/here/d"
    assert config.calibrate.fit == f"{tmp_path}/here/f"
    assert load_config("../my.yaml", ["corpus.queries=q"]).corpus.documents == f"{tmp_path}/docs.csv"


def test_a_set_mends_what_is_wrong_in_the_file(load: Load) -> None:
    assert load(LEAST + "system: ${SWSDIST_NO_SUCH}\n", "system=x").system == "x"


@pytest.mark.parametrize(
    ("assignment", "where", "key", "code", "values"),
    [
        ("search.distance=cosin", "search.distance", None, families.INVALID_VALUE, {"meant": "; did you mean cosine?"}),
        (
            "search.distnace=cosine",
            "search.distnace",
            None,
            codes.UNKNOWN_KEY,
            {"meant": "; did you mean search.distance?"},
        ),
        ("serch.distance=cosine", "serch.distance", "serch", codes.UNKNOWN_KEY, {"meant": "; did you mean search?"}),
        ("search={lans: 3}", "search", "search.lans", codes.UNKNOWN_KEY, {"meant": "; did you mean search.lanes?"}),
        ("search.lanes", "search.lanes", None, families.INVALID_VALUE, {"assignment": "search.lanes"}),
        ("search..lanes=3", "search..lanes", None, families.INVALID_VALUE, {"assignment": "search..lanes=3"}),
        ("search.lanes=[3", "search.lanes", None, codes.INVALID_YAML, {}),
        ("run.x=3", "run.x", None, families.INVALID_YAML, {"value": "out"}),
        ("system=${SWSDIST_NO_SUCH}", "system", None, families.UNSET_VARIABLE, {"name": "SWSDIST_NO_SUCH"}),
        ("features={name: a, name: b}", "features", "features.name", families.INVALID_YAML, {"earlier": ""}),
    ],
)
def test_an_error_of_a_set_names_it(
    load: Load, assignment: str, where: str, key: str | None, code: Code[ConfigError], values: dict[str, object]
) -> None:
    with raises(code, **values) as caught:
        load(LEAST, assignment)
    assert caught.value.where == f"--set {where}"
    assert len(str(caught.value).splitlines()) == 2
    assert key is None or caught.value.message.startswith(f"{key}: ")


def test_errors_of_file_and_sets_come_together(load: Load) -> None:
    lines = listed(load, LEAST + "serch:\n", "search.lanes=0")
    assert lines[0].startswith("my.yaml: 2 errors")
    assert lines[1].startswith("  my.yaml:3: serch: ")
    assert lines[1].endswith("[unknown-key]")
    assert lines[2].startswith("  --set search.lanes: 0 ")
    assert lines[2].endswith("integer > 0 [invalid-value]")


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


@pytest.mark.parametrize(
    ("text", "line", "key", "code", "values"),
    [
        ("features: {nmae: mfcc}\n", 3, "features.nmae", codes.UNKNOWN_KEY, {"meant": "; did you mean features.name?"}),
        ("features: {name: 3}\n", 3, "features.name", families.INVALID_VALUE, {"quote": " (in quotes)"}),
        ("features:\n- name: a\n- name: 3\n", 5, "features[1].name", families.INVALID_VALUE, {"value": "3"}),
        ("features: [{name: a}, {nmae: b}]\n", 3, "features[1].nmae", codes.UNKNOWN_KEY, {}),
        ("features: []\n", 1, "", families.MISSING_INPUT, {}),
        ("features: 3\n", 3, "features", families.INVALID_VALUE, {"value": "3"}),
        ("features: [{name: a}, {name: b, track: a}]\n", 1, "", families.DUPLICATE_NAME, {"count": 2, "track": "a"}),
    ],
)
def test_errors_of_tracks_name_their_place(
    load: Load, text: str, line: int, key: str, code: Code[ConfigError], values: dict[str, object]
) -> None:
    with raises(code, where=f"my.yaml:{line}", key=key, **values):
        load(LEAST + text)


def test_an_s3_url_with_a_slash_too_few(tmp_path):
    with raises(families.INVALID_VALUE, meant="s3://bucket/run"):
        config_from_dict({"run": "s3:/bucket/run", "corpus": {"documents": "d"}}, tmp_path)
