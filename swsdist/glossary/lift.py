"""LIFT 0.13, which FLEx and other dictionary programs import: an entry for each word, its gloss, and its examples' sounds.

A sound is a `pronunciation` that names a file of the folder `audio/` beside, where FLEx looks. A note says where each place
judged `yes` is. Ids are those of the glossary, so that a second import changes entries instead of adding them.

Source: SIL, LIFT standard 0.13 (lift-0.13.rng).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import NamedTuple
from uuid import UUID, uuid5
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from swsdist.core.codes import glossary as codes
from swsdist.glossary.words import YES, Entry, Token

#: Folder of sounds.
AUDIO = "audio"
#: A tag begins with a code of ISO 639, of two or three letters.
_TAG = re.compile("[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*")
_OURS = UUID("7d3f0c52-8d3b-4b1e-9c7a-6a1f3c1f7e10")


class Languages(NamedTuple):
    """Language tags (BCP 47) of forms, and of glosses and notes; `und`: not known."""

    forms: str = "und"
    glosses: str = "en"


def lift(
    entries: Iterable[tuple[Entry, Sequence[Token]]],
    sounds: Mapping[int, str],
    languages: Languages,
    project: str,
    modified: Mapping[int, str],
) -> bytes:
    """A file of LIFT.

    Args:
        entries: with all their tokens.
        sounds: names of files by token.
        languages: tags.
        project: what no other glossary is called.
        modified: when entries changed last; FLEx leaves an entry as it is whose time is that of its last import.

    Raises:
        UserError: a tag is none.
    """
    for tag in languages:
        if not _TAG.fullmatch(tag):
            raise codes.NO_LANGUAGE_TAG(where="language", tag=tag)
    root = Element("lift", {"version": "0.13", "producer": f"swsdist {version('swsdist')}"})
    for entry, tokens in entries:
        guid = str(uuid5(_OURS, f"{project}\n{entry.entry_id}"))
        times = {"dateModified": f"{modified[entry.entry_id][:19]}Z"} if entry.entry_id in modified else {}
        word = SubElement(root, "entry", {"id": f"{entry.form}_{guid}", "guid": guid, **times})
        _form(SubElement(word, "lexical-unit"), languages.forms, entry.form)
        for token in tokens:
            if token.token_id in sounds:
                spoken = SubElement(word, "pronunciation")
                if token.variant:
                    _form(spoken, languages.forms, token.variant)
                media = SubElement(spoken, "media", {"href": sounds[token.token_id]})
                _form(SubElement(media, "label"), languages.glosses, _where(token))
        for variant in entry.variants:
            _form(SubElement(word, "variant"), languages.forms, variant)
        if entry.gloss:
            sense = SubElement(word, "sense", {"id": str(uuid5(_OURS, f"{project}\n{entry.entry_id}\nsense"))})
            _form(sense, languages.glosses, entry.gloss, "gloss")
        spoken_by = f"Speaker: {entry.speaker}" if entry.speaker else ""
        lines = [entry.note, spoken_by, *(_where(token) for token in tokens if token.verdict == YES)]
        if any(lines):
            _form(SubElement(word, "note"), languages.glosses, "\n".join(filter(None, lines)))
    ElementTree.indent(root)
    text: bytes = ElementTree.tostring(root, encoding="UTF-8", xml_declaration=True)
    return text + b"\n"


def _where(token: Token) -> str:
    place = token.place
    minutes, seconds = divmod(place.start, 60)
    channel = f", channel {place.channel}" if place.channel > 1 else ""
    texts = "; ".join(filter(None, (token.speaker, " ".join(token.note.split()))))
    where = "recorded as an example" if place.doc_id is None else f"{place.doc_id}{channel}"
    return f"{where}, {int(minutes)}:{seconds:05.2f}, {place.end - place.start:.2f} s{f' ({texts})' if texts else ''}"


def _form(parent: Element, language: str, text: str, name: str = "form") -> None:
    SubElement(SubElement(parent, name, {"lang": language}), "text").text = text
