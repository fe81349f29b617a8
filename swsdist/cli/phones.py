"""The command that turns speech into strings of phones."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from swsdist.cli.outputs import Writing, written

if TYPE_CHECKING:
    from swsdist.features.phnrec.transcribe import SpokenPhone


@click.command(cls=Writing)
@click.argument("weights", metavar="WEIGHTS")
@click.argument("documents", metavar="DOCUMENTS")
@click.option(
    "--out", "-o", required=True, type=written(".ctm", ".mlf"), help="CTM (.ctm) or HTK master label file (.mlf)."
)
@click.option("--penalty", type=float, help="Log penalty per phone; lower: fewer phones. [default: the recogniser's]")
def phones(weights: str, documents: str, out: str, penalty: float | None) -> int:
    """Transcribe DOCUMENTS (a table, or a folder of audio) to phones with BUT's phnrec, in the folder WEIGHTS.

    Exit code 4 if a recording could not be used.
    """
    from swsdist.core.errors import AudioError
    from swsdist.corpora.documents import read_documents
    from swsdist.features.phnrec.transcribe import transcribe, transcriber

    by = transcriber(weights)
    rows = read_documents(documents).to_pylist()
    found: dict[tuple[str, int], list[SpokenPhone]] = {}
    failed = 0
    for row in rows:
        try:
            made = transcribe(row["path"], by, channel=row["channel"], penalty=penalty)
        except AudioError as error:
            failed += 1
            print(f"{row['doc_id']}: {error}", file=sys.stderr)
            continue
        found[row["doc_id"], row["channel"]] = made
    _write(Path(out), found)
    print(f"wrote {sum(map(len, found.values()))} phones of {len(found)} of {len(rows)} documents to {out}")
    return 4 if failed else 0


def _write(out: Path, found: dict[tuple[str, int], list[SpokenPhone]]) -> None:
    import pyarrow as pa

    from swsdist.core.types import LEXEMES
    from swsdist.io.mlf import TimedLabel, write_mlf
    from swsdist.io.nist.ctm import write_ctm

    if out.suffix.lower() == ".mlf":
        several = len({channel for _, channel in found}) > 1
        write_mlf(
            {
                f"*/{doc_id}{f'.{channel}' if several else ''}.rec": [TimedLabel(*one) for one in made]
                for (doc_id, channel), made in found.items()
            },
            out,
        )
        return
    lexemes = [
        {
            "doc_id": doc_id,
            "channel": channel,
            "start": one.start,
            "duration": one.end - one.start,
            "word": one.phone,
            "kind": None,
            "speaker": None,
        }
        for (doc_id, channel), made in found.items()
        for one in made
    ]
    write_ctm(pa.Table.from_pylist(lexemes, LEXEMES), out)
