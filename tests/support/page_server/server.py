"""The API over HTTP: `python -m tests.support.page_server.server PORT` serves the page with made-up answers."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

import swsdist
from tests.support.page_server import recordings
from tests.support.page_server.project import Missing, Project, Row, overlap

STATIC = Path(swsdist.__file__).parent / "server" / "static"
POLICY = "default-src 'self'"
EXPORTS = ["eaf", "textgrid", "labels", "csv", "clips", "page", "tables", "project"]
CLIP_SECONDS = 60


class Served:
    """What the server holds."""

    def __init__(self) -> None:
        self.project = Project()
        self.documents = recordings.documents()
        self.samples = {row["doc_id"]: recordings.recording(n) for n, row in enumerate(self.documents)}
        self.sounds: dict[str, Any] = {}
        self.searches: dict[str, list[Row]] = {}
        self.people = ["me"]
        self.news: list[Row] = []


def person_of(request: Request) -> str:
    """Who asks."""
    return request.cookies.get("person", "me")


def state(request: Request) -> JSONResponse:
    """What the server says of itself."""
    served: Served = request.app.state.served
    limits = {"upload_bytes": 20_000_000, "upload_seconds": 60, "clip_seconds": CLIP_SECONDS}
    hours = len(served.documents) * recordings.SECONDS / 3600
    content = {
        "store": "/archive/likouala",
        "hours": hours,
        "documents": 3,
        "recordings": 3,
        "kinds": ["spoken", "text"],
    }
    people = {"person": person_of(request), "people": served.people, "change": len(served.project.changes)}
    where = {
        "folders": ["bakolo", "mossaka"],
        "speakers": list(recordings.SPEAKERS),
        "dates": ["2009-05-02", "2012-01-30"],
    }
    more = {
        "indexing": None,
        "ready": True,
        "limits": limits,
        "project": "/archive/words",
        "watch": {"folder": "/archive/new"},
    }
    last = {"secure": True, "news": len(served.news), "languages": ["en", "fr"], "exports": EXPORTS, "classes": True}
    return JSONResponse({**content, **people, **where, **more, **last})


async def entries(request: Request) -> JSONResponse:
    """List entries, or add one."""
    project: Project = request.app.state.served.project
    if request.method == "POST":
        return JSONResponse(project.add(person_of(request), await request.json()))
    text = request.query_params.get("text", "").lower()
    listed = [project.entry(entry_id) for entry_id in project.entries]
    return JSONResponse(
        {"entries": [row for row in listed if text in f"{row['form']} {row['gloss']} {row['note']}".lower()]}
    )


async def entry(request: Request) -> JSONResponse:
    """Change an entry, or remove it."""
    project: Project = request.app.state.served.project
    entry_id = request.path_params["entry_id"]
    project.entry(entry_id)
    if request.method == "DELETE":
        project.begin(person_of(request), "remove-entry", entry_id)
        del project.entries[entry_id]
        project.tokens = {key: token for key, token in project.tokens.items() if token["entry_id"] != entry_id}
        return JSONResponse({})
    project.begin(person_of(request), "change-entry", entry_id)
    project.entries[entry_id].update(await request.json())
    return JSONResponse(project.entry(entry_id))


async def merge(request: Request) -> JSONResponse:
    """Two entries become one."""
    project: Project = request.app.state.served.project
    entry_id, other = request.path_params["entry_id"], (await request.json())["other"]
    project.begin(person_of(request), "merge", entry_id)
    for token in project.of(other):
        token["entry_id"] = entry_id
    project.entries[entry_id]["variants"] = [*project.entries[entry_id]["variants"], project.entries[other]["form"]]
    del project.entries[other]
    return JSONResponse(project.entry(entry_id))


async def split(request: Request) -> JSONResponse:
    """Tokens become an entry of their own."""
    project: Project = request.app.state.served.project
    body = await request.json()
    new = project.add(person_of(request), {"form": body["form"]})
    for token_id in body["tokens"]:
        project.tokens[token_id]["entry_id"] = new["entry_id"]
    return JSONResponse(project.entry(new["entry_id"]))


async def tokens(request: Request) -> JSONResponse:
    """List the tokens of an entry, or judge a place."""
    served: Served = request.app.state.served
    entry_id = request.path_params["entry_id"]
    if request.method == "POST":
        body = await request.json()
        served.project.entry(entry_id)
        name = body.pop("search", None)
        token = served.project.judge(person_of(request), entry_id, body)
        return JSONResponse({"token": token, "likelihood": summary(served, entry_id, name)})
    served.project.entry(entry_id)
    return JSONResponse({"tokens": [described(served, token) for token in served.project.of(entry_id)]})


async def token(request: Request) -> JSONResponse:
    """Change a token, or remove it."""
    served: Served = request.app.state.served
    token_id = request.path_params["token_id"]
    if token_id not in served.project.tokens:
        raise Missing
    served.project.begin(person_of(request), "change-token", served.project.tokens[token_id]["entry_id"])
    if request.method == "DELETE":
        del served.project.tokens[token_id]
        return JSONResponse({})
    served.project.tokens[token_id].update(await request.json())
    return JSONResponse(described(served, served.project.tokens[token_id]))


def described(served: Served, row: Row) -> Row:
    """A token with the name of its recording."""
    names = {document["doc_id"]: document["recording"] for document in served.documents}
    return {**row, "recording": names.get(row["place"]["doc_id"]), "path_known": True}


def summary(served: Served, entry_id: int | None, name: str | None) -> Row:
    """What is expected beyond what was judged: the sum of what is likely."""
    judged = served.project.of(entry_id) if entry_id else []
    left = [hit for hit in served.searches.get(name or "", []) if not any(overlap(hit, row["place"]) for row in judged)]
    expected = sum(hit["likely"] for hit in left)
    counts = {verdict: sum(row["verdict"] == verdict for row in judged) for verdict in ("yes", "no")}
    worth = any(hit["likely"] > 0.5 for hit in left) or not left
    bounds = {"expected": expected, "low": expected * 0.7, "high": expected * 1.4 + 1, "listed": expected}
    return {"judged": len(judged), **counts, **bounds, "worth": worth, "why": "likely" if worth else "nothing-likely"}


async def undo(request: Request) -> JSONResponse:
    """Take back the last change of who asks."""
    return JSONResponse({"change": request.app.state.served.project.undo(person_of(request))})


def changes(request: Request) -> JSONResponse:
    """What changed after a number."""
    project: Project = request.app.state.served.project
    after = int(request.query_params.get("after", 0))
    return JSONResponse({"changes": project.changes[after:], "change": len(project.changes)})


async def person(request: Request) -> JSONResponse:
    """Keep a name."""
    name = (await request.json())["person"]
    served: Served = request.app.state.served
    served.people = sorted({*served.people, name})
    reply = JSONResponse({"person": name})
    reply.set_cookie("person", name)
    return reply


async def sounds(request: Request) -> JSONResponse:
    """Take a sound in."""
    body = await request.body()
    try:
        samples, rate = soundfile.read(io.BytesIO(body), dtype="float32")
    except soundfile.LibsndfileError:
        error = {
            "error": "This is not audio that can be read.",
            "remedy": "Give a WAV, FLAC, OGG or MP3 file.",
            "code": "sound",
        }
        return JSONResponse(error, 415)
    name = hashlib.sha256(body).hexdigest()
    samples = samples if samples.ndim == 1 else samples.mean(axis=1)
    request.app.state.served.sounds[name] = (samples, rate)
    duration = len(samples) / rate
    return JSONResponse(
        {"sound": name, "duration": duration, "rate": rate, "speech": [0.15 * duration, 0.85 * duration]}
    )


async def search(request: Request) -> StreamingResponse:
    """Give the hits in four lines."""
    served: Served = request.app.state.served
    body = await request.json()
    entry_id = body.get("entry_id")
    judged = [row["place"] for row in served.project.of(entry_id)] if entry_id else []
    narrow = body.get("narrow", {})
    found = [hit for hit in recordings.hits(7) if not any(overlap(hit, place) for place in judged)]
    found = [
        hit
        for hit in found
        if narrow.get("folder", "") in hit["recording"] and narrow.get("speaker", "") in hit["speaker"]
    ]
    name = f"s{len(served.searches)}"
    served.searches[name] = found

    async def lines() -> AsyncIterator[str]:
        for part in (0.25, 0.5, 0.75):
            hits = found[:: round(1 / part)] if part < 0.75 else found[: int(0.75 * len(found))]
            yield json.dumps({"part": part, "hits": hits, "final": False, "search": name}) + "\n"
            await asyncio.sleep(0.05)
        last = {"part": 1, "hits": found, "final": True, "search": name, "warnings": [], "seconds": 0.2}
        yield json.dumps({**last, "likelihood": summary(served, entry_id, name)}) + "\n"

    return StreamingResponse(lines(), media_type="application/x-ndjson")


def likely(request: Request) -> JSONResponse:
    """How likely the hits of a search are."""
    served: Served = request.app.state.served
    name = request.query_params["search"]
    hits = served.searches[name]
    told = summary(served, int(request.query_params["entry_id"]), name)
    return JSONResponse({"likelihood": told, "likely": [hit["likely"] for hit in hits]})


def sound(request: Request) -> Response:
    """A clip."""
    served: Served = request.app.state.served
    query = request.query_params
    start, end, pad = float(query["start"]), float(query["end"]), float(query.get("pad", 0.25))
    if "sound" in query:
        samples, rate = served.sounds[query["sound"]]
    else:
        samples, rate = served.samples[query["doc_id"]], recordings.RATE
    first, last = max(0, int((start - pad) * rate)), min(len(samples), int((end + pad) * rate))
    file = io.BytesIO()
    soundfile.write(file, samples[first:last], rate, "PCM_16", format="WAV")
    return Response(file.getvalue(), media_type="audio/wav", headers={"X-Begin": str(first / rate)})


def listed(request: Request) -> JSONResponse:
    """Recordings."""
    served: Served = request.app.state.served
    text = request.query_params.get("text", "")
    rows = [row for row in served.documents if text in row["recording"]]
    return JSONResponse({"recordings": rows, "total": len(rows)})


def overview(request: Request) -> JSONResponse:
    """The waveform of a recording."""
    samples = request.app.state.served.samples[request.query_params["doc_id"]]
    pieces = np.array_split(samples, int(request.query_params.get("points", 800)))
    low, high = [float(piece.min()) for piece in pieces], [float(piece.max()) for piece in pieces]
    return JSONResponse({"start": 0, "end": recordings.SECONDS, "low": low, "high": high})


def classes(request: Request) -> JSONResponse:
    """Classes of a run of `discover`."""
    place = {"doc_id": "doc0", "channel": 1, "start": 3.1, "end": 3.7, "sound": None}
    rows = [{"name": str(n), "members": 12 - n, "place": place} for n in range(1, 6)]
    return JSONResponse({"classes": rows, "total": len(rows)})


def news(request: Request) -> JSONResponse:
    """What was found in new recordings, or that it was seen."""
    served: Served = request.app.state.served
    if request.method == "POST":
        served.news = []
        return JSONResponse({})
    return JSONResponse({"news": served.news})


def export(request: Request) -> Response:
    """A file to take along."""
    forms = [row["form"] for row in request.app.state.served.project.entries.values()]
    kind = request.path_params["kind"]
    headers = {"Content-Disposition": f'attachment; filename="words.{kind}"'}
    return Response("\n".join(forms), media_type="text/plain", headers=headers)


async def bring_in(request: Request) -> JSONResponse:
    """Take a file of words in: a form a line."""
    served: Served = request.app.state.served
    forms = (await request.body()).decode().split()
    for form in forms:
        served.project.add(person_of(request), {"form": form})
    return JSONResponse({"added": len(forms), "changed": 0, "skipped": 0})


def missing(request: Request, error: Exception) -> JSONResponse:
    """There is no such thing."""
    return JSONResponse({"error": "There is no such word.", "remedy": "Load the page again.", "code": "missing"}, 404)


class Page(StaticFiles):
    """The page's files, as strictly as the real server serves them."""

    async def get_response(self, path: str, scope: Any) -> Response:
        """A file."""
        reply = await super().get_response(path, scope)
        reply.headers["Content-Security-Policy"] = POLICY
        reply.headers["Cache-Control"] = "no-cache"
        return reply


