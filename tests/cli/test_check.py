"""swsdist check: all that is wrong or odd, at once, before any work; nothing is written; and what corpora of others may run."""

import shutil
from pathlib import Path

import lists_of_others as others
import numpy as np
import pytest
import soundfile
from commands import Command, untold

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
    names = ["documents", "queries", "references", "features", "store", "run"]
    assert [line.split()[0] for line in lines(out, "ok")] == names
    assert len(out.splitlines()) == 6
    assert "8 of 8" in out
    assert sorted(own.rglob("*")) == before


def test_everything_is_told_at_once(own: Path, swsdist: Command) -> None:
    audio = sorted((own / "corpus" / "audio").iterdir())
    audio[0].unlink()
    audio[1].write_bytes(b"no audio")
    soundfile.write(own / "corpus" / "queries" / "empty.wav", np.zeros(8000), 8000)
    changed = {
        "queries": {"query_id": "empty", "example": "1", "path": "queries/empty.wav"},
        "refs": {"start": "900.0", "end": "901.0"},
    }
    for name, values in changed.items():
        table = own / "corpus" / f"{name}.csv"
        head, first, *rest = table.read_text().splitlines()
        row = dict(zip(head.split(","), first.split(","), strict=True))
        row = {**(row if name == "refs" else dict.fromkeys(row, "")), **values}
        kept = rest if name == "refs" else [first, *rest]
        table.write_text("\n".join([head, ",".join(row.values()), *kept]) + "\n")
    out = swsdist("check", "config.yaml", "--set", "calibrate.fit=gone.json", cwd=own, code=2).out
    odd = lines(out, "odd")
    (rejected,) = (line for line in odd if "2 of 8 recordings cannot be used and will be rejected; the first:" in line)
    assert rejected.count(str(audio[0])) == 1
    assert any("the query contains no speech" in line for line in odd)
    assert any(line.startswith("references") and "[reference-after-end]" in line for line in odd)
    (bad,) = lines(out, "BAD")
    assert bad.startswith("calibration")
    assert "gone.json: no such file" in bad
    # Without the bad thing the work can be done; --strict wants all of it right.
    swsdist("check", "config.yaml", cwd=own)
    swsdist("check", "config.yaml", "--strict", cwd=own, code=4)


def test_one_mistake_is_told_once(own: Path, swsdist: Command) -> None:
    (own / "file").write_text("")
    (own / "terms.xml").write_text("<kwlist><kw kwid='k1'><kwtext>one two</kwtext></kw></kwlist>")
    for sets, told in (
        (["corpus.documents=none.csv"], "there is no such table or folder"),
        (["features.name=mfc"], "did you mean mfcc"),
        (["run=file/run"], "run"),
        (["corpus.queries=terms.xml", "corpus.references=null", "calibrate.fit=none"], "corpus.spoken"),
    ):
        given = [word for one in sets for word in ("--set", one)]
        (bad,) = lines(swsdist("check", "config.yaml", *given, cwd=own, code=2).out, "BAD")
        assert told in bad


