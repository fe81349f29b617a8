"""Every command that reads a path reads `s3://` too, and says the same as of a disk."""

from __future__ import annotations

import re
import uuid
from pathlib import Path
from typing import Any

import pytest
from commands import in_this_process

from swsdist.core.codes import families
from swsdist.io.filesystem import Folder
from tests.support.coded import says

#: Commands with {p} for the folder that corpus, run and store lie in, on a disk or on S3.
READING = {
    "status": "status {p}/run",
    "digest": "digest {p}/run",
    "resources": "resources {p}/run",
    "store info": "store info {p}/run/store --documents",
    "store check": "store check {p}/run/store",
    "store rejected": "store rejected {p}/run",
    "store cat": "store cat {p}/run/store d001",
    "search": "search {p}/run/store --query {p}/corpus/{query} --top 2 --csv",
    "compare": "compare a={p}/run b={p}/run --resamples 10 --documents {p}/corpus/docs.csv --queries {p}/corpus/queries.csv",
    "score a list": "score --references {p}/corpus/refs.csv --seconds 300 --protocol sws2013 -s {p}/run/exports/detections.csv",
    "calibrate": "calibrate --references {p}/corpus/refs.csv --seconds 300 --protocol sws2013 --method logistic "
    "-s {p}/run/exports/detections.csv --out {out}/c.csv --save {out}/fit.json",
    "fuse": "fuse a={p}/run/exports/detections.csv b={p}/run/exports/detections.csv --seconds 300 "
    "--protocol sws2013 --out {out}/f.csv",
    "paper table": "paper table {p}/run/exports/detections.csv {out}/t.md --first 3",
}


@pytest.fixture
def places(_finished: Any, s3: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, str]:
    """The finished run and its corpus on a disk, and copies on S3."""
    folder = Folder(f"s3://{s3.bucket}/{uuid.uuid4().hex[:8]}", s3.storage)
    own = tmp_path / "own"
    own.mkdir()
    (own / "run").symlink_to(_finished.folder / "run")
    (own / "corpus").symlink_to(_finished.corpus)
    for top in ("run", "corpus"):
        for path in sorted((own / top).rglob("*")):
            if path.is_file():
                folder.write_bytes(f"{top}/{path.relative_to(own / top).as_posix()}", path.read_bytes())
    for name, value in {"ENDPOINT_URL": "endpoint_url", "ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": "secret"}.items():
        monkeypatch.setenv(f"AWS_{name}", s3.storage[value])
    return {"disk": str(own), "s3": folder.root}


@pytest.mark.slow
def test_reading(places: dict[str, str], tmp_path: Path) -> None:
    corpus = Path(places["disk"]) / "corpus"
    query = min((corpus / "queries").iterdir()).relative_to(corpus).as_posix()
    for name, text in READING.items():
        said = {}
        for where, place in places.items():
            words = [word.format(p=place, query=query, out=tmp_path) for word in text.split()]
            ended = in_this_process(*words)
            assert ended.code == 0, (name, where, ended.err)
            said[where] = re.sub(r"\d\d:\d\d:\d\d", "", ended.out.replace(place, ""))  # the time of day
        assert said["s3"] == said["disk"], name


@pytest.mark.parametrize(
    "words",
    [
        "search {p}/run/store --query x.wav --html s3://bucket/x.html",
        "search {p}/run/store --query x.wav --clips s3://bucket/clips",
        "compare a={p}/run b={p}/run --csv s3://bucket/csv",
        "paper table {p}/run/exports/detections.csv s3://bucket/t.md",
    ],
)
def test_what_is_written_beside_a_run_goes_to_a_disk(words: str, tmp_path: Path, monkeypatch: Any) -> None:
    """It is said before any work, and no folder `s3:` is made."""
    ended = in_this_process(*words.format(p=tmp_path).split(), cwd=tmp_path)
    assert ended.code == 2
    assert says(ended.err, families.OUTPUT_REFUSED)
    assert words.split()[-1] in ended.err
    assert not list(tmp_path.iterdir())


def test_a_folder_is_no_list(places: dict[str, str]) -> None:
    ended = in_this_process(
        "calibrate", "-s", f"{places['s3']}/run", "--seconds", "9", "--method", "none", "--out", "x.csv"
    )
    assert ended.code == 2
    assert says(ended.err, families.WRONG_KIND)
    assert f"{places['s3']}/run" in ended.err
