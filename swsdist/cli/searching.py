"""The search command: a config's queries, or a few given ones in a store."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from swsdist.cli.options import allow_commands
from swsdist.cli.outputs import FOLDER, written

if TYPE_CHECKING:
    import pyarrow as pa

    from swsdist.chains.search.report.judging import Judge
    from swsdist.methods.query.extraction import Cut
    from swsdist.report.answers.hits import Answer
    from swsdist.store.reading import Store


@click.command()
@click.argument("target", metavar="CONFIG|RUN|STORE")
@click.option(
    "--query",
    "queries",
    multiple=True,
    metavar="FILE[:START-END]",
    help="A recording, or a place in one (talk.flac:12.3-13.1 or talk.flac:1:02:03-1:02:04), to search in the store; may be "
    "repeated; `-`: a query a line from the standard input.",
)
@click.option("--top", default=20, type=click.IntRange(1), show_default=True, help="Detections shown per query.")
@click.option("--no-trim", is_flag=True, help="Search recorded queries whole, with the background around their speech.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV instead of a table.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
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
@click.option("--dry-run", is_flag=True, help="With a config: show the plan and do nothing.")
@allow_commands
def search(
    target: str,
    queries: tuple[str, ...],
    top: int,
    no_trim: bool,
    as_csv: bool,
    as_json: bool,
    html: str | None,
    clips: str | None,
    calibration: str | None,
    sets: tuple[str, ...],
    strict: bool,
    dry_run: bool,
) -> int:
    """Search the queries of CONFIG, or those given with --query in a store, which a run's folder may stand for.

    \b
    swsdist search config.yaml
    swsdist search runs/mine --query hello.wav --query talk.flac:12:03.5-12:04.2 --html hits.html
    """
    from swsdist.errors import UserError

    if not queries and Path(target).is_file():
        from swsdist.cli.running import go

        given = {"--html": html, "--clips": clips, "--calibration": calibration, "--csv": as_csv, "--json": as_json}
        if wrong := [name for name, value in given.items() if value]:
            raise UserError(
                f"{wrong[0]} is for queries that are given with --query",
                where=target,
                remedy="give --query, or run the config: `swsdist run` writes a page and clips",
            )
        if no_trim:
            sets = (*sets, "queries.trim=none")
        return go(target, sets, strict, dry_run, until="search")
    from swsdist.config.loader import section_values

    if not queries:
        raise UserError(
            "there is nothing to search for",
            where=target,
            remedy="give a config file, or a store and --query FILE",
        )
    from swsdist import api
    from swsdist.cli.outputs import check_new_folder, write_data
    from swsdist.cli.progress import searching
    from swsdist.methods.direct import search_store

    check_new_folder(clips)
    asked = list(dict.fromkeys(line.strip() for one in queries for line in (sys.stdin if one == "-" else [one])))
    if not any(asked):
        raise UserError("there is nothing to search for", where="--query -", remedy="give a query a line")
    asked = [one for one in asked if one]
    place, known, judge = _store_of(target, bool(section_values(sets, "search")))
    options = {**known, **section_values(sets, "search")}
    if calibration is not None:
        from swsdist.chains.search.report.judging import named

        judge = named(calibration, options)
    cuts: dict[str, Cut] = {}

    def told(cut: Cut) -> None:
        cuts[cut.query_id] = cut
        what = f"{cut.before:.2f} s before and {cut.after:.2f} s after the speech of {cut.query_id} are left out (--no-trim)"
        print(what, file=sys.stderr)

    store = api.open_store(place)
    with searching(store) as watched:
        found = search_store(watched, asked, options, top, not no_trim, told)
    for warning in judge.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    answers = _answers(store, asked, found, judge)
    if as_csv or as_json:
        write_data()
    if as_csv:
        found.to_pandas().to_csv(sys.stdout, index=False)
    elif as_json:
        import json

        print(json.dumps(found.to_pylist(), indent=1, ensure_ascii=False))
    else:
        from swsdist.report.answers.lines import lines

        note = "; scores are standard deviations above the mean of a query's candidates"
        print("\n".join(lines(answers, f"{judge.said}{note}")))
    empty = [answer.query_id for answer in answers if not answer.hits]
    if empty:
        print(f"warning: nothing was found of {', '.join(empty)}{_why_nothing(store)}", file=sys.stderr)
    if clips is not None:
        _write_clips(answers, Path(clips), store)
    if html is not None:
        _write_page(answers, cuts, options, judge, store, Path(html))
    return 0


def _store_of(target: str, changed: bool) -> tuple[str, dict[str, object], Judge]:
    """The store that is meant; of a run also how it searched, and what decided, unless it is searched in another way."""
    from swsdist.chains.search.report.judging import by_score, of_run
    from swsdist.io.filesystem import Folder
    from swsdist.pipeline.inspection.recorded import recorded

    folder = Folder(target.rstrip("/"))
    if folder.exists("manifest.json") or not folder.exists("plan.json"):
        return target, {}, by_score()
    course = recorded(folder)
    options = course.config.search.model_dump(mode="json", exclude_defaults=True)
    return course.config.store, options, (None if changed else of_run(course)) or by_score()


def _answers(store: Store, asked: Sequence[str], found: pa.Table, judge: Judge) -> tuple[Answer, ...]:
    from swsdist.report.answers.hits import answers

    paths = {key: one.path for key, one in store.recordings(found["doc_id"].to_pylist()).items()}
    return answers(found.to_pylist(), judge.likely(found), asked, paths)


def _why_nothing(store: Store) -> str:
    """A guess that helps."""
    import pyarrow.compute as pc

    longest = pc.max(store.documents(columns=["duration"])["duration"]).as_py() or 0.0
    return f": the longest document lasts {longest:.1f} s; is a query longer than all of them?"


def _write_clips(answers: Sequence[Answer], folder: Path, store: Store) -> None:
    """The hits of each query, best first, numbered as they are shown."""
    from swsdist.audio.clips import write_clip
    from swsdist.errors import AudioError
    from swsdist.exports.clips import clip_name

    folder.mkdir(parents=True, exist_ok=True)
    written = 0
    for number, hit in enumerate((hit for answer in answers for hit in answer.hits), 1):
        name = clip_name(number, Path(hit.query_id).name, hit.doc_id, hit.start)
        try:
            if hit.path is None:
                raise AudioError("there is no recording", where=hit.doc_id)
            write_clip(
                *(hit.path, hit.start, hit.end, folder / name), channel=hit.channels[0], storage=store.folder.storage
            )
            written += 1
        except AudioError as error:
            print(f"warning: no clip of hit {number}, {hit.doc_id}: {error.message}", file=sys.stderr)
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
        asked.append(Asked(answer.query_id, path, 1, start, end, searched))
    counts = store.manifest.counts
    about = Searched(store.folder.path(), counts["seconds"] / 3600, int(counts["documents"]), judge.said, dict(options))
    page.write_text(render_answers(answers, asked, about, storage), encoding="utf-8")
    print(f"page: {page}", file=sys.stderr)
