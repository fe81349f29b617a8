"""Every registered distance, recurrence, first pass, export and discovery measure passes its suite; what is wrong is caught."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from examples import chord, rigid
from swsdist.discovery.measures import WithoutPairs
from swsdist.exports.interface import Material
from swsdist.kernels.distances import cosine
from swsdist.kernels.distances.interface import Distance, Prepared, single
from swsdist.kernels.recurrences import asymmetric, bounded_slope
from swsdist.kernels.recurrences.interface import Recurrence
from swsdist.kernels.vectors import WIDTH
from swsdist.methods.dtw.backends.cpu import Cpu
from swsdist.methods.dtw.backends.interface import Work
from swsdist.methods.first_pass.coarse import Coarse
from swsdist.methods.first_pass.interface import Budget, Proposals
from swsdist.registry.entries import (
    BackendEntry,
    DiscoveryMeasureEntry,
    DistanceEntry,
    ExportEntry,
    FirstPassEntry,
    RecurrenceEntry,
)
from swsdist.registry.registries import (
    BACKENDS,
    DISCOVERY_MEASURES,
    DISTANCES,
    EXPORTS,
    FEATURES,
    FIRST_PASSES,
    RECURRENCES,
)
from swsdist.testing.conformance import (
    check_backend,
    check_discovery_measure,
    check_distance,
    check_export,
    check_first_pass,
    check_recurrence,
)
from tests.oracles import distances as oracle

#: Options at which the definitions are compared, and how far values may be apart: see docs/concepts/exact-numbers.md.
VALUES: dict[str, tuple[dict[str, float], float]] = {
    **{name: ({"cap": 4000.0}, 0.01) for name in DISTANCES if name.startswith("euclidean")},
    **{name: ({"floor": 0.001}, 0.05) for name in DISTANCES if "floor" in DISTANCES[name].takes()},
    "inner-product": ({"floor": 0.1}, 0.02),
}


@pytest.mark.parametrize("name", list(DISTANCES))
def test_distance(name: str) -> None:
    options, error = VALUES.get(name, ({}, 0.01))
    check_distance(name, options, partial(oracle.exact, name, options=options), error)


@pytest.mark.parametrize(
    ("name", "options"), [*((name, {}) for name in RECURRENCES), *(("segmental", {"band": band}) for band in (1, 4))]
)
def test_recurrence(name: str, options: dict[str, int]) -> None:
    check_recurrence(name, options)


def test_the_example_of_a_distance(added: Any) -> None:
    def exact(q: np.ndarray, x: np.ndarray) -> float:
        norms = np.linalg.norm(q) * np.linalg.norm(x)
        return 0.5 if norms == 0 else float((1 - np.dot(q, x) / norms) / 2)

    check_distance(added(DISTANCES, "chord", chord.DISTANCE), exact=exact, error=0.01)


def test_the_example_of_a_recurrence(added: Any) -> None:
    check_recurrence(added(RECURRENCES, "rigid", rigid.RECURRENCE))


@pytest.mark.parametrize(
    ("name", "options"),
    [*((name, {}) for name in FIRST_PASSES), ("coarse", {"factor": 2}), ("quantised", {"factor": 1, "bytes": 2})],
)
def test_first_pass(name: str, options: dict[str, Any]) -> None:
    check_first_pass(name, options)


@pytest.mark.parametrize("name", list(EXPORTS))
def test_export(name: str) -> None:
    check_export(name)


@pytest.mark.parametrize("name", list(FEATURES))
def test_an_extractors_version_is_its_entrys(name: str) -> None:
    assert FEATURES[name].load().version == FEATURES[name].version


def narrow(name: str, unit: int, dimension: int) -> Distance:
    """Says a bound that its sums pass."""
    return single(name, dimension, unit, dimension, 1000, cosine._fill, from_dot=cosine.from_dot)


def _mean_removed(values: np.ndarray, side: str, where: str | None) -> Prepared:
    return cosine._fill(values - values.mean(axis=0), side, where)  # type: ignore[arg-type]


def neighbours(name: str, unit: int, dimension: int) -> Distance:
    """Takes the mean of the block that it is given out of each frame."""
    return single(name, dimension, unit, dimension, cosine.bound(dimension), _mean_removed, from_dot=cosine.from_dot)


def _too_far(dot: Any) -> Any:
    return 8388608 - dot


def far(name: str, unit: int, dimension: int) -> Distance:
    """Maps beyond 12 bits."""
    return single(name, dimension, unit, dimension, cosine.bound(dimension), cosine._fill, from_dot=_too_far)


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        (DistanceEntry(f"{__name__}:narrow", 1), "above its bound 1000"),
        (DistanceEntry(f"{__name__}:neighbours", 1), "a frame depends on its neighbours"),
        (DistanceEntry(f"{__name__}:far", 1), "not within 0..4095"),
        (DistanceEntry("swsdist.kernels.distances.cosine:plain", 1, unit=1000), "no power of two"),
        (DistanceEntry("swsdist.kernels.distances.cosine:plain", 0), "version is 0"),
        (DistanceEntry("swsdist.kernels.distances.cosine:plain", 1, posteriors=True), "takes a negative probability"),
    ],
)
def test_a_wrong_distance_is_caught(added: Any, entry: DistanceEntry, complaint: str) -> None:
    name = added(DISTANCES, f"wrong {complaint}", entry)
    with pytest.raises(AssertionError, match=complaint):
        check_distance(name)


def test_a_definition_that_is_not_met_is_caught() -> None:
    with pytest.raises(AssertionError, match="its definition says"):
        check_distance("cosine", exact=lambda q, x: 0.5)


def other_twin() -> Recurrence:
    """The twin is bounded slope's."""
    return asymmetric.recurrence()._replace(trace=RECURRENCES["bounded-slope"].load()().trace)


