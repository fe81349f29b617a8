"""Kaldi's results, data folders and lattice decoder: by hand, against what its own programs make, and hostile."""

import gzip
import math
from pathlib import Path

import kaldifst
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kaldi_decoder import DecodableCtc, LatticeSimpleDecoder, LatticeSimpleDecoderConfig

from swsdist.core.codes import families
from swsdist.core.codes import io as io_codes
from swsdist.core.codes import score as score_codes
from swsdist.core.types import CORPUS, PLACED
from swsdist.corpora.documents import read_documents
from swsdist.corpora.kaldi import Utterances, read_utterances
from swsdist.corpora.places import Places, searched_stretches
from swsdist.corpora.queries import read_queries
from swsdist.corpora.references import read_references
from swsdist.evaluation.kaldi_results import RESULTS, as_kwslist, looks_like_results, read_results, write_results
from swsdist.evaluation.scoring_task import reader_of
from swsdist.io.notices import Notices
from swsdist.kernels.phone_loop import best_string
from tests.support.coded import raises


def data_folder(folder: Path, **files: str) -> Utterances:
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return read_utterances(**{name: str(folder / name) for name in files})


def results(path: Path, text: str, utterances: Utterances | None = None) -> list[tuple]:
    path.write_text(text, encoding="utf-8")
    return [tuple(row.values()) for row in read_results(str(path), utterances).to_pylist()]


def test_frames_and_costs_and_results_are_told_by_their_first_line(tmp_path: Path) -> None:
    path = tmp_path / "results"
    rows = results(path, "KW-1 utt1 0 6 0.693147180559945\n\nKW-2\tutt2 123 123 -0.5 \n")
    assert rows == [
        ("KW-1", "utt1", 1, 0.0, 0.06, 0.06, pytest.approx(0.5), None),
        ("KW-2", "utt2", 1, 1.23, 1.23, 0.0, 1.0, None),
    ]
    # Utterances are placed by the data folder, whose recordings may be a wav.scp.
    segments = "talk-0001 rec 0.0 9.5\ntalk-0002 rec 12.345 20\n"
    known = data_folder(tmp_path, utter_id="talk-0001 1\ntalk-0002 2\n", segments=segments, recordings="rec talk B\n")
    assert results(path, "KW 2 100 150 0\n", known) == [("KW", "talk", 2, 13.345, 13.845, 0.5, 1.0, None)]
    known = data_folder(tmp_path, recordings="utt1 /data/sph/talk.v2.sph\nutt2 other\n")
    rows = results(path, "KW utt1 1 2 0\nKW utt2 1 2 0\n", known)
    assert [row[1] for row in rows] == ["talk.v2", "other"]
    for text, told in (
        ("\n \nKW-1\tutt1 0 6  0.69\n", True),
        ("KW utt 0 6 -.5\r\n", True),
        ("", False),
        ("KW utt 0 6\n", False),
        ("KW utt 0.5 6 1\n", False),
        ("query_id,doc_id,start,end,score\nKW utt 0 6 1\n", False),
        ("<stdlist>\n", False),
    ):
        (tmp_path / "plain").write_text(text, encoding="utf-8", newline="")
        (tmp_path / "packed").write_bytes(gzip.compress(text.encode()))
        assert looks_like_results(text.encode()) is told
        for name in ("plain", "packed"):
            assert (reader_of(str(tmp_path / name)) == "kaldi") is told


