"""What makes a chain that reports on a scored list, of the steps that chains of queries share or of others."""

from __future__ import annotations

from collections.abc import Sequence

from swsdist.calibrate.procedure import required_statistics
from swsdist.chains.check import check
from swsdist.chains.report.notices import barrier, counts, notices, summary
from swsdist.chains.report.publish import FILES, publish_report
from swsdist.chains.report.reporting import rejected_rows
from swsdist.config import Config
from swsdist.pipeline.chain import Chain, Step
from swsdist.pipeline.ledger import Ledger
from swsdist.pipeline.stage import Stage
from swsdist.stages.describe import demand_posteriors
from swsdist.stages.inputs.provenance import files_of
from swsdist.stages.inputs.search_inputs import SearchInputs
from swsdist.stages.inputs.validation import document_checks, folds_of_steps
from swsdist.stages.steps import steps


def assemble(
    config: Config, ledger: Ledger, stages: Sequence[Step | Stage] = (), inputs: SearchInputs | None = None
) -> Chain:
    """A chain that reports on a scored list, of these steps or of others.

    Args:
        config: of the chain.
        ledger: of the run.
        stages: instead of `steps`.
        inputs: instead of `SearchInputs`.

    Raises:
        ConfigError: see `steps`.
    """
    stages, inputs = stages or steps(config), inputs or SearchInputs.of(config, ledger)
    demand_posteriors(inputs, required_statistics(config.calibrate))
    inputs.document_checks.update(document_checks(config))
    inputs.folds.update(folds_of_steps(config.calibrate))
    inputs.files.update(files_of(config))
    return Chain(
        *(config.chain, stages, inputs, publish_report, FILES, notices, rejected_rows, check, summary),
        barrier=barrier,
        counts=counts,
    )
