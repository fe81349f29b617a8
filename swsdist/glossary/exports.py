"""A glossary for other programs: ELAN, Praat, Audacity, FLEx, tables, clips, a page to print, and the whole project.

Annotations and labels are the places judged `yes` and those judged `unsure`. In ELAN and Praat a tier WORDS for each
speaker has them, and tiers below (BELOW) other information about the place; the text of a label that is unsure ends in
` ?`. Clips are places judged `yes`. Corrections of transcripts are annotations of a tier CORRECTED, where all entries
are exported.

LIFT 0.13, which FLEx and other dictionary programs import, has an entry for each word, its gloss, and its examples'
sounds. A sound is a `pronunciation` that names a file of the folder `audio/` beside, where FLEx looks. A note gives the
places judged `yes`. Ids are those of the glossary, so that a second import changes entries instead of adding them.

The whole project is a folder for a colleague, which `swsdist serve FOLDER` opens::

    words/       the project, with all changes; no tokens and passwords
    store/       the current state of the store: it is searched without the recordings
    README.txt   how to use it

Source: SIL, LIFT standard 0.13 (lift-0.13.rng).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import shutil
import sqlite3
import tempfile
import zipfile
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID, uuid5
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

import pyarrow as pa

from swsdist.audio.reader import MARKER, write_clip
from swsdist.core.codes import families
from swsdist.core.codes import server as codes
from swsdist.core.errors import AudioError, DataError, UserError
from swsdist.core.fingerprint import parse_json
from swsdist.core.types import CORPUS, DETECTIONS, JUDGEMENTS, QUERIES, REFERENCES, columns
from swsdist.exports.lists import clip_name, write_labels
from swsdist.exports.tiers import EPOCH, WRITERS, Labelled, write_tiers
from swsdist.glossary import database, words
from swsdist.glossary.database import IMPORT, UNDO, Row, keep_as_history
from swsdist.glossary.project import KeptSounds, Project, is_missing
from swsdist.glossary.words import YES, Correction, Entry, Place, Token, replaced
from swsdist.io.filesystem import Folder, is_remote
from swsdist.io.notices import Notices
from swsdist.io.tables import read_table, write_csv
from swsdist.lattices.collection import name_of
from swsdist.report.summary import rendered
from swsdist.store.manifest import NAME, load, require, state_name
from swsdist.store.manifest import WORDS as FORM_WORDS
from swsdist.store.reading import Store

SCHEMA = "swsdist-glossary/1"

#: What such a file begins with.
LIKE_A_PROJECT = b"{"

_CHANGE = ("change_id", "at", "person", "kind", "entry_id", "before", "after", "undoes")
_CORRECTION = ("correction_id", "doc_id", "channel", "start", "end", "text", "person", "at")
_TOKEN = ("token_id", "entry_id", *Place._fields, "verdict", "example", "score", *database.TEXTS, "person", "at")


class Content(NamedTuple):
    """The content of a file, checked.

    Attributes:
        entries, tokens, corrections, asides: rows.
        changes: rows; `before` and `after` are JSON.
        sounds: name and WAV by sha256.
        of_sounds: person and time by sha256.
        contents: rows of what documents held when they were judged.
    """

    entries: list[Row]
    tokens: list[Row]
    changes: list[Row]
    sounds: dict[str, tuple[str, bytes]]
    of_sounds: dict[str, tuple[str, str]]
    contents: list[Row]
    corrections: list[Row]
    asides: list[Row]

    def incoming(self) -> Iterator[tuple[Row, Place, Row, bool]]:
        """Each token: fields of its entry, its place, its own columns, and whether it is an example."""
        fields = {
            row["entry_id"]: {
                **{name: row[name] for name in database.ENTRY_TEXTS},
                "variants": json.loads(row["variants"]),
            }
            for row in self.entries
        }
        for row in self.tokens:
            columns = {name: row[name] for name in ("verdict", "score", *database.TEXTS, "person", "at")}
            yield fields[row["entry_id"]], database.place_of(row), columns, bool(row["example"])


def as_json(project: Project) -> dict[str, Any]:
    """Everything in a project: its rows, changes and sounds."""
    with project.reading() as connection:
        tables = {
            "entries" if name == "entry" else f"{name}s": [
                dict(row) for row in connection.execute(f"SELECT * FROM {name} ORDER BY 1")
            ]
            for name in ("entry", "token", "change", "sound", "content", "correction", "aside")
        }
    for row in tables["sounds"]:
        row["data"] = base64.b64encode((project.folder / "sounds" / f"{row['sound']}.wav").read_bytes()).decode("ascii")
    for row in tables["entries"]:
        row["variants"] = json.loads(row["variants"])
    for row in tables["changes"]:
        row |= {name: json.loads(row[name]) for name in ("before", "after") if row[name] is not None}
    return {"schema": SCHEMA, **tables}


def read_archive(path: Path) -> Content:
    """The content of a file that `as_json` made.

    Raises:
        DataError: it is none, or a value in it is not possible.
    """
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict) or content.get("schema") != SCHEMA:
            raise ValueError(f"its schema is not {SCHEMA}")
        sounds, of_sounds = {}, {}
        for row in content["sounds"]:
            data = base64.b64decode(row["data"], validate=True)
            if hashlib.sha256(data).hexdigest() != row["sound"]:
                raise ValueError("a sound is damaged")
            sounds[row["sound"]] = (words.line("name", row["name"]), data)
            of_sounds[row["sound"]] = (words.line("person", row["person"]), words.line("at", row["at"]))
        entries = [_entry({**row, "variants": json.dumps(row["variants"])}) for row in content["entries"]]
        tokens = [_token(row) for row in content["tokens"]]
        changes = [_change(row) for row in content["changes"]]
        contents = [_content(row) for row in content.get("contents", ())]  # earlier files have none
        corrections = [_correction(row) for row in content.get("corrections", ())]
        asides = [_aside(row) for row in content.get("asides", ())]
    except (ValueError, TypeError, KeyError, AttributeError, binascii.Error, RecursionError) as error:
        raise codes.NOT_A_GLOSSARY_FILE(where=str(path), error=error) from None
    except (UserError, DataError) as error:
        raise codes.NOT_A_GLOSSARY_FILE(where=str(path), error=error.message) from None
    entry_ids = {row["entry_id"] for row in entries}
    if strange := [row["token_id"] for row in tokens if row["entry_id"] not in entry_ids]:
        raise codes.NOT_A_GLOSSARY_FILE(where=str(path), error=f"token {strange[0]} has no entry")
    return Content(entries, tokens, changes, sounds, of_sounds, contents, corrections, asides)


def fill(project: Project, content: Content, person: str) -> tuple[int, int, int, int]:
    """Fill an empty project, with ids, changes, persons and times as they were; gives the counts of an import.

    All is one change of the person who imports. The changes that come along are history, which nobody takes back here.
    """
    tables = [(table, side, getattr(content, side)) for table, (side, _) in database.TABLES.items()]
    for sha256, (name, data) in content.sounds.items():
        project.add_sound(data, name=name, person=content.of_sounds[sha256][0])
    with project.editing(person, IMPORT) as edit:
        for sha256, (person, at) in content.of_sounds.items():
            edit.connection.execute("UPDATE sound SET person = ?, at = ? WHERE sound = ?", (person, at, sha256))
        columns = ", ".join(f":{name}" for name in _CHANGE)
        try:
            edit.connection.executemany(f"INSERT INTO change VALUES ({columns})", content.changes)
            for table, _, some in tables:
                for row in some:
                    edit.insert(table, row)
        except sqlite3.IntegrityError as error:
            raise codes.NOT_A_GLOSSARY_FILE(where="glossary.json", error=str(error)) from None
        keep_as_history(edit.connection)
        edit.save(None)
        database.insert_contents(edit, content.contents)
        for table, side, some in tables:
            # No id of a removed row is used again.
            ids = [
                int(number) for row in content.changes for rows_of in _sides(row) for number in rows_of.get(side, ())
            ]
            ids += [row[f"{table}_id"] for row in some]
            edit.connection.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
            edit.connection.execute("INSERT INTO sqlite_sequence VALUES (?, ?)", (table, max(ids, default=0)))
    return len(content.tokens) + len(content.corrections), 0, 0, len(content.entries)


def _sides(change: Row) -> Iterator[dict[str, Any]]:
    yield from (json.loads(change[name]) for name in ("before", "after") if change[name] is not None)


def _number(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 2**62:
        raise ValueError(f"{value!r} is no id")
    return value


def _entry(row: Mapping[str, Any]) -> Row:
    """An entry's row; `variants` is JSON."""
    fields = {**{name: row[name] for name in database.ENTRY_TEXTS}, "variants": json.loads(row["variants"])}
    return {"entry_id": _number(row["entry_id"]), **database.entry_row(fields)}