def test_what_is_wrong_is_named(tmp_path: Path) -> None:
    line, twice, unknown = families.MALFORMED_LINE, families.DUPLICATE_NAME, families.UNKNOWN_NAME
    path = tmp_path / "results"
    known = data_folder(tmp_path, segments="utt1 rec 0 9\nutt2 gone 0 9\n", recordings="rec talk\n")
    for code, texts in (
        (line, ["utt1 0 6", "utt1 0 6 1 2", "utt1 0.5 6 1", "utt1 0 -6 1", "utt1 0 6 nan", "utt1 0 6 inf"]),
        (families.INVALID_TIMES, ["utt1 7 6 1"]),
        (unknown, ["utt9 0 6 1", "utt2 0 6 1"]),
    ):
        for text in texts:
            with raises(code, where=f"{path}, line 2"):
                results(path, f"KW utt1 0 6 1\nKW {text}\n", known)
    for name, text, code in (
        ("segments", "utt rec 5 5\n", families.INVALID_TIMES),
        ("segments", "utt rec -1 5\n", line),
        ("segments", "utt rec 0 5\nutt rec 5 6\n", twice),
        ("recordings", "rec sph2pipe -f wav a.sph |\n", families.UNSUPPORTED),
        ("recordings", "rec talk X9\n", line),
        ("utter_id", "a 1\nb 1\n", twice),
    ):
        with raises(code, where=str(tmp_path / name)):
            data_folder(tmp_path, **{name: text})
    with raises(unknown, utterance="3"):
        results(path, "KW 3 0 6 1\n", data_folder(tmp_path, utter_id="a 1\n"))
    with raises(families.INVALID_VALUE):
        read_results(str(path), frame_shift=0.0)
    with raises(io_codes.NO_SUCH_FILE, what="file"):
        read_results(str(tmp_path / "gone"))
    path.write_bytes(gzip.compress(b"KW utt 0 6 1\n" * 50)[:-9])
    with raises(io_codes.DAMAGED_ARCHIVE):
        read_results(str(path))


def table(**values: object) -> pa.Table:
    row = {"query_id": "KW", "doc_id": "d", "channel": 1, "start": 1.0, "end": 2.0, "duration": 1.0, "score": 0.5}
    return pa.Table.from_pylist([{**row, **values}], RESULTS)


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    for values, code in (
        ({"score": 1.5}, families.INVALID_VALUE),
        ({"score": math.nan}, families.INVALID_VALUE),
        ({"start": 3.0}, families.INVALID_TIMES),
        ({"query_id": "a b"}, families.UNWRITABLE_NAME),
        ({"channel": 2}, families.UNKNOWN_NAME),
    ):
        with raises(code):
            write_results(table(**values), tmp_path / "results")
    known = data_folder(tmp_path, segments="a rec 0 5\nb rec 4 9\nc rec 20 21\n")
    write_results(table(doc_id="rec", start=4.5, end=4.75), tmp_path / "results", known)
    assert (tmp_path / "results").read_text().split()[:4] == ["KW", "b", "50", "75"]  # the utterance that holds it
    with raises(families.UNKNOWN_NAME, start=8.5, end=9.5):
        write_results(table(doc_id="rec", start=8.5, end=9.5), tmp_path / "results", known)


LINE = st.tuples(
    st.sampled_from(["KW-1", "KW-2", "über"]),
    st.sampled_from(["1", "2", "3"]),
    st.integers(0, 90_000),
    st.integers(0, 900),
    st.one_of(st.floats(0, 40), st.sampled_from([0.0, 1e-17, 700.0, 746.0, 1e5])),
)


@settings(deadline=None)
@given(st.lists(LINE, max_size=6))
def test_read_written_and_read_is_the_same(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple]) -> None:
    folder = tmp_path_factory.getbasetemp()
    known = Utterances(
        segments={"a": ("r1", 0.0, 1e4), "b": ("r1", 10_000.125, 2e4), "c": ("r2", 7.3, 1e4)},
        recordings={"r1": ("talk", 1), "r2": ("talk", 2)},
        numbers={"1": "a", "2": "b", "3": "c"},
    )
    text = "".join(f"{q} {u} {first} {first + length} {cost!r}\n" for q, u, first, length, cost in rows)
    (folder / "one").write_text(text, encoding="utf-8")
    once = read_results(str(folder / "one"), known)
    write_results(once, folder / "two", known)
    assert read_results(str(folder / "two"), known) == once
    assert [line.split()[:4] for line in (folder / "two").read_text("utf-8").splitlines()] == [
        line.split()[:4] for line in text.splitlines()
    ]


@settings(deadline=None)
@given(st.floats(0, 1))
def test_any_posterior_comes_back(tmp_path_factory: pytest.TempPathFactory, score: float) -> None:
    path = tmp_path_factory.getbasetemp() / "posterior"
    write_results(table(score=score), path)
    assert read_results(str(path))["score"][0].as_py() == pytest.approx(score, rel=1e-13)


