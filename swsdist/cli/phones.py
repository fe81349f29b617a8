"""The command that transcribes speech to phones."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from swsdist.cli.options import Number
from swsdist.cli.outputs import OutputCommand, written

if TYPE_CHECKING:
    from swsdist.features.phnrec.transcribe import SpokenPhone


@click.command(cls=OutputCommand)
@click.argument("weights", metavar="WEIGHTS")
@click.argument("documents", metavar="DOCUMENTS")
@click.option(
    "--out", "-o", required=True, type=written(".ctm", ".mlf"), help="CTM (.ctm) or HTK master label file (.mlf)."
)
@click.option(
    "--penalty", type=Number(), help="Log penalty per phone; lower: fewer phones. [default: the recogniser's]"
)
def phones(weights: str, documents: str, out: str, penalty: float | None) -> int:
    """Transcribe DOCUMENTS (a table, or a folder of audio) to phones with BUT's phnrec, in the folder WEIGHTS.

    Exit code 4 if a recording could not be used.
    """
    from swsdist.core.errors import AudioError
    from swsdist.corpora.documents import read_documents
    from swsdist.features.phnrec.transcribe import transcribe, transcriber

    by = transcriber(weights)
    rows = read_documents(documents).to_pylist()
    transcripts: dict[tuple[str, int], list[SpokenPhone]] = {}
    failed = 0
    for row in rows:
        try:
            phones_found = transcribe(row["path"], by, channel=row["channel"], penalty=penalty)
        except AudioError as error:
            failed += 1
            print(f"{row['doc_id']}: {error}", file=sys.stderr)
            continue
        transcripts[row["doc_id"], row["channel"]] = phones_found
    _write(Path(out), transcripts)
    print(f"wrote {sum(map(len, transcripts.values()))} phones of {len(transcripts)} of {len(rows)} documents to {out}")
    return 4 if failed else 0


def _write(out: Path, transcripts: dict[tuple[str, int], list[SpokenPhone]]) -> None:
    import pyarrow as pa

    from swsdist.core.types import LEXEMES
    from swsdist.io.frames.htk import TimedLabel, write_mlf
    from swsdist.io.nist.ctm import write_ctm

    if out.suffix.lower() == ".mlf":
        several = len({channel for _, channel in transcripts}) > 1
        write_mlf(
            {
                f"*/{doc_id}{f'.{channel}' if several else ''}.rec": [TimedLabel(*item) for item in phones_found]
                for (doc_id, channel), phones_found in transcripts.items()
            },
            out,
        )
        return
    lexemes = [
        {
            "doc_id": doc_id,
            "channel": channel,
            "start": item.start,
            "duration": item.end - item.start,
            "word": item.phone,
            "kind": None,
            "speaker": None,
        }
        for (doc_id, channel), phones_found in transcripts.items()
        for item in phones_found
    ]
    write_ctm(pa.Table.from_pylist(lexemes, LEXEMES), out)