def _token(row: Mapping[str, Any]) -> Row:
    place = words.place({name: row[name] for name in Place._fields})
    fields = database.token_row({name: row[name] for name in ("verdict", "example", *database.TEXTS)})
    fields["score"] = database.score_of(row["score"])
    by = {name: words.line(name, row[name]) for name in ("person", "at")}
    ids = {name: _number(row[name]) for name in ("token_id", "entry_id")}
    values = {**ids, **place._asdict(), **fields, **by}
    return {name: values[name] for name in _TOKEN}


def _correction(row: Mapping[str, Any]) -> Row:
    place = words.place({name: row[name] for name in ("doc_id", "channel", "start", "end")})
    if place.doc_id is None:
        raise ValueError("a correction names no document")
    texts = {name: words.line(name, row[name]) for name in ("text", "person", "at")}
    values = {"correction_id": _number(row["correction_id"]), **place._asdict(), **texts}
    return {name: values[name] for name in _CORRECTION}


def _aside(row: Mapping[str, Any]) -> Row:
    return {"aside_id": _number(row["aside_id"]), "key": words.line("key", row["key"], empty=False)}


def _content(row: Mapping[str, Any]) -> Row:
    place = words.place({"doc_id": row["doc_id"], "channel": row["channel"], "start": 0, "end": 1})
    texts = {name: words.line(name, row[name], empty=False) for name in ("at", "content")}
    return {"doc_id": place.doc_id, "channel": place.channel, **texts}


