r"""HTK's standard lattice format (SLF), and the formats of pocketsphinx: a lattice a file.

**HTK.** A lattice's key is UTTERANCE, or the file's name without suffix. Words are on links, or on nodes: then a word
belongs to the links that end at its node (that of the start to none). `!NULL`, or no word, is label 0; other words,
also `!ENTER` or `<s>`, are labels. HTK writes bytes that it cannot print as `\ooo`; together they are UTF-8.

The scales of the header are applied: the log score of a link is (acscale * a + lmscale * l + ngscale * n + prscale * r
+ wdpenalty) / lmscale, the first term acoustic and the others graph, so that an acoustic scale of 1 is the file's own.
Links without a word pay no wdpenalty. lmscale 0 does not divide. Logs are to the base of the header (wdpenalty, too);
base 0: a, l, n and r are probabilities. Times are in seconds, and become multiples of 10 ms. Sub-lattices are refused.

**pocketsphinx** writes its own format (`Lattice.write`) and SLF (`Lattice.write_htk`). A lattice's key is the file's
name without suffix. In both formats a node is a word that begins at the node's time, and its links lead to the words
that may follow: the word lasts until the next begins. The word of the end has a state of its own after it. Variants of
pronunciation (`and(2)`) are the word.

- SLF: no scores of the language model are in it, but posteriors of links, p. They are a flow, so the probability of a
  link after its node is its p divided by the sum of those that leave the node. Costs are of these probabilities: no
  scale applies. `!NULL`, `!SENT_START` and `!SENT_END` are fillers, label 0. Times are in seconds; the word of the end
  has no length.
- Own format: acoustic scores only, logs to a base that a comment names. Fillers (`<s>`, `</s>`, `<sil>`, `[NOISE]`) are
  labels. Times are frames of `Origin.frame`; the utterance's length is given.

Sources: The HTK Book, chapter "Lattice and Network Formats"; SRILM, which writes n and ngscale; pocketsphinx's
documentation of lattices, and files that it wrote.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from swsdist.core.arrays import Floats, Ints
from swsdist.core.codes import families
from swsdist.core.codes import lattices as codes
from swsdist.core.errors import DataError
from swsdist.core.fingerprint import unique
from swsdist.io.compressed import lines, short
from swsdist.io.fields import integer, number, split, time
from swsdist.lattices.lattice import (
    Lattice,
    Lattices,
    Origin,
    demand_costs,
    demand_forward,
    log_cost,
    numbered,
    single,
    stem,
)

#: What a line is, for messages.
_FIELDS = "NAME=VALUE fields: of the header, a node (I=) or a link (J=, S=, E=)"
_SPHINX = "a row of N nodes, E edges or their lists, as pocketsphinx writes them"

#: Seconds per tick.
TICK = 0.01

#: The word that is none.
NULL = "!NULL"

_FIELD = re.compile(r'([^\s="]+)(?:=("(?:[^"\\]|\\.)*"|\S*)|\s+("(?:[^"\\]|\\.)*"|[^\s=]+(?!\S)))\s*')
_ESCAPE = re.compile(r"((?:\\[0-3][0-7]{2})+)|\\(.)")
#: Short names of fields by their long ones.
_SHORT = {
    "NODES": "N",
    "LINKS": "L",
    "START": "S",
    "END": "E",
    "WORD": "W",
    "time": "t",
    "acoustic": "a",
    "language": "l",
}
_HEAD = re.compile(
    rb"(?:\s*#[^\n]*\n)*\s*VERSION[= \t]|(?:.*\n)?[ \t]*(?:N|NODES)=[0-9]+[ \t]+(?:L|LINKS)=[0-9]", re.DOTALL
)

Fields = dict[str, str]


class Slf(NamedTuple):
    """A file: header, and of each node and link its fields and line, in the order of the file.

    Attributes:
        header: fields.
        times: of the nodes, by number, in ticks.
        words: of the nodes; empty: none.
        source, target: nodes of the links.
        links: fields of the links, each with the place of its line.
        start, end: nodes; -1: there are none.
    """

    header: Fields
    times: Ints
    words: list[str]
    source: Ints
    target: Ints
    links: list[tuple[Fields, str]]
    start: int
    end: int

    def column(self, name: str, default: float) -> Floats:
        """A number of each link."""
        values = [number(link[name], name, where) if name in link else default for link, where in self.links]
        return np.array(values, np.float64)


def detect(name: str, head: bytes) -> bool:
    """Whether it has the version of a header, or its counts."""
    return bool(_HEAD.match(head))


def read(origin: Origin) -> Lattices:
    """The lattice of a file.

    Raises:
        UserError: there is no such file.
    """
    return single(origin, _lattice)


def _lattice(origin: Origin) -> Lattice:
    slf = parse(origin)
    where = origin.path
    scale = {name: _scale(slf.header, name, where) for name in ("acscale", "lmscale", "ngscale", "prscale")}
    words = [link.get("W", slf.words[target]) for (link, _), target in zip(slf.links, slf.target, strict=True)]
    label, labels = numbered("" if word == NULL else word for word in words)
    base = number(slf.header.get("base", repr(math.e)), "base", where)
    if base < 0 or base == 1:
        raise codes.MALFORMED_LINE(form=_FIELDS, where=where, fault=f"has the base {base}")
    unit = math.log(base) if base else 1.0
    cost = {name: _log_costs(slf, name, base) for name in ("a", "l", "n", "r")}
    penalty = number(slf.header.get("wdpenalty", "0"), "wdpenalty", where) * unit
    divisor = scale["lmscale"] or 1.0
    final = np.full(len(slf.times), np.inf)
    final[slf.end :][:1] = 0.0
    # A scale of 0 must not make infinity a number.
    weighted = {
        name: np.where(np.isinf(cost[name]), np.inf, scale[of] * np.where(np.isinf(cost[name]), 0.0, cost[name]))
        for name, of in (("a", "acscale"), ("l", "lmscale"), ("n", "ngscale"), ("r", "prscale"))
    }
    graph = (weighted["l"] + weighted["n"] + weighted["r"] - penalty * (label > 0)) / divisor
    acoustic = weighted["a"] / divisor
    demand_costs(where, graph, acoustic)
    demand_forward(where, slf.times, slf.source, slf.target)
    return Lattice(
        slf.header.get("UTTERANCE") or stem(origin.path),
        TICK,
        slf.times,
        slf.source,
        slf.target,
        label,
        graph,
        acoustic,
        final,
        final.copy(),
        labels,
        slf.start,
        int(slf.times.max(initial=0)),
    )


def _scale(header: Mapping[str, str], name: str, where: str) -> float:
    value = number(header.get(name, "1"), name, where)
    if value < 0:
        raise codes.MALFORMED_LINE(form=_FIELDS, where=where, fault=f"has a negative {name}")
    return value


def _log_costs(slf: Slf, name: str, base: float) -> Floats:
    """Costs of a kind, in natural logs."""
    if base:
        return -slf.column(name, 0.0) * math.log(base) + 0.0
    chances = slf.column(name, 1.0)
    for (_, where), chance in zip(slf.links, chances, strict=True):
        if chance < 0:
            raise codes.MALFORMED_LINE(form=_FIELDS, where=where, fault=f"has a negative probability {name}")
    return log_cost(chances)


def parse(origin: Origin) -> Slf:
    """A file's content, checked.

    Raises:
        DataError: a line is malformed, the counts are not the header's, or there are sub-lattices.
    """
    header: Fields = {}
    nodes: dict[int, tuple[Fields, str]] = {}
    links: list[tuple[Fields, str]] = []
    for line_number, line in lines(origin.path, origin.storage):
        where = f"{origin.path}, line {line_number}"
        if line.lstrip().startswith("#") or not line.strip():
            continue
        if line.strip() == ".":
            raise codes.SUBLATTICE(where=where)
        fields = unique(_fields(line, where), partial(_twice, where))
        if "I" in fields:
            node = integer(fields["I"], "I", where)
            if node in nodes:
                raise codes.MALFORMED_LINE(form=_FIELDS, where=where, fault=f"is a second node {node}")
            if "L" in fields:
                raise codes.SUBLATTICE(where=where)
            nodes[node] = fields, where
        elif "J" in fields:
            links.append((fields, where))
        elif "SUBLAT" in fields:
            raise codes.SUBLATTICE(where=where)
        else:
            header = unique((*header.items(), *fields.items()), partial(_twice, where))
    if not {"N", "L"} <= header.keys():
        raise families.DAMAGED_LATTICE(
            "there is no line N= L= in the header", "write, or copy, it again", where=origin.path
        )
    for kind, name, count in (("nodes", "N", len(nodes)), ("links", "L", len(links))):
        expected = integer(header[name], name, origin.path)
        if expected != count:
            raise families.DAMAGED_LATTICE(
                "the header says {expected} {kind}, and there are {count}",
                "the file is cut off, or not what its header says: write, or copy, it again",
                where=origin.path,
                expected=expected,
                kind=kind,
                count=count,
            )
    for node, (_, where) in nodes.items():
        if node >= len(nodes):
            raise codes.MALFORMED_LINE(form=_FIELDS, where=where, fault=f"is node {node} of {len(nodes)}")
    ordered = [nodes[node] for node in range(len(nodes))]
    source, target = (_ends(links, name, len(nodes)) for name in ("S", "E"))
    return Slf(
        header,
        np.array([_ticks(fields, where) for fields, where in ordered], np.int64),
        [fields.get("W", "") for fields, _ in ordered],
        source,
        target,
        links,
        _terminal(header, "start", target, len(nodes), origin.path),
        _terminal(header, "end", source, len(nodes), origin.path),
    )


def _twice(where: str, name: str) -> DataError:
    return codes.MALFORMED_LINE(form=_FIELDS, where=where, fault=f"gives {name} twice")


def _fields(line: str, where: str) -> Iterator[tuple[str, str]]:
    """Short names and values of a line's fields."""
    line = line.strip()
    at = 0
    while at < len(line):
        field = _FIELD.match(line, at)
        if field is None:
            raise codes.MALFORMED_LINE(form=_FIELDS, where=where, fault="is not NAME=VALUE")
        at = field.end()
        value = field[2] if field[2] is not None else field[3]
        if "\\" in value or value.startswith('"'):
            bare = value[1:-1] if len(value) > 1 and value.startswith('"') and value.endswith('"') else value
            try:
                value = _ESCAPE.sub(_unescaped, bare)
            except UnicodeDecodeError:
                raise codes.MALFORMED_LINE(
                    form=_FIELDS, where=where, fault=f"has bytes that are not UTF-8: {short(bare)}"
                ) from None
        yield _SHORT.get(field[1], field[1]), value


