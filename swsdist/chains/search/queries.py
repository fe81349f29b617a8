"""queries turns spoken examples into features, one table for each group of queries."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any

from swsdist.audio.clips import write_silence
from swsdist.chains.search.inputs import SearchInputs
from swsdist.chains.search.told import Extracted
from swsdist.config import Config
from swsdist.config.search import Search
from swsdist.errors import UserError
from swsdist.features.interface import Extractor, needs_of, use
from swsdist.features.sources import planned, sources_of, together
from swsdist.kernels.scales import LONGEST_QUERY
from swsdist.methods.query.extraction import extract, groups
from swsdist.needs import Needs
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Done, Task
from swsdist.registries import METHODS, RECURRENCES
from swsdist.types import EXAMPLES, QUERIES


def _example(row: dict[str, Any]) -> int:
    return int(row["example"])


def _granted(task: Task, context: Context) -> list[Extractor]:
    """The extractors of a task, told what this worker was given."""
    extractors = [planned(**source) for source in task.payload["sources"]]
    for extractor in extractors:
        use(extractor, context.granted)
    return extractors


class Queries(Stage):
    """Queries are searched in groups; the ids alone determine the borders between groups."""

    name = "queries"
    version = 1
    unit = "examples"
    tables = {"examples": Table(EXAMPLES)}

    def needs(self, config: Config) -> tuple[Needs, ...]:
        """What suffices for each of the extractors."""
        return together([needs_of(source.extractor) for source in sources_of(config.features)])

    def plan(self, inputs: Inputs) -> Iterator[Task]:
        """A task a group."""
        own, search = inputs.own(SearchInputs), inputs.config.search
        takes = METHODS[search.method].queries
        if takes != "spoken":
            raise UserError(
                f"the method {search.method} takes {takes} queries, this stage spoken ones",
                where="search.method",
                remedy="name the chain that belongs to the method (key chain)",
            )
        longest = RECURRENCES[search.recurrence].longest(search.of_recurrence())
        # Long examples are refused by templates and by some recurrences; only these enter the fingerprint of a group.
        refusing: list[Any] = ["template"] if search.examples == "template" else []
        refusing += [longest] if longest != LONGEST_QUERY else []
        by_query: dict[str, list[dict[str, Any]]] = {}
        for row in own.examples:
            by_query.setdefault(row["query_id"], []).append(row)
        cut = groups(list(by_query))
        # Of one extractor, columns are its own, whatever it calls its tracks.
        recipe: Any = own.extractor_fingerprint if len(own.sources) == 1 else own.recipes
        settings = {
            "sources": [
                {"name": source.name, "options": source.options, "recipe": source.fingerprint} for source in own.sources
            ],
            "search": search.model_dump(mode="json"),
        }
        for k, query_ids in enumerate(cut):
            members = [row for query_id in query_ids for row in sorted(by_query[query_id], key=_example)]
            matters = [{key: value for key, value in row.items() if key not in ("term", "doc_id")} for row in members]
            yield inputs.task(
                recipe,
                matters,
                *refusing,
                label=f"group {k + 1} of {len(cut)}: {len(query_ids)} queries",
                work=len(members),
                payload={"examples": members, **settings},
            )

    def warm(self, task: Task, context: Context) -> None:
        """Extract a second of silence: decoder and extractor are then loaded."""
        extractors = _granted(task, context)
        with tempfile.TemporaryDirectory(prefix="swsdist-") as place:
            path = f"{place}/silence.wav"
            write_silence(path, extractors[0].sample_rate)
            row = dict.fromkeys(QUERIES.names)
            row |= {"query_id": "silence", "example": 1, "channel": 1, "path": path}
            extract([row], extractors, context.run)

    def run(self, task: Task, context: Context) -> Done:
        """Features of the group's examples."""
        settings = Search.model_validate(task.payload["search"])
        extracted = extract(task.payload["examples"], _granted(task, context), context.run, settings)
        examples = extracted.examples
        told = Extracted(
            examples.num_rows,
            sorted(set(examples["query_id"].to_pylist())),
            sum(examples["frames"].to_pylist()),
            extracted.seconds,
        )
        output = context.publish(task, "examples", [examples], EXAMPLES)
        return Done((output,), told, rejected=extracted.rejected.to_pylist())
