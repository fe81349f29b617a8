"""A config file becomes a Config, or one error that tells all that is wrong, where, and what was meant."""

from __future__ import annotations

import pickle
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from swsdist.config import Config, config_from_dict, dump_config, load_config
from swsdist.config.search import FeatureStream, Search
from swsdist.core.errors import ConfigError
from swsdist.registry.registries import RECURRENCES

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


def told(call: Callable[..., Any], *arguments: Any) -> str:
    """The text of the error that a call raises."""
    with pytest.raises(ConfigError) as caught:
        call(*arguments)
    return str(caught.value)


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
    text = told(
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
    assert text.splitlines()[:-1] == [
        "my.yaml: 6 errors",
        "  my.yaml:1: run: the environment variable SWSDIST_NO_SUCH is not set; "
        "set it, or write ${SWSDIST_NO_SUCH:-default}",
        "  my.yaml:2: corpus.documents: missing; it must be given: path "
        "(table (CSV or Parquet: doc_id, path; optionally channel, duration, speaker), "
        "folder of audio, single recording, Kaldi data folder or wav.scp, manifest of lhotse, "
        "data set of Hugging Face (a folder of save_to_disk), or NIST ECF)",
        "  my.yaml:6: search.distnace: no such key; did you mean search.distance? Allowed here: "
        + ", ".join(Search.model_fields),
        "  my.yaml:7: search.recurrence: bounded-slop is not allowed; did you mean bounded-slope? "
        "Allowed: " + " | ".join(RECURRENCES),
        "  my.yaml:9: executor.workers: many is not allowed; allowed: integer > 0 | null",
        "  my.yaml:11: calibrate.folds: 1 is not allowed; allowed: integer >= 2",
    ]
    assert text.splitlines()[-1].startswith("  remedy: `swsdist init`")


def test_one_error_stands_in_the_first_line(load: Load) -> None:
    assert told(load, LEAST + "strict: yes\n").startswith(
        "my.yaml:3: strict: yes is not allowed; allowed: true | false\n"
    )


@pytest.mark.parametrize(
    ("line", "told_"),
    [
        ("exports: [csv]", "exports: no such key; did you mean report.exports?"),
        ("search: {folds: 3}", "search.folds: no such key; did you mean calibrate.folds?"),
        ("normalise: none", "normalise: no such key; did you mean search.normalise?"),
        ("index: {shard-hours: 1}", "index.shard-hours: no such key; did you mean index.shard_hours?"),
        ("worker: 3", "worker: no such key; did you mean executor.workers?"),
        ("qqqq: 3", "qqqq: no such key. Allowed here: run, system, corpus,"),
        ("search.distance: cosine", "search.distance: no such key; a dotted name is for --set"),
    ],
)
def test_an_unknown_key_names_the_one_that_was_meant(load: Load, line: str, told_: str) -> None:
    assert told(load, f"{LEAST}{line}\n").startswith(f"my.yaml:3: {told_}")


@pytest.mark.parametrize(
    ("line", "told_"),
    [
        ("executor: {workers: '4'}", 'executor.workers: "4" is not allowed; allowed: integer > 0 | null'),
        ("executor: {workers: true}", "executor.workers: true is not allowed"),
        ("system: 2024", "system: 2024 is not allowed; allowed: text (quote it)"),
        ("search: 5", "search: 5 is not allowed; allowed: section with the keys distance, normalise"),
        ("search: [a]", "search: [a] is not allowed"),
        ("storage: 5", "storage: 5 is not allowed; allowed: mapping"),
        ("report: {exports: csv}", "report.exports: csv is not allowed; allowed: list of csv | stdlist"),
        (
            "report: {exports: [csv, lables]}",
            "report.exports[1]: lables is not allowed; did you mean labels? Allowed: csv",
        ),
        ("report: {pl_lambda: 2}", "report.pl_lambda: 2 is not allowed; allowed: number >= 0 and <= 1"),
        ("index: {shard_hours: .inf}", "index.shard_hours: .inf is not allowed; numbers here are finite"),
        ("storage: {x: [.nan]}", "storage.x[0]: .nan is not allowed"),
        ("index: {store: ''}", 'index.store: "" is not allowed; allowed: path | null'),
        ("calibrate: {fit: 3}", "calibrate.fit: 3 is not allowed; allowed: none | crossfit | oracle | path"),
        ("score: {tolerance: -1}", "score.tolerance: -1 is not allowed; allowed: number >= 0 | null"),
    ],
)
def test_a_wrong_value_names_the_allowed_ones(load: Load, line: str, told_: str) -> None:
    text = told(load, f"{LEAST}{line}\n")
    assert text.startswith(f"my.yaml:3: {told_}")
    assert len(text.splitlines()) == 2


@pytest.mark.parametrize(
    ("stream", "told_"),
    [
        ("{columns: [13, 0]}", ".columns[1]: 0 is not allowed; allowed: integer > 0"),
        ("{columns: [-1, 13]}", ".columns[0]: -1 is not allowed; allowed: integer >= 0"),
        ("{columns: [0]}", ".columns[1]: missing; it must be given: integer > 0 (first column"),
        ("{columns: [0, 1, 2]}", ".columns: [0, 1, 2] is not allowed; allowed: [integer >= 0, integer > 0]"),
        ("{weight: 2}", ": name a track, or columns [first, after the last]"),
        ("{columns: [0, 13], weight: 17}", ".weight: 17 is not allowed; allowed: integer >= 1 and <= 16"),
        (
            "{columns: [0, 13], distance: cosin}",
            ".distance: cosin is not allowed; did you mean cosine? Allowed: cosine",
        ),
        (
            "{columns: [0, 13], wieght: 2}",
            ".wieght: no such key; did you mean search.streams[1].weight? "
            "Allowed here: track, columns, distance, weight, normalise, floor, cap, options\n",
        ),
        (
            "{columns: [0, 13], lanes: 2}",
            ".lanes: no such key; did you mean search.lanes? Allowed here: track, columns",
        ),
        ("3", ": 3 is not allowed; allowed: section with the keys track, columns, distance"),
    ],
)
def test_an_error_in_a_list_of_sections_names_the_key_in_its_element(load: Load, stream: str, told_: str) -> None:
    text = told(load, f"{LEAST}search: {{streams: [{{columns: [0, 13]}}, {stream}]}}\n")
    assert text.startswith(f"my.yaml:3: search.streams[1]{told_}")
    assert len(text.splitlines()) == 2
    set_ = told(load, LEAST, f"search.streams=[{{columns: [0, 13]}}, {stream}]")
    assert set_ == text.replace("my.yaml:3:", "--set search.streams:")


def test_errors_in_a_list_of_sections_have_their_own_lines(load: Load) -> None:
    text = told(
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
    assert text.splitlines()[:-1] == [
        "my.yaml: 2 errors",
        "  my.yaml:6: search.streams[0].wieght: no such key; did you mean search.streams[0].weight? "
        "Allowed here: " + ", ".join(FeatureStream.model_fields),
        "  my.yaml:10: search.streams[1].columns[1]: x is not allowed; allowed: integer > 0",
    ]


@pytest.mark.parametrize(
    ("text", "told_"),
    [
        ("run: out\nrun: [\n", "my.yaml:3: not YAML: "),
        ("run: a: b\n", "my.yaml:1: not YAML: mapping values are not allowed here (column 7)"),
        ("run: out\n\tx: 1\n", "my.yaml:2: not YAML: found character '\\t'"),
        ("run: out\n---\nrun: out\n", "my.yaml:2: not YAML: but found another document"),
        ("run: out\nsystem: \x07\n", "my.yaml:2: not YAML: special characters are not allowed"),
        ("run: *x\n", "my.yaml:1: not YAML: found undefined alias 'x'"),
        ("- run\n", "my.yaml:1: a config is a mapping of keys to values"),
        (LEAST + "run: other\n", "my.yaml:3: run: given twice; the first is in line 1"),
        (LEAST + "features: {name: mfcc, name: mfcc}\n", "my.yaml:3: features.name: given twice"),
        (LEAST + "strict: &x true\n", "my.yaml:3: strict: anchors and aliases (&x) are not allowed"),
        (LEAST + "system: !!str 5\n", "my.yaml:3: system: tags (!!str) are not allowed"),
        (LEAST + "storage: !!python/object {}\n", "my.yaml:3: storage: tags (!!python/object) are not allowed"),
        (LEAST + "storage: {1: x}\n", "my.yaml:3: storage.1: a key must be plain text; quote it"),
        (LEAST + "&x strict: true\n", "my.yaml:3: strict: a key must be plain text"),
        (LEAST + "? [a]\n: b\n", "my.yaml:3: a list or mapping: a key must be plain text"),
    ],
)
def test_what_is_not_strict_yaml_is_refused_at_its_line(load: Load, text: str, told_: str) -> None:
    found = told(load, text)
    assert found.startswith(told_)
    assert len(found.splitlines()) == 2


def test_an_empty_file_lacks_what_must_be_given(load: Load) -> None:
    text = told(load, "# nothing\n")
    assert "my.yaml:1: run: missing" in text
    assert "my.yaml:1: corpus: missing" in text


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"run: \xe9\n")
    assert told(load_config, tmp_path / "none.yaml").startswith(
        f"{tmp_path}/none.yaml: cannot read the config: No such"
    )
    assert "Is a directory" in told(load_config, tmp_path)
    assert "not UTF-8" in told(load_config, tmp_path / "latin.yaml")


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
    assert told(load, f"{LEAST}system: '{text}'\n").startswith("my.yaml:3: system: a single $; write ${NAME}")


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
    assert "calibrate.fit: did you mean crossfit? If it is a file, write ./crosfit" in told(
        load, LEAST + "calibrate: {fit: crosfit}\n"
    )
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
    ("assignment", "told_"),
    [
        ("search.distance=cosin", "--set search.distance: cosin is not allowed; did you mean cosine?"),
        ("search.distnace=cosine", "--set search.distnace: no such key; did you mean search.distance?"),
        ("serch.distance=cosine", "--set serch.distance: serch: no such key; did you mean search?"),
        ("search={lans: 3}", "--set search: search.lans: no such key; did you mean search.lanes?"),
        ("search.lanes", "--set search.lanes: must be KEY=VALUE"),
        ("search..lanes=3", "--set search..lanes: must be KEY=VALUE"),
        ("search.lanes=[3", "--set search.lanes: not YAML: "),
        ("run.x=3", "--set run.x: run is out and has no keys"),
        ("system=${SWSDIST_NO_SUCH}", "--set system: the environment variable SWSDIST_NO_SUCH is not set"),
        ("features={name: a, name: b}", "--set features: features.name: given twice\n"),
    ],
)
def test_an_error_of_a_set_names_it(load: Load, assignment: str, told_: str) -> None:
    text = told(load, LEAST, assignment)
    assert text.startswith(told_)
    assert len(text.splitlines()) == 2


