"""Commands for feature stores and corpora."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from swsdist.cli.options import FILE, Integer, Number, OutputCommand, allow_commands, written
from swsdist.core.codes import families
from swsdist.core.errors import UserError
from swsdist.core.text import shown
from swsdist.report.tables import TABLES

if TYPE_CHECKING:
    from swsdist.io.filesystem import Folder
    from swsdist.store.reading import Store


@click.group()
def store() -> None:
    """Inspect, check, import or compact a feature store, or delete documents from it."""


_STORE = click.argument("folder", metavar="STORE")


def _opened(folder: str) -> Store:
    """The store in a folder.

    Raises:
        StoreError: there is none.
    """
    from swsdist import api

    return api.open_store(folder)


@store.command()
@click.argument("folder", metavar="STORE|RUN")
@click.option("--documents", is_flag=True, help="List the documents.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def info(folder: str, documents: bool, as_json: bool) -> None:
    """Show what STORE holds, or the store of RUN."""
    from collections import Counter
    from dataclasses import asdict

    from swsdist.features.fitting.interface import band_of, load_model
    from swsdist.searcher.searcher import setup_of
    from swsdist.stages.inputs.corpus_documents import describe
    from swsdist.store.manifest import words_store

    opened = _opened(setup_of(folder).store)
    manifest = opened.manifest
    if as_json:
        print(json.dumps(asdict(manifest), indent=1))
        return
    counts = manifest.counts
    print(f"store       {opened.folder.path()}")
    print(f"kind        {manifest.kind}, {manifest.tick * 1000:g} ms per tick")
    for track in manifest.tracks:
        per_tick = f"{track.dimension} {track.kind} per tick, " if manifest.kind == "frames" else ""
        print(f"track       {track.name}: {per_tick}{describe(track.recipe)}")
        if (model := manifest.models.get(f"mfcc.{track.name}")) is not None:
            fmax = band_of(load_model(opened.folder, model))
            reach = "half the rate" if fmax is None else f"{fmax:g} Hz"
            print(f"band        {track.name}: up to {reach}, chosen by the documents")
    if manifest.progress is not None:
        print(f"unfinished  {manifest.progress}; continue with `swsdist index CONFIG`")
    print(f"documents   {counts['documents']:.0f}, {counts['seconds'] / 3600:.3f} h, {counts['frames']:.0f} frames")
    if counts.get("heard_seconds"):
        part = counts["speech_seconds"] / counts["heard_seconds"]
        print(f"speech      {counts['speech_seconds'] / 3600:.3f} h, {100 * part:.0f} %")
    print(f"rejected    {counts['rejected']:.0f}")
    if (inside := words_store(opened.folder.path())) is not None:
        print(f"words       in {inside}")
    if counts["cut_off"]:
        print(f"cut off     {counts['cut_off']:.0f}: indexed up to the cut")
    if counts["statistics_gone"]:
        print(f"statistics  {counts['statistics_gone']:.0f} of their documents are gone or changed")
    voices = opened.documents(columns=["voices"])["voices"].to_pylist()
    if by_voice := Counter(voice for each in voices for voice in set(each or ())):
        numbers = ", ".join(map(str, sorted(by_voice.values(), reverse=True)))
        print(f"voices      {len(by_voice)}, in {numbers} documents without a speaker")
    print(f"shards      {len(manifest.shards)}, {sum(shard.size for shard in manifest.shards) / 1e6:.1f} MB")
    if documents:
        columns = ["doc_id", "channel", "duration", "frames", "speaker", "shard"]
        table = opened.documents(columns=[*columns, "recording", "start"])
        if table["recording"].null_count < table.num_rows:  # else all are recordings themselves
            columns += ["recording", "start"]
        for row in table.to_pylist():
            print("\t".join("" if row[name] is None else shown(str(row[name])) for name in columns))


@store.command()
@click.argument("folder", metavar="STORE|RUN")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
def rejected(folder: str, as_csv: bool) -> None:
    """List the rejected inputs of STORE or RUN, with reasons and remedies."""
    from swsdist.core.types import REJECTED
    from swsdist.pipeline.status import rejections

    rows = rejections(folder).to_pylist()
    if as_csv:
        import csv

        from swsdist.cli.options import write_data

        write_data()
        writer = csv.DictWriter(sys.stdout, REJECTED.names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return
    for row in rows:
        part = {"document": "channel", "item": "channel", "query": "example"}.get(row["kind"], "part")
        of = f", {part} {row['part']}" if row["part"] is not None else ""
        print(f"{row['kind']} {shown(row['id'])}{of}: {row['reason']}: {row['message']}")
        for name in ("path", "remedy"):
            if row[name]:
                print(f"  {name}: {shown(row[name])}")
    print(f"{len(rows)} rejected")


@store.command()
@_STORE
def check(folder: str) -> int:
    """Read all of STORE and compare it with its hashes and counts; exit code 3 if it is damaged."""
    from swsdist.pipeline.operation.cleaning import reading
    from swsdist.store.maintaining import check as look
    from swsdist.store.manifest import words_store

    problems = 0
    opened = _opened(folder)
    inside = words_store(opened.folder.path())
    for each in (opened, *([_opened(inside)] if inside is not None else [])):
        with reading(each) as now:
            for problem in look(now):
                problems += 1
                print(problem)
    if problems:
        print(
            f"{problems} problems; to repair: remove the damaged files, and the receipts of damaged shards, then index again; "
            "lost models are fitted again",
            file=sys.stderr,
        )
        return 3
    print(f"complete: {len(opened.manifest.shards)} shards, {opened.manifest.counts['documents']:.0f} documents")
    return 0


@store.command(cls=OutputCommand)
@_STORE
@click.argument("doc_id")
@click.option("--channel", type=Integer(1), default=1, show_default=True, help="Channel of the document.")
@click.option("--track", help="Track. [default: the first]")
@click.option("--npy", type=written(".npy"), help="Write a NumPy file.")
@click.option("--htk", type=written(".htk"), help="Write an HTK parameter file.")
def cat(folder: str, doc_id: str, channel: int, track: str | None, npy: str | None, htk: str | None) -> None:
    """Print the frames of one document: time and features, separated by tabs, one line per frame."""
    from swsdist.core.numbers import frames_to_seconds
    from swsdist.io.frames.htk import write_parameters
    from swsdist.io.frames.numpy_files import write_array

    opened = _opened(folder)
    frames = opened.features(doc_id, channel, track)
    if npy is not None:
        with Path(npy).open("wb") as file:
            write_array(file, frames)
    if htk is not None:
        write_parameters(frames, opened.manifest.shift, Path(htk))
    if npy is not None or htk is not None:
        return
    for t, frame in enumerate(frames):
        print(frames_to_seconds(t, opened.manifest.shift), *(f"{x:.6g}" for x in frame), sep="\t")


@contextmanager
def _held(folder: str) -> Iterator[Folder]:
    """A locked store; a folder without a store gets no lock."""
    from swsdist.io.filesystem import Folder
    from swsdist.pipeline.lock import locked, read

    where = Folder(folder)
    if read(where) is None:
        _opened(folder)
    with locked(where):
        _opened(folder)
        yield where


@store.command()
@_STORE
@click.option(
    "--hours", type=Number(0, min_open=True), default=1.0, show_default=True, help="Hours of audio per shard."
)
def compact(folder: str, hours: float) -> None:
    """Rewrite STORE into shards of about equal size, without removed documents.

    The old shards stay until swsdist clean removes them.
    """
    from swsdist.store.maintaining import compact as rewrite

    with _held(folder) as where:
        done = rewrite(where, hours)
    print(
        f"{done.shards_before} shards of {done.bytes_before / 1e6:.1f} MB became {done.shards} of {done.bytes / 1e6:.1f} MB"
    )
    print(f"the old shards are kept; to remove them after an hour: swsdist clean {quote(folder)}")


@store.command()
@_STORE
def refit(folder: str) -> None:
    """Recompute means, variances and voices from the documents that STORE holds now.

    Results change, and searches are done again. Models of features (mixtures, mean-variance, ...) stay: `swsdist index` with
    `--from fit-transforms` fits these, too, and indexes all again. Do not use while a run searches the store.
    """
    from swsdist.store.maintaining import refit as fit

    with _held(folder) as where:
        done = fit(where)
    gone = f"; {done.gone} of the earlier ones were gone or changed" if done.gone else ""
    print(f"statistics are now from {done.documents} documents{gone}")
    if done.stay:
        print(f"these models stay: {', '.join(done.stay)}; swsdist index with --from fit-transforms fits them anew")


@store.command()
@click.argument("folder", metavar="STORE|RUN")
@click.argument("documents", metavar="DOCUMENT...", nargs=-1, required=True)
@click.option("--run", "runs", multiple=True, metavar="RUN", help="Another run that searched the store; repeatable.")
@click.option("--glossary", "project", metavar="PROJECT", help="Folder of a glossary of the store.")
@click.option("--dry-run", is_flag=True, help="List what would be removed; remove nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def forget(
    folder: str, documents: tuple[str, ...], runs: tuple[str, ...], project: str | None, dry_run: bool, as_json: bool
) -> int:
    """Remove each DOCUMENT, or all of a recording, from a store, its run, other runs and a glossary.

    The others stay searchable, even if their recordings are gone; the next `swsdist run` makes tables and reports again.
    Finally all files are read: exit code 4 if any still names a DOCUMENT.
    """
    from contextlib import nullcontext

    from swsdist.cli.glossary import opened_project
    from swsdist.glossary.forgetting import forget as remove
    from swsdist.io.filesystem import Folder

    with nullcontext() if project is None else opened_project(project) as glossary:
        done = remove([Folder(place) for place in (folder, *runs)], documents, glossary, dry_run)
    if as_json:
        print(json.dumps(done._asdict() | {"removed": [item._asdict() for item in done.removed]}, indent=1))
        return 4 if done.named else 0
    for item in done.removed:
        print(f"{item.where}: {item.number} {item.what}")
    for path in done.models:
        print(
            f"stays: {path} may be fitted to it; to fit it anew: the command that indexed, with --from fit-transforms"
        )
    for path in done.sounds:
        print(f"stays: {shown(path)}; an index takes it in again unless the corpus is without it")
    for copy in done.equal:
        print(f"stays: {shown(copy)} has equal frames")
    for path in done.named:
        print(f"stays: {shown(path)} names it")
    if not dry_run and not done.named:
        print(f"{done.read} files read: none names it" + ("" if done.equal else ", none holds its frames"))
    return 4 if done.named else 0


@store.command("import")
@_STORE
@click.argument("source")
@click.option("--shift", required=True, metavar="SECONDS", help="Frame shift, such as 0.01 or 256/22050.")
@click.option("--dimension", required=True, type=Integer(1), help="Values per frame.")
@click.option(
    "--kind",
    type=click.Choice(["features", "posteriors", "logits"]),
    default="features",
    show_default=True,
    help="Kind of values.",
)
@click.option("--length", metavar="SECONDS", help="Frame length. [default: the shift]")
@click.option(
    "--form",
    default="auto",
    show_default=True,
    help="Format: kaldi, htk, npy, npz, hdf5, parquet; auto: by ending.",
)
@click.option("--track", help="Name of the track. [default: external]")
@click.option("--what", default="", help="Description of the extractor.")
@click.option(
    "--tolerance",
    type=Number(0),
    default=0.25,
    show_default=True,
    help="Allowed difference between frames and recording, s.",
)
@click.option(
    "--documents",
    metavar="TABLE",
    help="Table of documents (doc_id; optionally channel, path, duration, speaker). [default: all keys]",
)
@click.option(
    "--hours", type=Number(0, min_open=True), default=1.0, show_default=True, help="Hours of audio per shard."
)
@click.option("--strict", is_flag=True, help="Warnings and rejected inputs end with exit code 4.")
def import_(
    folder: str,
    source: str,
    documents: str | None,
    track: str | None,
    hours: float,
    strict: bool,
    **stated: str | int | float | None,
) -> int:
    """Create or update STORE from frames of another program.

    SOURCE is a file or a folder: Kaldi's scp or ark, HTK, .npy, .npz, HDF5 or Parquet.

    \b
    swsdist store import mine/store feats.scp --shift 0.01 --dimension 39
    """
    from pathlib import Path

    from swsdist import api
    from swsdist.cli.progress import progress
    from swsdist.core.codes import cli as codes
    from swsdist.core.errors import SwsdistError
    from swsdist.io.filesystem import is_remote
    from swsdist.stages.inputs.state import as_options, import_store

    if Path(folder).exists() and Path(source).exists() and Path(folder).samefile(source):
        raise families.OUTPUT_REFUSED(
            "the store would lie in the folder of its source frames", "name another folder for the store", where=folder
        )
    # As in a config.
    place = source if is_remote(source) else str(Path(source).absolute())
    try:
        outcome = import_store(
            folder,
            {"path": place, **{name: value for name, value in stated.items() if value is not None}},
            track=track,
            documents=documents,
            shard_hours=hours,
            progress=progress(),
        )
    except SwsdistError as error:
        error.message, error.remedy = as_options(error.message), as_options(error.remedy or "") or None
        error.where = as_options(error.where or "") or None
        raise
    counts = _opened(folder).manifest.counts
    print(f"{counts['documents']:.0f} documents, {counts['seconds'] / 3600:.3f} h, in {folder}")
    rejected = api.RunResult(outcome, None, folder).rejected()
    for kind, reason, count, first, remedy in rejected:
        line = as_options(f"rejected: {count} {kind}(s), {reason}; the first: {first}; {remedy}")
        print(line, file=sys.stderr)
    if rejected and strict:
        count = sum(row[2] for row in rejected)
        raise codes.STRICT_REJECTIONS(where=folder, count=count, folder=folder)
    return 0


@click.group()
def corpus() -> None:
    """Describe a corpus."""


@corpus.command(cls=OutputCommand)
@click.argument("corpora", nargs=-1, required=True, type=FILE, metavar="CORPUS...")
@click.option("--set", "sets", multiple=True, metavar="A.B=C", help="Set a key of the config; repeatable.")
@click.option("--table", type=written(*TABLES, several=True), help="Write the tables: .csv, .tex, .md or .json.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--no-audio", is_flag=True, help="Skip the audio: no speech, no signal-to-noise ratio.")
@click.option("--strict", is_flag=True, help="Warnings and rejected inputs end with exit code 4.")
@allow_commands
@click.pass_context
def describe(
    context: click.Context,
    corpora: tuple[str, ...],
    sets: tuple[str, ...],
    table: str | None,
    as_json: bool,
    no_audio: bool,
    strict: bool,
) -> int:
    """Describe each CORPUS (a corpus file, or a config): durations, speakers, signal-to-noise ratios, words, queries.

    \b
    swsdist corpus describe configs/corpora/mine.yaml --table mine.tex
    """
    import shutil
    import sys
    from pathlib import Path

    from swsdist.chains.report.description import describe as work
    from swsdist.chains.report.description import tables_of, text_tables
    from swsdist.cli.options import refuse_overwriting_inputs, write_data
    from swsdist.cli.progress import showing_audio_read
    from swsdist.config import load_corpus
    from swsdist.config.section import paths_in
    from swsdist.report.tables import text_lines, to_json, write_tables

    names = [Path(corpus).stem for corpus in corpora]
    if len({*names}) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise families.DUPLICATE_NAME.of(UserError)(
            "two corpora are called {name!r}", "rename one of the files", name=twice
        )
    configs = [load_corpus(corpus, sets) for corpus in corpora]
    refuse_overwriting_inputs(context, [path for config in configs for path in paths_in(config.corpus)])
    descriptions = []
    with showing_audio_read() as show:
        for name, config in zip(names, configs, strict=True):
            descriptions.append(work(config, name, listen=not no_audio, strict=strict, progress=show))
    tables = tables_of(*descriptions)
    if table is not None:
        write_tables(tables, table)
    if as_json:
        write_data()
        print(to_json(tables), end="")
    else:
        width = shutil.get_terminal_size((110, 24)).columns
        shown = text_tables(*descriptions)
        for item in shown:
            print("\n".join([*text_lines(item, width), ""]))
        if len(descriptions) > 1:
            print("--table FILE and --json also have the recordings, speakers and queries of each")
        elif len(shown) < len(tables):
            print(f"{len(descriptions[0].recordings)} recordings: --table FILE and --json have a row each")
    for name, description in zip(names, descriptions, strict=True):
        for notice in description.notices:
            print(f"warning: {f'{name}: ' if len(descriptions) > 1 else ''}{notice}", file=sys.stderr)
    return 0
