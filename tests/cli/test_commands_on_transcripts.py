"""Commands on transcripts: `index FOLDER`, `search --text`, and what is asked of a store of lattices."""

import json
import shlex
import shutil
from pathlib import Path

import pytest
import soundfile
from commands import Command, hits, untold

from swsdist.config import Config
from swsdist.core.codes import cli as cli_codes
from swsdist.core.codes import families
from swsdist.core.codes import lattices as text_codes
from swsdist.core.codes import storage as store_codes
from swsdist.io.filesystem import Folder
from swsdist.pipeline.ledger import Plan, save_plans
from swsdist.pipeline.lock import locked
from swsdist.server.service import Settings
from tests.support.coded import says
from tests.support.written_corpus import make, spoken

SERIAL = ("--set", "executor.kind=serial")

pytestmark = pytest.mark.xdist_group("commands-on-transcripts")


@pytest.fixture(scope="module")
def talks(tmp_path_factory: pytest.TempPathFactory, swsdist: Command) -> Path:
    """A folder with `json/`, transcripts, and `json-text/`, their store; to be read only."""
    folder = tmp_path_factory.mktemp("talks")
    make(folder)
    shutil.rmtree(folder / "kaldi")
    ended = swsdist("index", "json", *SERIAL, cwd=folder)
    assert "search it: swsdist search json-text --text TEXT" in ended.out
    (folder / "words.txt").write_text("house HH AW S\nriver R IH V ER\nmouse M AW S\nred R EH D\n")
    return folder


def best(text: str) -> list[tuple[str, float, float]]:
    """Places of a word in the transcripts, the likeliest first: document, start, probability."""
    found = [(doc_id, item) for doc_id, words in spoken().items() for item in words if item.guess == text]
    some = [(doc_id, item.start, item.confidence) for doc_id, item in found]
    return sorted(some, key=lambda item: (-item[2], item[0], item[1]))


def test_texts(swsdist: Command, talks: Path) -> None:
    for target in ("json-text", "json-text/store"):
        ask = ("search", target, "--text", "River.", "--top", "5")
        rows = hits(swsdist(*ask, "--csv", cwd=talks))
        assert [(row["doc_id"], float(row["start"]), float(row["score"])) for row in rows] == best("river")[:5]
        assert {row["query_id"] for row in rows} == {"River."}
        assert "scores are posteriors" in swsdist(*ask, cwd=talks).out
        as_json = json.loads(swsdist(*ask, "--json", cwd=talks).out)
        assert [row["doc_id"] for row in as_json] == [row["doc_id"] for row in rows]


def test_a_table_of_texts(swsdist: Command, talks: Path) -> None:
    search = ("search", "json-text", "--csv", "--text")
    rows = hits(swsdist(*search, "queries.csv", "--text", "blue", "--top", "1", cwd=talks))
    assert sorted(row["query_id"] for row in rows) == ["blue", *(f"q{k}" for k in range(1, 9))]
    (talks / "two.csv").write_text("query_id,text\na,river\na,blue\n")
    rows = hits(swsdist(*search, "two.csv", "--top", "99", cwd=talks))
    expected = {("a", place[0]) for place in best("river") + best("blue")}
    assert {(row["query_id"], row["doc_id"]) for row in rows} == expected
    swsdist(*search, "two.csv", "--text", "a", cwd=talks, code=2)


def test_words_that_nothing_holds(swsdist: Command, talks: Path) -> None:
    """They are named, with similar ones, or a hint; a file of hits has the same columns without hits."""
    ended = swsdist("search", "json-text", "--text", "rivver house", "--text", "river", "--csv", cwd=talks)
    assert {row["query_id"] for row in hits(ended)} == {"river"}
    assert says(ended.err, families.NO_HITS)
    assert "rivver (but river)" in ended.err
    strict = swsdist("search", "json-text", "--text", "rivver", "--strict", cwd=talks, code=4)
    assert says(strict.err, cli_codes.STRICT_WARNINGS)
    heads = set()
    for text in ("river", "rivver"):
        swsdist("search", "json-text", "--text", text, "--table", "hits.csv", cwd=talks)
        heads.add((talks / "hits.csv").read_text().partition("\n")[0])
    assert len(heads) == 1
    for text, hint in (("44", "written in words"), ("riv*", "--set terms.patterns=true")):
        assert hint in swsdist("search", "json-text", "--text", text, cwd=talks).err
    assert len(swsdist("search", "json-text", "--text", "x" * 5000, cwd=talks).err) < 300