def test_thresholds_by_hand() -> None:
    two = pa.concat_tables([table(score=0.5, start=1.0), table(score=0.25, start=1.4)])
    # N = 0.75, thr = 0.75 / (100 / 10 + 0.9 * 0.75)
    limit = 0.75 / (10 + 0.675)
    found = as_kwslist(two, seconds=100, beta=10, normalize=True).to_pylist()
    for row, score in zip(found, (0.5, 0.25), strict=True):
        assert row["decision"]
        assert row["score"] == pytest.approx((1 - limit) * score / ((1 - limit) * score + limit * (1 - score)))
    kept = as_kwslist(two, seconds=100, beta=10, remove_duplicates=True)
    assert kept["start"].to_pylist() == [1.0]
    apart = pa.concat_tables([table(score=0.5, start=1.0), table(score=0.25, start=1.5)])
    assert as_kwslist(apart, seconds=100, beta=10, remove_duplicates=True).num_rows == 2
    assert not as_kwslist(two, seconds=1, beta=10)["decision"][1].as_py()
    with raises(score_codes.VALUE_NOT_POSITIVE, value=0):
        as_kwslist(table(), seconds=0)


def folder(path: Path, **files: str) -> str:
    path.mkdir(exist_ok=True)
    for name, text in files.items():
        (path / name.replace("_scp", ".scp")).write_text(text)
    return str(path)


@pytest.fixture
def placed(tmp_path: Path) -> str:
    return folder(
        tmp_path / "data",
        wav_scp="r1 audio/one.wav\nr2 /a/b c.flac\n",
        segments="r1-a r1 0.5 2.25\nr1-b r1 2 4\nr2-a r2 0 1\n",
        utt2spk="r1-a anna\nr1-b bert\n",
    )


def test_recordings_are_documents_and_segments_are_places_in_them(tmp_path: Path, placed: str) -> None:
    given = folder(tmp_path / "d", wav_scp="r1\taudio/one.wav\nr2 ../x.ark:17\n", reco2dur="r1 2.5\n")
    for source in (given, f"{given}/wav.scp"):
        table = read_documents(source)
        assert table.schema == CORPUS
        rows = table.to_pylist()
        assert [row["path"] for row in rows] == [f"{given}/audio/one.wav", f"{tmp_path}/x.ark:17"]
        assert [row["doc_id"] for row in rows] == ["r1", "r2"]
    # The list by itself is a list of recordings, and no folder.
    assert [row["duration"] for row in read_documents(given).to_pylist()] == [2.5, None]
    assert read_documents(f"{given}/wav.scp")["duration"].to_pylist() == [None, None]
    elsewhere = read_documents(given, audio_folder=str(tmp_path / "other"))
    assert elsewhere["path"].to_pylist() == [f"{tmp_path}/other/audio/one.wav", f"{tmp_path}/x.ark:17"]
    table = read_documents(placed)
    assert table.schema == PLACED
    first = table.to_pylist()[0]
    assert (first["doc_id"], first["recording"], first["start"], first["end"]) == ("r1-a", "r1", 0.5, 2.25)
    assert (first["speaker"], first["duration"], first["channel"]) == ("anna", 1.75, 1)
    assert first["listed"] == f"{placed}/segments, line 1"
    assert table["path"].to_pylist() == [f"{placed}/audio/one.wav"] * 2 + ["/a/b c.flac"]
    assert searched_stretches(table) == {("r1", 1): [(0.5, 4.0)], ("r2", 1): [(0.0, 1.0)]}
    held = Places(table).containing("r1", 1, 2.0, 2.2)
    assert [place.doc_id for place in held] == ["r1-a", "r1-b"]


def test_lines_that_are_wrong(tmp_path: Path) -> None:
    one = {"wav_scp": "r1 a.wav\n"}
    for k, (files, line, code) in enumerate(
        [
            (one | {"segments": "u1 r1 0 1\nu2 r9 0 1\n"}, 2, families.UNKNOWN_NAME),
            (one | {"segments": "u1 r1 1 1\n"}, 1, families.INVALID_TIMES),
            (one | {"segments": "u1 r1 0 -1\n"}, 1, families.MALFORMED_LINE),
            (one | {"segments": "u1 r1 0 1\nu1 r1 2 3\n"}, 2, families.DUPLICATE_NAME),
            ({"wav_scp": "r1 a.wav\nr1 b.wav\n"}, 2, families.DUPLICATE_NAME),
            ({"wav_scp": "r1 -\n"}, 1, families.UNSUPPORTED),
            ({"wav_scp": "r1 a.ark:12[0:3]\n"}, 1, families.UNSUPPORTED),
            (one | {"reco2dur": "r1 long\n"}, 1, families.MALFORMED_LINE),
            ({"wav_scp": "\n"}, None, families.EMPTY_INPUT),
            (one | {"segments": ""}, None, families.EMPTY_INPUT),
        ]
    ):
        with raises(code, where=f"line {line}" if line else None):
            read_documents(folder(tmp_path / str(k), **files))
    notices = Notices()
    data = folder(tmp_path / "d", **one, utt2spk="r1 a\nr2 b\nr3 b\n", reco2dur="r1 1\nr7 1\n")
    read_documents(data, notices=notices)  # lines about others are told
    assert sorted(notice.count for notice in notices.entries.values()) == [1, 2]


