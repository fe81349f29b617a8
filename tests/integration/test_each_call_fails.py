"""Whatever system call on a file of the corpus or the store fails, nothing comes out otherwise in silence.

What may pass (EIO, ESTALE, EINTR of reading, ENOSPC of writing) is tried again, and then ends the task or the run; going on
gives what would have come without it. What a document's rights forbid rejects that document alone.
"""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from each_call import Failing, chosen, errors

from swsdist.testing.synthesis import make_corpus

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
LAST = ("align.train", "fit", "decide", "align.final", "measure", "score", "summarise", "format", "export")
STAGES = {
    "table": ("index", "queries", "search", "reduce", "normalise", *LAST),
    "folder": ("fit-transforms", "index", "queries", "query-statistics", "search"),
}


def config(kind: str, corpus: Path) -> dict[str, Any]:
    """Documents of a table; or of a folder, with a transform that is fitted, and queries that come from somewhere else."""
    names = {
        "documents": "docs.csv" if kind == "table" else "audio",
        "queries": "queries.csv",
        "references": "refs.csv",
    }
    values: dict[str, Any] = {
        "corpus": {key: str(corpus / name) for key, name in names.items()},
        "index": {"shards": 2},
    }
    values |= {"executor": {"kind": "serial"}, "report": {"clips": 1, "exports": ["csv"]}}
    if kind == "folder":
        values["corpus"]["queries_from"] = {"documents": str(corpus / "docs.csv")}
        values["features"] = {"name": "mfcc", "transforms": [{"name": "pca", "options": {"columns": 6}}]}
    return values


@pytest.fixture(params=STAGES)
def failing(request: Any, tmp_path: Path) -> Iterator[Failing]:
    corpus = tmp_path / "corpus"
    make_corpus(corpus, documents=3, queries=2, voices=2)
    made = Failing(tmp_path, config(request.param, corpus), corpus)
    made.start()
    try:
        made.prepare(list(STAGES[request.param]))
        yield made
    finally:
        made.close()


@pytest.mark.slow
def test_a_call_of_each_kind_in_each_stage(failing: Failing) -> None:
    whole = failing.config["corpus"]["documents"].endswith("docs.csv")  # else of stages that are only there
    cases = [
        (stage, call, several[k % len(several)])
        for k, (stage, call) in enumerate(chosen(failing.stages, 1))
        for several in [errors(call, failing.corpus)]
        if whole or stage.name not in STAGES["table"]
    ]
    assert len(cases) > (70 if whole else 20)
    check(failing, cases)


@pytest.mark.soak
def test_each_call_in_each_stage(failing: Failing) -> None:
    cases = chosen(failing.stages, 0)
    check(failing, ((stage, call, number) for stage, call in cases for number in errors(call, failing.corpus)))


def check(failing: Failing, cases: Any) -> None:
    wrong, many = [], 0
    for stage, call, number in cases:
        many += 1
        complaint, told = failing.case(stage, call, number)
        if complaint:
            wrong.append(f"{stage.name}: {errno.errorcode[number]} of {told['failed']}: {complaint} ({told['said']})")
    assert not wrong, f"{len(wrong)} of {many}:\n" + "\n".join(wrong[:20])
    print(f"{many} calls")