def test_a_folder_finds_what_was_made_of_it(swsdist: Command, talks: Path, tmp_path: Path) -> None:
    asked = ("--text", "river", "--csv")
    by_run = swsdist("search", "json-text", *asked, cwd=talks).out
    assert swsdist("search", talks / "json", *asked, cwd=tmp_path).out == by_run
    named = f"[{cli_codes.RECORDINGS_NOT_RUN.name}] .. name what was made of it: json-text\n"
    cases = {
        "search json --query river.wav": f"[{cli_codes.OTHER_KIND_OF_QUERY.name}] .. swsdist index json\n",
        **dict.fromkeys(("store info json", "store rejected json", "status json"), named),
    }
    assert untold(swsdist, cases, talks) == {}
    shutil.copytree(talks / "json-text", talks / "json-again")
    two = {"search json --text river": "name what was made of it: json-again or json-text"}
    assert untold(swsdist, two, talks) == {}
    shutil.rmtree(talks / "json-again")


def test_a_moved_folder_finds_its_index(swsdist: Command, talks: Path, tmp_path: Path) -> None:
    for name in ("json", "json-text"):
        shutil.copytree(talks / name, tmp_path / "moved" / name)
    asked = ("--text", "river", "--csv")
    found = swsdist("search", "json", *asked, cwd=talks).out
    assert swsdist("search", tmp_path / "moved" / "json", *asked, cwd=tmp_path).out == found
    assert "up to date" in swsdist("index", "json", *SERIAL, cwd=tmp_path / "moved").out
    shutil.copytree(talks / "json", tmp_path / "json")
    shutil.copytree(tmp_path / "moved" / "json-text", tmp_path / "other" / "json-text")
    told = swsdist("index", tmp_path / "json", *SERIAL, cwd=tmp_path / "other", code=5).err
    assert says(told, cli_codes.ANOTHER_INDEX)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    found: list[Settings] = []
    monkeypatch.setattr("swsdist.server.running.serve_until_ended", lambda settings, *_: found.append(settings))
    return found


def test_only_what_index_made_is_served_as_a_folder(swsdist: Command, tmp_path: Path, served: list[Settings]) -> None:
    """A run of research is not indexed anew, nor is the index of another folder."""
    (tmp_path / "tapes").mkdir()
    for name in ("tapes-paper", "tapes-swsdist"):
        recorded = Config(run=str(tmp_path / name), corpus={"documents": str(tmp_path / "tapes")})
        save_plans(Folder(str(tmp_path / name)), {"run": Plan("search", recorded.model_dump(mode="json"))})
        swsdist("serve", "tapes", "--project", "elsewhere/words", cwd=tmp_path)
    elsewhere = tmp_path / "elsewhere" / "tapes-swsdist"
    assert [settings.target for settings in served] == [str(elsewhere), str(tmp_path / "tapes-swsdist")]
    shutil.copytree(tmp_path / "tapes-swsdist", elsewhere)
    (tmp_path / "other" / "tapes").mkdir(parents=True)
    told = swsdist("serve", "other/tapes", "--project", "elsewhere/words", cwd=tmp_path, code=5).err
    assert says(told, cli_codes.ANOTHER_INDEX)


def test_a_served_folder_has_its_words(swsdist: Command, talks: Path, tmp_path: Path, served: list[Settings]) -> None:
    for more in ((), ("--texts", "other")):
        swsdist("serve", "json", "--project", tmp_path / "words", *more, cwd=talks)
    assert [settings.texts for settings in served] == ["json-text", "other"]
    assert served[0].target == str(tmp_path / "json-swsdist")


