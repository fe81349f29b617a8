"""Searches of several threads that share passes over a store.

A pass reads and packs the documents once for all its queries, so ten questions at once cost three to four times as much as
one. While a pass goes on, further questions wait; the next pass is for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from threading import Lock

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.core.partition import slot_of
from swsdist.methods.method import Unit

#: Most questions of a pass: what they find is in memory.
_MOST = 32

#: Candidates of queries (EXAMPLES), unit by unit.
Search = Callable[[pa.Table], Iterator[tuple[Unit, Iterable[pa.Table]]]]
_Found = tuple[Unit, list[pa.Table]]


class _Question:
    """Somebody's queries, and what is found of them: candidates of units; an error; None at the end."""

    def __init__(self, search: Search, examples: pa.Table) -> None:
        self.search, self.examples, self.has_left = search, examples, False
        self.found = SimpleQueue[_Found | BaseException | None]()


class Passes:
    """One pass at a time, each for the questions that waited for it and are searched in the same documents."""

    def __init__(self) -> None:
        self._thread, self._lock, self._waiting = ThreadPoolExecutor(1, "search"), Lock(), list[_Question]()

    def search(self, search: Search, examples: pa.Table) -> Iterator[_Found]:
        """Candidates of some queries as `search` finds them; questions with an equal `search` share a pass."""
        question = _Question(search, examples)
        with self._lock:
            self._waiting.append(question)
        self._thread.submit(self._next)
        try:
            while (found := question.found.get()) is not None:
                if isinstance(found, BaseException):
                    raise found
                yield found
        finally:
            question.has_left = True

    def close(self) -> None:
        """No more passes than those that questions wait for."""
        self._thread.shutdown(wait=False)

    def _next(self) -> None:
        """A pass for the first question that waits, and those that can share it."""
        with self._lock:
            waiting = [each for each in self._waiting if not each.has_left]
            together = [each for each in waiting if each.search == waiting[0].search][:_MOST]
            self._waiting = [each for each in waiting if each not in together]
        if together and not _searched(together):
            for each in together:  # the queries of one do not fit the store
                _searched([each])


def _searched(questions: list[_Question]) -> bool:
    """Search for all; False: it failed for several before anything was found, and one of them may be the cause."""
    began = False
    try:
        for unit, tables in questions[0].search(_numbered(questions)):
            began, found = True, list(tables)
            for number, each in enumerate(questions):
                each.found.put((unit, _own(found, number)))
            if all(each.has_left for each in questions):
                break
    except BaseException as error:
        if not began and len(questions) > 1:
            return False
        for each in questions:
            each.found.put(error)
    for each in questions:
        each.found.put(None)
    return True


def _numbered(questions: list[_Question]) -> pa.Table:
    """EXAMPLES of all, with the number of its question before the name of each query."""
    named = [
        each.examples.set_column(
            each.examples.column_names.index("query_id"),
            each.examples.schema.field("query_id"),
            pc.binary_join_element_wise(str(number), each.examples["query_id"], " "),
        )
        for number, each in enumerate(questions)
    ]
    return pa.concat_tables(named)


def _own(found: list[pa.Table], number: int) -> list[pa.Table]:
    """The candidates of one question, with the names of its queries."""
    own = []
    for table in found:
        mine = table.filter(pc.starts_with(table["query_id"], f"{number} "))
        names = pc.utf8_slice_codeunits(mine["query_id"].combine_chunks(), len(f"{number} ")).dictionary_encode()
        slots = pa.array([slot_of(name) for name in names.dictionary.to_pylist()], pa.int32())
        columns = {"slot": slots.take(names.indices), "query_id": names.dictionary_decode()}
        own.append(pa.table([columns.get(name, mine[name]) for name in mine.column_names], schema=mine.schema))
    return own
