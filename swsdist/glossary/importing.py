"""Import words of other programs as tokens: tiers of ELAN and Praat, tables, and whole glossaries.

An annotation's text is the form of its entry, which is made if there is none; a text that ends in `?` is unsure. Of a
file with a tier WORDS (`words`, `words@SPEAKER`, `words (2)@SPEAKER`) only its tiers are read, and annotations in tiers
BELOW at the same times: gloss, variant, note, certainty. A token that exists with the same verdict keeps its values and
takes those it lacks; one that cannot be used is left out. Annotations of a tier CORRECTED are corrections of
transcripts, in ELAN also those without a text. All of a file is one change, which can be undone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from swsdist.core.codes import families
from swsdist.core.codes import server as codes
from swsdist.core.errors import SwsdistError, UserError
from swsdist.glossary import database, words
from swsdist.glossary.database import IMPORT, Row
from swsdist.glossary.exports import BELOW, CORRECTED, LIKE_A_PROJECT, WORDS, Content, fill, read_archive
from swsdist.glossary.project import Project
from swsdist.glossary.words import Document, Place, Places, document_of, documents_beside, lengths_of
from swsdist.io.compressed import short
from swsdist.lattices.collection import TIERED, LatticeFile, tiers_of
from swsdist.lattices.formats import elan, praat, table
from swsdist.lattices.lattice import LeftOut, Origin
from swsdist.lattices.words import Annotations, chosen_of
from swsdist.store.reading import Store

_HEAD = 4096
#: Characters of a reader's fault that are repeated.
_SHOWN = 200
#: Most tokens of one import, which nobody else can change the glossary during.
MOST = 50_000


class Counts(NamedTuple):
    """What an import did: tokens and corrections added, changed and left as they were, new entries; annotations that cannot be
    used, and what is wrong with the first.
    """

    added: int
    changed: int
    skipped: int
    entries: int
    unusable: int = 0
    first: str = ""


class Incoming(NamedTuple):
    """A token that comes in, or a correction.

    Attributes:
        entry: fields of its entry; those besides `form` count where the entry is new. None: it is a correction.
        place: where.
        row: of the token: verdict, score, texts, and maybe person and time; or of the correction: text, and maybe these.
        example: whether a new token is an example.
    """

    entry: Mapping[str, Any] | None
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
    name: str | None = None,
) -> Counts:
    """Take in a file: of ELAN (.eaf), Praat (.TextGrid), a table of annotations, or a glossary's export `project`.

    Args:
        project: the glossary.
        path: local file.
        person: who imports.
        store: whose recordings annotations are of; None: the file's name is the document's id.
        tiers: names of tiers to read; None: those of words and corrections, or if there are none, all whose annotations have
            times of their own.
        examples: search by what is taken in; else new tokens are only known to be true.
        document: id and channel that the annotations are of; None: by the linked recording, or the file's name.
        name: that the file has elsewhere; None: as here.

    Returns:
        the counts.

    Raises:
        UserError: the file is of another kind, or no or several recordings may be meant.
        DataError: it cannot be read, or has no tier of a name.
    """
    path, name = Path(path), name or str(path)
    try:
        with path.open("rb") as opened:
            head = opened.read(_HEAD)
        content, left_out = None, LeftOut()
        if head.lstrip().startswith(LIKE_A_PROJECT):
            content = read_archive(path)
            if project.change == 0:
                return Counts(*fill(project, content, person))
            incoming = [Incoming(*item) for item in content.incoming()]
            for row in content.corrections:
                incoming.append(
                    Incoming(
                        None, database.place_of(row), {name: row[name] for name in ("text", "person", "at")}, False
                    )
                )
        else:
            incoming = list(_of_file(path, head, name, store, tiers or (), examples, document, left_out))
        lengths = {} if store is None else lengths_of(store, {item.place.doc_id for item in incoming})
        counts = take_in(project, incoming, content, person=person, lengths=lengths, left_out=left_out)
        return counts._replace(first=counts.first.replace(str(path), name))
    except SwsdistError as error:
        error.where = error.where and error.where.replace(str(path), name)
        raise


def import_files(
    project: Project,
    files: Mapping[str, LatticeFile],
    *,
    where: str,
    person: str,
    store: Store,
    tiers: Sequence[str] | None = None,
    examples: bool = False,
) -> Counts:
    """Take in files of ELAN, Praat and tables, as one change; each is of the recording that it lies beside, is named after or
    links. A file without a chosen tier is left out, and one that cannot be used counts as unusable.

    Args:
        project, person, tiers, examples: as of `import_file`.
        files: as `swsdist.lattices.collection.files_in` finds them in a folder; local.
        where: they are, for errors.
        store: whose recordings they are of.

    Raises:
        UserError: no file has a chosen tier, or there are too many annotations.
    """
    incoming, left_out, found, names = list[Incoming](), LeftOut(), False, set(tiers or ())
    documents = documents_beside(store)
    for key, file in files.items():
        if file.format not in TIERED:
            continue
        try:
            of_file, _ = tiers_of(file, store.folder)
            there = [tier.name for tier in of_file if tier.name in names]
            if names and not there:
                continue
            path, found = Path(file.path), True
            with path.open("rb") as opened:
                head = opened.read(_HEAD)
            document = documents.get(key)
            incoming += list(_of_file(path, head, file.path, store, there, examples, document, left_out))
        except (SwsdistError, OSError) as error:
            with left_out:
                raise families.MALFORMED_FILE(
                    "the file is left out: {reason}",
                    "mend it, and import it again",
                    where=file.path,
                    reason=getattr(error, "message", str(error)),
                ) from error
    if not found:
        raise families.EMPTY_INPUT(
            "no ELAN file or TextGrid that can be read has such a tier: {tiers}",
            "look at the spelling of the tier, or leave it out",
            where=where,
            tiers=", ".join(sorted(names)) or "any",
        )
    lengths = lengths_of(store, {item.place.doc_id for item in incoming})
    return take_in(project, incoming, person=person, lengths=lengths, left_out=left_out)


def _of_file(
    path: Path,
    head: bytes,
    name: str,
    store: Store | None,
    tiers: Sequence[str],
    examples: bool,
    document: Document | None,
    left_out: LeftOut,
) -> Iterator[Incoming]:
    """What a file of annotations brings."""
    all_tiers, media = _read(str(path), head, name, left_out)
    known = [tier.name for tier in all_tiers if _part(tier.name, WORDS) is not None]
    known += [tier.name for tier in all_tiers if known and _part(tier.name, CORRECTED) is not None]
    chosen = chosen_of(all_tiers, tiers or known, name)
    where = document or document_of(name, media, store)
    below = {tier.name: {row[:2]: row.text.strip() for row in tier.rows} for tier in all_tiers}
    for tier in chosen:
        corrects = _part(tier.name, CORRECTED) is not None
        part = _part(tier.name, WORDS)
        for start, end, text, line in tier.rows:
            texts = {} if part is None else {name: below.get(name + part, {}).get((start, end), "") for name in BELOW}
            form = text.strip()
            verdict = texts.pop("certainty", "").lower()
            unsure = verdict == words.UNSURE if verdict in words.VERDICTS else form.endswith("?") and not corrects
            form = form.removesuffix("?").rstrip() if unsure and verdict not in words.VERDICTS else form
            if not form and not corrects:
                continue
            with left_out:
                if start == end:
                    raise codes.EMPTY_ANNOTATION(where=line, text=short(form), time=start)
                place = Place(*where, start, end)
                if corrects:
                    yield Incoming(None, place, {"text": form}, False)
                    continue
                gloss, speaker = texts.pop("gloss", ""), (part or "").partition("@")[2]
                row = {
                    "verdict": words.UNSURE if unsure else words.YES,
                    "score": None,
                    **dict.fromkeys(database.TEXTS, ""),
                }
                yield Incoming({"form": form, "gloss": gloss}, place, {**row, **texts, "speaker": speaker}, examples)


def _read(path: str, head: bytes, name: str, left_out: LeftOut) -> tuple[list[Annotations], list[str]]:
    """Tiers and linked media of a file that anybody may have written."""
    media: list[str] = []
    try:
        if elan.detect(path, head):
            return elan.annotated(Origin(path, name=name), left_out)
        if praat.detect(path, head):
            tiers = praat.annotated(Origin(path), left_out)  # whose intervals without a text are gaps
            return [tier._replace(rows=[row for row in tier.rows if row.text.strip()]) for tier in tiers], media
        if table.detect(name, head):
            return table.annotated(Origin(path), left_out), media
    except (SwsdistError, OSError):
        raise
    except Exception as error:
        raise families.MALFORMED_FILE(
            "the file cannot be read ({error})",
            "open it in the program that wrote it, and save it again",
            where=name,
            error=f"{type(error).__name__}: {error}"[:_SHOWN],
        ) from error
    raise families.MALFORMED_FILE(
        "neither an ELAN file, nor a TextGrid, nor a table with start, end and text, nor a glossary",
        "give a file .eaf, .TextGrid, .csv or .tsv, or the glossary.json of an export",
        where=name,
    )


def _part(tier: str, name: str) -> str | None:
    """What follows a name in that of a tier: number and speaker; None: it is no such tier."""
    match = re.fullmatch(rf"{name}((?: \([0-9]+\))?(?:@.*)?)", tier, re.DOTALL)
    return match and match[1]


def take_in(
    project: Project,
    incoming: Sequence[Incoming],
    whole: Content | None = None,
    *,
    person: str,
    lengths: Mapping[tuple[str, int], float] | None = None,
    left_out: LeftOut | None = None,
) -> Counts:
    """Write tokens and corrections, as one change.

    Args:
        project: the glossary.
        incoming: the tokens.
        whole: the glossary that they are of, with its sounds, what documents held when they were judged, and was set aside.
        person: who imports.
        lengths: s of documents, where they are known.
        left_out: what a reader could not use, which is counted, too.

    Returns:
        the counts.

    Raises:
        UserError: there are too many.
    """
    for name, data in whole.sounds.values() if whole else ():
        project.add_sound(data, name=name, person=person)
    checked, unusable = list[tuple[Incoming, Row, Place]](), list[UserError]()
    for item in incoming:
        try:
            place = words.place(item.place)
            length = (lengths or {}).get((place.doc_id or "", place.channel))
            row = (
                {"text": words.line("text", item.row["text"])} if item.entry is None else database.entry_row(item.entry)
            )
            texts = {} if item.entry is None else database.token_row({name: item.row[name] for name in database.TEXTS})
            item = item._replace(row={**item.row, **texts})
            checked.append((item, row, words.within(place, length)))
        except UserError as error:
            unusable.append(error)
    if len(checked) > MOST:
        raise families.TOO_LARGE(
            "the file has {count} annotations, more than {most}",
            "take it in by tiers (`swsdist glossary import --tier NAME`), or cut it into several files",
            count=len(checked),
            most=MOST,
        )
    added = changed = skipped = new = 0
    with project.editing(person, IMPORT) as edit:
        entries = edit.connection.execute("SELECT form, entry_id, gloss, speaker FROM entry").fetchall()
        ids, glosses, speakers = (
            {row["form"]: row[name] for row in entries} for name in ("entry_id", "gloss", "speaker")
        )
        tokens: dict[int, Places[Row]] = {}
        for item, row, place in checked:
            if item.entry is None:
                same = database.same_corrections(edit, place)
                if any(each.text == row["text"] for each in same):  # formats round times
                    skipped += 1
                    continue
                database.put_correction(edit, place, {**item.row, **row})
                added, changed = added + (not same), changed + bool(same)
                continue
            if row["form"] not in ids:
                ids[row["form"]] = database.insert_entry(edit, row)
                new += 1
            elif row.get("gloss") and glosses.get(row["form"]) == "":
                database.update_entry(edit, ids[row["form"]], {"gloss": row["gloss"]})
                glosses[row["form"]] = row["gloss"]
            entry_id = ids[row["form"]]
            if entry_id not in tokens:
                tokens[entry_id] = database.placed(edit.tokens(entry_id))
            old = tokens[entry_id].same(place)
            if old is not None and old["verdict"] == item.row["verdict"]:
                lacking = {name: item.row[name] for name in database.TEXTS if item.row[name] and not old[name]}
                if lacking.get("speaker") == speakers.get(row["form"]):
                    lacking.pop("speaker", None)  # it is the entry's
                skipped, changed = skipped + (not lacking), changed + bool(lacking)
                if lacking:
                    edit.update("token", old["token_id"], **lacking)
                    tokens[entry_id].remove(database.place_of(old), old)
                    tokens[entry_id].add(database.place_of(old), {**old, **lacking})
                continue
            number = database.put_token(
                edit, entry_id, place, dict(item.row), item.example if old is None else None, old
            )
            if old is not None:
                tokens[entry_id].remove(database.place_of(old), old)
            new_row = {"token_id": number, "entry_id": entry_id, **place._asdict(), **item.row, "example": item.example}
            tokens[entry_id].add(place, new_row if old is None else database.demand(edit, "token", number))
            added, changed = added + (old is None), changed + (old is not None)
        if whole is not None:
            database.insert_contents(edit, whole.contents)
            for key in sorted({row["key"] for row in whole.asides} - database.aside(edit.connection)):
                edit.insert("aside", {"key": key})
        edit.save(None)
    faults = [*map(str, left_out.errors if left_out else ()), *(error.message for error in unusable)]
    count = len(unusable) + (left_out.count if left_out else 0)
    return Counts(added, changed, skipped, new, count, faults[0] if faults else "")
