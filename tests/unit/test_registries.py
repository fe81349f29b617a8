"""What is registered, and the section `features`: names, options, tracks and needs."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from pydantic import Field

from swsdist.calibrate.procedure import make_steps
from swsdist.config import config_from_dict
from swsdist.config.model import Executor, Features
from swsdist.config.search import Search
from swsdist.core.codes import config as registry_codes
from swsdist.core.codes import families
from swsdist.core.errors import ConfigError
from swsdist.core.needs import Needs
from swsdist.features import extractors
from swsdist.features import extractors as sources
from swsdist.features.extractors import sources_of, together
from swsdist.features.interface import Columns
from swsdist.features.mfcc import Mfcc
from swsdist.kernels.distances.interface import create
from swsdist.registry.entries import DistanceEntry, FirstPassEntry, Options, RecurrenceEntry, checked
from swsdist.registry.registries import CALIBRATION, DISTANCES, FEATURES, FIRST_PASSES, RECURRENCES, TRANSFORMS
from swsdist.registry.registry import Registry
from swsdist.stages.index import Index
from tests.support.coded import raises

LEAST = {"run": "run", "corpus": {"documents": "docs.csv"}}
COSINE = "swsdist.kernels.distances.cosine:plain"


class Power(Options):
    power: int = Field(2, ge=1, le=4)
    weights: tuple[float, ...] = (1.0,)


def search(**values: Any) -> Search:
    return config_from_dict({**LEAST, "search": values}).search


@pytest.fixture
def mine() -> Iterator[None]:
    """A distance, a recurrence and a first pass of one's own, of this process."""
    DISTANCES.add("mine", DistanceEntry(COSINE, 3, f"{__name__}:Power"))
    RECURRENCES.add("rigid", RecurrenceEntry("nowhere:rigid", 1))
    FIRST_PASSES.add("ears", FirstPassEntry("nowhere:Ears", 1))
    yield
    DISTANCES.remove("mine")
    RECURRENCES.remove("rigid")
    FIRST_PASSES.remove("ears")


def test_a_config_takes_whatever_is_registered_and_tells_what_is_not(mine: None) -> None:
    given = search(distance="mine", distance_options={"power": 3, "weights": [1, 2]}, recurrence="rigid")
    options = {"power": 3, "weights": (1.0, 2.0)}
    assert given.terms()[0].options == {"power": 3, "weights": [1, 2]}
    assert given.matters()["distance"] == [[0, None, 1, "mean-variance", "mine", 3, options]]
    assert given.matters()["recurrence"] == ["rigid", 1, {}]
    assert search(first_pass={"name": "ears"}).matters()["first_pass"][:3] == ["ears", 1, {}]
    cases: list[tuple[dict[str, Any], str]] = [
        ({"distance": "min"}, r"search.distance: min is not allowed; did you mean mine\?"),
        ({"recurrence": "rigit"}, r"search.recurrence: rigit is not allowed; did you mean rigid\?"),
        ({"first_pass": {"name": "coars"}}, r"search.first_pass.name: coars is not allowed; did you mean coarse\?"),
        ({"backend": "cude"}, r"search.backend: cude is not allowed; did you mean cuda\?"),
        ({"distance": "mine", "distance_options": {"power": 5}}, "options of mine: power"),
        ({"distance": "mine", "distance_options": {"powr": 1}}, "the distance mine takes no powr"),
        ({"recurrence_options": {"band": 3}}, "the recurrence bounded-slope has no option band"),
        ({"streams": [{"columns": [0, 2], "options": {"power": 1}}]}, r"streams\[0\]: the distance cosine"),
        ({"recurrence": "rigid", "first_pass": {"name": "coarse"}}, r"recurrence: rigid.*\[conflicting-options\]"),
        ({"backend": "auto", "first_pass": {"name": "ears"}}, r"backend: auto.*\[conflicting-options\]"),
        ({"first_pass": {"name": "ears", "factor": 3}}, r"search.first_pass: .*\[unused-option\]"),
        (
            {"distance": "kl", "normalise": "none", "floor": 0.01, "distance_options": {"floor": 0.1}},
            r"search: floor.*\[conflicting-options\]",
        ),
        (
            {"recurrence": "segmental", "band": 3, "recurrence_options": {"band": 3}},
            "search: band.*conflicting-options",
        ),
        (
            {"first_pass": {"name": "coarse", "options": {"factor": 3}}},
            "search.first_pass: factor.*conflicting-options",
        ),
        ({"first_pass": {"name": "quantised", "options": {"bytes": 65}}}, "options of quantised: bytes"),
    ]
    for values, complaint in cases:
        with pytest.raises(ConfigError, match=complaint):
            search(**values)
    with raises(families.INVALID_VALUE, key="report.exports[1]", value="cvs", meant="; did you mean csv?"):
        config_from_dict({**LEAST, "report": {"exports": ["labels", "cvs"]}})