def _change(row: Mapping[str, Any]) -> Row:
    checks = {"entries": _entry, "tokens": _token, "corrections": _correction, "asides": _aside}
    result: Row = {"change_id": _number(row["change_id"])}
    result |= {name: words.line(name, row[name]) for name in ("at", "person", "kind")}
    result |= {name: None if row[name] is None else _number(row[name]) for name in ("entry_id", "undoes")}
    if (result["kind"] == UNDO) != (result["undoes"] is not None):
        raise ValueError("a change is wrong")
    for side in ("before", "after"):
        result[side] = None
        if row[side] is not None:
            rows_of = {
                name: {str(int(number)): checks[name](item) for number, item in some.items()}
                for name, some in row[side].items()
            }
            result[side] = json.dumps(rows_of, ensure_ascii=False)
    return {name: result[name] for name in _CHANGE}


#: Folder of sounds.
AUDIO = "audio"
#: A tag begins with a code of ISO 639, of two or three letters.
_TAG = re.compile("[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*")
_OURS = UUID("7d3f0c52-8d3b-4b1e-9c7a-6a1f3c1f7e10")


class Languages(NamedTuple):
    """Language tags (BCP 47) of forms, and of glosses and notes; `und`: not known."""

    forms: str = "und"
    glosses: str = "en"


def _where(token: Token) -> str:
    place = token.place
    minutes, seconds = divmod(place.start, 60)
    channel = f", channel {place.channel}" if place.channel > 1 else ""
    texts = "; ".join(filter(None, (token.speaker, " ".join(token.note.split()))))
    where = "recorded as an example" if place.doc_id is None else f"{place.doc_id}{channel}"
    return f"{where}, {int(minutes)}:{seconds:05.2f}, {place.end - place.start:.2f} s{f' ({texts})' if texts else ''}"


def _form(parent: Element, language: str, text: str, name: str = "form") -> None:
    SubElement(SubElement(parent, name, {"lang": language}), "text").text = text


#: File that lists what is not in the others.
LEFT_OUT = "left-out.txt"