def _unescaped(escape: re.Match[str]) -> str:
    """What an escape stands for: three octal digits are a byte, and a character may have several."""
    return bytes(int(digits, 8) for digits in escape[1].split("\\")[1:]).decode() if escape[1] else escape[2]


def _ends(links: list[tuple[Fields, str]], name: str, nodes: int) -> Ints:
    """The node at one side of each link."""
    result = np.empty(len(links), np.int64)
    for k, (fields, where) in enumerate(links):
        if name not in fields:
            raise codes.MALFORMED_LINE(form=_FIELDS, where=where, fault=f"has no {name}=")
        result[k] = integer(fields[name], name, where)
        if result[k] >= nodes:
            raise codes.MALFORMED_LINE(form=_FIELDS, where=where, fault=f"names node {result[k]} of {nodes}")
    return result


def _ticks(fields: Fields, where: str) -> int:
    if "t" not in fields:
        raise families.MISSING_TIMES(
            "node {node} has no time",
            "write the lattice with times of nodes (HTK: -q with t)",
            where=where,
            node=fields["I"],
        )
    return round(time(fields["t"], "t", where) / TICK)


def _terminal(header: Mapping[str, str], name: str, others: Ints, nodes: int, where: str) -> int:
    """The start or the end: named, or the node without links."""
    if not nodes:
        return -1
    if name in header:
        node = integer(header[name], name, where)
        if node >= nodes:
            raise codes.MALFORMED_LINE(form=_FIELDS, where=where, fault=f"{name}={node} names a node of {nodes}")
        return node
    alone = np.setdiff1d(np.arange(nodes), others)
    if len(alone) != 1:
        direction = "into them" if name == "start" else "out of them"
        raise families.DAMAGED_LATTICE(
            "{count} nodes have no link {direction}, and the header has no {name}=",
            "add {name}=NODE to the header",
            where=where,
            count=len(alone),
            direction=direction,
            name=name,
        )
    return int(alone[0])


