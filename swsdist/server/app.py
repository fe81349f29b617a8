"""HTTP routes of `serve`, and checks of the values of requests.

Routes are of the archive and its searches; of the glossary: entries, tokens, changes, exports and imports; and of
transcripts: the words of a stretch of a recording, corrections of them, and tiers of annotations beside it.

A correction applies to the words whose middle lies in its stretch, including words that are recognised there later.
"""

from __future__ import annotations

import json
import logging
import math
import os
import tempfile
import unicodedata
import zipfile
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote

from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from swsdist.core.codes import families
from swsdist.core.codes import server as codes
from swsdist.core.errors import AudioError, StorageError, SwsdistError
from swsdist.core.fingerprint import plain
from swsdist.glossary import words
from swsdist.glossary.exports import EXPORTS, Languages, write_export
from swsdist.glossary.importing import Counts, import_file, import_files
from swsdist.glossary.project import KeptSounds, is_missing
from swsdist.glossary.words import VERDICTS, Correction, Entry, Place, Token
from swsdist.lattices.words import written
from swsdist.server import sounds
from swsdist.server.archive import Filters
from swsdist.server.questions import MOST, TOP, Question, answer, as_line, examples_of
from swsdist.server.security import Gate, Guard, error_response, error_values, named, to_file, whole_body
from swsdist.server.service import Service
from swsdist.store.manifest import Found

T = TypeVar("T")

#: Largest body of values, bytes.
_BODY = 1_000_000
#: Largest id, and the digits of one that surely is none.
MOST_ID, _DIGITS = 2**53, 16
#: Longest name of a file, and of what is repeated in a message.
_NAME, _REPEATED = 255, 60


