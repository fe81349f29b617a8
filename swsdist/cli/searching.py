"""The search command: a config's queries, or a few given ones in a store."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from swsdist.cli.options import allow_commands
from swsdist.cli.outputs import FOLDER, Writing, written
from swsdist.report.tables import TABLES

if TYPE_CHECKING:
    import pyarrow as pa

    from swsdist.chains.search.report.judging import Judge
    from swsdist.methods.query.extraction import Cut
    from swsdist.report.answers.hits import Answer
    from swsdist.store.reading import Store


@click.command(cls=Writing)
@click.argument("target", metavar="CONFIG|RUN|STORE")
@click.option(
    "--query",
    "queries",
    multiple=True,
    metavar="FILE[:START-END]",
    help="A recording, or a place in one (talk.flac:12.3-13.1 or talk.flac:1:02:03-1:02:04), to search in the store; may be "
    "repeated; `-`: a query a line from the standard input.",
)
@click.option("--top", default=20, type=click.IntRange(1), show_default=True, help="Hits shown per query.")
@click.option("--no-trim", is_flag=True, help="Search recorded queries whole, with the background around their speech.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV instead of a table.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@click.option("--table", type=written(*TABLES), metavar="FILE", help="Also write the hits: .csv, .tex, .md or .json.")
@click.option("--html", type=written(".html", ".htm"), metavar="FILE", help="Also write a page with players.")
@click.option("--clips", type=FOLDER, metavar="DIR", help="Also write the hits' sound there, as WAV.")
@click.option(
    "--calibration",
    metavar="FILE|RUN",
    help="Say `likely` by what decided there; by default in the run that is searched, else by the query's own scores.",
)
@click.option(
    "--set", "sets", multiple=True, metavar="A.B=C", help="Set a key of the config, or search.KEY of a store."
)
@click.option("--strict", is_flag=True, help="Exit code 4 if an input was rejected; warnings are errors.")
@click.option("--force", is_flag=True, help="With a config: go on although the inputs are too odd.")
@click.option("--dry-run", is_flag=True, help="With a config: show the plan and do nothing.")
@allow_commands
def search(
    target: str,
    queries: tuple[str, ...],
    top: int,
    no_trim: bool,
    as_csv: bool,
    as_json: bool,
    table: str | None,
    html: str | None,
    clips: str | None,
    calibration: str | None,
    sets: tuple[str, ...],
    strict: bool,
    force: bool,
    dry_run: bool,
) -> int:
    """Search the queries of CONFIG, or those given with --query in a store, which a run's folder may stand for.

    \b
    swsdist search config.yaml
    swsdist search runs/mine --query hello.wav --query talk.flac:12:03.5-12:04.2 --html hits.html
    """
    from swsdist.errors import IncompleteError, UserError

    if not queries and Path(target).is_file():
        from swsdist.cli.running import go

        given = {
            "--table": table,
            "--html": html,
            "--clips": clips,
            "--calibration": calibration,
            "--csv": as_csv,
            "--json": as_json,
        }
        if wrong := [name for name, value in given.items() if value]:
            raise UserError(
                f"{wrong[0]} is for queries that are given with --query",
                where=target,
                remedy="give --query, or run the config: `swsdist run` writes a page and clips",
            )
        if no_trim:
            sets = (*sets, "queries.trim=none")
        return go(target, sets, strict, dry_run, force=force, until="search", whole=True)
    from swsdist.config.loader import section_values

    if not queries:
        raise UserError(
            "there is nothing to search for",
            where=target,
            remedy="give a config file, or a store and --query FILE",
        )
    from swsdist import api
    from swsdist.chains.search.report.ways import way_of
    from swsdist.cli.outputs import check_new_folder, write_data
    from swsdist.cli.progress import searching
    from swsdist.methods.direct import search_store

    if dry_run:
        raise UserError(
            "--dry-run is for a config: the queries of --query are searched here and now",
            where=target,
            remedy="leave it out",
        )
    if as_csv and as_json:
        raise UserError("--csv and --json are two forms of one output", where=target, remedy="give one of them")
    check_new_folder(clips)
    asked = list(dict.fromkeys(line for one in queries for line in (_listed() if one == "-" else [one.strip()])))
    if not any(asked):
        raise UserError("there is nothing to search for", where="--query -", remedy="give a query a line")
    warnings: list[str] = []

    def warn(text: str) -> None:
        warnings.append(text)
        print(f"warning: {text}", file=sys.stderr)

    way = way_of(target, bool(section_values(sets, "search")))
    options, judge = {**way.options, **section_values(sets, "search")}, way.judge
    cuts: dict[str, Cut] = {}

    def told(cut: Cut) -> None:
        cuts[cut.query_id] = cut
        what = f"{cut.before:.2f} s before and {cut.after:.2f} s after the speech of {cut.query_id} are left out (--no-trim)"
        print(what, file=sys.stderr)

    from swsdist.pipeline.operation.readers import reading

    there = api.open_store(way.store, way.storage)
    store = click.get_current_context().with_resource(reading(there))  # until this command ends
    if calibration is not None:
        from swsdist.chains.search.report.judging import named

        judge = named(calibration, options, (track.recipe for track in store.manifest.tracks))
    with searching(store) as watched:
        # The same sound on all channels is one hit.
        found = search_store(watched, asked, options, top * _channels(store), way.trim and not no_trim, told)
    answers, found = _answers(store, asked, found, judge, top)
    for warning in (*way.warnings, *judge.warnings, *_themselves(answers)):
        warn(warning)
    note = "; scores are standard deviations above the mean of a query's candidates"
    if as_csv or as_json:
        write_data()
    if as_csv:
        found.to_pandas().to_csv(sys.stdout, index=False)
    elif as_json:
        import json

        print(json.dumps(_with_words(found, judge, store).to_pylist(), indent=1, ensure_ascii=False))
    else:
        from swsdist.report.answers.lines import lines

        print("\n".join(lines(answers, f"{judge.said}{note}")))
    empty = [answer.query_id for answer in answers if not answer.hits]
    if empty:
        warn(f"nothing was found of {', '.join(empty)}{_why_nothing(store)}")
    if table is not None:
        from swsdist.report.answers.lines import hits_table
        from swsdist.report.tables import write_tables

        write_tables([hits_table(answers, f"{judge.said}{note}")], table)
    if clips is not None:
        _write_clips(answers, Path(clips), store, warn)
    if html is not None:
        _write_page(answers, cuts, options, judge, store, Path(html))
    if strict and warnings:
        raise IncompleteError(
            f"{len(warnings)} warnings; the first: {warnings[0]}",
            where=target,
            remedy="see the warnings above; without --strict they are no errors",
        )
    return 0


def _channels(store: Store) -> int:
    """The most that a recording has."""
    import pyarrow.compute as pc

    return int(pc.max(store.documents(columns=["channel"])["channel"]).as_py() or 1)


def _listed() -> list[str]:
    """Queries of the standard input, a line each.

    Raises:
        UserError: it is no text: somebody has sent the sound itself.
    """
    from swsdist.errors import UserError

    found = []
    for line in sys.stdin:
        if "\0" in line or "\ufffd" in line or line.startswith(("RIFF", "fLaC", "OggS")):
            raise UserError(
                "standard input is a list of queries, a path a line, and this is something else",
                where="--query -",
                remedy="name the recording: --query FILE",
            )
        found.append(line.strip())
    return [line for line in found if line]


def _with_words(found: pa.Table, judge: Judge, store: Store) -> pa.Table:
    """For programs what the table says too: whether a hit is likely, and where its recording lies."""
    import pyarrow as pa

    recordings = store.recordings(found["doc_id"].to_pylist())
    keys = zip(found["doc_id"].to_pylist(), found["channel"].to_pylist(), strict=True)
    paths = [recordings[key].path if key in recordings else None for key in keys]
    likely = pa.array(judge.likely(found), pa.bool_())
    return found.append_column("likely", likely).append_column("path", pa.array(paths, pa.string()))


def _answers(
    store: Store, asked: Sequence[str], found: pa.Table, judge: Judge, top: int
) -> tuple[tuple[Answer, ...], pa.Table]:
    """The best hits of each query, and their rows of DETECTIONS."""
    import pyarrow as pa

    from swsdist.report.answers.hits import answers

    paths = {key: one.path for key, one in store.recordings(found["doc_id"].to_pylist()).items()}
    rows = found.to_pylist()
    best = answers(rows, judge.likely(found), asked, paths, top)
    shown = {
        (hit.query_id, hit.doc_id, channel, hit.start, hit.end)
        for answer in best
        for hit in answer.hits
        for channel in hit.channels
    }
    keys = ("query_id", "doc_id", "channel", "start", "end")
    return best, found.filter(pa.array([tuple(row[key] for key in keys) in shown for row in rows], pa.bool_()))


def _themselves(answers: Sequence[Answer]) -> Iterator[str]:
    """Hits that say nothing: the very places that queries were taken from."""
    import os

    from swsdist.methods.direct import parse_query

    def real(path: object) -> str:
        text = str(path)
        return text if "://" in text else os.path.realpath(text)

    for answer in answers:
        query = parse_query(answer.query_id)
        start, end = query["start"] or 0.0, query["end"] or float("inf")
        assert isinstance(start, float)
        assert isinstance(end, float)
        source = real(query["path"])
        for number, hit in enumerate(answer.hits, 1):
            common = min(end, hit.end) - max(start, hit.start)
            if hit.path and real(hit.path) == source and common > (hit.end - hit.start) / 2:
                yield f"hit {number} of {answer.query_id} is the query itself, taken from a recording that is searched"
                break


def _why_nothing(store: Store) -> str:
    """A guess that helps."""
    import pyarrow.compute as pc

    longest = pc.max(store.documents(columns=["duration"])["duration"]).as_py() or 0.0
    return f": the longest document lasts {longest:.1f} s; is a query longer than all of them?"


def _write_clips(answers: Sequence[Answer], folder: Path, store: Store, warn: Callable[[str], None]) -> None:
    """The hits of each query, best first, numbered as they are shown."""
    from swsdist.audio.clips import MARKER, write_clip
    from swsdist.errors import AudioError
    from swsdist.exports.clips import clip_name

    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARKER).touch()  # first, so that clips are never taken for recordings
    written = silent = 0
    for number, hit in enumerate((hit for answer in answers for hit in answer.hits), 1):
        if not hit.path:
            silent += 1
            continue
        name = clip_name(number, Path(hit.query_id).name, hit.doc_id, hit.start)
        try:
            write_clip(
                *(hit.path, hit.start, hit.end, folder / name), channel=hit.channels[0], storage=store.folder.storage
            )
            written += 1
        except AudioError as error:
            warn(f"no clip of hit {number}, {hit.doc_id}: {error.message}")
    if silent:
        warn(f"{silent} hits have no clip: their documents have no recording")
    if not written:
        (folder / MARKER).unlink()  # the folder is empty again
    print(f"clips: {written} in {folder}", file=sys.stderr)


def _write_page(
    answers: Sequence[Answer],
    cuts: Mapping[str, Cut],
    options: Mapping[str, object],
    judge: Judge,
    store: Store,
    page: Path,
) -> None:
    from swsdist.audio.reader import probe
    from swsdist.io.frames.archive import single
    from swsdist.methods.direct import parse_query
    from swsdist.report.answers.page import Asked, Searched, render_answers

    storage = store.folder.storage
    asked = []
    for answer in answers:
        row = parse_query(answer.query_id)
        path, start, end = str(row["path"]), row["start"], row["end"]
        assert start is None or isinstance(start, float)
        assert end is None or isinstance(end, float)
        cut = cuts.get(answer.query_id)
        searched = None
        if cut is not None and (cut.before or cut.after):
            searched = cut.before, probe(path, storage).duration - cut.after
        sound = path if single(path, storage) is None else ""  # frames have none
        asked.append(Asked(answer.query_id, sound, 1, start, end, searched))
    counts = store.manifest.counts
    about = Searched(store.folder.path(), counts["seconds"] / 3600, int(counts["documents"]), judge.said, dict(options))
    page.write_text(render_answers(answers, asked, about, storage), encoding="utf-8")
    print(f"page: {page}", file=sys.stderr)