_SLF_HEAD = b"# Lattice generated by PocketSphinx"
_PLAIN_HEAD = re.compile(rb"(?:#[^\n]*\n)*Frames [0-9]+\s*\n(?:#[^\n]*\n)*Nodes [0-9]+")
_FILLERS = (NULL, "!SENT_START", "!SENT_END", "")
_VARIANT = re.compile(r"\([0-9]+\)$")
_BASE = re.compile(r"#\s*-logbase\s+(\S+)")
_DEFAULT_BASE = 1.0001
#: Greatest difference of the flow from 1: p has 6 digits, sums of many are off by 4e-4.
_SLACK = 0.01


def is_pocketsphinx(name: str, head: bytes) -> bool:
    """Whether it is one of the two formats."""
    return head.startswith(_SLF_HEAD) or bool(_PLAIN_HEAD.match(head))


def read_pocketsphinx(origin: Origin) -> Lattices:
    """The lattice of a file.

    Raises:
        UserError: there is no such file.
    """
    return single(origin, _pocketsphinx_lattice)


def _pocketsphinx_lattice(origin: Origin) -> Lattice:
    _, first = next(lines(origin.path, origin.storage), (0, ""))
    return _slf(origin) if first.encode().startswith(_SLF_HEAD) else _plain(origin)


