"""Search without a run: queries in a store, in this process, detections out."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import ValidationError

from swsdist.audio.speech import SHORTEST
from swsdist.calibrate.procedure import Procedure, make_steps
from swsdist.calibrate.statistics import CostSums, from_table
from swsdist.config.model import Reduce
from swsdist.config.search import Search
from swsdist.errors import AudioError, ConfigError, DataError, StoreError, UserError
from swsdist.features.interface import Extractor, Given
from swsdist.features.registry import made_by
from swsdist.io.frames.archive import single
from swsdist.io.remote.scratch import scratch
from swsdist.kernels.distances.interface import Distance
from swsdist.methods.asked import Skip, asked, leaving_out, typed_query
from swsdist.methods.curve import curve, path
from swsdist.methods.dtw.method import Dtw
from swsdist.methods.dtw.query_distances import local_distances
from swsdist.methods.dtw.shard import Documents, engine_settings
from swsdist.methods.query import bands, own_recording
from swsdist.methods.query.extraction import Cut, Extracted, extract, prepared
from swsdist.methods.query.hearing import speaks
from swsdist.reduce.examples import reduce_examples
from swsdist.reduce.places import WHERE, in_recordings
from swsdist.store.reading import Store
from swsdist.store.tracks import Tracks
from swsdist.times import frames_to_seconds, seconds_to_frame
from swsdist.types import DETECTIONS

#: Hz at which is heard whether there is speech in a place.
_RATE = 16_000


def search_store(
    store: Store,
    queries: object,
    options: Mapping[str, object],
    top: int,
    trim: bool = True,
    told: Callable[[Cut], None] | None = None,
    skip: Skip | None = None,
    say: Callable[[str], None] | None = None,
    warn: Callable[[str], None] | None = None,
) -> pa.Table:
    """Detections of a few queries, best first within each query.

    Args:
        store: an open store.
        queries: as `swsdist.methods.asked.asked` takes them, or gives them.
        options: keys of the config's section `search`.
        top: detections kept per query.
        trim: cut off what is not speech at both ends of a recorded query; one without speech is an error, and so is a place
            without it.
        told: is told what was cut off.
        skip: is told of each example that cannot be used, and the others are searched; without, it is an error.
        say: is told what was chosen that nobody said.
        warn: is told what is odd.

    Returns:
        DETECTIONS without `decision` and `system`; scores are q-normed.

    Raises:
        AudioError: a query cannot be used.
        ConfigError: an option is not valid.
    """
    settings = settings_of(options)
    with tempfile.TemporaryDirectory(dir=scratch()) as place:
        rows = asked(queries, store, Path(place), skip, say)
        if own_recording.are_wanted(settings):
            rows = own_recording.with_statistics(rows, store, [track.name for track in store.manifest.tracks])
        extracted = extracted_from(store, rows, settings, trim, skip)
    if told is not None:
        for cut in extracted.cuts:
            told(cut)
    if not extracted.examples.num_rows:  # `skip` was told of all
        return DETECTIONS.empty_table().drop_columns(["decision", "system"])
    if warn is not None:
        for query in extracted.examples.select(["query_id", "duration"]).to_pylist():
            if query["duration"] < SHORTEST:
                warn(
                    f"{query['query_id']} lasts {query['duration']:.2f} s, and much else sounds like so little: give a phrase"
                )
        documents, highest = store.documents(columns=["doc_id", "bandwidth"]), bands.reach(_extractors(store))
        for one in bands.apart(extracted.examples, documents, highest):
            warn(f"{one.documents} of {documents.num_rows} documents have another band than {one}; {bands.REMEDY}")
    method = Dtw(settings)
    prepared = method.prepare(extracted.examples, store)

    def candidates() -> Iterable[pa.Table]:
        for unit in method.plan(store):
            yield from method.search(prepared, store, unit.shards, 1).tables

    found = list(candidates()) if settings.examples == "mean" else candidates()  # the mean reads them twice
    reduced = reduce_examples(
        settings.examples,
        lambda: found,
        tick=store.manifest.shift,
        overlap=Reduce().overlap,
        nbest=top,
        system="",
        statistics=(CostSums.name,),
        fineness=1024 * method.unit(),
    )
    detections = in_recordings(reduced.detections, store.documents(columns=list(WHERE)), Reduce().overlap)
    qnorm = Procedure(make_steps(["q-norm"], {}))
    return qnorm.scores(detections, from_table(reduced.statistics)).drop_columns(["decision", "system"])


def settings_of(options: Mapping[str, object]) -> Search:
    """The config's section `search` from some of its keys.

    Raises:
        ConfigError: an option is not valid.
    """
    try:
        settings = Search.model_validate(dict(options))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(["search", *(str(part) for part in first["loc"])])
        raise ConfigError(first["msg"], where=place, remedy="see docs/reference/config.md") from None
    if settings.method != "dtw":
        raise ConfigError(
            f"only dtw searches a store directly, not {settings.method}",
            where="search.method",
            remedy="run it on a corpus: `swsdist run`",
        )
    return settings


def extracted_from(
    store: Store,
    rows: list[dict[str, object]],
    settings: Search | None = None,
    trim: bool = True,
    skip: Skip | None = None,
) -> Extracted:
    """Features of queries by the extractor of a store.

    Args:
        store: an open store.
        rows: of QUERIES.
        settings: whose recurrence bounds a query's length; without, all that any can hold.
        trim, skip: as for `search_store`.

    Raises:
        DataError: a query cannot be used.
    """
    extractors = _extractors(store)
    given = any(isinstance(one, Given) for one in extractors)
    usable = []
    for row in rows:
        with leaving_out(skip, str(row["query_id"]), int(str(row["example"]))):
            if given:
                row = _with_own_frames(row, extractors, store)
            elif trim and row["path"] is not None and row["start"] is not None and row["end"] is not None:
                _demand_speech(row, store)
            usable.append(row)
    extracted = extract(usable, extractors, store.folder, settings, trim)
    typed: dict[tuple[object, object], Any] = {(row["query_id"], row["example"]): row.get("typed") for row in usable}
    for bad in extracted.rejected.to_pylist():
        key = bad["id"], bad["part"]
        error = DataError(bad["message"], where=typed[key] or bad["path"], remedy=bad["remedy"])
        with leaving_out(skip, *key):
            raise error
    return extracted


def _demand_speech(row: Mapping[str, Any], store: Store) -> None:
    """Of a place that somebody marked.

    Raises:
        AudioError: there is none in it, or it is no place in the recording.
    """
    if not speaks(row, _RATE, store.folder.storage):
        raise AudioError(
            "there is no speech in this place: silence, hum, noise, a tone or clicks only",
            where=row.get("typed") or f"query {row['query_id']}, example {row['example']}",
            reason="no-speech",
            remedy="mark another place, or search it all the same (--no-trim; in Python trim=False)",
        )


def _extractors(store: Store) -> list[Extractor | Given]:
    """Those that made a store, each once: tracks of one pass stand together and have one recipe."""
    recipes = {track.fingerprint: track.recipe for track in store.manifest.tracks}
    return [made_by(_with_models_here(recipe, store)) for recipe in recipes.values()]


def _with_models_here(recipe: dict[str, Any], store: Store) -> dict[str, Any]:
    """A recipe with the paths of models that moved with the store; that they are the same their fingerprint tells."""

    def here(path: str | None) -> str | None:
        if path is None:
            return None
        name = f"models/{path.rsplit('/', 1)[-1]}"
        return store.folder.path(name) if "/models/" in path and store.folder.exists(name) else path

    def moved(one: dict[str, Any]) -> dict[str, Any]:
        paths = {key: here(path) for key, path in one.get("paths", {}).items()}
        return {**one, **({"paths": paths} if paths else {})}

    made = moved(recipe)
    return {**made, "transforms": [moved(one) for one in recipe["transforms"]]} if "transforms" in recipe else made


def _with_own_frames(row: dict[str, object], extractors: list[Extractor | Given], store: Store) -> dict[str, object]:
    """The row of a query that is a file of frames, for a store whose frames were given.

    Raises:
        UserError: it is none, or the store has further tracks, of which a query has to be told another file.
    """
    path = str(row["path"])
    item = single(path, store.folder.storage)
    if item is None or len(extractors) > 1:
        several = f" in one of its {len(extractors)} tracks" if len(extractors) > 1 else ""
        raise UserError(
            f"frames of this store were given{several}: nothing here can make them of a recording",
            where=path,
            remedy="run a config, whose features.options.queries names the frames of the queries (docs/how-to/"
            "use-your-own-features.md)"
            if several
            else "give frames of the query: a file .npy or HTK, maybe with a place (hello.npy:0.2-0.9)",
        )
    cut = row["start"] is not None
    return {**row, "key": path, "items": {"": item}, "given": {"": item.identity}, "cut": {"": cut}}


def columns() -> list[str]:
    """Names of the columns that `search_store` returns."""
    return [name for name in DETECTIONS.names if name not in ("decision", "system")]


def curve_in_store(
    store: Store, query: str, doc_id: str, channel: int, options: Mapping[str, object], trim: bool = True
) -> pa.Table:
    """The curve of a spoken query in a document of a store.

    Args:
        store: an open store.
        query: as `swsdist.methods.asked.parse_query` takes it.
        doc_id, channel: of the document.
        options: keys of the config's section `search`.
        trim: as for `search_store`.

    Returns:
        A row for each frame of the document: start and end of the path that ends with it (s), its score, cost and document
        frames; null where none ends.

    Raises:
        AudioError: the query cannot be used.
        ConfigError: an option is not valid.
        StoreError: there is no such document.
    """
    one = _Pair(store, query, doc_id, channel, options, trim)
    found = curve(one.query, one.document, one.distance, *one.recurrence)
    shift, none = store.manifest.shift, found.frames == 0
    last = np.arange(len(found.cost))
    return pa.table(
        {
            "start": pa.array(frames_to_seconds(last - found.frames + 1, shift), mask=none),
            "end": pa.array(frames_to_seconds(last + 1, shift)),
            "score": pa.array(-found.cost / (len(one.query) * one.distance.unit), mask=none),
            "cost": pa.array(found.cost, mask=none),
            "frames": pa.array(found.frames, mask=none),
        }
    )


def path_in_store(
    store: Store, query: str, doc_id: str, end: float, channel: int, options: Mapping[str, object], trim: bool = True
) -> pa.Table:
    """The warping path of a detection.

    Args:
        end: the detection's end, s.

    The others are as for `curve_in_store`.

    Returns:
        A row for each cell of the path: query_frame and frame, the times that they begin at (query_time, time; s) and
        their distance, 1 for the unit of the distance.

    Raises:
        AudioError: the query cannot be used.
        ConfigError: an option is not valid.
        StoreError: there is no such document.
        UserError: no path ends there.
    """
    if not (end > 0 and math.isfinite(end)):
        raise UserError(f"no path ends at {end} s", where="end", remedy="give the end of a detection, in s")
    one = _Pair(store, query, doc_id, channel, options, trim)
    shift = store.manifest.shift
    cells = path(one.query, one.document, seconds_to_frame(end, shift) - 1, one.distance, *one.recurrence)
    first = int(cells[0, 1])
    table = local_distances(one.query, one.document[first : cells[-1, 1] + 1], one.distance)
    return pa.table(
        {
            "query_frame": cells[:, 0],
            "frame": cells[:, 1],
            "query_time": frames_to_seconds(cells[:, 0], shift),
            "time": frames_to_seconds(cells[:, 1], shift),
            "distance": table[cells[:, 0], cells[:, 1] - first] / one.distance.unit,
        }
    )


class _Pair:
    """A query and a document of a store, prepared as the search prepares them."""

    def __init__(
        self, store: Store, query: str, doc_id: str, channel: int, options: Mapping[str, object], trim: bool
    ) -> None:
        config = settings_of(options)
        if config.skip_silence:
            raise ConfigError(
                "a curve and a path are of all frames of a document",
                where="search.skip_silence",
                remedy="leave it away",
            )
        manifest = store.manifest
        rows = [typed_query(query, store)]
        if own_recording.are_wanted(config):
            rows = own_recording.with_statistics(rows, store, [track.name for track in manifest.tracks])
        extracted = extracted_from(store, rows, trim=trim).examples
        tracks = Tracks(store)
        placed = config.placed(tracks.places)
        self.query = prepared(extracted, tracks.statistics(), placed, tracks.dimension)[0].frames
        self.distance, self.document = _document(store, doc_id, channel, config)
        settings = engine_settings(config, self.distance, manifest.shift)
        self.recurrence = settings.recurrence, settings.options


def _document(store: Store, doc_id: str, channel: int, config: Search) -> tuple[Distance, NDArray[np.float32]]:
    """The distance of a config, and a document's frames prepared for it."""
    everywhere = store.documents(columns=["doc_id", "channel", "shard", "recording", "start"])
    shards = everywhere["shard"].filter(_is(everywhere, doc_id, channel)).to_pylist()
    places = everywhere.filter(pc.equal(everywhere["recording"], doc_id))
    if not shards and places.num_rows:
        several = ", ".join(f"{row['doc_id']} (from {row['start']:g} s)" for row in places.slice(0, 5).to_pylist())
        raise StoreError(
            f"{doc_id!r} is a recording of {places.num_rows} documents",
            where=store.folder.path(),
            remedy=f"name a document, and count times from its start: {several}",
        )
    if not shards:
        raise StoreError(
            f"there is no document {doc_id!r}, channel {channel}",
            where=store.folder.path(),
            remedy="`swsdist store info --documents` lists those there are",
        )
    documents = Documents(store, shards, config)
    chosen = _is(documents.table, doc_id, channel).to_numpy()
    blocks = [block for _, blocks in documents.stream(chosen=chosen) for block in blocks]
    return documents.distance, np.concatenate(blocks)


def _is(table: pa.Table, doc_id: str, channel: int) -> pa.ChunkedArray:
    return pc.and_(pc.equal(table["doc_id"], doc_id), pc.equal(table["channel"], channel))