#: Follows the form of a token that is unsure, in a label.
UNSURE = " ?"

#: Tier of the forms of entries, and of corrections.
WORDS, CORRECTED = "words", "corrected text"
#: Tiers below that of forms: the entry's gloss, the token's variant and note, and its verdict where it is not plainly `yes`.
BELOW = ("gloss", "variant", "note", "certainty")

_CONFIG = """\
# What was judged, as a corpus: `swsdist run config.yaml` searches the examples, and scores what is found by the judgements.
run: run
corpus:
  documents: documents.csv
  queries: queries.csv
  references: judgements.csv
  examples: all
"""

_ENTRIES = columns(
    "entry_id int64?, form string?, gloss string?, variants string?, speaker string?, note string?, yes int64?, no int64?, "
    "unsure int64?, examples int64?"
)
_TOKENS = columns(
    "token_id int64?, entry_id int64?, form string?, gloss string?, verdict string?, example bool?, doc_id string?, "
    "channel int32?, start float64?, end float64?, sound string?, path string?, score float64?, variant string?, "
    "speaker string?, note string?, person string?, at string?"
)
_CORRECTIONS = columns(
    "correction_id int64?, doc_id string?, channel int32?, start float64?, end float64?, text string?, person string?, "
    "at string?"
)


class Chosen(NamedTuple):
    """What is exported.

    Attributes:
        project: the glossary.
        entries: chosen ones, by form, each with its tokens.
        corrections: of transcripts; none where entries are chosen.
        store: where recordings are known; None: nowhere.
        home: folder of the files.
        speakers: of recordings that have one, by name and channel; none where tiers go into a file that has its own.
        base: gives the file of ELAN that a recording's tiers are added to.
        refused: takes the error of one that nothing can be added to.
        languages: of forms and glosses.
        notices: takes what is left out.
        left_out: lines on it.
    """

    project: Project
    entries: Sequence[tuple[Entry, Sequence[Token]]]
    corrections: Sequence[Correction]
    store: Store | None
    home: Path | None
    speakers: Mapping[tuple[str, int], str]
    base: Callable[[str], Path | None]
    refused: Callable[[DataError], None]
    languages: Languages
    notices: Notices
    left_out: list[str]

    def recordings(self, names: Sequence[str]) -> Mapping[tuple[str, int], tuple[str, float]]:
        """Path and duration (s) of known recordings among documents, by id and channel."""
        return {} if self.store is None else self.store.recordings(names)

    @property
    def changed(self) -> str:
        """When the glossary was changed last, s, UTC."""
        last = self.project.changes(self.project.change - 1, 1)
        return last[0].at[:19] if last else EPOCH

    def tokens(self, *verdicts: str) -> Iterator[tuple[Entry, Token]]:
        """Tokens of these verdicts in documents, by entry."""
        for entry, tokens in self.entries:
            yield from (
                (entry, token) for token in tokens if token.verdict in verdicts and token.place.doc_id is not None
            )


