"""A run of somebody else is data: it gets nothing of our environment, and does not say where our keys go."""

import copy
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import Command, in_this_process
from pydantic import ValidationError

from swsdist.chains.report.publish import run_config
from swsdist.config import Config
from swsdist.core.codes import families
from swsdist.io.filesystem import Folder
from swsdist.pipeline.ledger import load_plans, save_plans
from swsdist.pipeline.status import config_of
from swsdist.registry import registries
from tests.support.coded import says

LISTS = "run/exports/stdlist.xml --references refs.csv --seconds 600"

#: All commands that can be given a run's folder, or what lies in it.
LINES = f"""\
report run --table table.csv --per-query queries.md --timeline time.svg --det det.csv
report run --set executor.workers=3 --histogram scores.svg
search run --query query.wav --html hits.html
search run/store --query query.wav --table hits.csv
compare a=run b=run --html compared.html --csv compared
compare a=run b=run --json
resources run --table resources.csv
forecast run --json
paper table run/exports/detections.csv paper.tex
score -s {LISTS} --per-term scored.csv
calibrate -s {LISTS} --method kst --out kst.csv --save kst.json
fuse a=run/exports/stdlist.xml b={LISTS} --out fused.csv
status run --json
status run
digest run --tables
cancel run
clean run --older 0
clean run/store --older 0
store info run
store info run/store --documents
store rejected run
transcribe run
store check run/store
store cat run/store d001 --npy d001.npy
store compact run/store
store refit run/store""".splitlines()
#: Exit codes of those that find nothing to do.
REFUSED = {"cancel run": 2, "transcribe run": 3}
#: These take a config, which is trusted, or make something new; `sweep` of lists, `phones`, `align` and `score-discovery` take
#: no run; `glossary` a folder of words, and `serve` reads a run as `search` does until it is ended.
TRUSTED = """discover help score-discovery init check run index reduce export bench sweep corpus doctor demo explain phones
    align glossary serve"""

HUSH = "hush-hush-0123456789"