def _slf(origin: Origin) -> Lattice:
    slf = parse(origin)
    p = slf.column("p", math.nan)
    for (_, where), value in zip(slf.links, p, strict=True):
        if not 0 <= value <= 1 + _SLACK:
            raise codes.MALFORMED_LINE(form=_SPHINX, where=where, fault="has no posterior p from 0 to 1")
    leaving = np.bincount(slf.source, p, minlength=len(slf.times))
    if slf.start != slf.end and abs(leaving[slf.start] - 1) > _SLACK:
        raise families.DAMAGED_LATTICE(
            "the posteriors of the links that leave the start add up to {total:.3g}, not 1",
            "call get_prob() before write_htk(): it computes them",
            where=origin.path,
            total=float(leaving[slf.start]),
        )
    chance = np.divide(p, leaving[slf.source], out=np.zeros(len(p)), where=p > 0)
    words = ["" if word in _FILLERS else word for word in slf.words]
    nodes = _Nodes(slf.times, words, slf.start, slf.end, int(slf.times.max(initial=0)))
    graph, acoustic = log_cost(chance), np.zeros(len(p))
    result = _lattice_of(nodes, slf.source, slf.target, graph, acoustic, origin.path, TICK)
    return replace(result, probabilities=True)


def _plain(origin: Origin) -> Lattice:
    rows = _Rows(origin)
    frames, count = (integer(rows.section(name, 2)[1], name, rows.where) for name in ("Frames", "Nodes"))
    word_and_start: dict[int, tuple[str, int]] = {}
    for _ in range(count):
        fields = rows.next()
        if len(fields) < 5:
            raise rows.fault("is not ID WORD START FIRST-END LAST-END")
        node, begin = rows.node(fields[0], count), integer(fields[2], "start", rows.where)
        if node in word_and_start:
            raise rows.fault(f"is a second node {node}")
        if begin > frames:
            raise rows.fault("begins after the last frame")
        word_and_start[node] = fields[1], begin
    start, end = (rows.node(rows.section(name, 2)[1], count) for name in ("Initial", "Final"))
    rows.section("BestSegAscr", 1)
    rows.section("Edges", 1)
    links: list[tuple[int, int]] = []
    scores: list[float] = []
    while (fields := rows.next()) != ["End"]:
        if len(fields) != 3:
            raise rows.fault("is not FROM TO SCORE")
        links.append((rows.node(fields[0], count), rows.node(fields[1], count)))
        scores.append(number(fields[2], "score", rows.where))
    source, target = np.array(links, np.int64).reshape(-1, 2).T
    acoustic = -np.array(scores, np.float64) * math.log(rows.base) + 0.0
    demand_costs(origin.path, acoustic)
    words, times = zip(*(word_and_start[node] for node in range(count)), strict=True) if count else ((), ())
    nodes = _Nodes(np.array(times, np.int64), words, start, end, frames)
    return _lattice_of(nodes, source, target, np.zeros(len(links)), acoustic, origin.path, origin.frame)