def write_export(
    project: Project,
    kind: str,
    folder: Path,
    *,
    store: Store | None,
    entry_ids: Collection[int] | None = None,
    into: bool = False,
    template: Path | None = None,
    languages: Languages | None = None,
    sent: bool = False,
    notices: Notices | None = None,
) -> list[Path]:
    """Write a glossary in a format.

    Args:
        project: the glossary.
        kind: one of EXPORTS.
        folder: local; made if missing.
        store: where the recordings are known; None: files name none, and there are no clips.
        entry_ids: of chosen entries; None: all. The kind `project` is always whole.
        into: of `eaf`: add the tiers to a copy of the file of ELAN beside the recording, where there is one.
        template: of `eaf`: a file of ELAN with the tiers, types and vocabularies of a new file.
        languages: of `lift`.
        sent: the files will lie elsewhere than in the folder.
        notices: takes how many clips could not be cut, and how many tokens' recordings were replaced.

    Returns:
        the files, sorted; those of an earlier export of the same names are replaced.

    Raises:
        UserError: there is no such kind or entry, or a form or document's id cannot be written in the format.
    """
    if kind not in _WRITERS:
        raise families.UNKNOWN_NAME(
            "a glossary has no export {kind!r}", "its exports are: {kinds}", kind=kind, kinds=", ".join(_WRITERS)
        )
    if entry_ids is None:
        entries = project.entries()
    else:
        entries = [project.entry(entry_id) for entry_id in dict.fromkeys(entry_ids)]
    with_tokens = [(entry, project.tokens(entry.entry_id)) for entry in entries]
    corrections = project.corrections() if entry_ids is None and kind in _CORRECTING else []
    notices, left_out = notices or Notices(), list[str]()
    if store is not None and kind in _OF_SOUND:
        gone = replaced([token for _, tokens in with_tokens for token in tokens], store)
        wrong = replaced(corrections, store)
        if gone or wrong:
            notices.add(
                families.LEFT_OUT.saying(
                    "{count} judgement{s} left out, since the recording was replaced after it",
                    "listen to them in `swsdist serve`, and judge them again or remove them",
                ),
                where=str(project.folder),
                count=len(gone) + len(wrong),
            )
        left_out = [
            f"{name}: {place.doc_id}, {place.start} s: the recording was replaced"
            for name, place in (
                *((entry.form, token.place) for entry, tokens in with_tokens for token in tokens if token in gone),
                *((CORRECTED, each.place) for each in corrections if each in wrong),
            )
        ]
        with_tokens = [(entry, [each for each in tokens if each not in gone]) for entry, tokens in with_tokens]
        corrections = [each for each in corrections if each not in wrong]
    folder.mkdir(parents=True, exist_ok=True)
    home = None if sent else folder.absolute()

    @cache
    def own(place: Path) -> dict[str, Path]:
        """Files of ELAN in a folder, by the names of their recordings."""
        files = (path for path in sorted(place.glob("*"), reverse=True) if path.suffix.lower() == ".eaf")
        return {name_of(str(path)): path for path in files}

    def base(path: str) -> Path | None:
        """The file that the tiers of a recording are added to; None: a new one."""
        known = own(Path(path).parent) if into and path and not is_remote(path) else {}
        return known.get(name_of(path), template)

    def refused(error: DataError) -> None:
        if error.where == str(template):  # it is that of all
            raise error
        left_out.append(f"{error.where}: {error.message}")
        notices.inform(
            families.LEFT_OUT.saying(
                "{count} file{s} of ELAN left out, to which no tiers can be added",
                "open them in ELAN and save them again, or export without --into",
            ),
            where=str(error.where),
            count=1,
        )

    of = {} if store is None or into or kind not in WRITERS else _speakers_of(store)
    facts = home, of, base, refused, languages or Languages()
    chosen = Chosen(project, with_tokens, corrections, store, *facts, notices, left_out)
    result = []
    with tempfile.TemporaryDirectory(dir=folder) as place:
        _WRITERS[kind](chosen, Path(place))
        if left_out:
            (Path(place) / LEFT_OUT).write_text("\n".join(left_out) + "\n", encoding="utf-8")
        for file in sorted(path for path in Path(place).rglob("*") if path.is_file()):
            out = folder / file.relative_to(place)
            out.parent.mkdir(parents=True, exist_ok=True)
            file.replace(out)
            result.append(out)
    return [path for path in result if path.name != MARKER]


def text_of(entry: Entry, token: Token) -> str:
    """The text of a token's label."""
    return entry.form + (UNSURE if token.verdict == words.UNSURE else "")


def _speakers_of(store: Store) -> dict[tuple[str, int], str]:
    names = defaultdict[tuple[str, int], set[str]](set)
    for row in store.documents(columns=["doc_id", "channel", "recording", "speaker"]).to_pylist():
        names[row["recording"] or row["doc_id"], row["channel"]].add(row["speaker"] or "")
    return {key: some.pop() for key, some in names.items() if len(some) == 1}


