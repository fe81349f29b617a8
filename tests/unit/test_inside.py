"""What stands in a store or run of somebody else does not lead out of it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from swsdist.core.codes import families
from swsdist.core.errors import StoreError, UserError
from swsdist.io.filesystem import Folder, demand_inside
from swsdist.pipeline.ledger import SCHEMA as PLAN
from swsdist.pipeline.ledger import Ledger, load_plans
from swsdist.pipeline.task import Cost, Part, Receipt
from swsdist.store import manifest, parquet
from tests.support.coded import raises

OUTSIDE = [
    "../x",
    "/etc/passwd",
    "a/../../x",
    "a\0b",
    "s3://bucket/x",
    "http://host/x",
    "file:///x",
    "",
    ".",
    "a//b",
    "a/./b",
    7,
]


@pytest.mark.parametrize("name", OUTSIDE)
def test_names_that_lead_out(name: Any) -> None:
    with raises(families.DAMAGED_FILE) as caught:
        demand_inside(name, "plan.json", "a key")
    assert caught.value.where == "plan.json"
    assert "a key" in caught.value.message


@pytest.mark.parametrize("name", ["a", "shards/part-0.parquet", "..a/b..", "ä ö", "a:b"])
def test_names_that_stay(name: str) -> None:
    assert demand_inside(name, "", "") == name


STATE: dict[str, Any] = {
    "fingerprint": "f" * 32,
    "kind": "frames",
    "tick": 0.01,
    "tracks": [
        {
            "name": "features",
            "recipe": {},
            "fingerprint": "e" * 32,
            "dimension": 2,
            "columns": ["a", "b"],
            "kind": "features",
            "documents": "documents.parquet",
        }
    ],
    "shards": [
        {"name": "s", "files": {"features": {"name": "shards/s", "size": 1, "sha256": ""}}, "documents": 1, "frames": 1}
    ],
    "rejected": "rejected.parquet",
    "models": {"statistics.features": "models/statistics.parquet"},
    "counts": {},
    "schema": manifest.SCHEMA,
}


def _documents(values: Any) -> None:
    values["tracks"][0]["documents"] = "../documents.parquet"


def _shard(values: Any) -> None:
    values["shards"][0]["files"]["features"]["name"] = "/etc/passwd"


def _rejected(values: Any) -> None:
    values["rejected"] = "s3://elsewhere/x"


def _model(values: Any) -> None:
    values["models"]["statistics.features"] = "models/../../x"


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (_documents, "tracks.documents"),
        (_shard, "shards.files.name"),
        (_rejected, "rejected"),
        (_model, "statistics.features"),
    ],
)
def test_a_manifest(tmp_path: Path, change: Callable[[Any], None], key: str) -> None:
    values = json.loads(json.dumps(STATE))
    (tmp_path / "manifest.json").write_text(json.dumps(values))
    assert manifest.load(Folder(str(tmp_path))) is not None
    change(values)
    (tmp_path / "manifest.json").write_text(json.dumps(values))
    with raises(families.DAMAGED_FILE) as caught:
        manifest.load(Folder(str(tmp_path)))
    assert caught.value.where == str(tmp_path / "manifest.json")
    assert key in caught.value.message


def test_a_state_that_a_plan_names(tmp_path: Path) -> None:
    with raises(families.DAMAGED_FILE):
        manifest.load(Folder(str(tmp_path)), manifest.state_name("/../../../x"))


def _receipt(name: str) -> str:
    part = Part("hits", name, 1, "0" * 64)
    cost = Cost(0.0, 0.0, 0.0, 0)
    return Receipt("search", 1, "a" * 32, "", 1.0, (part,), {}, [], cost, "host", 1, 0.0, 0.0).to_json()


def test_receipts(tmp_path: Path) -> None:
    file = f"search-{'a' * 32}.json"
    (tmp_path / "receipts").mkdir()
    (tmp_path / "receipts" / file).write_text(_receipt("hits/x"))
    assert list(Ledger(Folder(str(tmp_path))).receipts("search")) == ["a" * 32]
    (tmp_path / "receipts" / file).write_text(_receipt("../../hits/x"))
    with raises(families.DAMAGED_FILE, key="outputs.name") as caught:
        Ledger(Folder(str(tmp_path))).receipts("search")
    assert caught.value.where == str(tmp_path / "receipts" / file)


@pytest.mark.parametrize(("place", "error"), [("./../../store", StoreError), ("http://host/store", UserError)])
def test_a_plan(tmp_path: Path, place: str, error: type[Exception]) -> None:
    def write(place: str) -> None:
        step = {"stage": "index", "tasks": "k", "planned": 0, "place": place, "ended": True}
        plan = {"chain": "search", "config": {}, "order": ["index"], "steps": {"index": step}, "state": {}}
        (tmp_path / "plan.json").write_text(json.dumps({"schema": PLAN, "plans": {"run": plan}, "tasks": {"k": ""}}))

    for fine in ("", "./store", "s3://bucket/store", "/data/store"):
        write(fine)
        load_plans(Folder(str(tmp_path)))
    write(place)
    with pytest.raises(error) as caught:
        load_plans(Folder(str(tmp_path)))
    assert place in str(caught.value) or str(tmp_path / "plan.json") in str(caught.value)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make another user's links")
@pytest.mark.parametrize("linked", ["the file", "its folder"])
def test_links_of_others(tmp_path: Path, linked: str) -> None:
    """A link of one's own is obeyed, and one of another user that stays within the folder; no other."""
    schema = pa.schema([("x", pa.int64())])
    table = pa.table({"x": [1]}, schema)
    secret, store = Folder(str(tmp_path / "secret")), Folder(str(tmp_path / "store"))
    for folder in (secret, store):
        parquet.publish(folder, "tables/t.parquet", [table], schema)
    name = "links/t.parquet" if linked == "its folder" else "tables/link.parquet"
    link = tmp_path / "store" / ("links" if linked == "its folder" else name)

    def lead(root: Folder, owner: int) -> None:
        link.unlink(missing_ok=True)
        link.symlink_to(f"{root.root}/tables{'' if linked == 'its folder' else '/t.parquet'}")
        os.chown(link, owner, owner, follow_symlinks=False)

    for root, owner in ((secret, 0), (store, 12345)):
        lead(root, owner)
        assert parquet.read(store, name) == table
    lead(secret, 12345)
    with raises(families.WRONG_KIND) as caught:
        parquet.read(store, name)
    assert caught.value.where == str(link)
    with raises(families.WRONG_KIND):
        store.write_bytes(name, b"of ours")
    assert parquet.read(secret, "tables/t.parquet") == table
