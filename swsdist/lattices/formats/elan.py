"""ELAN: the annotations of an `.eaf` file, tier by tier.

- An annotation of several words: each lasts as long as the annotation (`swsdist.lattices.words`).
- A border without a time lies between its neighbours' times: an annotation lasts from the last time before it to the
  next after it.
- Without chosen tiers all whose annotations have times of their own. Of a chosen tier of references (glosses, parts
  of speech) an annotation lasts as long as the one that it refers to.
- An annotation without times, or with impossible ones, is left out.
- Times are those of the recording, ms or video frames (TIME_UNITS): ELAN's zero is at its TIME_ORIGIN. Of several media,
  that of the file's name counts, else the first; of several of that name, one that lies where the file links it, or
  beside the file.

Source: MPI for Psycholinguistics, EAF annotation format (schema EAFv3.0.xsd).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from pathlib import PurePosixPath
from typing import NamedTuple
from urllib.parse import unquote

from swsdist.core.codes import families
from swsdist.core.codes import io as io_codes
from swsdist.core.codes import lattices as codes
from swsdist.core.errors import DataError
from swsdist.io.compressed import short
from swsdist.io.fields import number
from swsdist.io.filesystem import locate
from swsdist.io.nist.xml import elements
from swsdist.lattices.lattice import Lattices, LeftOut, Origin, Word
from swsdist.lattices.words import Annotation, Annotations, key_of, transcribed, words_of_tiers

_ROOT = "ANNOTATION_DOCUMENT"
#: Milliseconds of each unit of times; NTSC has 30000/1001 frames a second.
_UNITS = {"milliseconds": 1.0, "PAL-frames": 1000 / 25, "NTSC-frames": 1001 / 30}
_IDS = ("TIER_ID", "TIME_SLOT_ID", "ANNOTATION_ID")

#: Start and end, ms; None: not aligned, NaN: no number.
_Span = tuple[float | None, float | None]


class _Row(NamedTuple):
    """An annotation: its id, its time slots or the annotation that it refers to, its text and line."""

    key: str
    slots: tuple[str, str] | None
    reference: str
    text: str
    line: int


def read(origin: Origin) -> Lattices:
    """The transcript of an ELAN file; see the module.

    Raises:
        UserError: there is no such file.
    """
    return transcribed(key_of(origin.path), partial(words, origin))


def words(origin: Origin, left_out: LeftOut) -> list[Word]:
    """The words of the tiers.

    Raises:
        UserError: there is no such file.
        DataError: it cannot be read, or has no tier of a chosen name.
    """
    return words_of_tiers(annotated(origin, left_out).tiers, origin.tiers, origin.path)


class Annotated(NamedTuple):
    """Annotations of a file, by tier, and the media that it links: paths and urls as written."""

    tiers: list[Annotations]
    media: list[str]


def annotated(origin: Origin, left_out: LeftOut) -> Annotated:
    """The annotations as written, each tier's in order of time.

    Raises:
        UserError: there is no such file.
        DataError: it cannot be read.
    """
    seen: set[tuple[str, str]] = set()
    slots: dict[str, float | None] = {}
    media: list[tuple[Mapping[str, str], str]] = []
    unit = 1.0
    tiers: list[tuple[str, list[_Row]]] = []
    speakers: list[str] = []
    annotation: Mapping[str, str] = {}
    text = ""
    for k, (name, attributes, content, line, _) in enumerate(elements(origin.path, origin.storage)):
        where = f"{origin.path}, line {line}"
        if k == 0 and name != _ROOT:
            raise io_codes.WRONG_ROOT_ELEMENT(where=where, element=short(name), expected="an ELAN file")
        ids = {item for item in (attributes or {}).items() if item[0] in _IDS}
        if twice := ids & seen:
            error = f"{short(str(*twice))} is there twice"
            raise codes.UNREADABLE_ANNOTATIONS(where=where, program="ELAN", error=error)
        seen |= ids
        if attributes is None:
            if name == "ANNOTATION_VALUE":
                text = content
            elif name in ("ALIGNABLE_ANNOTATION", "REF_ANNOTATION") and tiers:
                aligned = annotation.get("TIME_SLOT_REF1", ""), annotation.get("TIME_SLOT_REF2", "")
                reference = annotation.get("ANNOTATION_REF", "")
                times = aligned if name == "ALIGNABLE_ANNOTATION" else None
                tiers[-1][1].append(_Row(annotation.get("ANNOTATION_ID", ""), times, reference, text, line))
        elif name == "TIME_SLOT":
            slots[attributes.get("TIME_SLOT_ID", "")] = _milliseconds(attributes.get("TIME_VALUE"))
        elif name == "MEDIA_DESCRIPTOR":
            media.append((attributes, where))
        elif name == "HEADER":
            units = attributes.get("TIME_UNITS", "milliseconds")
            if units not in _UNITS:
                error = f"TIME_UNITS is {short(units)!r}, none of {', '.join(_UNITS)}"
                raise codes.UNREADABLE_ANNOTATIONS(where=where, program="ELAN", error=error)
            unit = _UNITS[units]
        elif name == "TIER":
            tiers.append((attributes.get("TIER_ID", ""), []))
            speakers.append(attributes.get("PARTICIPANT", "").strip())
        elif name in ("ALIGNABLE_ANNOTATION", "REF_ANNOTATION"):
            annotation, text = attributes, ""
    zero = _zero(media, origin)
    slots = {slot: None if time is None else zero + unit * time for slot, time in slots.items()}
    links = [link for medium, _ in media for link in _links(medium)]
    timed = _tiers(tiers, slots, origin.path, left_out)
    return Annotated([tier._replace(speaker=name) for tier, name in zip(timed, speakers, strict=True)], links)


def detect(name: str, head: bytes) -> bool:
    """Whether it holds ELAN's outermost element."""
    return f"<{_ROOT}".encode() in head


