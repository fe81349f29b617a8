"""HTTP routes of the glossary: entries, tokens, changes, exports and imports.

HTTP routes of transcripts: the words of a stretch of a recording, corrections of them, and tiers of annotations beside it.

A correction counts for the words whose middle lies in its stretch, whatever is recognised there now or later.
"""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from swsdist.core.codes import server as codes
from swsdist.glossary import words
from swsdist.glossary.exports import Languages, write_export
from swsdist.glossary.importing import Counts, import_file, import_files
from swsdist.glossary.words import Place, Token
from swsdist.lattices.words import written
from swsdist.server import sounds
from swsdist.server.requests import (
    body_of,
    bounds_of,
    channel_of,
    file_name,
    id_of,
    integer,
    number,
    person_of,
    place_of,
    service_of,
    text_of,
)
from swsdist.server.security import to_file
from swsdist.server.service import Service

_FIELDS = ("form", "gloss", "variants", "speaker", "note")
_TOKEN_FIELDS = ("verdict", "example", "note", "variant", "speaker")
_VERDICTS = ("yes", "no", "unsure")
#: Of a change, what the page need not know: an import holds all that it brought.
_ROWS = ("before", "after")
#: Endings that readers look at.
_ENDINGS = (".eaf", ".textgrid", ".json")


def _fields(values: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    chosen = {name: values[name] for name in names if name in values}
    if "variants" in chosen:
        variants = chosen["variants"]
        if not isinstance(variants, list) or not all(isinstance(each, str) for each in variants):
            raise codes.WRONG_REQUEST(where="variants", what="variants are no list of texts")
        chosen["variants"] = tuple(each.strip() for each in variants if each.strip())
    if chosen.get("verdict", "yes") not in _VERDICTS:
        raise codes.WRONG_REQUEST(where="verdict", what=f"a verdict is one of {', '.join(_VERDICTS)}")
    for name, value in chosen.items():
        if name not in ("variants", "example") and not isinstance(value, str):
            raise codes.WRONG_REQUEST(where=name, what=f"{name} is no text")
    if "example" in chosen:
        chosen["example"] = bool(chosen["example"])
    return chosen


async def _entries(request: Request) -> Response:
    project = service_of(request).project
    if request.method == "GET":
        entries = await run_in_threadpool(project.entries, request.query_params.get("text", ""))
        return JSONResponse({"entries": [entry.as_json() for entry in entries]})
    values = await body_of(request)
    fields = {**_fields(values, _FIELDS), "form": text_of(values, "form")}
    entry = await run_in_threadpool(lambda: project.add_entry(person=person_of(request), **fields))
    return JSONResponse(entry.as_json())


async def _entry(request: Request) -> Response:
    project, entry_id = service_of(request).project, id_of(request)
    if request.method == "DELETE":
        await run_in_threadpool(lambda: project.remove_entry(entry_id, person=person_of(request)))
        return JSONResponse({})
    fields = _fields(await body_of(request), _FIELDS)
    entry = await run_in_threadpool(lambda: project.change_entry(entry_id, person=person_of(request), **fields))
    return JSONResponse(entry.as_json())


async def _merge(request: Request) -> Response:
    values, project = await body_of(request), service_of(request).project
    other = integer(values, "other")
    entry_id = id_of(request)
    entry = await run_in_threadpool(lambda: project.merge(entry_id, other, person=person_of(request)))
    return JSONResponse(entry.as_json())


async def _split(request: Request) -> Response:
    values, project = await body_of(request), service_of(request).project
    tokens, form = values.get("tokens"), text_of(values, "form")
    if not isinstance(tokens, list) or not all(type(token) is int for token in tokens):
        raise codes.WRONG_REQUEST(where="tokens", what="tokens are no list of numbers")
    entry_id = id_of(request)
    entry = await run_in_threadpool(lambda: project.split(entry_id, tokens, person=person_of(request), form=form))
    return JSONResponse(entry.as_json())


async def _tokens(request: Request) -> Response:
    service, entry_id = service_of(request), id_of(request)
    if request.method == "GET":
        return JSONResponse(
            {"tokens": await run_in_threadpool(lambda: _shown(service, service.project.tokens(entry_id)))}
        )
    values = await body_of(request)
    place, verdict = place_of(values.get("place")), values.get("verdict")
    fields = _fields(values, _TOKEN_FIELDS)
    if verdict is None:
        raise codes.WRONG_REQUEST(where="verdict", what="verdict is missing")
    fields.pop("verdict")
    name = text_of(values, "search") if values.get("search") else None
    score = None if values.get("score") is None else number(values, "score")

    def judge() -> dict[str, Any]:
        where = service.located(place)
        kept = service.searches.of(entry_id, name)
        odds = (
            score if kept is None or kept.prior is not None else None
        )  # scores of texts say nothing of those of speech
        fields["content"] = None if service.archive is None else service.archive.content_of(where)
        token = service.project.judge(entry_id, where, verdict, person=person_of(request), score=odds, **fields)
        service.judged()
        (shown,) = _shown(service, [token])
        return {"token": shown, **service.likelihood(entry_id, name)}

    return JSONResponse(await run_in_threadpool(judge))


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
                **token.as_json(),
                "recording": row["recording"] if row else token.place.doc_id,
                "path_known": has_path,
                "replaced": token in replaced,
            }
        )
    return listed


