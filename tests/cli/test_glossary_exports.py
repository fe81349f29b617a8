"""A glossary taken along and brought back: each format opened with another reader than wrote it."""

import csv
import json
import re
import shutil
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import soundfile
from commands import Command, untold
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from praatio import textgrid as praatio

from swsdist.core.codes import families
from swsdist.core.errors import DataError
from swsdist.glossary import database
from swsdist.glossary.exports import AUDIO, Languages, write_export
from swsdist.glossary.importing import Incoming, import_file, take_in
from swsdist.glossary.project import Project
from swsdist.glossary.words import Place
from swsdist.io.filesystem import Folder
from swsdist.store.reading import Store
from tests.support.coded import raises


@pytest.fixture(scope="module")
def store(place: Path) -> Store:
    return Store(Folder(str(place / "run" / "store"), {}))


def fill(folder: Path, place: Path) -> Project:
    """Two words with places in d001 and d002, and a recorded example."""
    project = Project.open(folder, store=str(place / "run" / "store"))
    word = project.add_entry(person="Ann", form='ŋ<"ä">', gloss='it, "he"', variants=["x", "y"], note="a\nb").entry_id
    other = project.add_entry(person="Ann", form="kombo").entry_id
    project.judge(word, Place("d001", 1, 0.5, 1.25), "yes", person="Ann", score=2.5, speaker="voice1", note="c\nd")
    project.judge(word, Place("d001", 1, 1.0, 1.75), "yes", person="Bob", example=False)  # overlaps the first a little
    project.judge(word, Place("d001", 1, 3.0, 3.5), "unsure", person="Bob")
    project.judge(word, Place("d002", 1, 2.0, 2.5), "no", person="Bob")
    project.judge(other, Place("d002", 1, 0.25, 0.75), "yes", person="Ann", speaker="voice2", variant="kumbo")
    data = (place / "corpus" / "queries" / "q001_1.wav").read_bytes()
    sound = project.add_sound(data, name="q001_1.wav", person="Ann")
    project.judge(other, Place(None, 1, 0.0, 0.5, sound.sound), "yes", person="Ann")
    project.undo(person="Bob")
    project.judge(word, Place("d002", 1, 2.0, 2.5), "no", person="Bob")
    return project


@pytest.fixture
def project(place: Path, tmp_path: Path):
    with fill(tmp_path / "words", place) as filled:
        yield filled


class Elan(NamedTuple):
    """An ELAN file: of each tier its annotations (start and end in ms, text), parent and speaker; linked media."""

    tiers: dict[str, list[tuple[int, int, str]]]
    parents: dict[str, str]
    speakers: dict[str, str]
    media: list[dict[str, str]]


def eaf(file: Path) -> Elan:
    """Read by the rules of ELAN's schema and of its tier types, which are checked."""
    root = ElementTree.parse(file).getroot()
    ids = [
        value
        for each in root.iter()
        for name, value in each.items()
        if re.fullmatch("(TIER|TIME_SLOT|ANNOTATION)_ID", name)
    ]
    assert len(set(ids)) == len(ids)
    times = [(each.attrib["TIME_SLOT_ID"], int(each.attrib["TIME_VALUE"])) for each in root.iter("TIME_SLOT")]
    assert [time for _, time in times] == sorted(time for _, time in times)
    slots, used = dict(times), set[str]()
    kinds = {each.attrib["LINGUISTIC_TYPE_ID"]: each.attrib for each in root.iter("LINGUISTIC_TYPE")}
    stereotypes = {each.attrib["STEREOTYPE"] for each in root.iter("CONSTRAINT")}
    order = ["HEADER", "TIME_ORDER", "TIER", "LINGUISTIC_TYPE", "LOCALE", "LANGUAGE", "CONSTRAINT"]
    assert [each.tag for each in root] == sorted((each.tag for each in root), key=order.index)
    found = Elan({}, {}, {}, [dict(each.attrib) for each in root.iter("MEDIA_DESCRIPTOR")])
    spans: dict[str, tuple[int, int]] = {}
    owners: dict[str, str] = {}
    for tier in root.iter("TIER"):
        name, kind, parent = tier.attrib["TIER_ID"], kinds[tier.attrib["LINGUISTIC_TYPE_REF"]], tier.get("PARENT_REF")
        found.tiers[name] = []
        found.speakers[name] = tier.get("PARTICIPANT", "")
        assert (parent is not None) == ("CONSTRAINTS" in kind)
        if parent is not None:
            found.parents[name] = parent
            assert kind["CONSTRAINTS"] in stereotypes
        for each in tier.iter("ALIGNABLE_ANNOTATION"):
            assert kind["TIME_ALIGNABLE"] == "true"
            refs = each.attrib["TIME_SLOT_REF1"], each.attrib["TIME_SLOT_REF2"]
            used |= {*refs}
            spans[each.attrib["ANNOTATION_ID"]] = slots[refs[0]], slots[refs[1]]
            owners[each.attrib["ANNOTATION_ID"]] = name
            found.tiers[name].append((*spans[each.attrib["ANNOTATION_ID"]], each.findtext("ANNOTATION_VALUE") or ""))
        rows = sorted(found.tiers[name])
        assert all(before[1] <= after[0] for before, after in pairwise(rows)), "no overlaps in a tier"
    assert used == slots.keys()
    for tier in root.iter("TIER"):
        name = tier.attrib["TIER_ID"]
        refs = [each.attrib["ANNOTATION_REF"] for each in tier.iter("REF_ANNOTATION")]
        assert {owners[ref] for ref in refs} <= {found.parents.get(name)}
        assert len(set(refs)) == len(refs), "one text for each"
        texts = [each.findtext("ANNOTATION_VALUE") or "" for each in tier.iter("REF_ANNOTATION")]
        found.tiers[name] += [(*spans[ref], text) for ref, text in zip(refs, texts, strict=True)]
    return found


