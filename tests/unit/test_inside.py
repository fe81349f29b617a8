"""What stands in a store or run of somebody else does not lead out of it."""

from __future__ import annotations

import json
import os
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


def test_names_that_lead_out_and_that_stay() -> None:
    outside: list[Any] = ["../x", "/etc/passwd", "a/../../x", "a\0b", "s3://bucket/x", "http://host/x", "file:///x"]
    for name in [*outside, "", ".", "a//b", "a/./b", 7]:
        with raises(families.DAMAGED_FILE, where="plan.json"):
            demand_inside(name, "plan.json", "a key")
    for name in ("a", "shards/part-0.parquet", "..a/b..", "ä ö", "a:b"):
        assert demand_inside(name, "", "") == name


STATE: dict[str, Any] = {
    "fingerprint": "f" * 32,
    "kind": "frames",
    "tick": 0.01,
    "rejected": "rejected.parquet",
    "counts": {},
    "tracks": [
        {"name": "features", "recipe": {}, "fingerprint": "e" * 32, "dimension": 2, "columns": ["a", "b"]}
        | {"kind": "features", "documents": "documents.parquet"}
    ],
    "shards": [
        {"name": "s", "files": {"features": {"name": "shards/s", "size": 1, "sha256": ""}}, "documents": 1, "frames": 1}
    ],
    "models": {"statistics.features": "models/statistics.parquet"},
    "schema": manifest.SCHEMA,
}


def test_a_manifest(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps(STATE))
    assert manifest.load(Folder(str(tmp_path))) is not None
    for place, value in (
        (("tracks", 0, "documents"), "../documents.parquet"),
        (("shards", 0, "files", "features", "name"), "/etc/passwd"),
        (("rejected",), "s3://elsewhere/x"),
        (("models", "statistics.features"), "models/../../x"),
    ):
        values = inner = json.loads(json.dumps(STATE))
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = value
        (tmp_path / "manifest.json").write_text(json.dumps(values))
        with raises(families.DAMAGED_FILE, where=str(tmp_path / "manifest.json")):
            manifest.load(Folder(str(tmp_path)))
    with raises(families.DAMAGED_FILE):
        manifest.load(Folder(str(tmp_path)), manifest.state_name("/../../../x"))


def test_receipts(tmp_path: Path) -> None:
    file, cost = tmp_path / "receipts" / f"search-{'a' * 32}.json", Cost(0.0, 0.0, 0.0, 0)
    file.parent.mkdir()
    for name in ("hits/x", "../../hits/x"):
        part = Part("hits", name, 1, "0" * 64)
        receipt = Receipt("search", 1, "a" * 32, "", 1.0, (part,), {}, [], cost, "host", 1, 0.0, 0.0)
        file.write_text(receipt.to_json())
        if name == "hits/x":
            assert list(Ledger(Folder(str(tmp_path))).receipts("search")) == ["a" * 32]
    with raises(families.DAMAGED_FILE, where=str(file), key="outputs.name"):
        Ledger(Folder(str(tmp_path))).receipts("search")


def test_a_plan(tmp_path: Path) -> None:
    def load(place: str) -> None:
        step = {"stage": "index", "tasks": "k", "planned": 0, "place": place, "ended": True}
        plan = {"chain": "search", "config": {}, "order": ["index"], "steps": {"index": step}, "state": {}}
        (tmp_path / "plan.json").write_text(json.dumps({"schema": PLAN, "plans": {"run": plan}, "tasks": {"k": ""}}))
        load_plans(Folder(str(tmp_path)))

    for fine in ("", "./store", "s3://bucket/store", "/data/store"):
        load(fine)
    for place, error in (("./../../store", StoreError), ("http://host/store", UserError)):
        with pytest.raises(error):
            load(place)


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
