"""HTTP routes of `serve`."""

from __future__ import annotations

import json
import logging
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from anyio import to_thread
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from swsdist.core.codes import server as codes
from swsdist.core.codes.server import PLACE_BEYOND
from swsdist.core.errors import AudioError, StorageError, SwsdistError
from swsdist.glossary import example_sounds
from swsdist.glossary.exports import EXPORTS
from swsdist.glossary.words import Place
from swsdist.server import sounds
from swsdist.server.archive import Filters
from swsdist.server.glossary_routes import GLOSSARY, SECONDS, TRANSCRIPTS
from swsdist.server.questions import MOST, TOP, Question, answer, as_line, examples_of
from swsdist.server.requests import (
    Bounds,
    Turns,
    body_of,
    bounds_of,
    channel_of,
    file_name,
    integer,
    number,
    person_of,
    place_of,
    service_of,
    text_of,
)
from swsdist.server.security import Gate, Guard, error_response, error_values, named, to_file
from swsdist.server.service import Service

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
        Route("/api/state", _state),
        Route("/api/person", _person, methods=["POST"]),
        Route("/api/search", _search, methods=["POST"]),
        Route("/api/sounds", _sounds, methods=["POST"]),
        Route("/api/sound", _sound),
        Route("/api/recordings", _recordings),
        Route("/api/recordings-folder", _find_recordings, methods=["POST"]),
        Route("/api/overview", _overview),
        Route("/api/classes", _classes, methods=["GET", "POST"]),
        Route("/api/likely", _likely),
        Route("/api/news", _news),
        Route("/api/news/seen", _seen, methods=["POST"]),
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
    if name.startswith(("no-such-", "not-in-archive", "nothing-there")):
        return error_response(error, 404)
    kinds = ((AudioError, 415), (StorageError, 503))
    usual = next((status for kind, status in kinds if isinstance(error, kind)), 400)
    return error_response(error, _STATUSES.get(name, usual))


async def _no_address(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = codes.NO_SUCH_ADDRESS(where="server", method=request.method, path=request.url.path[:_SHOWN])
    return error_response(code, error.status_code)


async def _broken(_: Request, error: Exception) -> Response:
    return error_response(codes.SEARCH_FAILED(where="server", reason=repr(error)), 500)


async def _health(request: Request) -> Response:
    """For whoever looks whether the server lives; anybody may ask."""
    return JSONResponse({"ready": service_of(request).archive is not None})


async def _page(_: Request) -> Response:
    return FileResponse(_STATIC / "index.html", headers={"Cache-Control": "no-cache"})


async def _state(request: Request) -> Response:
    return JSONResponse(await run_in_threadpool(_facts, request, service_of(request)))


def _facts(request: Request, service: Service) -> dict[str, Any]:
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
        "person": person_of(request),
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
    requested = values.get("examples")
    if requested is None:
        examples = (
            ()
            if entry_id is None or text is not None
            else await run_in_threadpool(examples_of, service.project, entry_id)
        )
    else:
        if not isinstance(requested, list) or len(requested) > _MOST_EXAMPLES:
            raise codes.WRONG_REQUEST(where="examples", what=f"examples are a list of {_MOST_EXAMPLES} places at most")
        examples = tuple(map(place_of, requested))
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


async def _lines(turns: Turns, first: dict[str, Any], answers: Iterator[dict[str, Any]]) -> AsyncIterator[str]:
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
        await to_thread.run_sync(_close, answers)


def _close(answers: Any) -> None:
    answers.close()


def _next_line(answers: Iterator[dict[str, Any]]) -> str | None:
    try:
        line = next(answers, None)
    except SwsdistError as error:
        return as_line(error)
    except Exception as error:
        _LOG.exception("a search failed")
        return as_line(codes.SEARCH_FAILED(where="search", reason=repr(error)))
    return None if line is None else json.dumps(line) + "\n"


async def _likely(request: Request) -> Response:
    service, entry_id = service_of(request), integer(dict(request.query_params), "entry_id")
    name = request.query_params.get("search")
    return JSONResponse(await run_in_threadpool(service.likelihood, entry_id, name))


async def _news(request: Request) -> Response:
    return JSONResponse({"news": await run_in_threadpool(service_of(request).news)})


async def _seen(request: Request) -> Response:
    await run_in_threadpool(service_of(request).seen)
    return JSONResponse({})


async def _classes(request: Request) -> Response:
    if request.method == "POST":
        values = await body_of(request)
        key, aside = text_of(values, "key"), bool(values.get("aside"))
        await run_in_threadpool(service_of(request).set_aside, key, aside, person_of(request))
        return JSONResponse({})
    offset = integer(dict(request.query_params), "offset", 0)
    return JSONResponse(await run_in_threadpool(service_of(request).classes, offset))


# -- sounds ------------------------------------------------------------------------------------------------------------


async def _sounds(request: Request) -> Response:
    service, name, turns = service_of(request), file_name(request, "recording"), bounds_of(request).recordings
    with turns.waiting(), tempfile.TemporaryDirectory(dir=service.scratch) as folder:
        file = sounds.sent_file(Path(folder), name)
        await to_file(request, file, sounds.UPLOAD_BYTES)
        data, facts = await turns.step(sounds.received, file, name)
    person = person_of(request)
    sound = await run_in_threadpool(_add_sound, service, data, name, person)
    return JSONResponse({"sound": sound, **facts})


def _add_sound(service: Service, data: bytes, name: str, person: str) -> str:
    return service.project.add_sound(data, name=name, person=person).sound


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
        raise PLACE_BEYOND(where=where, start=start, end=requested, length=length)
    return start, end


async def _overview(request: Request) -> Response:
    values, service = dict(request.query_params), service_of(request)
    return JSONResponse(await bounds_of(request).recordings.do(_waveform, service, values))


def _waveform(service: Service, values: dict[str, Any]) -> dict[str, Any]:
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
    if example_sounds.is_missing(row["path"]):
        start = offset + max(0.0, number(values, "start", 0.0))
        place = Place(row["recording"], channel, start, max(start, offset + number(values, "end", start)))
        there = example_sounds.Kept(service.project.folder)
        if (kept := there.of(place, archive.content_of(place))) is not None:
            return _Sounding(kept.path, 1, offset - kept.place.start, row["duration"], {})
    duration = row["duration"] if is_document else sounds.duration(row["path"], storage)
    return _Sounding(row["path"], channel, offset, duration, storage, archive.is_replaced(row))


async def _recordings(request: Request) -> Response:
    values, service = dict(request.query_params), service_of(request)
    archive = service.demand_archive()
    offset = integer(values, "offset", 0)
    return JSONResponse(await run_in_threadpool(archive.page, str(values.get("text", "")), offset))


async def _find_recordings(request: Request) -> Response:
    if request.app.state.guard.token is None:
        raise codes.MOVED_ON_A_SERVER(where="server")
    folder, service = text_of(await body_of(request), "folder"), service_of(request)
    found = await bounds_of(request).files.do(service.find_recordings, folder)
    return JSONResponse(found._asdict())
