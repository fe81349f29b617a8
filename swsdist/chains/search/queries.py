"""queries: spoken examples -> their features, a table a group of queries."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any

from swsdist.audio.clips import write_silence
from swsdist.features.registry import create
from swsdist.fingerprint import fingerprint
from swsdist.kernels.scales import LONGEST_QUERY, longest_query
from swsdist.methods.query.extraction import extract, groups
from swsdist.pipeline.state import State, identities
from swsdist.pipeline.task import Context, Done, Stage, Task
from swsdist.store import parquet
from swsdist.types import EXAMPLES, QUERIES


def examples_name(fingerprint: str) -> str:
    """Where a group's features lie in the run folder."""
    return f"tables/examples/{fingerprint}.parquet"


def _example(row: dict[str, Any]) -> int:
    return int(row["example"])


class Queries(Stage):
    """Queries are searched in groups, whose borders the ids themselves tell."""

    name = "queries"
    version = 1
    phase = "search"
    unit = "examples"

    def plan(self, state: State) -> Iterator[Task]:
        """A task a group."""
        rows = state.queries.to_pylist()
        search = state.config.search
        longest = longest_query(search.recurrence, search.band)
        # What refuses long examples; with neither, the name of a group is what it is for any search.
        refusing: list[Any] = ["template"] if search.examples == "template" else []
        refusing += [longest] if longest != LONGEST_QUERY else []
        found = identities([row["path"] for row in rows], state.config.storage)
        by_query: dict[str, list[dict[str, Any]]] = {}
        for row, identity in zip(rows, found, strict=True):
            by_query.setdefault(row["query_id"], []).append({**row, "identity": identity})
        cut = groups(list(by_query))
        for k, query_ids in enumerate(cut):
            members = [row for query_id in query_ids for row in sorted(by_query[query_id], key=_example)]
            matters = [{key: value for key, value in row.items() if key not in ("term", "doc_id")} for row in members]
            name = fingerprint(self.name, self.version, state.extractor_fingerprint, matters, *refusing)
            label = f"group {k + 1} of {len(cut)}: {len(query_ids)} queries"
            yield Task(self.name, name, label, len(members), {"examples": members})

    def warm(self, context: Context) -> None:
        """Extract a second of silence: decoder and extractor are then loaded."""
        features = context.config.features[0]
        extractor = create(features.name, features.options)
        with tempfile.TemporaryDirectory(prefix="swsdist-") as place:
            path = f"{place}/silence.wav"
            write_silence(path, extractor.sample_rate)
            row = dict.fromkeys(QUERIES.names)
            row |= {"query_id": "silence", "example": 1, "channel": 1, "path": path}
            extract([row], extractor, context.run)

    def run(self, task: Task, context: Context) -> Done:
        """Features of the group's examples."""
        features, search = context.config.features[0], context.config.search
        extracted = extract(task.payload["examples"], create(features.name, features.options), context.run, search)
        output = parquet.publish(context.run, examples_name(task.fingerprint), [extracted.examples], EXAMPLES)
        return Done(
            (output,),
            summary={
                "examples": extracted.examples.num_rows,
                "query_ids": sorted(set(extracted.examples["query_id"].to_pylist())),
                "frames": sum(extracted.examples["frames"].to_pylist()),
                "seconds": extracted.seconds,
            },
            rejected=extracted.rejected.to_pylist(),
        )
