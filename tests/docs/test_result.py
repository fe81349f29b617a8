"""The README's result is what the config gives."""

from __future__ import annotations

import re

import pytest
from markdown_pages import ROOT, blocks

from swsdist import RunResult


@pytest.mark.docs
def test_mboshi_dev(mboshi_dev: RunResult) -> None:
    table = next(block.code for block in blocks(ROOT / "README.md") if block.code.startswith("protocol"))
    shown = dict(re.split(r"\s{2,}", line)[:2] for line in table.splitlines())
    report = mboshi_dev.report
    assert report is not None
    measures = mboshi_dev.measures()
    assert shown["MTWV"] == f"{measures['mtwv']:.4f}"
    assert shown["ATWV"] == f"{measures['atwv']:.4f}"
    assert shown["queries"] == str(report.counts.queries)
    assert shown["detections"] == str(report.counts.detections)
    assert shown["rejected"] == str(report.counts.rejected)
    assert shown["digest"] == report.digest[: len(shown["digest"])]
    told = {re.sub(r"[ _]", "", name).lower(): value for name, value in measures.items()}
    checked = [name for name in shown if re.sub(r"[ _]", "", name).lower() in told]
    assert len(checked) > 20
    for name in checked:
        assert shown[name] == f"{told[re.sub(r'[ _]', '', name).lower()]:.4f}", name
    assert re.search(rf"^detections .* {report.counts.references} true occurrences$", table, re.M)