def page(request: Request) -> Response:
    """The page itself."""
    return FileResponse(STATIC / "index.html", headers={"Content-Security-Policy": POLICY})


def app(served: Served | None = None) -> Starlette:
    """The server."""
    routes: list[Any] = [
        Route("/api/state", state),
        Route("/api/entries", entries, methods=["GET", "POST"]),
        Route("/api/entries/{entry_id:int}", entry, methods=["PATCH", "DELETE"]),
        Route("/api/entries/{entry_id:int}/merge", merge, methods=["POST"]),
        Route("/api/entries/{entry_id:int}/split", split, methods=["POST"]),
        Route("/api/entries/{entry_id:int}/tokens", tokens, methods=["GET", "POST"]),
        Route("/api/tokens/{token_id:int}", token, methods=["PATCH", "DELETE"]),
        Route("/api/undo", undo, methods=["POST"]),
        Route("/api/changes", changes),
        Route("/api/person", person, methods=["POST"]),
        Route("/api/sounds", sounds, methods=["POST"]),
        Route("/api/search", search, methods=["POST"]),
        Route("/api/likely", likely),
        Route("/api/sound", sound),
        Route("/api/recordings", listed),
        Route("/api/overview", overview),
        Route("/api/classes", classes),
        Route("/api/news", news),
        Route("/api/news/seen", news, methods=["POST"]),
        Route("/api/export/{kind}", export),
        Route("/api/import", bring_in, methods=["POST"]),
        Route("/", page),
        Mount("/static", Page(directory=STATIC)),
    ]
    made = Starlette(routes=routes, exception_handlers={Missing: missing})
    made.state.served = served or Served()
    return made


if __name__ == "__main__":
    uvicorn.run(app(), port=int(sys.argv[1]), log_level="warning")
