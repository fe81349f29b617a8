"""The section `features` as extractors, tracks and needs; and streams that name tracks."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest

from swsdist.config import config_from_dict
from swsdist.config.model import Features
from swsdist.config.search import Search
from swsdist.core.codes import families
from swsdist.core.errors import ConfigError
from swsdist.core.needs import Needs
from swsdist.features import extractors as sources
from swsdist.features.extractors import sources_of, together
from swsdist.features.interface import Columns
from swsdist.features.mfcc import Mfcc
from swsdist.features.statistics import Statistics
from swsdist.stages.index import Index
from tests.support.coded import raises


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


def test_tracks_have_names(layers: None) -> None:
    one, two = sources_of([Features(name="mfcc", options={"n_mfcc": 7}), Features(name="layers")])
    assert one.tracks == (Columns("mfcc", 0, 21),)
    assert two.tracks == (Columns("low", 0, 13), Columns("high", 13, 39))
    assert two.columns(two.tracks[1]) == tuple(f"c{k}" for k in range(26))
    (named,) = sources_of([Features(name="layers", track="xlsr")])
    assert [track.name for track in named.tracks] == ["xlsr.low", "xlsr.high"]
    with raises(families.DUPLICATE_NAME, count=2, name="low"):
        sources_of([Features(name="layers"), Features(name="mfcc", track="low", options={"n_mfcc": 7})])


def test_needs_are_those_of_all_extractors(layers: None, tmp_path: Any) -> None:
    values = {"run": str(tmp_path), "corpus": {"documents": "x.csv"}}
    plain = config_from_dict(values, ".")
    assert Index().needs(plain) == (Needs(),)
    both = config_from_dict({**values, "features": [{"name": "mfcc"}, {"name": "mfcc", "track": "b"}]}, ".")
    layered = both.model_copy(update={"features": (Features(options={"n_mfcc": 7}), Features(name="layers"))})
    assert Index().needs(layered) == Layers.needs
    assert together([[Needs(cpus=2)], [Needs(gpus=1.0), Needs(cpus=3)]]) == (Needs(2, 1.0, 1.0), Needs(3))


TRACKS = {"mfcc": (0, 39), "phones": (39, 49)}


def test_columns_of_a_stream_count_from_its_track() -> None:
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


def test_streams_that_do_not_fit_are_refused() -> None:
    for streams, code in (
        ([{"track": "x"}], "unknown-name"),
        ([{"track": "phones", "columns": [0, 11]}], "mismatch"),
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


def test_statistics_side_by_side() -> None:
    one = Statistics(4, np.array([1.0]), np.array([8.0]))
    two = Statistics(2, np.array([2.0, 3.0]), np.array([2.0, 4.0]))
    assert Statistics.side_by_side([one]) is one
    both = Statistics.side_by_side([one, two])
    assert both.frames == 2
    assert both.mean.tolist() == [1, 2, 3]
    assert both.variance.tolist() == [2, 1, 2]


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
