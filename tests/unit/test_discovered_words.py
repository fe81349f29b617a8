"""The word list, the page of classes, and the files of classes, read back with the readers of others."""

from __future__ import annotations

import csv
import html
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from praatio import textgrid as praatio

from swsdist.chains.discover.chain import writers
from swsdist.core.types import QUERIES
from swsdist.discovery.files import read_classes
from swsdist.discovery.scene import Stretch, word_list
from swsdist.io.tables import read_table
from swsdist.report.answers import MOST_MEMBERS, ClassCounts, Sounds, render_classes

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


def test_the_first_example_is_the_surest(tmp_path: Path) -> None:
    written(tmp_path, CLASSES, PARSE)
    queries = read_table(str(tmp_path / "queries.csv"), QUERIES).to_pylist()
    found = [(row["query_id"], row["example"], row["start"]) for row in queries][:3]
    assert found == [("0", 1, 0.5), ("0", 2, 0.0), ("0", 3, 0.75)]


def test_tiers_have_classes_and_parse(tmp_path: Path) -> None:
    written(tmp_path, CLASSES, PARSE, "eaf", "textgrid")
    grid = praatio.openTextgrid(str(tmp_path / "textgrid/talks/a.TextGrid"), includeEmptyIntervals=False)
    tiers = {name: [tuple(item) for item in grid.getTier(name).entries] for name in grid.tierNames}
    expected = {
        "classes": [(0.5, 1.0, "0")],
        "classes (2)": [(0.75, 1.25, "0")],
        "parse": [(0.5, 1.0, "0"), (1.25, 2.0, "-")],
    }
    assert tiers == expected
    root = ElementTree.parse(tmp_path / "eaf/talks/a.eaf").getroot()
    found = {
        tier.attrib["TIER_ID"]: [value.text for value in tier.iter("ANNOTATION_VALUE")] for tier in root.iter("TIER")
    }
    assert found == {name: [text for *_, text in rows] for name, rows in expected.items()}
    assert {path.name for path in (tmp_path / "eaf").iterdir()} == {"talks", "b.eaf", "b.2.eaf"}


def test_names_that_a_class_file_cannot_hold(tmp_path: Path) -> None:
    names = ["two words", "two_words", "two\twords", "two_words_"]
    written(tmp_path, [Stretch(0, name, 1, 0.0, 1.0, 1.0) for name in names], [])
    documents: dict[str, int] = {}
    assert read_classes(str(tmp_path / "classes.txt"), documents).document.size == len(documents) == len(names)
    with (tmp_path / "classes-names.csv").open() as file:
        renamed = {row["name"]: row["document"] for row in csv.DictReader(file)}
    assert {renamed.get(name, name) for name in documents} == set(names)


def test_names_of_others_stay_text() -> None:
    evil = '<script>alert("x")</script>&amp;'
    page = render_classes(word_list([Stretch(0, evil, 1, 0.0, 1.0, 1.0, evil)]), COUNTS, 0, 1.3)
    assert (page.count("<script"), page.count(html.escape(evil))) == (1, 2)
    page = render_classes(word_list(CLASSES), COUNTS, 10, 1.3)
    assert page.index("candidate 0") < page.index("candidate 3")  # of two speakers
    assert all(f'id="{name}"' in page and f'href="#{name}"' in page for name in ("c0", "c3", "sure"))


COUNTS = ClassCounts(2, 6, 2, 3, 2, 1, 1.25, 0.5)


def test_a_page_does_not_grow_without_bound() -> None:
    many = [Stretch(0, "a", 1, float(k), k + 0.5, 1.0, path="none.wav") for k in range(MOST_MEMBERS + 5)]
    page = render_classes(word_list(many), COUNTS, 0, 1.3)
    assert page.count('<li class="hit">') == MOST_MEMBERS
    assert "5 more" in page
    assert f"{MOST_MEMBERS} occurrences have no sound here" in page


def test_two_members_of_each_class_have_players_before_a_third(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, float]] = []

    def of(self: Sounds, path: str, start: float, end: float, **options: object) -> str:
        asked.append((path, start))
        return "left out"

    monkeypatch.setattr(Sounds, "of", of)
    words = word_list(
        Stretch(group, "a", 1, float(k), k + 0.5, 9.0 - k, path=f"{group}.wav") for group in (0, 1) for k in range(3)
    )
    page = render_classes(words, COUNTS, 9, 1.3)
    assert asked == [("0.wav", 0.0), ("0.wav", 1.0), ("1.wav", 0.0), ("1.wav", 1.0), ("0.wav", 2.0), ("1.wav", 2.0)]
    assert page.index("candidate 0") < page.index("candidate 1")