def test_elan(project: Project, store: Store, tmp_path: Path) -> None:
    files = write_export(project, "eaf", tmp_path / "out", store=store)
    assert [file.relative_to(tmp_path / "out").as_posix() for file in files] == ["eaf/d001.eaf", "eaf/d002.eaf"]
    found = eaf(files[0])
    form = 'ŋ<"ä">'
    assert found.tiers == {
        "words@voice1": [(500, 1250, form), (3000, 3500, form)],
        "gloss@voice1": [(500, 1250, 'it, "he"'), (3000, 3500, 'it, "he"')],
        "note@voice1": [(500, 1250, "c\nd")],
        "certainty@voice1": [(3000, 3500, "unsure")],
        "words (2)@voice1": [(1000, 1750, form)],
        "gloss (2)@voice1": [(1000, 1750, 'it, "he"')],
    }
    assert found.parents["gloss@voice1"] == "words@voice1"
    assert found.speakers["gloss@voice1"] == "voice1"
    date = ElementTree.parse(files[0]).getroot().attrib["DATE"]
    assert date == f"{project.changes(project.change - 1)[0].at[:19]}+00:00"
    path = Path(store.recordings()["d001", 1].path)
    assert [Path(found.media[0]["MEDIA_URL"].removeprefix("file://"))] == [path]
    assert (files[0].parent / found.media[0]["RELATIVE_MEDIA_URL"]).samefile(path)
    assert eaf(files[1]).tiers == {"words@voice2": [(250, 750, "kombo")], "variant@voice2": [(250, 750, "kumbo")]}
    assert eaf(write_export(project, "eaf", tmp_path / "alone", store=None)[0]).media == []


OWN = """<?xml version="1.0" encoding="UTF-8"?>
<ANNOTATION_DOCUMENT AUTHOR="M &amp; N" DATE="2020-01-01T00:00:00+00:00" FORMAT="3.0" VERSION="3.0"
 xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
 xsi:noNamespaceSchemaLocation="http://www.mpi.nl/tools/elan/EAFv3.0.xsd">
<HEADER MEDIA_FILE="" TIME_UNITS="milliseconds"><!-- mine -->{media}
<PROPERTY NAME="lastUsedAnnotationId">9</PROPERTY></HEADER>
<TIME_ORDER><TIME_SLOT TIME_SLOT_ID="ts1" TIME_VALUE="500"/><TIME_SLOT TIME_SLOT_ID="ts2"/>
<TIME_SLOT TIME_SLOT_ID="ts3" TIME_VALUE="1250"/></TIME_ORDER>
<TIER LINGUISTIC_TYPE_REF="utterance" TIER_ID="said" PARTICIPANT="Ann" DEFAULT_LOCALE="en">
<ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="a1" TIME_SLOT_REF1="ts1" TIME_SLOT_REF2="ts3">
<ANNOTATION_VALUE>a &lt;b&gt;&#13;
c</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></ANNOTATION></TIER>
<TIER LINGUISTIC_TYPE_REF="word" PARENT_REF="said" TIER_ID="words">
<ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="a2" TIME_SLOT_REF1="ts1" TIME_SLOT_REF2="ts2">
<ANNOTATION_VALUE>x</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></ANNOTATION></TIER>
<LINGUISTIC_TYPE GRAPHIC_REFERENCES="false" LINGUISTIC_TYPE_ID="utterance" TIME_ALIGNABLE="true"/>
<LINGUISTIC_TYPE GRAPHIC_REFERENCES="false" LINGUISTIC_TYPE_ID="word" CONSTRAINTS="Time_Subdivision" TIME_ALIGNABLE="true"/>
<LOCALE LANGUAGE_CODE="en"/>
<CONSTRAINT DESCRIPTION="Time subdivision" STEREOTYPE="Time_Subdivision"/>
</ANNOTATION_DOCUMENT>
"""


