"""Tiers of annotations, for ELAN and Praat: of each document a file.

Detections have a tier for each query, and an annotation's text is its score; shown are YES decisions, or else the best few of
each query. Times are whole ms, and an annotation lasts at least 1 ms. A tier holds no overlapping annotations, so what overlaps
an earlier one is in a further tier: `QUERY (2)`, `QUERY (3)`, ... A tier of a speaker is called `TIER@SPEAKER`.

An annotation may have texts below it (a gloss): in ELAN in child tiers, in Praat in tiers beside, at the same times. A
TextGrid, in UTF-8, lasts as long as its recording; where that is not known, until its last annotation ends.

ELAN's files (EAF 3.0): made anew, or a file with tiers added, of which nothing is changed or lost: what stands before and
after the document and the ends of lines stay, too. How a tag is written (blanks, quotation marks) may change; it is UTF-8.

Of a file with a tier of the same name, the tier takes what it does not hold yet; an annotation of the same times and text stays
the one. A new tier has the type of the tier of its name, whoever speaks, else the first type without a parent that fits. Texts
below are in child tiers of symbolic associations.

A recording is linked by its path as it is: ELAN does not decode `%20`. It looks there, then beside the file, then at the
relative path. One on S3 is linked by its url, and ELAN asks for a copy.

Source: MPI for Psycholinguistics, EAF annotation format (schema EAFv3.0.xsd).
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count, islice
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from pympi import TextGrid

from swsdist.core.codes import discovery as codes
from swsdist.core.codes import families
from swsdist.core.errors import DataError
from swsdist.exports.interface import Material
from swsdist.exports.lists import label_file, shown
from swsdist.io.compressed import short
from swsdist.io.filesystem import is_remote

_INSTANCE = "http://www.w3.org/2001/XMLSchema-instance"
_SCHEMA = "http://www.mpi.nl/tools/elan/EAFv3.0.xsd"
#: Of recordings; ELAN looks into files of others.
_TYPES = {
    ".wav": "audio/x-wav", ".mp3": "audio/mpeg", ".flac": "audio/flac", ".ogg": "audio/ogg", ".opus": "audio/ogg",
    ".m4a": "audio/mp4", ".aac": "audio/aac", ".aif": "audio/x-aiff", ".aiff": "audio/x-aiff", ".wma": "audio/x-ms-wma",
    ".mp4": "video/mp4", ".m4v": "video/mp4", ".mpg": "video/mpeg", ".mpeg": "video/mpeg", ".mov": "video/quicktime",
    ".avi": "video/x-msvideo", ".mkv": "video/x-matroska", ".webm": "video/webm",
}  # fmt: skip
#: Order of a document's elements.
_ORDER = ("LICENSE", "HEADER", "TIME_ORDER", "TIER", "LINGUISTIC_TYPE", "LOCALE", "LANGUAGE", "CONSTRAINT")
_BELOW = "Symbolic_Association"
#: What stands before a document in UTF-8, itself, and what follows it.
_PARTS = re.compile(
    rb"((?:\xef\xbb\xbf)?(?>(?:<\?.*?\?>|<!--.*?-->|\s)*))<(?![?!]).*</ANNOTATION_DOCUMENT\s*>(.*)", re.DOTALL
)
_OTHER_ENCODING = re.compile(rb"\s*<\?xml[^>]*encoding=.(?!utf-8)", re.IGNORECASE)


#: A declaration, what follows a document, and ends of lines.
_AROUND = (b"<?xml version='1.0' encoding='UTF-8'?>\n", b"\n", b"\n")


def write_elan(document: Annotated) -> None:
    """Write a file.

    Raises:
        DataError: its base is no file of ELAN, or has other times than the recording, in ms.
    """
    root, (before, after, end) = (_empty(document.date), _AROUND) if document.base is None else _read(document.base)
    eaf = _Eaf(root)
    if document.path and eaf.header.find("MEDIA_DESCRIPTOR") is None:
        eaf.header.insert(0, Element("MEDIA_DESCRIPTOR", _media(document.path, document.home)))
    eaf.add(document.rows)
    if document.base is None:
        ElementTree.indent(eaf.root, "    ")
    text = ElementTree.tostring(eaf.root, encoding="UTF-8", xml_declaration=False).replace(b"\r", b"&#13;")
    document.file.write_bytes(before + text.replace(b"\n", end) + after)


def _empty(date: str) -> Element:
    facts = {"AUTHOR": "swsdist", "DATE": f"{date}+00:00", "FORMAT": "3.0", "VERSION": "3.0"}
    root = Element("ANNOTATION_DOCUMENT", facts)
    root.set(f"{{{_INSTANCE}}}noNamespaceSchemaLocation", _SCHEMA)
    root.append(Element("HEADER", {"MEDIA_FILE": "", "TIME_UNITS": "milliseconds"}))
    root.append(Element("TIME_ORDER"))
    return root


def _read(path: Path) -> tuple[Element, tuple[bytes, bytes, bytes]]:
    """The document of a file; and what stands before and after it, and its ends of lines."""
    content = path.read_bytes()
    keep = ElementTree.TreeBuilder(insert_comments=True, insert_pis=True)
    try:
        root = ElementTree.fromstring(content, ElementTree.XMLParser(target=keep))
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise codes.INVALID_BASE(where=str(path), error=error) from None
    header = root.find("HEADER")
    if root.tag != "ANNOTATION_DOCUMENT" or header is None or root.find("TIME_ORDER") is None:
        raise codes.INVALID_BASE(where=str(path), error="it has no HEADER and TIME_ORDER of ELAN")
    origins = {medium.get("TIME_ORIGIN", "0") for medium in header.findall("MEDIA_DESCRIPTOR")}
    if header.get("TIME_UNITS", "milliseconds") != "milliseconds" or origins - {"0"}:
        raise codes.INVALID_BASE(where=str(path), error="its times are not those of the recording in milliseconds")
    parts = None if _OTHER_ENCODING.match(content) else _PARTS.fullmatch(content)
    end = b"\r\n" if b"\r\n" in content else b"\n"
    return root, _AROUND if parts is None else (parts[1], parts[2], end)


def _media(path: str, home: Path | None) -> dict[str, str]:
    kind = {"MIME_TYPE": _TYPES.get(PurePosixPath(path).suffix.lower(), "unknown")}
    if is_remote(path):
        return {"MEDIA_URL": path, **kind}
    whole = os.path.abspath(path)  # noqa: PTH100 - of a link, its own path
    way = PurePosixPath(whole).name if home is None else Path(os.path.relpath(whole, home)).as_posix()
    return {"MEDIA_URL": f"file://{whole}", "RELATIVE_MEDIA_URL": way if way.startswith("../") else f"./{way}", **kind}


class _Eaf:
    """A document that tiers are added to."""

    def __init__(self, root: Element) -> None:
        ElementTree.register_namespace("xsi", _INSTANCE)
        self.root = root
        self.header, self._order = (next(root.iter(name)) for name in ("HEADER", "TIME_ORDER"))
        used = {value for each in root.iter() for name, value in each.items() if name.endswith("_ID")}
        self._slot_ids, self._ids = (_free(letters, used) for letters in ("ts", "a"))
        self._tiers = {tier.get("TIER_ID", ""): tier for tier in root.findall("TIER")}
        self._types = {each.get("LINGUISTIC_TYPE_ID", ""): each for each in root.findall("LINGUISTIC_TYPE")}
        slots = self._order.findall("TIME_SLOT")
        self._times = {slot.get("TIME_SLOT_ID", ""): slot.get("TIME_VALUE") for slot in slots}
        self._new_slots: list[tuple[int, str]] = []
        self._below = {
            (_name(tier_id), each.get("ANNOTATION_REF", ""))
            for tier_id, tier in self._tiers.items()
            for each in tier.iter("REF_ANNOTATION")
        }

    def add(self, by_tier: Mapping[Key, Sequence[Row]]) -> None:
        """Add annotations, in tiers of their own or in those of their names."""
        taken = dict[str, Sequence[Span] | None]()
        new = dict[Key, list[Row]]()
        for (name, speaker), rows in by_tier.items():
            below = {child for row in rows for child, _ in row.below}
            known = dict[tuple[int, int, str], tuple[str, str]]()
            for suffix in islice(suffixes(speaker), len(self._tiers) + 1):
                spans = self._spans(name, suffix, below)
                taken[name + suffix] = None if spans is None else sorted((start, end) for start, end, _ in spans)
                for span, annotation in (spans or {}).items():
                    known.setdefault(span, (suffix, annotation))
            new[name, speaker] = [row for row in rows if (row.start, row.end, row.text) not in known]
            for row in rows:
                if (place := known.get((row.start, row.end, row.text))) is not None:
                    self._add_below(Tier(name, place[0], speaker, []), place[1], row)
        for tier in layered(new, taken):
            if tier.rows or not by_tier[tier.name, tier.speaker]:
                self._fill(tier)
        self._order_slots()
        last = str(max((int(key[1:]) for key in self._annotation_ids() if re.fullmatch("a[0-9]+", key)), default=0))
        counted = [each for each in self.header.findall("PROPERTY") if each.get("NAME") == "lastUsedAnnotationId"]
        if not counted:
            counted = [SubElement(self.header, "PROPERTY", {"NAME": "lastUsedAnnotationId"})]
        counted[0].text = last

    def _annotation_ids(self) -> Iterator[str]:
        return (value for each in self.root.iter() if (value := each.get("ANNOTATION_ID")) is not None)

    def _spans(self, name: str, suffix: str, below: Collection[str]) -> dict[tuple[int, int, str], str] | None:
        """Annotations of a tier, by times and text; None: no annotation with such texts below can be added to it."""
        for child in below:
            tier = self._tiers.get(child + suffix)
            if tier is not None and (tier.get("PARENT_REF") != name + suffix or self._constraint(tier) != _BELOW):
                return None
        if (tier := self._tiers.get(name + suffix)) is None:
            return {}
        if tier.get("PARENT_REF") is not None or self._constraint(tier) is not None:
            return None
        spans = {}
        for each in tier.iter("ALIGNABLE_ANNOTATION"):
            start, end = (self._times.get(each.get(f"TIME_SLOT_REF{k}", "")) for k in (1, 2))
            if start is None or end is None:
                return None
            text = each.findtext("ANNOTATION_VALUE") or ""
            spans[int(start), int(end), text] = each.get("ANNOTATION_ID", "")
        return spans

    def _constraint(self, tier: Element) -> str | None:
        """What binds annotations of a tier to those of its parent; None: they have times of their own."""
        of = self._types.get(tier.get("LINGUISTIC_TYPE_REF", ""))
        aligned = of is None or of.get("TIME_ALIGNABLE", "true") == "true"
        return None if of is None else of.get("CONSTRAINTS") or (None if aligned else "")

    def _fill(self, tier: Tier) -> None:
        element = self._tier(tier.name, tier.suffix, tier.speaker)
        for row in tier.rows:
            times = zip(("TIME_SLOT_REF1", "TIME_SLOT_REF2"), row[:2], strict=True)
            annotation = next(self._ids)
            attributes = {"ANNOTATION_ID": annotation, **{name: self._slot(time) for name, time in times}}
            _annotate(element, "ALIGNABLE_ANNOTATION", attributes, row.text)
            self._add_below(tier, annotation, row)

    def _add_below(self, tier: Tier, annotation: str, row: Row) -> None:
        """Add the texts below an annotation that has none in their tiers."""
        for name, text in row.below:
            element = self._tier(name, tier.suffix, tier.speaker, tier.name + tier.suffix)
            if (name, annotation) not in self._below:
                self._below.add((name, annotation))
                attributes = {"ANNOTATION_ID": next(self._ids), "ANNOTATION_REF": annotation}
                _annotate(element, "REF_ANNOTATION", attributes, text)

    def _tier(self, name: str, suffix: str, speaker: str, parent: str | None = None) -> Element:
        """A tier, made if it is missing."""
        if (tier := self._tiers.get(name + suffix)) is not None:
            return tier
        model = next((each for key, each in self._tiers.items() if _name(key) == name), None)
        bound = None if parent is None else _BELOW
        if model is not None and self._constraint(model) == bound:
            like = {key: value for key, value in model.items() if key in ("DEFAULT_LOCALE", "LANG_REF")}
            kind = model.get("LINGUISTIC_TYPE_REF", "")
        else:
            like, kind = {}, self._type(name, bound)
        attributes = {"LINGUISTIC_TYPE_REF": kind, "TIER_ID": name + suffix, **like}
        attributes |= {} if parent is None else {"PARENT_REF": parent}
        attributes |= {"PARTICIPANT": speaker} if speaker else {}
        self._tiers[name + suffix] = tier = Element("TIER", attributes)
        self._insert(tier)
        return tier

    def _type(self, name: str, constraint: str | None) -> str:
        """The type of a new tier: that of a name, or one without a parent that there is; else it is made."""
        for key, each in self._types.items():
            aligned = each.get("TIME_ALIGNABLE", "true") == "true"
            if constraint is None and each.get("CONSTRAINTS") is None and aligned:
                return key
            if constraint is not None and (key, each.get("CONSTRAINTS")) == (name, constraint):
                return key
        key = next(key for k in count(1) if (key := f"{name} {k}" if k > 1 else name) not in self._types)
        ways = {"TIME_ALIGNABLE": str(constraint is None).lower(), "GRAPHIC_REFERENCES": "false"}
        self._types[key] = Element("LINGUISTIC_TYPE", {"LINGUISTIC_TYPE_ID": key, **ways})
        self._insert(self._types[key])
        if constraint is not None:
            self._types[key].set("CONSTRAINTS", constraint)
            if all(each.get("STEREOTYPE") != constraint for each in self.root.findall("CONSTRAINT")):
                told = "1-1 association with a parent annotation"
                self._insert(Element("CONSTRAINT", {"STEREOTYPE": constraint, "DESCRIPTION": told}))
        return key

    def _insert(self, element: Element) -> None:
        """Put an element of the document after those of its kind."""
        rank = _ORDER.index(element.tag)
        before = [k for k, each in enumerate(self.root) if each.tag in _ORDER[: rank + 1]]
        element.tail = "\n"
        self.root.insert(before[-1] + 1, element)

    def _slot(self, time: int) -> str:
        self._new_slots.append((time, next(self._slot_ids)))
        return self._new_slots[-1][1]

    def _order_slots(self) -> None:
        """Put new time slots among those that there are, all in order of time."""
        slots = list(self._order)
        merged, k = list[Element](), 0
        for time, key in sorted(self._new_slots, key=lambda slot: slot[0]):
            while k < len(slots) and int(slots[k].get("TIME_VALUE") or 0) <= time:
                merged.append(slots[k])
                k += 1
            merged.append(Element("TIME_SLOT", {"TIME_SLOT_ID": key, "TIME_VALUE": str(time)}))
            merged[-1].tail = "\n"
        self._order[:] = merged + slots[k:]


def _name(tier_id: str) -> str:
    """A tier's name without number and speaker."""
    return re.split(r"@| \(", tier_id)[0]