def test_references_and_queries_are_in_the_recordings_time(tmp_path: Path, placed: str) -> None:
    documents, queries, refs = read_documents(placed), tmp_path / "queries.csv", tmp_path / "refs.csv"
    queries.write_text("query_id,doc_id,start,end\nq1,r1,2.5,3\nq2,r1-a,1,2\nq3,r1-b,,\n")
    table = read_queries(str(queries), documents)
    assert [(row["path"], row["start"], row["end"], row["speaker"]) for row in table.to_pylist()] == [
        (f"{placed}/audio/one.wav", 2.5, 3.0, None),
        (f"{placed}/audio/one.wav", 1.0, 2.0, "anna"),
        (f"{placed}/audio/one.wav", 2.0, 4.0, "bert"),
    ]

    def read(row: str) -> list[str]:
        refs.write_text(f"query_id,doc_id,start,end\nq1,r1,2.5,3\n{row}\n")
        return read_references(str(refs), documents, table)["doc_id"].to_pylist()

    assert read("q1,r1-b,3,3.5") == ["r1", "r1"]
    with raises(families.INVALID_TIMES, where="line 3", span="0.5 to 1", document="r1-b", place="2 to 4 s of 'r1'"):
        read("q1,r1-b,0.5,1")
    with raises(families.UNKNOWN_NAME, where="line 3", what="document"):
        read("q1,r8,3,3.5")


def loop(phones: int, states: int, entry: float, pairs: np.ndarray | None) -> kaldifst.StdVectorFst:
    """A loop: input labels are columns + 1, output labels phones + 1; with pairs, a state for each last phone."""
    fst = kaldifst.StdVectorFst()
    ends = [fst.add_state() for _ in range(1 if pairs is None else phones + 1)]
    fst.start = ends[-1]
    for end in ends:
        fst.set_final(end, 0.0)
    for last, begin in enumerate(ends):
        for phone in range(phones):
            here, cost = begin, entry + (0.0 if pairs is None else float(pairs[last, phone]))
            for state in range(states):
                there, column = fst.add_state(), phone * states + state + 1
                fst.add_arc(
                    here, kaldifst.StdArc(column, phone + 1 if state == 0 else 0, cost if state == 0 else 0.0, there)
                )
                fst.add_arc(there, kaldifst.StdArc(column, 0, 0.0, there))
                here = there
            fst.add_arc(here, kaldifst.StdArc(0, 0, 0.0, ends[0] if pairs is None else ends[phone]))
    return fst


@pytest.mark.parametrize(("states", "with_pairs"), [(1, False), (1, True), (3, False), (3, True)])
def test_equal_strings(states: int, with_pairs: bool) -> None:
    entry, config = 1.5, LatticeSimpleDecoderConfig(beam=1000.0, lattice_beam=10.0, determinize_lattice=False)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        scores = rng.normal(-2.0, 2.0, (60, 5, states)).astype(np.float32)
        pairs = rng.uniform(0.0, 3.0, (6, 5)).astype(np.float32).astype(np.float64) if with_pairs else None
        # The decoder holds no reference to either.
        fst, frames = loop(5, states, entry, pairs), DecodableCtc(scores.reshape(len(scores), -1))
        decoder = LatticeSimpleDecoder(fst, config)
        assert decoder.decode(frames)
        _, best = decoder.get_best_path()
        _, _, output, weight = kaldifst.get_linear_symbol_sequence(best)
        ours = best_string([-scores.astype(np.float64)], (5, states), entry, pairs)
        assert [item.phone + 1 for item in ours] == output
        assert sum(item.cost for item in ours) == pytest.approx(weight.value1 + weight.value2, rel=1e-5)
