"""Commands to start with: `init`, `demo`, `check` and `doctor`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from swsdist.cli.options import (
    CORPUS,
    FILE,
    FOLDER,
    RUN,
    SET,
    Integer,
    OutputCommand,
    allow_commands,
    check_place,
    written,
)
from swsdist.core.codes import families

if TYPE_CHECKING:
    from swsdist.pipeline.chain import Finding


@click.command(cls=OutputCommand)
@click.argument("path", default="swsdist.yaml", type=written(".yaml", ".yml"))
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
def init(path: str, force: bool) -> None:
    """Write a commented config with every key to PATH (swsdist.yaml)."""
    from swsdist.config.template import template

    check_place(path)
    target = Path(path)
    if target.exists() and not force:
        raise families.OUTPUT_REFUSED("the file exists", "name another, or give --force", where=path)
    target.write_text(template(), encoding="utf-8")
    print(f"wrote {path}; set the paths in it, then: swsdist run {quote(path)}")


@click.command(cls=OutputCommand)
@click.argument("folder", default="demo", type=FOLDER)
@click.option("--documents", type=Integer(1), default=40, show_default=True, help="Number of documents.")
@click.option("--queries", type=Integer(1), default=10, show_default=True, help="Number of queries.")
@click.option("--seed", type=Integer(0), default=0, show_default=True, help="Seed of words and voices.")
@click.option("--executor", metavar="NAME", default="ray", show_default=True, help="Executor of the run.")
def demo(folder: str, documents: int, queries: int, seed: int, executor: str) -> None:
    """Make a small corpus of synthetic words in FOLDER (demo), and run everything on it."""
    from swsdist.cli.running import configured, go
    from swsdist.config.template import template
    from swsdist.registry.registries import EXECUTORS

    _ = EXECUTORS[executor]  # a wrong name is an error before any work
    place = Path(folder)
    corpus = place / "corpus"
    if not (corpus / "refs.csv").exists():
        from swsdist.testing.synthesis import make_corpus

        print(f"making {documents} documents of synthetic speech in {corpus}")
        make_corpus(corpus, seed=seed, documents=documents, queries=queries)
    config = place / "config.yaml"
    values = {
        "run": "run",
        "system": "mfcc-cosine",
        "corpus.documents": "corpus/docs.csv",
        "corpus.queries": "corpus/queries.csv",
        "corpus.references": "corpus/refs.csv",
        "corpus.examples": "all",
        "executor.kind": executor,
    }
    config.write_text(template(values), encoding="utf-8")
    go(configured(str(config)), str(config))


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
    from swsdist.io.filesystem import Folder
    from swsdist.pipeline.chain_run import StepSelection, prepare_chain_run
    from swsdist.pipeline.ledger import ONLY, Ledger

    loaded = load_config(config, sets, corpus=corpus, run=run_folder)
    strict = strict or loaded.strict
    loaded = loaded.model_copy(update={"strict": False})  # show all warnings, not the first as an error
    chain_run = prepare_chain_run(ONLY, loaded, Ledger(Folder(loaded.run, loaded.storage)), StepSelection())
    if chain_run.chain.check is None:
        raise families.UNSUPPORTED(
            "the chain {chain} has no check", "run the config", where="chain", chain=chain_run.chain.name
        )
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