def _free(letters: str, used: Collection[str]) -> Iterator[str]:
    return (name for k in count(1) if (name := f"{letters}{k}") not in used)


def _annotate(tier: Element, kind: str, attributes: dict[str, str], text: str) -> None:
    annotation = SubElement(tier, "ANNOTATION")
    SubElement(SubElement(annotation, kind, attributes), "ANNOTATION_VALUE").text = text
    annotation.tail = "\n"


#: The date of annotations of which nobody knows when they changed.
EPOCH = "1970-01-01T00:00:00"
#: A start and an end, ms.
Span = tuple[int, int]
#: Name and speaker of tiers.
Key = tuple[str, str]


class Row(NamedTuple):
    """An annotation: times in ms, texts of tiers below by their names; of equal times the best score comes first."""

    start: int
    end: int
    score: float
    text: str
    below: tuple[tuple[str, str], ...] = ()


class Annotated(NamedTuple):
    """A document with annotations.

    Attributes:
        file: of the export; its folder exists.
        rows: annotations by tier.
        path: of its recording, local or a url; empty if it is not known.
        end: of its recording, at least of the last annotation, ms.
        home: where the file will lie; None: nobody knows.
        base: a file of ELAN that the tiers are added to.
        date: when they were changed last, s, UTC; not that of writing: equal annotations give equal bytes.
    """

    file: Path
    rows: Mapping[Key, Sequence[Row]]
    path: str
    end: int
    home: Path | None = None
    base: Path | None = None
    date: str = EPOCH


