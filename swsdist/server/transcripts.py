"""HTTP routes of transcripts: the words of a stretch of a recording, corrections of them, and tiers of annotations beside it.

A correction counts for the words whose middle lies in its stretch, whatever is recognised there now or later.
"""

from __future__ import annotations

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from swsdist.core.codes import server as codes
from swsdist.glossary import words
from swsdist.glossary.words import Place
from swsdist.lattices.words import written
from swsdist.server.requests import (
    body_of,
    bounds_of,
    channel_of,
    id_of,
    number,
    person_of,
    place_of,
    service_of,
    text_of,
)
from swsdist.server.service import Service

#: Longest stretch, s.
SECONDS = 120.0
#: Most words of an answer.
_MOST = 2000


async def _transcript(request: Request) -> Response:
    values, service = dict(request.query_params), service_of(request)
    return JSONResponse(await bounds_of(request).clips.do(_shown, service, values))


def _shown(service: Service, values: dict[str, Any]) -> dict[str, Any]:
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
