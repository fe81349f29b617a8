"""swsdist check: all that is wrong or odd, at once, before any work; nothing is written."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import soundfile
from commands import Command

from swsdist.core.errors import UserError


@pytest.fixture
def own(corpus: Path, tmp_path: Path) -> Path:
    """The corpus and its config, to be changed; it has not been run."""
    for name in ("corpus", "config.yaml"):
        (shutil.copytree if (corpus / name).is_dir() else shutil.copy)(corpus / name, tmp_path / name)
    return tmp_path


def lines(out: str, mark: str) -> list[str]:
    """Findings with a mark: ok, odd, BAD."""
    return [line.split(None, 1)[1] for line in out.splitlines() if line.startswith(f"{mark} ")]


def test_what_fits(own: Path, swsdist: Command) -> None:
    before = sorted(own.rglob("*"))
    out = swsdist("check", "config.yaml", "--strict", cwd=own).out
    assert [line.split()[0] for line in lines(out, "ok")] == [
        "documents",
        "queries",
        "references",
        "features",
        "store",
        "run",
    ]
    assert "8 of 8" in out
    assert len(out.splitlines()) == 6
    assert sorted(own.rglob("*")) == before
    swsdist("index", "config.yaml", cwd=own)
    assert "8 documents; the corpus has 0 new, 0 changed, 0 gone" in swsdist("check", "config.yaml", cwd=own).out


def test_everything_is_told_at_once(own: Path, swsdist: Command) -> None:
    audio = sorted((own / "corpus" / "audio").iterdir())
    audio[0].unlink()
    audio[1].write_bytes(b"no audio")
    rate = soundfile.info(audio[2]).samplerate
    soundfile.write(own / "corpus" / "queries" / "empty.wav", np.zeros(rate), rate)
    table = own / "corpus" / "queries.csv"
    header, *rows = table.read_text().splitlines()
    width = header.count(",")
    values = dict.fromkeys(header.split(","), "") | {"query_id": "empty", "example": "1", "path": "queries/empty.wav"}
    table.write_text("\n".join([header, *rows, ",".join(values.values())]) + "\n")
    assert width == len(values) - 1
    refs = own / "corpus" / "refs.csv"
    head, first, *rest = refs.read_text().splitlines()
    fields = dict(zip(head.split(","), first.split(","), strict=True)) | {"start": "900.0", "end": "901.0"}
    refs.write_text("\n".join([head, ",".join(fields.values()), *rest]) + "\n")
    out = swsdist("check", "config.yaml", "--set", "calibrate.fit=gone.json", cwd=own, code=2).out
    odd = lines(out, "odd")
    assert any(
        "2 of 8 recordings cannot be used and will be rejected; the first:" in line and line.count(str(audio[0])) == 1
        for line in odd
    )
    assert any("the query contains no speech" in line for line in odd)
    assert any(line.startswith("references") and "[reference-after-end]" in line for line in odd)
    (bad,) = lines(out, "BAD")
    assert bad.startswith("calibration")
    assert "gone.json: no such file" in bad
    # Without the bad thing the work can be done; --strict wants all of it right.
    swsdist("check", "config.yaml", cwd=own)
    swsdist("check", "config.yaml", "--strict", cwd=own, code=4)


def test_one_mistake_is_told_once(own: Path, swsdist: Command) -> None:
    out = swsdist("check", "config.yaml", "--set", "corpus.documents=none.csv", cwd=own, code=2).out
    assert len(lines(out, "BAD")) == 1
    assert "there is no such table or folder" in out
    out = swsdist("check", "config.yaml", "--set", "features.name=mfc", cwd=own, code=2).out
    (bad,) = lines(out, "BAD")
    assert "did you mean mfcc" in bad


def test_a_store_of_other_features(own: Path, swsdist: Command) -> None:
    swsdist("index", "config.yaml", cwd=own)
    other = ["--set", "index.store=run/store", "--set", "features.options={n_mfcc: 7}", "--set", "run=other"]
    out = swsdist("check", "config.yaml", *other, cwd=own, code=2).out
    assert "the store holds other features" in lines(out, "BAD")[0]


def test_a_run_folder_that_cannot_be(own: Path, swsdist: Command) -> None:
    (own / "file").write_text("")
    out = swsdist("check", "config.yaml", "--set", "run=file/run", cwd=own, code=2).out
    assert any(line.startswith("run") for line in lines(out, "BAD"))


def test_channel_2_alone_cannot_be_scored(swsdist, place: Path, tmp_path: Path) -> None:
    """Told before any work, with what helps; searched it can be."""
    first = (place / "corpus" / "docs.csv").read_text().splitlines()[1].split(",")[0]
    samples, rate = soundfile.read(place / "corpus" / "audio" / f"{first}.flac")
    soundfile.write(tmp_path / "two.wav", np.stack([samples * 0, samples], axis=1), rate)
    (tmp_path / "docs.csv").write_text(f"doc_id,channel,path\n{first},2,two.wav\n")
    (tmp_path / "refs.csv").write_text(f"query_id,doc_id,channel,start,end\nq001,{first},2,0.1,0.6\n")
    given = (
        *("--set", f"corpus.documents={tmp_path}/docs.csv", "--set", f"run={tmp_path}/run", "--set"),
        f"corpus.references={tmp_path}/refs.csv",
    )
    told = swsdist("run", "config.yaml", *given, cwd=place, code=2).err
    assert f"corpus.documents: {tmp_path}/docs.csv: no document is of channel 1" in told
    assert "there is channel 2 only [unsupported]\n  remedy: " in told
    assert not (tmp_path / "run" / "store").exists()
    assert "BAD  references" in swsdist("check", "config.yaml", *given, cwd=place, code=2).out
    found = ("--set", "corpus.references=null", "--set", "calibrate.fit=none", "--set", "report.clips=1")
    swsdist("run", "config.yaml", *given[:-2], *found, cwd=place)


def test_silence_is_skipped_only_where_somebody_hears_it(own: Path, swsdist: Command) -> None:
    (own / "frames").mkdir()
    np.save(own / "frames" / "d001.npy", np.ones((10, 3)))
    options = f"{{path: {own}/frames, shift: 0.01, dimension: 3, tolerance: 99}}"
    given = ["--set", f"features={{name: external, options: {options}}}", "--set", "search.skip_silence=true"]
    out = swsdist("check", "config.yaml", *given, cwd=own, code=2).out
    queries, bad = lines(out, "BAD")
    assert "frames of 0 of 8 examples of queries" in queries
    assert bad.startswith("search")
    assert "search.skip_silence: false" in bad


def test_what_would_be_indexed_again(own: Path, swsdist: Command) -> None:
    swsdist("index", "config.yaml", cwd=own)
    table = own / "corpus" / "docs.csv"
    rows = table.read_text().splitlines()
    table.write_text("\n".join(rows[:-1]) + "\n")
    first = sorted((own / "corpus" / "audio").iterdir())[0]
    samples, rate = soundfile.read(first)
    soundfile.write(first, samples[: len(samples) // 2], rate)
    # A reference is of the document that is gone.
    assert "the corpus has 0 new, 1 changed, 1 gone" in swsdist("check", "config.yaml", cwd=own, code=2).out


def test_channels_are_not_recordings(own: Path, swsdist: Command) -> None:
    (own / "audio").mkdir()
    soundfile.write(own / "audio" / "two.wav", np.random.default_rng(1).normal(size=(16000, 2)) / 9, 16000)
    (own / "audio" / "bad.wav").write_text("no audio")
    sets = ("--set", "corpus.documents=audio", "--set", "corpus.queries=null", "--set", "corpus.references=null")
    out = swsdist("check", "config.yaml", *sets, "--set", "calibrate.fit=none", cwd=own).out
    assert lines(out, "ok")[0].split(None, 1)[1].startswith("2 of 3 channels of 2 recordings, ")
    assert "1 of 2 recordings cannot be used" in out


def test_text_alone_cannot_be_searched(own: Path, swsdist: Command) -> None:
    (own / "terms.xml").write_text("<kwlist><kw kwid='k1'><kwtext>one two</kwtext></kw></kwlist>")
    sets = ("--set", "corpus.queries=terms.xml", "--set", "corpus.references=null", "--set", "calibrate.fit=none")
    (bad,) = lines(swsdist("check", "config.yaml", *sets, cwd=own, code=2).out, "BAD")
    assert "1 query is text only, and the method dtw takes spoken ones" in bad
    assert "corpus.spoken" in bad


def test_a_gpu_that_is_not_there(own: Path, swsdist: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told before the corpus is indexed."""
    monkeypatch.setattr(
        "swsdist.stages.inputs.search_inputs.missing", lambda: UserError("no GPU", where="search.backend")
    )
    words = ("config.yaml", "--set", "search.backend=cuda")
    assert lines(swsdist("check", *words, cwd=own, code=2).out, "BAD") == ["search       search.backend: no GPU"]
    before = sorted((own / "corpus").rglob("*"))
    assert "no GPU" in swsdist("run", *words, cwd=own, code=2).err
    assert not list(own.glob("run/store/manifest.json"))
    assert sorted((own / "corpus").rglob("*")) == before
