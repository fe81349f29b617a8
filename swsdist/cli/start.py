"""Commands to start with: `init` and `demo`."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

import click

from swsdist.cli.options import Integer
from swsdist.cli.outputs import FOLDER, OutputCommand, check_place, written
from swsdist.core.codes import cli as codes


@click.command(cls=OutputCommand)
@click.argument("path", default="swsdist.yaml", type=written(".yaml", ".yml"))
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
def init(path: str, force: bool) -> None:
    """Write a commented config with every key to PATH (swsdist.yaml)."""
    from swsdist.config.template import template

    check_place(path)
    target = Path(path)
    if target.exists() and not force:
        raise codes.OUTPUT_EXISTS(where=path)
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
