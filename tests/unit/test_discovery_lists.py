"""Term discovery: files of classes, the word list and its page, read back with the readers of others."""

import csv
import gzip
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdist.chains.discover.chain import writers
from swsdist.core.codes import discovery as codes
from swsdist.core.codes import families
from swsdist.core.codes import io as io_codes
from swsdist.core.types import QUERIES
from swsdist.discovery.evaluate import Files, read_evaluation, score_files
from swsdist.discovery.files import read_classes, read_folds, read_list, read_talkers, read_units, write_classes
from swsdist.discovery.measures import by_talker, equal_parts
from swsdist.discovery.scene import Stretch, word_list
from swsdist.io.notices import Notices
from swsdist.io.tables import read_table
from swsdist.report.answers import MOST_MEMBERS, ClassCounts, render_classes
from tests.support.coded import raises

TIMES = st.integers(0, 3_000_000)


@st.composite
def stretches(draw: st.DrawFn) -> Stretch:
    start, length = draw(TIMES) / 1e6, draw(st.integers(1000, 900_000)) / 1e6
    group, channel, sure = draw(st.integers(0, 4)), draw(st.integers(1, 2)), draw(st.integers(1, 40)) / 8
    name, speaker = draw(st.sampled_from("abc")), draw(st.sampled_from(["", "x", "y"]))
    return Stretch(group, name, channel, start, round(start + length, 6), sure, speaker)


SOME = st.lists(stretches(), max_size=12)
CLASSES = [
    Stretch(0, "talks/a", 1, 0.5, 1.0, 2.0, "ann"),
    Stretch(0, "talks/a", 1, 0.75, 1.25, 1.5, "ann"),
    Stretch(0, "b", 2, 0.0, 0.4, 1.75, "bob"),
    Stretch(3, "b", 1, 1.0, 1.5, 1.0, "bob"),
    Stretch(3, "b", 1, 2.0, 2.5, 1.0, "bob"),
    Stretch(3, "b", 1, 3.0, 3.5, 1.0, "bob"),
]
PARSE = [Stretch(0, "talks/a", 1, 0.5, 1.0, 2.0, "ann"), Stretch(None, "talks/a", 1, 1.25, 2.0, None, "ann")]


def written(folder: Path, classes: list[Stretch], parse: list[Stretch], *kinds: str) -> None:
    known = {("talks/a", 1): ("/audio/a.wav", 9.0)}
    for write in writers(kinds, classes, parse, lambda names: known).values():
        write(folder)


@given(SOME)
def test_a_word_list_has_each_member_once_in_order(some: list[Stretch]) -> None:
    words = word_list([*some, Stretch(None, "a", 1, 0.0, 1.0, None)])
    assert Counter(member for word in words for member in word.members) == Counter(some)
    keys = [(-word.speakers, -word.sure, word.group) for word in words]
    assert keys == sorted(keys)
    for word in words:
        assert {member.group for member in word.members} == {word.group}
        sure = [member.sure for member in word.members]
        assert sure == sorted(sure, reverse=True)
        turns = list(word.in_turns())
        assert Counter(turns) == Counter(word.members)
        speakers = len({member.speaker for member in turns})
        assert len({member.speaker for member in turns[:speakers]}) == speakers


@given(SOME)
def test_files_read_back(tmp_path_factory: pytest.TempPathFactory, some: list[Stretch]) -> None:
    folder = tmp_path_factory.mktemp("exports")
    written(folder, some, [], "csv")
    documents: dict[str, int] = {}
    found = read_classes(str(folder / "classes.txt"), documents)
    names = list(documents)
    columns = [column.tolist() for column in (found.group, found.document, found.onset, found.offset)]
    assert Counter((found.names[g], names[d], *times) for g, d, *times in zip(*columns, strict=True)) == Counter(
        (str(one.group), one.doc_id + "#2" * (one.channel - 1), round(one.start * 1e6), round(one.end * 1e6))
        for one in some
    )
    places = Counter((str(one.group), *one[1:5]) for one in some)
    queries = read_table(str(folder / "queries.csv"), QUERIES).to_pylist()
    names = ("query_id", "doc_id", "channel", "start", "end")
    assert Counter(tuple(row[name] for name in names) for row in queries) == places
    assert len({(row["query_id"], row["example"]) for row in queries}) == len(queries)
    with (folder / "classes.csv").open() as file:
        rows = list(csv.DictReader(file))
    kinds, columns = (str, str, int, float, float), ("class", *names[1:])
    values = [tuple(kind(row[name]) for kind, name in zip(kinds, columns, strict=True)) for row in rows]
    assert Counter(values) == places


