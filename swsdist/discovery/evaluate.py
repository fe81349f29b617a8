"""Score files of term discovery, for the command and `swsdist.score_discovery`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from swsdist.discovery.reading import Files, read_evaluation
from swsdist.discovery.summary import equal_parts
from swsdist.discovery.units import Given
from swsdist.io.notices import Notices
from swsdist.registry.registries import DISCOVERY_MEASURES, DISCOVERY_MODES

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
