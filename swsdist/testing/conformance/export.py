"""Checks exports; see `swsdist.exports.interface` for the requirements."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import soundfile

from swsdist.core.errors import UserError
from swsdist.core.types import DETECTIONS
from swsdist.exports.interface import BestHit, Material
from swsdist.registry.registries import EXPORTS
from swsdist.testing import scenes
from swsdist.testing.conformance.entry import check_entry, require

#: Names that some formats cannot represent.
HARD = ("two words", "a/b", 'comma,quote"', "ümlaut", "<&>", "tab\there", "star*[a]", "x" * 300)


def check_export(name: str) -> None:
    """Check one registered export.

    It writes below its folder and nowhere else, whole files with the same names and bytes for the same detections however they
    come in batches; an empty list is written or refused; a name that its form cannot hold is refused as the user's mistake.

    Args:
        name: registered in `swsdist.registry.registries.EXPORTS`.

    Raises:
        AssertionError: a check fails; the message names it.
    """
    _, what = check_entry(EXPORTS, name)
    with tempfile.TemporaryDirectory(prefix="swsdist-") as place:
        root = Path(place)
        table, best = detections(), hits(root)
        files = written(name, material(table, best), root / "first")
        require(bool(files), what, "it writes nothing")
        require(all(files.values()), what, "it writes an empty file")
        hidden = [file for file in files if Path(file).name.startswith(".") or file.endswith((".tmp", ".partial"))]
        require(not hidden, what, f"it leaves {', '.join(hidden)}")
        require(
            files == written(name, material(table, best), root / "again"), what, "it writes other bytes the second time"
        )
        cut = written(name, material(table, best, rows=1), root / "cut")
        require(files == cut, what, "what it writes depends on how detections come in batches")
        _try(name, material(table.slice(0, 0), best[:0]), root / "empty", what, "an empty list")
        for k, hard in enumerate(HARD):
            item = table.slice(0, 1).to_pylist()[0] | {"query_id": hard, "doc_id": hard}
            odd = material(pa.Table.from_pylist([item], DETECTIONS), [{**best[0], "query_id": hard, "doc_id": hard}])
            _try(name, odd, root / f"hard{k}", what, f"the name {hard[:20]!r}")
        outside = {path.name for path in root.iterdir()} - {"sound.wav", "first", "again", "cut", "empty"}
        require(all(item.startswith("hard") for item in outside), what, "it writes outside of its folder")


def detections() -> pa.Table:
    """Twelve decided detections of three queries in four documents: DETECTIONS."""
    drawn = scenes.table(3, 12, 3, 1000).tolist()
    rows = [
        {
            "query_id": f"q{k % 3}",
            "doc_id": f"d{k % 4}",
            "channel": 1,
            "start": first / 100,
            "end": first / 100 + 0.5,
            "score": (score - 500) / 64,
            "decision": yes > 500,
            "cost": yes,
            "frames": 50,
            "example": 1,
            "system": "scene",
        }
        for k, (first, score, yes) in enumerate(drawn)
    ]
    rows.sort(key=lambda row: (row["query_id"], -float(str(row["score"]))))
    names = set(DETECTIONS.names)
    return pa.Table.from_pylist([{key: row[key] for key in row if key in names} for row in rows], DETECTIONS)


def hits(root: Path) -> list[BestHit]:
    """Three hits in a recording of integers that is written to a folder."""
    path = root / "sound.wav"
    soundfile.write(path, scenes.table(5, 8000, 1, 8001)[:, 0].astype(np.int16) - 4000, 8000, subtype="PCM_16")
    return [
        BestHit(query_id=f"q{k}", doc_id="d1", channel=1, start=k / 4, end=k / 4 + 0.25, path=str(path))
        for k in range(3)
    ]


def material(table: pa.Table, best: list[BestHit], rows: int = 1000) -> Material:
    """What an export is given of a table, in batches of so many rows."""
    query_ids = sorted({*table["query_id"].to_pylist(), "unfound"})
    return Material(lambda: iter(table.to_batches(max_chunksize=rows)), query_ids, "scene", best)


def written(name: str, given: Material, folder: Path) -> dict[str, bytes]:
    """Names and contents of the files that an export writes to a new folder."""
    folder.mkdir()
    EXPORTS[name].load()(given, folder)
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def _try(name: str, given: Material, folder: Path, what: str, of: str) -> None:
    try:
        written(name, given, folder)
    except UserError:
        return
    except Exception as error:
        raise AssertionError(f"{what}: {of} is neither written nor refused as the user's mistake: {error!r}") from error