class Tier(NamedTuple):
    """A tier without overlaps, in order of time; `suffix` follows its name, and those of the tiers below."""

    name: str
    suffix: str
    speaker: str
    rows: list[Row]


def layered(
    by_tier: Mapping[Key, Sequence[Row]], taken: Mapping[str, Sequence[Span] | None] | None = None
) -> list[Tier]:
    """Tiers of annotations that do not overlap, of some that may.

    Args:
        by_tier: annotations by name and speaker.
        taken: sorted spans that tiers hold already, by whole name; None: no annotation can be in a tier of this name.
    """
    tiers: list[Tier] = []
    for (name, speaker), rows in sorted(by_tier.items()):
        possible = (
            suffix
            for k, suffix in enumerate(suffixes(speaker))
            if (taken or {}).get(name + suffix, ()) is not None and not (k and (name + suffix, "") in by_tier)
        )
        layers: list[tuple[Tier, list[Span]]] = []
        for row in sorted(rows, key=lambda row: (row.start, row.end, -row.score, row.text, row.below)):
            place = next((each for each in layers if _fits(each[1], row)), None)
            while place is None:
                suffix = next(possible)
                layers.append((Tier(name, suffix, speaker, []), list((taken or {}).get(name + suffix) or ())))
                place = layers[-1] if _fits(layers[-1][1], row) else None
            place[0].rows.append(row)
            insort(place[1], row[:2])
        tiers += [tier for tier, _ in layers if tier.rows] or [Tier(name, next(possible), speaker, [])]
    return tiers