def test_errors_of_file_and_sets_come_together(load: Load) -> None:
    lines = told(load, LEAST + "serch:\n", "search.lanes=0").splitlines()
    assert lines[0] == "my.yaml: 2 errors"
    assert lines[1].startswith("  my.yaml:3: serch: no such key")
    assert lines[2].startswith("  --set search.lanes: 0 is not allowed; allowed: integer > 0")


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
    ("text", "told_"),
    [
        ("features: {nmae: mfcc}\n", "my.yaml:3: features.nmae: no such key; did you mean features.name?"),
        ("features: {name: 3}\n", "my.yaml:3: features.name: 3 is not allowed; allowed: text (quote it)"),
        ("features:\n- name: a\n- name: 3\n", "my.yaml:5: features[1].name: 3 is not allowed"),
        ("features: [{name: a}, {nmae: b}]\n", "my.yaml:3: features[1].nmae: no such key"),
        ("features: []\n", "my.yaml:1: features: name at least one extractor"),
        ("features: 3\n", "my.yaml:3: features: 3 is not allowed"),
        ("features: [{name: a}, {name: b, track: a}]\n", "my.yaml:1: features: 2 tracks are called a"),
    ],
)
def test_errors_of_tracks_name_their_place(load: Load, text: str, told_: str) -> None:
    assert told(load, LEAST + text).startswith(told_)


def test_an_s3_url_with_a_slash_too_few(tmp_path):
    with pytest.raises(ConfigError, match=r"did you mean s3://bucket/run\?"):
        config_from_dict({"run": "s3:/bucket/run", "corpus": {"documents": "d"}}, tmp_path)