class Turns:
    """Work of a kind: so much of it at once, each in a thread, and no more than so many people who wait for it."""

    def __init__(self, at_once: int, most: int) -> None:
        self._limiter, self._most, self._here = CapacityLimiter(at_once), most, 0

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Somebody's place while the work is done.

        Raises:
            UserError: all places are taken.
        """
        if self._here >= self._most:
            raise codes.BUSY(where="server", count=self._here)
        self._here += 1
        try:
            yield
        finally:
            self._here -= 1

    async def step(self, work: Callable[..., T], *args: Any) -> T:
        """Do a piece of it, when it is its turn."""
        return await to_thread.run_sync(work, *args, limiter=self._limiter)

    async def do(self, work: Callable[..., T], *args: Any) -> T:
        """Do all of it.

        Raises:
            UserError: too many are waiting.
        """
        with self.waiting():
            return await self.step(work, *args)


class Bounds:
    """Kinds of work that cost processors and memory."""

    def __init__(self) -> None:
        cpus = os.cpu_count() or 1
        self.searches, self.clips = Turns(cpus, 40), Turns(cpus, 200)
        self.answers = Turns(40, 40)  # which wait for a pass of `swsdist.searcher.searcher`
        self.recordings, self.files = Turns(max(1, cpus // 2), 16), Turns(1, 16)


def bounds_of(request: Request) -> Bounds:
    """What may be done at once."""
    bounds: Bounds = request.app.state.bounds
    return bounds


def service_of(request: Request) -> Service:
    """What is served."""
    service: Service = request.app.state.service
    return service


def person_of(request: Request) -> str:
    """Who asks."""
    person: str = request.app.state.guard.person(request)
    return person


def file_name(request: Request, other: str) -> str:
    """The name of a file that is sent, its last part, in one line of 255 characters at most; `other` where it has none."""
    sent = unquote(request.headers.get("x-name", "")).replace("\\", "/").rpartition("/")[2]
    name = "".join(" " if unicodedata.category(each)[0] == "C" else each for each in sent)[-_NAME:]
    return other if name.strip(". ") == "" else name


async def body_of(request: Request) -> dict[str, Any]:
    """The JSON object in a request.

    Raises:
        UserError: it is none, or too large.
    """
    body = await whole_body(request, _BODY)
    try:
        values = json.loads(body or b"{}", parse_constant=_refuse)
        json.dumps(values, ensure_ascii=False).encode()  # no half of a surrogate pair
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise codes.WRONG_REQUEST(where=request.url.path, what="the request is no JSON object")
    return values


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def integer(
    values: Mapping[str, Any], name: str, default: int | None = None, least: int = 0, most: int = MOST_ID
) -> int:
    """A whole number between two.

    Raises:
        UserError: it is none.
    """
    value = number(values, name, default)
    if value != int(value) or not least <= value <= most:
        raise codes.WRONG_REQUEST(where=name, what=f"{name} is no whole number between {least} and {most}")
    return int(values.get(name, default)) if isinstance(values.get(name, default), int) else int(value)


def number(values: Mapping[str, Any], name: str, default: float | None = None) -> float:
    """A number.

    Raises:
        UserError: it is none.
    """
    value = values.get(name, default)
    try:
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        result = math.nan
    if isinstance(value, bool) or not math.isfinite(result):
        raise codes.WRONG_REQUEST(where=name, what=f"{name} is no number: {ascii(value)[:_REPEATED]}")
    return result


def text_of(values: Mapping[str, Any], name: str) -> str:
    """A text that is not empty.

    Raises:
        UserError: it is none.
    """
    value = values.get(name)
    if not isinstance(value, str) or not value.strip():
        raise codes.WRONG_REQUEST(where=name, what=f"{name} is missing")
    return value.strip()


def id_of(request: Request) -> int:
    """The id in an address; 0, which nothing has, where it is no id."""
    digits = request.path_params.get("id", "")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS else 0


def place_of(values: Any) -> Place:
    """A place of a document or a sound.

    Raises:
        UserError: it is none.
    """
    names = [values.get(name) for name in ("doc_id", "sound")] if isinstance(values, dict) else []
    if [isinstance(name, str) and bool(name) for name in names].count(True) != 1:
        raise codes.WRONG_REQUEST(where="place", what="a place names a document or a sound")
    start, end = number(values, "start"), number(values, "end")
    place = {name: values.get(name) for name in ("doc_id", "sound")}
    return words.place({**place, "channel": channel_of(values), "start": start, "end": end})


def channel_of(values: Mapping[str, Any]) -> int:
    """A channel, by default the first.

    Raises:
        UserError: it is none.
    """
    return integer(values, "channel", 1, 1, 2**31 - 1)


_FIELDS = ("form", "gloss", "variants", "speaker", "note")
_TOKEN_FIELDS = ("verdict", "example", "note", "variant", "speaker")
#: Of a change, what the page need not know: an import holds all that it brought.
_ROWS = ("before", "after")
#: Endings that readers look at.
_ENDINGS = ("eaf", "textgrid", "json")


def _fields(values: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    chosen = {name: values[name] for name in names if name in values}
    if "variants" in chosen:
        variants = chosen["variants"]
        if not isinstance(variants, list) or not all(isinstance(each, str) for each in variants):
            raise codes.WRONG_REQUEST(where="variants", what="variants are no list of texts")
        chosen["variants"] = tuple(each.strip() for each in variants if each.strip())
    if chosen.get("verdict", "yes") not in VERDICTS:
        raise codes.WRONG_REQUEST(where="verdict", what=f"a verdict is one of {', '.join(VERDICTS)}")
    for name, value in chosen.items():
        if name not in ("variants", "example") and not isinstance(value, str):
            raise codes.WRONG_REQUEST(where=name, what=f"{name} is no text")
    if "example" in chosen:
        chosen["example"] = bool(chosen["example"])
    return chosen


class _Ask(NamedTuple):
    """A request: what is served, the values of its JSON object or its address, who asks, and the id in the address."""

    request: Request
    service: Service
    values: dict[str, Any]
    person: str
    id: int


def _api(path: str, work: Callable[[_Ask], Any], *methods: str, turns: str = "") -> Route:
    """The route of work in a thread, of a kind of `Bounds` or of any; it answers with what the work gives, as JSON."""

    async def endpoint(request: Request) -> Response:
        values = await body_of(request) if request.method in ("POST", "PATCH") else dict(request.query_params)
        ask = _Ask(request, service_of(request), values, person_of(request), id_of(request))
        do = getattr(bounds_of(request), turns).do if turns else run_in_threadpool
        return JSONResponse(plain(await do(work, ask)))

    return Route(f"/api/{path}", endpoint, methods=methods or ("GET",))


def _entries(ask: _Ask) -> Any:
    project = ask.service.project
    if ask.request.method != "POST":
        return {"entries": project.entries(ask.values.get("text", ""))}
    fields = {**_fields(ask.values, _FIELDS), "form": text_of(ask.values, "form")}
    return project.add_entry(person=ask.person, **fields)


def _entry(ask: _Ask) -> Any:
    if ask.request.method != "DELETE":
        return ask.service.project.change_entry(ask.id, person=ask.person, **_fields(ask.values, _FIELDS))
    ask.service.project.remove_entry(ask.id, person=ask.person)
    return {}


def _merge(ask: _Ask) -> Entry:
    return ask.service.project.merge(ask.id, integer(ask.values, "other"), person=ask.person)


def _split(ask: _Ask) -> Entry:
    tokens, form = ask.values.get("tokens"), text_of(ask.values, "form")
    if not isinstance(tokens, list) or not all(type(token) is int for token in tokens):
        raise codes.WRONG_REQUEST(where="tokens", what="tokens are no list of numbers")
    return ask.service.project.split(ask.id, tokens, person=ask.person, form=form)


def _tokens(ask: _Ask) -> Any:
    service, values = ask.service, ask.values
    if ask.request.method != "POST":
        return {"tokens": _shown(service, service.project.tokens(ask.id))}
    place, fields = place_of(values.get("place")), _fields(values, _TOKEN_FIELDS)
    if "verdict" not in fields:
        raise codes.WRONG_REQUEST(where="verdict", what="verdict is missing")
    name = text_of(values, "search") if values.get("search") else None
    score = None if values.get("score") is None else number(values, "score")
    where = service.located(place)
    kept = service.searches.of(ask.id, name)
    if kept is not None and kept.prior is None:
        score = None  # scores of texts say nothing of those of speech
    fields["content"] = None if service.archive is None else service.archive.content_of(where)
    token = service.project.judge(ask.id, where, fields.pop("verdict"), person=ask.person, score=score, **fields)
    service.judged()
    (shown,) = _shown(service, [token])
    return {"token": shown, **service.likelihood(ask.id, name)}


def _shown(service: Service, tokens: Sequence[Token]) -> list[dict[str, Any]]:
    """Tokens with the names of their recordings."""
    archive = service.archive
    names = [token.place.doc_id for token in tokens if token.place.doc_id is not None]
    rows = archive.rows_of(names) if archive is not None else None
    replaced = archive.replaced(tokens) if archive is not None else set()
    listed = []
    for token in tokens:
        row = None if rows is None else rows.of(token.place.doc_id, token.place.channel, token.place.start)
        has_path = token.place.sound is not None or row is not None
        listed.append(
            {
                **token._asdict(),
                "recording": row["recording"] if row else token.place.doc_id,
                "path_known": has_path,
                "replaced": token in replaced,
            }
        )
    return listed


def _token(ask: _Ask) -> Any:
    service, project = ask.service, ask.service.project
    if ask.request.method == "DELETE":
        project.remove_token(ask.id, person=ask.person)
        return {}
    fields, where = _fields(ask.values, _TOKEN_FIELDS), None
    if "place" in ask.values:
        fields["place"] = where = service.located(place_of(ask.values["place"]))
    elif "verdict" in fields:
        where = project.token(ask.id).place
    if where is not None and service.archive is not None:
        fields["content"] = service.archive.content_of(where)
    changed = project.change_token(ask.id, person=ask.person, **fields)
    service.judged()
    return changed


def _undo(ask: _Ask) -> Any:
    """The change that was taken back."""
    project, undone = ask.service.project, ask.service.project.undo(person=ask.person)
    return {"change": undone and undone.undoes and project.changes(undone.undoes - 1, 1)[0]}


def _changes(ask: _Ask) -> Any:
    after = integer(ask.values, "after", 0)
    changes = ask.service.project.changes(after)
    shown = [{name: value for name, value in change._asdict().items() if name not in _ROWS} for change in changes]
    return {"changes": shown, "change": changes[-1].change_id if changes else after}


async def _export(request: Request) -> Response:
    service, kind = service_of(request), request.path_params["kind"]
    chosen = request.query_params.get("entries")
    ids = None if not chosen else [integer({"entry": each}, "entry") for each in chosen.split(",")]
    tags = {name: request.query_params[name] for name in Languages._fields if request.query_params.get(name)}
    archive = service.archive
    scratch = tempfile.TemporaryDirectory(dir=service.scratch)
    folder = Path(scratch.name) / "export"
    folder.mkdir()

    def write() -> Path:
        store = archive.searcher.store if archive is not None else None
        languages = Languages(**tags)
        files = write_export(service.project, kind, folder, store=store, entry_ids=ids, languages=languages, sent=True)
        if len(files) == 1:
            return files[0]
        packed = Path(scratch.name) / f"{service.project.folder.name}-{kind}.zip"
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive_file:
            for file in files:
                archive_file.write(file, file.relative_to(folder))
        return packed

    try:
        file = await bounds_of(request).files.do(write)
    except BaseException:
        scratch.cleanup()
        raise
    return FileResponse(file, filename=file.name, background=BackgroundTask(scratch.cleanup))


async def _import(request: Request) -> Response:
    service, name, turns = service_of(request), file_name(request, "import"), bounds_of(request).files
    examples, person = request.query_params.get("examples") == "true", person_of(request)
    with turns.waiting(), tempfile.TemporaryDirectory(dir=service.scratch) as folder:
        file = sounds.sent_file(Path(folder), name, _ENDINGS)
        await to_file(request, file, sounds.UPLOAD_BYTES)
        store = service.archive.searcher.store if service.archive is not None else None

        def read() -> Counts:
            return import_file(service.project, file, person=person, store=store, examples=examples, name=name)

        counts = await turns.step(read)
    return JSONResponse(counts._asdict())


def _import_beside(ask: _Ask) -> Counts:
    """Take in chosen tiers of all files beside the recordings."""
    service, tiers, beside = ask.service, ask.values.get("tiers"), ask.service.beside
    if not isinstance(tiers, list) or not tiers or not all(isinstance(tier, str) for tier in tiers):
        raise codes.WRONG_REQUEST(where="tiers", what="tiers are no list of names")
    if beside is None:
        raise codes.NOT_READY(where=service.settings.target)
    files, store = {name: read.of[0] for name, read in beside.read.items()}, service.demand_archive().searcher.store
    about: dict[str, Any] = {"where": service.name, "tiers": tiers, "examples": bool(ask.values.get("examples"))}
    return import_files(service.project, files, person=ask.person, store=store, **about)


GLOSSARY = [
    _api("entries", _entries, "GET", "POST"),
    _api("entries/{id}", _entry, "PATCH", "DELETE"),
    _api("entries/{id}/merge", _merge, "POST"),
    _api("entries/{id}/split", _split, "POST"),
    _api("entries/{id}/tokens", _tokens, "GET", "POST"),
    _api("tokens/{id}", _token, "PATCH", "DELETE"),
    _api("undo", _undo, "POST"),
    _api("changes", _changes),
    Route("/api/export/{kind}", _export),
    Route("/api/import", _import, methods=["POST"]),
    _api("annotations", _import_beside, "POST", turns="files"),
]


#: Longest stretch, s.
SECONDS = 120.0
#: Most words of an answer.
_MOST = 2000


def _transcript(ask: _Ask) -> dict[str, Any]:
    """Words and corrections by their starts, in times of the document; `spaced`: whether a blank stands before a text;
    `known`: whether its recording has words.
    """
    service, values = ask.service, ask.values
    archive, doc_id, channel = service.demand_archive(), text_of(values, "doc_id"), channel_of(values)
    start, end = number(values, "start", 0.0), number(values, "end")
    row = archive.document(doc_id, channel, start)
    if row["doc_id"] == doc_id:
        end = min(end, row["duration"])  # what is asked around a place may go beyond
    place = _bounded(words.place({"doc_id": doc_id, "channel": channel, "start": start, "end": end}))
    where = service.located(place)
    every = service.project.corrections(where)
    replaced = archive.replaced(every)
    corrections = [each for each in every if each not in replaced]
    around = where._replace(
        start=min([where.start, *(each.place.start for each in corrections)]),
        end=max([where.end, *(each.place.end for each in corrections)]),
    )
    recognised = None if service.words is None else service.words.words_in(around)
    free, instead = [], dict[int, list[str]]()
    for word in recognised or ():
        middle = (word.start + word.end) / 2
        over = [each for each in corrections if each.place.start <= middle < each.place.end]
        for each in over:
            instead.setdefault(each.correction_id, []).append(word.text)
        if not over and word.start < where.end and word.end >= where.start:
            free.append({**word._asdict(), "correction": None})
    for each in corrections:
        by = {"correction": each.correction_id, "person": each.person, "at": each.at}
        span = {"start": each.place.start, "end": each.place.end}
        free.append({"text": each.text, **span, **by, "recognised": written(instead.get(each.correction_id, ()))})
    shift = where.start - place.start
    listed = sorted(free, key=lambda item: (item["start"], item["end"]))[:_MOST]
    shown, last = [], ""
    for item in listed:
        spaced = len(written(filter(None, (last, item["text"])))) > len(last + item["text"])
        shown.append({**item, "start": item["start"] - shift, "end": item["end"] - shift, "spaced": spaced})
        last = item["text"] or last
    return {"words": shown, "known": recognised is not None, "replaced": len(replaced)}


def _tiers(ask: _Ask) -> dict[str, Any]:
    """Tiers with annotations in a stretch, in times of the document."""
    service, values = ask.service, ask.values
    archive, doc_id, channel = service.demand_archive(), text_of(values, "doc_id"), channel_of(values)
    start, end = number(values, "start", 0.0), number(values, "end")
    row, beside = archive.document(doc_id, channel, start), service.beside
    shift = row["at"] if row["doc_id"] == doc_id else 0.0
    same = archive.rows_of(archive.copies.also((doc_id, channel))).paths  # files lie beside one of them
    paths = [row["path"], *same] if beside is not None else []
    some = (beside.tiers_at(path, shift + start, shift + end) for path in paths if beside is not None)
    tiers = next(filter(None, some), [])
    for annotation in (each for tier in tiers for each in tier["annotations"]):
        annotation.update(start=annotation["start"] - shift, end=annotation["end"] - shift)
    return {"tiers": tiers}


def _bounded(place: Place) -> Place:
    if place.end - place.start > SECONDS:
        raise codes.LONG_CLIP(where=place.doc_id, seconds=place.end - place.start, most=SECONDS)
    return place


def _correct(ask: _Ask) -> Correction:
    where = ask.service.located(_bounded(place_of(ask.values.get("place"))))
    content = ask.service.demand_archive().content_of(where)
    return ask.service.project.correct(where, ask.values.get("text"), person=ask.person, content=content)  # type: ignore[arg-type]


def _remove(ask: _Ask) -> Any:
    ask.service.project.remove_correction(ask.id, person=ask.person)
    return {}


TRANSCRIPTS = [
    _api("transcript", _transcript, turns="clips"),
    _api("tiers", _tiers),
    _api("corrections", _correct, "POST"),
    _api("corrections/{id}", _remove, "DELETE"),
]


_STATIC = Path(__file__).parent / "static"
_LOG = logging.getLogger(__name__)
#: Examples of a question.
_MOST_EXAMPLES = 100
#: Characters of a written question, and of an address in a message.
_LONGEST_TEXT, _SHOWN = 1000, 100
#: Statuses of errors that are no `400`.
_STATUSES = {"large-upload": 413, "slow-upload": 408, "not-ready": 503, "busy": 503, "project-full": 507}


def create_app(service: Service, guard: Guard) -> Starlette:
    """The application; `service` is closed when it ends."""
    routes = [
        Route("/", _page),
        Route("/health", _health),
        _api("state", _state),
        Route("/api/person", _person, methods=["POST"]),
        Route("/api/search", _search, methods=["POST"]),
        Route("/api/sounds", _sounds, methods=["POST"]),
        Route("/api/sound", _sound),
        _api("recordings", _recordings),
        _api("recordings-folder", _find_recordings, "POST", turns="files"),
        _api("overview", _overview, turns="recordings"),
        _api("classes", _classes, "GET", "POST"),
        _api("likely", _likely),
        _api("news", _news),
        _api("news/seen", _seen, "POST"),
        *GLOSSARY,
        *TRANSCRIPTS,
        Mount("/static", StaticFiles(directory=_STATIC)),
    ]
    app = Starlette(
        routes=routes,
        middleware=[Middleware(Gate, guard=guard)],
        exception_handlers={SwsdistError: _failed, HTTPException: _no_address, Exception: _broken},
    )
    app.state.service, app.state.guard, app.state.bounds = service, guard, Bounds()
    return app


async def _failed(_: Request, error: Exception) -> Response:
    assert isinstance(error, SwsdistError)
    name = error.code or ""
    if name in ("unknown-name", "not-in-archive", "nothing-there"):
        return error_response(error, 404)
    kinds = ((AudioError, 415), (StorageError, 503))
    usual = next((status for kind, status in kinds if isinstance(error, kind)), 400)
    return error_response(error, _STATUSES.get(name, usual))


async def _no_address(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = families.UNKNOWN_NAME(
        "the server has no {method} {path}",
        "load the page again",
        where="server",
        method=request.method,
        path=request.url.path[:_SHOWN],
    )
    return error_response(code, error.status_code)


async def _broken(_: Request, error: Exception) -> Response:
    return error_response(codes.SEARCH_FAILED(where="server", reason=repr(error)), 500)


async def _health(request: Request) -> Response:
    """For whoever looks whether the server lives; anybody may ask."""
    return JSONResponse({"ready": service_of(request).archive is not None})


async def _page(_: Request) -> Response:
    return FileResponse(_STATIC / "index.html", headers={"Cache-Control": "no-cache"})


def _state(ask: _Ask) -> dict[str, Any]:
    request, service = ask.request, ask.service
    archive, indexing, guard = service.archive, service.indexing, request.app.state.guard
    empty = {"hours": 0.0, "documents": 0, "recordings": 0, "folders": [], "speakers": [], "dates": None}
    about = {"store": service.settings.target, **empty} if archive is None else archive.facts
    service.look_for_words()
    service.look_for_annotations()
    spoken, voices = archive is None or archive.spoken, service.settings.speak
    error = indexing.error if indexing is not None else None
    return {
        **about,
        "name": service.name,
        "rejected": service.rejected,
        "annotations": None if service.beside is None else service.beside.facts,
        "kinds": [*(["spoken"] if spoken else []), *(["text"] if service.words is not None or voices else [])],
        "words": service.words is not None,
        "speak": list(voices),
        "indexing": indexing.state if indexing is not None else None,
        "error": None if error is None else error_values(error),
        "ready": archive is not None,
        "preparing": service.preparing,
        "archive": None if archive is None else archive.state,
        "person": ask.person,
        "session": guard.user_header is None,
        "people": service.project.people(),
        "limits": {
            "upload_bytes": sounds.UPLOAD_BYTES,
            "upload_seconds": sounds.UPLOAD_SECONDS,
            "clip_seconds": sounds.CLIP_SECONDS,
            "transcript_seconds": SECONDS,
        },
        "project": str(service.settings.project),
        "change": service.project.change,
        "watch": {"folder": service.settings.source} if service.settings.watch else None,
        "secure": guard.is_secure(request) or request.url.hostname in ("127.0.0.1", "localhost", "::1"),
        "news": len(service.news()),
        "languages": sorted(path.stem for path in (_STATIC / "texts").glob("*.json")),
        "exports": list(EXPORTS),
        "classes": service.settings.classes is not None,
    }


async def _person(request: Request) -> Response:
    person = text_of(await body_of(request), "person")
    return named(JSONResponse({"person": person}), person, request.app.state.guard.is_secure(request))


# -- searches ----------------------------------------------------------------------------------------------------------


async def _search(request: Request) -> Response:
    values, service = await body_of(request), service_of(request)
    text = None if values.get("text") is None else text_of(values, "text")
    if text is not None and len(text) > _LONGEST_TEXT:
        raise codes.WRONG_REQUEST(where="text", what=f"the text has more than {_LONGEST_TEXT} characters")
    archive = service.demand_archive()
    is_spoken = text is not None and archive.spoken and (service.words is None or bool(values.get("speak")))
    voices = service.settings.speak if is_spoken else ()
    searched = archive if text is None or voices else service.words
    if searched is None:
        raise codes.NO_TEXTS(where="text")
    entry_id = None if values.get("entry_id") is None else integer(values, "entry_id")
    requested, examples = values.get("examples"), tuple[Place, ...]()
    if requested is not None:
        if not isinstance(requested, list) or len(requested) > _MOST_EXAMPLES:
            raise codes.WRONG_REQUEST(where="examples", what=f"examples are a list of {_MOST_EXAMPLES} places at most")
        examples = tuple(map(place_of, requested))
    elif entry_id is not None and text is None:
        examples = await run_in_threadpool(examples_of, service.project, entry_id)
    narrow = values.get("narrow") or {}
    if not isinstance(narrow, dict):
        raise codes.WRONG_REQUEST(where="narrow", what="narrow is no object")
    filters = Filters(**{name: text_of(narrow, name) for name in Filters._fields if narrow.get(name)})
    question = Question(examples, text, entry_id, filters, integer(values, "top", TOP, 1, MOST), voices)
    some = None if searched is archive else await run_in_threadpool(archive.with_words, searched, filters)
    among, lacking = some or (None, [])
    lines = answer(question, searched, service.project, service.searches, among, lacking, archive)
    bounds = bounds_of(request)
    first = await bounds.searches.do(next, lines)  # reads the examples; a question that cannot be asked is refused
    return StreamingResponse(_lines(bounds.answers, first, lines), media_type="application/x-ndjson")


async def _lines(turns: Turns, first: dict[str, Any], answers: Generator[dict[str, Any]]) -> AsyncIterator[str]:
    """Each step in a thread of its own, which waits for what a pass over the store finds."""
    line: str | None = json.dumps(first) + "\n"
    try:
        with turns.waiting():
            while line is not None:
                yield line
                line = await turns.step(_next_line, answers)
    except SwsdistError as error:
        yield as_line(error)
    finally:
        await to_thread.run_sync(answers.close)


def _next_line(answers: Iterator[dict[str, Any]]) -> str | None:
    try:
        line = next(answers, None)
    except SwsdistError as error:
        return as_line(error)
    except Exception as error:
        _LOG.exception("a search failed")
        return as_line(codes.SEARCH_FAILED(where="search", reason=repr(error)))
    return None if line is None else json.dumps(line) + "\n"


def _likely(ask: _Ask) -> dict[str, Any]:
    return ask.service.likelihood(integer(ask.values, "entry_id"), ask.values.get("search"))


def _news(ask: _Ask) -> dict[str, Any]:
    return {"news": ask.service.news()}


def _seen(ask: _Ask) -> dict[str, Any]:
    ask.service.seen()
    return {}


def _classes(ask: _Ask) -> dict[str, Any]:
    if ask.request.method != "POST":
        return ask.service.classes(integer(ask.values, "offset", 0))
    ask.service.set_aside(text_of(ask.values, "key"), bool(ask.values.get("aside")), ask.person)
    return {}


# -- sounds ------------------------------------------------------------------------------------------------------------


async def _sounds(request: Request) -> Response:
    service, name, turns = service_of(request), file_name(request, "recording"), bounds_of(request).recordings
    with turns.waiting(), tempfile.TemporaryDirectory(dir=service.scratch) as folder:
        file = sounds.sent_file(Path(folder), name)
        await to_file(request, file, sounds.UPLOAD_BYTES)
        data, facts = await turns.step(sounds.received, file, name)
    kept = await run_in_threadpool(lambda: service.project.add_sound(data, name=name, person=person_of(request)))
    return JSONResponse({"sound": kept.sound, **facts})


class _Sounding(NamedTuple):
    """A recording that a request names: the place in it that a document is (s), options for s3fs, whether it was replaced."""

    path: str
    channel: int
    offset: float
    duration: float
    storage: Mapping[str, object]
    is_replaced: bool = False


async def _sound(request: Request) -> Response:
    values, service = dict(request.query_params), service_of(request)
    file, begin, is_replaced = await bounds_of(request).clips.do(_clip, service, values)
    headers = {"X-Begin": f"{begin:.6f}", "Cache-Control": "private, no-cache"}
    if is_replaced:
        headers["X-Replaced"] = "1"
    return FileResponse(file, media_type="audio/wav", headers=headers)


def _clip(service: Service, values: dict[str, Any]) -> tuple[Path, float, bool]:
    of = _recording_of(service, values)
    length = sounds.duration(of.path, of.storage) - of.offset
    start, end = _span(values, of.duration, length, sounds.CLIP_SECONDS)
    place = of.offset + start, of.offset + end, number(values, "pad", 0.25)
    file, begin = service.clips.of(of.path, of.channel, *place, of.storage)
    return file, begin - of.offset, of.is_replaced


def _span(values: dict[str, Any], usual: float, length: float, most: float) -> tuple[float, float]:
    """Start and end of a place that a request names in a recording of a length, s; the end is usually at a time, and `most`
    after the start.
    """
    start = max(0.0, number(values, "start", 0.0))
    requested = number(values, "end", max(start, min(usual, start + most)))
    end = min(requested, length)
    if start >= end:
        where = values.get("doc_id") or values.get("sound")
        raise codes.PLACE_BEYOND(where=where, start=start, end=requested, length=length)
    return start, end


def _overview(ask: _Ask) -> dict[str, Any]:
    service, values = ask.service, ask.values
    of = _recording_of(service, values)
    start, end = _span(values, of.duration, of.duration, of.duration)
    points = integer(values, "points", 800, 1, sounds.MOST_POINTS)
    waveform = service.clips.overview(of.path, of.channel, of.offset + start, of.offset + end, points, of.storage)
    return {**waveform, "start": start, "end": end}


def _recording_of(service: Service, values: dict[str, Any]) -> _Sounding:
    if values.get("sound"):
        path = str(service.project.sound_file(values["sound"]))
        return _Sounding(path, 1, 0.0, sounds.duration(path, {}), {})
    archive, channel, name = service.demand_archive(), channel_of(values), text_of(values, "doc_id")
    row, storage = archive.document(name, channel), archive.searcher.store.folder.storage
    is_document = row["doc_id"] == name
    offset = row["at"] if is_document else 0.0
    if is_missing(row["path"]):
        start = offset + max(0.0, number(values, "start", 0.0))
        place = Place(row["recording"], channel, start, max(start, offset + number(values, "end", start)))
        there = KeptSounds(service.project.folder)
        if (kept := there.of(place, archive.content_of(place))) is not None:
            return _Sounding(kept.path, 1, offset - kept.place.start, row["duration"], {})
    duration = row["duration"] if is_document else sounds.duration(row["path"], storage)
    return _Sounding(row["path"], channel, offset, duration, storage, archive.is_replaced(row))


def _recordings(ask: _Ask) -> dict[str, Any]:
    return ask.service.demand_archive().page(str(ask.values.get("text", "")), integer(ask.values, "offset", 0))


def _find_recordings(ask: _Ask) -> Found:
    if ask.request.app.state.guard.token is None:
        raise families.REQUEST_REFUSED(
            "only who started the server may say where recordings are", "ask that person", where="server"
        )
    return ask.service.find_recordings(text_of(ask.values, "folder"))