def _labelled(chosen: Chosen) -> Iterator[Labelled]:
    for entry, token in chosen.tokens(words.YES, words.UNSURE):
        doc_id, channel, start, end, _ = token.place
        # A form of a question mark would come back as one that is unsure.
        certainty = token.verdict if token.verdict == words.UNSURE or entry.form.endswith("?") else ""
        texts = zip(BELOW, (entry.gloss, token.variant, token.note, certainty), strict=True)
        below = tuple((name, text) for name, text in texts if text)
        speaker = token.speaker or entry.speaker or chosen.speakers.get((str(doc_id), channel), "")
        yield Labelled(str(doc_id), channel, WORDS, start, end, token.score or 0.0, entry.form, speaker, below)
    for each in chosen.corrections:
        doc_id, channel, start, end, _ = each.place
        yield Labelled(str(doc_id), channel, CORRECTED, start, end, 0.0, each.text)


def _tiers(kind: str, chosen: Chosen, folder: Path) -> None:
    places, files, home = _labelled(chosen), chosen.recordings, chosen.home
    write_tiers(kind, places, files, folder, home=home, base=chosen.base, refused=chosen.refused, date=chosen.changed)


def _labels(chosen: Chosen, folder: Path) -> None:
    rows = [
        {"query_id": text_of(entry, token), **{name: getattr(token.place, name) for name in REFERENCES.names[1:]}}
        for entry, token in chosen.tokens(words.YES, words.UNSURE)
    ]
    rows.sort(key=lambda row: (row["doc_id"], row["channel"], row["start"], row["query_id"]))
    nullable = pa.schema([field.with_nullable(True) for field in DETECTIONS])
    write_labels(pa.Table.from_pylist(rows, nullable).to_batches(), folder / "labels")


def _csv(chosen: Chosen, folder: Path) -> None:
    entries = [{**entry._asdict(), "variants": "; ".join(entry.variants)} for entry, _ in chosen.entries]
    documents = {token.place.doc_id for _, tokens in chosen.entries for token in tokens if token.place.doc_id}
    paths = chosen.recordings(sorted(documents))
    rows = []
    for entry, tokens in chosen.entries:
        for token in tokens:
            place = token.place
            known_path = paths.get((str(place.doc_id), place.channel), ("",))[0]
            path = known_path if place.sound is None else f"sounds/{place.sound}.wav"
            known = {"form": entry.form, "gloss": entry.gloss, "path": path}
            rows.append({**token._asdict(), **place._asdict(), **known})
    corrected = [{**each._asdict(), **each.place._asdict()} for each in chosen.corrections]
    tables = ("entries", _ENTRIES, entries), ("tokens", _TOKENS, rows), ("corrections", _CORRECTIONS, corrected)
    for name, schema, table in tables:
        lines = [
            {key: " ".join(row[key].splitlines()) if key == "note" else row[key] for key in schema.names}
            for row in table
        ]
        write_csv(pa.Table.from_pylist(lines, schema), schema, folder / f"{name}.csv")


def _clips(chosen: Chosen, folder: Path) -> None:
    tokens = [(entry, token) for entry, tokens in chosen.entries for token in tokens if token.verdict == words.YES]
    _cut(chosen, tokens, folder / "clips")


