"""ELAN: the annotations of an `.eaf` file, tier by tier.

- An annotation of several words: each lasts as long as the annotation (`swsdist.lattices.words`).
- A border without a time lies between its neighbours' times: an annotation lasts from the last time before it to the
  next after it.
- Without chosen tiers all whose annotations have times of their own. Of a chosen tier of references (glosses, parts
  of speech) an annotation lasts as long as the one that it refers to.
- Times are those of the recording: ELAN's zero is at its TIME_ORIGIN. Of several media, that of the file's name counts,
  else the first.

pympi reads the file, after a check that it is well-formed and declares no entities. Its ways to follow references and
unaligned borders are not used: they fail on references to subdivided annotations, and do not end on circles.

Source: MPI for Psycholinguistics, EAF annotation format (schema EAFv3.0.xsd).
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from typing import Any, NamedTuple

from pympi import Eaf

from swsdist.core.codes import io as io_codes
from swsdist.core.codes import lattices as codes
from swsdist.io.compressed import read_all, short
from swsdist.io.nist.xml import elements
from swsdist.io.remote.scratch import scratch
from swsdist.lattices.lattice import Lattices, Origin, Word
from swsdist.lattices.words import Annotation, Annotations, key_of, transcribed, words_of_tiers

_ROOT = "ANNOTATION_DOCUMENT"

#: Start and end, ms; None: not aligned.
_Span = tuple[int | None, int | None]


def read(origin: Origin) -> Lattices:
    """The transcript of an ELAN file; see the module.

    Raises:
        UserError: there is no such file.
    """
    return transcribed(key_of(origin.path), lambda: words(origin))


def words(origin: Origin) -> list[Word]:
    """The words of the tiers.

    Raises:
        UserError: there is no such file.
        DataError: it cannot be read, or has no tier of a chosen name.
    """
    tiers = [tier.tier() for tier in annotated(origin).tiers]
    return words_of_tiers(tiers, origin.tiers, origin.path)


class Annotated(NamedTuple):
    """Annotations of a file, by tier, and the media that it links: paths and urls as written."""

    tiers: list[Annotations]
    media: list[str]


def annotated(origin: Origin) -> Annotated:
    """The annotations as written, each tier's in order of time.

    Raises:
        UserError: there is no such file.
        DataError: it cannot be read.
    """
    document, zero = _document(origin)
    return Annotated(
        _tiers(document, zero, origin.path), [link for medium in document.media_descriptors for link in _links(medium)]
    )


def detect(name: str, head: bytes) -> bool:
    """Whether it holds ELAN's outermost element."""
    return f"<{_ROOT}".encode() in head


def _links(medium: Mapping[str, str]) -> list[str]:
    return [link for name in ("MEDIA_URL", "RELATIVE_MEDIA_URL") if (link := medium.get(name))]


def _zero(document: Any, path: str) -> int:
    """Time of the recording at ELAN's zero, ms."""
    media = document.media_descriptors
    named = [medium for medium in media if key_of(path) in map(key_of, _links(medium))]
    return int(([*named, *media, {}])[0].get("TIME_ORIGIN", 0))


def _document(origin: Origin) -> tuple[Any, int]:
    """The file, and its `_zero`."""
    for k, element in enumerate(elements(origin.path, origin.storage)):
        if k == 0 and element.name != _ROOT:
            raise io_codes.WRONG_ROOT_ELEMENT(
                where=f"{origin.path}, line {element.line}", element=short(element.name), expected="an ELAN file"
            )
    with tempfile.NamedTemporaryFile(dir=scratch(), suffix=".eaf") as file:  # pympi reads no streams
        file.write(read_all(origin.path, storage=origin.storage))
        file.flush()
        try:
            document = Eaf(file.name, suppress_version_warning=True)
            return document, _zero(document, origin.path)
        except Exception as error:
            raise codes.UNREADABLE_ANNOTATIONS(where=origin.path, program="ELAN", error=short(repr(error))) from error


def _tiers(document: Any, zero: int, path: str) -> list[Annotations]:
    spans: dict[str, _Span] = {}
    referred: dict[str, str] = {}
    for aligned, references, *_ in document.tiers.values():
        earlier = {end: start for start, end, *_ in aligned.values()}
        later = {start: end for start, end, *_ in aligned.values()}
        for annotation, (start, end, *_) in aligned.items():
            spans[annotation] = (_time(start, document.timeslots, earlier), _time(end, document.timeslots, later))
        referred |= {annotation: reference[0] for annotation, reference in references.items()}
    tiers = []
    for name, (aligned, references, *_) in sorted(document.tiers.items(), key=lambda item: item[1][3]):
        texts = {annotation: text for annotation, (_, _, text, _) in aligned.items()}
        texts |= {annotation: text for annotation, (_, text, *_) in references.items()}
        timed = []
        for annotation, text in texts.items():
            where = f"{path}, tier {short(name)!r}, annotation {short(annotation)}"
            start, end = _span(annotation, spans, referred)
            if start is None or end is None:
                raise codes.UNALIGNED_ANNOTATION(where=where, annotation=short(annotation), tier=short(name))
            timed.append(Annotation((zero + start) / 1000, (zero + end) / 1000, text, where))
        timed.sort(key=lambda item: item.start)
        tiers.append(Annotations(name, bool(aligned), timed))
    return tiers


def _span(annotation: str, spans: Mapping[str, _Span], referred: Mapping[str, str]) -> _Span:
    """Start and end of an annotation: its own, or those of the one that it refers to."""
    seen = set()
    while annotation not in spans and annotation in referred and annotation not in seen:
        seen.add(annotation)
        annotation = referred[annotation]
    return spans.get(annotation, (None, None))


def _time(slot: str, slots: Mapping[str, int | None], beyond: Mapping[str, str]) -> int | None:
    """Time of a slot, or of the first beyond it that has some, ms; None if there is none."""
    seen = set()
    while slots.get(slot) is None and slot in beyond and slot not in seen:
        seen.add(slot)
        slot = beyond[slot]
    return slots.get(slot)
