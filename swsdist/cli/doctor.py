"""Commands that check this machine or the inputs of a config."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from swsdist.cli.options import CORPUS, FILE, RUN, SET, allow_commands

if TYPE_CHECKING:
    from swsdist.pipeline.chain import Finding


@click.command()
@click.option("--s3", metavar="s3://BUCKET/PREFIX", help="List this place on S3.")
@click.option("--endpoint-url", help="S3 server. [default: AWS_ENDPOINT_URL]")
@click.option("--executors/--no-executors", default=True, help="Start a private Ray, or connect to RAY_ADDRESS.")
def doctor(s3: str | None, endpoint_url: str | None, executors: bool) -> int:
    """Check this machine: versions, BLAS, extractors, extensions, ffmpeg, disk, GPU, executors, S3.

    Exit code 2 if something fails.
    """
    from swsdist.pipeline.estimate import diagnose

    bad, _ = _print(diagnose(s3, {"endpoint_url": endpoint_url} if endpoint_url else {}, executors))
    print("what to do: swsdist help troubleshoot" if bad else "all tasks, with a page each: swsdist help")
    return 2 if bad else 0


@click.command()
@click.argument("config", type=FILE)
@CORPUS
@RUN
@SET
@click.option("--strict", is_flag=True, help="Warnings and rejected inputs end with exit code 4.")
@allow_commands
def check(config: str, corpus: str | None, run_folder: str | None, sets: tuple[str, ...], strict: bool) -> int:
    """Check the inputs of CONFIG before any work; nothing is written.

    Reads tables, headers of all recordings, the queries, options, models and the store. `ok`: fine; `odd`: a run would warn or
    reject; `BAD`: a run would not start (exit code 2). With --strict, `odd` is exit code 4.
    """
    from swsdist.config import load_config
    from swsdist.core.codes import cli as codes
    from swsdist.io.filesystem import Folder
    from swsdist.pipeline.chain_run import StepSelection, prepare_chain_run
    from swsdist.pipeline.ledger import ONLY, Ledger

    loaded = load_config(config, sets, corpus=corpus, run=run_folder)
    strict = strict or loaded.strict
    loaded = loaded.model_copy(update={"strict": False})  # show all warnings, not the first as an error
    chain_run = prepare_chain_run(ONLY, loaded, Ledger(Folder(loaded.run, loaded.storage)), StepSelection())
    if chain_run.chain.check is None:
        raise codes.NOTHING_TO_CHECK(where="chain", chain=chain_run.chain.name)
    bad, odd = _print(chain_run.chain.check(chain_run.chain.inputs))
    if bad:
        return 2
    return 4 if odd and strict else 0


def _print(findings: Iterable[Finding]) -> tuple[int, int]:
    """Print findings as they come; return how many are bad, and how many odd."""
    marks = {True: "ok  ", False: "BAD ", None: "odd "}
    count = {True: 0, False: 0, None: 0}
    for finding in findings:
        count[finding.good] += 1
        print(f"{marks[finding.good]} {finding.name:<12} {finding.text}", flush=True)
    return count[False], count[None]
