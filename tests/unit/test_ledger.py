"""What the driver keeps of many tasks: receipts as columns, packed while a stage goes on; tasks in a file; files in a list."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from swsdist.core.fingerprint import Naming, fingerprint
from swsdist.core.types import RECEIPTS
from swsdist.io.filesystem import Folder
from swsdist.pipeline import ledger as module
from swsdist.pipeline import receipts
from swsdist.pipeline.ledger import Ledger, pack_name, receipt_name
from swsdist.pipeline.receipts import Listing, Names, Queue, ReceiptList, Receipts, Spool, decoded, encoded, names_of
from swsdist.pipeline.receipts import first_of_each as first_rows
from swsdist.pipeline.task import Cost, Part, Receipt, Task


def receipt(number: int, finished: float = 2.0, size: int = 3) -> Receipt:
    name = fingerprint(number)
    first = Part("a", f"tables/a/{name}.parquet", size, "0" * 64, number, (number, number + 1))
    parts = first, Part("b", f"tables/b/{name}.json", size, "1" * 64)
    told, rejected = {"number": number, "words": ["é", "\u2028"]}, [{"id": "x", "part": None}]
    cost = Cost(0.1, 0.2, 0.3, 4, 5, 6, 2**40)
    return Receipt("stage", 3, name, "eins, zwei", 1.5, parts, told, rejected, cost, "host", 7, 1.0, finished)


def done(folder: Folder, number: int) -> tuple[Task, Receipt]:
    made = receipt(number)
    for part in made.outputs:
        folder.write_bytes(part.name, b"abc")
    folder.write_bytes(receipt_name("stage", made.fingerprint), made.to_json().encode())
    return Task("stage", made.fingerprint, "", 1, {}), made


def test_receipts_come_back_are_folded_in_and_the_last_of_a_task_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    some = [receipt(number) for number in range(100)]
    assert list(decoded(encoded(some))) == some
    found = Receipts([encoded(some)])
    assert dict(found) == {one.fingerprint: one for one in some}
    assert fingerprint("other") not in found
    rows = [found.add(receipt(number, finished=9.0)) for number in (3, 5, 3)]
    assert rows == [100, 101, 102]
    assert found[fingerprint(3)].finished == found[fingerprint(5)].finished == 9.0
    assert (len(found), found.rows) == (100, 103)
    assert found.find(names_of([fingerprint(3), fingerprint("none"), fingerprint(4)])).tolist() == [102, -1, 4]
    monkeypatch.setattr("swsdist.pipeline.receipts._FRESH", 7)
    found = Receipts()
    rows = [found.add(receipt(number % 60)) for number in range(100)]
    assert rows == list(range(100))
    assert len(found) == 60
    expected = [number + 60 if number < 40 else number for number in range(60)]
    assert found.find(names_of(fingerprint(number) for number in range(60))).tolist() == expected
    chosen = ReceiptList()
    chosen.extend(found, np.array([99, 0, 50]))
    assert [one.result["number"] for one in chosen] == [39, 0, 50]
    assert chosen[-1].result["number"] == 50
    assert [part.rows for part in chosen.parts("a")] == [39, 0, 50]
    assert [p.name for p in chosen.parts("a").meeting(range(40, 51))] == [chosen[k].outputs[0].name for k in (0, 2)]
    assert list(Names(chosen.fingerprints)) == [fingerprint(number) for number in (39, 0, 50)]


def test_receipts_are_packed_while_a_stage_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOSE", 4)
    folder = Folder(str(tmp_path))
    ledger = Ledger(folder)
    assert len(ledger.receipts("stage")) == 0
    for number in range(11):
        ledger.note(*done(folder, number))
        # Whenever the driver dies, all that was done is known, and of one task once.
        assert len(Ledger(folder).receipts("stage")) == number + 1
    loose = [name for name in folder.listing("receipts") if name.endswith(".json")]
    packs = [name for name in folder.listing("receipts") if name.endswith(".parquet")]
    assert (len(loose), len(packs)) == (3, 2)
    assert sum(pq.read_table(tmp_path / name).num_rows for name in packs) == 8
    ledger.pack("stage")
    assert list(folder.listing("receipts")) == [pack_name("stage")]
    table = pq.read_table(tmp_path / pack_name("stage"))
    assert (table.num_rows, table.schema.names) == (11, RECEIPTS.names)
    assert table["fingerprint"].to_pylist() == sorted(table["fingerprint"].to_pylist())


def test_a_receipt_stands_if_its_outputs_do_and_leaves_others_if_it_is_none(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    tasks = [done(folder, number) for number in range(3)]
    folder.remove(tasks[0][1].outputs[1].name)
    folder.write_bytes(tasks[1][1].outputs[0].name, b"ab")
    ledger = Ledger(folder)
    assert [ledger.receipt(task) is not None for task, _ in tasks] == [False, False, True]
    ledger.note(*done(folder, 0))
    assert ledger.receipt(tasks[0][0]) == tasks[0][1]
    folder = Folder(str(tmp_path))
    whole, _ = done(folder, 1)
    broken, _ = done(folder, 2)
    for text in (b"\xff\xfe", b"[]", b"1", b"null", b'"x"', b"{}", b"[" * 100_000, b""):
        folder.write_bytes(receipt_name("stage", broken.fingerprint), text)
        ledger = Ledger(folder)
        assert ledger.receipt(whole) is not None
        assert ledger.receipt(broken) is None, text


def test_tasks_wait_in_a_file_and_share_what_is_common() -> None:
    common = {"search": {"window": 1}}
    tasks = [Task("s", fingerprint(k), f"{k}", k % 5, {"k": k}, "", common) for k in range(40)]
    spool = Spool()
    for task in tasks:
        spool.put(task)
    assert list(spool) == tasks
    assert spool[-1].common is common
    assert spool.work == sum(task.work for task in tasks)
    queue = Queue(spool)
    first = [queue.popleft() for _ in range(9)]
    assert [int(task.label) for task in first] == [4, 9, 14, 19, 24, 29, 34, 39, 3]
    queue.extendleft([first[0]])
    queue.extend([first[1]])
    rest = list(queue)
    assert (rest[0], rest[-1], len(rest), len(queue)) == (first[0], first[1], 33, 0)
    assert list(spool.take(np.array([5, 2]))) == [tasks[5], tasks[2]]


def test_a_listing_knows_what_was_made_and_removed_since() -> None:
    known = Listing([("a/1", 10), ("a/2", 20), ("b/1", 30)])
    known.add("a/3", 5)
    known.discard("a/2")
    assert sorted(known.below("a/")) == ["a/1", "a/3"]
    assert (known.size("a/1"), known.size("a/2"), known.size("a/3"), "b/2" in known) == (10, None, 5, False)
    names = encoded([receipt(0)])["fingerprint"].combine_chunks().slice(0, 0)
    assert known.are_complete(names, np.empty(0, np.int64)).tolist() == []


def test_names_that_begin_alike_and_lists_of_names(monkeypatch: pytest.MonkeyPatch) -> None:
    naming = Naming("stage", 2, {"b": 1, "a": [None, 0.5]})
    assert naming("x", 3) == fingerprint("stage", 2, {"a": [None, 0.5], "b": 1}, "x", 3)
    assert naming() == fingerprint("stage", 2, {"a": [None, 0.5], "b": 1})
    assert naming.listing([["é", '"'], [], ["z"]])(7) == naming(["é", '"', "z"], 7)
    assert naming.listing([])() == naming([])
    several = [[[["é", 1]], [["z", 2], ["y", None]]], [], [[]]]
    whole = [[["é", 1], ["z", 2], ["y", None]], [], []]
    assert Naming("a").listings(several)(0) == fingerprint("a", whole, 0)
    assert Naming("a").listings([])() == fingerprint("a", [])
    names = Names([f"{k:032x}" for k in (3, 1, 2**127)])
    assert Names.of_text(names.text()) == names
    assert Names.of_text(Names().text()) == Names()
    assert names.text().split() == list(names)
    assert names.digest() != Names(names[:2]).digest()
    for wrong in (names.text()[1:], "x" * 33, "é" * 33):
        with pytest.raises(ValueError):
            Names.of_text(wrong)
    monkeypatch.setattr(receipts, "_COMPARED", 3)  # equal ones are compared in different pieces, too
    for numbers in ([], [5], [1, 1, 1, 1, 1, 1, 1, 1], [4, 2, 4, 3, 2, 1, 4, 0, 0, 1, 7]):
        names = Names([f"{k:032x}" for k in numbers])
        assert first_rows(names.array).tolist() == sorted({k: numbers.index(k) for k in numbers}.values())


def test_a_driver_that_was_killed_while_packing_loses_nothing(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    tasks = [done(folder, number) for number in range(3)]
    # The pack is there, and none of the single files is gone yet; one of them is of a later attempt.
    again = replace(tasks[1][1], started=7.0, finished=8.0)
    folder.write_bytes(receipt_name("stage", again.fingerprint), again.to_json().encode())
    (tmp_path / "receipts").mkdir(exist_ok=True)
    pq.write_table(encoded([one for _, one in tasks]), tmp_path / f"receipts/stage.{'0' * 32}.parquet")
    ledger = Ledger(folder)
    assert ledger.receipts("stage")[again.fingerprint].finished == 8.0
    ledger.pack("stage")
    assert list(folder.listing("receipts")) == [pack_name("stage")]
    assert sorted(pq.read_table(tmp_path / pack_name("stage"))["finished"].to_pylist()) == [2.0, 2.0, 8.0]


def test_a_second_attempt_that_ended_later_counts_no_more_than_the_first(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    pairs = [done(folder, number) for number in range(3)]
    ledger = Ledger(folder)
    ledger.listing()
    ledger.pack("stage")
    slower, again, gone = (replace(made, pid=8, finished=9.0) for _, made in pairs)
    again = replace(again, started=5.0)
    for part in gone.outputs:
        folder.write_bytes(part.name, b"abcd")
    gone = replace(gone, outputs=tuple(part._replace(size=4) for part in gone.outputs))
    for one in (slower, again, gone):
        folder.write_bytes(receipt_name("stage", one.fingerprint), one.to_json().encode())
    for _ in range(2):
        ledger = Ledger(folder)
        assert [ledger.receipt(task) for task, _ in pairs] == [pairs[0][1], again, gone]
        ledger.pack("stage")
    assert list(folder.listing("receipts")) == [pack_name("stage")]