def test_the_first_example_is_the_surest_and_names_fit_a_class_file(tmp_path: Path) -> None:
    written(tmp_path, CLASSES, PARSE)
    queries = read_table(str(tmp_path / "queries.csv"), QUERIES).to_pylist()
    found = [(row["query_id"], row["example"], row["start"]) for row in queries][:3]
    assert found == [("0", 1, 0.5), ("0", 2, 0.0), ("0", 3, 0.75)]
    names = ["two words", "two_words", "two\twords", "two_words_"]
    written(tmp_path, [Stretch(0, name, 1, 0.0, 1.0, 1.0) for name in names], [])
    documents: dict[str, int] = {}
    assert read_classes(str(tmp_path / "classes.txt"), documents).document.size == len(documents) == len(names)
    with (tmp_path / "classes-names.csv").open() as file:
        renamed = {row["name"]: row["document"] for row in csv.DictReader(file)}
    assert {renamed.get(name, name) for name in documents} == set(names)


def test_names_of_others_stay_text_on_a_page_of_bounded_size() -> None:
    evil = '<script>alert("x")</script>&amp;'
    page = render_classes(word_list([Stretch(0, evil, 1, 0.0, 1.0, 1.0, evil)]), COUNTS, 0, 1.3)
    assert (page.count("<script"), page.count("&lt;script&gt;")) == (1, 2)
    page = render_classes(word_list(CLASSES), COUNTS, 10, 1.3)
    assert page.index("candidate 0") < page.index("candidate 3")  # of two speakers
    assert all(f'id="{name}"' in page and f'href="#{name}"' in page for name in ("c0", "c3", "sure"))
    many = [Stretch(0, "a", 1, float(k), k + 0.5, 1.0, path="none.wav") for k in range(MOST_MEMBERS + 5)]
    page = render_classes(word_list(many), COUNTS, 0, 1.3)
    assert page.count('<li class="hit">') == MOST_MEMBERS
    assert "5 more" in page
    assert f"{MOST_MEMBERS} occurrences have no sound here" in page


COUNTS = ClassCounts(2, 6, 2, 3, 2, 1, 1.25, 0.5)


PHONES = "d 0 0.1 a\nd 0.1 0.2 b\nd 0.2 0.3 c\nd 0.3 0.4 SIL\nd 0.4 0.5 a\nd 0.5 0.6 b\nd 0.6 0.7 c\ne 0 0.1 a\n"
WORDS = "d 0 0.3 abc\nd 0.4 0.7 abc\n"
ONE_CLASS = "Class 1\nd 0 0.3\nd 0.4 0.7\n\n"