def test_printed_commands_can_be_typed(swsdist: Command, talks: Path, tmp_path: Path) -> None:
    for name in ("Bob's talks, 2015", '-n * $(touch x) "y"'):
        shutil.copytree(talks / "json", tmp_path / name)
        indexed = swsdist("index", f"./{name}", *SERIAL, cwd=tmp_path)
        printed = indexed.out.rpartition("search it: ")[2].partition("\n")[0]
        _, *words = shlex.split(printed.replace("--text TEXT", "--text river"))
        assert words[1] == f"{name}-text"
        assert "river: " in swsdist(words[0], f"./{words[1]}", *words[2:], cwd=tmp_path).out
        refused = swsdist("search", f"./{name}", "--query", "a.wav", cwd=tmp_path, code=2).err
        assert shlex.split(refused.rpartition("swsdist index ")[2]) == [f"./{name}"]
        bare = tmp_path / f"bare {name}"
        bare.mkdir()
        refused = swsdist("search", bare, "--text", "a", cwd=tmp_path, code=3).err
        assert shlex.split(refused.rpartition("swsdist index ")[2].partition("; a store")[0]) == [str(bare)]


def test_what_is_being_indexed(swsdist: Command, talks: Path, tmp_path: Path) -> None:
    """It was not killed, and it is no folder of something else."""
    shutil.copytree(talks / "json-text", tmp_path / "run")
    (tmp_path / "run" / "store" / "manifest.json").unlink()
    commands = (("store", "info", "run"), ("store", "rejected", "run"), ("search", "run", "--text", "river"))
    with locked(Folder(str(tmp_path / "run"))):
        for command in (*commands, ("store", "info", "run/store")):
            assert says(swsdist(*command, cwd=tmp_path, code=3).err, families.NOT_FINISHED)
    for command in commands:
        assert not says(swsdist(*command, cwd=tmp_path, code=3).err, families.NOT_FINISHED)


def test_terms_of_a_dictionary(swsdist: Command, talks: Path) -> None:
    (talks / "rules.txt").write_text("b B\nouse AW S\n")
    near = ("--set", "terms.nearest=2", "--set", "terms.edit_cost=0.5")
    phones = (*near, "--set", "terms.dictionary=words.txt")
    for text, word, sets in (
        ("bouse", "house", (*phones, "--set", "terms.rules=rules.txt")),
        ("rivver", "river", near),
    ):
        rows = hits(swsdist("search", "json-text", "--text", text, "--csv", *sets, cwd=talks))
        expected = [0.60653066 * confidence for _, _, confidence in best(word)]
        assert [float(row["score"]) for row in rows] == pytest.approx(expected[: len(rows)], abs=1e-6)
    refused = swsdist("search", "json-text", "--text", "zzz", *phones, cwd=talks, code=3)
    assert says(refused.err, text_codes.NO_PRONUNCIATION)


def test_patterns(swsdist: Command, talks: Path) -> None:
    patterns = ("--set", "terms.patterns=true")
    rows = hits(swsdist("search", "json-text", "--text", "r?ver", "--top", "5", "--csv", *patterns, cwd=talks))
    assert [row["doc_id"] for row in rows] == [doc_id for doc_id, *_ in best("river")[:5]]
    broken = swsdist("search", "json-text", "--text", "(river", *patterns, cwd=talks, code=3)
    assert says(broken.err, text_codes.UNBALANCED_PATTERN)
    some = swsdist("search", "json-text", "--text", "(river", "--text", "blue", *patterns, cwd=talks, code=4)
    assert says(some.err, cli_codes.QUERY_SKIPPED)
    assert says(some.err, cli_codes.QUERIES_SKIPPED)
    assert "blue: 20 hits shown" in some.out
    assert says(swsdist("search", "json-text", "--text", "-", cwd=talks, code=3).err, text_codes.EMPTY_TERM)