def suffixes(speaker: str) -> Iterator[str]:
    """What follows the name of a speaker's tier, of a second one, of a third."""
    return (f"{f' ({k})' * (k > 1)}{f'@{speaker}' * bool(speaker)}" for k in count(1))


def _fits(spans: Sequence[Span], row: Row) -> bool:
    """Whether a row overlaps none of some sorted spans."""
    k = bisect_left(spans, row[:2])
    return (k == 0 or spans[k - 1][1] <= row.start) and (k == len(spans) or spans[k][0] >= row.end)


#: Neither XML nor a TextGrid's line can hold them.
FORBIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f\ufffe\uffff]")


class Labelled(NamedTuple):
    """A labelled place of a document: times in s; of equal places of a tier the one with the best score comes first.

    `below` are texts of tiers below, by their names; `speaker` is empty if nobody is known.
    """

    doc_id: str
    channel: int
    tier: str
    start: float
    end: float
    score: float
    text: str
    speaker: str = ""
    below: tuple[tuple[str, str], ...] = ()


#: Gives path (local or a url) and duration (s) of the known recordings among documents, by id and channel.
Recordings = Callable[[Sequence[str]], Mapping[tuple[str, int], tuple[str, float]]]


def write_eaf(material: Material, folder: Path) -> None:
    """Write `eaf/`; see `write_tiers`."""
    write_tiers("eaf", _labelled(material), material.recordings, folder)


