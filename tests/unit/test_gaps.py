"""A dash says why: in a report's table and page, in a paper's table, of a list, of resources."""

from __future__ import annotations

import math

import pytest

from swsdist.accounts.factors import factors
from swsdist.registries import MEASURES
from swsdist.report.data import label_of
from swsdist.report.resources import resource_lines
from swsdist.report.summary import NOTHING, gaps, reasons
from swsdist.report.tables import Table, latex, markdown, text_lines
from swsdist.score.parts.evaluating import measure, why_undefined


@pytest.mark.parametrize("name", list(MEASURES))
def test_every_measure_says_when_it_is_not_defined(name: str) -> None:
    one = measure(name)
    told = why_undefined(dict.fromkeys(one.keys))
    assert list(told) == list(one.keys)
    assert not any("does not say" in why for why in told.values())
    assert why_undefined(dict.fromkeys(one.keys, 0.5)) == {}
    assert why_undefined({one.keys[0]: math.nan}) == {one.keys[0]: told[one.keys[0]]}


def test_reasons_that_are_the_same_are_told_once() -> None:
    found = reasons({"auc": None, "map": 0.5, "fom": None, "eer": None, "otwv_pmiss": None})
    assert list(found) == ["AUC", "EER", "FOM"]
    assert gaps(found).count(NOTHING) == 2
    assert "– (EER, FOM): not defined where no query has a true occurrence." in gaps(found)
    assert gaps({}) == ""


@pytest.mark.parametrize(
    ("name", "label"),
    [("auc", "AUC"), ("pair_auc", "pair AUC"), ("pooled_pair_auc", "pooled pair AUC"), ("p_at_10", "p at 10")],
)
def test_the_areas_have_names_of_their_own(name: str, label: str) -> None:
    assert label_of(name) == label


def test_a_table_with_a_dash_says_what_it_means() -> None:
    table = Table("Points", ["point", "mtwv"], [["a", "0.5"], ["b", NOTHING]], "Of lists.")
    told = "Of lists. –: there is nothing to compute it of."
    assert table.footnote == told
    assert text_lines(table)[-1] == told
    assert told in markdown([table])
    assert "Of lists. --: there is nothing to compute it of." in latex([table])
    assert Table("Points", ["point"], [["a"]], "Of lists.").footnote == "Of lists."


def test_figures_that_are_not_known_say_what_they_take() -> None:
    lines = {line[:10].strip(): line for line in resource_lines(factors(index_cpu_s=10.0, audio_s=100.0))}
    assert "not known" not in lines["ISF"]
    assert "not known: it takes the CPU s of searching, s of queries and s of audio" in lines["SSF, hours"]
    assert "not known: it takes ISF, SSF and both PMU" in lines["PL"]
