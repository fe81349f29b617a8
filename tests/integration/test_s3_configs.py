"""A config, a corpus file and a sweep may lie on S3; what they name relative to themselves lies there too."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
from commands import expecting, in_this_process

import swsdist as package
from swsdist.config import load_config
from swsdist.core.codes import config as config_codes
from swsdist.core.codes import families
from swsdist.core.errors import UserError
from swsdist.io.filesystem import Folder
from tests.support.coded import raises, says

swsdist = expecting(in_this_process)


@pytest.fixture
def place(s3: Any, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """A folder on S3, of which the environment tells the server."""
    for name, value in {"ENDPOINT_URL": "endpoint_url", "ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": "secret"}.items():
        monkeypatch.setenv(f"AWS_{name}", s3.storage[value])
    return Folder(f"s3://{s3.bucket}/{uuid.uuid4().hex[:8]}", s3.storage)


def write(place: Folder, name: str, values: dict[str, Any]) -> str:
    place.write_bytes(name, json.dumps(values).encode())  # JSON is YAML
    return place.path(name)


def test_paths_are_relative_to_the_file(place: Folder) -> None:
    write(place, "corpora/mine.yaml", {"documents": "../tables/docs.csv", "queries": "/data/queries.csv"})
    config = write(place, "systems/mine.yaml", {"run": "../runs/one", "corpus": "../corpora/mine.yaml"})
    loaded = load_config(config)
    assert loaded.run == place.path("runs/one")
    assert loaded.corpus.documents == place.path("tables/docs.csv")
    assert loaded.corpus.queries == "/data/queries.csv"
    assert loaded.system == "mine"
    assert load_config(config, corpus=place.path("corpora/mine.yaml"), run="s3://other/run").run == "s3://other/run"


def test_what_is_not_there_or_wrong(place: Folder) -> None:
    with pytest.raises(UserError, match="there is no such config") as gone:
        load_config(place.path("none.yaml"))
    assert gone.value.where == place.path("none.yaml")
    config = write(place, "a.yaml", {"run": "run", "corpus": "none.yaml"})
    with raises(families.UNREADABLE_FILE, path="none.yaml") as caught:
        load_config(config)
    assert caught.value.where == f"{config}:1"
    bad = write(place, "b.yaml", {"run": "run", "corpus": {"documents": "d.csv"}, "serach": {}})
    with raises(config_codes.UNKNOWN_KEY, meant="; did you mean search?"):
        load_config(bad)
    err = swsdist("run", "http://host/x.yaml", code=2).err
    assert says(err, families.UNSUPPORTED)
    assert "error: http://host/x.yaml: http:// urls " in err
    assert "does not exist" in swsdist("run", "none.yaml", code=2).err


@pytest.mark.slow
def test_commands(scene: Any, place: Folder, undisturbed: dict[str, str]) -> None:
    """With the audio on a disk, so that only what is about these files goes to the server."""
    documents = (scene.corpus / "docs.csv").read_text().replace("audio/", f"{scene.corpus}/audio/")
    place.write_bytes("docs.csv", documents.encode())
    tables = {"queries": str(scene.corpus / "queries.csv"), "references": str(scene.corpus / "refs.csv")}
    corpus = write(place, "corpus.yaml", {"documents": "docs.csv", **tables})
    run = scene.folder / "run"
    base = {"run": str(run), "corpus": "corpus.yaml", "executor": {"kind": "serial"}}
    config = write(place, "config.yaml", base)
    assert "documents" in swsdist("check", config).out
    swsdist("run", config)
    digests = package.digest(str(run))
    assert {name: digests[name] for name in ("features", "candidates")} == {
        name: undisturbed[name] for name in ("features", "candidates")
    }
    assert swsdist("report", config).code == 0
    assert swsdist("run", config, "--corpus", corpus, "--dry-run").code == 0
    points = {
        "config": "config.yaml",
        "points": {"grid": {"reduce.nbest.least": [5, 7]}},
        "run": str(scene.folder / "swept"),
    }
    assert swsdist("sweep", write(place, "sweep.yaml", points), "--set", f"index.store={run}/store").code == 0
    assert (scene.folder / "swept" / "sweeps" / "sweep" / "sweep.html").exists()