def put(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def files(folder: Path, classes: str = ONE_CLASS, **others: object) -> Files:
    """An evaluation on disk."""
    paths = [put(folder, *item) for item in (("c", classes), ("p", PHONES), ("w", WORDS))]
    return Files(*paths)._replace(**others)


def test_classes_come_back_as_written_and_wrong_ones_are_refused(tmp_path) -> None:
    documents: dict[str, int] = {}
    text = "Class 7 [a,b]\nd 0.1 0.2999\n\nClass empty\n\nClass x\ne 1 2\nd 10.000001 11\n\n"
    fragments = read_classes(put(tmp_path, "c", text), documents)
    assert fragments.names == ("7", "empty", "x")
    assert fragments.group.tolist() == [0, 2, 2]
    assert fragments.onset.tolist() == [100_000, 1_000_000, 10_000_001]
    write_classes(fragments, tuple(documents), tmp_path / "again")
    again = read_classes(str(tmp_path / "again"), dict(documents))
    for name in ("document", "onset", "offset", "group"):
        assert np.array_equal(getattr(again, name), getattr(fragments, name))
    (tmp_path / "c.gz").write_bytes(gzip.compress((tmp_path / "again").read_bytes()))
    assert len(read_classes(str(tmp_path / "c.gz"), {})) == 3
    for text, code, line in (
        ("Class\n", families.MALFORMED_LINE, 1),
        ("Class 1\nd 0 1\n\nClass 1\n", families.DUPLICATE_NAME, 4),
        ("d 0 1\n", families.MALFORMED_LINE, 1),
        ("Class 1\nd 0 1\n\nd 1 2\n", families.MALFORMED_LINE, 4),
        ("Class 1\nd 0\n", codes.WRONG_ROW, 2),
        ("Class 1\nd 0 1\nd 1 1\n", families.INVALID_TIMES, 3),
        ("Class 1\nd -1 4\n", io_codes.BAD_TIME, 2),
        ("Class 1\nd 1 99999999\n", families.INVALID_TIMES, 2),
    ):
        with raises(code, where=f"c, line {line}"):
            read_classes(put(tmp_path, "c", text), {})
    # Instants are read where a mode has them.
    assert len(read_classes(put(tmp_path, "c", "Class 1\nd 1 1\n"), {}, instants=True)) == 1
    with raises(families.UNWRITABLE_NAME):
        write_classes(read_classes(put(tmp_path, "c", ONE_CLASS), {}), ("a b",), tmp_path / "x")


def test_lists_folds_talkers_and_units(tmp_path) -> None:
    pairs = read_list(put(tmp_path, "p", "d 0 1 e 2 3 0.7\n\nd 1 2 d 3 4\n"), "pairs", {})
    found = sorted(zip(pairs.group.tolist(), pairs.onset.tolist(), strict=True))
    assert found == [(0, 0), (0, 2_000_000), (1, 1_000_000), (1, 3_000_000)]
    assert len(read_list(put(tmp_path, "q", "d 0 1 c1\nd 1 2 c2\n"), "parse", {}).names) == 2
    folds = read_folds(put(tmp_path, "f", "d 0 1\ne 0 1\n\n\nd 2 3\n"), {})
    assert [len(fold) for fold in folds] == [2, 1]
    assert read_talkers(put(tmp_path, "t", "d x\ne y\n")) == {"d": "x", "e": "y"}
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
            read(put(tmp_path, "wrong", text))
    with raises(families.WRONG_KIND):
        read_units(put(tmp_path, "p.srt", "1\n00:00:00,000 --> 00:00:01,000\nhello\n"), {})
    listed = put(tmp_path, "u.phn", "u 0 0.1 a\nu 0.1 0.2 b\n")
    timed = put(tmp_path, "u.ctm", "u 1 0 0.1 a\nu 1 0.1 0.1 b\n")
    grid = put(tmp_path, "u.TextGrid", TEXTGRID)
    (tmp_path / "folder").mkdir()
    put(tmp_path / "folder", "u.TextGrid", TEXTGRID)
    for path in (listed, timed, grid, str(tmp_path / "folder")):
        documents: dict[str, int] = {}
        units = read_units(path, documents)
        assert documents == {"u": 0}, path
        assert units.names == ("a", "b")
        assert units.onset.tolist() == [0, 100_000]
        assert units.offset.tolist() == [100_000, 200_000]
    result = score_files(files(tmp_path), "seed", Notices())["all"]
    assert result["ned"] == {"ned": 0.0, "n_pairs": 1}
    assert all(result[name]["fscore"] == 1 for name in ("matching", "grouping", "type", "token", "boundary"))
    notices = Notices()  # that nothing is found is odd, but no error
    result = score_files(files(tmp_path, ""), "seed", notices)["all"]
    assert (result["ned"]["ned"], result["coverage"]["coverage"]) == (None, 0)
    assert (result["token"]["precision"], result["token"]["recall"]) == (None, 0)
    assert [name for name, _ in notices.entries] == [codes.FOUND_NOTHING.name]


TEXTGRID = 'File type = "ooTextFile"\nObject class = "TextGrid"\n\n' + (
    '0 0.3 <exists> 1 "IntervalTier" "phones" 0 0.3 3 0 0.1 "a" 0.1 0.2 "b" 0.2 0.3 ""\n'.replace(" ", "\n")
)


def test_parts_of_a_system_and_of_a_corpus(tmp_path) -> None:
    pairs = put(tmp_path, "pairs", "d 0 0.3 d 0.4 0.7\n")
    result = score_files(files(tmp_path, fragments=pairs, words=None), "seed", Notices(), given="pairs")
    assert result["all"]["matching"]["fscore"] == 1
    assert set(result["left_out"]) == {"grouping", "type", "token", "boundary", "boundary_one_wrong"}
    parse = put(tmp_path, "parse", "d 0 0.3\nd 0.4 0.7\n")
    result = score_files(files(tmp_path, fragments=parse), "seed", Notices(), given="parse")
    assert result["all"]["token"]["fscore"] == 1
    assert "ned" in result["left_out"]
    with raises(families.UNSUPPORTED):
        score_files(files(tmp_path, fragments=parse), "tdev2", Notices(), given="parse")
    with raises(families.MISSING_INPUT):
        score_files(files(tmp_path), "tde1", Notices())
    elsewhere = "Class 1\nx 0 1\nd 0 0.3\n"
    with raises(families.UNKNOWN_NAME):
        score_files(files(tmp_path, elsewhere), "tdev2", Notices())
    notices = Notices()
    assert score_files(files(tmp_path, elsewhere), "seed", notices)["all"]["n_empty"] == 1
    assert [name for name, _ in notices.entries] == [codes.FRAGMENTS_ELSEWHERE.name]
    talkers = put(tmp_path, "t", "d x\n")
    with raises(families.MISSING_INPUT):
        score_files(files(tmp_path, talkers=talkers), "seed", Notices())
    talkers = put(tmp_path, "t", "d x\ne y\n")
    result = score_files(files(tmp_path, talkers=talkers), "seed", Notices())
    assert result["within"]["ned"]["n_pairs"] == 1
    assert result["across"]["ned"]["ned"] is None
    assert result["folds"]["talkers"]["n"] == 2
    assert result["folds"]["talkers"]["summary"]["token"]["fscore"] == {"mean": 1.0, "std": 0.0, "n": 1}
    corpus = read_evaluation(files(tmp_path), "seed", Notices()).corpus
    assert [fold.document.tolist() for fold in equal_parts(corpus, 2)] == [[0], [1]]
    assert by_talker(corpus) == ()
    with raises(families.TOO_LARGE):
        equal_parts(corpus, 3)
