"""`swsdist superb`, as a user types it, on a made database and with a tiny random encoder."""

import csv
import json
import shutil
from pathlib import Path

import pytest

from swsdist.config import load_config
from swsdist.testing.synthesis.encoder import make_encoder
from swsdist_recipes.quesst import codes as quesst_codes
from swsdist_recipes.quesst.made import make_quesst
from swsdist_recipes.superb import codes
from tests.commands import Command, Ended
from tests.support.coded import says

pytest.importorskip("transformers", reason="the extra `ssl` is not installed: pip install 'swsdist[ssl]'")

pytestmark = pytest.mark.xdist_group("ssl")

SUPERB = ("superb", "--upstream", "models/tiny", "--data", "quesst14Database", "--set", "executor.kind=serial")


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("superb")
    make_quesst(place / "quesst14Database", documents=6, queries=2)
    make_encoder(str(place / "models/tiny"), "hubert", layers=2)
    return place


@pytest.fixture(scope="module")
def first(here: Path, swsdist: Command) -> Ended:
    return swsdist(*SUPERB, cwd=here)


def test_layers_of_dev_and_the_best_on_eval(here: Path, first: Ended) -> None:
    folder = here / "superb-tiny/superb"
    values = json.loads((folder / "superb.json").read_text())
    assert [row["layer"] for row in values["dev"]] == [0, 1, 2]
    best = max(values["dev"], key=lambda row: (row["mtwv"], -row["layer"]))
    assert values["best_layer"] == best["layer"]
    assert f"MTWV {values['eval']['mtwv']:.4f} on eval with layer {best['layer']}" in first.out
    with (folder / "layers.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["dev_mtwv"]) for row in rows] == [row["mtwv"] for row in values["dev"]]
    assert [row["layer"] for row in rows if row["eval_mtwv"]] == [str(best["layer"])]
    assert (folder / "mtwv.svg").read_text().startswith("<svg")
    assert "index: 1 tasks" in first.err  # one pass over the encoder for all layers
    assert set(values["cpu_s"]) >= {"index", "queries", "search"}


def test_its_list_scores_by_hand(here: Path, first: Ended, swsdist: Command) -> None:
    values = json.loads((here / "superb-tiny/superb/superb.json").read_text())
    truth = "quesst14Database/scoring/groundtruth_quesst14_eval/quesst14_eval"
    files = ("-e", f"{truth}.ecf.xml", "-r", f"{truth}.rttm", "-t", f"{truth}.tlist.xml")
    options = ("-s", "superb-tiny/superb/eval.stdlist.xml", "--protocol", "quesst", "--default-score", "-10", "--json")
    ended = json.loads(swsdist("score", *files, *options, cwd=here).out)
    assert ended["measures"]["quesst_mtwv"] == pytest.approx(values["eval"]["mtwv"], abs=1e-12)
    assert ended["measures"]["quesst_atwv"] == pytest.approx(values["eval"]["atwv"], abs=1e-12)
    assert ended["trials"] == 12  # of both languages


def test_its_configs_run_by_hand(here: Path, first: Ended, swsdist: Command) -> None:
    ended = swsdist("run", "superb-tiny/superb/configs/dev-layer1.yaml", cwd=here)
    assert "MTWV" in ended.out
    assert "search: " not in ended.err
    assert "queries: " not in ended.err
    again = swsdist(*SUPERB, "--json", cwd=here)  # does nothing
    assert "tasks" not in again.err
    assert json.loads(again.out) == json.loads((here / "superb-tiny/superb/superb.json").read_text())


def test_some_layers_and_a_variant_without_the_frames_of_a_class(here: Path, swsdist: Command) -> None:
    given = ("--variant", "neg-log", "--json", "--set", "features.options.dtype=float16")
    values = json.loads(swsdist(*SUPERB, *given, "--layers", "2,1", "--run", "some", cwd=here).out)
    assert "dtype: float16" in (here / "some/superb/configs/dev-layer1.yaml").read_text()
    assert [row["layer"] for row in values["dev"]] == [1, 2]
    assert values["variant"] == "neg-log"
    more = ("--layers", "1", "--run", "dropped", "--set", "search.drop={columns: [3, 6]}")
    (without,) = json.loads(swsdist(*SUPERB, *given, *more, cwd=here).out)["dev"]
    assert without["layer"] == 1
    assert without["min_cnxe"] != values["dev"][0]["min_cnxe"]


@pytest.mark.slow
def test_whisper_is_given_windows_of_30_s(here: Path, swsdist: Command) -> None:
    make_encoder(str(here / "models/whisper"), "whisper", layers=2)
    ended = swsdist(*SUPERB, "--upstream", "models/whisper", "--layers", "1,2", "--json", cwd=here)
    assert [row["layer"] for row in json.loads(ended.out)["dev"]] == [1, 2]
    options = load_config(here / "superb-whisper/superb/configs/dev-layer1.yaml").features[0].options
    assert options["short_seconds"] == options["window_seconds"] == 30


def test_recordings_that_cannot_be_read_are_named(here: Path, swsdist: Command) -> None:
    shutil.copytree(here / "quesst14Database", here / "broken")
    (query, *_) = sorted((here / "broken/dev_queries").iterdir())
    query.write_bytes(b"no audio")
    ended = swsdist(*SUPERB, "--data", "broken", "--run", "broken-run", "--layers", "1", "--json", cwd=here)
    (notice,) = json.loads(ended.out)["notices"]
    assert notice.startswith("1 query(s) rejected")
    assert query.name in notice
    assert notice in ended.err


def test_mistakes(here: Path, swsdist: Command) -> None:
    for options, code in (
        (("--upstream", "nobody/nothing"), codes.NO_SUCH_UPSTREAM),
        (("--upstream", "not an id"), codes.NO_SUCH_UPSTREAM),
        (("--layers", "0,3"), codes.NO_SUCH_LAYERS),
        (("--layers", "some"), codes.NO_SUCH_LAYERS),
        (("--data", "models"), quesst_codes.NO_QUESST_DATABASE),
    ):
        assert says(swsdist(*SUPERB, *options, "--run", "wrong", cwd=here, code=2).err, code), options
        assert not (here / "wrong").exists()
