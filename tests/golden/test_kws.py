"""Kaldi's keyword search, to the hit: the collections of ../shared/golden/lattices, and lists made of our hits."""

import json
import math
import xml.etree.ElementTree as ElementTree

import pyarrow as pa
import pytest

from swsdist.evaluation.kaldi_results import RESULTS, as_kwslist
from swsdist.methods.lattice import kaldi
from tests.support.golden import cases_below, kws, run_case
from tests.support.random_lattices import GOLDEN

COLLECTION = GOLDEN / "synthetic" / "collection"

pytestmark = pytest.mark.skipif(not GOLDEN.is_dir(), reason=f"no golden lattices beside the checkout ({GOLDEN})")


@pytest.mark.parametrize(("folder", "hits"), [("synthetic/collection", 1008), ("real/kaldi-cvte-kws", 997)])
def test_hits(folder: str, hits: int) -> None:
    (found,) = cases_below(GOLDEN / folder)
    case = run_case(found)
    assert found.group.NAME == kws.NAME
    assert case.differences == []
    assert case.compared >= 2 * hits
    assert len(kws.hits(GOLDEN / folder)) == hits


def test_hits_that_the_program_loses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing ends alike, every sequence of clusters is a hit."""
    monkeypatch.setattr(kaldi, "_DELTA", -1.0)
    expected = json.loads((COLLECTION / "expected.json").read_text())["hits"]
    keys = [line.split()[0] for line in (COLLECTION / "utter_id").read_text().splitlines()]
    ours = sorted(tuple(hit) for hit in kws.hits(COLLECTION))
    stated = sorted(
        (keyword, keys[number - 1], start, end, max(0.0, cost)) for keyword, number, start, end, cost, _ in expected
    )
    assert len(ours) == 1151
    assert [hit[:4] for hit in ours] == [hit[:4] for hit in stated]
    assert [hit[4] for hit in ours] == pytest.approx([hit[4] for hit in stated], abs=1e-9)


LISTS = {"": {}, ".norm": {"normalize": True}, ".dedup": {"normalize": True, "remove_duplicates": True}}


@pytest.mark.parametrize(("name", "options"), LISTS.items())
def test_lists_follow_from_the_hits(name: str, options: dict[str, bool]) -> None:
    """The same detections and decisions, with costs rounded and hits in the order of the program: of duplicates with equal
    scores and durations the first stays."""
    numbers = dict(line.split() for line in (COLLECTION / "utter_id").read_text().splitlines())
    reported = [tuple(line.split()[:4]) for line in (COLLECTION / "kws-search.txt").read_text().splitlines()]
    order = {place: number for number, place in enumerate(reported)}
    rows = []
    for keyword, key, start, end, cost in sorted(
        kws.hits(COLLECTION), key=lambda hit: order[hit.keyword, numbers[hit.key], str(hit.start), str(hit.end)]
    ):
        score = math.exp(-round(cost * 1024) / 1024)
        rows.append((keyword, key, 1, start / 100, end / 100, (end - start) / 100, score, None))
    table = pa.table(dict(zip(RESULTS.names, zip(*rows, strict=True), strict=True)), schema=RESULTS)
    ours = sorted(
        (row["query_id"], row["doc_id"], f"{row['start']:.2f}", f"{row['duration']:.2f}", row["decision"], row["score"])
        for row in as_kwslist(table, seconds=3600, **options).to_pylist()
    )
    stated = sorted(
        (group.attrib["kwid"], row["file"], row["tbeg"], row["dur"], row["decision"] == "YES", float(row["score"]))
        for group in ElementTree.parse(COLLECTION / f"kwslist{name}.xml").getroot()
        for row in (element.attrib for element in group)
    )
    assert len(ours) > 700
    assert [row[:5] for row in ours] == [row[:5] for row in stated]
    assert [row[5] for row in ours] == pytest.approx([row[5] for row in stated], rel=0.003, abs=1e-6)
