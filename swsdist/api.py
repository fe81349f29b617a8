"""The commands as Python functions: `swsdist.run`, `swsdist.search`, `swsdist.sweep`, ...

Every name in `__all__` is also an attribute of the package `swsdist`. Times are in seconds, tables are pandas data
frames, and errors are those of `swsdist.core.errors`. Heavy libraries are imported by the call that needs them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from swsdist.core.codes import families
from swsdist.core.errors import UserError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from numpy.typing import ArrayLike

    from swsdist.config import Config
    from swsdist.pipeline.chain_run import Outcome, StepSelection
    from swsdist.pipeline.operation.progress import Progress
    from swsdist.report.data import ReportData
    from swsdist.report.summary import Rejection
    from swsdist.store.reading import Store

    #: A query: text, or samples and their rate.
    _Query: TypeAlias = str | Path | tuple[ArrayLike, int]

__all__ = [
    "RunResult",
    "SweepResult",
    "curve",
    "digest",
    "discover",
    "open_store",
    "phones",
    "run",
    "score_discovery",
    "search",
    "sweep",
    "warping_path",
    "words",
]


@dataclass(frozen=True, repr=False)
class RunResult:
    """The result of a run: its tables, as pandas data frames, and its measures.

    The tables are those of the run's config, whatever else the folder holds. Times are in seconds.

    Attributes:
        outcome: receipts and failures of every stage.
        report: the report's data; None if all was done and the report existed.
        folder: the run folder.
    """

    outcome: Outcome
    report: ReportData | None
    folder: str

    def __repr__(self) -> str:
        results, failed = self.measures(), len(self.outcome.failures)
        values = [f"{name.upper()} {results[name]:.4f}" for name in ("mtwv", "atwv") if results.get(name) is not None]
        return f"<RunResult {', '.join([self.folder, *values, *([f'{failed} tasks failed'] if failed else [])])}>"

    def _repr_html_(self) -> str:
        from dataclasses import replace

        from swsdist.report.data import Measures
        from swsdist.report.page import measures_table
        from swsdist.report.tables import Table, html

        results: dict[str, Any] = self.measures()
        if not results:
            return html(Table(repr(self)[1:-1], ["measure", "value"], [], "Nothing was scored."))
        fit, thresholds = results.pop("calibration"), results.pop("atwv_thresholds")
        table = measures_table(Measures.of(results, calibration=fit, thresholds=thresholds))
        return html(replace(table, caption=repr(self)[1:-1]))

    def detections(self) -> pd.DataFrame:
        """The scored list, best first within each query: columns of `swsdist.core.types.DETECTIONS`."""
        from swsdist.core.types import DETECTIONS

        return self._read("scored", DETECTIONS, ["query_id", "score"])

    def terms(self) -> pd.DataFrame:
        """Each query's counts, rates and value at the decisions, and its best value, by query.

        Columns of `swsdist.score.measures.twv.PER_TERM`. Empty where nothing was scored.
        """
        from swsdist.score.measures.twv import PER_TERM

        return self._read("terms", PER_TERM, ["query_id"])

    def trials(self) -> pd.DataFrame:
        """The scored trials, best first within each query: hits, false alarms (no reference), and at the end misses.

        Columns of `swsdist.core.types.TRIALS`; a miss has no detection and no score. Empty where nothing was scored.
        """
        from swsdist.core.types import TRIALS

        return self._read("trials", TRIALS, ["query_id", "score"])

    def det(self) -> pd.DataFrame:
        """The DET curve that the report draws: columns `threshold`, and mean `pmiss` and `pfa` there.

        It is thinned to what a drawing needs. The threshold that accepts nothing is infinite. Empty where nothing was
        scored.
        """
        from swsdist.score.measures.det import DET, accepted_from

        results = self._read("det", DET, [])
        shown = accepted_from(*(results[name].to_numpy() for name in DET.names))
        return results.assign(threshold=shown)

    def _read(self, table: str, schema: pa.Schema, by: list[str]) -> pd.DataFrame:
        """A table of the current state; the score, if it is sorted by that, from the greatest."""
        import pyarrow as pa

        chain_run = self.outcome.chain_run
        parts = [] if chain_run.chain.source(table) is None else chain_run.read(table)
        frame: pd.DataFrame = pa.concat_tables([schema.empty_table(), *parts]).to_pandas()
        if not by:
            return frame
        return frame.sort_values(by, ascending=[name != "score" for name in by], kind="stable", ignore_index=True)

    def classes(self) -> pd.DataFrame:
        """Members of the classes of a discovery: columns of `swsdist.chains.discover.chain.MEMBERS`.

        Empty for other chains.
        """
        return self._members("classes")

    def parse(self) -> pd.DataFrame:
        """Tokens of all speech: the columns of `classes`; the class can be missing. Empty for other chains."""
        return self._members("parse")

    def _members(self, table: str) -> pd.DataFrame:
        from swsdist.chains.discover.chain import MEMBERS

        return self._read(table, MEMBERS, [])

    def rejected(self) -> list[Rejection]:
        """Rejected inputs by kind and reason: count, the first with its message, and a remedy."""
        from swsdist.report.data import RejectedRow
        from swsdist.report.summary import rejections

        return rejections(RejectedRow(**row) for row in self.outcome.chain_run.rejected().to_pylist())

    def measures(self) -> dict[str, object]:
        """All measures by name, thresholds and rates among them; empty where nothing was scored."""
        from swsdist.stages.buckets import Measured

        chain_run = self.outcome.chain_run
        scored = [] if chain_run.chain.source("det") is None else chain_run.results("det", Measured)
        return dict(scored[0].measures) if scored else {}


def run(
    config: str | Path | Mapping[str, object] | Config,
    *,
    sets: Sequence[str] = (),
    selection: StepSelection | None = None,
    progress: Progress | None = None,
    allow_commands: bool = False,
) -> RunResult:
    """Run the unfinished stages of a config, from audio to report.

    Args:
        config: path of a YAML file, its content as a mapping (paths relative to the working directory), or a `Config`.
        sets: overrides as `a.b=c`.
        selection: which stages; all by default.
        progress: receives events.
        allow_commands: run the commands of a Kaldi `wav.scp`.

    Raises:
        ConfigError: the config is not valid.
        LockedError: another process works in the run folder.
        UserError, DataError: the inputs cannot be used, `config` is not a config, or `sets` is not a list.
    """
    from swsdist.audio.streams import are_permitted, permitted
    from swsdist.pipeline.chain_run import StepSelection
    from swsdist.pipeline.driver import run_stages
    from swsdist.pipeline.operation.progress import Progress
    from swsdist.report.data import ReportData

    loaded = _loaded(config, sets)
    with permitted(allow_commands or are_permitted()):
        outcome = run_stages(loaded, selection or StepSelection(), progress or Progress())
    report = outcome.reports.get(outcome.chain_run.name)
    return RunResult(outcome, report if isinstance(report, ReportData) else None, outcome.ledger.run.root)


def discover(
    config: str | Path | Mapping[str, object] | Config,
    *,
    sets: Sequence[str] = (),
    progress: Progress | None = None,
    allow_commands: bool = False,
) -> RunResult:
    """Find stretches that recur, without queries: `run` for a config with `chain: discover`.

    The tables are `classes` and `parse` of the result; the run folder has classes.html and exports.

    Args:
        config: as of `run`.
        sets: overrides as `a.b=c`.
        progress: receives events.
        allow_commands: run the commands of a Kaldi `wav.scp`.

    Raises:
        UserError: the config is of another chain; or as `run`.
        ConfigError, LockedError, DataError: as `run`.
    """
    from swsdist.core.codes import cli as codes

    loaded = _loaded(config, sets)
    if loaded.chain != "discover":
        path = config if isinstance(config, str | Path) else "CONFIG"
        raise codes.OTHER_CHAIN(where="chain", chain=loaded.chain, wanted="discover", config=path)
    return run(loaded, progress=progress, allow_commands=allow_commands)


def _loaded(config: str | Path | Mapping[str, object] | Config, sets: Sequence[str]) -> Config:
    from swsdist.config import Config, config_from_dict, load_config

    _demand_list(sets)
    if isinstance(config, Mapping):
        return config_from_dict(config, ".", sets)
    if isinstance(config, Config):
        return config
    _demand_path(config, "config", "give the path of a YAML file, a mapping, or a Config")
    return load_config(config, sets)


@dataclass(frozen=True, repr=False)
class SweepResult:
    """The result of a sweep.

    Attributes:
        table: a row a point: keys, measures, intervals, tests, costs, digest.
        best: numbers of the points, best first; with several scoring setups (another beta, other references),
            the best of each.
        failed: error messages of failed points, by number.
        notices: warnings.
        folder: of the table and the page: `sweeps/NAME` in the run folder, NAME of the sweep's file.
        tasks_done: tasks that were done now.
        summary: lines for a terminal.
    """

    table: pa.Table
    best: tuple[int, ...]
    failed: Mapping[int, str]
    notices: tuple[str, ...]
    folder: str
    tasks_done: int
    summary: tuple[str, ...]

    def __repr__(self) -> str:
        best = f", best {self.best[0]}" if self.best else ""
        failed = f", {len(self.failed)} failed" if self.failed else ""
        return f"<SweepResult {self.folder}, {self.table.num_rows} points{best}{failed}>"

    def _repr_html_(self) -> str:
        import pyarrow as pa

        from swsdist.report.tables import html, table_of

        at = {number: row for row, number in enumerate(self.table["point"].to_pylist())}
        rows = self.table.take(pa.array([at[number] for number in self.best[:10]], pa.int64()))
        columns = [
            name for name in rows.column_names if rows[name].null_count < rows.num_rows and name not in ("id", "digest")
        ]
        return html(table_of(rows.select(columns), repr(self)[1:-1], 4, names_first=False))

    def points(self) -> pd.DataFrame:
        """The table."""
        frame: pd.DataFrame = self.table.to_pandas()
        return frame

    def lines(self) -> list[str]:
        """The best points, for a terminal."""
        return list(self.summary)

    def as_json(self) -> str:
        """The best points, and what failed."""
        import json

        rows = {row["point"]: row for row in self.table.to_pylist()}
        values = {
            "best": [
                rows[number] for number in (self.best if self.table["scored_by"].null_count == 0 else self.best[:10])
            ],
            "failed": dict(self.failed),
            "folder": self.folder,
        }
        return json.dumps(values, indent=1, ensure_ascii=False, allow_nan=False)


def sweep(
    path: str | Path,
    *,
    corpus: str | None = None,
    run: str | None = None,
    sets: Sequence[str] = (),
    progress: Progress | None = None,
) -> SweepResult:
    """Run the unfinished points of a sweep, and write its table and page into `sweeps` in the run folder.

    Args:
        path: the sweep's YAML file.
        corpus: corpus file, for the config's.
        run: run folder, for the sweep's.
        sets: overrides of all points, as `a.b=c`.
        progress: receives events.

    Raises:
        ConfigError: the file or a point is not valid.
        LockedError: another process works in the run folder.
        StorageError: a file system or server fails.
        UserError: `path` is not a path, or `sets` is not a list.
    """
    from swsdist.chains.sweep.sweep import run_sweep_file
    from swsdist.pipeline.operation.progress import Progress

    _demand_path(path, "path", "give the path of the sweep's YAML file")
    _demand_list(sets)
    done = run_sweep_file(str(path), corpus=corpus, run=run, sets=tuple(sets), progress=progress or Progress())
    failed = {result.point.number: result.failed for result in done.results if result.failed}
    return SweepResult(
        done.ranked.table, done.ranked.best, failed, done.notices, done.folder, done.tasks_done, tuple(done.lines)
    )


def _demand_path(value: object, name: str, remedy: str) -> None:

    if not isinstance(value, str | Path):
        raise families.INVALID_VALUE.of(UserError)(
            "{value} is not a path", "{expected}", where=name, value=f"{value!r:.60}", expected=remedy
        )


def _demand_list(sets: object) -> None:
    """Refuse a text, which would be a list of letters."""

    if isinstance(sets, str) or not isinstance(sets, Sequence) or not all(isinstance(item, str) for item in sets):
        example = sets if isinstance(sets, str) else "search.distance=cosine"
        raise families.INVALID_VALUE.of(UserError)(
            "{value} is not a list of texts KEY=VALUE",
            "give a list: sets=[{example!r}]",
            where="sets",
            value=f"{sets!r:.60}",
            example=example,
        )


def open_store(path: str, storage: Mapping[str, object] | None = None) -> Store:
    """Open a feature store for reading.

    Args:
        path: its folder; local, or `s3://`.
        storage: options for s3fs.

    Raises:
        StoreError: there is no store.
    """
    from swsdist.io.filesystem import Folder
    from swsdist.store.reading import Store

    return Store(Folder(path, storage or {}))


def words(store: str | Store) -> pd.DataFrame:
    """The words of recordings in a store of transcripts or lattices, as they are written.

    Args:
        store: a store, its folder, or the folder of a run.

    Returns:
        doc_id, channel (of the recording), start, end (s), word, confidence; by recording, channel and start.

    Raises:
        StoreError: it holds no words.
    """
    import pandas as pd

    from swsdist.searcher.searcher import store_of_words
    from swsdist.store.lattice_shards import words_of_recordings

    opened = store_of_words(store) if isinstance(store, str) else store
    rows = (
        (name, channel, word.start, word.end, word.text, word.confidence)
        for name, channels, _ in words_of_recordings(opened)
        for channel, some in channels.items()
        for word in some
    )
    return pd.DataFrame(rows, columns=["doc_id", "channel", "start", "end", "word", "confidence"])


def phones(
    weights: str, documents: str, *, penalty: float | None = None, storage: Mapping[str, object] | None = None
) -> pd.DataFrame:
    """Strings of phones of recordings, decoded in this process.

    Args:
        weights: folder of a phoneme recogniser of BUT's phnrec.
        documents: table (doc_id, path) or folder of audio.
        penalty: natural logarithm added for each phone; by default the recogniser's.
        storage: options for s3fs.

    Returns:
        doc_id, channel, start, end (s), phone, score (natural logarithm); in the documents' order.

    Raises:
        ConfigError: it is not the folder of a recogniser.
        AudioError: a recording cannot be used.
        UserError: the penalty is not a number.
    """
    import pandas as pd

    from swsdist.core.numbers import number
    from swsdist.corpora.documents import read_documents
    from swsdist.features.phnrec.transcribe import transcribe, transcriber

    penalty = None if penalty is None else number(penalty, "penalty")
    by, rows = transcriber(weights), []
    for row in read_documents(documents, storage).to_pylist():
        key = row["doc_id"], row["channel"]
        results = transcribe(row["path"], by, channel=row["channel"], penalty=penalty, storage=storage)
        rows += [(*key, *item) for item in results]
    return pd.DataFrame(rows, columns=["doc_id", "channel", "start", "end", "phone", "score"])


def search(
    store: str | Store,
    queries: _Query | Iterable[_Query] | pd.DataFrame,
    *,
    options: Mapping[str, object] | None = None,
    top: int = 20,
    trim: bool = True,
    texts: bool = False,
    speak: Sequence[str] = (),
) -> pd.DataFrame:
    """Search spoken examples or texts in a store, in this process and without a run folder.

    Args:
        store: a store, or its folder; or a run's folder, to search its store with its settings (`search`, `reduce`,
            `queries.trim`, `calibrate.steps`).
        queries: `hello.wav`, `talk.flac:12.3-13.1` (a place, s), `talk.flac#2` (a channel), a document of the store in place of
            the file, or the path of a table; `(samples, rate)`, of float samples of shape (n,), full scale 1, and Hz, whose
            query_id is `array 1`, by its place; several of these; or a table of examples (columns of
            `swsdist.core.types.QUERIES`).
        options: keys of the config's section `search`, for example `{"distance": "cosine-squared"}`; they override a run's.
        top: detections kept per query.
        trim: trim recorded queries to their speech; a query or a place without speech is an error.
        texts: `queries` are texts, or tables of them, and words are searched; in a store of frames, the words kept
            beside the frames.
        speak: voices, such as `espeak-ng:en-us` or `flite:slt`; `queries` are then texts, or tables of them, and each
            voice speaks an example of each.

    Returns:
        Best first within each query: query_id, doc_id, channel, start, end, score (after q-norm, or the
        run's steps), cost, frames, example.

    Warns:
        UserWarning: defaults that were chosen, such as the channel of a recording.

    Raises:
        AudioError, TermError, UserError: a query cannot be used; then none is searched.
    """
    from swsdist.io.remote.scratch import scratch
    from swsdist.searcher.searcher import Searcher

    # No shard is kept in memory for a second search.
    with (
        Searcher(store, options=options, trim=trim, texts=texts, memory=0) as searcher,
        TemporaryDirectory(dir=scratch()) as place,
    ):
        return searcher.search(searcher.spoken_rows(queries, speak, Path(place)) if speak else queries, top)


def curve(
    store: str | Store,
    query: str,
    doc_id: str,
    *,
    channel: int = 1,
    options: Mapping[str, object] | None = None,
    trim: bool = True,
) -> pd.DataFrame:
    """Score of a spoken query at each frame of a document, of the best path that ends there.

    Args:
        store: a store, or its folder.
        query: `hello.wav`, or `talk.flac:12.3-13.1` (a place, s).
        doc_id, channel: of the document.
        options: keys of the config's section `search`.
        trim: as for `search`.

    Returns:
        A row for each frame that is searched: start and end (s) of the path that ends with it, score (before calibration),
        cost, frames; all but `end` are missing where no path ends.

    Raises:
        AudioError: the query cannot be used.
        ConfigError: an option is not valid.
        StoreError: there is no such document.
    """
    from swsdist.searcher.searcher import Searcher

    with Searcher(store, options=options, trim=trim, memory=0) as searcher:
        return searcher.curve(query, doc_id, channel)


def warping_path(
    store: str | Store,
    query: str,
    doc_id: str,
    end: float,
    *,
    channel: int = 1,
    options: Mapping[str, object] | None = None,
    trim: bool = True,
) -> pd.DataFrame:
    """The warping path of the detection that ends at a time: pairs of query frame and document frame.

    Args:
        store, query, doc_id, channel, options, trim: as for `curve`.
        end: the detection's end, s.

    Returns:
        A row for each cell of the path: query_frame, frame, query_time and time (s, where they begin; of the
            query as it was searched), distance.

    Raises:
        AudioError: the query cannot be used.
        ConfigError: an option is not valid.
        StoreError: there is no such document.
        UserError: no path ends there.
    """
    from swsdist.searcher.searcher import Searcher

    with Searcher(store, options=options, trim=trim, memory=0) as searcher:
        return searcher.warping_path(query, doc_id, end, channel)


def digest(run: str, storage: Mapping[str, object] | None = None, plan: str = "run") -> dict[str, str]:
    """SHA-256 of each table of a run, and of all tables as `all`.

    Args:
        run: its folder.
        storage: options for S3.
        plan: name of a plan, if the folder has several.

    Raises:
        StoreError: not a run folder, or not finished.
    """
    from swsdist.io.filesystem import Folder
    from swsdist.pipeline.status import digests, load_chain_run
    from swsdist.store.reading import combined

    parts = digests(load_chain_run(Folder(run, storage or {}), plan))
    return {**parts, "all": combined(parts)}


def score_discovery(
    fragments: str | Path,
    *,
    phones: str | Path,
    words: str | Path | None = None,
    talkers: str | Path | None = None,
    folds: str | Path | int | None = None,
    mode: str = "seed",
    split: str | Path | None = None,
    gold_classes: str | Path | None = None,
    given: Literal["classes", "pairs", "parse"] = "classes",
    phone_tiers: Sequence[str] = (),
    word_tiers: Sequence[str] = (),
    storage: Mapping[str, object] | None = None,
) -> dict[str, Any]:
    """Scores of term discovery, by scope and measure: NED, coverage, matching, grouping, type, token, boundary.

    Args:
        fragments: class file, list of pairs, or parse.
        phones: ZeroSpeech's lines, CTM, TextGrid or ELAN; a file, or a folder of these.
        words: likewise; without them type, token and boundary are left out.
        talkers: file of lines `DOC TALKER`; adds pairs within and across talkers, and a fold a talker.
        folds: file of intervals, or a number of contiguous parts of equal time of speech.
        mode: whose numbers: `seed`, or a mode of another package, as of the recipe zerospeech.
        split: stretches of speech, if the mode needs them.
        gold_classes: classes of equal phone strings, if the mode needs them.
        given: what `fragments` is.
        phone_tiers, word_tiers: names in TextGrid or ELAN; empty: all that hold intervals.
        storage: options for S3.

    Returns:
        nested dictionaries: counts are int, ratios float, None is undefined; keys as the mode's module says.

    Raises:
        UserError: a file is missing, or one that the mode needs.
        DataError: a file is not valid, or the files do not fit.
    """
    from swsdist.discovery.evaluate import Files, score_files
    from swsdist.io.notices import Notices

    parts = folds if isinstance(folds, int) else None
    files = Files(
        str(fragments),
        str(phones),
        None if words is None else str(words),
        None if talkers is None else str(talkers),
        {} if folds is None or parts is not None else {"given": str(folds)},
        None if split is None else str(split),
        None if gold_classes is None else str(gold_classes),
        tuple(phone_tiers),
        tuple(word_tiers),
    )
    return score_files(files, mode, Notices(), given=given, parts=parts, storage=storage)
