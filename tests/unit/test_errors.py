"""Errors say what, where and what to do, keep that on the way through a process, and fix the exit code."""

import pickle

import pytest

from swsdist.core import errors

KINDS = {
    errors.UserError: 2,
    errors.ConfigError: 2,
    errors.LockedError: 2,
    errors.StorageError: 2,
    errors.TransientError: 2,
    errors.DataError: 3,
    errors.OddError: 4,
    errors.UnusableError: 3,
    errors.TermError: 3,
    errors.AudioError: 3,
    errors.ForeignError: 3,
    errors.CutOffError: 3,
    errors.FramesError: 3,
    errors.TableError: 3,
    errors.StoreError: 3,
    errors.DamagedTransferError: 3,
    errors.IncompleteError: 4,
    errors.ImplausibleError: 5,
    errors.CancelledError: 143,
}


def test_every_error_is_here() -> None:
    def below(kind: type) -> set[type]:
        return {kind}.union(*(below(child) for child in kind.__subclasses__()))

    known = {kind for kind in below(errors.SwsdistError) if kind.__module__ == "swsdist.core.errors"}
    assert known == {*KINDS, errors.SwsdistError}


@pytest.mark.parametrize(("kind", "code"), KINDS.items(), ids=lambda value: getattr(value, "__name__", str(value)))
def test_exit_codes_and_pickling(kind: type[errors.SwsdistError], code: int) -> None:
    error = kind("it is broken", where="a.csv:3", remedy="mend it")
    assert error.exit_code == code
    assert str(error) == "a.csv:3: it is broken\n  remedy: mend it"
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is kind
    assert (back.message, back.where, back.remedy) == ("it is broken", "a.csv:3", "mend it")
    coded = kind("it is broken", where="a.csv:3", remedy="mend it", code="broken", values={"line": 3})
    assert str(coded) == "a.csv:3: it is broken [broken]\n  remedy: mend it"
    back = pickle.loads(pickle.dumps(coded))
    assert (type(back), str(back), back.code, back.values) == (kind, str(coded), "broken", {"line": 3})


def test_what_is_not_known_is_not_said() -> None:
    assert str(errors.UserError("no")) == "no"
    assert str(errors.UserError("no", where="here")) == "here: no"
    assert str(errors.UserError("no", remedy="yes")) == "no\n  remedy: yes"


def test_the_reason_of_audio_errors_travels() -> None:
    assert errors.AudioError("no").reason == "unreadable"
    assert pickle.loads(pickle.dumps(errors.AudioError("no", code="truncated"))).reason == "truncated"