def test_a_store_that_is_there(own: Path, swsdist: Command) -> None:
    """What is new in the corpus is counted; a store of other features is not taken."""
    swsdist("index", "config.yaml", cwd=own)
    assert "the corpus has 0 new, 0 changed, 0 gone" in swsdist("check", "config.yaml", cwd=own).out
    other = ["--set", "index.store=run/store", "--set", "features.options={n_mfcc: 7}", "--set", "run=other"]
    out = swsdist("check", "config.yaml", *other, cwd=own, code=2).out
    assert "the store holds other features" in lines(out, "BAD")[0]
    table = own / "corpus" / "docs.csv"
    table.write_text("\n".join([*table.read_text().splitlines()[:-1], ""]))
    first = sorted((own / "corpus" / "audio").iterdir())[0]
    samples, rate = soundfile.read(first)
    soundfile.write(first, samples[: len(samples) // 2], rate)
    # A reference is of the document that is gone.
    assert "the corpus has 0 new, 1 changed, 1 gone" in swsdist("check", "config.yaml", cwd=own, code=2).out


def test_channel_2_alone_cannot_be_scored(swsdist, place: Path, tmp_path: Path) -> None:
    samples, rate = soundfile.read(place / "corpus" / "audio" / "d001.flac")
    soundfile.write(tmp_path / "two.wav", np.stack([samples * 0, samples], axis=1), rate)
    (tmp_path / "docs.csv").write_text("doc_id,channel,path\nd001,2,two.wav\n")
    (tmp_path / "refs.csv").write_text("query_id,doc_id,channel,start,end\nq001,d001,2,0.1,0.6\n")
    given = f"config.yaml --set corpus.documents={tmp_path}/docs.csv --set run={tmp_path}/run --set corpus.references="
    told = f"corpus.documents: {tmp_path}/docs.csv: no document is of channel 1 .. channel 2 only [unsupported]"
    assert untold(swsdist, {f"run {given}{tmp_path}/refs.csv": told}, place) == {}
    assert not (tmp_path / "run" / "store").exists()
    checked = swsdist(*f"check {given}{tmp_path}/refs.csv".split(), cwd=place, code=2).out
    assert "BAD  references" in checked
    swsdist(*f"run {given}null --set calibrate.fit=none --set report.clips=1".split(), cwd=place)


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


def test_channels_are_not_recordings(own: Path, swsdist: Command) -> None:
    (own / "audio").mkdir()
    soundfile.write(own / "audio" / "two.wav", np.random.default_rng(1).normal(size=(16000, 2)) / 9, 16000)
    (own / "audio" / "bad.wav").write_text("no audio")
    sets = ("--set", "corpus.documents=audio", "--set", "corpus.queries=null", "--set", "corpus.references=null")
    out = swsdist("check", "config.yaml", *sets, "--set", "calibrate.fit=none", cwd=own).out
    assert lines(out, "ok")[0].split(None, 1)[1].startswith("2 of 3 channels of 2 recordings, ")
    assert "1 of 2 recordings cannot be used" in out


def test_a_gpu_that_is_not_there(own: Path, swsdist: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    error = UserError("no GPU", where="search.backend")
    monkeypatch.setattr("swsdist.stages.inputs.search_inputs.missing", lambda: error)
    words = ("config.yaml", "--set", "search.backend=cuda")
    assert lines(swsdist("check", *words, cwd=own, code=2).out, "BAD") == ["search       search.backend: no GPU"]
    before = sorted((own / "corpus").rglob("*"))
    assert "no GPU" in swsdist("run", *words, cwd=own, code=2).err
    assert not list(own.glob("run/store/manifest.json"))
    assert sorted((own / "corpus").rglob("*")) == before


CONFIG = """\
run: run
corpus:
  documents: data
  queries: corpus/queries.csv
executor:
  kind: serial
"""


@pytest.fixture
def folder(corpus: Path, tmp_path: Path) -> Path:
    others.data_folder(corpus / "corpus", tmp_path / "data", "cat audio/{}.wav |")
    (tmp_path / "corpus").symlink_to(corpus / "corpus")
    (tmp_path / "config.yaml").write_text(CONFIG)
    return tmp_path


def test_commands_need_the_flag_at_each_call(folder: Path, swsdist: Command) -> None:
    for command in ("index", "run", "search", "reduce", "export", "score"):
        ended = swsdist(command, "config.yaml", cwd=folder, code=3)
        assert "[command-not-allowed]" in ended.err
        assert "--allow-commands" in ended.err
    assert "BAD  documents" in swsdist("check", "config.yaml", cwd=folder, code=2).out
    assert "ok   documents    8 of 8" in swsdist("check", "config.yaml", "--allow-commands", cwd=folder).out
    swsdist("index", "config.yaml", "--allow-commands", cwd=folder)
    swsdist("run", "config.yaml", cwd=folder)  # nothing is to be read any more
    assert "rec1\t0.35" in swsdist("store", "info", "run/store", "--documents", cwd=folder).out


def test_no_config_allows_them(folder: Path, swsdist: Command) -> None:
    for line, code in (("allow_commands: true\n", 2), ("storage: {allow_commands: true}\n", 3)):
        (folder / "config.yaml").write_text(CONFIG + line)
        swsdist("index", "config.yaml", cwd=folder, code=code)
    assert not (folder / "run" / "store" / "manifest.json").exists()


def test_check_reads_lists_and_tells_what_belongs_elsewhere(corpus: Path, tmp_path: Path, swsdist: Command) -> None:
    lists = others.nist_lists(corpus / "corpus", tmp_path / "nist", "kwseval")
    names = {"documents": "ecf.xml", "audio": "audio", "queries": "terms.xml", "references": "words.rttm"}
    sets = [f"--set=corpus.{key}={lists}/{name}" for key, name in names.items()]
    sets += [f"--set=corpus.spoken={corpus}/corpus/queries.csv", "--set=score.protocol=kwseval"]
    out = swsdist("check", "config.yaml", *sets, cwd=corpus).out
    assert "places in 3 recordings" in out
    assert "1 query is text only" in out
    wrong = swsdist("check", "config.yaml", f"--set=corpus.queries={lists}/ecf.xml", cwd=corpus, code=2).out
    assert "[wrong-kind]; remedy: An ECF (<ecf>) belongs to corpus.documents" in wrong