class _Nodes(NamedTuple):
    """Nodes: their times and words, which of them are the start and the end, and when the end's word ends."""

    times: Ints
    words: Sequence[str]
    start: int
    end: int
    length: int


def _lattice_of(
    nodes: _Nodes, source: Ints, target: Ints, graph: Floats, acoustic: Floats, path: str, tick: float
) -> Lattice:
    """The lattice of nodes that are words; its last arc is the word of the end."""
    states = len(nodes.times)
    label, labels = numbered(_VARIANT.sub("", word) for word in nodes.words)
    if states:
        source, target = np.append(source, nodes.end), np.append(target, states)
        graph, acoustic = np.append(graph, 0.0), np.append(acoustic, 0.0)
    times = np.append(nodes.times, [nodes.length] * bool(states)).astype(np.int64)
    demand_forward(path, times, source, target)
    final = np.full(len(times), np.inf)
    final[states:] = 0.0
    return Lattice(
        stem(path),
        tick,
        times,
        source,
        target,
        label[source],
        graph,
        acoustic,
        final,
        final.copy(),
        labels,
        nodes.start,
        nodes.length,
    )


class _Rows:
    """Fields of the lines that are no comments.

    Attributes:
        where: place of the last.
        base: of logs, from the comments until now.
    """

    def __init__(self, origin: Origin) -> None:
        self._lines = lines(origin.path, origin.storage)
        self._path = origin.path
        self.where = origin.path
        self.base = _DEFAULT_BASE

    def next(self) -> list[str]:
        """Fields of the next line.

        Raises:
            DataError: the file ends.
        """
        for line_number, line in self._lines:
            self.where = f"{self._path}, line {line_number}"
            if base := _BASE.match(line):
                self.base = number(base[1], "logbase", self.where)
                if self.base <= 1:
                    raise self.fault(f"has the base {base[1]}")
            if (fields := split(line)) and not line.startswith("#"):
                return fields
        raise codes.LATTICE_CUT_OFF(where=self._path)

    def section(self, name: str, count: int) -> list[str]:
        """Fields of the next line, which begins with a name and has at least so many."""
        fields = self.next()
        if fields[0] != name or len(fields) < count:
            raise self.fault(f"does not begin with {name}")
        return fields

    def node(self, text: str, nodes: int) -> int:
        """A number of one of the nodes."""
        node = integer(text, "node", self.where)
        if node >= nodes:
            raise self.fault(f"names node {node} of {nodes}")
        return node

    def fault(self, fault: str) -> DataError:
        """The error that the last line has a fault."""
        return codes.MALFORMED_LINE(form=_SPHINX, where=self.where, fault=fault)