def canonical(element: ElementTree.Element) -> str:
    """Whatever follows it."""
    return ElementTree.canonicalize(ElementTree.tostring(element)).rstrip()


def test_tiers_in_a_file_of_ones_own(place: Path, project: Project, tmp_path: Path) -> None:
    """Nothing of it changes, and the same export again adds nothing."""
    for name in ("corpus", "run/store"):
        shutil.copytree(place / name, tmp_path / "place" / name)
    store = Store(Folder(str(tmp_path / "place" / "run" / "store"), {}))
    own = Path(store.recordings()["d001", 1].path).with_suffix(".EAF")
    root = "<ANNOTATION_DOCUMENT"
    text = OWN.format(media="").replace(root, f"<!-- {root}> -->\n{root}", 1)
    own.write_text(f"{text}<!-- last -->\n", encoding="utf-8", newline="\r\n")
    before = own.read_bytes()
    copies = []
    for folder in ("first", "second"):
        file, other = write_export(project, "eaf", tmp_path / folder, store=store, into=True)
        assert "said" not in other.read_text(encoding="utf-8")
        copies.append(file.read_bytes())
        roots = [ElementTree.fromstring(each) for each in (before, copies[-1])]
        for name in ("TIER", "LINGUISTIC_TYPE", "LOCALE", "CONSTRAINT", "TIME_SLOT"):
            mine, theirs = ({canonical(each) for each in root.iter(name)} for root in roots)
            assert mine <= theirs
        assert b"<!-- mine -->" in copies[-1]
        assert copies[-1].startswith(before.split(b"<ANNOTATION_DOCUMENT ")[0])
        assert copies[-1].endswith(b"</ANNOTATION_DOCUMENT>\r\n<!-- last -->\r\n")
        assert copies[-1].count(b"\n") == copies[-1].count(b"\r\n")
        own.write_bytes(copies[-1])
    assert copies[0] == copies[1]
    tiers = {each.attrib["TIER_ID"]: each for each in ElementTree.parse(file).getroot().iter("TIER")}
    ours = {"words@voice1", "gloss@voice1", "note@voice1", "words (2)", "gloss (2)", "certainty (2)"}
    assert tiers.keys() == {"said", "words", *ours}
    assert tiers["words (2)"].attrib["LINGUISTIC_TYPE_REF"] == "utterance"
    with Project.open(tmp_path / "back") as back:
        import_file(back, file, person="Cem", store=store)
        assert {item for item in known(project) if item[1].doc_id == "d001"} == known(back)
    template = tmp_path / "mine.etf"
    template.write_text(OWN.format(media=""), encoding="utf-8")
    (file, _) = write_export(project, "eaf", tmp_path / "third", store=store, template=template)
    assert "said" in file.read_text(encoding="utf-8")
    later = OWN.format(media='<MEDIA_DESCRIPTOR MEDIA_URL="a" MIME_TYPE="b" TIME_ORIGIN="5"/>')
    for k, wrong in enumerate(("<a/>", "no xml", later)):
        for path in (template, own):
            path.write_text(wrong, encoding="utf-8")
        with raises(families.UNSUPPORTED):
            write_export(project, "eaf", tmp_path / "third", store=store, template=template)
        (_, left) = write_export(project, "eaf", tmp_path / f"wrong{k}", store=store, into=True)
        assert left.name == "left-out.txt"
        assert left.read_text(encoding="utf-8").startswith(f"{own}: ")


