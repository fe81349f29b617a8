"""QUESST 2014's folder: what is read of a good one, and what is said of one that lacks something."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from swsdist.core.codes import Code, families
from swsdist.core.errors import SwsdistError
from swsdist_recipes.quesst import codes
from swsdist_recipes.quesst.database import read_quesst_database
from swsdist_recipes.quesst.made import Recording, write_quesst
from tests.support.coded import raises


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two languages, with a document and a query of each set in each."""
    sound = tmp_path / "sound.wav"
    soundfile.write(sound, np.zeros(1600, np.float32), 16000)
    english, other = Recording(sound, "nnenglish"), Recording(sound, "slovak")
    write_quesst(
        tmp_path / "quesst14Database",
        {"quesst14_1": english, "quesst14_2": other},
        {split: {f"quesst14_{split}_1": english, f"quesst14_{split}_2": other} for split in ("dev", "eval")},
        {split: [(f"quesst14_{split}_1", "quesst14_1")] for split in ("dev", "eval")},
    )
    return tmp_path / "quesst14Database"


def test_one_language_is_read_and_all_are_scored(folder: Path) -> None:
    database = read_quesst_database(folder, "nnenglish")
    assert dict(database.documents) == {"quesst14_1": folder / "Audio/quesst14_1.wav"}
    assert dict(database.queries["eval"]) == {"quesst14_eval_1": folder / "eval_queries/quesst14_eval_1.wav"}
    truth = database.truth["dev"]
    assert truth.documents == ("quesst14_1", "quesst14_2")
    assert truth.queries == ("quesst14_dev_1", "quesst14_dev_2")
    pairs = truth.references.select(["query_id", "doc_id"]).to_pylist()
    assert pairs == [{"query_id": "quesst14_dev_1", "doc_id": "quesst14_1"}]
    assert soundfile.info(folder / "Audio/quesst14_1.wav").samplerate == 8000


def _append(name: str, line: str) -> Callable[[Path], object]:
    return lambda folder: _write(name, (folder / name).read_text() + line + "\n")(folder)


def _remove(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).unlink()


def _rename(name: str, new: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).rename(folder / new)


def _write(name: str, text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(text)


LISTED, TRUTH = "scoring/language_key_utterances.lst", "scoring/groundtruth_quesst14_dev"
MISTAKES: list[tuple[Callable[[Path], object], Code[SwsdistError], str]] = [
    (_rename("scoring", "score"), codes.NO_QUESST_DATABASE, "quesst14Database"),
    (_remove(LISTED), codes.QUESST_FILE_MISSING, "scoring"),
    (_append(LISTED, "x/Audio/my file.wav nnenglish"), codes.QUESST_LANGUAGE_FIELDS, f"{LISTED}, line 3"),
    (_append(LISTED, "x/Audio/quesst14_1.wav nnenglish"), codes.DUPLICATE_QUESST_FILE, f"{LISTED}, line 3"),
    (_append(LISTED, "x/Audio/gone.wav nnenglish"), codes.QUESST_RECORDING_MISSING, f"{LISTED}, line 3"),
    (_write(LISTED, "x/Audio/a.wav czech\n"), codes.NOTHING_OF_LANGUAGE, LISTED),
    (_write(LISTED, ""), codes.NOTHING_OF_LANGUAGE, LISTED),
    (_rename("scoring/groundtruth_quesst14_eval", "x"), codes.QUESST_FILE_MISSING, "scoring"),
    (_remove(f"{TRUTH}/quesst14_dev.rttm"), codes.QUESST_FILE_MISSING, TRUTH),
    (_write(f"{TRUTH}/copy.rttm", ""), codes.SEVERAL_QUESST_FILES, TRUTH),
    (_write(f"{TRUTH}/quesst14_dev.rttm", "LEXEME x\n"), families.MALFORMED_LINE, "quesst14_dev.rttm, line 1"),
    (_rename("Audio/quesst14_1.wav", "Audio/new.wav"), codes.QUESST_RECORDING_MISSING, f"{LISTED}, line 1"),
]


@pytest.mark.parametrize(("change", "code", "where"), MISTAKES)
def test_what_is_missing_or_odd(
    folder: Path, change: Callable[[Path], object], code: Code[SwsdistError], where: str
) -> None:
    change(folder)
    with raises(code, where=where):
        read_quesst_database(folder, "nnenglish")


def test_what_the_ground_truth_does_not_know(folder: Path) -> None:
    (folder / "Audio/quesst14_1.wav").rename(folder / "Audio/new.wav")
    _write(LISTED, "x/Audio/new.wav nnenglish\n")(folder)
    with raises(codes.NOT_IN_GROUND_TRUTH, what="document", first="new", count=1):
        read_quesst_database(folder, "nnenglish")
