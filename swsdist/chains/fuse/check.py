"""Checks of a fusion for `swsdist check`: its runs, and the inputs of systems that are run first."""

from __future__ import annotations

from collections.abc import Iterator

from swsdist.chains.check import Checking, findings, more_than_trials
from swsdist.chains.fuse.inputs import FuseInputs
from swsdist.chains.fuse.systems import configs
from swsdist.core.codes import fuse as codes
from swsdist.core.codes import line_of
from swsdist.core.errors import SwsdistError
from swsdist.io.filesystem import Folder
from swsdist.pipeline.finding import Finding
from swsdist.pipeline.inspection.loading import load_chain_run
from swsdist.pipeline.ledger import Ledger
from swsdist.stages.inputs.search_inputs import SearchInputs


def check(inputs: FuseInputs) -> Iterator[Finding]:
    """Findings for each system, including all errors."""
    finished_systems = set()
    for system in inputs.options.systems:
        if system.run is None:
            continue
        try:
            chain_run = load_chain_run(Folder(inputs.place(system), inputs.config.storage))
            done = chain_run.ended("scored") is not None
            text = chain_run.run.path() if done else line_of(codes.UNFINISHED_SYSTEM, system=system.name)
            finished_systems |= {system.name} if done else set()
            yield Finding(f"{system.name}: run", done, text)
        except SwsdistError as error:
            yield Finding(f"{system.name}: run", False, str(error).replace("\n  remedy:", "; remedy:"))
    inputs.notices.force = True
    try:
        if all(system.name in finished_systems for system in inputs.options.systems):  # others are run first
            inputs.settle()
        for notice in inputs.notices.entries.values():
            yield Finding("systems", False if notice.forced else None, str(notice))
        results = configs(inputs)
    except SwsdistError as error:
        yield Finding("systems", False, str(error).replace("\n  remedy:", "; remedy:"))
        return
    listed, trials = 0, None
    for name, config in results.items():
        of_system = SearchInputs.of(config, Ledger(Folder(config.run, config.storage)))
        checking = Checking(of_system)
        for finding in findings(of_system, checking):
            yield finding._replace(name=f"{name}: {finding.name}")
        listed, trials = listed + checking.listed, checking.trials
    yield from more_than_trials("systems", listed, trials)
