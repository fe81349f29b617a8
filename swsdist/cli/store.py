"""Commands for feature stores."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from swsdist.cli.outputs import written


@click.group()
def store() -> None:
    """Look into a feature store, check it, compact it, fit its models anew."""


_STORE = click.argument("folder", metavar="STORE")


@store.command()
@_STORE
@click.option("--documents", is_flag=True, help="List the documents.")
@click.option("--json", "as_json", is_flag=True, help="Print the manifest as JSON.")
def info(folder: str, documents: bool, as_json: bool) -> None:
    """What STORE holds."""
    from dataclasses import asdict

    from swsdist import api
    from swsdist.chains.search.inputs import describe

    opened = api.open_store(folder)
    manifest = opened.manifest
    if as_json:
        print(json.dumps(asdict(manifest), indent=1))
        return
    counts = manifest.counts
    print(f"store       {opened.folder.path()}")
    print(f"kind        {manifest.kind}, a tick of {manifest.tick * 1000:g} ms")
    for track in manifest.tracks:
        print(f"track       {track.name}: {track.dimension} {track.kind} a tick, {describe(track.recipe)}")
    print(f"documents   {counts['documents']:.0f}, {counts['seconds'] / 3600:.3f} h, {counts['frames']:.0f} frames")
    if counts.get("heard_seconds"):
        part = counts["speech_seconds"] / counts["heard_seconds"]
        print(f"speech      {counts['speech_seconds'] / 3600:.3f} h, {100 * part:.0f} %")
    print(f"rejected    {counts['rejected']:.0f}")
    if counts["statistics_gone"]:
        print(
            f"statistics  {counts['statistics_gone']:.0f} of the documents that they were taken from are gone or changed"
        )
    print(f"shards      {len(manifest.shards)}, {sum(shard.size for shard in manifest.shards) / 1e6:.1f} MB")
    if documents:
        columns = ["doc_id", "channel", "duration", "frames", "speaker", "shard"]
        for row in opened.documents(columns=columns).to_pylist():
            print("\t".join("" if row[name] is None else str(row[name]) for name in columns))


@store.command()
@_STORE
def check(folder: str) -> int:
    """Read all of STORE and say what is wrong; exit code 3 if anything is."""
    from swsdist import api
    from swsdist.store.maintaining import check as look

    opened = api.open_store(folder)
    problems = 0
    for problem in look(opened):
        problems += 1
        print(problem)
    if problems:
        print(
            f"{problems} problems; index again what is damaged: remove the shard and its receipt first", file=sys.stderr
        )
        return 3
    print(f"whole: {len(opened.manifest.shards)} shards, {opened.manifest.counts['documents']:.0f} documents")
    return 0


@store.command()
@_STORE
@click.argument("doc_id")
@click.option("--channel", default=1, show_default=True, help="Channel of the document.")
@click.option("--track", help="Track whose frames are wanted; by default the first.")
@click.option("--npy", type=written(".npy"), help="Write a NumPy file instead of text.")
@click.option("--htk", type=written(".htk"), help="Write a parameter file of HTK instead of text.")
def cat(folder: str, doc_id: str, channel: int, track: str | None, npy: str | None, htk: str | None) -> None:
    """The frames of one document: time and features, tab separated, a line a frame."""
    import numpy as np

    from swsdist import api
    from swsdist.io.htk import write_parameters
    from swsdist.times import frames_to_seconds

    opened = api.open_store(folder)
    frames = opened.features(doc_id, channel, track)
    if npy is not None:
        np.save(npy, frames)
    if htk is not None:
        write_parameters(frames, opened.manifest.shift, Path(htk))
    if npy is not None or htk is not None:
        return
    for t, frame in enumerate(frames):
        print(frames_to_seconds(t, opened.manifest.shift), *(f"{x:.6g}" for x in frame), sep="\t")


@store.command()
@_STORE
@click.option("--hours", default=1.0, show_default=True, help="Hours of audio a shard.")
def compact(folder: str, hours: float) -> None:
    """Rewrite STORE into shards of about the same size, without what was removed.

    Not while a run searches it: what that run reads would be removed.
    """
    from swsdist.io.filesystem import Folder
    from swsdist.pipeline.lock import locked
    from swsdist.store.maintaining import compact as rewrite

    where = Folder(folder)
    with locked(where):
        done = rewrite(where, hours)
    print(
        f"{done.shards_before} shards of {done.bytes_before / 1e6:.1f} MB became {done.shards} of {done.bytes / 1e6:.1f} MB"
    )


@store.command()
@_STORE
def refit(folder: str) -> None:
    """Take the means and variances that normalise anew, of the documents that STORE holds now.

    Results change, and searches that use them are done again. Not while a run searches it.
    """
    from swsdist.io.filesystem import Folder
    from swsdist.pipeline.lock import locked
    from swsdist.store.maintaining import refit as fit

    where = Folder(folder)
    with locked(where):
        done = fit(where)
    gone = f"; {done.gone} of those they were taken from were gone or changed" if done.gone else ""
    print(f"statistics are now of {done.documents} documents{gone}")