def texts(values: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where a config holds a text, or may."""
    if isinstance(values, str) or values is None:
        yield place
    elif isinstance(values, dict | list):
        for key, value in values.items() if isinstance(values, dict) else enumerate(values):
            yield from texts(value, (*place, key))


def put(values: Any, place: tuple[Any, ...], value: str) -> None:
    """Put a text into a place."""
    for key in place[:-1]:
        values = values[key]
    values[place[-1]] = value


def with_texts(values: dict[str, Any], text: str, valid: bool) -> dict[str, Any]:
    """A config with a text in each place that may hold one; `valid`: if the config then is still one."""
    values = copy.deepcopy(values)
    for place in texts(values):
        if valid:
            tried = copy.deepcopy(values)
            put(tried, place, text)
            try:
                Config.model_validate(tried)
            except ValidationError:
                continue
        put(values, place, text)
    return values


@pytest.fixture
def stranger(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a copy of the run, and what commands are given beside it."""
    shutil.copytree(place / "run", tmp_path / "run")
    shutil.copy(place / "corpus/queries/q001_1.wav", tmp_path / "query.wav")
    shutil.copy(place / "corpus/refs.csv", tmp_path)
    monkeypatch.setenv("HUSH", HUSH)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("where", ["config", "valid config", "plan"])
@pytest.mark.parametrize("typed", LINES)
def test_a_strangers_run_tells_nothing_of_the_environment(stranger: Path, typed: str, where: str) -> None:
    """Whatever text a run's config or plan has a variable in: where it is read, the variable stays as it is written."""
    folder = Folder(str(stranger / "run"))
    ((name, plan),) = load_plans(folder).items()
    changed = with_texts(plan.config, "x${HUSH}", where == "valid config")
    if where == "plan":
        plan.config |= {"system": "x${HUSH}", "executor": {**plan.config["executor"], "cache": "x${HUSH}"}}
        Config.model_validate(plan.config)
        save_plans(folder, {name: plan})
    else:
        assert changed["executor"]["cache"] == changed["system"] == "x${HUSH}"
        folder.write_bytes("config.yaml", json.dumps(changed).encode())  # JSON is YAML
    told = in_this_process(*typed.split(), cwd=stranger)
    assert told.code == REFUSED.get(typed, 0) or where == "plan", told.err
    assert HUSH not in told.out + told.err
    assert [file for file in stranger.rglob("*") if file.is_file() and HUSH.encode() in file.read_bytes()] == []


def test_all_commands_are_held_to_it() -> None:
    assert {one.split()[0] for one in LINES} | {*TRUSTED.split()} == set(registries.COMMANDS.available)


def test_a_strangers_run_does_not_say_where_keys_go(stranger: Path) -> None:
    """Nor whether the server is asked for its certificate; who looks at the run does."""
    run = Folder(str(stranger / "run"))
    ((name, plan),) = load_plans(run).items()
    theirs = {"endpoint_url": "http://evil:1", "client_kwargs": {"verify": False}, "anon": False}
    save_plans(run, {name: type(plan)(**{**plan.__dict__, "config": {**plan.config, "storage": theirs}})})
    (plan,) = load_plans(run).values()
    assert plan.config["storage"] == theirs
    assert config_of(run, plan).storage == run_config(run.root).storage == {}
    ours = {"endpoint_url": "http://mine:1"}
    assert config_of(Folder(run.root, ours), plan).storage == ours
    assert run_config(run.root, ["storage.endpoint_url=http://mine:1"]).storage == ours


def test_a_strangers_plan_does_not_reach_into_another_store(swsdist: Command, stranger: Path) -> None:
    """A place that begins as the run does, and leads out of it, is a place elsewhere."""
    shutil.copytree(stranger / "run/store", stranger / "other")
    earlier = stranger / "other/shards/part-00000000000000000000000000000000.parquet"
    earlier.write_bytes(b"of an earlier state")
    text = (stranger / "run/plan.json").read_text()
    assert '"place": "./store"' in text
    (stranger / "run/plan.json").write_text(text.replace('"./store"', f'"{stranger}/run/../other"'))
    told = swsdist("clean", "run", "--older", "0", cwd=stranger)
    assert str(earlier) not in told.out
    assert earlier.exists()
    swsdist("clean", "other", "--older", "0", cwd=stranger)
    assert not earlier.exists()


READING = ("report run", "digest run", "forecast run", "search run --query query.wav", "compare a=run b=run")


def test_a_config_of_another_version(stranger: Path) -> None:
    """It is told, and is no bug."""
    text = (stranger / "run/plan.json").read_text()
    (stranger / "run/plan.json").write_text(text.replace('"executor": {', '"executer": {'))
    (stranger / "run/rejected.parquet").unlink(missing_ok=True)
    assert "Traceback" not in in_this_process("status", "run", cwd=stranger).err
    for typed in (*READING[:2], *READING[3:], "store rejected run"):
        told = in_this_process(*typed.split(), cwd=stranger)
        assert told.code == 3
        assert "Traceback" not in told.err
        assert says(told.err, families.MISMATCH)


def test_a_run_with_what_was_added_in_another_process(stranger: Path) -> None:
    """It is of this version: what is missing is told, and how to have it."""
    run = Folder(str(stranger / "run"))
    for place in (("chain",), ("search", "distance")):
        ((name, plan),) = load_plans(run).items()
        before, key = copy.deepcopy(plan.config), place[-1]
        put(plan.config, place, "hits")
        save_plans(run, {name: plan})
        for typed in READING:
            found = in_this_process(*typed.split(), cwd=stranger)
            assert found.code == 3
            assert says(found.err, families.EXTENSION)
            for part in (f"{key} 'hits'", f"swsdist.{key}s", f"{key.upper()}S.add"):
                assert part in found.err
        assert hasattr(registries, f"{key.upper()}S")
        plan.config = before
        save_plans(run, {name: plan})