def test_versions_and_options_count_where_they_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    used = {
        "plain": search(),
        "kl": search(distance="kl", normalise="none"),
        "both": search(streams=[{"columns": [0, 3]}, {"columns": [3, 9], "distance": "euclidean"}]),
        "segmental": search(recurrence="segmental"),
        "coarse": search(first_pass={"name": "coarse"}),
    }

    def changed(registry: Registry[Any], name: str) -> set[str]:
        before = {key: value.matters() for key, value in used.items()}
        with monkeypatch.context() as patch:
            patch.setitem(registry._entries, name, replace(registry[name], version=99))
            return {key for key, value in used.items() if value.matters() != before[key]}

    assert changed(DISTANCES, "cosine") == {"plain", "both", "segmental", "coarse"}
    assert changed(DISTANCES, "euclidean") == {"both"}
    assert changed(DISTANCES, "kl") == {"kl"}
    assert changed(DISTANCES, "kl-symmetric") == set()
    assert changed(RECURRENCES, "segmental") == {"segmental"}
    assert changed(RECURRENCES, "bounded-slope") == {"plain", "kl", "both", "coarse"}
    assert changed(FIRST_PASSES, "coarse") == {"coarse"}
    assert changed(FIRST_PASSES, "quantised") == set()
    kl = search(distance="kl", normalise="none").matters()
    assert search(distance="kl", normalise="none", floor=1e-4).matters() == kl
    assert search(distance="kl", normalise="none", floor=1e-3).matters() != kl
    band = search(recurrence="segmental", band=10).matters()
    assert search(recurrence="segmental").matters() == band
    assert search(recurrence="segmental", recurrence_options={"band": 10}).matters() == band
    assert search(first_pass={"factor": 7}).matters() == search().matters()  # of a first pass that there is none
    assert search(lanes=3, piece_seconds=5.0, backend="blas").matters() == search().matters()
    assert checked(DISTANCES, "inner-product", {}) == {"floor": 1e-4}
    assert checked(FIRST_PASSES, "quantised", {"factor": 4}) == {"factor": 4, "bytes": 10, "margin": 36}
    with raises(registry_codes.UNKNOWN_ENTRY_OPTION, name="kl", option="cap", options="floor"):
        checked(DISTANCES, "kl", {"cap": 1.0})
    with raises(registry_codes.UNKNOWN_ENTRY_OPTION, name="cosine", option="cap", options="none"):
        create("cosine", 3, {"cap": 1.0})
    monkeypatch.setenv("RAY_ADDRESS", "a:1")
    assert (Executor().cluster, Executor(address="b:2").cluster) == ("a:1", "b:2")
    assert Executor(kind="serial", address="b:2").cluster is None
    monkeypatch.setenv("RAY_ADDRESS", "")
    assert Executor().cluster is None


def test_a_misspelt_option_is_told_with_the_options() -> None:
    """Wherever the entry has options; librosa's are those of its functions (tests/conformance/test_librosa.py)."""
    makers: list[tuple[Any, Any]] = [(FEATURES, extractors.create), (TRANSFORMS, extractors.create_transform)]
    makers.append((CALIBRATION, lambda name, options: make_steps([name], {name: options})))
    for registry, make in makers:
        for name in (name for name in registry if name != "librosa"):
            kind = registry[name].load()
            fields = list((kind.model if registry is CALIBRATION else kind).model_fields)
            for bad in [f"{field}x" for field in fields] or ["none"]:
                options = ", ".join(fields) or "none"
                with raises(registry_codes.UNKNOWN_ENTRY_OPTION, where=f".{bad}", option=bad, options=options) as told:
                    make(name, {bad: 1})
                assert not fields or f"; did you mean {bad[:-1]}?" in str(told.value)


class Layers(Mfcc):
    """Two tracks a pass, on a GPU if there is one."""

    tracks: ClassVar[Any] = (("low", 13), ("high", 26))
    needs: ClassVar[Any] = (Needs(gpus=0.5, memory_gb=4.0), Needs(cpus=4, memory_gb=8.0))


