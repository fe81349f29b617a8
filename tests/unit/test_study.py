"""The study of KST and STO: values against deciding and scoring, breakdowns that add up, figures and page."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest

from swsdist.calibrate.rescoring import ALPHAS, Rescoring, Study, StudyEntry, study
from swsdist.calibrate.steps.by_term import Thresholding
from swsdist.core.codes import families
from swsdist.core.codes import score as calibrate_codes
from swsdist.core.codes import score as score_codes
from swsdist.core.types import TRIALS
from swsdist.evaluation.scoring_task import named_paths
from swsdist.report.plots.curves import Axes, Series, bars_svg, dots_svg, lines_svg
from swsdist.report.plots.svg import side_by_side
from swsdist.report.study import captioned_figures, figures, study_files, study_json, study_tables, text_lines
from swsdist.report.sweep import Ranking, SweepData, render_sweep
from swsdist.score.compare.paired import paired_t, wilcoxon
from swsdist.score.measures.curve import Counts
from swsdist.score.measures.twv import atwv, per_term
from tests.support.coded import raises

TRIALS_N, BETA = 3600, 66.66
NS = "{http://www.w3.org/2000/svg}"


def aligned(seed: int, queries: int = 30) -> pa.Table:
    """Probabilities of terms of all frequencies, right as often as they say, and a missed occurrence each."""
    rng = np.random.default_rng(seed)
    rows = []
    for k in range(queries):
        base = {"query_id": f"kw{k:02d}", "doc_id": "d", "channel": 1}
        rows.append({**base, "ref_start": 0.0})
        for p in rng.beta(0.2, 0.8, int(rng.integers(1, 60))).tolist():
            rows.append({**base, "start": 1.0, "score": p, "ref_start": 1.0 if rng.random() < p else None})
    return pa.Table.from_pylist(rows, TRIALS)


def entry(name: str, seed: int) -> StudyEntry:
    scored = Rescoring.of_list(aligned(seed), tolerance=None, conventions="stdeval")
    return StudyEntry(name, "task", scored, TRIALS_N, BETA)


@pytest.fixture(scope="module")
def three() -> Study:
    return study([entry(f"system {k}", k) for k in range(3)])


def test_values_are_those_of_deciding_and_scoring(three: Study) -> None:
    for k, one in enumerate(three.systems):
        table = aligned(k)
        for method in ("kst", "sto"):
            for a, alpha in enumerate(three.alphas.tolist()):
                decided = Thresholding(method, TRIALS_N, BETA, alpha).apply(table)
                direct = atwv(Counts.of(decided), trials=TRIALS_N, beta=BETA).twv
                assert one.curves[method][a] == direct
                if alpha == three.best[method]:
                    assert one.atwv[method] == direct
                    assert (
                        one.values[method].tolist() == per_term(decided, trials=TRIALS_N, beta=BETA)["twv"].to_pylist()
                    )
        true = dict(zip(one.entry.sweep.names.to_pylist(), one.entry.sweep.ntrue.tolist(), strict=True))
        oracle = Thresholding("oracle-kst", TRIALS_N, BETA).apply(table, true=true)
        assert one.atwv["oracle-kst"] == atwv(Counts.of(oracle), trials=TRIALS_N, beta=BETA).twv
        assert one.over_terms.t == paired_t(one.values["kst"], one.values["sto"])
        assert one.over_terms.wilcoxon == wilcoxon(one.values["kst"], one.values["sto"])


def test_the_best_alpha_is_that_of_the_mean(three: Study) -> None:
    for method in ("kst", "sto"):
        mean = np.mean([one.curves[method] for one in three.systems], axis=0)
        assert three.mean[method] == pytest.approx(mean, abs=1e-15)
        assert three.best[method] == three.alphas[np.flatnonzero(mean >= mean.max() - 1e-12)[0]]
        assert three.atwv[method] == pytest.approx(mean.max(), abs=1e-12)
    pairs = [[one.atwv[method] for one in three.systems] for method in ("kst", "sto")]
    assert three.over_systems.t == paired_t(*pairs)
    assert three.over_systems.wilcoxon == wilcoxon(*pairs)


def test_breakdowns_add_up(three: Study) -> None:
    by_sum, by_ntrue, single = three.by_sum, three.by_ntrue, three.systems[0]
    assert math.fsum(by_sum.total) == pytest.approx(three.atwv["kst"] - three.atwv["sto"], abs=1e-12)
    assert by_sum.terms.sum() == pytest.approx(30)
    assert math.fsum(by_ntrue.total) == pytest.approx(single.atwv["kst"] - single.atwv["oracle-kst"], abs=1e-12)
    assert by_ntrue.terms.tolist() == [float((single.entry.sweep.ntrue == n).sum()) for n in by_ntrue.edges[:-1]]
    for found in (by_sum, by_ntrue):
        assert (found.per_term * found.terms).tolist() == pytest.approx(found.total.tolist(), abs=1e-15)
        assert np.diff(found.edges).tolist() == [1.0] * len(found.total)


def test_sums_of_thousands_are_in_bins_that_double() -> None:
    """Of phones in lattices S(w) goes to thousands; each sum is in the bin of its edges, and none is left out."""
    first = entry("first", 0)
    sums = np.resize([0.0, 0.5, 1.0, 2.9, 3.0, 127.0, 2500.0], len(first.sweep.sums))
    spread = replace(first, sweep=replace(first.sweep, sums=sums))
    by_sum = study([spread]).by_sum
    assert by_sum.edges.tolist() == [2.0**k - 1 for k in range(13)]
    assert by_sum.terms.tolist() == np.histogram(sums, by_sum.edges)[0].tolist()
    figure = figures(study([spread]))["fig7"][1]
    assert "log2(1 + S(w))" in figure


def test_one_system_has_no_test_over_systems_and_a_given_alpha_is_taken() -> None:
    found = study([entry("one", 0)], alphas=[1.0, 2.0], alpha=1.5)
    assert (found.best, found.chosen) == ({"kst": 1.5, "sto": 1.5}, True)
    assert not any(found.over_systems)
    assert json.loads(study_json(found))["over_systems"] == dict.fromkeys(found.over_systems._fields)
    assert not [line for line in text_lines(found) if "end of what was tried" in line]
    assert any("end of what was tried" in line for line in text_lines(study([entry("one", 0)], alphas=[40.0, 50.0])))
    with raises(families.EMPTY_INPUT):
        study([])
    with raises(calibrate_codes.DUPLICATE_SYSTEM_NAME, name="one"):
        study([entry("one", 0), entry("one", 1)])
    with raises(score_codes.VALUE_NOT_POSITIVE, name="alpha"):
        study([entry("one", 0)], alphas=[0.0, 1.0])
    with raises(calibrate_codes.DUPLICATE_SYSTEM_NAME, name="list"):
        named_paths(("a/list.xml", "b/list.xml"))
    assert ALPHAS.tolist() == [round(1 + k / 10, 1) for k in range(21)]  # those of the source


def test_figures_and_values_are_there_and_well_formed(three: Study) -> None:
    found = figures(three)
    panels = {name: len(list(ElementTree.fromstring(svg).iter(NS + "svg"))) for name, (_, svg) in found.items()}
    assert panels == {"fig2": 1, "fig3": 3, "fig4": 1, "fig5": 3, "fig6": 1, "fig7": 3, "fig8": 3}
    dots = list(ElementTree.fromstring(found["fig3"][1]).iter(NS + "circle"))
    sweep = three.systems[0].entry.sweep
    assert len(dots) == 30 + sum(s <= 25 and n <= 25 for s, n in zip(sweep.sums, sweep.ntrue, strict=True))
    assert list(study_files(three)) == ["study.json", *(f"fig{k}.svg" for k in range(2, 9))]
    values = json.loads(study_json(three))
    assert (values["alphas"], values["atwv"]) == (three.alphas.tolist(), three.atwv)
    assert values["atwv_by_alpha"]["sto"] == three.mean["sto"].tolist()
    one = values["systems"][1]
    assert one["terms"]["value"]["oracle-kst"] == three.systems[1].values["oracle-kst"].tolist()
    assert one["over_terms"]["wilcoxon"]["p"] == three.systems[1].over_terms.wilcoxon.p
    assert values["by_posterior_sum"]["total"] == three.by_sum.total.tolist()


def test_the_page_of_the_sweep_shows_it_and_escapes(three: Study) -> None:
    single = three.systems[0]
    hostile = replace(single, entry=replace(single.entry, name="<script>&\"'"))
    shown = replace(three, systems=(hostile, *three.systems[1:]))
    points = pa.table({"point": [1], "atwv": [0.5], "failed": [None], "oracle": [False]})
    given = ("a sweep", points, (), ("atwv",), "atwv", False, (Ranking("", (1,), False),), 0.95)
    page = render_sweep(SweepData(*given, more=tuple(captioned_figures(shown)), tables=tuple(study_tables(shown))))
    assert "<script>&" not in page
    assert "&lt;script&gt;&amp;" in page
    assert not re.findall(r"(?:src|href)=", page)
    assert re.findall(r"<figcaption>Figure (\d)\.", page) == list("2345678")
    assert all(f'<td class="n">{row[3]}</td>' in page for row in study_tables(shown)[0].rows)


def test_plots_of_nothing_and_of_one_value_are_drawn() -> None:
    axes = Axes("x", "y")
    for svg in (
        lines_svg([], axes, title="t"),
        lines_svg([Series("a", [1.0], [2.0])], axes, marks=[(1.0, 2.0, 1)], title="t"),
        lines_svg([Series("a", [1.0, 2.0, 3.0], [2.0, math.nan, 2.0])], axes, title="<&>"),
        dots_svg([], [], axes, diagonal=True, title="t"),
        dots_svg([0.0, 0.0], [0.0, 0.0], axes, title="t"),
        bars_svg([0.0, 1.0], [0.0], axes, title="t"),
    ):
        assert ElementTree.fromstring(svg).tag == NS + "svg"
        assert "nan" not in svg
        assert ElementTree.fromstring(side_by_side([svg, svg], title="two")).get("width") == "920"
    # Bars reach what they say: two of one sign, the second twice the first, and one of the other.
    boxes = list(ElementTree.fromstring(bars_svg([0, 1, 2, 3], [1.0, 2.0, -1.0], axes, title="t")).iter(NS + "rect"))
    assert [float(box.get("height") or 0) / float(boxes[0].get("height") or 0) for box in boxes] == pytest.approx(
        [1, 2, 1], abs=0.01
    )
    assert [box.get("class") for box in boxes] == ["area line0", "area line0", "area line1"]