def test_praat_and_audacity(project: Project, store: Store, tmp_path: Path) -> None:
    (file, _) = write_export(project, "textgrid", tmp_path, store=store)
    grid = praatio.openTextgrid(str(file), includeEmptyIntervals=False, reportingMode="error")
    form = 'ŋ<"ä">'
    assert grid.maxTimestamp == pytest.approx(store.recordings()["d001", 1].duration, abs=1e-3)
    assert [tuple(item) for item in grid.getTier("words@voice1").entries] == [(0.5, 1.25, form), (3.0, 3.5, form)]
    assert [tuple(item) for item in grid.getTier("certainty@voice1").entries] == [(3.0, 3.5, "unsure")]
    (labels,) = write_export(project, "labels", tmp_path, store=None, entry_ids=[1])
    lines = (f"0.500000\t1.250000\t{form}", f"1.000000\t1.750000\t{form}", f"3.000000\t3.500000\t{form} ?", "")
    assert labels.read_text(encoding="utf-8") == "\n".join(lines)


TEXTS = st.text(st.sampled_from("aŋ á\"'?<&>()@2.-\u0301"), max_size=8)
SPEAKERS = st.sampled_from(["", "Ann", "Bob (2)", 'O\'Neil@home "x"'])
DOCUMENTS = st.sampled_from(["a", "a.1", "sub/a", "sub/a.2", "sub 2/é 'x'", "a.2"])
SPANS = st.tuples(st.integers(0, 40), st.integers(1, 9)).map(lambda span: (span[0] / 10, (span[0] + span[1]) / 10))
TOKENS = st.tuples(st.integers(0, 2), DOCUMENTS, st.integers(1, 2), SPANS, SPEAKERS, TEXTS, TEXTS, st.booleans())