def test_queries_of_another_kind(swsdist: Command, talks: Path, place: Path) -> None:
    other = f"[{cli_codes.OTHER_KIND_OF_QUERY.name}]"
    cases = {
        "search json-text --text a --query b.wav": "[conflicting-options]",
        f"search {talks}/json-text --query river.wav": other,
        f"search {place}/run --text river": other,
        "search json-text --text a --set search.method=dtw": "[",
    }
    assert untold(swsdist, cases, talks) == {}


def test_clips_and_a_page(swsdist: Command, talks: Path, tmp_path: Path) -> None:
    """Where recordings lie beside the transcripts, hits can be heard; where not, that is said."""
    search = ("--text", "river", "--top", "3")
    silent = swsdist("search", "json-text", *search, "--html", tmp_path / "a.html", cwd=talks)
    assert "river" in (tmp_path / "a.html").read_text()
    assert silent.out.count("d0") == 3
    ended = swsdist("search", "json-text", *search, "--clips", tmp_path / "none", cwd=talks)
    assert says(ended.err, families.NO_SOUND)
    shutil.copytree(talks / "json", tmp_path / "heard")
    for doc_id in spoken():
        soundfile.write(tmp_path / "heard" / f"{doc_id}.wav", [0.1, -0.1] * 48_000, 8000)
    swsdist("index", "heard", "--text", *SERIAL, cwd=tmp_path)
    ended = swsdist("search", "heard-text", *search, "--html", "b.html", "--clips", "clips", "--csv", cwd=tmp_path)
    assert len(list((tmp_path / "clips").glob("*.wav"))) == 3
    assert "<audio" in (tmp_path / "b.html").read_text()
    assert hits(ended)[0]["path"] == str(tmp_path / "heard" / f"{hits(ended)[0]['doc_id']}.wav")


def test_folders_that_cannot_be_indexed(swsdist: Command, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert untold(swsdist, {"index empty": "[", "index empty --text": "[empty-input]"}, tmp_path) == {}
    (tmp_path / "empty" / "a.json").write_text('{"segments": [')
    cases = {"index empty": f"[empty-input] .. {tmp_path / 'empty' / 'a.json'}, line 1"}
    assert untold(swsdist, cases, tmp_path, code=3) == {}
    assert not (tmp_path / "empty-text" / "store" / "manifest.json").exists()


def test_words_that_cannot_be_used_are_left_out_and_named(swsdist: Command, tmp_path: Path) -> None:
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "all.ctm").write_text("a 1 0 1 river\n" + 103 * "a 1 2 -1 bad\n" + "a 1 3 1 house\n")
    ended = swsdist("index", "some", "--text", *SERIAL, cwd=tmp_path)
    assert "rejected: 100 item(s), malformed-line; the first:" in ended.err
    assert "all.ctm, line 2: " in ended.err
    listed = swsdist("store", "rejected", "some-text/store", cwd=tmp_path).out
    assert "item a, channel 1: more-left-out: 3 more" in listed
    assert listed.endswith("101 rejected\n")
    assert swsdist("search", "some-text", "--text", "house", "--csv", cwd=tmp_path).out.count("house") == 1
    swsdist("index", "some", "--text", *SERIAL, "--strict", cwd=tmp_path, code=4)


@pytest.fixture
def copied(talks: Path, tmp_path: Path) -> Path:
    shutil.copytree(talks, tmp_path / "talks")
    return tmp_path / "talks"


def test_commands_on_the_run(swsdist: Command, talks: Path, tmp_path: Path) -> None:
    assert "1 of 1 tasks" in swsdist("status", "json-text", cwd=talks).out
    assert json.loads(swsdist("status", "json-text", "--json", cwd=talks).out)["stages"][0]["done"] == 1
    assert "documents" in swsdist("digest", "json-text", "--tables", cwd=talks).out
    assert says(swsdist("report", "json-text", cwd=talks, code=4).err, cli_codes.REPORT_BEFORE_END)
    checked = swsdist("check", "json-text/config.yaml", cwd=talks).out
    assert "12 files" in checked
    assert "12 documents" in checked
    assert "features" not in checked
    assert "index" in swsdist("index", talks / "json", "--dry-run", cwd=tmp_path).out
    assert not list(tmp_path.iterdir())


