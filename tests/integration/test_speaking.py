"""Written queries that a voice speaks, and that are searched by example: in a run, in a store, by a server."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from commands import in_this_process
from starlette.testclient import TestClient

import swsdist
from swsdist.searcher.searcher import Searcher
from swsdist.server.app import create_app
from swsdist.server.security import Guard
from swsdist.server.service import Service, Settings

pytestmark = [
    pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng is not installed"),
    pytest.mark.until("search"),
]
US, GB = "espeak-ng:en-us", "espeak-ng:en-gb"


@pytest.fixture
def written(scene: Any) -> Any:
    """A corpus whose queries are written."""
    table = scene.folder / "written.csv"
    table.write_text("query_id,text\nq001,mother\nq002,a river\nq003,...\n")
    scene.base = {"corpus": {"documents": f"{scene.corpus}/docs.csv", "queries": str(table)}}
    return scene


def test_a_run_searches_what_voices_speak(written: Any) -> None:
    speak = f'queries.speak=["{US}", "{GB}"]'
    written.run(speak, "corpus.examples=all")
    spoken = written.folder / "run" / "spoken"
    assert len(sorted(spoken.glob("*.wav"))) == 4
    assert [(row["id"], row["part"]) for row in written.rejected()] == [("q003", 1), ("q003", 2)]
    assert any("[unspoken-queries]" in line for line in written.chain_runs["run"].notices())
    rows = written.chain_runs["run"].chain.inputs.corpus.queries.select(["query_id", "example", "path"]).to_pandas()
    rows[rows["path"].notna()].to_csv(written.folder / "recorded.csv", index=False)
    written.run(f"corpus.queries={written.folder}/recorded.csv", "corpus.examples=all", run="recorded")
    assert written.digest() == written.digest("recorded")
    before = written.receipts()
    written.run(speak, "corpus.examples=all")
    assert written.receipts() == before
    written.run(f"queries.speak=[{US}]", "corpus.examples=all")
    assert len(sorted(spoken.glob("*.wav"))) == 4
    assert len(written.receipts()) > len(before)


def test_a_store_is_searched_as_by_the_recording(written: Any, tmp_path: Path) -> None:
    written.run(f"queries.speak=[{US}]", "corpus.examples=all")
    store = str(written.folder / "run" / "store")
    found = swsdist.search(store, ["mother", "--help"], speak=[US], top=5)
    assert set(found["query_id"]) == {"mother", "--help"}
    with Searcher(store) as searcher:
        (row,) = searcher.spoken_rows("mother", [US], tmp_path)
        alike = searcher.search(row["path"], 5)
    columns = ["doc_id", "channel", "start", "end", "score"]
    assert found[found["query_id"] == "mother"][columns].values.tolist() == alike[columns].values.tolist()
    ended = in_this_process("search", store, "--text", "mother", "--speak", US, "--top", "5", "--json")
    assert [row["start"] for row in json.loads(ended.out)] == alike["start"].tolist()


def test_the_server_speaks_only_if_it_is_told_to(written: Any, tmp_path: Path) -> None:
    written.run(until="index")
    for voices, status in (((), 400), ((US, GB), 200)):
        service = Service(Settings(str(written.folder / "run"), tmp_path / "words", speak=voices))
        app = create_app(service, Guard(token="let me in", hosts=frozenset({"testserver"})))
        client = TestClient(app, headers={"X-Swsdist": "1"})
        client.get("/", params={"token": "let me in"})
        assert not client.get("/api/state").json()["words"]
        answer = client.post("/api/search", json={"text": "mother", "top": 3})
        assert answer.status_code == status, answer.text
        if voices:
            assert len(json.loads(answer.text.splitlines()[-1])["hits"]) == 3
            assert client.post("/api/search", json={"text": "привет"}).json()["code"] == "unreadable-script"
        service.close()
