"""What other programs know of words: tiers of ELAN and Praat, and whole glossaries, become tokens.

An annotation's text is the form of its entry, which is made if there is none; a text that ends in `?` is unsure. A token that
is there with the same verdict stays as it is. All of a file is one change, which can be taken back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from swsdist.core.codes import glossary as codes
from swsdist.glossary import rows, words
from swsdist.glossary.archive import LIKE_A_PROJECT, fill, read_archive
from swsdist.glossary.changes import Edit, Row
from swsdist.glossary.documents import document_of
from swsdist.glossary.project import Project
from swsdist.glossary.words import Place
from swsdist.lattices.formats import elan, praat
from swsdist.lattices.lattice import Origin
from swsdist.lattices.words import Annotations, chosen_of
from swsdist.store.reading import Store

_HEAD = 4096


class Counts(NamedTuple):
    """What an import did: tokens added, changed and left as they were, and new entries."""

    added: int
    changed: int
    skipped: int
    entries: int

    def as_json(self) -> dict[str, int]:
        """The values by name."""
        return self._asdict()


class Incoming(NamedTuple):
    """A token that comes in.

    Attributes:
        entry: fields of its entry; those besides `form` count where the entry is new.
        place: where.
        row: of the token: verdict, score, texts, and maybe person and time.
        example: whether a new token is an example.
    """

    entry: Mapping[str, Any]
    place: Place
    row: Mapping[str, Any]
    example: bool


def import_file(
    project: Project,
    path: str | Path,
    *,
    person: str,
    store: Store | None,
    tiers: Sequence[str] | None = None,
    examples: bool = False,
    document: tuple[str, int] | None = None,
) -> Counts:
    """Take in a file: of ELAN (.eaf), Praat (.TextGrid), or a glossary's export `project`.

    Args:
        project: the glossary.
        path: local file.
        person: who imports.
        store: whose recordings annotations are of; None: the file's name is the document's id.
        tiers: names of tiers to read; None: all whose annotations have times of their own.
        examples: search by what is taken in; else new tokens are only known to be true.
        document: id and channel that the annotations are of; None: by the linked recording, or the file's name.

    Returns:
        the counts.

    Raises:
        UserError: the file is of another kind, or no or several recordings may be meant.
        DataError: it cannot be read, or has no tier of a name.
    """
    name = str(path)
    with Path(path).open("rb") as opened:
        head = opened.read(_HEAD)
    if head.lstrip().startswith(LIKE_A_PROJECT):
        content = read_archive(Path(path))
        if project.change == 0:
            return Counts(*fill(project, content))
        incoming = [Incoming(*item) for item in content.incoming()]
        return take_in(project, incoming, person=person, sounds=content.sounds, contents=content.contents)
    media: list[str] = []
    if elan.detect(name, head):
        known, media = elan.annotated(Origin(name))
    elif praat.detect(name, head):
        known = praat.annotated(Origin(name))
    else:
        raise codes.UNKNOWN_IMPORT(where=name)
    chosen = [tier for tier, read in zip(known, chosen_of(known, tiers or (), name), strict=True) if read]
    where = document or document_of(name, media, store)
    return take_in(project, list(_annotated(chosen, *where, examples)), person=person)


def _annotated(tiers: Iterable[Annotations], doc_id: str, channel: int, examples: bool) -> Iterable[Incoming]:
    for tier in tiers:
        for start, end, text, _ in tier.rows:
            form = text.strip()
            unsure = form.endswith("?")
            form = form.removesuffix("?").rstrip() if unsure else form
            if not form or not start < end:  # a stretch without text, or a point
                continue
            row = {"verdict": words.UNSURE if unsure else words.YES, "score": None, **dict.fromkeys(rows.TEXTS, "")}
            yield Incoming({"form": form}, Place(doc_id, channel, start, end), row, examples)


def take_in(
    project: Project,
    incoming: Sequence[Incoming],
    *,
    person: str,
    sounds: Mapping[str, tuple[str, bytes]] | None = None,
    contents: Sequence[Row] = (),
) -> Counts:
    """Write tokens, as one change.

    Args:
        project: the glossary.
        incoming: the tokens.
        person: who imports.
        sounds: name and WAV by sha256, of tokens in sounds.
        contents: what documents held when they were judged.

    Returns:
        the counts.

    Raises:
        UserError: a text or a place is not possible.
    """
    for name, data in (sounds or {}).values():
        project.add_sound(data, name=name, person=person)
    added = changed = skipped = new = 0
    with project.editing(person, "import") as edit:
        known = _forms(edit)
        for item in incoming:
            row = rows.entry_row(item.entry)
            if row["form"] not in known:
                known[row["form"]] = rows.insert_entry(
                    edit, {**dict.fromkeys(rows.ENTRY_TEXTS, ""), "variants": "[]", **row}
                )
                new += 1
            entry_id, place = known[row["form"]], words.place(item.place)
            old = rows.overlapping(edit, entry_id, place)
            if old is not None and old["verdict"] == item.row["verdict"]:
                skipped += 1
                continue
            rows.put_token(edit, entry_id, place, dict(item.row), item.example if old is None else None)
            added, changed = added + (old is None), changed + (old is not None)
        rows.insert_contents(edit, contents)
        edit.save(None)
    return Counts(added, changed, skipped, new)


def _forms(edit: Edit) -> dict[str, int]:
    return {row["form"]: row["entry_id"] for row in edit.connection.execute("SELECT form, entry_id FROM entry")}
