"""The tables that describe a corpus in a paper, as of J. Tejedor et al. 2016: table 1 (recordings), 2 to 5 (queries), 6 (all).

Columns that nothing is known of are left out.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace

from swsdist.description.description import Description, DocumentGroup
from swsdist.description.query_statistics import Occurrences, Query
from swsdist.report.summary import NOTHING, fixed, short
from swsdist.report.tables import Table

#: Queries beside each other, as tables 2 to 5 have them.
_BESIDE = 3
#: More recordings than that are not printed.
_MOST = 30

_SNR = "SNR: peak speech to mean noise, as of NIST's stnr."

#: What a table shows of a group, by heading.
_CELLS: dict[str, Callable[[DocumentGroup], str]] = {
    "language": lambda one: one.language,
    "type of speech": lambda one: one.source_type,
    "part": lambda one: one.part,
    "documents": lambda one: str(one.documents),
    "recordings": lambda one: str(one.recordings),
    "h": lambda one: _hours(one.seconds),
    "h of speech": lambda one: _hours(one.speech),
    "min": lambda one: _minutes(one.seconds),
    "min of speech": lambda one: _minutes(one.speech),
    "SNR (dB)": lambda one: fixed(one.snr, 1),
    "speakers": lambda one: _count(one.speakers),
    "word occ.": lambda one: _whole(one.words),
    "words": lambda one: _whole(one.vocabulary),
    "unknown word occ.": lambda one: _whole(one.unknown_words),
}


def tables_of(*described: Description) -> list[Table]:
    """All tables of a corpus: corpus, recordings, speakers, queries, lengths; those that there is something to tell in.

    Of several corpora first one of all of them, then those of each, captions with its name.
    """
    if len(described) == 1:
        return _tables(described[0])
    each = [replace(table, caption=f"{one.name}: {table.caption}") for one in described for table in _tables(one)[1:]]
    return [corpora_table(described), *(corpus_table(one) for one in described if one.parts), *each]


def _tables(found: Description) -> list[Table]:
    made = [corpus_table(found), recordings_table(found)]
    if found.speakers:
        made.append(speakers_table(found))
    if found.queries is not None:
        made += [*query_tables(found), lengths_table(found.queries)]
    return made


def text_tables(*described: Description) -> list[Table]:
    """The same for a terminal: without a table of more recordings than one reads, and of several corpora those of all only."""
    if len(described) > 1:
        return [corpora_table(described), *(corpus_table(one) for one in described if one.parts)]
    tables = _tables(described[0])
    if len(described[0].recordings) > _MOST:
        tables.pop(1)
    return tables


def corpora_table(described: Sequence[Description]) -> Table:
    """A row a corpus (table 6)."""
    wholes = [one.total for one in described]
    counts = [_counts(one, one.total) for one in described]
    columns = [
        ("corpus", [one.name for one in described]),
        ("metric", [one.protocol for one in described]),
        *_columns(
            wholes, "language", "type of speech", "recordings", "h", "h of speech", "SNR (dB)", "speakers", "word occ."
        ),
        ("queries", [_by_part(one, 0) for one in described]),
        ("query occ.", [_by_part(one, 1) for one in described]),
    ]
    parts = list(dict.fromkeys(part.name for one in described if _told_by_part(one) for part in one.parts))
    notes = [f"Queries and occurrences: {'/'.join(parts)}, where a corpus has parts."] if parts else []
    notes += [_SNR] if any(one.listened for one in described) else []
    plain = [
        {"corpus": one.name, "protocol": one.protocol, **_counted(group, count)}
        for one, group, count in zip(described, wholes, counts, strict=True)
    ]
    return _table("Corpora", columns, " ".join(notes), plain)


def _by_part(found: Description, which: int) -> str:
    """A count of queries, by part if the corpus has some."""
    if not _told_by_part(found):
        return _whole(_counts(found, found.total)[which])
    return "/".join(_whole(_counts(found, part)[which]) for part in found.parts)


def _told_by_part(found: Description) -> bool:
    return bool(found.parts) and found.queries is not None and found.occurs


def corpus_table(found: Description) -> Table:
    """Parts of the corpus, and all of it: what there is, and how often queries occur (table 6)."""
    groups = [*found.parts, found.total] if found.parts else [found.total]
    counts = [_counts(found, group) for group in groups]
    columns = [
        ("", [one.name for one in groups]),
        *_columns(groups, "language", "type of speech", "documents", "recordings", "h", "h of speech", "SNR (dB)"),
        *_columns(groups, "speakers", "word occ.", "words", "unknown word occ."),
        ("queries", [_whole(queries) for queries, _, _ in counts]),
        ("query occ.", [_whole(occurrences) for _, occurrences, _ in counts]),
        ("unknown queries", [_whole(unknown) for _, _, unknown in counts]),
    ]
    notes = [f"Protocol {found.protocol}."]
    if _told_by_part(found):
        notes.append("Queries of a part are those that occur in it.")
    if found.listened:
        notes.append(_SNR)
    if found.total.unknown_words is not None:
        notes.append("Unknown: not said in the part for training.")
    elif found.total.words is not None:
        notes.append("There is no part for training, so no vocabulary that words could be unknown to.")
    plain = [_counted(group, count) for group, count in zip(groups, counts, strict=True)]
    return _table(f"Corpus {found.name}", columns, " ".join(notes), plain)


def recordings_table(found: Description) -> Table:
    """A row a recording, and its parts and all of it below (table 1)."""
    groups = [*found.recordings, *found.parts, found.total]
    names = [*(one.name for one in found.recordings), *[found.total.name] * (len(found.parts) + 1)]
    columns = [
        ("recording", names),
        *_columns(groups, "part", "word occ.", "min", "min of speech", "speakers", "SNR (dB)"),
    ]
    plain = [_plain(group) for group in found.recordings]
    return _table("Recordings", columns, _SNR if found.listened else "", plain)


def speakers_table(found: Description) -> Table:
    """A row a speaker."""
    groups = found.speakers
    columns = [
        ("speaker", [one.name for one in groups]),
        *_columns(groups, "part", "recordings", "word occ.", "min", "min of speech", "SNR (dB)"),
    ]
    note = _SNR if found.listened else ""
    return _table("Speakers", columns, note, [_plain(group) for group in groups])


def query_tables(found: Description) -> list[Table]:
    """Queries with their lengths and occurrences, three beside each other (tables 2 to 5); a table a part of the corpus.

    What a table tells of occurrences is of its part: how many, how long, and by whom; without parts it is of the whole corpus.
    """
    queries = found.queries or ()
    if not (found.parts and found.occurs):
        return [_queries("Queries", queries, [query.occurrences for query in queries], "in the whole corpus")]
    made = []
    for part in found.parts:
        mine = [query for query in queries if query.by_part.get(part.name)]
        said = [query.by_part[part.name] for query in mine]
        made.append(_queries(f"Queries, {part.name}", mine, said, f"in the part {part.name}"))
    if silent := [query for query in queries if not query.by_part]:
        rest = [query.occurrences for query in silent]
        made.append(_queries("Queries that occur in no part", silent, rest, "in the whole corpus"))
    return made


def _queries(caption: str, queries: Sequence[Query], occurring: Sequence[Occurrences | None], where: str) -> Table:
    cells = [
        f"{query.term or query.query_id} ({_milliseconds(query.seconds)})"
        + ("" if said is None else f"–({said.number})")
        for query, said in zip(queries, occurring, strict=True)
    ]
    height = -(-len(cells) // _BESIDE)
    rows = [[cells[k] if k < len(cells) else "" for k in range(row, _BESIDE * height, height)] for row in range(height)]
    told = any(said is not None for said in occurring)
    head = "query (ms)–(occ.)" if told else "query (ms)"
    plain: list[dict[str, object]] = [
        {
            "query_id": query.query_id,
            "term": query.term,
            "examples": query.examples,
            "seconds": query.seconds,
            "occurrences": None if said is None else said.number,
            "spoken": None if said is None else said.mean_seconds,
            "own_speaker": None if said is None else said.same_speaker,
            "unknown": query.unknown,
            **{f"occurrences_{part}": one.number for part, one in query.by_part.items()},
        }
        for query, said in zip(queries, occurring, strict=True)
    ]
    names = list(dict.fromkeys(name for row in plain for name in row))
    plain = [{name: row.get(name, 0) for name in names} for row in plain]
    note = "ms: mean length of a query's examples." + (f" occ.: occurrences {where}." if told else "")
    return Table(caption, [head] * _BESIDE, rows, note, texts=range(_BESIDE), plain=plain)


def lengths_table(queries: Sequence[Query]) -> Table:
    """How queries and their occurrences in the whole corpus are spread: least, median, mean, greatest."""
    said = [one.occurrences for one in queries if one.occurrences is not None]
    spread: list[tuple[str, list[float], int]] = [
        ("examples of a query", [one.examples for one in queries], 1),
        ("length of a query (ms)", [1000 * one.seconds for one in queries if one.seconds is not None], 0),
        ("occurrences of a query", [one.number for one in said], 1),
        (
            "length of its occurrences (ms)",
            [1000 * one.mean_seconds for one in said if one.mean_seconds is not None],
            0,
        ),
        ("of these by its own speaker", [one.same_speaker for one in said if one.same_speaker is not None], 1),
        ("letters of a query", [len("".join(one.term.split())) for one in queries if one.term], 1),
        ("words of a query", [len(one.term.split()) for one in queries if one.term], 1),
    ]
    rows, plain = [], []
    for name, values, digits in spread:
        if not values:
            continue
        median, mean = statistics.median(values), statistics.fmean(values)
        shown = [short(min(values), 6), fixed(median, digits), fixed(mean, digits), short(max(values), 6)]
        if digits == 0:
            shown[0], shown[3] = fixed(min(values), 0), fixed(max(values), 0)
        rows.append([name, str(len(values)), *shown, "" if digits == 0 else short(sum(values), 6)])
        plain.append(
            {
                "what": name,
                "queries": len(values),
                "least": min(values),
                "median": median,
                "mean": mean,
                "greatest": max(values),
                "sum": sum(values),
            }
        )
    columns = ["", "queries", "least", "median", "mean", "greatest", "sum"]
    note = "Occurrences in the whole corpus." if said else ""
    return Table("Lengths and occurrences", columns, rows, note, plain=plain)


def _counts(found: Description, group: DocumentGroup) -> tuple[int | None, int | None, int | None]:
    """Queries of a part that occur in it (of all: all), their occurrences, and how many have unknown words."""
    if found.queries is None:
        return None, None, None
    mine = found.queries
    occurrences = sum(one.occurrences.number for one in mine if one.occurrences is not None) if found.occurs else None
    if group is not found.total and found.occurs:
        mine = tuple(one for one in mine if one.by_part.get(group.name))
        occurrences = sum(one.by_part[group.name].number for one in mine)
    elif group is not found.total:
        return None, None, None
    unknown = [one.unknown for one in mine if one.unknown is not None]
    return len(mine), occurrences, sum(unknown) if unknown else None


def _columns(groups: Sequence[DocumentGroup], *headings: str) -> list[tuple[str, list[str]]]:
    """Headings of `_CELLS`, and below each a cell a group."""
    return [(heading, [_CELLS[heading](one) for one in groups]) for heading in headings]


def _table(
    caption: str, columns: Sequence[tuple[str, Sequence[str]]], note: str, plain: Sequence[dict[str, object]]
) -> Table:
    """A table without the columns that hold nothing."""
    kept = [(title, cells) for title, cells in columns if any(cell not in ("", NOTHING) for cell in cells)]
    names = ("", "corpus", "metric", "language", "type of speech", "recording", "speaker", "part")
    texts = [k for k, (title, _) in enumerate(kept) if title in names]
    cells = list(zip(*(cells for _, cells in kept), strict=True))
    return Table(caption, [title for title, _ in kept], cells, note, texts=texts, plain=plain)


def _counted(group: DocumentGroup, count: tuple[int | None, int | None, int | None]) -> dict[str, object]:
    return {**_plain(group), "queries": count[0], "query_occurrences": count[1], "unknown_queries": count[2]}


def _plain(group: DocumentGroup) -> dict[str, object]:
    speakers = group.speakers
    return {
        **asdict(group),
        "speakers": None if speakers is None else len(speakers),
    }


def _count(names: Sequence[str] | None) -> str:
    return NOTHING if names is None else str(len(names))


def _whole(value: int | None) -> str:
    return NOTHING if value is None else str(value)


def _hours(seconds: float | None) -> str:
    return NOTHING if seconds is None else fixed(seconds / 3600, 3)


def _minutes(seconds: float | None) -> str:
    return NOTHING if seconds is None else fixed(seconds / 60, 2)


def _milliseconds(seconds: float | None) -> str:
    return NOTHING if seconds is None else f"{1000 * seconds:.0f}"
