"""Files of term discovery: what they say, and what is wrong with them."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

from swsdist.core.codes import discovery as codes
from swsdist.core.codes import families
from swsdist.core.codes import io as io_codes
from swsdist.discovery.evaluate import Files, read_evaluation, score_files
from swsdist.discovery.files import read_classes, read_folds, read_list, read_talkers, read_units, write_classes
from swsdist.discovery.measures import by_talker, equal_parts
from swsdist.io.notices import Notices
from tests.support.coded import raises

PHONES = "d 0 0.1 a\nd 0.1 0.2 b\nd 0.2 0.3 c\nd 0.3 0.4 SIL\nd 0.4 0.5 a\nd 0.5 0.6 b\nd 0.6 0.7 c\ne 0 0.1 a\n"
WORDS = "d 0 0.3 abc\nd 0.4 0.7 abc\n"
CLASSES = "Class 1\nd 0 0.3\nd 0.4 0.7\n\n"


def written(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def files(folder: Path, classes: str = CLASSES, **others: object) -> Files:
    """An evaluation on disk."""
    paths = [written(folder, *item) for item in (("c", classes), ("p", PHONES), ("w", WORDS))]
    return Files(*paths)._replace(**others)


def test_classes_come_back_as_written(tmp_path) -> None:
    documents: dict[str, int] = {}
    text = "Class 7 [a,b]\nd 0.1 0.2999\n\nClass empty\n\nClass x\ne 1 2\nd 10.000001 11\n\n"
    fragments = read_classes(written(tmp_path, "c", text), documents)
    assert fragments.names == ("7", "empty", "x")
    assert fragments.group.tolist() == [0, 2, 2]
    assert fragments.onset.tolist() == [100_000, 1_000_000, 10_000_001]
    write_classes(fragments, tuple(documents), tmp_path / "again")
    again = read_classes(str(tmp_path / "again"), dict(documents))
    for name in ("document", "onset", "offset", "group"):
        assert np.array_equal(getattr(again, name), getattr(fragments, name))
    (tmp_path / "c.gz").write_bytes(gzip.compress((tmp_path / "again").read_bytes()))
    assert len(read_classes(str(tmp_path / "c.gz"), {})) == 3


def test_wrong_classes(tmp_path) -> None:
    for text, code, line in (
        ("Class\n", families.MALFORMED_LINE, 1),
        ("Class 1\nd 0 1\n\nClass 1\n", families.DUPLICATE_NAME, 4),
        ("d 0 1\n", families.MALFORMED_LINE, 1),
        ("Class 1\nd 0 1\n\nd 1 2\n", families.MALFORMED_LINE, 4),
        ("Class 1\nd 0\n", codes.WRONG_ROW, 2),
        ("Class 1\nd 2 1\n", families.INVALID_TIMES, 2),
        ("Class 1\nd 0 1\nd 1 1\n", families.INVALID_TIMES, 3),
        ("Class 1\nd zero 1\n", families.MALFORMED_LINE, 2),
        ("Class 1\nd 1.2.3 4\n", families.MALFORMED_LINE, 2),
        ("Class 1\nd -1 4\n", io_codes.BAD_TIME, 2),
        ("Class 1\nd 1 99999999\n", families.INVALID_TIMES, 2),
    ):
        with raises(code, where=f"c, line {line}"):
            read_classes(written(tmp_path, "c", text), {})
    # Instants are read where a mode has them.
    assert len(read_classes(written(tmp_path, "c", "Class 1\nd 1 1\n"), {}, instants=True)) == 1
    with raises(families.UNWRITABLE_NAME):
        write_classes(read_classes(written(tmp_path, "c", CLASSES), {}), ("a b",), tmp_path / "x")


def test_lists_folds_and_talkers(tmp_path) -> None:
    pairs = read_list(written(tmp_path, "p", "d 0 1 e 2 3 0.7\n\nd 1 2 d 3 4\n"), "pairs", {})
    found = sorted(zip(pairs.group.tolist(), pairs.onset.tolist(), strict=True))
    assert found == [(0, 0), (0, 2_000_000), (1, 1_000_000), (1, 3_000_000)]
    assert len(read_list(written(tmp_path, "q", "d 0 1 c1\nd 1 2 c2\n"), "parse", {}).names) == 2
    folds = read_folds(written(tmp_path, "f", "d 0 1\ne 0 1\n\n\nd 2 3\n"), {})
    assert [len(fold) for fold in folds] == [2, 1]
    assert read_talkers(written(tmp_path, "t", "d x\ne y\n")) == {"d": "x", "e": "y"}
    for code, read, text in (
        (codes.WRONG_ROW, lambda path: read_list(path, "pairs", {}), "d 0 1\n"),
        (families.CONFLICTING_ROWS, lambda path: read_folds(path, {}), "d 0 2\nd 1 3\n"),
        (codes.NO_ROWS, lambda path: read_folds(path, {}), "\n"),
        (families.DUPLICATE_NAME, read_talkers, "d x\nd y\n"),
        (families.CONFLICTING_ROWS, lambda path: read_units(path, {}), "d 0 0.2 a\nd 0.1 0.3 b\n"),
        (codes.NO_ROWS, lambda path: read_units(path, {}), ""),
        (codes.WRONG_ROW, lambda path: read_units(path, {}), "d 0 0.2\n"),
    ):
        with raises(code):
            read(written(tmp_path, "wrong", text))
    with raises(families.WRONG_KIND):
        read_units(written(tmp_path, "p.srt", "1\n00:00:00,000 --> 00:00:01,000\nhello\n"), {})


TEXTGRID = 'File type = "ooTextFile"\nObject class = "TextGrid"\n\n' + (
    '0 0.3 <exists> 1 "IntervalTier" "phones" 0 0.3 3 0 0.1 "a" 0.1 0.2 "b" 0.2 0.3 ""\n'.replace(" ", "\n")
)


def test_units_of_each_format_are_the_same(tmp_path) -> None:
    listed = written(tmp_path, "u.phn", "u 0 0.1 a\nu 0.1 0.2 b\n")
    timed = written(tmp_path, "u.ctm", "u 1 0 0.1 a\nu 1 0.1 0.1 b\n")
    grid = written(tmp_path, "u.TextGrid", TEXTGRID)
    (tmp_path / "folder").mkdir()
    written(tmp_path / "folder", "u.TextGrid", TEXTGRID)
    for path in (listed, timed, grid, str(tmp_path / "folder")):
        documents: dict[str, int] = {}
        units = read_units(path, documents)
        assert documents == {"u": 0}, path
        assert units.names == ("a", "b")
        assert units.onset.tolist() == [0, 100_000]
        assert units.offset.tolist() == [100_000, 200_000]


def test_a_perfect_system_and_one_that_finds_nothing(tmp_path) -> None:
    result = score_files(files(tmp_path), "seed", Notices())["all"]
    assert result["ned"] == {"ned": 0.0, "n_pairs": 1}
    assert all(result[name]["fscore"] == 1 for name in ("matching", "grouping", "type", "token", "boundary"))
    notices = Notices()  # that nothing is found is odd, but no error
    result = score_files(files(tmp_path, ""), "seed", notices)["all"]
    assert (result["ned"]["ned"], result["coverage"]["coverage"]) == (None, 0)
    assert (result["token"]["precision"], result["token"]["recall"]) == (None, 0)
    assert [name for name, _ in notices.entries] == [codes.FOUND_NOTHING.name]


def test_parts_of_a_system(tmp_path) -> None:
    pairs = written(tmp_path, "pairs", "d 0 0.3 d 0.4 0.7\n")
    result = score_files(files(tmp_path, fragments=pairs, words=None), "seed", Notices(), given="pairs")
    assert result["all"]["matching"]["fscore"] == 1
    assert set(result["left_out"]) == {"grouping", "type", "token", "boundary", "boundary_one_wrong"}
    parse = written(tmp_path, "parse", "d 0 0.3\nd 0.4 0.7\n")
    result = score_files(files(tmp_path, fragments=parse), "seed", Notices(), given="parse")
    assert result["all"]["token"]["fscore"] == 1
    assert "ned" in result["left_out"]
    with raises(families.UNSUPPORTED):
        score_files(files(tmp_path, fragments=parse), "tdev2", Notices(), given="parse")


def test_what_a_mode_needs(tmp_path) -> None:
    with raises(families.MISSING_INPUT):
        score_files(files(tmp_path), "tde1", Notices())
    elsewhere = "Class 1\nx 0 1\nd 0 0.3\n"
    with raises(families.UNKNOWN_NAME):
        score_files(files(tmp_path, elsewhere), "tdev2", Notices())
    notices = Notices()
    assert score_files(files(tmp_path, elsewhere), "seed", notices)["all"]["n_empty"] == 1
    assert [name for name, _ in notices.entries] == [codes.FRAGMENTS_ELSEWHERE.name]


def test_each_document_has_a_talker(tmp_path) -> None:
    talkers = written(tmp_path, "t", "d x\n")
    with raises(families.MISSING_INPUT):
        score_files(files(tmp_path, talkers=talkers), "seed", Notices())
    talkers = written(tmp_path, "t", "d x\ne y\n")
    result = score_files(files(tmp_path, talkers=talkers), "seed", Notices())
    assert result["within"]["ned"]["n_pairs"] == 1
    assert result["across"]["ned"]["ned"] is None
    assert result["folds"]["talkers"]["n"] == 2
    assert result["folds"]["talkers"]["summary"]["token"]["fscore"] == {"mean": 1.0, "std": 0.0, "n": 1}


def test_parts_of_equal_time_are_cut_at_ends_of_documents(tmp_path) -> None:
    corpus = read_evaluation(files(tmp_path), "seed", Notices()).corpus
    assert [fold.document.tolist() for fold in equal_parts(corpus, 2)] == [[0], [1]]
    assert by_talker(corpus) == ()
    with raises(families.TOO_LARGE):
        equal_parts(corpus, 3)