@settings(max_examples=15, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(
    forms=st.lists(
        TEXTS.filter(lambda text: text.strip()), min_size=3, max_size=3, unique_by=lambda text: "".join(text.split())
    ),
    glosses=st.lists(TEXTS, min_size=3, max_size=3),
    tokens=st.lists(TOKENS, min_size=1, max_size=12),
    kind=st.sampled_from(["eaf", "textgrid"]),
)
def test_words_come_back(tmp_path_factory, forms, glosses, tokens, kind) -> None:
    """Words, glosses, speakers, notes and verdicts of any project, by files that ELAN and Praat take."""
    folder = tmp_path_factory.mktemp("any")
    with Project.open(folder / "words") as project, Project.open(folder / "other") as other:
        ids = [
            project.add_entry(person="Ann", form=form, gloss=gloss).entry_id
            for form, gloss in zip(forms, glosses, strict=True)
        ]
        for k, doc_id, channel, span, speaker, variant, note, sure in tokens:
            texts = {"speaker": speaker, "variant": variant, "note": note}
            project.judge(ids[k], Place(doc_id, channel, *span), "yes" if sure else "unsure", person="Ann", **texts)
        files = write_export(project, kind, folder / "out", store=None)
        assert len(files) == len({token[1:3] for token in tokens}), "a file for each recording"
        for file in files:
            if kind == "eaf":
                eaf(file)
            else:
                praatio.openTextgrid(str(file), includeEmptyIntervals=False, reportingMode="error")
            name = file.relative_to(folder / "out" / kind).with_suffix("").as_posix()
            numbered = re.fullmatch(r"(.+)\.([0-9]+)", name)
            document = (numbered[1], int(numbered[2])) if numbered else (name, 1)
            import_file(other, file, person="Cem", store=None, document=document)
        assert said(other) == said(project)


def said(project: Project) -> set[tuple[object, ...]]:
    return {
        (entry.form, entry.gloss, token.place, token.verdict, token.speaker or entry.speaker, token.variant, token.note)
        for entry in project.entries()
        for token in project.tokens(entry.entry_id)
    }


def test_flex(project: Project, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = write_export(project, "lift", tmp_path, store=store, languages=Languages("kg", "fr"))
    (file,) = (file for file in files if file.suffix == ".lift")
    first, second = ElementTree.parse(file).getroot().findall("entry")
    assert first.findtext("lexical-unit/form[@lang='kg']/text") == "kombo"
    assert first.find("sense") is None, "it has no gloss"
    assert second.findtext("sense/gloss[@lang='fr']/text") == 'it, "he"'
    assert [each.text for each in second.findall("variant/form/text")] == ["x", "y"]
    notes = ["a", "b", "d001, 0:00.50, 0.75 s (voice1; c d)", "d001, 0:01.00, 0.75 s"]
    assert (second.findtext("note/form/text") or "").splitlines() == notes
    for entry, count in ((first, 2), (second, 1)):  # examples
        names = [each.attrib["href"] for each in entry.findall("pronunciation/media")]
        assert [soundfile.info(str(file.parent / AUDIO / name)).duration > 0.5 for name in names] == [True] * count
    with raises(families.INVALID_VALUE):
        write_export(project, "lift", tmp_path / "none", store=None, languages=Languages("Kongo"))
    left, *_ = write_export(project, "lift", tmp_path / "again", store=None)
    assert "left-out" in left.name, "the sounds of recordings are not known"
    again = ElementTree.parse(tmp_path / "again" / "lift" / "words.lift").getroot()
    ids = {each.get("guid") for each in again.findall("entry")}
    assert ids == {first.get("guid"), second.get("guid")}, "so that a second import changes entries"
    for change in (
        lambda: project.change_entry(1, person="Ann", gloss="new"),
        lambda: project.remove_token(1, person="Ann"),
        lambda: project.undo(person="Ann"),
    ):
        monkeypatch.setattr(database, "now", lambda: f"2999-01-01T00:00:{project.change:02}.000Z")
        change()
        *_, out = write_export(project, "lift", tmp_path / str(project.change), store=None, entry_ids=[1])
        (entry,) = ElementTree.parse(out).getroot().findall("entry")
        assert entry.get("dateModified") == f"2999-01-01T00:00:{project.change - 1:02}Z"


def test_tables_for_people_and_clips(project: Project, store: Store, tmp_path: Path) -> None:
    project.correct(Place("d001", 1, 2.0, 2.5), "kumbo", person="Ann")
    files = write_export(project, "csv", tmp_path, store=store)
    (correction,), entries, tokens = ([*csv.DictReader(file.open(newline=""))] for file in files)
    names = ("form", "gloss", "variants", "note")
    assert [entries[1][name] for name in names] == ['ŋ<"ä">', 'it, "he"', "x; y", "a b"]
    assert [correction[name] for name in ("doc_id", "start", "text", "person")] == ["d001", "2", "kumbo", "Ann"]
    assert len(tokens) == 6
    (row,) = [row for row in tokens if row["score"] == "2.5"]
    assert (row["verdict"], row["person"], row["note"], row["speaker"]) == ("yes", "Ann", "c d", "voice1")
    assert Path(row["path"]).samefile(store.recordings()["d001", 1].path)
    clips = write_export(project, "clips", tmp_path, store=store)
    assert len(clips) == 4, "three places and a sound"
    assert all(soundfile.info(str(clip)).duration > 0.3 for clip in clips)
    assert clips == write_export(project, "clips", tmp_path, store=store), "an export again replaces the files"


def test_a_page(project: Project, tmp_path: Path) -> None:
    project.add_entry(person="Ann", form="<script>alert(1)</script>")
    (file,) = write_export(project, "page", tmp_path, store=None)
    text = file.read_text(encoding="utf-8")
    tags: list[str] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, _: tags.append(tag)  # type: ignore[method-assign]
    parser.feed(text)
    assert (tags.count("h2"), tags.count("li")) == (3, 4)
    assert not {"script", "img", "link"} & set(tags)
    assert "http:" not in text
    assert "it, &#34;he&#34;" in text


def known(project: Project) -> set[tuple[object, ...]]:
    return {
        (entry.form, token.place, token.verdict)
        for entry in project.entries()
        for token in project.tokens(entry.entry_id)
        if token.verdict != "no" and token.place.doc_id is not None
    }


@pytest.mark.parametrize("kind", ["eaf", "textgrid"])
@pytest.mark.parametrize("with_store", [True, False])
def test_annotations_come_back(project: Project, store: Store, tmp_path: Path, kind: str, with_store: bool) -> None:
    given = store if with_store else None
    files = write_export(project, kind, tmp_path / "out", store=given)
    with Project.open(tmp_path / "other") as other:
        counts = [[import_file(other, file, person="Cem", store=given)[:4] for file in files] for _ in range(2)]
        assert counts == [[(3, 0, 0, 1), (1, 0, 0, 1)], [(0, 0, 3, 0), (0, 0, 1, 0)]]
        assert known(other) == known(project)
        assert [entry.examples for entry in other.entries()] == [0, 0]
        assert [change.kind for change in other.changes()] == ["import", "import"]
        word = other.entries("kombo")[0].entry_id
        other.change_token(other.tokens(word)[0].token_id, person="Dee", verdict="no")
        assert import_file(other, files[1], person="Cem", store=given)[:4] == (0, 1, 0, 0)
        assert other.undo(person="Cem") is not None
        assert other.tokens(word)[0].verdict == "no"


@pytest.mark.parametrize("kind", ["eaf", "textgrid", "project"])
def test_corrections_come_back(project: Project, store: Store, tmp_path: Path, kind: str) -> None:
    project.correct(Place("d001", 1, 1.0, 1.7501), "is it?", person="Ann")
    (file, *_) = write_export(project, kind, tmp_path / "out", store=store)
    for before in ([], ["was it?"]):
        with Project.open(tmp_path / f"other{len(before)}") as other:
            for text in before:
                other.correct(Place("d001", 1, 1.25, 1.5), text, person="Bob")
            import_file(other, file, person="Cem", store=store)
            (correction,) = other.corrections()
            assert (correction.text, correction.place.end) == ("is it?", 1.7501 if kind == "project" else 1.75)
            assert import_file(other, file, person="Cem", store=store)[:2] == (0, 0)
            other.undo(person="Cem")
            assert [each.text for each in other.corrections()] == before
    project.correct(Place("d001", 1, 2.0, 2.5), "", person="Ann")  # nothing is said there
    entry = project.add_entry(person="Ann", form="corrected text").entry_id
    project.judge(entry, Place("d001", 1, 3.0, 3.5), "yes", person="Ann")
    (file, *_) = write_export(project, kind, tmp_path / "more", store=store)
    with Project.open(tmp_path / "third") as other:
        import_file(other, file, person="Cem", store=store)
        empty = [] if kind == "textgrid" else [(2.0, "")]  # an interval of Praat without a text is a gap
        assert [(each.place.start, each.text) for each in other.corrections()] == [(1.0, "is it?"), *empty]
        assert known(other) >= {("corrected text", Place("d001", 1, 3.0, 3.5), "yes")}
    (file, *_) = write_export(project, "eaf", tmp_path / "one", store=store, entry_ids=[1])
    assert "is it?" not in file.read_text(encoding="utf-8")  # it is of no word


ELAN = """<?xml version="1.0" encoding="UTF-8"?>
<ANNOTATION_DOCUMENT AUTHOR="" DATE="2020-01-01T00:00:00+00:00" FORMAT="3.0" VERSION="3.0"
>
<HEADER MEDIA_FILE="" TIME_UNITS="milliseconds">
<MEDIA_DESCRIPTOR MEDIA_URL="file:///C:/Users/me/{media}" MIME_TYPE="audio/x-wav" RELATIVE_MEDIA_URL="./{media}"/></HEADER>
<TIME_ORDER><TIME_SLOT TIME_SLOT_ID="ts1" TIME_VALUE="100"/><TIME_SLOT TIME_SLOT_ID="ts2" TIME_VALUE="400"/>
<TIME_SLOT TIME_SLOT_ID="ts3" TIME_VALUE="900"/></TIME_ORDER>
<TIER LINGUISTIC_TYPE_REF="default" TIER_ID="words" PARTICIPANT="Ann">
<ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="a1" TIME_SLOT_REF1="ts1" TIME_SLOT_REF2="ts2">
<ANNOTATION_VALUE> mwana </ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></ANNOTATION>
<ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="a2" TIME_SLOT_REF1="ts2" TIME_SLOT_REF2="ts3">
<ANNOTATION_VALUE>kombo?</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></ANNOTATION></TIER>
<TIER LINGUISTIC_TYPE_REF="gloss" PARENT_REF="words" TIER_ID="gloss">
<ANNOTATION><REF_ANNOTATION ANNOTATION_ID="a3" ANNOTATION_REF="a1">
<ANNOTATION_VALUE>child</ANNOTATION_VALUE></REF_ANNOTATION></ANNOTATION></TIER>
<LINGUISTIC_TYPE GRAPHIC_REFERENCES="false" LINGUISTIC_TYPE_ID="default" TIME_ALIGNABLE="true"/>
<LINGUISTIC_TYPE CONSTRAINTS="Symbolic_Association" GRAPHIC_REFERENCES="false" LINGUISTIC_TYPE_ID="gloss"
 TIME_ALIGNABLE="false"/>
</ANNOTATION_DOCUMENT>
"""


def test_a_file_of_elan_itself(store: Store, tmp_path: Path) -> None:
    """Of another machine: the recording is known by its name; words of the tier with times; `?` is unsure."""
    file = tmp_path / "monday.eaf"

    def taken(media: str, old: str = "", new: str = "", **options: Any) -> Any:
        file.write_text(ELAN.format(media=media).replace(old, new, 1), encoding="utf-8")
        return import_file(project, file, person="Ann", store=store, **options)

    with Project.open(tmp_path / "words") as project:
        assert taken("d001.wav", examples=True)[:4] == (2, 0, 0, 2)
        assert known(project) == {
            ("mwana", Place("d001", 1, 0.1, 0.4), "yes"),
            ("kombo", Place("d001", 1, 0.4, 0.9), "unsure"),
        }
        assert [(entry.form, entry.examples) for entry in project.entries()] == [("kombo", 0), ("mwana", 1)]
        taken("d002.wav", "MIME_TYPE", 'TIME_ORIGIN="50" MIME_TYPE')
        assert ("mwana", Place("d002", 1, 0.15, 0.45), "yes") in known(project)
        taken("d001.wav", tiers=["gloss"])
        assert project.entries("child")[0].yes == 1
        with raises(families.UNKNOWN_NAME):
            taken("d001.wav", tiers=["nothing"])
        with raises(families.UNKNOWN_NAME):
            taken("elsewhere.wav")
        assert taken("elsewhere.wav", document=("d003", 1))[:4] == (2, 0, 0, 0)
        named = {"document": ("d004", 1), "name": "d009.eaf"}
        counts = taken("d002.wav", 'TIME_VALUE="400"', 'TIME_VALUE="4"', document=("d003", 1))
        assert (counts.added, counts.unusable, counts.first.startswith(f"{file}, line ")) == (0, 2, True)
        counts = taken("d002.wav", 'TIME_VALUE="900"', 'TIME_VALUE="400"', **named)
        assert (counts.added, counts.unusable, counts.first.startswith("d009.eaf, line ")) == (1, 1, True)
        assert "[empty-annotation]" in counts.first
        with pytest.raises(DataError, match=r"^d009\.eaf"):
            taken("d002.wav", "<ANNOTATION_DOCUMENT", "<ANNOTATION_DOCUMENT <", **named)


def test_texts_that_no_export_could_write_are_left_out(tmp_path: Path) -> None:
    with Project.open(tmp_path / "words") as project:
        for below, text in product(("note", "variant", "gloss"), ("\x01" + "a" * 605, "\uffff", "a" * 30_000)):
            texts = {**dict.fromkeys(("gloss", *database.TEXTS), ""), "speaker": "", below: text}
            entry = {"form": "nzo", "gloss": texts.pop("gloss")}
            incoming = Incoming(entry, Place("talk", 1, 1.0, 2.0), {"verdict": "yes", "score": None, **texts}, False)
            counts = take_in(project, [incoming], person="Ann")
            assert (counts.added, counts.unusable, len(counts.first) < 200) == (0, 1, True)
        assert project.entries() == []


def test_files_of_anything(tmp_path: Path) -> None:
    file = tmp_path / "file.json"
    with Project.open(tmp_path / "words") as project:
        for text in ("", "a,b\n", "<html/>", "{}", '{"schema": "swsdist-glossary/1"}', "{" * 5000, "[1]"):
            file.write_text(text)
            with raises(families.MALFORMED_FILE):
                import_file(project, file, person="Ann", store=None)
        assert project.change == 0


def whole(project: Project) -> list[object]:
    entries = project.entries()
    return [*entries, *(project.tokens(entry.entry_id) for entry in entries), *project.changes()]


def test_a_whole_project(project: Project, tmp_path: Path) -> None:
    """With all ids and changes into an empty one, where the changes are history; and merged into another."""
    (file,) = write_export(project, "project", tmp_path, store=None)
    with Project.open(tmp_path / "copy") as copy:
        assert import_file(copy, file, person="Cem", store=None)[:4] == (6, 0, 0, 2)
        *copied, imported = whole(copy)
        assert copied == whole(project)
        assert (imported.kind, imported.person) == ("import", "Cem")
        sound = next(token.place.sound for token in copy.tokens(2) if token.place.sound)
        assert copy.sound(sound) == project.sound(sound)
        assert copy.sound_file(sound).read_bytes() == project.sound_file(sound).read_bytes()
        assert copy.undo(person="Bob") is None
        assert copy.add_entry(person="Ann", form="new").entry_id == project.add_entry(person="Ann", form="new").entry_id
    with Project.open(tmp_path / "other") as other:
        word = other.add_entry(person="Dee", form="kombo", gloss="name").entry_id
        other.judge(word, Place("d002", 1, 0.3, 0.8), "no", person="Dee")
        assert import_file(other, file, person="Cem", store=None)[:4] == (5, 1, 0, 1)
        assert other.entry(word).gloss == "name"
        assert (other.entry(word).yes, other.entry(word).sounds, other.entry(word).examples) == (1, 1, 2)
        assert {token.person for entry in other.entries() for token in other.tokens(entry.entry_id)} == {"Ann", "Bob"}
        other.undo(person="Cem")
        assert [(entry.form, entry.no) for entry in other.entries()] == [("kombo", 1)]


def test_a_damaged_whole_project(project: Project, tmp_path: Path) -> None:
    (file,) = write_export(project, "project", tmp_path, store=None)
    text = file.read_text(encoding="utf-8")
    for table, change in (
        ("tokens", {"entry_id": 77}),
        ("tokens", {"start": "x"}),
        ("tokens", {"person": None}),
        ("entries", {"form": "a\x00"}),
        ("entries", {"variants": "x"}),
        ("sounds", {"data": "AAAA"}),
        ("changes", {"after": {"entries": {"1": {"form = 'x' --": 1}}}}),
        ("changes", {"after": {"change": {"1": {}}}}),
        ("changes", {"undoes": 3}),
    ):
        content = json.loads(text)
        content[table][0].update(change)
        file.write_text(json.dumps(content), encoding="utf-8")
        with Project.open(tmp_path / "copy") as copy:
            with raises(families.MALFORMED_FILE):
                import_file(copy, file, person="Cem", store=None)
            assert (copy.change, copy.entries(), list((copy.folder / "sounds").iterdir())) == (0, [], [])


def test_tables_that_a_run_evaluates(project: Project, store: Store, tmp_path: Path, swsdist: Command) -> None:
    files = write_export(project, "tables", tmp_path / "out", store=store)
    names = ["config.yaml", "documents.csv", "judgements.csv", "queries.csv", "references.csv"]
    assert [file.name for file in files if file.parent.name == "out"] == names
    sets = ("--set=executor.kind=serial", "--set=report.clips=0", "--set=report.exports=[]")
    swsdist("run", "config.yaml", *sets, cwd=tmp_path / "out")
    report = json.loads((tmp_path / "out" / "run" / "report.json").read_text())
    assert report["counts"]
    assert any("[unjudged-detections]" in warning for warning in report["warnings"])
    assert report["measures"]["mtwv"] is not None


def test_the_commands(project: Project, place: Path, tmp_path: Path, swsdist: Command) -> None:
    out = swsdist("glossary", "list", "words", "komb", cwd=tmp_path).out
    assert out.splitlines() == ["form\tgloss\tyes\tno\tunsure\tsounds\texamples", "kombo\t\t1\t0\t0\t1\t2"]
    listed = json.loads(swsdist("glossary", "list", "words", "--json", cwd=tmp_path).out)
    assert [len(entry["tokens"]) for entry in listed] == [2, 4]
    swsdist("glossary", "export", "words", "eaf", "--out", "out", "--entry", "kombo", cwd=tmp_path)
    into = ("new", "out/eaf/d002.eaf", "--person", "Ann", "--document", "d9#2")
    assert "1 added, 0 changed, 0 known; 1 new entries" in swsdist("glossary", "import", *into, cwd=tmp_path).out
    with Project.open(tmp_path / "new") as new:
        assert new.tokens(1)[0].place == Place("d9", 2, 0.25, 0.75)
    cases = {
        "glossary list out": "[missing-file]",
        "glossary export words eaf --out x --entry kombu": "[unknown-name]",
        "glossary export words pdf --out x": "[unknown-name]",
    }
    assert untold(swsdist, cases, tmp_path) == {}
    Project.open(tmp_path / "words", store=str(tmp_path / "gone")).close()
    assert "[store-gone]" in swsdist("glossary", "export", "words", "csv", "--out", "out", cwd=tmp_path).err


def test_annotations_of_a_search(place: Path, tmp_path: Path, swsdist: Command) -> None:
    query = place / "corpus" / "queries" / "q001_1.wav"
    common = ("search", place / "run", "--query", query, "--word", "hello", "--top", "3", "--annotations", "hits")
    hits = json.loads(swsdist(*common, "--json", cwd=tmp_path).out)
    found = []
    for file in sorted((tmp_path / "hits" / "eaf").glob("*.eaf")):
        tiers, _, _, media = eaf(file)
        assert len(media) == 1
        found += [(file.name, start, end) for tier, rows in tiers.items() for start, end, _ in rows if tier == "hello"]
    times = [(f"{hit['doc_id']}.eaf", round(1000 * hit["start"]), round(1000 * hit["end"])) for hit in hits]
    assert sorted(found) == sorted(times)
    assert len(hits) == 3
    assert sum(len(file.read_text().splitlines()) for file in (tmp_path / "hits" / "labels").glob("*.txt")) == 3
    assert "[output-refused]" in swsdist(*common, cwd=tmp_path, code=2).err
