"""A glossary for other programs: ELAN, Praat, Audacity, FLEx, tables, clips, a page to print, and the whole project.

Annotations and labels are the places judged `yes` and those judged `unsure`. In ELAN and Praat a tier WORDS for each speaker
has them, and tiers below (BELOW) what else is said of the place; the text of a label that is unsure ends in ` ?`. Clips are
places judged `yes`. Corrections of transcripts are annotations of a tier CORRECTED, where all entries are exported.

LIFT 0.13, which FLEx and other dictionary programs import: an entry for each word, its gloss, and its examples' sounds.

A sound is a `pronunciation` that names a file of the folder `audio/` beside, where FLEx looks. A note says where each place
judged `yes` is. Ids are those of the glossary, so that a second import changes entries instead of adding them.

Source: SIL, LIFT standard 0.13 (lift-0.13.rng).

Everything for a colleague in one folder: the glossary, the sound of its examples, and the store that it is searched in.

words/       the project, with all changes; no tokens and passwords
store/       the current state of the store: it is searched without the recordings
README.txt   what to do with it

`swsdist serve FOLDER` opens it.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import zipfile
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple
from uuid import UUID, uuid5
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

import pyarrow as pa

from swsdist.audio.clips import MARKER, write_clip
from swsdist.core.codes import server as codes
from swsdist.core.errors import AudioError, DataError, UserError
from swsdist.core.types import CORPUS, DETECTIONS, JUDGEMENTS, QUERIES, REFERENCES, columns
from swsdist.exports.clips import clip_name
from swsdist.exports.labels import write_labels
from swsdist.exports.layers import EPOCH
from swsdist.exports.tiers import WRITERS, Labelled, write_tiers
from swsdist.glossary import archive, example_sounds, words
from swsdist.glossary.project import Project
from swsdist.glossary.words import YES, Correction, Entry, Token, replaced
from swsdist.io.filesystem import Folder, is_remote
from swsdist.io.notices import Notices
from swsdist.io.tables import read_table, write_csv
from swsdist.lattices.beside import name_of
from swsdist.report.summary import rendered
from swsdist.store.manifest import NAME, load, require, state_name
from swsdist.store.manifest import WORDS as FORM_WORDS
from swsdist.store.reading import Store

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
        raise codes.NO_SUCH_GLOSSARY_EXPORT(kind=kind, kinds=", ".join(_WRITERS))
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
            notices.add(codes.REPLACED_LEFT_OUT, where=str(project.folder), count=len(gone) + len(wrong))
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
        notices.inform(codes.FILES_LEFT_OUT, where=str(error.where), count=1)

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
    entries = [{**entry.as_json(), "variants": "; ".join(entry.variants)} for entry, _ in chosen.entries]
    documents = {token.place.doc_id for _, tokens in chosen.entries for token in tokens} - {None}
    paths = chosen.recordings(sorted(name for name in documents if name is not None))
    rows = []
    for entry, tokens in chosen.entries:
        for token in tokens:
            place = token.place
            path = (
                f"sounds/{place.sound}.wav"
                if place.doc_id is None
                else paths.get((place.doc_id, place.channel), ("",))[0]
            )
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
    name, examples = (
        chosen.project.folder.name,
        [(entry, token) for entry, tokens in chosen.entries for token in tokens if token.example],
    )
    sounds = _cut(chosen, examples, folder / "lift" / AUDIO)
    first = chosen.project.changes(most=1)
    of = f"{first[0].at} {first[0].person}" if first else ""
    names = {number: file.name for number, file in sounds.items()}
    text = lift(chosen.entries, names, chosen.languages, of, chosen.project.modified())
    (folder / "lift" / f"{name}.lift").write_bytes(text)


def _cut(chosen: Chosen, tokens: Sequence[tuple[Entry, Token]], folder: Path) -> dict[int, Path]:
    """Clips of tokens, by their ids; where a recording cannot be read, of the sound that the project keeps."""
    folder.mkdir(parents=True)
    (folder / MARKER).touch()  # they are never taken for recordings
    paths = chosen.recordings(sorted({token.place.doc_id for _, token in tokens if token.place.doc_id is not None}))
    storage = {} if chosen.store is None else chosen.store.folder.storage
    written, there = dict[int, Path](), example_sounds.Kept(chosen.project.folder)
    for number, (entry, token) in enumerate(tokens, 1):
        place = token.place
        out = folder / clip_name(number, entry.form, place.doc_id or "sound", place.start)
        kept = None if place.doc_id is None else there.of(place, token.content)
        if place.doc_id is None:
            path = str(chosen.project.sound_file(str(place.sound)))
        else:
            path = paths.get((place.doc_id, place.channel), ("", 0.0))[0]
        if kept is not None and example_sounds.is_missing(path):
            place, path = kept.within(place), kept.path
        try:
            if not path:
                raise codes.RECORDING_UNKNOWN(where=str(place.doc_id))
            write_clip(path, place.start, place.end, out, channel=place.channel, storage=storage)
            written[token.token_id] = out
        except (AudioError, UserError) as error:
            where = f"{entry.form}: {error.where or place.doc_id}: {error.message}"
            chosen.left_out.append(where)
            chosen.notices.inform(codes.CLIPS_LEFT_OUT, where=where, count=1, of=len(tokens))
    return written


def _page(chosen: Chosen, folder: Path) -> None:
    speakers = {entry.entry_id: _speakers(entry, tokens) for entry, tokens in chosen.entries}
    text = rendered("glossary", entries=chosen.entries, speakers=speakers, date=datetime.now(UTC).date().isoformat())
    (folder / "glossary.html").write_text(text, encoding="utf-8")


def _speakers(entry: Entry, tokens: Sequence[Token]) -> list[str]:
    return sorted({name for name in (entry.speaker, *(token.speaker for token in tokens)) if name})


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
    text = json.dumps(archive.as_json(chosen.project), ensure_ascii=False, indent=1)
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
        raise codes.PACK_EXISTS(where=str(out))
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
