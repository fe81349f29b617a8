"""Every registered measure keeps the rules, and its bytes are those of its version."""

from collections.abc import Mapping

import pyarrow as pa
import pytest

from examples import queries_found
from swsdist.core.codes import families
from swsdist.core.errors import ConfigError
from swsdist.evaluation import evaluate, make_system, make_task, more_values
from swsdist.registry.entries import MeasureEntry, Quantity
from swsdist.registry.registries import MEASURES, quantities
from swsdist.score import events as evaluating
from swsdist.score.events import CLASSES, Parts, PartTable, Value, measure, measure_parts, merge_tables, values
from swsdist.score.measures.protocol import OperatingPoint
from swsdist.testing.conformance.measures import check_measure, example, example_point, value_digest
from tests.support.coded import raises

#: Version and digest: other bytes ask for another version.
GOLDEN: dict[str, tuple[int, str]] = {
    "term-weighted": (1, "d28f950d28bf77e4c8c9d99789a1d9478f397b0d1ca206914529ce03f26a391e"),
    "optimum": (1, "b27fb21f33c8811851e4f7d10c67c93e1b5e924021fce88753aa14be34b46d43"),
    "pooled-maximum": (2, "2c2638655703970ba71482fea9b11c23515e8a19f2b8cd7b86b335e62ab1f50f"),
    "decisions": (1, "d28b20d6d764114b9633ef423f1119799f1dc646d3b89ef5f9cf45a992864e67"),
    "retrieval": (1, "3adc7c58aa6bbb3e5f1e5504444452c992d1701a75e21a6f51238d4d4b2e7f21"),
    "equal-errors": (1, "a5ba6befcd854143051efb31ae7f3cdd3b38dfa4954164107709913ab58262c9"),
    "figure-of-merit": (1, "7632360fa2a16d285af91e0bd769723ec9cee07701a6a32cc0f12a1e53ba97b1"),
    "pair-areas": (1, "b227349352de30c9ba221fa3dd1181ba04c23dc2e1b20dbaceac77e1b0d12bfe"),
    "cross-entropies": (2, "b6e209db720048beeb50d05f7fc8d2c1dbe7de18117b6a8d628da2c64edb8ed6"),
    "quesst": (1, "7d2ef29d812e8d3c20e4b7a53289d3ec926a657bf552e5388b64efd54a452680"),
}


@pytest.mark.parametrize("name", list(MEASURES))
def test_conformance(name: str) -> None:
    check_measure(MEASURES[name])


@pytest.mark.parametrize("name", list(MEASURES))
def test_bytes_are_those_of_the_version(name: str) -> None:
    found = (MEASURES[name].version, value_digest(measure(name)))
    assert found == GOLDEN.get(name), f"if it is meant, raise the entry's version, and record: {name!r}: {found}"


def test_the_example(added) -> None:
    check_measure(queries_found.MEASURE)
    added(MEASURES, "queries-found", queries_found.MEASURE)
    references = {"query_id": ["a", "b"], "doc_id": ["x", "x"], "start": [1.0, 5.0], "end": [1.5, 5.5]}
    detections = {"query_id": ["a"], "doc_id": ["x"], "start": [1.0], "end": [1.5], "score": [0.7]}
    task = make_task(references, total_seconds=1000.0, documents=3)
    assert more_values(evaluate(task, make_system(detections)))["queries_found"] == 0.5


class Queries:
    parts = (CLASSES,)

    def values(self, parts: Parts, point: OperatingPoint) -> Mapping[str, Value]:
        table = parts["classes"].table()
        return {"queries_with_references": int(sum(table["terms"].to_numpy()[table["ntrue"].to_numpy() > 0]))}


def test_a_measure_of_ones_own(added) -> None:
    entry = MeasureEntry(f"{__name__}:Queries", 1, (Quantity("queries_with_references"), Quantity("never_given")))
    check_measure(entry)
    added(MEASURES, "mine", entry)
    point = example_point()
    found = values(merge_tables([measure_parts(example(), point)]), point)
    assert found["queries_with_references"] == 8
    assert list(found)[-2:] == ["queries_with_references", "never_given"]
    assert found["never_given"] is None


def test_a_value_that_its_entry_does_not_name_is_refused(added) -> None:
    added(MEASURES, "mine", MeasureEntry(f"{__name__}:Queries", 1))
    with raises(families.EXTENSION, where="measure mine", measure="mine", names="queries_with_references"):
        values(merge_tables([measure_parts(example(), example_point())]), example_point())
    with pytest.raises(AssertionError, match="its entry gives"):
        check_measure(MEASURES["mine"])


def test_two_values_of_one_name_are_refused(added) -> None:
    added(MEASURES, "mine", MeasureEntry(f"{__name__}:Queries", 1, (Quantity("map"),)))
    with pytest.raises(ConfigError, match="two measures give map"):
        quantities()


def test_which_is_best_is_known_of_each() -> None:
    found = {key: one.best for key, one in quantities().items()}
    assert [key for key, best in found.items() if best == "lowest"] == [
        *("atwv_pmiss", "atwv_pfa", "mtwv_pmiss", "mtwv_pfa", "otwv_pmiss", "otwv_pfa", "stwv_pmiss", "stwv_pfa"),
        *("pooled_maximum_pmiss", "pooled_maximum_pfa", "eer", "pooled_eer"),
        *("cnxe", "cnxe_min", "cnxe_pav", "calibration_loss"),
        *("quesst_cnxe", "quesst_cnxe_min", "quesst_per_query_cnxe", "quesst_per_query_cnxe_min"),
    ]
    assert [key for key, best in found.items() if not best] == [
        *("mtwv_threshold", "pooled_maximum_threshold", "effective_prior", "cnxe_gamma", "cnxe_delta"),
        *("quesst_mtwv_threshold", "quesst_per_query_mtwv_threshold"),
    ]


def _means(aligned: pa.Table, point: OperatingPoint) -> pa.Table:
    return pa.table({"ntrue": [0], "mean": [0.5]})


class Averages:
    parts = (PartTable("classes", pa.schema([("ntrue", pa.int64()), ("mean", pa.float64())]), ("ntrue",), _means),)

    def values(self, parts: Parts, point: OperatingPoint) -> Mapping[str, Value]:
        return {"average": 0.5}


def test_what_is_refused(added) -> None:
    with pytest.raises(AssertionError, match="mean adds, so it is an int64"):
        check_measure(MeasureEntry(f"{__name__}:Averages", 1, (Quantity("average"),)))
    added(MEASURES, "averages", MeasureEntry(f"{__name__}:Averages", 1, (Quantity("average"),)))
    with raises(families.DUPLICATE_NAME, part="classes"):
        evaluating.part_tables()
    with pytest.raises(ConfigError, match="unknown measure 'optimun'; did you mean optimum"):
        measure("optimun")