def short_reach() -> Recurrence:
    """Says that it looks less far back than it does."""
    return asymmetric.recurrence()._replace(reach=lambda n: n // 2)


def sixteen(columns: Any, at: int, n: int, infinity: int, option: int) -> None:
    """Writes lane by lane, as if there were always sixteen."""
    for k in range(3 * n * WIDTH):
        columns[at + k] = infinity


def all_lanes() -> Recurrence:
    """Cannot be run on one lane."""
    return asymmetric.recurrence()._replace(restart=sixteen)


def other_neighbours() -> Recurrence:
    """A cell that forgets its own distance."""
    of = bounded_slope.recurrence()
    return of._replace(neighbours=lambda *given: bounded_slope.cell(*given[:3], 0, given[4]))


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        (RecurrenceEntry(f"{__name__}:all_lanes", 1), "it writes beyond its columns"),
        (RecurrenceEntry(f"{__name__}:other_neighbours", 1), "its cell of neighbours gives another curve"),
        (RecurrenceEntry(f"{__name__}:other_twin", 1), "other candidates than its twin's curve"),
        (RecurrenceEntry(f"{__name__}:short_reach", 1), "depends on more than"),
        (replace(RECURRENCES["non-segmental"], longest_query=100), "takes a longer one"),
    ],
)
def test_a_wrong_recurrence_is_caught(added: Any, entry: RecurrenceEntry, complaint: str) -> None:
    name = added(RECURRENCES, f"wrong {complaint}", entry)
    with pytest.raises(AssertionError, match=complaint):
        check_recurrence(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cpu", "blas", "auto"])
def test_backends(name: str) -> None:
    check_backend(name)


def lazy(work: Work) -> Cpu:
    """Keeps no candidate that begins a document."""

    class Lazy(Cpu):
        def scan(self, pieces: Any) -> Any:
            for found in super().scan(pieces):
                yield found._replace(rows=[rows[rows[:, 2] > 5] for rows in found.rows])

    return Lazy(work, None)


def test_a_wrong_backend_is_caught(added: Any) -> None:
    name = added(BACKENDS, "lazy", BackendEntry(f"{__name__}:lazy"))
    with pytest.raises(AssertionError, match="it finds other candidates than int16"):
        check_backend(name)


class Forgetful(Coarse):
    """Proposes other windows where a document comes first."""

    def propose(self, material: Any, budget: Budget) -> Proposals:
        made = super().propose(material, budget)
        return made._replace(windows=made.windows.take(made.windows.document > 0))


def test_a_wrong_first_pass_is_caught(added: Any) -> None:
    entry = FirstPassEntry(f"{__name__}:Forgetful", 1, "swsdist.config.search:CoarseOptions")
    name = added(FIRST_PASSES, "forgetful", entry)
    with pytest.raises(AssertionError, match="the order of documents changes"):
        check_first_pass(name)


def in_batches(material: Material, folder: Path) -> None:
    """Writes a line a batch."""
    (folder / "rows.txt").write_text("".join(f"{batch.num_rows}\n" for batch in material.batches()))


def breaks(material: Material, folder: Path) -> None:
    """Knows no empty list."""
    (folder / "first.txt").write_text(next(material.batches()).column("query_id")[0].as_py())


@pytest.mark.parametrize(("maker", "complaint"), [("in_batches", "come in batches"), ("breaks", "an empty list is ne")])
def test_a_wrong_export_is_caught(added: Any, maker: str, complaint: str) -> None:
    name = added(EXPORTS, maker, ExportEntry(f"{__name__}:{maker}", 1))
    with pytest.raises(AssertionError, match=complaint):
        check_export(name)


@pytest.mark.parametrize("name", list(DISCOVERY_MEASURES))
def test_discovery_measure(name: str) -> None:
    check_discovery_measure(name)


class Blocks:
    """Counts blocks, so it depends on them."""

    def count(self, block):
        return WithoutPairs({"blocks": 1})

    def values(self, parts):
        return {"blocks": parts["blocks"]}


def test_what_depends_on_blocks_is_refused(added) -> None:
    name = added(DISCOVERY_MEASURES, "blocks", DiscoveryMeasureEntry(f"{__name__}:Blocks", 1, ("blocks",)))
    with pytest.raises(AssertionError, match="blocks of documents give"):
        check_discovery_measure(name)