def _links(medium: Mapping[str, str]) -> list[str]:
    return [link for name in ("MEDIA_URL", "RELATIVE_MEDIA_URL") if (link := medium.get(name))]


def _zero(media: list[tuple[Mapping[str, str], str]], origin: Origin) -> float:
    """Where in the recording ELAN's zero is, ms.

    Raises:
        DataError: its medium's TIME_ORIGIN is no number.
    """
    named = [
        medium for medium in media if key_of(origin.name or origin.path) in map(key_of, map(unquote, _links(medium[0])))
    ]
    existing = [medium for medium in named if len(named) > 1 and _is_there(medium[0], origin)]
    existing.sort(key=lambda medium: PurePosixPath(_links(medium[0])[0]).suffix)  # a corpus takes the last ending, too
    medium, where = [*existing[-1:], *named, *media, ({}, "")][0]
    zero = _milliseconds(medium.get("TIME_ORIGIN", "0"))
    if zero is None or math.isnan(zero):
        error = f"TIME_ORIGIN is {short(medium['TIME_ORIGIN'])!r}, no number"
        raise codes.UNREADABLE_ANNOTATIONS(where=where, program="ELAN", error=error)
    return zero


def _is_there(medium: Mapping[str, str], origin: Origin) -> bool:
    """Whether a medium lies where the file links it, relative to itself, or beside it."""
    folder, _ = locate(origin.path, origin.storage)
    links = [unquote(link).replace("\\", "/") for link in _links(medium)]
    names = {PurePosixPath(link).name for link in links} | {link for link in links if link.startswith(".")}
    try:
        return any(folder.exists(name) for name in names if name)
    except OSError:  # no name of a file
        return False


def _milliseconds(text: str | None) -> float | None:
    try:
        return None if text is None else number(text, "time", "")
    except DataError:
        return math.nan


def _tiers(
    rows_by_tier: list[tuple[str, list[_Row]]], slots: Mapping[str, float | None], path: str, left_out: LeftOut
) -> list[Annotations]:
    aligned_spans: list[list[_Span | None]] = []
    spans: dict[str, _Span] = {}
    referred: dict[str, str] = {}
    for _, rows in rows_by_tier:
        pairs = [row.slots for row in rows if row.slots]
        earlier, later = {end: start for start, end in pairs}, dict(pairs)
        aligned_spans.append(
            [
                (_time(row.slots[0], slots, earlier), _time(row.slots[1], slots, later)) if row.slots else None
                for row in rows
            ]
        )
        spans |= {row.key: span for row, span in zip(rows, aligned_spans[-1], strict=True) if span}
        referred |= {row.key: row.reference for row in rows if not row.slots}
    tiers = []
    for (name, rows), aligned in zip(rows_by_tier, aligned_spans, strict=True):
        timed = []
        for row, span in zip(rows, aligned, strict=True):
            with left_out:
                where = f"{path}, line {row.line}, tier {short(name)!r}"
                start, end = span or _span(row.reference, spans, referred)
                if start is None or end is None:
                    raise families.MISSING_TIMES(
                        "annotation {annotation} of tier {tier!r} depends on none that has times",
                        "open it in ELAN, and align it",
                        where=where,
                        annotation=short(row.key),
                        tier=short(name),
                    )
                timed.append(Annotation(start / 1000, end / 1000, row.text, where).checked())
        timed.sort(key=lambda item: item.start)
        tiers.append(Annotations(name, any(row.slots for row in rows), timed))
    return tiers


def _span(annotation: str, spans: Mapping[str, _Span], referred: Mapping[str, str]) -> _Span:
    """Start and end of an annotation: its own, or those of the one that it refers to."""
    seen = set()
    while annotation not in spans and annotation in referred and annotation not in seen:
        seen.add(annotation)
        annotation = referred[annotation]
    return spans.get(annotation, (None, None))


def _time(slot: str, slots: Mapping[str, float | None], beyond: Mapping[str, str]) -> float | None:
    """Time of a slot, or of the first beyond it that has some, ms; None if there is none."""
    seen = set()
    while slots.get(slot) is None and slot in beyond and slot not in seen:
        seen.add(slot)
        slot = beyond[slot]
    return slots.get(slot)
