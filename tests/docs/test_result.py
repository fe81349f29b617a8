"""The README's result is what the config gives."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from markdown_pages import ROOT, blocks

import swsdist

CORPUS = ROOT.parent / "shared/data/mboshi/dev"


@pytest.mark.docs
@pytest.mark.skipif(not CORPUS.is_dir(), reason="needs ../shared beside the checkout, with the Mboshi corpus")
def test_mboshi_dev(tmp_path: Path) -> None:
    table = next(block.code for block in blocks(ROOT / "README.md") if block.code.startswith("MTWV"))
    shown = dict(re.split(r"\s{2,}", line)[:2] for line in table.splitlines())
    result = swsdist.run(ROOT / "configs/mboshi-dev.yaml", sets=[f"run={tmp_path}", "executor.kind=serial"])
    report = result.report
    assert report is not None
    measures = result.measures()
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
