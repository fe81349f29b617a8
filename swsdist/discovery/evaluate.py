"""Score files of term discovery, for the command and `swsdist.score_discovery`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np

from swsdist.core.arrays import Ints
from swsdist.core.codes import discovery as codes
from swsdist.core.codes import families
from swsdist.core.errors import DataError
from swsdist.discovery.files import read_classes, read_folds, read_list, read_split, read_talkers, read_units
from swsdist.discovery.measures import equal_parts
from swsdist.discovery.units import Corpus, EvaluationSetup, Fragments, Given, Intervals
from swsdist.io.notices import Notices
from swsdist.registry.registries import DISCOVERY_MEASURES, DISCOVERY_MODES

S = TypeVar("S", bound=Intervals)


class Files(NamedTuple):
    """Paths of the files of an evaluation, local or `s3://`, plain or packed.

    Attributes:
        fragments: classes, pairs, or a parse.
        phones: file or folder (`swsdist.discovery.files`).
        words: likewise; None: not given, so type, token and boundary are undefined.
        talkers: a line `DOC TALKER` a document.
        folds: sets of folds by name.
        split: stretches of speech, if the mode needs them.
        gold_classes: classes of equal phone strings, if the mode needs them.
        phone_tiers: names of the phones' tiers in TextGrid or ELAN; empty: all that hold intervals.
        word_tiers: of the words'.
    """

    fragments: str
    phones: str
    words: str | None = None
    talkers: str | None = None
    folds: Mapping[str, str] = {}
    split: str | None = None
    gold_classes: str | None = None
    phone_tiers: tuple[str, ...] = ()
    word_tiers: tuple[str, ...] = ()


class Evaluation(NamedTuple):
    """The arguments of a mode (`swsdist.registry.entries.DiscoveryModeEntry`)."""

    corpus: Corpus
    fragments: Fragments
    setup: EvaluationSetup


def read_evaluation(
    files: Files,
    mode: str,
    notices: Notices,
    *,
    given: Given = "classes",
    has_folds: bool = False,
    storage: Mapping[str, object] | None = None,
) -> Evaluation:
    """Read the files of an evaluation.

    Args:
        files: their paths.
        mode: of `DISCOVERY_MODES`.
        notices: receives oddities.
        given: what `files.fragments` is.
        has_folds: folds will be made of the corpus.
        storage: options for s3fs.

    Raises:
        UserError: there is no such file, or none that the mode needs.
        DataError: a file is not valid, or the files do not fit.
    """
    rules, numbers = DISCOVERY_MODES[mode], dict[str, int]()
    if given != "classes" and not rules.partial:
        raise families.UNSUPPORTED(
            "mode {mode} scores classes, and neither pairs nor a parse", "use mode seed", mode=mode
        )
    for need in rules.needs:
        if not getattr(files, need) and not (need == "folds" and has_folds):
            option = f"--{need.replace('_', '-')}"
            raise families.MISSING_INPUT(
                "mode {mode} needs {what}", "give {option}", mode=mode, what=need.replace("_", " "), option=option
            )
    phones = read_units(files.phones, numbers, storage, tiers=files.phone_tiers)
    words = read_units(files.words, numbers, storage, tiers=files.word_tiers) if files.words else None
    fragments = (
        read_classes(files.fragments, numbers, storage, instants=rules.instants)
        if given == "classes"
        else read_list(files.fragments, given, numbers, storage)
    )
    gold = read_classes(files.gold_classes, numbers, storage, instants=rules.instants) if files.gold_classes else None
    split = read_split(files.split, numbers, storage) if files.split else None
    folds = {name: read_folds(path, numbers, storage) for name, path in files.folds.items()}
    talkers = read_talkers(files.talkers, storage) if files.talkers else None

    documents, order = by_name(numbers)
    phones, fragments = by_time(numbered(phones, order)), numbered(fragments, order)
    corpus = Corpus(
        documents,
        phones,
        words and by_time(numbered(words, order)),
        _talker(talkers, documents, phones, files.talkers) if talkers is not None else None,
    )
    if not len(fragments):
        notices.add(codes.FOUND_NOTHING, where=files.fragments, count=1)
    _demand_known(corpus, fragments, mode, files.fragments, notices)
    setup = EvaluationSetup(
        {name: tuple(numbered(fold, order) for fold in some) for name, some in folds.items()},
        split and numbered(split, order),
        gold and numbered(gold, order),
        given,
    )
    return Evaluation(corpus, fragments, setup)


def by_name(numbers: Mapping[str, int]) -> tuple[tuple[str, ...], Ints]:
    """Names in order, and the place in it of each number."""
    documents = tuple(sorted(numbers))
    order = np.empty(len(documents), np.int64)
    order[[numbers[name] for name in documents]] = np.arange(len(documents))
    return documents, order


def numbered(intervals: S, order: Ints) -> S:
    """The same intervals, with documents renumbered by `order`."""
    return replace(intervals, document=order[intervals.document])


def by_time(units: S) -> S:
    """The same units, in the order of documents and times."""
    return units.take(np.lexsort((units.onset, units.document)))


def _talker(talkers: Mapping[str, str], documents: tuple[str, ...], phones: Intervals, path: str | None) -> Ints:
    names = {name: k for k, name in enumerate(sorted(set(talkers.values())))}
    talker = np.array([names.get(talkers.get(document, ""), -1) for document in documents], np.int64)
    missing = np.flatnonzero(talker[phones.document] < 0)
    if len(missing):
        document = documents[phones.document[missing[0]]]
        raise families.MISSING_INPUT.of(DataError)(
            "no talker of the document {document!r}, which has phones",
            "add a line `{document} TALKER`",
            where=path,
            document=document,
        )
    return talker


def _demand_known(corpus: Corpus, fragments: Fragments, mode: str, path: str, notices: Notices) -> None:
    """Demand that fragments lie in documents with phones, as far as the mode does; note the others."""
    has_phones = np.zeros(len(corpus.documents), bool)
    has_phones[corpus.phones.document] = True
    elsewhere = ~has_phones[fragments.document]
    if DISCOVERY_MODES[mode].known and elsewhere.any():
        document = corpus.documents[fragments.document[int(np.argmax(elsewhere))]]
        raise families.UNKNOWN_NAME.of(DataError)(
            "mode {mode} needs phones and words of each document, and has none of {document!r}",
            "remove its fragments, or add its phones and words; mode seed counts them as empty",
            where=path,
            mode=mode,
            document=document,
        )
    notices.add(codes.FRAGMENTS_ELSEWHERE, where=path, count=int(elsewhere.sum()))


#: Keys of what the table shows, in its order.
_FIGURES = ("ned", "coverage", "precision", "recall", "fscore")


def score_files(
    files: Files,
    mode: str,
    notices: Notices,
    *,
    given: Given = "classes",
    parts: int | None = None,
    storage: Mapping[str, object] | None = None,
) -> dict[str, object]:
    """The scores of what a system discovered.

    Args:
        files: paths.
        mode: of `swsdist.registry.registries.DISCOVERY_MODES`.
        notices: receives oddities.
        given: what `files.fragments` is.
        parts: also score so many contiguous parts of equal time of speech, as the folds `parts`.
        storage: options for s3fs.

    Returns:
        `mode` and `input` (what was given), what the mode's module says, and `warnings`, the oddities of the files.

    Raises:
        ConfigError: an unknown mode.
        UserError: a missing file, or one that the mode needs.
        DataError: a file is not valid, or the files do not fit.
    """
    corpus, fragments, setup = read_evaluation(
        files, mode, notices, given=given, has_folds=parts is not None, storage=storage
    )
    if parts is not None:
        setup = replace(setup, folds={**setup.folds, "parts": equal_parts(corpus, parts)})
    warnings = [str(notice) for notice in notices.entries.values()]
    return {
        "mode": mode,
        "input": given,
        **DISCOVERY_MODES[mode].load()(corpus, fragments, setup),
        "warnings": warnings,
    }


def table(result: Mapping[str, object]) -> list[str]:
    """The figures of a result as lines: of folds the mean, and the standard deviation in brackets."""
    rows: list[tuple[str, ...]] = [("", "", "NED/coverage", "precision", "recall", "F")]
    for scope, measure, values in _scores(result, ()):
        figures = [_figure(values[key]) if key in values else "" for key in _FIGURES]
        if "mean" in values:
            figures[0] = _figure(values)
        elif "error" in values:
            figures[0] = str(values["error"])
        rows.append((scope, measure, figures[0] or figures[1], *figures[2:]))
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    head = f"mode {result['mode']}, {result['input']}"
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return [head, *lines]


def _scores(node: Mapping[str, object], scope: tuple[str, ...]) -> Iterator[tuple[str, str, Mapping[str, object]]]:
    """The measures of a result, each with the names above it."""
    for key, value in node.items():
        if not isinstance(value, Mapping) or key in ("readings", "left_out"):
            continue
        if key in DISCOVERY_MEASURES or "error" in value:
            yield " ".join(scope) or "all", key, value
        else:
            yield from _scores(value, scope if key == "summary" else (*scope, key))


def _figure(value: object) -> str:
    if isinstance(value, Mapping):
        mean, deviation = value["mean"], value["std"]
        return "-" if mean is None else f"{mean:.4f} ({deviation:.4f})"
    return "-" if value is None else f"{value:.4f}"