def write_textgrid(material: Material, folder: Path) -> None:
    """Write `textgrid/`; see `write_tiers`."""
    write_tiers("textgrid", _labelled(material), material.recordings, folder)


def _labelled(material: Material) -> Iterator[Labelled]:
    names = ("doc_id", "channel", "query_id", "start", "end", "score")
    for batch in shown(material):
        columns = (batch.column(name).to_pylist() for name in names)
        for doc_id, channel, query, start, end, score in zip(*columns, strict=True):
            yield Labelled(doc_id, channel, query, start, end, score, f"{score:.6g}")


def write_tiers(
    export: str,
    places: Iterable[Labelled],
    recordings: Recordings,
    folder: Path,
    *,
    home: Path | None = None,
    base: Callable[[str], Path | None] = lambda path: None,
    refused: Callable[[DataError], None] | None = None,
    date: str = EPOCH,
) -> None:
    """Write the documents with annotations.

    Args:
        export: of `WRITERS`, below whose name in the folder the files are.
        places: in any order.
        recordings: of documents.
        folder: local folder.
        home: where the files will lie; None: nobody knows.
        base: gives the file of ELAN that the tiers of a recording are added to; None: they are alone.
        refused: takes the error of a base that nothing can be added to; the others are written. By default it is raised.
        date: when they were changed last, s, UTC.

    Raises:
        UserError: a text, the name of a tier (a query's id) or of a document's file is not possible.
        DataError: a base is no file of ELAN.
    """
    write, ending = WRITERS[export]
    by_document: dict[tuple[str, int], dict[Key, list[Row]]] = {}
    for doc_id, channel, tier, *times, score, text, speaker, below in places:
        for name in (tier, speaker, *(each.replace("\n", " ") for each in (text, *dict(below).values()))):
            if FORBIDDEN.search(name) or not tier:
                raise families.UNWRITABLE_NAME(
                    (
                        "no tier of {export} can have the name or text {query!r}: it is empty, or holds a "
                        "control character"
                    ),
                    "rename the query or word, or leave {export} out",
                    query=short(name),
                    export=export,
                )
        start, end = (round(1000 * time) for time in times)
        by_tier = by_document.setdefault((doc_id, channel), {})
        by_tier.setdefault((tier, speaker), []).append(Row(start, max(end, start + 1), score, text, below))
    recording_of = recordings(sorted({doc_id for doc_id, _ in by_document})) if by_document else {}
    for key, by_tier in sorted(by_document.items()):
        file = folder / export / label_file(*key, export, ending)
        file.parent.mkdir(parents=True, exist_ok=True)
        path, duration = recording_of.get(key, ("", 0.0))
        last = max(row.end for rows in by_tier.values() for row in rows)
        where = None if home is None else (home / file.relative_to(folder)).parent
        try:
            write(Annotated(file, by_tier, path, max(last, round(1000 * duration)), where, base(path), date))
        except DataError as error:
            if refused is None:
                raise
            refused(error)


def _write_textgrid(document: Annotated) -> None:
    grid = TextGrid(xmin=0.0, xmax=document.end / 1000)
    for tier in layered(document.rows):
        texts = {tier.name: [row.text for row in tier.rows]}
        for name in dict.fromkeys(name for row in tier.rows for name, _ in row.below):
            texts[name] = [dict(row.below).get(name, "") for row in tier.rows]
        for name, column in texts.items():
            written = grid.add_tier(
                (name + tier.suffix).replace('"', '""')
            )  # pympi doubles quotation marks in texts alone
            for row, text in zip(tier.rows, column, strict=True):
                if text or name == tier.name:
                    written.add_interval(row.start / 1000, row.end / 1000, text, check=False)
    grid.to_file(str(document.file))


#: What writes a file of each export, and its ending.
WRITERS: dict[str, tuple[Callable[[Annotated], None], str]] = {
    "eaf": (write_elan, "eaf"),
    "textgrid": (_write_textgrid, "TextGrid"),
}
