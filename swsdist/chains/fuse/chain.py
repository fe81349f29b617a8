"""The chain fuse: from the lists of several systems to the scored report of their fusion.

::

    (systems that are run first) -> queries -> merge-lists -> [rescore] -> impute-scores -> [describe-examples]
        -> align.train -> fit -> combine -> [find-overlaps -> decide]
    decide -> align.final -> measure -> score; decide -> format -> export

From align.train on, the stages are those of the chain search. Without options.between_queries, combine is named decide.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from swsdist.calibrate.fusion import with_parts_of
from swsdist.calibrate.procedure import required_statistics
from swsdist.calibrate.statistics import load_statistics
from swsdist.chains.fuse.inputs import FuseInputs
from swsdist.chains.fuse.merge_lists import (
    TABLES,
    CollectQueries,
    DropOverlaps,
    FindOverlaps,
    ImputeScores,
    MergeLists,
    check,
    configs,
)
from swsdist.chains.fuse.report import notices, publish
from swsdist.chains.fuse.rescore import DescribeExamples, Rescore
from swsdist.chains.report.notices import summary
from swsdist.chains.report.publish import FILES
from swsdist.chains.report.reporting import rejected_rows
from swsdist.config import Config
from swsdist.core.codes import fuse as codes
from swsdist.core.types import JOINED_TRIALS
from swsdist.pipeline.chain import Chain, ExternalTable, Stage, Step, Table
from swsdist.pipeline.ledger import Ledger
from swsdist.stages.align import Align
from swsdist.stages.export import Export, Format
from swsdist.stages.fit import Decide, Fit
from swsdist.stages.inputs.provenance import files_of
from swsdist.stages.inputs.validation import document_checks, folds_of_steps
from swsdist.stages.score import Measure, Score
from swsdist.stages.summarise import Summarise


class AlignJoined(Align):
    """Aligned joined lists, for fitting a fusion."""

    name = "align-joined"
    version = 1
    takes = {"detections": "filled"}
    tables = {"trials": Table(JOINED_TRIALS)}

    def kept(self, trials: pa.Table, detections: pa.Table) -> pa.Table:
        """Trials with the column `parts`."""
        return with_parts_of(trials, detections)


def build(config: Config, ledger: Ledger) -> Chain:
    """The chain for a config.

    Raises:
        ConfigError: invalid options.
    """
    inputs = FuseInputs(config, ledger)
    options = inputs.options
    inputs.document_checks.update(document_checks(config))
    inputs.folds.update(folds_of_steps(config.calibrate))
    inputs.files.update(files_of(config))
    covariates = required_statistics(config.calibrate)
    if of_candidates := load_statistics(covariates, "candidates"):
        raise codes.CANDIDATES_OF_A_FUSION(where="calibrate.options", statistics=", ".join(of_candidates))
    lists = tuple(ExternalTable(inputs.place(system), TABLES[options.scores]) for system in options.systems)
    deciding: list[Step | Stage] = [Step("decide", Decide(), {"detections": "impute-scores:filled"})]
    if options.between_queries:
        deciding = [
            Step("combine", Decide(), {"detections": "impute-scores:filled"}, {"scored": "combined"}),
            FindOverlaps(),
            Step("decide", DropOverlaps()),
        ]

    def first() -> Mapping[str, Config]:
        for read in inputs.files.values():  # before systems are run
            read()
        return configs(inputs)

    stages = (
        Step("queries", CollectQueries()),
        Step("merge-lists", MergeLists(), {"lists": lists}),
        *([Rescore()] if options.missing == "rescore" else []),
        ImputeScores(),
        *([DescribeExamples()] if load_statistics(covariates, "examples") else []),
        Step("align.train", AlignJoined(), labels={"trials": "aligned"}),
        Fit(),
        *deciding,
        Step("align.final", Align(), {"detections": "decide:scored"}),
        Step("measure", Measure(), {"trials": "align.final:trials"}),
        Score(),
        Step("summarise", Summarise(), {"scored": "decide:scored", "trials": "align.final:trials"}),
        Step("format", Format(), {"scored": "decide:scored"}),
        Step("export", Export(), {"scored": "decide:scored"}),
    )
    return Chain("fuse", stages, inputs, publish, FILES, notices, rejected_rows, check, summary, first)