def test_commands_on_the_store(swsdist: Command, talks: Path) -> None:
    store = "json-text/store"
    assert swsdist("store", "info", store, "--documents", cwd=talks).out.count("\nd0") == 12
    assert json.loads(swsdist("store", "info", store, "--json", cwd=talks).out)["kind"] == "lattices"
    assert "12 documents" in swsdist("store", "check", store, cwd=talks).out
    assert "0 rejected" in swsdist("store", "rejected", store, cwd=talks).out
    none = f"[{store_codes.NO_FRAMES_IN_STORE.name}]"
    cases = dict.fromkeys((f"store compact {store}", f"store refit {store}", f"store cat {store} d001"), none)
    assert untold(swsdist, {**cases, f"store cat {store} d999": "[unknown-name]"}, talks, code=3) == {}


def test_a_damaged_store(swsdist: Command, copied: Path) -> None:
    check, search = ("store", "check", "json-text/store"), ("search", "json-text", "--text", "river")
    for part in ("shards", "postings"):
        (path,) = (copied / "json-text" / "store" / part).glob("part-*-?.parquet")
        whole = path.read_bytes()
        half = len(whole) // 2
        path.write_bytes(whole[:half] + bytes([whole[half] ^ 1]) + whole[half + 1 :])
        assert "SHA-256" in swsdist(*check, cwd=copied, code=3).out
        path.write_bytes(b"PAR1")
        for command in (check, search):
            swsdist(*command, cwd=copied, code=3)
        path.unlink()
        for command in (check, search):
            swsdist(*command, cwd=copied, code=3)
        path.write_bytes(whole)


def test_clean_keeps_what_is_used(swsdist: Command, copied: Path) -> None:
    search, index = (
        ("search", "json-text", "--text", "river", "--csv"),
        ("index", "json", "--run", "json-text", *SERIAL),
    )
    before = hits(swsdist(*search, cwd=copied))
    (copied / "json" / "d003.json").unlink()
    swsdist(*index, cwd=copied)
    swsdist("clean", "json-text", "--older", "0", cwd=copied)
    store = copied / "json-text" / "store"
    assert len(list((store / "shards").glob("part-*-?.parquet"))) == 1
    assert len(list((store / "postings").iterdir())) == 1
    assert "complete" in swsdist("store", "check", "json-text/store", cwd=copied).out
    after = [row["start"] for row in hits(swsdist(*search, cwd=copied))]
    kept = [row["start"] for row in before if row["doc_id"] != "d003"]
    assert kept == after[: len(kept)]
    assert "nothing to do" in swsdist(*index, cwd=copied).out


def test_a_store_of_another_kind_is_not_replaced(swsdist: Command, talks: Path, place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "run" / "store", tmp_path / "frames")
    before = (tmp_path / "frames" / "manifest.json").read_bytes()
    ask = ("index", talks / "json", "--set", f"index.store={tmp_path / 'frames'}")
    assert says(swsdist(*ask, cwd=tmp_path, code=2).err, families.WRONG_KIND)
    assert (tmp_path / "frames" / "manifest.json").read_bytes() == before


def test_check_of_a_config(swsdist: Command, talks: Path, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(
        "run: run\nchain: lattices\nexecutor: {kind: serial}\nsearch: {method: lattice}\ncalibrate: {steps: []}\n"
        f"corpus: {{documents: {talks}/json, queries: {talks}/queries.csv}}\nreport: {{clips: 0, exports: [csv]}}\n"
    )
    assert "8 written ones" in swsdist("check", "c.yaml", cwd=tmp_path).out
    dtw = swsdist("check", "c.yaml", "--set", "search.method=dtw", cwd=tmp_path, code=2).err
    assert says(dtw, families.UNSUPPORTED)
    (tmp_path / "queries.csv").write_text("query_id,text\na,red\nb,...\n")
    ended = swsdist("check", "c.yaml", "--set", f"corpus.queries={tmp_path / 'queries.csv'}", cwd=tmp_path)
    assert "b: " in ended.out
