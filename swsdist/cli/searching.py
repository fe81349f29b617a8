"""The command that searches a config's queries, or single queries in a store."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

import click

from swsdist.cli.options import FILE_OR_FOLDER, FOLDER, Integer, OutputCommand, allow_commands, written
from swsdist.core.codes import cli as codes
from swsdist.core.codes import families, line_of
from swsdist.core.errors import UserError
from swsdist.core.text import brief
from swsdist.report.tables import TABLES

if TYPE_CHECKING:
    import pyarrow as pa

    from swsdist.core.errors import SwsdistError, UserError
    from swsdist.methods.query.extraction import Cut
    from swsdist.report.answers import Answer
    from swsdist.searcher.hit_likelihood import HitLikelihood
    from swsdist.searcher.searcher import Searcher
    from swsdist.store.reading import Store
    from swsdist.store.same_sound import Copies


@click.command(cls=OutputCommand)
@click.argument("target", type=FILE_OR_FOLDER, metavar="CONFIG|RUN|STORE|FOLDER")
@click.option(
    "--query",
    "queries",
    multiple=True,
    metavar="FILE[#CHANNEL][:START-END]",
    help="Search this query in the store; repeatable; -: one query per line from standard input.",
)
@click.option(
    "--text",
    "texts",
    multiple=True,
    metavar="TEXT|TABLE",
    help="Search this text in a store of transcripts or lattices, or those of a table (query_id, text); repeatable.",
)
@click.option(
    "--speak",
    "voices",
    multiple=True,
    metavar="SYNTHESISER:VOICE",
    help="Search each --text by example, spoken by this voice (espeak-ng:en-us, flite:slt); repeatable.",
)
@click.option("--word", metavar="NAME", help="All --query values are examples of one word with this name.")
@click.option("--top", default=20, type=Integer(1), show_default=True, help="Hits per query.")
@click.option("--no-trim", is_flag=True, help="Do not trim recorded queries to their speech.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV instead of a table.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@click.option("--table", type=written(*TABLES), metavar="FILE", help="Write the hits: .csv, .tex, .md or .json.")
@click.option("--html", type=written(".html", ".htm"), metavar="FILE", help="Write one HTML page with audio players.")
@click.option("--clips", type=FOLDER, metavar="DIR", help="Write the hits as WAV clips to a new folder.")
@click.option(
    "--annotations", type=FOLDER, metavar="DIR", help="Write the hits for ELAN, Praat and Audacity to a new folder."
)
@click.option(
    "--calibration",
    metavar="RUN",
    help="A run with references, which says how likely hits are. [default: the RUN that is searched]",
)
@click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="A.B=C",
    help="Set a key of the config; for a store, search.KEY, or terms.KEY for texts; repeatable.",
)
@click.option("--strict", is_flag=True, help="Warnings and rejected inputs end with exit code 4.")
@click.option("--force", is_flag=True, help="Continue with implausible inputs (otherwise exit code 5).")
@click.option("--dry-run", is_flag=True, help="Show the plan and an estimate of CPU hours; do nothing.")
@allow_commands
def search(
    target: str,
    queries: tuple[str, ...],
    texts: tuple[str, ...],
    voices: tuple[str, ...],
    word: str | None,
    top: int,
    no_trim: bool,
    as_csv: bool,
    as_json: bool,
    table: str | None,
    html: str | None,
    clips: str | None,
    annotations: str | None,
    calibration: str | None,
    sets: tuple[str, ...],
    strict: bool,
    force: bool,
    dry_run: bool,
) -> None:
    """Search for the queries of CONFIG, or for single ones (--query, --text) in a STORE, a RUN or an indexed FOLDER.

    A query is a recording (talk.flac), its second channel (talk.flac#2), a place in seconds or minutes
    (talk.flac:12.3-13.1, talk.flac#2:1:02:03-1:02:04), a place in a document of the store (d003:1.1-1.7), or a table of queries
    (.csv, .tsv, .parquet). A RUN is searched with the settings of its config. Skipped queries: exit code 4.

    \b
    swsdist search config.yaml
    swsdist search runs/mine --query hello.wav --query talk.flac:12:03.5-12:04.2 --html hits.html
    swsdist search transcripts --text "good morning"
    swsdist search recordings --text "good morning" --speak espeak-ng:en-us
    """

    if _searches_config(click.get_current_context()):
        from swsdist.cli.running import configured, go

        sets = (*sets, "queries.trim=none") if no_trim else sets
        sets = (*sets, f"queries.speak={json.dumps(voices)}") if voices else sets
        config = configured(target, sets, strict=strict, force=force)
        go(config, target, table="candidates", dry_run=dry_run, all_figures=True)
        return
    from swsdist.cli.progress import showing_search
    from swsdist.io.remote.scratch import scratch
    from swsdist.kernels.compiled import announcing
    from swsdist.searcher.queries import is_table
    from swsdist.store.same_sound import copies_in

    typed = _typed(queries, texts, word)
    warnings: list[str] = []

    def warn(text: str) -> None:
        warnings.append(text)
        print(f"warning: {text}", file=sys.stderr)

    cuts: dict[str, Cut] = {}
    skipped: dict[tuple[str, int], SwsdistError] = {}

    def say(text: str) -> None:
        print(text, file=sys.stderr)

    def note_cut(cut: Cut) -> None:
        cuts.setdefault(cut.query_id, cut)
        several = sum(row["query_id"] == cut.query_id for row in rows) > 1
        which = f"example {cut.example} of {cut.query_id}" if several else cut.query_id
        if not voices:
            say(
                f"{cut.before:.2f} s before and {cut.after:.2f} s after the speech of {which} are trimmed (--no-trim: keep)"
            )

    def skip(query_id: str, example: int, error: SwsdistError) -> None:
        skipped[query_id, example] = error
        if len(typed) > 1 or is_table(typed[0]):
            warn(line_of(codes.QUERY_SKIPPED, where_from=error.where, reason=error.message))

    context = click.get_current_context()
    preparing = context.with_resource(ExitStack())
    preparing.enter_context(announcing(say))
    searcher, likelihood = _searcher(target, sets, not no_trim, None if voices else bool(texts), calibration)
    store, copies = searcher.store, copies_in(searcher.store)
    if voices:
        sounds = context.with_resource(TemporaryDirectory(dir=scratch()))
        rows = searcher.spoken_rows(typed, voices, Path(sounds), skip, say)
    else:
        rows = searcher.query_rows(typed, skip, say)
    if word is not None:
        rows = [{**row, "query_id": word, "example": number} for number, row in enumerate(rows, 1)]
    elif alike := _alike(rows):
        say(alike)
    with showing_search(store) as searcher.store:
        # The same sound on several channels, and in copies of a recording, is one hit.
        several = max(_channels(store), copies.most)
        *_, hits = searcher.stream(rows, top * several, on_cut=note_cut, skip=skip, warn=warn)
        detections = hits.table()
    preparing.close()
    rows = [row for row in rows if (row["query_id"], row["example"]) not in skipped]
    if not rows:
        raise next(iter(skipped.values()))
    answers, listed = _answers(store, [row["query_id"] for row in rows], detections, likelihood, top, copies)
    for warning in (*searcher.setup.warnings, *likelihood.warnings, *_themselves(answers, rows)):
        warn(warning)
    said = f"{likelihood.meaning}; scores are {searcher.scores}"
    _print_answers(answers, listed, said, "csv" if as_csv else "json" if as_json else None)
    if empty := [answer.query_id for answer in answers if not answer.hits]:
        warn(
            line_of(
                families.NO_HITS.saying("no hits of {queries}{why}"),
                queries=", ".join(map(brief, empty)),
                why=searcher.queries.why_nothing(empty),
            )
        )
    if table is not None:
        from swsdist.report.answers import hits_table
        from swsdist.report.tables import write_tables

        write_tables([hits_table(answers, said, listed)], table)
    if clips is not None:
        _write_clips(answers, Path(clips), store, warn)
    if annotations is not None:
        _write_annotations(answers, listed, Path(annotations), store)
    if html is not None:
        _write_page(answers, rows, cuts, searcher, likelihood.meaning, Path(html), copies)
    if skipped:
        raise codes.QUERIES_SKIPPED(
            where=target,
            count=len(skipped),
            of=len(rows) + len(skipped),
            what="queries" if word is None else "examples",
            errors="; ".join(f"{error.where}: {error.message}" for error in skipped.values()),
        )
    if strict and warnings:
        raise codes.STRICT_WARNINGS(where=target, count=len(warnings), first=warnings[0], show=" above")


def _searches_config(context: click.Context) -> bool:
    """Whether the queries are those of a config, up to candidates; if not, they are single ones, which are answered.

    Raises:
        UserError: there are no queries, or options that do not go with them.
    """
    from swsdist.cli.options import check_new_folder

    options, target = context.params, context.params["target"]
    if not options["queries"] and not options["texts"]:
        if not Path(target).is_file():
            raise codes.NO_QUERY(where=target)
        flags = {"as_csv": "csv", "as_json": "json"}
        for name in ("word", "table", "html", "clips", "annotations", "calibration", *flags):
            if options[name]:
                raise families.CONFLICTING_OPTIONS(
                    "{option} needs --query",
                    "give --query, or `swsdist run` the config",
                    where=target,
                    option=f"--{flags.get(name, name)}",
                )
        return True
    if options["queries"] and options["texts"]:
        raise families.CONFLICTING_OPTIONS(
            "--query and --text are both given", "search them one after the other", where=target
        )
    if options["voices"] and options["queries"]:
        raise families.CONFLICTING_OPTIONS(
            "--speak speaks texts, and there is --query", "give --text TEXT", where=target
        )
    if options["dry_run"]:
        raise families.CONFLICTING_OPTIONS("--dry-run needs a config, not --query", "remove --dry-run", where=target)
    if options["as_csv"] and options["as_json"]:
        raise families.CONFLICTING_OPTIONS("--csv and --json are both given", "give --csv or --json", where=target)
    check_new_folder(options["clips"])
    check_new_folder(options["annotations"])
    return False


def _typed(queries: Sequence[str], texts: Sequence[str], word: str | None) -> list[str]:
    """The queries of the command line and of standard input, each once.

    Raises:
        UserError: there are none; or a table, to be examples of one word.
    """
    from swsdist.searcher.queries import is_table

    lines = (line for query in queries for line in (_listed() if query == "-" else [query.strip()]))
    typed = list(dict.fromkeys(text.strip() for text in texts) if texts else dict.fromkeys(lines))
    if not any(typed):
        raise codes.NO_QUERY(where="--query -" if queries else "--text")
    if word is not None and (tables := [line for line in typed if is_table(line)]):
        raise families.CONFLICTING_OPTIONS(
            "--word is for recordings; a table has a column query_id",
            "remove --word, or name recordings of one word",
            where=tables[0],
        )
    return typed


def _searcher(
    target: str, sets: Sequence[str], trim: bool, texts: bool | None, calibration: str | None
) -> tuple[Searcher, HitLikelihood]:
    """Open a store for texts or recordings (None: either); the searcher is closed with the command. And how likely its hits
    are.

    Raises:
        UserError: the store takes the other kind of queries; or this is a folder of recordings, and runs of it are here.
    """
    from swsdist.config.loader import section_values
    from swsdist.registry.registries import METHODS
    from swsdist.searcher.hit_likelihood import hit_likelihood
    from swsdist.searcher.searcher import Searcher

    target, source = _archive(target, texts)
    of_terms = [item for item in sets if item.startswith("terms.")]
    options = section_values([item for item in sets if item not in of_terms], "search")
    terms = section_values(of_terms, "terms")
    searcher = Searcher(target, options=options, terms=terms, trim=trim, texts=bool(texts), memory=0)
    click.get_current_context().call_on_close(searcher.close)
    method = searcher.settings.method
    if texts is not None and (METHODS[method].queries == "text") != texts:
        indexed = None if searcher.setup.config is None else searcher.setup.config.corpus.documents
        named = indexed if isinstance(indexed, str) and Path(indexed).is_dir() else "FOLDER"
        raise _other_kind(target, texts, source or named)
    return searcher, hit_likelihood(searcher, calibration)


def _archive(target: str, texts: bool | None) -> tuple[str, str | None]:
    """What is searched, and the folder of recordings that it was made of, if that is named: the one of its runs that takes
    texts, or recordings (None: either).

    Raises:
        UserError: several do, or none.
    """
    from swsdist.cli.run_folder import runs_of
    from swsdist.glossary.exports import STORE
    from swsdist.io.filesystem import Folder
    from swsdist.registry.registries import METHODS
    from swsdist.store.manifest import words_store

    folder = Folder(target.rstrip("/"))
    if folder.exists("plan.json") or folder.exists("manifest.json"):
        return target, None
    if folder.exists(f"{STORE}/manifest.json"):  # a pack of a glossary
        return f"{target.rstrip('/')}/{STORE}", None
    runs = {run: config for run, config in runs_of(target).items() if config.chain != "discover"}
    fits = [
        run
        for run, config in runs.items()
        if texts is None
        or (METHODS[config.search.method].queries == "text") == texts
        or (texts and words_store(config.store) is not None)
    ]
    if len(fits) == 1:
        return fits[0], target
    if fits:
        raise codes.RECORDINGS_NOT_RUN(where=target, runs=" or ".join(map(quote, fits)))
    if runs:
        raise _other_kind(next(iter(runs)), bool(texts), target)
    return target, None


def _other_kind(store: str, texts: bool, folder: str) -> UserError:
    """The error of texts for a store of sound, or of recordings for one of words."""
    if not texts:
        fix = f"type what is said: --text TEXT; or index the sound: swsdist index {quote(folder)}"
        return codes.OTHER_KIND_OF_QUERY(where=store, option="--query", wanted="sound", held="words", fix=fix)
    fix = (
        f"recognise the words, or read the transcripts there: swsdist index {quote(folder)} --text; or let a voice say "
        "the text, and search by that: --speak espeak-ng:VOICE; or give a recording: --query FILE"
    )
    return codes.OTHER_KIND_OF_QUERY(where=store, option="--text", wanted="words", held="sound", fix=fix)


def _print_answers(answers: Sequence[Answer], listed: pa.Table, said: str, form: Literal["csv", "json"] | None) -> None:
    """Print what was found: for people, or as data for programs."""
    if form is not None:
        from swsdist.cli.options import write_data

        write_data()
    if form == "csv":
        listed.to_pandas().to_csv(sys.stdout, index=False)
    elif form == "json":
        print(json.dumps(listed.to_pylist(), indent=1, ensure_ascii=False))
    else:
        from swsdist.report.answers import lines

        print("\n".join(lines(answers, said)))


def _channels(store: Store) -> int:
    """The greatest number of channels of a recording."""
    import pyarrow.compute as pc

    return int(pc.max(store.documents(columns=["channel"])["channel"]).as_py() or 1)


def _listed() -> list[str]:
    """Queries from standard input, one per line.

    Raises:
        UserError: standard input is audio, not text.
    """

    lines = []
    for line in sys.stdin:
        if "\0" in line or "\ufffd" in line or line.startswith(("RIFF", "fLaC", "OggS")):
            raise families.MALFORMED_FILE.of(UserError)(
                "standard input is not a list of queries, one path per line",
                "name the recording: --query FILE",
                where="--query -",
            )
        lines.append(line.strip())
    return [line for line in lines if line]


def _alike(rows: Sequence[Mapping[str, Any]]) -> str | None:
    """A hint for recordings whose names differ only by a final number: they may be examples of one word."""
    import re

    first: dict[str, str] = {}
    for row in rows:
        name = re.fullmatch(r"(.+)[_-]\d+", Path(row.get("typed") or "").stem)
        if name is None or row["path"] != row["typed"]:
            continue
        word = name[1]
        if word in first:
            return (
                f"{Path(first[word]).name} and {Path(row['path']).name} are two queries; for examples of one word, give only "
                f"them, with --word {quote(word)}, or a table with one query_id"
            )
        first[word] = row["path"]
    return None


def _answers(
    store: Store,
    query_ids: Sequence[str],
    detections: pa.Table,
    likelihood: HitLikelihood,
    top: int,
    copies: Copies,
) -> tuple[tuple[Answer, ...], pa.Table]:
    """The best hits of each query; and their DETECTIONS with rank, probability, its word and the recording's path."""
    import pyarrow as pa

    from swsdist.calibrate.likelihood import word_of
    from swsdist.report.answers import answers_by_query

    paths = {key: item.path for key, item in store.recordings(detections["doc_id"].to_pylist()).items()}
    rows, likely = detections.to_pylist(), likelihood.of(detections["score"].to_numpy())
    best = answers_by_query(rows, likely, query_ids, paths, top, copies)
    ranks = {k: rank for answer in best for rank, hit in enumerate(answer.hits, 1) for k in hit.rows}
    kept = sorted(ranks)
    keys = [(rows[k]["doc_id"], rows[k]["channel"]) for k in kept]
    listed = detections.take(pa.array(kept, pa.int64()))
    listed = listed.append_column("rank", pa.array([ranks[k] for k in kept], pa.int32()))
    listed = listed.append_column("likely", pa.array([likely[k] for k in kept], pa.float64()))
    listed = listed.append_column("called", pa.array([word_of(likely[k]) for k in kept], pa.string()))
    return best, listed.append_column("path", pa.array([paths.get(key) for key in keys], pa.string()))


def _themselves(answers: Sequence[Answer], rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Warnings of hits that are places of their queries' examples, one a query."""
    import os
    from collections import defaultdict

    def real(path: object) -> str:
        text = str(path)
        return text if "://" in text else os.path.realpath(text)

    hits = {answer.query_id: answer.hits for answer in answers}
    numbers_of: dict[str, set[int]] = defaultdict(set)
    for query in rows:
        start, end = query["start"] or 0.0, query["end"] or float("inf")
        if query["path"] is None:
            continue
        source = real(query["path"])
        for number, hit in enumerate(hits[query["query_id"]], 1):
            common = min(end, hit.end) - max(start, hit.start)
            if hit.path and real(hit.path) == source and common > (hit.end - hit.start) / 2:
                numbers_of[query["query_id"]].add(number)
                break
    for name, numbers in numbers_of.items():
        listed = ", ".join(map(str, sorted(numbers)))
        are = "is" if len(numbers) == 1 else "are"
        yield line_of(codes.HIT_IS_QUERY, count=len(numbers), numbers=listed, query=name, are=are)


def _write_clips(answers: Sequence[Answer], folder: Path, store: Store, warn: Callable[[str], None]) -> None:
    """Write the hits of each query as clips, best first, numbered as on the page."""
    from swsdist.audio.reader import MARKER, write_clip
    from swsdist.core.errors import AudioError
    from swsdist.exports.lists import clip_name

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
            warn(line_of(codes.NO_CLIP, number=number, document=hit.doc_id, reason=error.message))
    if silent:
        warn(line_of(families.NO_SOUND.saying("{count} hit{s} without a recording, and without a clip"), count=silent))
    if not written:
        (folder / MARKER).unlink()  # the folder is empty again
    print(f"clips: {written} in {folder}", file=sys.stderr)


def _write_annotations(answers: Sequence[Answer], listed: pa.Table, folder: Path, store: Store) -> None:
    """Write the hits below `eaf/`, `textgrid/` and `labels/`: a tier a query, as of a run."""
    import pyarrow as pa

    from swsdist.core.types import DETECTIONS
    from swsdist.exports.interface import Material
    from swsdist.registry.registries import EXPORTS

    rows = pa.Table.from_pylist(listed.to_pylist(), DETECTIONS)  # not decided: all that is listed is shown
    names = [answer.query_id for answer in answers]
    material = Material(
        lambda: iter(rows.to_batches()), names, "", undecided=rows.num_rows, recordings=store.recordings
    )
    folder.mkdir(parents=True, exist_ok=True)
    for kind in ("eaf", "textgrid", "labels"):
        EXPORTS[kind].load()(material, folder)
    print(f"annotations: of {rows.num_rows} hits in {folder}", file=sys.stderr)


def _write_page(
    answers: Sequence[Answer],
    rows: Sequence[Mapping[str, Any]],
    cuts: Mapping[str, Cut],
    searcher: Searcher,
    meaning: str,
    page: Path,
    copies: Copies,
) -> None:
    from swsdist.audio.reader import probe
    from swsdist.io.frames.archive import single_item
    from swsdist.report.answers import PlayedQuery, SearchFacts, render_answers

    store = searcher.store
    storage = store.folder.storage
    queries_shown = []
    first = {row["query_id"]: row for row in reversed(rows)}  # of several examples the first is heard
    for answer in answers:
        row = first[answer.query_id]
        path, channel, start, end = row["path"], row["channel"], row["start"], row["end"]
        cut = cuts.get(answer.query_id)
        searched = None
        if cut is not None and cut.example == row["example"] and (cut.before or cut.after):
            searched = cut.before, probe(path, storage).duration - cut.after
        # Texts and frames have none.
        sound = path if path is not None and single_item(path, storage) is None else ""
        queries_shown.append(PlayedQuery(answer.query_id, sound, channel, start, end, searched))
    columns = ["doc_id", "channel", "recording", "duration"]
    recordings, seconds = copies.recordings(store.documents(columns=columns))
    about = SearchFacts(
        store.folder.path(),
        seconds / 3600,
        recordings,
        meaning,
        searcher.scores,
        dict(searcher.options),
    )
    page.write_text(render_answers(answers, queries_shown, about, storage), encoding="utf-8")
    print(f"page: {page}", file=sys.stderr)