async def _token(request: Request) -> Response:
    project, token_id = service_of(request).project, id_of(request)
    if request.method == "DELETE":
        await run_in_threadpool(lambda: project.remove_token(token_id, person=person_of(request)))
        return JSONResponse({})
    values = await body_of(request)
    fields = _fields(values, _TOKEN_FIELDS)
    place = place_of(values["place"]) if "place" in values else None
    archive = service_of(request).archive

    def change() -> Token:
        where = place
        if place is not None:
            fields["place"] = where = service_of(request).located(place)
        elif "verdict" in fields:
            where = project.token(token_id).place
        if where is not None and archive is not None:
            fields["content"] = archive.content_of(where)
        changed = project.change_token(token_id, person=person_of(request), **fields)
        service_of(request).judged()
        return changed

    return JSONResponse((await run_in_threadpool(change)).as_json())


async def _undo(request: Request) -> Response:
    project = service_of(request).project

    def undo() -> dict[str, Any] | None:
        """The change that was taken back."""
        undone = project.undo(person=person_of(request))
        return None if undone is None or undone.undoes is None else project.changes(undone.undoes - 1, 1)[0].as_json()

    return JSONResponse({"change": await run_in_threadpool(undo)})


async def _changes(request: Request) -> Response:
    project, after = service_of(request).project, integer(dict(request.query_params), "after", 0)
    changes = await run_in_threadpool(project.changes, after)
    last = changes[-1].change_id if changes else after
    shown = [{name: value for name, value in change.as_json().items() if name not in _ROWS} for change in changes]
    return JSONResponse({"changes": shown, "change": last})


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
    ending = Path(name).suffix.lower()
    with turns.waiting(), tempfile.TemporaryDirectory(dir=service.scratch) as folder:
        file = Path(folder) / f"sent{ending if ending in _ENDINGS else ''}"
        await to_file(request, file, sounds.UPLOAD_BYTES)
        store = service.archive.searcher.store if service.archive is not None else None

        def read() -> Counts:
            return import_file(service.project, file, person=person, store=store, examples=examples, name=name)

        counts = await turns.step(read)
    return JSONResponse(counts.as_json())


async def _import_beside(request: Request) -> Response:
    """Take in chosen tiers of all files beside the recordings."""
    values, service, person = await body_of(request), service_of(request), person_of(request)
    tiers, examples, beside = values.get("tiers"), bool(values.get("examples")), service.beside
    if not isinstance(tiers, list) or not tiers or not all(isinstance(tier, str) for tier in tiers):
        raise codes.WRONG_REQUEST(where="tiers", what="tiers are no list of names")
    if beside is None:
        raise codes.NOT_READY(where=service.settings.target)
    store = service.demand_archive().searcher.store
    files, where = {name: read.of[0] for name, read in beside.read.items()}, service.name

    def read() -> Counts:
        return import_files(
            service.project, files, where=where, person=person, store=store, tiers=tiers, examples=examples
        )

    return JSONResponse((await bounds_of(request).files.do(read)).as_json())


GLOSSARY = [
    Route("/api/entries", _entries, methods=["GET", "POST"]),
    Route("/api/entries/{id}", _entry, methods=["PATCH", "DELETE"]),
    Route("/api/entries/{id}/merge", _merge, methods=["POST"]),
    Route("/api/entries/{id}/split", _split, methods=["POST"]),
    Route("/api/entries/{id}/tokens", _tokens, methods=["GET", "POST"]),
    Route("/api/tokens/{id}", _token, methods=["PATCH", "DELETE"]),
    Route("/api/undo", _undo, methods=["POST"]),
    Route("/api/changes", _changes),
    Route("/api/export/{kind}", _export),
    Route("/api/import", _import, methods=["POST"]),
    Route("/api/annotations", _import_beside, methods=["POST"]),
]


#: Longest stretch, s.
SECONDS = 120.0
#: Most words of an answer.
_MOST = 2000


async def _transcript(request: Request) -> Response:
    values, service = dict(request.query_params), service_of(request)
    return JSONResponse(await bounds_of(request).clips.do(_transcripts_shown, service, values))


def _transcripts_shown(service: Service, values: dict[str, Any]) -> dict[str, Any]:
    """Words and corrections by their starts, in times of the document; `spaced`: whether a blank stands before a text;
    `known`: whether its recording has words.
    """
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


async def _tiers(request: Request) -> Response:
    values, service = dict(request.query_params), service_of(request)
    return JSONResponse({"tiers": await run_in_threadpool(_annotated, service, values)})


def _annotated(service: Service, values: dict[str, Any]) -> list[dict[str, Any]]:
    """Tiers with annotations in a stretch, in times of the document."""
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
    return tiers


def _bounded(place: Place) -> Place:
    if place.end - place.start > SECONDS:
        raise codes.LONG_CLIP(where=place.doc_id, seconds=place.end - place.start, most=SECONDS)
    return place


async def _correct(request: Request) -> Response:
    values, service, person = await body_of(request), service_of(request), person_of(request)
    place, text = _bounded(place_of(values.get("place"))), values.get("text")

    def correct() -> dict[str, Any]:
        where = service.located(place)
        content = service.demand_archive().content_of(where)
        return service.project.correct(where, text, person=person, content=content).as_json()  # type: ignore[arg-type]

    return JSONResponse(await run_in_threadpool(correct))


async def _remove(request: Request) -> Response:
    project, correction_id, person = service_of(request).project, id_of(request), person_of(request)
    await run_in_threadpool(lambda: project.remove_correction(correction_id, person=person))
    return JSONResponse({})


TRANSCRIPTS = [
    Route("/api/transcript", _transcript),
    Route("/api/tiers", _tiers),
    Route("/api/corrections", _correct, methods=["POST"]),
    Route("/api/corrections/{id}", _remove, methods=["DELETE"]),
]
