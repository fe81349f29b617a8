"""A recogniser of another package passes its suite and makes lattices in the chain; a wrong one is caught."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray

import swsdist
from swsdist.config import config_from_dict
from swsdist.config.section import IsPath, Section
from swsdist.core.codes import config as registry_codes
from swsdist.core.codes import families
from swsdist.core.codes import lattices as codes
from swsdist.core.needs import LEAST, Needs
from swsdist.lattices.lattice import Lattice, Word, transcript
from swsdist.lattices.recognition import Text
from swsdist.pipeline.chain_run import StepSelection
from swsdist.registry.entries import RecogniserEntry
from swsdist.registry.registries import RECOGNISERS
from swsdist.testing.conformance import check_recogniser
from tests.support.coded import raises

RATE = 8000
SECTIONS: dict[str, Any] = {"run": "run", "chain": "lattices", "search": {"method": "lattice"}, "force": True}
SECTIONS["executor"] = {"kind": "serial"}


class Tones(Section):
    """Recognises the tone of each second: `low`, `high`, or nothing."""

    border: float = 1000.0
    names: IsPath | None = None

    rate: ClassVar[int] = RATE
    needs: ClassVar[tuple[Needs, ...]] = LEAST

    def identity(self) -> list[Any]:
        return [self.border]

    def load(self, granted: Needs) -> None:
        assert granted.cpus >= 1

    def lattice(self, key: str, channel: int, blocks: Iterable[NDArray[np.float32]]) -> Lattice:
        return transcript(key, [Word(name, k, k + 1.0) for k, name in enumerate(self.tones(blocks)) if name], channel)

    def texts(self, blocks: Iterable[NDArray[np.float32]]) -> list[Text]:
        names = tuple(name for name in self.tones(blocks) if name)
        return [Text(names)] if names else []

    def tones(self, blocks: Iterable[NDArray[np.float32]]) -> list[str]:
        samples = np.concatenate([np.zeros(0, np.float32), *blocks])
        powers = [abs(np.fft.rfft(samples[k : k + RATE], RATE)) for k in range(0, len(samples), RATE)]
        return [("low" if power.argmax() < self.border else "high") if power.max() > 10 else "" for power in powers]


class ByBlocks(Tones):
    def tones(self, blocks: Iterable[NDArray[np.float32]]) -> list[str]:
        return ["low" for _ in blocks]


def sound(*tones: float) -> NDArray[np.float32]:
    """A second of each tone, Hz; 0: silence."""
    times = np.arange(RATE) / RATE
    return np.concatenate([0.5 * np.sin(2 * np.pi * tone * times) for tone in tones]).astype(np.float32)


def entry(name: str = "Tones", **facts: Any) -> RecogniserEntry:
    return RecogniserEntry(f"{__name__}:{name}", 1, f"{__name__}:{name}", **facts)


def test_a_recogniser_of_another_package_conforms(added: Any) -> None:
    check_recogniser(added(RECOGNISERS, "tones", entry()), sound(440, 0, 2000), {"border": 600.0})


def test_a_wrong_recogniser_is_caught(added: Any) -> None:
    with pytest.raises(AssertionError, match="depend on blocks"):
        check_recogniser(added(RECOGNISERS, "by-blocks", entry("ByBlocks")), sound(440))


@pytest.mark.parametrize("holds", ["words", "phones"])
def test_its_lattices_are_searched(added: Any, tmp_path: Path, holds: str) -> None:
    """By written and spoken queries, whose labels are those of its lattices, in a run and in a search of the run."""
    added(RECOGNISERS, "tones", entry(holds=holds))
    for name, tones in {"one": (440, 2000), "two": (0, 440), "q": (2000,), "silence": (0,)}.items():
        soundfile.write(tmp_path / f"{name}.wav", sound(*tones), RATE)
    (tmp_path / "docs.csv").write_text("doc_id,path\none,one.wav\ntwo,two.wav\n")
    (tmp_path / "queries.csv").write_text("query_id,path,text\nspoken,q.wav,\nwritten,,deep\nmute,silence.wav,low\n")
    (tmp_path / "deep.dict").write_text("deep low\nlow low\nhigh high\n")
    terms = {"dictionary": "deep.dict", **({} if holds == "phones" else {"nearest": 1})}
    recogniser = {"name": "tones", "options": {"names": "x"}}
    values = {
        "corpus": {"documents": "docs.csv", "queries": "queries.csv"},
        "options": {"source": "recogniser", "recogniser": recogniser, "terms": terms},
        "calibrate": {"steps": []},
    }
    config = config_from_dict({**SECTIONS, **values}, tmp_path)
    given: Any = config.options["recogniser"]
    assert given["options"] == {"names": str(tmp_path / "x")}
    result = swsdist.run(config)
    found = {(row.query_id, row.doc_id, round(row.start)) for row in result.detections().itertuples()}
    words = {("written", "one", 0), ("written", "two", 1)} if holds == "phones" else set()
    assert found == {("spoken", "one", 1), *words}
    assert [row["id"] for row in result.outcome.chain_run.rejected().to_pylist()] == ["mute"]
    assert set(swsdist.search(config.run, "deep" if holds == "phones" else "high")["doc_id"]) >= {"one"}


def test_texts_get_the_times_of_what_it_hears(added: Any, tmp_path: Path) -> None:
    """A recording, and one of another folder by a table; another text, none, or silence is told of each recording."""
    added(RECOGNISERS, "tones", entry())
    said = {"a/one": (440, 0, 2000), "two": (440,), "other": (440, 440), "untold": (440,), "silent": (0,)}
    (tmp_path / "a").mkdir()
    for name, tones in said.items():
        soundfile.write(tmp_path / f"{name}.wav", sound(*tones), RATE)
    rows = [
        "path text",
        "a/one.wav Low,",
        "one nobody's",
        "a/one.wav high!",
        "two low",
        "other very far",
        "silent low",
        "",
    ]
    (tmp_path / "texts.tsv").write_text("\n".join(row.replace(" ", "\t", 1) for row in rows))
    options = {"source": "recogniser", "recogniser": {"name": "tones"}, "texts": "texts.tsv"}
    config = config_from_dict({**SECTIONS, "corpus": {"documents": "."}, "options": options}, tmp_path)
    result = swsdist.run(config, selection=StepSelection(table="documents"))
    table = swsdist.words(config.run).itertuples(index=False)
    assert [tuple(row) for row in table] == [
        ("a/one", 1, 0.0, 1.0, "Low,", 1.0),
        ("a/one", 1, 2.0, 3.0, "high!", 1.0),
        ("two", 1, 0.0, 1.0, "low", 1.0),
    ]
    rejected = {row["id"]: row["reason"] for row in result.outcome.chain_run.rejected().to_pylist()}
    assert rejected == {
        "other": codes.NOT_THE_TEXT.name,
        "silent": codes.NOT_THE_TEXT.name,
        "untold": codes.NO_TEXT_OF_RECORDING.name,
    }
    assert any(codes.TEXT_WITHOUT_RECORDING.name in notice for notice in result.outcome.chain_run.notices())


def test_options_of_other_sources_are_refused(added: Any, tmp_path: Path) -> None:
    for options, key in (
        ({"decoding": {"scale": 2.0}}, "options.decoding"),
        ({"source": "frames", "recipe": {"least": 0.1}}, "options.recipe"),
        ({"source": "frames", "lattices": {"tiers": ["a"]}}, "options.lattices"),
    ):
        with raises(codes.OPTION_OF_OTHER_SOURCE, key=key):
            run(tmp_path, options)
    with raises(registry_codes.UNKNOWN_ENTRY_OPTION, option="scales", kind="recogniser"):
        run(tmp_path, {"source": "recogniser", "recogniser": {"options": {"scales": 1}}})
    added(RECOGNISERS, "tones", entry(holds="phones"))
    with raises(families.UNSUPPORTED, name="tones"):
        run(tmp_path, {"source": "recogniser", "recogniser": {"name": "tones"}, "texts": "texts.tsv"})


def run(folder: Path, options: dict[str, Any]) -> None:
    (folder / "docs.csv").write_text("doc_id,path\na,a.wav\n")
    values = {"corpus": {"documents": "docs.csv"}, "options": options, "calibrate": {"steps": []}}
    swsdist.run(config_from_dict({**SECTIONS, **values}, folder))
