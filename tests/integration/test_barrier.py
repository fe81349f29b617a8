"""What is implausible ends a run with an error of its own, after it has kept its work; `--force` goes on, and tells it."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from click.testing import CliRunner

from swsdist.chains.check import check
from swsdist.cli.scoring import score
from swsdist.config import load_config
from swsdist.core.codes import families
from swsdist.core.codes import pipeline as chains_codes
from swsdist.core.codes import stages as stages_codes
from swsdist.core.errors import ImplausibleError
from swsdist.features.mfcc import Mfcc
from swsdist.io.filesystem import Folder
from swsdist.io.notices import FEW, REJECTED
from swsdist.pipeline.ledger import Ledger
from swsdist.stages.inputs.search_inputs import SearchInputs
from tests.integration.test_oddities import change, every, warnings
from tests.support.coded import raises, says


@pytest.fixture
def scene(own_corpus: Any) -> Any:
    """A corpus that may be changed."""
    return own_corpus


def bad_lines(scene: Any, run: str) -> list[str]:
    """What `check` finds that keeps a run from its beginning."""
    config = load_config(str(scene.config), [f"run={scene.folder / run}", "corpus.examples=all"])
    found = check(SearchInputs.of(config, Ledger(Folder(str(scene.folder / run)))))
    return [f"{one.name}: {one.text}" for one in found if one.good is False]


def spoil(scene: Any, table: str, count: int) -> None:
    """Make recordings empty: documents, or examples of queries."""
    with (scene.corpus / f"{table}.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows[:count]:
        (scene.corpus / row["path"]).write_bytes(b"")


@pytest.mark.slow
@pytest.mark.parametrize("table", ["docs", "queries"])
def test_what_is_rejected(scene: Any, table: str) -> None:
    """Up to `FEW` files, or a tenth, are rejections; more end the run, whose work is kept."""
    with (scene.corpus / f"{table}.csv").open(newline="") as file:
        rows = len(list(csv.DictReader(file)))
    most = max(FEW, int(REJECTED * rows))
    assert most + 1 < rows
    spoil(scene, table, most)
    assert bad_lines(scene, "few") == []
    scene.run("corpus.examples=all", run="few")
    assert len(scene.rejected("few")) == most
    spoil(scene, table, most + 1)
    (bad,) = bad_lines(scene, "many")
    assert f"{most + 1} of {rows}" in bad
    with raises(chains_codes.MANY_REJECTED, count=most + 1, of=rows) as caught:
        scene.run("corpus.examples=all", run="many")
    assert caught.value.exit_code == 5
    result = scene.run("corpus.examples=all", "force=true", run="many")
    assert "index" not in {name for name, end in result.outcome.chain_run.outcomes.items() if end.done}  # it was kept
    assert any(one.startswith(f"{most + 1} of {rows} ") for one in result.outcome.chain_run.notices())
    with pytest.raises(ImplausibleError):  # nor does it pass since it was forced once
        scene.run("corpus.examples=all", run="many")


@pytest.mark.slow
def test_durations_of_another_unit(scene: Any) -> None:
    """An error; and trials are counted from the audio all the same."""
    true = scene.run(run="true").measures()
    real = {path.stem: soundfile.info(path).duration for path in (scene.corpus / "audio").iterdir()}
    change(scene, "docs", lambda rows: [row.update(duration=f"{1000 * real[row['doc_id']]:.0f}") for row in rows])
    assert any(says(line, stages_codes.CONTRADICTED_DURATION) for line in bad_lines(scene, "odd"))
    with raises(stages_codes.CONTRADICTED_DURATION, where="docs.csv, line 2", count=len(real), of=len(real)) as caught:
        scene.run(run="odd")
    assert isinstance(caught.value, ImplausibleError)
    assert scene.run("force=true", run="odd").measures() == true


def test_an_extractor_with_too_many_frames_is_found_before_the_run(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Mfcc.extract

    def longer(self: Any, samples: Any) -> Any:
        found = plain(self, samples)
        return np.concatenate([found, found[:3]])

    monkeypatch.setattr(Mfcc, "extract", longer)
    (bad,) = bad_lines(scene, "odd")
    assert says(bad, families.EXTENSION)


NAMES = {"ending": "[unreferenced-documents]", "unit": "[time-unit-mismatch]"}


@pytest.mark.parametrize("what", NAMES)
def test_a_list_whose_names_or_times_do_not_fit(tmp_path: Path, what: str) -> None:
    """An error with both sides' names; forced, a warning, and the measures."""
    references = ["query_id,doc_id,start,end", *(f"q1,talk{n},1.0,1.5" for n in range(4))]
    (tmp_path / "refs.csv").write_text("\n".join(references) + "\n")
    ending, unit = (".flac", 1) if what == "ending" else ("", 1000)
    found = [f"q1,talk{n}{ending},{1 * unit},{1.5 * unit},0.5,True" for n in range(4)]
    (tmp_path / "a.csv").write_text("query_id,doc_id,start,end,score,decision\n" + "\n".join(found) + "\n")
    call = ["-s", f"{tmp_path}/a.csv", "--references", f"{tmp_path}/refs.csv", "--seconds", "9000"]
    refused = CliRunner().invoke(score, call, standalone_mode=False)
    assert isinstance(refused.exception, ImplausibleError), refused.output
    assert "4 of 4" in str(refused.exception)
    assert NAMES[what] in str(refused.exception)
    forced = CliRunner().invoke(score, [*call, "--force", "--json"], standalone_mode=False)
    assert forced.exception is None
    found = json.loads(forced.stdout)
    assert found["measures"]["stwv"] == 0.0
    (notice,) = (one for one in found["notices"] if f"[{one['code']}]" == NAMES[what])
    assert notice["count"] == 4
    assert "4 of 4" in notice["message"]


def test_that_all_is_missed_is_a_warning(scene: Any) -> None:
    """It has no structural cause: references lie in the recordings, and of other moments."""
    change(scene, "refs", every(start="0.0", end="0.02"))
    assert any(says(one, families.ALL_MISSED) for one in warnings(scene))
