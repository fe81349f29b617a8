"""Errors say what, where and what to do, keep that on the way through a process, and fix the exit code."""

import pickle

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


def test_exit_codes_and_pickling() -> None:
    for kind, code in KINDS.items():
        error = kind("it is broken", where="a.csv:3", remedy="mend it", code="broken", values={"line": 3})
        assert error.exit_code == code
        back = pickle.loads(pickle.dumps(error))
        assert (type(back), str(back), back.code, back.values) == (kind, str(error), "broken", {"line": 3})
        assert (back.message, back.where, back.remedy) == ("it is broken", "a.csv:3", "mend it")
    assert str(error) == "a.csv:3: it is broken [broken]\n  remedy: mend it"
    assert str(errors.UserError("no")) == "no"  # what is not known is not said
    assert errors.AudioError("no").reason == "unreadable"
    assert pickle.loads(pickle.dumps(errors.AudioError("no", code="truncated"))).reason == "truncated"
