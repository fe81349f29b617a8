"""The tables that describe a corpus in a paper, as of J. Tejedor et al. 2016: table 1 (recordings), 2 to 5 (queries), 6 (all).

Columns without any value are omitted.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace

from swsdist.description.description import Description, DocumentGroup, Occurrences, Query
from swsdist.report.summary import NOTHING, fixed, short
from swsdist.report.tables import Table

#: Queries per row, as in tables 2 to 5.
_BESIDE = 3
#: Most recordings to print.
_MOST = 30

_SNR = "SNR: peak speech to mean noise, as of NIST's stnr."

#: Cells of a group, by heading.
_CELLS: dict[str, Callable[[DocumentGroup], str]] = {
    "language": lambda item: item.language,
    "type of speech": lambda item: item.source_type,
    "part": lambda item: item.part,
    "documents": lambda item: str(item.documents),
    "recordings": lambda item: str(item.recordings),
    "h": lambda item: _hours(item.seconds),
    "h of speech": lambda item: _hours(item.speech),
    "min": lambda item: _minutes(item.seconds),
    "min of speech": lambda item: _minutes(item.speech),
    "SNR (dB)": lambda item: fixed(item.snr, 1),
    "speakers": lambda item: _count(item.speakers),
    "word occ.": lambda item: _integer(item.words),
    "words": lambda item: _integer(item.vocabulary),
    "unknown word occ.": lambda item: _integer(item.unknown_words),
}


def tables_of(*described: Description) -> list[Table]:
    """All tables of a corpus: corpus, recordings, speakers, queries, lengths; without empty ones.

    For several corpora: one table of all, then those of each, with its name in captions.
    """
    if len(described) == 1:
        return _tables(described[0])
    entry = [
        replace(table, caption=f"{item.name}: {table.caption}") for item in described for table in _tables(item)[1:]
    ]
    return [corpora_table(described), *(corpus_table(item) for item in described if item.parts), *entry]


def _tables(description: Description) -> list[Table]:
    tables = [corpus_table(description), recordings_table(description)]
    if description.speakers:
        tables.append(speakers_table(description))
    if description.queries is not None:
        tables += [*query_tables(description), lengths_table(description.queries)]
    return tables


def text_tables(*described: Description) -> list[Table]:
    """The same for a terminal: without long tables of recordings, and for several corpora only the joint tables."""
    if len(described) > 1:
        return [corpora_table(described), *(corpus_table(item) for item in described if item.parts)]
    tables = _tables(described[0])
    if len(described[0].recordings) > _MOST:
        tables.pop(1)
    return tables


def corpora_table(described: Sequence[Description]) -> Table:
    """One row per corpus (table 6)."""
    wholes = [item.total for item in described]
    counts = [_counts(item, item.total) for item in described]
    columns = [
        ("corpus", [item.name for item in described]),
        ("metric", [item.protocol for item in described]),
        *_columns(
            wholes, "language", "type of speech", "recordings", "h", "h of speech", "SNR (dB)", "speakers", "word occ."
        ),
        ("queries", [_by_part(item, 0) for item in described]),
        ("query occ.", [_by_part(item, 1) for item in described]),
    ]
    parts = list(dict.fromkeys(part.name for item in described if _has_parts(item) for part in item.parts))
    notes = [f"Queries and occurrences: {'/'.join(parts)}, where a corpus has parts."] if parts else []
    notes += [_SNR] if any(item.listened for item in described) else []
    plain = [
        {"corpus": item.name, "protocol": item.protocol, **_counted(group, count)}
        for item, group, count in zip(described, wholes, counts, strict=True)
    ]
    return _table("Corpora", columns, " ".join(notes), plain)


def _by_part(description: Description, which: int) -> str:
    """A count of queries, by part if the corpus has parts."""
    if not _has_parts(description):
        return _integer(_counts(description, description.total)[which])
    return "/".join(_integer(_counts(description, part)[which]) for part in description.parts)


def _has_parts(description: Description) -> bool:
    return bool(description.parts) and description.queries is not None and description.occurs


def corpus_table(description: Description) -> Table:
    """Sizes and occurrences of queries of the parts and the whole corpus (table 6)."""
    groups = [*description.parts, description.total] if description.parts else [description.total]
    counts = [_counts(description, group) for group in groups]
    columns = [
        ("", [group.name for group in groups]),
        *_columns(groups, "language", "type of speech", "documents", "recordings", "h", "h of speech", "SNR (dB)"),
        *_columns(groups, "speakers", "word occ.", "words", "unknown word occ."),
        ("queries", [_integer(queries) for queries, _, _ in counts]),
        ("query occ.", [_integer(occurrences) for _, occurrences, _ in counts]),
        ("unknown queries", [_integer(unknown) for _, _, unknown in counts]),
    ]
    notes = [f"Protocol {description.protocol}."]
    if _has_parts(description):
        notes.append("Queries of a part are those that occur in it.")
    if description.listened:
        notes.append(_SNR)
    if description.total.unknown_words is not None:
        notes.append("Unknown: not said in the part for training.")
    elif description.total.words is not None:
        notes.append("There is no part for training, so no vocabulary that words could be unknown to.")
    plain = [_counted(group, count) for group, count in zip(groups, counts, strict=True)]
    return _table(f"Corpus {description.name}", columns, " ".join(notes), plain)


def recordings_table(description: Description) -> Table:
    """One row per recording, then the parts and the whole corpus (table 1)."""
    groups = [*description.recordings, *description.parts, description.total]
    names = [
        *(recording.name for recording in description.recordings),
        *[description.total.name] * (len(description.parts) + 1),
    ]
    columns = [
        ("recording", names),
        *_columns(groups, "part", "word occ.", "min", "min of speech", "speakers", "SNR (dB)"),
    ]
    plain = [_plain(group) for group in description.recordings]
    return _table("Recordings", columns, _SNR if description.listened else "", plain)


def speakers_table(description: Description) -> Table:
    """One row per speaker."""
    groups = description.speakers
    columns = [
        ("speaker", [group.name for group in groups]),
        *_columns(groups, "part", "recordings", "word occ.", "min", "min of speech", "SNR (dB)"),
    ]
    note = _SNR if description.listened else ""
    return _table("Speakers", columns, note, [_plain(group) for group in groups])


def query_tables(description: Description) -> list[Table]:
    """Queries with lengths and occurrences, three per row (tables 2 to 5); one table per part of the corpus.

    Occurrences are those in the table's part, or in the whole corpus without parts.
    """
    queries = description.queries or ()
    if not (description.parts and description.occurs):
        return [_queries("Queries", queries, [query.occurrences for query in queries], "in the whole corpus")]
    tables = []
    for part in description.parts:
        selected = [query for query in queries if query.by_part.get(part.name)]
        occurrences = [query.by_part[part.name] for query in selected]
        tables.append(_queries(f"Queries, {part.name}", selected, occurrences, f"in the part {part.name}"))
    if silent := [query for query in queries if not query.by_part]:
        rest = [query.occurrences for query in silent]
        tables.append(_queries("Queries that occur in no part", silent, rest, "in the whole corpus"))
    return tables


def _queries(caption: str, queries: Sequence[Query], occurring: Sequence[Occurrences | None], where: str) -> Table:
    cells = [
        f"{query.term or query.query_id} ({_milliseconds(query.seconds)})"
        + ("" if occurrences is None else f"–({occurrences.number})")
        for query, occurrences in zip(queries, occurring, strict=True)
    ]
    height = -(-len(cells) // _BESIDE)
    rows = [[cells[k] if k < len(cells) else "" for k in range(row, _BESIDE * height, height)] for row in range(height)]
    has_occurrences = any(occurrences is not None for occurrences in occurring)
    head = "query (ms)–(occ.)" if has_occurrences else "query (ms)"
    plain: list[dict[str, object]] = [
        {
            "query_id": query.query_id,
            "term": query.term,
            "examples": query.examples,
            "seconds": query.seconds,
            "occurrences": None if occurrences is None else occurrences.number,
            "spoken": None if occurrences is None else occurrences.mean_seconds,
            "own_speaker": None if occurrences is None else occurrences.same_speaker,
            "unknown": query.unknown,
            **{f"occurrences_{part}": item.number for part, item in query.by_part.items()},
        }
        for query, occurrences in zip(queries, occurring, strict=True)
    ]
    names = list(dict.fromkeys(name for row in plain for name in row))
    plain = [{name: row.get(name, 0) for name in names} for row in plain]
    note = "ms: mean length of a query's examples." + (f" occ.: occurrences {where}." if has_occurrences else "")
    return Table(caption, [head] * _BESIDE, rows, note, texts=range(_BESIDE), plain=plain)


def lengths_table(queries: Sequence[Query]) -> Table:
    """Distributions of queries and their occurrences in the whole corpus: least, median, mean, greatest."""
    occurrences = [query.occurrences for query in queries if query.occurrences is not None]
    spread: list[tuple[str, list[float], int]] = [
        ("examples of a query", [query.examples for query in queries], 1),
        ("length of a query (ms)", [1000 * query.seconds for query in queries if query.seconds is not None], 0),
        ("occurrences of a query", [item.number for item in occurrences], 1),
        (
            "length of its occurrences (ms)",
            [1000 * item.mean_seconds for item in occurrences if item.mean_seconds is not None],
            0,
        ),
        (
            "of these by its own speaker",
            [item.same_speaker for item in occurrences if item.same_speaker is not None],
            1,
        ),
        ("letters of a query", [len("".join(query.term.split())) for query in queries if query.term], 1),
        ("words of a query", [len(query.term.split()) for query in queries if query.term], 1),
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
    note = "Occurrences in the whole corpus." if occurrences else ""
    return Table("Lengths and occurrences", columns, rows, note, plain=plain)


def _counts(description: Description, group: DocumentGroup) -> tuple[int | None, int | None, int | None]:
    """Numbers of queries that occur in a part (for the whole: all), of their occurrences, and of queries with unknown words."""
    if description.queries is None:
        return None, None, None
    selected = description.queries
    occurrences = (
        sum(item.occurrences.number for item in selected if item.occurrences is not None)
        if description.occurs
        else None
    )
    if group is not description.total and description.occurs:
        selected = tuple(item for item in selected if item.by_part.get(group.name))
        occurrences = sum(item.by_part[group.name].number for item in selected)
    elif group is not description.total:
        return None, None, None
    unknown = [item.unknown for item in selected if item.unknown is not None]
    return len(selected), occurrences, sum(unknown) if unknown else None


def _columns(groups: Sequence[DocumentGroup], *headings: str) -> list[tuple[str, list[str]]]:
    """Headings of `_CELLS`, and below each a cell a group."""
    return [(heading, [_CELLS[heading](group) for group in groups]) for heading in headings]


def _table(
    caption: str, columns: Sequence[tuple[str, Sequence[str]]], note: str, plain: Sequence[dict[str, object]]
) -> Table:
    """A table without empty columns."""
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


def _integer(value: int | None) -> str:
    return NOTHING if value is None else str(value)


def _hours(seconds: float | None) -> str:
    return NOTHING if seconds is None else fixed(seconds / 3600, 3)


def _minutes(seconds: float | None) -> str:
    return NOTHING if seconds is None else fixed(seconds / 60, 2)


def _milliseconds(seconds: float | None) -> str:
    return NOTHING if seconds is None else f"{1000 * seconds:.0f}"
