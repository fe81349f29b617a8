"""Searches of several threads that share passes over a store.

A pass reads and packs the documents once for all its queries, so ten questions at once cost three to four times as much as
one. While a pass goes on, further questions wait; the next pass is for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from queue import SimpleQueue
from threading import Condition, Thread

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.core.codes import searcher as codes
from swsdist.core.fingerprint import slot_of
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
    """One pass at a time, each for the questions that waited for it and are searched in the same documents.

    Args:
        where: the store's path, for errors.
    """

    def __init__(self, where: str) -> None:
        self._where, self._waiting = where, list[_Question]()
        self._change, self._is_closed, self._thread = Condition(), False, Thread(target=self._passes, daemon=True)

    def search(self, search: Search, examples: pa.Table) -> Iterator[_Found]:
        """Candidates of some queries as `search` finds them; questions with an equal `search` share a pass.

        Raises:
            UserError: closed, before or meanwhile.
        """
        question = _Question(search, examples)
        with self._change:
            if self._is_closed:
                raise codes.CLOSED_SEARCHER(where=self._where)
            if not self._thread.ident:
                self._thread.start()
            self._waiting.append(question)
            self._change.notify()
        try:
            while (found := question.found.get()) is not None:
                if isinstance(found, BaseException):
                    raise found
                yield found
        finally:
            question.has_left = True

    def close(self) -> None:
        """No pass more; the one that goes on ends with its unit."""
        with self._change:
            self._is_closed = True
            self._refuse(self._waiting)
            self._waiting = []
            self._change.notify()

    def _refuse(self, questions: list[_Question]) -> None:
        for each in questions:
            each.found.put(codes.CLOSED_SEARCHER(where=self._where))

    def _passes(self) -> None:
        while together := self._next():
            if not self._searched(together):
                for each in together:  # the queries of one do not fit the store
                    self._searched([each])

    def _next(self) -> list[_Question]:
        """The first question that waits, and those that can share its pass; none: closed."""
        with self._change:
            while not self._is_closed:
                waiting = [each for each in self._waiting if not each.has_left]
                together = [each for each in waiting if each.search == waiting[0].search][:_MOST]
                self._waiting = [each for each in waiting if each not in together]
                if together:
                    return together
                self._change.wait()
        return []

    def _searched(self, questions: list[_Question]) -> bool:
        """Search for all; False: it failed for several before anything was found, and one of them may be the cause."""
        began = False
        try:
            for unit, tables in questions[0].search(_numbered(questions)):
                began, found = True, list(tables)
                for number, each in enumerate(questions):
                    each.found.put((unit, _candidates_of(found, number)))
                if self._is_closed:
                    self._refuse(questions)
                if self._is_closed or all(each.has_left for each in questions):
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


def _candidates_of(found: list[pa.Table], number: int) -> list[pa.Table]:
    """The candidates of one question, with the names of its queries."""
    own = []
    for table in found:
        mine = table.filter(pc.starts_with(table["query_id"], f"{number} "))
        names = pc.utf8_slice_codeunits(mine["query_id"].combine_chunks(), len(f"{number} ")).dictionary_encode()
        slots = pa.array([slot_of(name) for name in names.dictionary.to_pylist()], pa.int32())
        columns = {"slot": slots.take(names.indices), "query_id": names.dictionary_decode()}
        own.append(pa.table([columns.get(name, mine[name]) for name in mine.column_names], schema=mine.schema))
    return own