def _lift(chosen: Chosen, folder: Path) -> None:
    """A file of LIFT, with the sounds of examples.

    Raises:
        UserError: a tag of a language is none.
    """
    languages, modified = chosen.languages, chosen.project.modified()
    for tag in languages:
        if not _TAG.fullmatch(tag):
            raise families.INVALID_VALUE.of(UserError)(
                "{tag!r} is no language tag (BCP 47)",
                "give the code of the language, such as mdw (Mbosi), ln (Lingala) or fr; und: unknown",
                where="language",
                tag=tag,
            )
    examples = [(entry, token) for entry, tokens in chosen.entries for token in tokens if token.example]
    sounds = _cut(chosen, examples, folder / "lift" / AUDIO)
    first = chosen.project.changes(most=1)
    of = f"{first[0].at} {first[0].person}" if first else ""  # what no other glossary is called
    root = Element("lift", {"version": "0.13", "producer": f"swsdist {version('swsdist')}"})
    # FLEx leaves an entry as it is whose time is that of its last import.
    for entry, tokens in chosen.entries:
        guid = str(uuid5(_OURS, f"{of}\n{entry.entry_id}"))
        times = {"dateModified": f"{modified[entry.entry_id][:19]}Z"} if entry.entry_id in modified else {}
        word = SubElement(root, "entry", {"id": f"{entry.form}_{guid}", "guid": guid, **times})
        _form(SubElement(word, "lexical-unit"), languages.forms, entry.form)
        for token in tokens:
            if token.token_id in sounds:
                spoken = SubElement(word, "pronunciation")
                if token.variant:
                    _form(spoken, languages.forms, token.variant)
                media = SubElement(spoken, "media", {"href": sounds[token.token_id].name})
                _form(SubElement(media, "label"), languages.glosses, _where(token))
        for variant in entry.variants:
            _form(SubElement(word, "variant"), languages.forms, variant)
        if entry.gloss:
            sense = SubElement(word, "sense", {"id": str(uuid5(_OURS, f"{of}\n{entry.entry_id}\nsense"))})
            _form(sense, languages.glosses, entry.gloss, "gloss")
        spoken_by = f"Speaker: {entry.speaker}" if entry.speaker else ""
        lines = [entry.note, spoken_by, *(_where(token) for token in tokens if token.verdict == YES)]
        if any(lines):
            _form(SubElement(word, "note"), languages.glosses, "\n".join(filter(None, lines)))
    ElementTree.indent(root)
    text: bytes = ElementTree.tostring(root, encoding="UTF-8", xml_declaration=True)
    (folder / "lift" / f"{chosen.project.folder.name}.lift").write_bytes(text + b"\n")


def _cut(chosen: Chosen, tokens: Sequence[tuple[Entry, Token]], folder: Path) -> dict[int, Path]:
    """Clips of tokens, by their ids; where a recording cannot be read, of the sound that the project keeps."""
    folder.mkdir(parents=True)
    (folder / MARKER).touch()  # they are never taken for recordings
    paths = chosen.recordings(sorted({token.place.doc_id for _, token in tokens if token.place.doc_id is not None}))
    storage = {} if chosen.store is None else chosen.store.folder.storage
    written, there = dict[int, Path](), KeptSounds(chosen.project.folder)
    for number, (entry, token) in enumerate(tokens, 1):
        place = token.place
        out = folder / clip_name(number, entry.form, place.doc_id or "sound", place.start)
        kept = None if place.doc_id is None else there.of(place, token.content)
        if place.doc_id is None:
            path = str(chosen.project.sound_file(str(place.sound)))
        else:
            path = paths.get((place.doc_id, place.channel), ("", 0.0))[0]
        if kept is not None and is_missing(path):
            place, path = kept.within(place), kept.path
        try:
            if not path:
                raise families.UNKNOWN_NAME(
                    "no recording of this name is known", "name the store that holds it", where=str(place.doc_id)
                )
            write_clip(path, place.start, place.end, out, channel=place.channel, storage=storage)
            written[token.token_id] = out
        except (AudioError, UserError) as error:
            where = f"{entry.form}: {error.where or place.doc_id}: {error.message}"
            chosen.left_out.append(where)
            chosen.notices.inform(
                families.LEFT_OUT.saying(
                    "{count} clip{s} of {of} could not be cut",
                    "look whether the recordings are still where they were indexed, and name their store",
                ),
                where=where,
                count=1,
                of=len(tokens),
            )
    return written


def _page(chosen: Chosen, folder: Path) -> None:
    speakers = {
        entry.entry_id: sorted({entry.speaker, *(token.speaker for token in tokens)} - {""})
        for entry, tokens in chosen.entries
    }
    text = rendered("glossary", entries=chosen.entries, speakers=speakers, date=datetime.now(UTC).date().isoformat())
    (folder / "glossary.html").write_text(text, encoding="utf-8")