@pytest.fixture
def layers(monkeypatch: pytest.MonkeyPatch) -> None:
    """`layers` is such an extractor."""
    made = sources.create

    def create(name: str, options: dict[str, Any], **others: Any) -> Any:
        return Layers(**options) if name == "layers" else made(name, options, **others)

    monkeypatch.setattr(sources, "create", create)


def test_tracks_have_names_and_needs_are_those_of_all_extractors(layers: None, tmp_path: Any) -> None:
    one, two = sources_of([Features(name="mfcc", options={"n_mfcc": 7}), Features(name="layers")])
    assert one.tracks == (Columns("mfcc", 0, 21),)
    assert two.tracks == (Columns("low", 0, 13), Columns("high", 13, 39))
    assert two.columns(two.tracks[1]) == tuple(f"c{k}" for k in range(26))
    (named,) = sources_of([Features(name="layers", track="xlsr")])
    assert [track.name for track in named.tracks] == ["xlsr.low", "xlsr.high"]
    with raises(families.DUPLICATE_NAME, count=2, name="low"):
        sources_of([Features(name="layers"), Features(name="mfcc", track="low", options={"n_mfcc": 7})])
    values = {"run": str(tmp_path), "corpus": {"documents": "x.csv"}}
    plain = config_from_dict(values, ".")
    assert Index().needs(plain) == (Needs(),)
    both = config_from_dict({**values, "features": [{"name": "mfcc"}, {"name": "mfcc", "track": "b"}]}, ".")
    layered = both.model_copy(update={"features": (Features(options={"n_mfcc": 7}), Features(name="layers"))})
    assert Index().needs(layered) == Layers.needs
    assert together([[Needs(cpus=2)], [Needs(gpus=1.0), Needs(cpus=3)]]) == (Needs(2, gpus=1.0), Needs(3))


TRACKS = {"mfcc": (0, 39), "phones": (39, 49)}


def test_columns_of_a_stream_count_from_its_track_and_must_fit() -> None:
    streams: list[dict[str, Any]] = [
        {"track": "phones", "distance": "kl", "normalise": "none"},
        {"track": "mfcc", "columns": [13, 26], "weight": 2},
    ]
    placed = Search(streams=streams).placed(TRACKS)
    assert [(term.first, term.stop, term.distance, term.weight) for term in placed.terms()] == [
        (39, 49, "kl", 1),
        (13, 26, "cosine", 2),
    ]
    assert all(term.track is None for term in placed.terms())
    assert placed.placed({}) is placed
    without = Search(streams=[{"columns": [13, 26]}])
    assert without.placed(TRACKS) is without
    # What a search depends on is the track, and as before where none is named.
    assert Search(streams=streams).matters()["distance"][0][:3] == ["phones", 0, None]
    assert without.matters()["distance"][0][:2] == [13, 26]
    for streams, code in (
        ([{"track": "x"}], "unknown-name"),
        ([{"track": "phones", "columns": [0, 11]}], "unknown-name"),
        # Whether these meet only the store can tell.
        ([{"columns": [0, 40]}, {"track": "phones", "normalise": "none"}], "conflicting-options"),
    ):
        with pytest.raises(ConfigError) as caught:
            Search(streams=streams).placed(TRACKS)
        assert caught.value.code == code
    with pytest.raises(ValueError, match="missing-input"):
        Search(streams=[{"weight": 2}])
    with pytest.raises(ValueError, match="columns of mfcc 5 to 9"):
        Search(streams=[{"track": "mfcc"}, {"track": "mfcc", "columns": [5, 9], "normalise": "none"}])


FRAMES = {"path": "frames.npz", "shift": 0.02, "dimension": 2}


FAST = {"hop_length": 80}


def test_the_hop_that_gives_one_shift_is_told() -> None:
    for first, second, told in (
        (("external", FRAMES), ("mfcc", {}), "give mfcc the option hop_length: 320,"),
        (("mfcc", {"sample_rate": 8000, **FAST}), ("external", FRAMES), "give mfcc the option hop_length: 160,"),
        (("plp", {}), ("mfcc", FAST), "give mfcc the option hop_length: 160,"),
        (("external", {**FRAMES, "shift": "1/7"}), ("mfcc", {}), "set the options of the extractors so,"),
    ):
        with raises(families.MISMATCH) as caught:
            sources_of([Features(name=name, options=options) for name, options in (first, second)])
        assert told in (caught.value.remedy or "")