def _tables(chosen: Chosen, folder: Path) -> None:
    project, forms = chosen.project, pa.array([entry.form for entry, _ in chosen.entries], pa.string())
    file, places = str(project.folder), {token.place[:4] for _, tokens in chosen.entries for token in tokens}
    for name, schema in (("queries", QUERIES), ("references", REFERENCES), ("judgements", JUDGEMENTS)):
        table = read_table(file, schema)
        table = table.filter(pa.compute.is_in(table["query_id"], value_set=forms))
        if chosen.left_out:
            keys = zip(*(table[column].to_pylist() for column in ("doc_id", "channel", "start", "end")), strict=True)
            table = table.filter(pa.array([key[0] is None or key in places for key in keys], pa.bool_()))
        write_csv(table, schema, folder / f"{name}.csv")
        if name == "queries":
            for path in filter(None, table["path"].unique().to_pylist()):
                (folder / "sounds").mkdir(exist_ok=True)
                shutil.copyfile(project.folder / path, folder / path)
    if chosen.store is not None:
        (folder / "config.yaml").write_text(_CONFIG, encoding="utf-8")
        rows = [
            {"doc_id": name, "channel": channel, "path": path, "duration": duration}
            for (name, channel), (path, duration) in sorted(chosen.store.recordings().items())
        ]
        documents = pa.schema([CORPUS.field(name) for name in ("doc_id", "channel", "path", "duration")])
        write_csv(pa.Table.from_pylist(rows, documents), documents, folder / "documents.csv")


def _project(chosen: Chosen, folder: Path) -> None:
    text = json.dumps(as_json(chosen.project), ensure_ascii=False, indent=1)
    (folder / "glossary.json").write_text(text, encoding="utf-8")


_WRITERS: Mapping[str, Callable[[Chosen, Path], None]] = {
    **{kind: partial(_tiers, kind) for kind in WRITERS},
    "labels": _labels,
    "csv": _csv,
    "lift": _lift,
    "clips": _clips,
    "page": _page,
    "tables": _tables,
    "project": _project,
}

#: Kinds whose times are those of recordings as they are now.
_OF_SOUND = (*WRITERS, "labels", "lift", "clips", "tables")

#: Kinds with corrections of transcripts, beside `project`.
_CORRECTING = (*WRITERS, "csv")

#: Names of the kinds.
EXPORTS = tuple(_WRITERS)


#: Folders in a pack.
PROJECT, STORE = "words", "store"

_README = """\
A glossary with the sound of its examples, to be opened with swsdist.

    swsdist serve "{name}"

Words are heard and searched without the recordings. To hear whole recordings, copy them to this computer. The page asks for
their folder when it misses one.
"""


def pack(project: Project, out: Path, store: Store) -> tuple[int, int]:
    """Write a pack; gives the numbers of its files and bytes.

    Args:
        project: the glossary; the sounds of its examples are kept in it, too.
        out: a new folder, or a file `.zip` to be made.
        store: that it is searched in.

    Raises:
        UserError: something is there already.
    """
    if out.exists() and (out.is_file() or any(out.iterdir())):
        raise families.OUTPUT_REFUSED("there is something already", "name a new folder, or a new .zip", where=str(out))
    project.keep_sounds(store)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=".swsdist-") as place:
        folder = Path(place) / (out.stem if out.suffix.lower() == ".zip" else out.name)
        project.copy_to(folder / PROJECT)
        _copy(store.folder, folder / STORE)
        # Where the store lies from here; its path says nothing elsewhere.
        Project.open(folder / PROJECT, store=str(folder / STORE)).close()
        (folder / "README.txt").write_text(_README.format(name=folder.name), encoding="utf-8")
        files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        size = sum(path.stat().st_size for path in files)
        if out.suffix.lower() == ".zip":
            with zipfile.ZipFile(Path(place) / out.name, "w") as packed:  # sounds and frames are compressed
                for path in files:
                    packed.write(path, path.relative_to(place))
            (Path(place) / out.name).replace(out)
        else:
            if out.exists():
                out.rmdir()
            folder.replace(out)
    return len(files), size


def _copy(store: Folder, out: Path) -> None:
    """Copy the current state of a store, and of that of words in it."""
    manifest = require(store)
    shards = (file.name for shard in manifest.shards for file in shard.files.values())
    for name in (NAME, state_name(manifest.fingerprint), *manifest.tables, *shards):
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        with store.open(name) as source, (out / name).open("wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
    inside = Folder(store.path(FORM_WORDS), store.storage)
    if load(inside) is not None:
        _copy(inside, out / FORM_WORDS)
